//! Lookup, getattr, readlink, statfs and access.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fuser::{AccessFlags, FileAttr, Generation, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyStatfs};
use rustix::fs::{Mode, OFlags, ResolveFlags, Statx, fstatvfs, openat, openat2, readlinkat};
use rustix::io::Errno;

use super::attributes::attributes;
use super::fs_mounts::{FileId, FsMount, stat_fd};
use super::identity::{CallerIdentity, Rights};
use super::nodes::{Node, Removals};
use super::{FsState, WriteBack, errno};
use crate::backing::Backing;
use crate::gate::{Caller, Gate, GateRequest, Operation};

/// Flags for opening a name only to identify its inode, without following a symbolic link.
pub(super) const IDENTIFY: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The result of a lookup. The reply increases the kernel's lookup count of the inode.
pub(super) struct Entry {
    pub(super) node: Arc<Node>,
    pub(super) attributes: FileAttr,
}

/// The generation of all inodes. A node number belongs to one inode while the kernel holds it, so
/// that the kernel need not distinguish them further.
pub(super) const GENERATION: Generation = Generation(0);

impl Entry {
    /// Returns the time for which the kernel may use the attributes of a reply that names the node
    /// by its inode number. If programs see another number, the kernel has to query it.
    pub(super) fn valid(&self, valid: Duration) -> Duration {
        if self.node.shown == self.node.number { valid } else { Duration::ZERO }
    }
}

impl<G: Gate> FsState<G> {
    pub(super) fn lookup(self: &Arc<Self>, caller: Caller, parent: u64, name: OsString, reply: ReplyEntry) {
        let node = match self.nodes.get(parent) {
            Ok(node) => node,
            Err(error) => return reply.error(errno(error)),
        };
        // A lookup that the dentry cache can answer needs no dispatch slot. Kernels before 5.12
        // return `EINVAL`.
        if let Some(directory) = self.nodes.descriptor(&node) {
            let before = self.nodes.removals();
            match open_cached(&directory, &name) {
                Ok(fd) => match stat_fd(&fd) {
                    // A new file system has to be queried about itself, which may block.
                    Ok(found) if !self.nodes.fs_mounts.is_known(&FileId::of(&found), &node.fs_mount) => {}
                    Ok(found) => {
                        let entry = self.entry_of((fd, before), &found, &node.fs_mount, parent, &name);
                        return self.reply_entry(entry, reply);
                    }
                    Err(error) => return reply.error(errno(error)),
                },
                Err(Errno::NOENT) => return reply.error(fuser::Errno::ENOENT),
                Err(_) => {}
            }
        }
        let work = move |fs: &Arc<Self>, node: Arc<Node>, directory: Arc<Backing>, reply| {
            fs.reply_entry(fs.lookup_name(&directory, &node.fs_mount, parent, &name), reply);
        };
        self.run_on_node(caller, (Operation::MetadataRead, 0), parent, reply, ReplyEntry::error, work);
    }

    /// Looks up a name in a directory.
    pub(super) fn lookup_name(
        &self,
        directory: &Backing,
        fs_mount: &Arc<FsMount>,
        parent: u64,
        name: &OsString,
    ) -> io::Result<Entry> {
        if matches!(name.as_bytes(), b"." | b"..") {
            // The kernel resolves these itself, and the parent of the root is outside the mount.
            return Err(Errno::NOENT.into());
        }
        let before = self.nodes.removals();
        let fd = openat(directory, name.as_os_str(), IDENTIFY, Mode::empty())?;
        self.entry((fd, before), fs_mount, parent, name)
    }

    /// Creates the entry for an opened name. The number of removals was taken before.
    pub(super) fn entry(
        &self,
        (fd, before): (OwnedFd, Removals),
        fs_mount: &Arc<FsMount>,
        parent: u64,
        name: &OsString,
    ) -> io::Result<Entry> {
        let found = stat_fd(&fd)?;
        self.entry_of((fd, before), &found, fs_mount, parent, name)
    }

    fn entry_of(
        &self,
        (fd, before): (OwnedFd, Removals),
        found: &Statx,
        fs_mount: &Arc<FsMount>,
        parent: u64,
        name: &OsString,
    ) -> io::Result<Entry> {
        let file_id = FileId::of(found);
        if file_id.device == self.own_device.load(Ordering::Relaxed) {
            return Err(Errno::LOOP.into());
        }
        let node = self.nodes.insert(fd, &file_id, fs_mount, before)?;
        if node.holds_descriptor() {
            self.note_held(node.number, parent, name);
        }
        let attributes = attributes(found, node.number);
        Ok(Entry { node, attributes })
    }

