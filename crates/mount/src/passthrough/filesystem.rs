//! The `fuser::Filesystem` implementation. Each operation delegates to the module that implements
//! it.

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

use super::copy::CopyRequest;
use super::data::WriteRequest;
use super::ioctl::IoctlRequest;
use super::namespace::{NewEntry, SetAttributes};
use super::{FsState, Passthrough, WriteBack, caller_of};
use crate::gate::{Gate, REQUEST_BYTES_MAX};

/// Maximum number of background requests (read-ahead, write-back) in flight. The elevator sees only
/// requests in flight, and requests queued behind an idle-class process must not block others.
const BACKGROUND_REQUESTS_MAX: u16 = 4096;

impl<G: Gate> FsState<G> {
    pub(super) fn forget(&self, number: u64, times: u64) {
        if let Some(removed) = self.nodes.forget(number, times) {
            self.close_removed(removed);
        }
    }

    /// Negotiates the features of the FUSE connection, as far as the kernel supports them.
    fn configure(&self, kernel: &mut KernelConfig) {
        let mut wanted = vec![
            // Lookups and listings of one directory run in parallel, and so do the parts of a
            // direct read or write.
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_ASYNC_DIO,
            // Open truncates in the same request.
            InitFlags::FUSE_ATOMIC_O_TRUNC,
            // A default ACL takes precedence over the mask: the file system below decides.
            InitFlags::FUSE_DONT_MASK,
            InitFlags::FUSE_POSIX_ACL,
            // Listings include attributes when the process uses them.
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            // The target of a symbolic link never changes.
            InitFlags::FUSE_CACHE_SYMLINKS,
            // Writes use the identity of the writer, which clears set-user-ID bits and file
            // capabilities; otherwise the kernel queries the capabilities attribute before each
            // write.
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
            InitFlags::FUSE_HAS_IOCTL_DIR,
            // Shared read-only mappings of files that bypass the page cache.
            InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
        ];
        // Not requested: locks (the kernel then keeps them per mount; fuser does not forward the
        // interrupt of a waiting one), NFS export (which requests inodes that the kernel has
        // forgotten), splicing (the gate needs the data in memory).
        match self.options.write_back {
            WriteBack::Kernel => wanted.push(InitFlags::FUSE_WRITEBACK_CACHE),
            WriteBack::Ours if self.options.bypass.is_some() => {
                let is_supported = kernel.set_max_stack_depth(1).is_ok()
                    && kernel.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok();
                self.supports_bypass.store(is_supported, Ordering::Relaxed);
            }
            WriteBack::Ours => {}
        }
        for flags in wanted {
            if let Err(unknown) = kernel.add_capabilities(flags) {
                tracing::debug!("the kernel's FUSE does not support {unknown:?}");
            }
        }
        // On an error the call returns the largest possible value.
        if let Err(max) = kernel.set_max_write(REQUEST_BYTES_MAX as u32) {
            let _ = kernel.set_max_write(max);
        }
        if let Err(max) = kernel.set_max_readahead(REQUEST_BYTES_MAX as u32) {
            let _ = kernel.set_max_readahead(max);
        }
        let _ = kernel.set_max_background(BACKGROUND_REQUESTS_MAX);
        let _ = kernel.set_congestion_threshold(BACKGROUND_REQUESTS_MAX);
    }
}

impl<G: Gate> Filesystem for Passthrough<G> {
    fn init(&mut self, _: &Request, kernel: &mut KernelConfig) -> io::Result<()> {
        self.0.configure(kernel);
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.0.lookup(caller_of(request), parent.0, name.into(), reply);
    }

    fn forget(&self, _: &Request, inode: INodeNo, times: u64) {
        self.0.forget(inode.0, times);
    }

    fn getattr(&self, request: &Request, inode: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        self.0.getattr(caller_of(request), inode.0, handle.map(|handle| handle.0), reply);
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
        let wanted = SetAttributes { mode, uid, gid, size, accessed, modified };
        self.0.setattr(caller_of(request), inode.0, handle.map(|handle| handle.0), wanted, reply);
    }

