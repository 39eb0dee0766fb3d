//! The file systems below one mount: that of the source and those mounted inside it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxFlags, makedev, openat, statx};

use super::descriptors::Descriptors;
use super::handle::Handle;
use super::numbers::{FIRST_ASSIGNED, Place};
use crate::backing::Backing;

/// Shift of the mount index in presented inode numbers. Inodes of the source itself (index 0) keep
/// their numbers.
const MOUNT_SHIFT: u32 = 48;

/// A file system as seen through one mount point below the source.
#[derive(Debug)]
pub(super) struct FsMount {
    /// Index of the mount; 0 for the mount that holds the source.
    pub(super) index: u32,
    mount: u64,
    device: u64,
    /// An open directory of the mount for `open_by_handle_at`, if the file system supports handles.
    by_handle: Option<OwnedFd>,
    /// A file of this mount, used for files without a descriptor.
    pub(super) backing: Arc<Backing>,
}

/// The identity of a file: mount ID, device, inode number and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    pub(super) mount: u64,
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) is_directory: bool,
}

impl FileId {
    /// Extracts the identity from the result of [`stat_fd`].
    pub(super) fn of(stat: &Statx) -> FileId {
        FileId {
            mount: stat.stx_mnt_id,
            device: makedev(stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            is_directory: FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory,
        }
    }
}

/// Returns the attributes and the mount ID of an open file.
pub(super) fn stat_fd(fd: impl AsFd) -> rustix::io::Result<Statx> {
    statx(fd, c"", AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)
}

impl FsMount {
    /// Returns the place of an inode of this mount, with the number to present for it unless
    /// another file has it.
    pub(super) fn place_of(&self, inode: u64) -> Place {
        let capacity = 1u64 << MOUNT_SHIFT;
        let own = match self.index {
            // FUSE reserves 1 for the root and 0 for "no inode".
            0 => (inode > 1 && inode < FIRST_ASSIGNED).then_some(inode),
            index => (inode > 0 && inode < capacity && u64::from(index) < 1 << 14)
                .then_some(inode | u64::from(index) << MOUNT_SHIFT),
        };
        Place { mount: self.index, inode, own }
    }

    /// Returns the file handle of an open file, if this mount supports handles.
    pub(super) fn handle_of(&self, fd: impl AsFd) -> Option<Handle> {
        self.by_handle.as_ref()?;
        Handle::of(fd).ok()
    }

    /// Opens an inode of this mount by its handle.
    pub(super) fn open(&self, handle: &Handle, flags: OFlags) -> io::Result<OwnedFd> {
        let Some(mount) = &self.by_handle else { return Err(rustix::io::Errno::STALE.into()) };
        handle.open(mount, flags)
    }

    /// Returns true if a file belongs to this mount.
    fn contains(&self, file_id: &FileId) -> bool {
        self.device == file_id.device && (self.mount == file_id.mount || !file_id.is_directory)
    }

    /// Returns `st_dev` of the files.
    pub(super) fn device(&self) -> u64 {
        self.device
    }
}

/// Drops mounts that only this list still references. The caller's lock excludes new references;
/// the source's mount stays.
fn drop_unused(mounts: &mut Vec<Arc<FsMount>>) {
    mounts.retain(|fs_mount| fs_mount.index == 0 || Arc::strong_count(fs_mount) > 1);
}

/// The mounts found so far. The list is short and is searched linearly.
#[derive(Debug)]
pub(super) struct FsMounts {
    mounts: RwLock<Vec<Arc<FsMount>>>,
    descriptors: Arc<Descriptors>,
    handles: bool,
}

impl FsMounts {
    /// Creates an empty list. `handles` allows the use of file handles.
    pub(super) fn new(descriptors: Arc<Descriptors>, handles: bool) -> FsMounts {
        FsMounts { mounts: RwLock::new(Vec::new()), descriptors, handles }
    }

