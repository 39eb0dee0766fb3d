//! The operations by the names that the crate has for them, each one line to where it is done.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, FileHandle, Filesystem, INodeNo, InitFlags, IoctlFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
    Request, TimeOrNow, WriteFlags,
};
use rustix::fs::AtFlags;

use super::change::{Make, Wanted};
use super::copy::Copy;
use super::data::Write;
use super::ioctl::Control;
use super::{Passthrough, Through, WriteBack, asker_of};
use crate::gate::Gate;

/// The most that is read or written at once, in bytes: what the kernel's queue takes by default.
const REQUEST_BYTES: u32 = 1 << 20;

/// How many requests that nobody waits for at once - read-ahead, write-back - the kernel may have given us. An elevator sees only what it was given, and
/// those that wait behind an idle process must not keep others' out.
const BACKGROUND: u16 = 4096;

impl<G: Gate> Through<G> {
    pub(super) fn forget(&self, number: u64, times: u64) {
        if self.nodes.forget(number, times) {
            self.files.forget(number);
        }
    }

    /// What is asked of the kernel, as far as it can do it.
    fn configure(&self, kernel: &mut KernelConfig) {
        let mut wanted = vec![
            // Look-ups and listings of one directory go on side by side, and so do direct reads and writes of one call.
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_ASYNC_DIO,
            // A file is cut as it is opened, in one request.
            InitFlags::FUSE_ATOMIC_O_TRUNC,
            // Where a directory has a default ACL it counts and the mask does not: the file system below decides.
            InitFlags::FUSE_DONT_MASK,
            InitFlags::FUSE_POSIX_ACL,
            // Listings bring attributes with them where somebody looks at these.
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            // What links lead to does not change.
            InitFlags::FUSE_CACHE_SYMLINKS,
            // Writes are done in the writer's name, by which set-user-id bits and capabilities of files are lost as they have to be; otherwise the
            // kernel asks for a file's capabilities at every write.
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
            InitFlags::FUSE_HAS_IOCTL_DIR,
            // Read-only mappings of a file that is read past the cache.
            InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
        ];
        // Not asked for: locks, which the kernel then keeps for the mount (one that waits has to be interrupted, of which the crate does not tell); export by NFS,
        // which would ask for inodes that the kernel has forgotten; splicing, since what is read has to be in our memory for the gate anyway.
        match self.options.write_back {
            WriteBack::Kernel => wanted.push(InitFlags::FUSE_WRITEBACK_CACHE),
            WriteBack::Ours if self.options.bypass.is_some() => {
                let can = kernel.set_max_stack_depth(1).is_ok()
                    && kernel.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok();
                self.can_bypass.store(can, Ordering::Relaxed);
            }
            WriteBack::Ours => {}
        }
        for flags in wanted {
            if let Err(unknown) = kernel.add_capabilities(flags) {
                tracing::debug!("this kernel's FUSE does not know {unknown:?}");
            }
        }
        // Each takes what is possible where more was asked for.
        if let Err(most) = kernel.set_max_write(REQUEST_BYTES) {
            let _ = kernel.set_max_write(most);
        }
        if let Err(most) = kernel.set_max_readahead(REQUEST_BYTES) {
            let _ = kernel.set_max_readahead(most);
        }
        let _ = kernel.set_max_background(BACKGROUND);
        let _ = kernel.set_congestion_threshold(BACKGROUND);
    }
}

impl<G: Gate> Filesystem for Passthrough<G> {
    fn init(&mut self, _: &Request, kernel: &mut KernelConfig) -> io::Result<()> {
        self.0.configure(kernel);
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.0.lookup(asker_of(request), parent.0, name.into(), reply);
    }

    fn forget(&self, _: &Request, inode: INodeNo, times: u64) {
        self.0.forget(inode.0, times);
    }

    fn getattr(&self, request: &Request, inode: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        self.0.getattr(asker_of(request), inode.0, handle.map(|handle| handle.0), reply);
    }

    fn setattr(
        &self,
        request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let wanted = Wanted { mode, uid, gid, size, accessed, modified };
        self.0.setattr(asker_of(request), inode.0, handle.map(|handle| handle.0), wanted, reply);
    }

