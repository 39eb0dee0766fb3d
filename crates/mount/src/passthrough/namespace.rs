//! Requests that change metadata: setattr, mknod, mkdir, symlink, unlink, rmdir, rename, link.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use fuser::{RenameFlags, ReplyAttr, ReplyEmpty, ReplyEntry, TimeOrNow};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Timestamps, Uid, chmodat, chownat, ftruncate, linkat, mkdirat, openat,
    renameat_with, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::attributes::{device, timespec};
use super::fs_mounts::{FileId, stat_fd};
use super::identity::{CallerIdentity, Rights, set_umask};
use super::lookup::{Entry, IDENTIFY};
use super::nodes::{Node, Removals};
use super::{FsState, c_string, errno};
use crate::backing::Backing;
use crate::gate::{Caller, Gate, Operation};

/// The attributes that `setattr` sets; `None` leaves one unchanged.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetAttributes {
    pub(super) mode: Option<u32>,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) size: Option<u64>,
    pub(super) accessed: Option<TimeOrNow>,
    pub(super) modified: Option<TimeOrNow>,
}

/// The kind of directory entry to create.
pub(super) enum NewEntry {
    Node { mode: u32, umask: u32, device: u32 },
    Directory { mode: u32, umask: u32 },
    Link { target: OsString },
}

impl<G: Gate> FsState<G> {
    pub(super) fn setattr(
        self: &Arc<Self>,
        caller: Caller,
        number: u64,
        handle: Option<u64>,
        wanted: SetAttributes,
        reply: ReplyAttr,
    ) {
        let open = handle.and_then(|handle| self.open_files.get(handle).ok()).map(|file| file.backing.clone());
        // The offset gives the new end of the file to the gate.
        let position = (Operation::MetadataWrite, wanted.size.unwrap_or(0));
        self.run_on_node(caller, position, number, reply, ReplyAttr::error, move |fs, node, known, reply| {
            let changed = fs.set(&caller, &known, open.as_deref(), &wanted).and_then(|()| Ok(stat_fd(&known)?));
            fs.reply_attributes(changed, &node, reply);
        });
    }

