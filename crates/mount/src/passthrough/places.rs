//! The file systems seen through one mount: that of the source, and those mounted below it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxFlags, makedev, openat, statx};

use super::descriptors::Descriptors;
use super::handle::Handle;
use crate::backing::Backing;

/// Numbers of the source's own files are presented as they are; those of place k have k above bit 48.
const PLACE_SHIFT: u32 = 48;

/// A file system as it is seen through one mount of it.
#[derive(Debug)]
pub(super) struct Place {
    /// 0 is the source's.
    pub(super) index: u32,
    mount: u64,
    device: u64,
    /// Its first directory that was met, open, if inodes can be reached by handles.
    by_handle: Option<OwnedFd>,
    /// Stands for it where a file has no descriptor.
    pub(super) backing: Arc<Backing>,
}

/// Where a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) mount: u64,
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) is_directory: bool,
}

impl Spot {
    /// As [`look_at`] found it.
    pub(super) fn of(found: &Statx) -> Spot {
        Spot {
            mount: found.stx_mnt_id,
            device: makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            is_directory: FileType::from_raw_mode(found.stx_mode.into()) == FileType::Directory,
        }
    }
}

/// All that is to be known of what `fd` is: its attributes, and the mount that it was reached through.
pub(super) fn look_at(fd: impl AsFd) -> rustix::io::Result<Statx> {
    statx(fd, c"", AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)
}

impl Place {
    /// The number under which a file of this place is presented, if no other file has taken it.
    pub(super) fn number_of(&self, inode: u64) -> Option<u64> {
        let room = 1u64 << PLACE_SHIFT;
        match self.index {
            // 1 is the root of every FUSE mount, 0 means nothing.
            0 => (inode > 1).then_some(inode),
            index => (inode > 0 && inode < room && u64::from(index) < 1 << 14)
                .then_some(inode | u64::from(index) << PLACE_SHIFT),
        }
    }

    /// Names the inode by a handle, where this works here.
    pub(super) fn handle_of(&self, fd: impl AsFd) -> Option<Handle> {
        self.by_handle.as_ref()?;
        Handle::of(fd).ok()
    }

    /// Opens an inode of this place by its handle.
    pub(super) fn open(&self, handle: &Handle, flags: OFlags) -> io::Result<OwnedFd> {
        let Some(mount) = &self.by_handle else { return Err(rustix::io::Errno::STALE.into()) };
        handle.open(mount, flags)
    }

    /// Whether a file lies here.
    fn has(&self, spot: &Spot) -> bool {
        self.device == spot.device && (self.mount == spot.mount || !spot.is_directory)
    }

    /// `st_dev` of its files.
    pub(super) fn device(&self) -> u64 {
        self.device
    }
}

/// Gives up places that nobody knows but this list, which nobody else can read meanwhile. The source's own stays.
fn keep_used(met: &mut Vec<Arc<Place>>) {
    met.retain(|place| place.index == 0 || Arc::strong_count(place) > 1);
}

/// All places that were met. There are few: they are looked through.
#[derive(Debug)]
pub(super) struct Places {
    met: RwLock<Vec<Arc<Place>>>,
    descriptors: Arc<Descriptors>,
    handles: bool,
}

impl Places {
    /// Begins with nothing. With `handles` inodes are reached by handles wherever that works.
    pub(super) fn new(descriptors: Arc<Descriptors>, handles: bool) -> Places {
        Places { met: RwLock::new(Vec::new()), descriptors, handles }
    }

    /// The place of a file that was found in `near`, most often the same.
    ///
    /// A bind mount is a place of its own for directories, since what is mounted below it differs; a file is the same file in all of them, for
    /// the sake of its hard links and of what the kernel caches of it.
    pub(super) fn of(&self, spot: &Spot, fd: impl AsFd, near: Option<&Arc<Place>>) -> io::Result<Arc<Place>> {
        let here = |place: &Place| place.has(spot);
        if let Some(near) = near.filter(|near| near.mount == spot.mount && here(near)) {
            return Ok(near.clone());
        }
        let met = self.met.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = met.iter().find(|place| here(place)) {
            return Ok(place.clone());
        }
        drop(met);
        // Others need not wait for a file system that does not answer.
        let mut place = self.meet(spot, fd)?;
        let mut met = self.met.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = met.iter().find(|place| here(place)) {
            return Ok(place.clone());
        }
        keep_used(&mut met);
        let is_free = |index: &u32| met.iter().all(|place| place.index != *index);
        place.index = (0..).find(is_free).unwrap_or_default();
        let place = Arc::new(place);
        met.push(place.clone());
        Ok(place)
    }

    /// Whether the place of a file that was found in `near` was met already, so that nothing has to be asked of its file system.
    pub(super) fn knows(&self, spot: &Spot, near: &Place) -> bool {
        near.has(spot) && near.mount == spot.mount
            || self.met.read().unwrap_or_else(PoisonError::into_inner).iter().any(|place| place.has(spot))
    }

    /// Something of a place was forgotten. One of which nothing is known any more is given up, so that what is mounted there can be unmounted again.
    pub(super) fn forgot_of(&self, place: Arc<Place>) {
        // It is known here, and to the caller.
        if place.index == 0 || Arc::strong_count(&place) > 2 {
            return;
        }
        drop(place);
        keep_used(&mut self.met.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// One that was not met before; it has no index yet.
    fn meet(&self, spot: &Spot, fd: impl AsFd) -> io::Result<Place> {
        let known = openat(&fd, c".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .or_else(|_| rustix::io::fcntl_dupfd_cloexec(&fd, 3))?;
        let by_handle = if self.handles && spot.is_directory { self.try_handles(&fd) } else { None };
        let backing = Arc::new(Backing::new(known, spot.device, spot.inode));
        // It is asked now, in the turn of who came here, so that nobody has to ask it without one.
        let _ = backing.kind();
        Ok(Place { index: 0, mount: spot.mount, device: spot.device, by_handle, backing })
    }

    /// Opens a directory that handles can be opened by, and does it once: it takes a privilege, and a file system that can be exported.
    fn try_handles(&self, fd: impl AsFd) -> Option<OwnedFd> {
        let mount = self.descriptors.reopen(&fd, OFlags::RDONLY | OFlags::DIRECTORY).ok()?;
        let handle = Handle::of(&fd).ok()?;
        handle.open(&mount, OFlags::PATH).ok()?;
        Some(mount)
    }
}
