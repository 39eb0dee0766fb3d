//! Looking: names, attributes, links, the file system's figures.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fuser::{AccessFlags, FileAttr, Generation, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyStatfs};
use rustix::fs::{Mode, OFlags, ResolveFlags, Statx, fstatvfs, openat, openat2, readlinkat};
use rustix::io::Errno;

use super::attributes::attributes;
use super::identity::{Mask, Rights};
use super::nodes::{Node, ROOT};
use super::places::{Place, Spot, look_at};
use super::{Through, errno};
use crate::backing::Backing;
use crate::gate::{Ask, Asker, Gate, Operation};

/// How names are opened: what they lead to is known by that, and nothing of it is touched or followed.
const KNOWN: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A name that was looked up: the kernel is about to be told of the inode once more.
pub(super) struct Entry {
    pub(super) node: Arc<Node>,
    pub(super) attributes: FileAttr,
}

impl Entry {
    pub(super) fn generation(&self) -> Generation {
        Generation(self.node.generation)
    }
}

impl<G: Gate> Through<G> {
    pub(super) fn lookup(self: &Arc<Self>, asker: Asker, parent: u64, name: OsString, reply: ReplyEntry) {
        let node = match self.nodes.get(parent) {
            Ok(node) => node,
            Err(error) => return reply.error(errno(error)),
        };
        // What lies in memory meets no gate. Kernels before 5.12 do not know the question and answer `EINVAL`.
        if let Some(directory) = self.nodes.descriptor(&node) {
            match open_cached(&directory, &name) {
                Ok(fd) => match look_at(&fd) {
                    // A file system that is new here is asked about itself, which may take its time.
                    Ok(found) if !self.nodes.places.knows(&Spot::of(&found), &node.place) => {}
                    Ok(found) => {
                        return self.reply_entry(self.entry_of(fd, &found, &node.place, parent, &name), reply);
                    }
                    Err(error) => return reply.error(errno(error)),
                },
                Err(Errno::NOENT) => return reply.error(fuser::Errno::ENOENT),
                Err(_) => {}
            }
        }
        let work = move |through: &Arc<Self>, node: Arc<Node>, directory: Arc<Backing>, reply| {
            through.reply_entry(through.look_up(&directory, &node.place, parent, &name), reply);
        };
        self.on_node(asker, (Operation::Look, 0), parent, reply, ReplyEntry::error, work);
    }

    /// Finds a name in a directory.
    pub(super) fn look_up(
        &self,
        directory: &Backing,
        place: &Arc<Place>,
        parent: u64,
        name: &OsString,
    ) -> io::Result<Entry> {
        if matches!(name.as_bytes(), b"." | b"..") {
            // The kernel knows these by itself, and the root's parent is none of the mount's business.
            return Err(Errno::NOENT.into());
        }
        self.entry(openat(directory, name.as_os_str(), KNOWN, Mode::empty())?, place, parent, name)
    }

    /// Takes in what a name leads to.
    pub(super) fn entry(&self, fd: OwnedFd, place: &Arc<Place>, parent: u64, name: &OsString) -> io::Result<Entry> {
        let found = look_at(&fd)?;
        self.entry_of(fd, &found, place, parent, name)
    }

    fn entry_of(
        &self,
        fd: OwnedFd,
        found: &Statx,
        place: &Arc<Place>,
        parent: u64,
        name: &OsString,
    ) -> io::Result<Entry> {
        let spot = Spot::of(found);
        if spot.device == self.own_device.load(Ordering::Relaxed) {
            return Err(Errno::LOOP.into());
        }
        let node = self.nodes.found(fd, &spot, place)?;
        if node.holds_descriptor() {
            self.note_held(node.number, parent, name);
        }
        let attributes = attributes(found, node.number);
        Ok(Entry { node, attributes })
    }

    pub(super) fn reply_entry(&self, entry: io::Result<Entry>, reply: ReplyEntry) {
        match entry {
            Ok(entry) => reply.entry(&self.options.valid, &entry.attributes, entry.generation()),
            Err(error) => reply.error(errno(error)),
        }
    }

    pub(super) fn getattr(self: &Arc<Self>, asker: Asker, number: u64, handle: Option<u64>, reply: ReplyAttr) {
        let open = handle.and_then(|handle| self.open_files.get(handle).ok()).map(|file| file.backing.clone());
        if let Some(known) = open.filter(|_| number != ROOT).or_else(|| self.files.descriptor(number)) {
            // An open file's inode is in memory.
            return self.reply_attributes(look_at(&known), number, reply);
        }
        let node = match self.nodes.get(number) {
            Ok(node) => node,
            Err(error) => return reply.error(errno(error)),
        };
        if let Some(known) = self.nodes.descriptor(&node) {
            return self.reply_attributes(look_at(&known), number, reply);
        }
        self.run_on(asker, Operation::Look, &self.nodes.stand_in(&node), move |through| {
            let found = through.nodes.reach(&node).and_then(|known| Ok(look_at(&known)?));
            through.reply_attributes(found, number, reply);
        });
    }