    fn readlink(&self, request: &Request, inode: INodeNo, reply: ReplyData) {
        self.0.readlink(asker_of(request), inode.0, reply);
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        self.0.make(asker_of(request), parent.0, name.into(), Make::Node { mode, umask, device }, reply);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        self.0.make(asker_of(request), parent.0, name.into(), Make::Directory { mode, umask }, reply);
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.0.remove(asker_of(request), parent.0, name.into(), AtFlags::empty(), reply);
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.0.remove(asker_of(request), parent.0, name.into(), AtFlags::REMOVEDIR, reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.as_os_str().to_owned();
        self.0.make(asker_of(request), parent.0, name.into(), Make::Link { target }, reply);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to): ((u64, OsString), (u64, OsString)) = ((parent.0, name.into()), (new_parent.0, new_name.into()));
        self.0.rename(asker_of(request), from, to, flags, reply);
    }

    fn link(&self, request: &Request, inode: INodeNo, new_parent: INodeNo, new_name: &OsStr, reply: ReplyEntry) {
        self.0.link(asker_of(request), inode.0, new_parent.0, new_name.into(), reply);
    }

    fn open(&self, request: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.0.open(asker_of(request), inode.0, flags.0, reply);
    }

    fn read(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.0.read(asker_of(request), handle.0, offset, size, reply);
    }

    fn write(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        how: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let write = Write { handle: handle.0, offset, data, how, flags: flags.0 };
        self.0.write(asker_of(request), write, reply);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Nothing is held back here that closing would have to write.
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.0.release(handle.0);
        reply.ok();
    }

    fn fsync(&self, request: &Request, _: INodeNo, handle: FileHandle, only_data: bool, reply: ReplyEmpty) {
        self.0.sync(asker_of(request), handle.0, only_data, reply);
    }

    fn opendir(&self, request: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.0.open_directory(asker_of(request), inode.0, reply);
    }

    fn readdir(&self, request: &Request, _: INodeNo, handle: FileHandle, offset: u64, reply: ReplyDirectory) {
        self.0.list(asker_of(request), handle.0, offset, reply);
    }

    fn readdirplus(&self, request: &Request, _: INodeNo, handle: FileHandle, offset: u64, reply: ReplyDirectoryPlus) {
        self.0.list_with_attributes(asker_of(request), handle.0, offset, reply);
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.0.close_directory(handle.0);
        reply.ok();
    }

    fn fsyncdir(&self, request: &Request, _: INodeNo, handle: FileHandle, only_data: bool, reply: ReplyEmpty) {
        self.0.sync_directory(asker_of(request), handle.0, only_data, reply);
    }

    fn statfs(&self, request: &Request, inode: INodeNo, reply: ReplyStatfs) {
        self.0.statfs(asker_of(request), inode.0, reply);
    }

    fn setxattr(
        &self,
        request: &Request,
        inode: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        self.0.set_attribute(asker_of(request), inode.0, (name.into(), value.to_vec()), flags, reply);
    }

    fn getxattr(&self, request: &Request, inode: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        self.0.get_attribute(asker_of(request), inode.0, name.into(), size, reply);
    }

    fn listxattr(&self, request: &Request, inode: INodeNo, size: u32, reply: ReplyXattr) {
        self.0.list_attributes(asker_of(request), inode.0, size, reply);
    }

    fn removexattr(&self, request: &Request, inode: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.0.remove_attribute(asker_of(request), inode.0, name.into(), reply);
    }

    fn access(&self, request: &Request, inode: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        self.0.access(asker_of(request), inode.0, mask, reply);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        self.0.create(asker_of(request), parent.0, name.into(), (mode, umask), flags, reply);
    }

    fn ioctl(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        flags: IoctlFlags,
        command: u32,
        input: &[u8],
        room: u32,
        reply: ReplyIoctl,
    ) {
        let control = Control { handle: handle.0, command, input: input.to_vec(), room: room as usize };
        self.0.control(asker_of(request), flags.contains(IoctlFlags::FUSE_IOCTL_DIR), control, reply);
    }

    fn fallocate(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.0.allocate(asker_of(request), handle.0, (offset, length), mode, reply);
    }

    fn lseek(&self, request: &Request, _: INodeNo, handle: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        self.0.seek(asker_of(request), handle.0, offset, whence, reply);
    }

    fn copy_file_range(
        &self,
        request: &Request,
        _: INodeNo,
        from: FileHandle,
        from_offset: u64,
        _: INodeNo,
        to: FileHandle,
        to_offset: u64,
        length: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let copy = Copy { from: (from.0, from_offset), to: (to.0, to_offset), length };
        self.0.copy(asker_of(request), copy, reply);
    }
}