    fn set(
        &self,
        caller: &Caller,
        known: &Arc<Backing>,
        open: Option<&Backing>,
        wanted: &SetAttributes,
    ) -> io::Result<()> {
        if let Some(size) = wanted.size {
            self.truncate(caller, known, open, size)?;
        }
        if wanted.uid.is_some() || wanted.gid.is_some() {
            let (user, group) = (wanted.uid.map(Uid::from_raw), wanted.gid.map(Gid::from_raw));
            chownat(known, c"", user, group, AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW)?;
        }
        // After the owner, because a change of owner clears mode bits.
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

    /// Sets the file size with the identity of the caller: truncation by a user other than root
    /// clears the set-user-ID bit.
    pub(super) fn truncate(
        &self,
        caller: &Caller,
        known: &Arc<Backing>,
        open: Option<&Backing>,
        size: u64,
    ) -> io::Result<()> {
        let identity = CallerIdentity::assume(caller, Rights::WithoutFsetid)?;
        match open {
            Some(open) => ftruncate(open, size)?,
            // By path, as the caller did: an unchanged size then leaves the timestamps unchanged.
            None => truncate_path(&self.nodes.descriptors.path(known), size)?,
        }
        drop(identity);
        if size == 0 {
            self.gate.discard_dirty(known.device, known.inode);
        }
        Ok(())
    }

    pub(super) fn make_node(
        self: &Arc<Self>,
        caller: Caller,
        parent: u64,
        name: OsString,
        new_entry: NewEntry,
        reply: ReplyEntry,
    ) {
        self.modify_directory(caller, parent, reply, ReplyEntry::error, move |fs, node, directory, reply| {
            let created = create_entry(&caller, &directory, &name, &new_entry);
            let entry = created.and_then(|()| fs.lookup_name(&directory, &node.fs_mount, parent, &name));
            if let Ok(entry) = &entry {
                fs.gate.forget_inode(entry.node.fs_mount.device(), entry.node.inode);
            }
            fs.reply_entry(entry, reply);
        });
    }

    pub(super) fn remove(
        self: &Arc<Self>,
        caller: Caller,
        parent: u64,
        name: OsString,
        flags: AtFlags,
        reply: ReplyEmpty,
    ) {
        self.modify_directory(caller, parent, reply, ReplyEmpty::error, move |fs, node, directory, reply| {
            let victim = open_entry(&directory, &name);
            match unlinkat(&directory, name.as_os_str(), flags) {
                Ok(()) => {
                    fs.note_removed(&node, victim, caller);
                    reply.ok();
                }
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    /// Records that a name of an inode was removed. After its last name the inode is held while the
    /// kernel knows it. Dirty data of a file are then obsolete unless it is open.
    fn note_removed(&self, parent: &Node, victim: Option<OwnedFd>, remover: Caller) {
        let Some((victim, found)) = victim.and_then(|victim| stat_fd(&victim).ok().map(|found| (victim, found))) else {
            return;
        };
        let file_id = FileId::of(&found);
        // A directory has one name.
        let is_last = found.stx_nlink == 0 || file_id.is_directory;
        let node = self.nodes.note_removal(&parent.fs_mount, victim, &file_id, is_last, remover);
        if !is_last || !FileType::from_raw_mode(found.stx_mode.into()).is_file() {
            return;
        }
        // Only a file opened through this mount can have dirty data, also after the kernel has
        // forgotten its inode.
        let is_open = node.filter(|node| node.has_state()).is_some_and(|node| {
            let mut state = node.shared().state();
            state.is_unlinked = true;
            state.opened > 0
        });
        if !is_open {
            self.gate.discard_dirty(file_id.device, file_id.inode);
            self.gate.forget_inode(file_id.device, file_id.inode);
        }
    }

    pub(super) fn rename(
        self: &Arc<Self>,
        caller: Caller,
        (parent, name): (u64, OsString),
        (new_parent, new_name): (u64, OsString),
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let new_node = match self.nodes.get(new_parent) {
            Ok(target) => target,
            Err(error) => return reply.error(errno(error)),
        };
        self.modify_directory(caller, parent, reply, ReplyEmpty::error, move |fs, _, directory, reply| {
            let target = match fs.nodes.open_path(&new_node) {
                Ok(target) => target,
                Err(error) => return reply.error(errno(error)),
            };
            let is_exchange = flags.contains(RenameFlags::RENAME_EXCHANGE);
            let victim = if is_exchange { None } else { open_entry(&target, &new_name) };
            let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
            match renameat_with(&directory, name.as_os_str(), &target, new_name.as_os_str(), flags) {
                Ok(()) => {
                    fs.note_removed(&new_node, victim, caller);
                    reply.ok();
                }
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub(super) fn link(
        self: &Arc<Self>,
        caller: Caller,
        number: u64,
        new_parent: u64,
        new_name: OsString,
        reply: ReplyEntry,
    ) {
        let linked = match self.nodes.get(number) {
            Ok(node) => node,
            Err(error) => return reply.error(errno(error)),
        };
        self.modify_directory(caller, new_parent, reply, ReplyEntry::error, move |fs, node, directory, reply| {
            let known = match fs.nodes.open_path(&linked) {
                Ok(known) => known,
                Err(error) => return reply.error(errno(error)),
            };
            let linked = match linkat(&known, c"", &directory, new_name.as_os_str(), AtFlags::EMPTY_PATH) {
                // linkat by descriptor requires CAP_DAC_READ_SEARCH; linkat of the /proc path
                // requires none.
                Err(Errno::NOENT | Errno::PERM) => fs.nodes.descriptors.with(&known, |own, name| {
                    linkat(own, name, &directory, new_name.as_os_str(), AtFlags::SYMLINK_FOLLOW)
                }),
                linked => linked,
            };
            let entry = linked
                .map_err(io::Error::from)
                .and_then(|()| fs.lookup_name(&directory, &node.fs_mount, new_parent, &new_name));
            fs.reply_entry(entry, reply);
        });
    }

    /// Runs a metadata change in a directory when the gate dispatches it.
    pub(super) fn modify_directory<R: Send + 'static>(
        self: &Arc<Self>,
        caller: Caller,
        parent: u64,
        reply: R,
        fail: impl FnOnce(R, fuser::Errno) + Send + 'static,
        work: impl FnOnce(&Arc<Self>, Arc<Node>, Arc<Backing>, R) + Send + 'static,
    ) {
        self.run_on_node(caller, (Operation::MetadataWrite, 0), parent, reply, fail, work);
    }

    /// Creates the entry of a file that was just created and is open.
    pub(super) fn entry_of_created(
        &self,
        (file, before): (&OwnedFd, Removals),
        near: &Arc<super::fs_mounts::FsMount>,
        parent: u64,
        name: &OsString,
    ) -> io::Result<Entry> {
        self.entry((self.nodes.descriptors.reopen(file, OFlags::PATH)?, before), near, parent, name)
    }
}

/// Creates a directory entry with the identity of the caller. The kernel has checked permissions,
/// so supplementary groups do not matter.
fn create_entry(caller: &Caller, directory: &Backing, name: &OsString, new_entry: &NewEntry) -> io::Result<()> {
    let _identity = CallerIdentity::assume(caller, Rights::All)?;
    match new_entry {
        NewEntry::Node { mode, umask, device: packed } => {
            set_umask(*umask)?;
            mknod(directory, name, *mode, device(*packed))
        }
        NewEntry::Directory { mode, umask } => {
            set_umask(*umask)?;
            Ok(mkdirat(directory, name.as_os_str(), Mode::from_raw_mode(*mode))?)
        }
        NewEntry::Link { target } => Ok(symlinkat(target.as_os_str(), directory, name.as_os_str())?),
    }
}

/// Opens an inode by a name that is about to be removed.
fn open_entry(directory: &Backing, name: &OsString) -> Option<OwnedFd> {
    openat(directory, name.as_os_str(), IDENTIFY, Mode::empty()).ok()
}

fn mknod(directory: &Backing, name: &OsString, mode: u32, device: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let name = c_string(name.as_bytes())?;
    // SAFETY: the name is a C string that outlives the call; the other arguments are integers.
    let result = unsafe { libc::mknodat(directory.fd.as_raw_fd(), name.as_ptr(), mode, device) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn truncate_path(path: &std::ffi::CStr, size: u64) -> io::Result<()> {
    let size = libc::off_t::try_from(size).map_err(|_| Errno::FBIG)?;
    // SAFETY: the path is a C string that outlives the call.
    let result = unsafe { libc::truncate(path.as_ptr(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
