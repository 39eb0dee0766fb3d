//! A file of the directory below, as all its handles share it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU32;

/// A file or directory below the mount that is open, or known.
#[derive(Debug)]
pub struct Backing {
    /// It, opened for what it is used for (`O_PATH` where it is only known).
    pub fd: OwnedFd,
    /// The file system that it lies on, as `st_dev` has it.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// What a gate has noted of its file system: a number of the gate's own, 0 for nothing yet.
    pub(crate) noted: AtomicU32,
}

impl Backing {
    /// A file of which nothing is known yet but what it is.
    pub fn new(fd: OwnedFd, device: u64, inode: u64) -> Backing {
        Backing { fd, device, inode, noted: AtomicU32::new(0) }
    }
}

impl AsFd for Backing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
