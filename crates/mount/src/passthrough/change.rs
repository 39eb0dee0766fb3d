//! Changing: attributes, and what is in directories.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use fuser::{RenameFlags, ReplyAttr, ReplyEmpty, ReplyEntry, TimeOrNow};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Timestamps, Uid, chmodat, chownat, ftruncate, linkat, mkdirat,
    renameat_with, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::attributes::{device, timespec};
use super::identity::{Mask, Rights, set_umask};
use super::look::Entry;
use super::nodes::Node;
use super::places::look_at;
use super::{Through, c_string, errno};
use crate::backing::Backing;
use crate::gate::{Asker, Gate, Operation};

/// What `setattr` is to set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) mode: Option<u32>,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) size: Option<u64>,
    pub(super) accessed: Option<TimeOrNow>,
    pub(super) modified: Option<TimeOrNow>,
}

/// What is made under a name.
pub(super) enum Make {
    Node { mode: u32, umask: u32, device: u32 },
    Directory { mode: u32, umask: u32 },
    Link { target: OsString },
}

impl<G: Gate> Through<G> {
    pub(super) fn setattr(
        self: &Arc<Self>,
        asker: Asker,
        number: u64,
        handle: Option<u64>,
        wanted: Wanted,
        reply: ReplyAttr,
    ) {
        let open = handle.and_then(|handle| self.open_files.get(handle).ok()).map(|file| file.backing.clone());
        // The gate is told where data end that it may have to forget.
        let at = (Operation::Change, wanted.size.unwrap_or(0));
        self.on_node(asker, at, number, reply, ReplyAttr::error, move |through, _, known, reply| {
            let changed = through.set(&asker, &known, open.as_deref(), &wanted).and_then(|()| Ok(look_at(&known)?));
            through.reply_attributes(changed, number, reply);
        });
    }

    fn set(&self, asker: &Asker, known: &Arc<Backing>, open: Option<&Backing>, wanted: &Wanted) -> io::Result<()> {
        if let Some(size) = wanted.size {
            self.truncate(asker, known, open, size)?;
        }
        if wanted.uid.is_some() || wanted.gid.is_some() {
            let (user, group) = (wanted.uid.map(Uid::from_raw), wanted.gid.map(Gid::from_raw));
            chownat(known, c"", user, group, AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW)?;
        }
        // After the owner, whose change takes bits from the mode.
        if let Some(mode) = wanted.mode {
            let mode = Mode::from_raw_mode(mode & 0o7777);
            self.nodes.descriptors.with(known, |directory, name| chmodat(directory, name, mode, AtFlags::empty()))?;
        }
        if wanted.accessed.is_some() || wanted.modified.is_some() {
            let times =
                Timestamps { last_access: timespec(wanted.accessed), last_modification: timespec(wanted.modified) };
            self.nodes
                .descriptors
                .with(known, |directory, name| utimensat(directory, name, &times, AtFlags::empty()))?;
        }
        Ok(())
    }

    /// Sets the size in the caller's name: who is not root does not leave a program that it has cut set-user-id.
    pub(super) fn truncate(
        &self,
        asker: &Asker,
        known: &Arc<Backing>,
        open: Option<&Backing>,
        size: u64,
    ) -> io::Result<()> {
        let mask = Mask::of(asker, Rights::NotSetId)?;
        match open {
            Some(open) => ftruncate(open, size)?,
            // By its name, as the caller did it: a size that stays the same leaves the times then.
            None => truncate_path(&self.nodes.descriptors.path(known), size)?,
        }
        drop(mask);
        if size == 0 {
            self.gate.cleaned(known);
        }
        Ok(())
    }

    pub(super) fn make(self: &Arc<Self>, asker: Asker, parent: u64, name: OsString, make: Make, reply: ReplyEntry) {
        self.change(asker, parent, reply, ReplyEntry::error, move |through, node, directory, reply| {
            let made = make_in(&asker, &directory, &name, &make);
            let entry = made.and_then(|()| through.look_up(&directory, &node.place, parent, &name));
            if let Ok(entry) = &entry {
                through.gate.gone(entry.node.place.device(), entry.node.inode);
            }
            through.reply_entry(entry, reply);
        });
    }