    fn readlink(&self, request: &Request, inode: INodeNo, reply: ReplyData) {
        self.0.readlink(caller_of(request), inode.0, reply);
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
        self.0.make_node(caller_of(request), parent.0, name.into(), NewEntry::Node { mode, umask, device }, reply);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        self.0.make_node(caller_of(request), parent.0, name.into(), NewEntry::Directory { mode, umask }, reply);
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.0.remove(caller_of(request), parent.0, name.into(), AtFlags::empty(), reply);
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.0.remove(caller_of(request), parent.0, name.into(), AtFlags::REMOVEDIR, reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.as_os_str().to_owned();
        self.0.make_node(caller_of(request), parent.0, name.into(), NewEntry::Link { target }, reply);
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
        self.0.rename(caller_of(request), from, to, flags, reply);
    }

    fn link(&self, request: &Request, inode: INodeNo, new_parent: INodeNo, new_name: &OsStr, reply: ReplyEntry) {
        self.0.link(caller_of(request), inode.0, new_parent.0, new_name.into(), reply);
    }

    fn open(&self, request: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.0.open(caller_of(request), inode.0, flags.0, reply);
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
        self.0.read(caller_of(request), handle.0, offset, size, reply);
    }

    fn write(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let write = WriteRequest { handle: handle.0, offset, data, write_flags, flags: flags.0 };
        self.0.write(caller_of(request), write, reply);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // No data are buffered here that a close would have to write.
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
        self.0.sync(caller_of(request), handle.0, only_data, reply);
    }

    fn opendir(&self, request: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.0.open_directory(caller_of(request), inode.0, reply);
    }

    fn readdir(&self, request: &Request, _: INodeNo, handle: FileHandle, offset: u64, reply: ReplyDirectory) {
        self.0.list_entries(caller_of(request), handle.0, offset, reply);
    }

    fn readdirplus(&self, request: &Request, _: INodeNo, handle: FileHandle, offset: u64, reply: ReplyDirectoryPlus) {
        self.0.list_with_attributes(caller_of(request), handle.0, offset, reply);
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.0.close_directory(handle.0);
        reply.ok();
    }

    fn fsyncdir(&self, request: &Request, _: INodeNo, handle: FileHandle, only_data: bool, reply: ReplyEmpty) {
        self.0.sync_directory(caller_of(request), handle.0, only_data, reply);
    }

    fn statfs(&self, request: &Request, inode: INodeNo, reply: ReplyStatfs) {
        self.0.statfs(caller_of(request), inode.0, reply);
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
        self.0.set_attribute(caller_of(request), inode.0, (name.into(), value.to_vec()), flags, reply);
    }

    fn getxattr(&self, request: &Request, inode: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        self.0.get_attribute(caller_of(request), inode.0, name.into(), size, reply);
    }

    fn listxattr(&self, request: &Request, inode: INodeNo, size: u32, reply: ReplyXattr) {
        self.0.list_attributes(caller_of(request), inode.0, size, reply);
    }

    fn removexattr(&self, request: &Request, inode: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.0.remove_attribute(caller_of(request), inode.0, name.into(), reply);
    }

    fn access(&self, request: &Request, inode: INodeNo, identity: AccessFlags, reply: ReplyEmpty) {
        self.0.access(caller_of(request), inode.0, identity, reply);
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
        self.0.create(caller_of(request), parent.0, name.into(), (mode, umask), flags, reply);
    }

    fn ioctl(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        flags: IoctlFlags,
        command: u32,
        input: &[u8],
        size: u32,
        reply: ReplyIoctl,
    ) {
        let arguments = IoctlRequest { handle: handle.0, command, input: input.to_vec(), output_size: size as usize };
        self.0.ioctl(caller_of(request), flags.contains(IoctlFlags::FUSE_IOCTL_DIR), arguments, reply);
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
        self.0.allocate(caller_of(request), handle.0, (offset, length), mode, reply);
    }

    fn lseek(&self, request: &Request, _: INodeNo, handle: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        self.0.seek(caller_of(request), handle.0, offset, whence, reply);
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
        let copy = CopyRequest { from: (from.0, from_offset), to: (to.0, to_offset), length };
        self.0.copy(caller_of(request), copy, reply);
    }
}
