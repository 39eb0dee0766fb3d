//! Reading the data of files into the archive.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, Stat, fadvise, fstat};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};

use super::trouble::Trouble;

/// A file whose data are still on their way into a segment.
pub(super) struct Waiting {
    pub fd: OwnedFd,
    pub stat: Stat,
    /// Where in the segment its data begin, how many there are to be, and how many there are.
    pub begins: usize,
    pub size: usize,
    pub got: usize,
    pub path: Vec<u8>,
}

/// Whether files can be asked for what is in memory alone.
#[derive(Debug)]
pub(super) struct InMemory(AtomicBool);

impl Default for InMemory {
    fn default() -> InMemory {
        InMemory(AtomicBool::new(true))
    }
}

/// How far reading got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Got {
    /// The buffer is full.
    All,
    /// So many bytes were in memory; the rest was asked of the disk.
    Some(usize),
}

impl InMemory {
    /// For tests of what is not in memory.
    #[cfg(test)]
    pub fn never() -> InMemory {
        InMemory(AtomicBool::new(false))
    }

    /// Reads the beginning of a file without waiting for the disk, as far as that goes; what is missing is asked of the disk, and comes while others are read.
    pub fn read(&self, file: BorrowedFd<'_>, buffer: &mut [u8]) -> Got {
        let mut got = 0;
        while self.0.load(Ordering::Relaxed) && got < buffer.len() {
            let mut rest = [IoSliceMut::new(&mut buffer[got..])];
            match preadv2(file, &mut rest, got as u64, ReadWriteFlags::NOWAIT) {
                // The end of the file, or a file system that has nothing to say without waiting: the reading that waits finds out which.
                Ok(0) => break,
                Ok(bytes) => got += bytes,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                // Some file systems cannot tell: they are read as ever. What else goes wrong is told by the reading that waits.
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => self.0.store(false, Ordering::Relaxed),
                Err(_) => break,
            }
        }
        if got == buffer.len() {
            return Got::All;
        }
        // Where that cannot be asked for the file is merely read later.
        let _ = fadvise(file, got as u64, std::num::NonZeroU64::new((buffer.len() - got) as u64), Advice::WillNeed);
        Got::Some(got)
    }
}

/// Reads until the buffer is full or the file ends; answers how much there was, and what ended it before its time.
pub(super) fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> (usize, Option<Errno>) {
    let mut got = 0;
    while got < buffer.len() {
        match pread(file, &mut buffer[got..], offset + got as u64) {
            Ok(0) => break,
            Ok(bytes) => got += bytes,
            Err(Errno::INTR) => {}
            Err(errno) => return (got, Some(errno)),
        }
    }
    (got, None)
}

/// What became of a file while it was read: `got` bytes of it came, and then `errno` or nothing.
pub(super) fn became(file: impl AsFd, before: &Stat, got: u64, wanted: u64, errno: Option<Errno>) -> Option<Trouble> {
    if let Some(errno) = errno {
        return Some(Trouble::Read { at: got, errno });
    }
    if got < wanted {
        return Some(Trouble::Shrank { bytes: wanted - got });
    }
    let Ok(after) = fstat(file) else { return None };
    let told = |stat: &Stat| (stat.st_size, stat.st_ctime, stat.st_ctime_nsec);
    (told(&after) != told(before)).then_some(Trouble::Changed)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_ends_early_without_waiting_is_left_to_the_reading_that_waits() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[b'x'; 10]).unwrap();
        let mut buffer = [0; 100];
        let in_memory = InMemory::default();
        let Got::Some(got) = in_memory.read(file.as_fd(), &mut buffer) else { panic!("there are 10 bytes of 100") };
        assert!(got == 10 || !in_memory.0.load(Ordering::Relaxed));
        assert_eq!(read_at(file.as_fd(), &mut buffer[got..], got as u64), (10 - got, None));
    }
}