    pub(super) fn reply_entry(&self, entry: io::Result<Entry>, reply: ReplyEntry) {
        match entry {
            Ok(entry) => {
                let valid = self.options.valid;
                reply.entry_with_ttls(&entry.valid(valid), &valid, &entry.attributes, GENERATION);
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    pub(super) fn getattr(self: &Arc<Self>, caller: Caller, number: u64, handle: Option<u64>, reply: ReplyAttr) {
        let open = handle.and_then(|handle| self.open_files.get(handle).ok()).map(|file| file.backing.clone());
        if self.options.write_back == WriteBack::Kernel && open.is_none() && self.nodes.is_renewed(number) {
            // The kernel looks up the name again.
            return reply.error(fuser::Errno::ESTALE);
        }
        let node = match self.nodes.get(number) {
            Ok(node) => node,
            Err(error) => return reply.error(errno(error)),
        };
        // The inode of an open file is in memory.
        if let Some(backing) = open.or_else(|| self.nodes.descriptor(&node)) {
            return self.reply_attributes(stat_fd(&backing), &node, reply);
        }
        self.run_on(caller, Operation::MetadataRead, &self.nodes.placeholder(&node), move |fs| {
            let found = fs.nodes.open_path(&node).and_then(|backing| Ok(stat_fd(&backing)?));
            fs.reply_attributes(found, &node, reply);
        });
    }

    pub(super) fn reply_attributes(&self, found: Result<Statx, impl Into<io::Error>>, node: &Node, reply: ReplyAttr) {
        match found {
            Ok(found) => reply.attr(&self.options.valid, &attributes(&found, node.shown)),
            Err(error) => reply.error(errno(error)),
        }
    }

    pub(super) fn readlink(self: &Arc<Self>, caller: Caller, number: u64, reply: ReplyData) {
        self.read_metadata(caller, number, reply, ReplyData::error, |_, backing, reply| {
            match readlinkat(&backing, c"", Vec::new()) {
                Ok(target) => reply.data(target.as_bytes()),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub(super) fn statfs(self: &Arc<Self>, caller: Caller, number: u64, reply: ReplyStatfs) {
        self.read_metadata(caller, number, reply, ReplyStatfs::error, |_, backing, reply| match fstatvfs(&backing) {
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

    /// Checks access as the file system below does. The kernel normally checks permissions itself
    /// (`default_permissions`) and does not send this request.
    pub(super) fn access(self: &Arc<Self>, caller: Caller, number: u64, identity: AccessFlags, reply: ReplyEmpty) {
        self.read_metadata(caller, number, reply, ReplyEmpty::error, move |_, backing, reply| {
            let checked = CallerIdentity::assume_with_groups(&caller, Rights::All)
                .and_then(|_identity| check_access(&backing, identity.bits()));
            match checked {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    /// Runs a metadata read on a node when the gate dispatches it.
    pub(super) fn read_metadata<R: Send + 'static>(
        self: &Arc<Self>,
        caller: Caller,
        number: u64,
        reply: R,
        fail: impl FnOnce(R, fuser::Errno) + Send + 'static,
        work: impl FnOnce(&Arc<Self>, Arc<Backing>, R) + Send + 'static,
    ) {
        let work = move |fs: &Arc<Self>, _, backing, reply| work(fs, backing, reply);
        self.run_on_node(caller, (Operation::MetadataRead, 0), number, reply, fail, work);
    }

    /// Runs a request on a node when the gate dispatches it. A node without a descriptor is opened
    /// then, which may read from the disk.
    pub(super) fn run_on_node<R: Send + 'static>(
        self: &Arc<Self>,
        caller: Caller,
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
        let backing = self.nodes.descriptor(&node);
        let target = backing.clone().unwrap_or_else(|| self.nodes.placeholder(&node));
        self.run(GateRequest { caller, operation, backing: &target, offset, length: 0 }, move |fs| {
            match backing.map_or_else(|| fs.nodes.open_path(&node), Ok) {
                Ok(backing) => work(fs, node, backing, reply),
                Err(error) => fail(reply, errno(error)),
            }
        });
    }
}

fn check_access(backing: &Backing, identity: i32) -> io::Result<()> {
    // SAFETY: the path is an empty C string, the descriptor is open, and the other arguments are
    // integers.
    let result = unsafe {
        libc::syscall(
            libc::SYS_faccessat2,
            backing.fd.as_raw_fd(),
            c"".as_ptr(),
            identity,
            libc::AT_EMPTY_PATH | libc::AT_EACCESS,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Opens a name if the dentry cache can resolve it without I/O.
fn open_cached(directory: &Backing, name: &OsString) -> Result<OwnedFd, Errno> {
    if matches!(name.as_bytes(), b"." | b"..") {
        return Err(Errno::NOENT);
    }
    openat2(directory, name.as_os_str(), IDENTIFY, Mode::empty(), ResolveFlags::CACHED)
}