    pub(super) fn remove(
        self: &Arc<Self>,
        asker: Asker,
        parent: u64,
        name: OsString,
        flags: AtFlags,
        reply: ReplyEmpty,
    ) {
        self.change(asker, parent, reply, ReplyEmpty::error, move |through, node, directory, reply| {
            let victim = if flags.contains(AtFlags::REMOVEDIR) { None } else { through.victim(&directory, &name) };
            match unlinkat(&directory, name.as_os_str(), flags) {
                Ok(()) => {
                    through.removed(&node, victim);
                    reply.ok();
                }
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    /// A file whose last name this is: what was written to it has not to be written back when the name is gone. Only what was opened here can have been.
    fn victim(&self, directory: &Backing, name: &OsString) -> Option<Stat> {
        if self.files.is_empty() {
            return None;
        }
        let found = statat(directory, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (found.st_nlink == 1 && FileType::from_raw_mode(found.st_mode).is_file()).then_some(found)
    }

    /// The last name of a file is gone. If it is open, it may be read and written as before.
    fn removed(&self, parent: &Node, victim: Option<Stat>) {
        let Some(victim) = victim.filter(|victim| victim.st_dev == parent.place.device()) else { return };
        let number = self.nodes.number_of(&parent.place, victim.st_ino);
        let (known, is_open) = match self.files.get(number) {
            None => (None, false),
            Some(shared) => {
                let mut state = shared.state();
                state.removed = true;
                if state.opened == 0 { (state.known.upgrade(), false) } else { (None, true) }
            }
        };
        if let Some(known) = known {
            self.gate.cleaned(&known);
        }
        if !is_open {
            self.gate.gone(victim.st_dev, victim.st_ino);
        }
    }

    pub(super) fn rename(
        self: &Arc<Self>,
        asker: Asker,
        (parent, name): (u64, OsString),
        (new_parent, new_name): (u64, OsString),
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let new_node = match self.nodes.get(new_parent) {
            Ok(target) => target,
            Err(error) => return reply.error(errno(error)),
        };
        self.change(asker, parent, reply, ReplyEmpty::error, move |through, _, directory, reply| {
            let target = match through.nodes.reach(&new_node) {
                Ok(target) => target,
                Err(error) => return reply.error(errno(error)),
            };
            // Only a plain rename takes a name from another file.
            let victim = if flags.is_empty() { through.victim(&target, &new_name) } else { None };
            // To another name of itself nothing is moved.
            let itself = victim.and_then(|_| statat(&directory, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW).ok());
            let victim = victim.filter(|victim| itself.is_none_or(|itself| itself.st_ino != victim.st_ino));
            let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
            match renameat_with(&directory, name.as_os_str(), &target, new_name.as_os_str(), flags) {
                Ok(()) => {
                    through.removed(&new_node, victim);
                    reply.ok();
                }
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub(super) fn link(
        self: &Arc<Self>,
        asker: Asker,
        number: u64,
        new_parent: u64,
        new_name: OsString,
        reply: ReplyEntry,
    ) {
        let linked = match self.nodes.get(number) {
            Ok(node) => node,
            Err(error) => return reply.error(errno(error)),
        };
        self.change(asker, new_parent, reply, ReplyEntry::error, move |through, node, directory, reply| {
            let known = match through.nodes.reach(&linked) {
                Ok(known) => known,
                Err(error) => return reply.error(errno(error)),
            };
            let linked = match linkat(&known, c"", &directory, new_name.as_os_str(), AtFlags::EMPTY_PATH) {
                // A link by descriptor alone takes a privilege; by its name in /proc it takes none.
                Err(Errno::NOENT | Errno::PERM) => through.nodes.descriptors.with(&known, |own, name| {
                    linkat(own, name, &directory, new_name.as_os_str(), AtFlags::SYMLINK_FOLLOW)
                }),
                linked => linked,
            };
            let entry = linked
                .map_err(io::Error::from)
                .and_then(|()| through.look_up(&directory, &node.place, new_parent, &new_name));
            through.reply_entry(entry, reply);
        });
    }

    /// Changes something in a directory, when its turn has come.
    pub(super) fn change<R: Send + 'static>(
        self: &Arc<Self>,
        asker: Asker,
        parent: u64,
        reply: R,
        fail: impl FnOnce(R, fuser::Errno) + Send + 'static,
        work: impl FnOnce(&Arc<Self>, Arc<Node>, Arc<Backing>, R) + Send + 'static,
    ) {
        self.on_node(asker, (Operation::Change, 0), parent, reply, fail, work);
    }

    /// Takes in a file that was just made and is open.
    pub(super) fn made(
        &self,
        file: &Backing,
        near: &Arc<super::places::Place>,
        parent: u64,
        name: &OsString,
    ) -> io::Result<Entry> {
        self.entry(self.nodes.descriptors.reopen(file, OFlags::PATH)?, near, parent, name)
    }
}

/// Makes it in the caller's name. Permissions were checked, so that the caller's other groups need not be known.
fn make_in(asker: &Asker, directory: &Backing, name: &OsString, make: &Make) -> io::Result<()> {
    let _mask = Mask::of(asker, Rights::All)?;
    match make {
        Make::Node { mode, umask, device: packed } => {
            set_umask(*umask)?;
            mknod(directory, name, *mode, device(*packed))
        }
        Make::Directory { mode, umask } => {
            set_umask(*umask)?;
            Ok(mkdirat(directory, name.as_os_str(), Mode::from_raw_mode(*mode))?)
        }
        Make::Link { target } => Ok(symlinkat(target.as_os_str(), directory, name.as_os_str())?),
    }
}

fn mknod(directory: &Backing, name: &OsString, mode: u32, device: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let name = c_string(name.as_bytes())?;
    // SAFETY: the name is a string that lives through the call, the rest are numbers.
    let result = unsafe { libc::mknodat(directory.fd.as_raw_fd(), name.as_ptr(), mode, device) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn truncate_path(path: &std::ffi::CStr, size: u64) -> io::Result<()> {
    let size = libc::off_t::try_from(size).map_err(|_| Errno::FBIG)?;
    // SAFETY: the path is a string that lives through the call.
    let result = unsafe { libc::truncate(path.as_ptr(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
