//! Page cache queries that start no disk reads.
//!
//! A read with `RWF_NOWAIT` is not such a query: for pages that are not cached the kernel starts
//! read-ahead and then returns `EAGAIN`, so every read would reach the disk before it is scheduled.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

use crate::backing::{Backing, OVERLAY};

/// False once cachestat(2), which Linux 6.5 introduced, has returned `ENOSYS`.
static HAS_CACHESTAT: AtomicBool = AtomicBool::new(true);

/// `struct cachestat_range`, in bytes.
#[repr(C)]
struct Range {
    first: u64,
    bytes: u64,
}

/// `struct cachestat`, in pages.
#[repr(C)]
#[derive(Default)]
struct Pages {
    cached: u64,
    dirty: u64,
    written: u64,
    evicted: u64,
    evicted_lately: u64,
}

/// Reads a range that is completely in the page cache, without disk I/O. Returns `None` if a part
/// is not cached or if the system does not report it.
pub(crate) fn read(file: &Backing, offset: u64, buffer: &mut [u8]) -> Option<usize> {
    if !contains(file, offset, buffer.len() as u64) {
        return None;
    }
    let mut done = 0;
    let mut flags = ReadWriteFlags::NOWAIT;
    while done < buffer.len() {
        let rest = &mut [IoSliceMut::new(&mut buffer[done..])];
        match preadv2(file, rest, offset + done as u64, flags) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(Errno::INTR) => {}
            // The range was cached a moment ago. Other file systems may query a server
            // first.
            Err(Errno::OPNOTSUPP) if !flags.is_empty() && file.is_on(&[OVERLAY, TMPFS]) => {
                flags = ReadWriteFlags::empty();
            }
            // The page was evicted just now or is under I/O, or the file system does not support
            // the flag.
            Err(_) => return None,
        }
    }
    Some(done)
}

/// The magic number of tmpfs, whose pages are in memory unless they are swapped out.
const TMPFS: u32 = 0x0102_1994;

/// Returns true if a whole range of a file is in the page cache. A range beyond the end of the file
/// is not.
pub(crate) fn contains(file: &Backing, offset: u64, bytes: u64) -> bool {
    if bytes == 0 {
        // cachestat(2) takes length 0 for the whole rest of the file.
        return true;
    }
    let page_bytes = page_size() as u64;
    let first = offset - offset % page_bytes;
    let Some(end) = offset.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(page_bytes)) else {
        return false;
    };
    // Files on overlayfs have no pages of their own for cachestat(2) to count; a mapping of such a
    // file shows the pages of the lower file.
    if !file.is_on(&[OVERLAY]) && HAS_CACHESTAT.load(Ordering::Relaxed) {
        match cached(file, first, end - first) {
            Ok(pages) => return pages == (end - first) / page_bytes,
            Err(Errno::NOSYS) => HAS_CACHESTAT.store(false, Ordering::Relaxed),
            // Huge pages, a special file, or a file that this user may not write.
            Err(_) => return false,
        }
    }
    let is_resident = match resident(file, first, end - first) {
        // A descriptor that is open only for writing cannot be mapped.
        Err(Errno::ACCESS) => {
            let path = format!("/proc/self/fd/{}", file.fd.as_raw_fd());
            open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .and_then(|readable| resident(readable, first, end - first))
        }
        is_resident => is_resident,
    };
    is_resident.unwrap_or(false)
}

/// Returns the number of cached pages in a range of a file, from cachestat(2).
fn cached(file: &Backing, first: u64, bytes: u64) -> Result<u64, Errno> {
    let range = Range { first, bytes };
    let mut pages = Pages::default();
    // SAFETY: both structures outlive the call and have the layout of cachestat(2).
    let result = unsafe { libc::syscall(SYS_CACHESTAT, file.fd.as_raw_fd(), &raw const range, &raw mut pages, 0) };
    if result == 0 { Ok(pages.cached) } else { Err(last_error()) }
}