    /// Returns the mount of a file found in a directory of `near`.
    ///
    /// For directories each bind mount counts separately, because the mounts below it differ. A
    /// file is the same file through all of them, since hard links and the kernel's page cache of
    /// the file are shared.
    pub(super) fn mount_of(
        &self,
        file_id: &FileId,
        fd: impl AsFd,
        near: Option<&Arc<FsMount>>,
    ) -> io::Result<Arc<FsMount>> {
        let matches = |fs_mount: &FsMount| fs_mount.contains(file_id);
        if let Some(near) = near.filter(|near| near.mount == file_id.mount && matches(near)) {
            return Ok(near.clone());
        }
        let mounts = self.mounts.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(fs_mount) = mounts.iter().find(|fs_mount| matches(fs_mount)) {
            return Ok(fs_mount.clone());
        }
        drop(mounts);
        // No lock is held while a file system that may not respond is queried.
        let mut fs_mount = self.add(file_id, fd)?;
        let mut mounts = self.mounts.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(fs_mount) = mounts.iter().find(|fs_mount| matches(fs_mount)) {
            return Ok(fs_mount.clone());
        }
        drop_unused(&mut mounts);
        let is_free = |index: &u32| mounts.iter().all(|fs_mount| fs_mount.index != *index);
        fs_mount.index = (0..).find(is_free).unwrap_or_default();
        let fs_mount = Arc::new(fs_mount);
        mounts.push(fs_mount.clone());
        Ok(fs_mount)
    }

    /// Returns true if the mount of a file found in `near` is known, so that its file system need
    /// not be queried.
    pub(super) fn is_known(&self, file_id: &FileId, near: &FsMount) -> bool {
        near.contains(file_id) && near.mount == file_id.mount
            || self
                .mounts
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .iter()
                .any(|fs_mount| fs_mount.contains(file_id))
    }

    /// Drops the mount of a node that is no longer used if no other node uses it, so that the file
    /// system can be unmounted.
    pub(super) fn release_unused(&self, fs_mount: Arc<FsMount>) {
        if fs_mount.index == 0 {
            return;
        }
        // Of several threads that release the last nodes at once, the last one finds it unused.
        drop(fs_mount);
        self.release_all_unused();
    }

    /// Drops the mounts that no node uses. Called at intervals, too: a thread that has answered the
    /// last request of a node may hold it when the node is forgotten.
    pub(super) fn release_all_unused(&self) {
        let is_unused = |fs_mount: &Arc<FsMount>| fs_mount.index != 0 && Arc::strong_count(fs_mount) == 1;
        if self.mounts.read().unwrap_or_else(PoisonError::into_inner).iter().any(is_unused) {
            drop_unused(&mut self.mounts.write().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Creates the entry of a new mount, without an index.
    fn add(&self, file_id: &FileId, fd: impl AsFd) -> io::Result<FsMount> {
        let descriptor = openat(&fd, c".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .or_else(|_| rustix::io::fcntl_dupfd_cloexec(&fd, 3))?;
        let by_handle = if self.handles && file_id.is_directory { self.open_for_handles(&fd) } else { None };
        let backing = Arc::new(Backing::new(descriptor, file_id.device, file_id.inode));
        // The identity is queried now, in the dispatched request of the caller, and cached for
        // others.
        let _ = backing.identity();
        Ok(FsMount { index: 0, mount: file_id.mount, device: file_id.device, by_handle, backing })
    }

    /// Opens a directory for `open_by_handle_at` and tests it, which requires `CAP_DAC_READ_SEARCH`
    /// and an exportable file system.
    fn open_for_handles(&self, fd: impl AsFd) -> Option<OwnedFd> {
        let mount = self.descriptors.reopen(&fd, OFlags::RDONLY | OFlags::DIRECTORY).ok()?;
        let handle = Handle::of(&fd).ok()?;
        handle.open(&mount, OFlags::PATH).ok()?;
        Some(mount)
    }
}
