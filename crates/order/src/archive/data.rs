//! Reads file data into segments.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, Stat, fadvise, fstat};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};

use super::event::ArchiveWarning;

/// A file whose data are not completely read yet.
pub(super) struct PendingRead {
    pub fd: OwnedFd,
    pub stat: Stat,
    /// Position of the data in the segment, size of the file, and bytes read so far.
    pub begins: usize,
    pub size: usize,
    pub got: usize,
    pub path: Vec<u8>,
}

/// Reads data that are in the page cache without waiting for the disk. Holds false once a file
/// system has refused such reads.
#[derive(Debug)]
pub(super) struct CachedReader(AtomicBool);

impl Default for CachedReader {
    fn default() -> CachedReader {
        CachedReader(AtomicBool::new(true))
    }
}

/// The result of a read from the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CachedRead {
    /// The buffer is full.
    Complete,
    /// So many bytes were in the page cache. Read-ahead was requested for the rest.
    Partial(usize),
}

impl CachedReader {
    /// Creates a reader that finds nothing in the page cache, for tests.
    #[cfg(test)]
    pub fn never() -> CachedReader {
        CachedReader(AtomicBool::new(false))
    }

    /// Reads the start of a file from the page cache. Requests read-ahead for the missing part, so
    /// that the disk works while other files are read.
    pub fn read(&self, file: BorrowedFd<'_>, buffer: &mut [u8]) -> CachedRead {
        let mut got = 0;
        while self.0.load(Ordering::Relaxed) && got < buffer.len() {
            let mut rest = [IoSliceMut::new(&mut buffer[got..])];
            match preadv2(file, &mut rest, got as u64, ReadWriteFlags::NOWAIT) {
                // End of file, or a file system without an answer: the blocking read decides which.
                Ok(0) => break,
                Ok(bytes) => got += bytes,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                // Not supported by this file system: use blocking reads from now on. A blocking
                // read reports other errors.
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => self.0.store(false, Ordering::Relaxed),
                Err(_) => break,
            }
        }
        if got == buffer.len() {
            return CachedRead::Complete;
        }
        // An optimisation only: without read-ahead the file is read later.
        let _ = fadvise(file, got as u64, std::num::NonZeroU64::new((buffer.len() - got) as u64), Advice::WillNeed);
        CachedRead::Partial(got)
    }
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes and the error that
/// ended the read.
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

/// Returns a warning if a file changed while it was read. `got` of `wanted` bytes were read before
/// `errno` or the end of the file.
pub(super) fn detect_change(
    file: impl AsFd,
    before: &Stat,
    got: u64,
    wanted: u64,
    errno: Option<Errno>,
) -> Option<ArchiveWarning> {
    if let Some(errno) = errno {
        return Some(ArchiveWarning::Read { at: got, errno });
    }
    if got < wanted {
        return Some(ArchiveWarning::Shrank { bytes: wanted - got });
    }
    let Ok(after) = fstat(file) else { return None };
    let state = |stat: &Stat| (stat.st_size, stat.st_ctime, stat.st_ctime_nsec);
    (state(&after) != state(before)).then_some(ArchiveWarning::Changed)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_short_cached_read_is_continued_by_a_blocking_read() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[b'x'; 10]).unwrap();
        let mut buffer = [0; 100];
        let cached_reader = CachedReader::default();
        let CachedRead::Partial(got) = cached_reader.read(file.as_fd(), &mut buffer) else {
            panic!("there are 10 bytes of 100")
        };
        assert!(got == 10 || !cached_reader.0.load(Ordering::Relaxed));
        assert_eq!(read_at(file.as_fd(), &mut buffer[got..], got as u64), (10 - got, None));
    }
}
