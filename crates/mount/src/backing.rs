//! A file of the directory below, as all its handles share it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{Errno, pread};

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
    /// By this the file is opened, where `fd` is another of the same file system.
    way: Option<Arc<dyn Reach>>,
}

/// Something by which a file can be opened. That may take the disk.
pub(crate) trait Reach: std::fmt::Debug + Send + Sync {
    /// Opens it, to know it (`O_PATH`).
    ///
    /// # Errors
    /// `ESTALE` if it does not exist any more.
    fn reach(&self) -> io::Result<OwnedFd>;
}

impl Backing {
    /// A file of which nothing is known yet but what it is.
    pub fn new(fd: OwnedFd, device: u64, inode: u64) -> Backing {
        Backing { fd, device, inode, noted: AtomicU32::new(0), way: None }
    }

    /// Stands for a file that is not open: `near` is another one of its file system.
    ///
    /// # Errors
    /// When there is no descriptor to be had.
    pub(crate) fn standing_for(inode: u64, way: Arc<dyn Reach>, near: &Backing) -> io::Result<Backing> {
        let fd = rustix::io::fcntl_dupfd_cloexec(near, 3)?;
        let noted = AtomicU32::new(near.noted.load(Ordering::Relaxed));
        Ok(Backing { fd, device: near.device, inode, noted, way: Some(way) })
    }

    /// Does something with a descriptor of the file itself; `None` if it does not exist any more. It may take the disk.
    pub(crate) fn with_itself<T>(&self, act: impl FnOnce(BorrowedFd<'_>) -> T) -> Option<T> {
        match &self.way {
            None => Some(act(self.fd.as_fd())),
            Some(way) => way.reach().ok().map(|itself| act(itself.as_fd())),
        }
    }

    /// Reads until the buffer is full or the file ends. The kernel takes anything less for the file's end: another error is one, whatever came before it.
    pub(crate) fn read_all(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut have = 0;
        while have < buffer.len() {
            match pread(self, &mut buffer[have..], offset + have as u64) {
                Ok(0) => break,
                Ok(read) => have += read,
                Err(Errno::INTR) => {}
                Err(error) if have > 0 && self.ends_at(error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(have)
    }

    /// Whether an error behind the first bytes of a read is the file's end: a direct read that stopped within a block has met it, and cannot go on from there.
    pub(crate) fn ends_at(&self, error: Errno) -> bool {
        error == Errno::INVAL && fcntl_getfl(self).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
    }
}

impl AsFd for Backing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