    pub(super) fn reply_attributes(&self, found: Result<Statx, impl Into<io::Error>>, number: u64, reply: ReplyAttr) {
        match found {
            // The root is not presented as number 1, but as what it is.
            Ok(found) => {
                let presented = if number == ROOT { found.stx_ino } else { number };
                reply.attr(&self.options.valid, &attributes(&found, presented));
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    pub(super) fn readlink(self: &Arc<Self>, asker: Asker, number: u64, reply: ReplyData) {
        self.look(asker, number, reply, ReplyData::error, |_, known, reply| {
            match readlinkat(&known, c"", Vec::new()) {
                Ok(target) => reply.data(target.as_bytes()),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub(super) fn statfs(self: &Arc<Self>, asker: Asker, number: u64, reply: ReplyStatfs) {
        self.look(asker, number, reply, ReplyStatfs::error, |_, known, reply| match fstatvfs(&known) {
            Ok(found) => reply.statfs(
                found.f_blocks,
                found.f_bfree,
                found.f_bavail,
                found.f_files,
                found.f_ffree,
                found.f_bsize as u32,
                found.f_namemax as u32,
                found.f_frsize as u32,
            ),
            Err(error) => reply.error(errno(error)),
        });
    }

    /// The kernel checks permissions itself and does not ask; if it did, this is what the file system below says of the caller.
    pub(super) fn access(self: &Arc<Self>, asker: Asker, number: u64, mask: AccessFlags, reply: ReplyEmpty) {
        self.look(asker, number, reply, ReplyEmpty::error, move |_, known, reply| {
            let checked = Mask::with_groups(&asker, Rights::All).and_then(|_mask| may(&known, mask.bits()));
            match checked {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    /// Looks at something of an inode, when its turn has come.
    pub(super) fn look<R: Send + 'static>(
        self: &Arc<Self>,
        asker: Asker,
        number: u64,
        reply: R,
        fail: impl FnOnce(R, fuser::Errno) + Send + 'static,
        work: impl FnOnce(&Arc<Self>, Arc<Backing>, R) + Send + 'static,
    ) {
        let work = move |through: &Arc<Self>, _, known, reply| work(through, known, reply);
        self.on_node(asker, (Operation::Look, 0), number, reply, fail, work);
    }

    /// Does something to an inode, when its turn has come. One that is not open is opened then: that may take the disk.
    pub(super) fn on_node<R: Send + 'static>(
        self: &Arc<Self>,
        asker: Asker,
        (operation, offset): (Operation, u64),
        number: u64,
        reply: R,
        fail: impl FnOnce(R, fuser::Errno) + Send + 'static,
        work: impl FnOnce(&Arc<Self>, Arc<Node>, Arc<Backing>, R) + Send + 'static,
    ) {
        let node = match self.nodes.get(number) {
            Ok(node) => node,
            Err(error) => return fail(reply, errno(error)),
        };
        let known = self.nodes.descriptor(&node).or_else(|| self.files.descriptor(number));
        let on = known.clone().unwrap_or_else(|| self.nodes.stand_in(&node));
        self.run(Ask { asker, operation, backing: &on, offset, length: 0 }, move |through| {
            match known.map_or_else(|| through.nodes.reach(&node), Ok) {
                Ok(known) => work(through, node, known, reply),
                Err(error) => fail(reply, errno(error)),
            }
        });
    }
}

fn may(known: &Backing, mask: i32) -> io::Result<()> {
    // SAFETY: the name is an empty string, the descriptor is open, the rest are numbers.
    let result = unsafe {
        libc::syscall(
            libc::SYS_faccessat2,
            known.fd.as_raw_fd(),
            c"".as_ptr(),
            mask,
            libc::AT_EMPTY_PATH | libc::AT_EACCESS,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Opens a name if all that is needed for it lies in memory.
fn open_cached(directory: &Backing, name: &OsString) -> Result<OwnedFd, Errno> {
    if matches!(name.as_bytes(), b"." | b"..") {
        return Err(Errno::NOENT);
    }
    openat2(directory, name.as_os_str(), KNOWN, Mode::empty(), ResolveFlags::CACHED)
}
