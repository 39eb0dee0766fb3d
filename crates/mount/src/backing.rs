//! A file of the directory below, as all its handles share it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU32;

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
}

impl Backing {
    /// A file of which nothing is known yet but what it is.
    pub fn new(fd: OwnedFd, device: u64, inode: u64) -> Backing {
        Backing { fd, device, inode, noted: AtomicU32::new(0) }
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