/// The system call number, the same on every architecture that uses the common table (all except
/// alpha).
const SYS_CACHESTAT: libc::c_long = 451;

/// Returns true if all pages of a range of a file are resident, from mincore(2).
fn resident(file: impl AsFd, first: u64, bytes: u64) -> Result<bool, Errno> {
    let length = usize::try_from(bytes).map_err(|_| Errno::INVAL)?;
    let mut pages = vec![0u8; length.div_ceil(page_size())];
    // SAFETY: a new mapping at an address of the kernel's choice; it is only queried, never read,
    // and unmapped below.
    let result = unsafe {
        let at = mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, first)?;
        let result = libc::mincore(at, length, pages.as_mut_ptr());
        let is_resident = if result == 0 { Ok(()) } else { Err(last_error()) };
        munmap(at, length)?;
        is_resident
    };
    result.map(|()| pages.iter().all(|page| page & 1 == 1))
}

fn last_error() -> Errno {
    std::io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;

    use rustix::fs::{Advice, fadvise};

    use super::*;

    fn backing(file: &File) -> Backing {
        Backing::new(file.try_clone().expect("it is open").into(), 0, 0)
    }

    /// Creates a file on a disk with `pages` pages, all of them in the page cache.
    fn file(pages: usize) -> File {
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("the source is on a disk");
        file.write_all(&vec![7; pages * 4096]).expect("there is room");
        file.sync_all().expect("it can be made durable");
        file
    }

    #[test]
    fn written_pages_are_cached_according_to_cachestat_and_mincore() {
        let file = backing(&file(64));
        assert!(resident(&file, 0, 64 * 4096).expect("mincore succeeds"));
        assert!(contains(&file, 100, 63 * 4096));
        let mut buffer = vec![0; 64 * 4096];
        assert_eq!(read(&file, 0, &mut buffer), Some(buffer.len()));
        assert!(buffer.iter().all(|byte| *byte == 7));
    }

    #[test]
    fn a_query_for_uncached_pages_starts_no_disk_read() {
        let file = file(64);
        fadvise(&file, 0, None, Advice::DontNeed).expect("the advice is accepted");
        let file = backing(&file);
        if contains(&file, 0, 4096) {
            eprintln!("skipped: the file system here keeps its pages");
            return;
        }
        for _ in 0..10 {
            assert_eq!(read(&file, 0, &mut vec![0; 64 * 4096]), None);
            assert!(!resident(&file, 0, 64 * 4096).expect("mincore succeeds"));
            // A read that the query had started would be complete by then.
            std::thread::sleep(std::time::Duration::from_millis(10));
            assert!(!contains(&file, 0, 4096), "the query started a read");
        }
    }

    #[test]
    fn an_uncached_hole_is_detected() {
        let file = file(64);
        fadvise(&file, 16 * 4096, std::num::NonZeroU64::new(16 * 4096), Advice::DontNeed)
            .expect("the advice is accepted");
        let file = backing(&file);
        if contains(&file, 16 * 4096, 4096) {
            eprintln!("skipped: the file system here keeps its pages");
            return;
        }
        assert!(contains(&file, 0, 16 * 4096) && contains(&file, 16 * 4096, 0), "an empty range is always cached");
        for (offset, bytes) in [(0, 17 * 4096), (31 * 4096, 8192), (0, 64 * 4096), (16 * 4096 + 1, 1)] {
            assert!(
                !contains(&file, offset, bytes)
                    && !resident(&file, offset - offset % 4096, bytes.next_multiple_of(4096))
                        .expect("mincore succeeds")
            );
        }
    }

    #[test]
    fn a_range_beyond_the_end_of_the_file_is_not_cached() {
        let file = backing(&file(1));
        assert!(!contains(&file, 4096, 4096));
        assert_eq!(read(&file, 4096, &mut [0; 10]), None);
    }
}
