//! Open, create, release, fsync and fallocate.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

use fuser::{BackingId, FileHandle, FopenFlags, INodeNo, ReplyCreate, ReplyEmpty, ReplyOpen};
use rustix::fs::{
    Advice, FallocateFlags, Mode, OFlags, Statx, fadvise, fallocate, fcntl_getfl, fdatasync, fsync, openat,
};
use rustix::io::Errno;

use super::files::{OpenFile, Removed};
use super::fs_mounts::stat_fd;
use super::identity::{CallerIdentity, Rights, set_umask};
use super::lookup::{Entry, GENERATION};
use super::nodes::Node;
use super::{FsState, WriteBack, errno};
use crate::backing::Backing;
use crate::gate::{Admission, Caller, Gate, GateRequest, Job, Operation, REQUEST_BYTES_MAX};

/// Flags that the kernel implements itself or that apply to each write: a write to a file opened
/// with `O_APPEND` may come from a mapping.
const HANDLED_ABOVE: OFlags = OFlags::CREATE
    .union(OFlags::EXCL)
    .union(OFlags::TRUNC)
    .union(OFlags::APPEND)
    .union(OFlags::SYNC)
    .union(OFlags::DSYNC)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOFOLLOW);

impl<G: Gate> FsState<G> {
    pub(super) fn open(self: &Arc<Self>, caller: Caller, number: u64, flags: i32, reply: ReplyOpen) {
        let node = match self.nodes.get(number) {
            Ok(node) => node,
            Err(error) => return reply.error(errno(error)),
        };
        let flags = OFlags::from_bits_retain(flags as u32);
        let operation = if flags.contains(OFlags::TRUNC) { Operation::MetadataWrite } else { Operation::MetadataRead };
        let target = self.nodes.descriptor(&node).unwrap_or_else(|| self.nodes.placeholder(&node));
        self.run_on(caller, operation, &target, move |fs| {
            let opened = fs.open_below(&caller, &node, flags);
            match opened.and_then(|backing| {
                fs.register_open(&caller, &node, (backing, false), flags, &|fd| reply.open_backing(fd))
            }) {
                Ok((handle, flags, None)) => reply.opened(handle, flags),
                Ok((handle, flags, Some(bypass))) => reply.opened_passthrough(handle, flags, &bypass),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn open_below(&self, caller: &Caller, node: &Node, flags: OFlags) -> io::Result<Arc<Backing>> {
        let open = |below| match self.nodes.open(node, below) {
            // An append-only file can be opened for writing only with this flag.
            Err(error) if error.raw_os_error() == Some(libc::EPERM) && flags.contains(OFlags::APPEND) => {
                self.nodes.open(node, below | OFlags::APPEND)
            }
            opened => opened,
        };
        let backing = match open(self.flags_below(flags)) {
            // Not even the owner may read the file. The kernel's write-back cache cannot be used
            // for it.
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => open(flags - HANDLED_ABOVE)?,
            opened => opened?,
        };
        if flags.contains(OFlags::TRUNC) {
            // Truncation needs write permission only, also for an open that reads.
            let open = (flags & OFlags::RWMODE != OFlags::RDONLY).then_some(&*backing);
            self.truncate(caller, &backing, open, 0)?;
        }
        Ok(backing)
    }

    /// Returns the flags for opening the file below. With the write-back cache the kernel reads the
    /// surroundings of a write through any descriptor that is open for writing.
    fn flags_below(&self, flags: OFlags) -> OFlags {
        let below = flags - HANDLED_ABOVE;
        match self.options.write_back {
            WriteBack::Kernel if below & OFlags::RWMODE == OFlags::WRONLY => (below - OFlags::RWMODE) | OFlags::RDWR,
            _ => below,
        }
    }

    pub(super) fn create(
        self: &Arc<Self>,
        caller: Caller,
        parent: u64,
        name: OsString,
        (mode, umask): (u32, u32),
        flags: i32,
        reply: ReplyCreate,
    ) {
        let flags = OFlags::from_bits_retain(flags as u32);
        self.modify_directory(caller, parent, reply, ReplyCreate::error, move |fs, node, directory, reply| {
            let before = fs.nodes.removals();
            let created = fs.create_below(&caller, &directory, &name, (mode, umask), flags);
            let entry =
                created.and_then(|fd| Ok((fs.entry_of_created((&fd, before), &node.fs_mount, parent, &name)?, fd)));
            let opened = entry.and_then(|(entry, fd)| {
                let backing = Arc::new(entry.node.opened(fd));
                let opened =
                    fs.register_open(&caller, &entry.node, (backing, true), flags, &|fd| reply.open_backing(fd));
                if opened.is_err() {
                    fs.forget(entry.node.number, 1);
                }
                Ok((opened?, entry))
            });
            match opened {
                Ok(((handle, flags, bypass), entry)) => {
                    fs.reply_created(&entry, handle, flags, bypass.as_deref(), reply)
                }
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn create_below(
        &self,
        caller: &Caller,
        directory: &Backing,
        name: &OsString,
        mode: (u32, u32),
        flags: OFlags,
    ) -> io::Result<OwnedFd> {
        let _identity = CallerIdentity::assume(caller, Rights::All)?;
        set_umask(mode.1)?;
        // The kernel found no such name, so it has not checked the permission to open a file that
        // was created meanwhile: `ESTALE` makes it look up the name again.
        let creation = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let below = self.flags_below(flags) | creation;
        let fd = match openat(directory, name.as_os_str(), below, Mode::from_raw_mode(mode.0 & 0o7777)) {
            Err(Errno::EXIST) if !flags.contains(OFlags::EXCL) => return Err(Errno::STALE.into()),
            opened => opened?,
        };
        // As for every opened file: no read-ahead outside the scheduled requests.
        let _ = fadvise(&fd, 0, None, Advice::Random);
        Ok(fd)
    }

    fn reply_created(
        &self,
        entry: &Entry,
        handle: FileHandle,
        flags: FopenFlags,
        bypass: Option<&BackingId>,
        reply: ReplyCreate,
    ) {
        let (valid, attributes) = (&entry.valid(self.options.valid), &entry.attributes);
        match bypass {
            None => reply.created(valid, attributes, GENERATION, handle, flags),
            Some(bypass) => reply.created_passthrough(valid, attributes, GENERATION, handle, flags, bypass),
        }
    }

    /// Registers an opened file and returns its handle and the flags of the reply.
    fn register_open(
        &self,
        caller: &Caller,
        node: &Node,
        (backing, is_new): (Arc<Backing>, bool),
        flags: OFlags,
        register: &dyn Fn(std::os::fd::BorrowedFd<'_>) -> io::Result<BackingId>,
    ) -> io::Result<(FileHandle, FopenFlags, Option<Arc<BackingId>>)> {
        let now = stat_fd(&backing)?;
        let shared = node.shared().clone();
        let writes = flags & OFlags::RWMODE != OFlags::RDONLY;
        let mut state = shared.state();
        if self.nodes.is_renewed(node.number) {
            // The kernel looks up the name again.
            return Err(Errno::STALE.into());
        }
        let bypass = self.bypass(caller, &backing, &mut state, register);
        state.opened += 1;
        state.writers += u32::from(writes);
        state.bypassed += u32::from(bypass.is_some());
        if writes {
            state.writer = Some(*caller);
        }
        if state.descriptor.strong_count() == 0 {
            state.descriptor = Arc::downgrade(&backing);
        }
        let mut open_flags = self.open_flags(&now, &mut state, flags);
        drop(state);
        let status = if writes { fcntl_getfl(&backing).unwrap_or(OFlags::empty()) } else { OFlags::empty() };
        let is_append_only = status.contains(OFlags::APPEND);
        // The kernel's write-back cache reads what surrounds a write, and writes whole pages again.
        let cannot_cache = is_append_only || status & OFlags::RWMODE == OFlags::WRONLY;
        if self.options.write_back == WriteBack::Kernel && cannot_cache {
            open_flags |= FopenFlags::FOPEN_DIRECT_IO;
        }
        let pending_error = self.gate.pending_writeback_error(&backing, is_new).unwrap_or(0);
        let file = Arc::new(OpenFile {
            backing,
            number: node.number,
            shared,
            writes,
            is_append_only,
            direct: flags.contains(OFlags::DIRECT),
            has_written: AtomicBool::new(false),
            pending_error: AtomicI32::new(pending_error),
            bypass: bypass.clone(),
            buffered: OnceLock::new(),
        });
        Ok((FileHandle(self.open_files.insert(file, node.number)), open_flags, bypass))
    }

    /// Returns the flags of the reply to an open. No FLUSH request is needed, since closing writes
    /// nothing. The page cache stays valid if the file was not changed outside the mount.
    fn open_flags(&self, now: &Statx, state: &mut super::files::FileState, flags: OFlags) -> FopenFlags {
        let kept = state.keeps_pages(now);
        let mut open_flags = FopenFlags::FOPEN_NOFLUSH;
        // The kernel's write-back cache may hold writes that the file below has not received.
        if kept || (self.options.write_back == WriteBack::Kernel && !flags.contains(OFlags::DIRECT)) {
            open_flags |= FopenFlags::FOPEN_KEEP_CACHE;
        }
        open_flags
    }

    /// Has the kernel look up a file again whose size it has wrong. In its write-back cache the
    /// kernel ignores the size of an inode that it knows.
    fn renew_inode(&self, number: u64) {
        self.nodes.renew(number);
        if let Some(notifier) = self.notifier.get() {
            // Without a range this drops attributes only, and waits for nothing.
            let _ = notifier.inval_inode(INodeNo(number), -1, 0);
        }
    }

    pub(super) fn release(self: &Arc<Self>, handle: u64) {
        let Some(file) = self.open_files.remove(handle) else { return };
        let mut state = file.shared.state();
        state.opened = state.opened.saturating_sub(1);
        state.writers = state.writers.saturating_sub(u32::from(file.writes));
        state.bypassed -= u32::from(file.bypass.is_some() && state.bypassed > 0);
        let has_written = file.has_written.load(Ordering::Relaxed);
        state.has_written |= has_written;
        let last = state.opened == 0;
        if last && std::mem::take(&mut state.has_lost_writes) {
            self.renew_inode(file.number);
        }
        let must_query = state.has_written || (last && state.is_unlinked);
        let Some(now) = must_query.then(|| stat_fd(&file.backing).ok()).flatten() else { return };
        if has_written {
            // Without the kernel's write-back cache all changes of cached pages went through this
            // process.
            state.remember(&now);
        }
        state.has_written &= !last;
        let is_held = state.removed.is_some();
        drop(state);
        if last && now.stx_nlink == 0 {
            // The file was unlinked while open: its dirty data can no longer be read.
            self.gate.discard_dirty(file.backing.device, file.backing.inode);
            self.gate.forget_inode(file.backing.device, file.backing.inode);
            if !is_held {
                // It was removed outside the mount. The last user may have exited.
                let no_caller = Caller { tid: 0, uid: 0, gid: 0 };
                self.close_unlinked(no_caller, file.backing.clone(), file);
            }
        }
    }

    /// Closes an inode without a name that the kernel has forgotten. The removal of the name was a
    /// scheduled request, so that a close is another one only if it frees many blocks.
    pub(super) fn close_removed(&self, removed: Removed) {
        let is_large = |found: &Statx| found.stx_nlink == 0 && found.stx_blocks * 512 > REQUEST_BYTES_MAX;
        if stat_fd(&removed.held.backing).is_ok_and(|found| is_large(&found)) {
            self.close_unlinked(removed.remover, removed.held.backing.clone(), removed);
        }
    }

    /// Drops the last descriptor of a file without a name as a scheduled request, because the close
    /// frees its blocks. No caller waits for it.
    fn close_unlinked(&self, caller: Caller, backing: Arc<Backing>, last: impl Send + 'static) {
        let request =
            GateRequest { caller, operation: Operation::MetadataWrite, backing: &backing, offset: 0, length: 0 };
        match self.gate.admit(&request) {
            Admission::Now(slot) => {
                drop((last, backing));
                drop(slot);
            }
            Admission::Later(ticket) => self.gate.park(ticket, Job::Call(Box::new(move || drop((last, backing))))),
        }
    }

    pub(super) fn sync(self: &Arc<Self>, caller: Caller, handle: u64, only_data: bool, reply: ReplyEmpty) {
        let file = match self.open_files.get(handle) {
            Ok(file) => file,
            Err(error) => return reply.error(errno(error)),
        };
        self.run_on(caller, Operation::Sync, &file.backing.clone(), move |fs| match fs.sync_below(&file, only_data) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn sync_below(&self, file: &OpenFile, only_data: bool) -> io::Result<()> {
        let syncing = self.gate.begin_sync(&file.backing);
        let synced = if only_data { fdatasync(&file.backing) } else { fsync(&file.backing) };
        match synced {
            Ok(()) => self.gate.finish_sync(syncing),
            Err(_) => drop(syncing),
        }
        // Errors from before the open are reported by the first fsync of the handle, as the kernel
        // does; once, whichever of the two sources reports them.
        let pending_error = file.pending_error.swap(0, Ordering::Relaxed);
        let reported =
            if pending_error == 0 { synced } else { synced.and(Err(Errno::from_raw_os_error(pending_error))) };
        if reported.is_err() {
            self.gate.clear_writeback_error(&file.backing);
        }
        Ok(reported?)
    }

    pub(super) fn allocate(
        self: &Arc<Self>,
        caller: Caller,
        handle: u64,
        (offset, length): (u64, u64),
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let file = match self.open_files.get(handle) {
            Ok(file) => file,
            Err(error) => return reply.error(errno(error)),
        };
        let target = file.backing.clone();
        self.run(
            GateRequest { caller, operation: Operation::MetadataWrite, backing: &target, offset, length },
            move |_| {
                file.note_written();
                let _identity = CallerIdentity::assume_for_write(&caller);
                match fallocate(&file.backing, FallocateFlags::from_bits_retain(mode as u32), offset, length) {
                    Ok(()) => reply.ok(),
                    Err(error) => reply.error(errno(error)),
                }
            },
        );
    }
}
