//! What of a file lies in memory, asked without having anything read.
//!
//! A read with `RWF_NOWAIT` is no such question: for what is not there the kernel starts to read from the disk and then says that it would have to wait.
//! Asked so, every read would be begun out of turn.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

use crate::backing::{Backing, OVERLAY};

/// cachestat(2) came with Linux 6.5.
static HAS_CACHESTAT: AtomicBool = AtomicBool::new(true);

/// `struct cachestat_range`.
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

/// Reads what lies in memory as a whole. `None`: the disk is needed, or the system does not tell, and nothing was asked of the disk.
pub(crate) fn read(file: &Backing, offset: u64, buffer: &mut [u8]) -> Option<usize> {
    if !holds(file, offset, buffer.len() as u64) {
        return None;
    }
    let mut have = 0;
    let mut flags = ReadWriteFlags::NOWAIT;
    while have < buffer.len() {
        let rest = &mut [IoSliceMut::new(&mut buffer[have..])];
        match preadv2(file, rest, offset + have as u64, flags) {
            Ok(0) => break,
            Ok(read) => have += read,
            Err(Errno::INTR) => {}
            // What was there a moment ago will be there still. Others than these may ask a server before they tell.
            Err(Errno::OPNOTSUPP) if !flags.is_empty() && file.is_of(&[OVERLAY, TMPFS]) => {
                flags = ReadWriteFlags::empty();
            }
            // It was given up in this moment, or is on its way from the disk; or the file system cannot tell.
            Err(_) => return None,
        }
    }
    Some(have)
}

/// tmpfs, which lies in memory but for what was swapped out.
const TMPFS: u32 = 0x0102_1994;

/// Whether all of a part of a file lies in memory. Beyond the file's end nothing does.
pub(crate) fn holds(file: &Backing, offset: u64, bytes: u64) -> bool {
    if bytes == 0 {
        // To cachestat(2) that were all up to the end.
        return true;
    }
    let page_bytes = page_size() as u64;
    let first = offset - offset % page_bytes;
    let Some(end) = offset.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(page_bytes)) else {
        return false;
    };
    // Files on overlayfs have no pages of their own, which cachestat(2) would count; what is mapped of them are the pages of the files below.
    if !file.is_of(&[OVERLAY]) && HAS_CACHESTAT.load(Ordering::Relaxed) {
        match cached(file, first, end - first) {
            Ok(pages) => return pages == (end - first) / page_bytes,
            Err(Errno::NOSYS) => HAS_CACHESTAT.store(false, Ordering::Relaxed),
            // Huge pages, special files, or the file is somebody else's.
            Err(_) => return false,
        }
    }
    let told = match resident(file, first, end - first) {
        // What is open for writing alone cannot be mapped.
        Err(Errno::ACCESS) => {
            let path = format!("/proc/self/fd/{}", file.fd.as_raw_fd());
            open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .and_then(|readable| resident(readable, first, end - first))
        }
        told => told,
    };
    told.unwrap_or(false)
}

/// Pages of a part of a file that lie in memory, by cachestat(2).
fn cached(file: &Backing, first: u64, bytes: u64) -> Result<u64, Errno> {
    let range = Range { first, bytes };
    let mut pages = Pages::default();
    // SAFETY: both live through the call, and are laid out as it takes and fills them (cachestat(2)).
    let result = unsafe { libc::syscall(SYS_CACHESTAT, file.fd.as_raw_fd(), &raw const range, &raw mut pages, 0) };
    if result == 0 { Ok(pages.cached) } else { Err(last_error()) }
}

/// The same on every architecture that came to share its table of calls; alpha has its own.
const SYS_CACHESTAT: libc::c_long = 451;

/// Whether all pages of a part of a file lie in memory, by mincore(2).
fn resident(file: impl AsFd, first: u64, bytes: u64) -> Result<bool, Errno> {
    let length = usize::try_from(bytes).map_err(|_| Errno::INVAL)?;
    let mut pages = vec![0u8; length.div_ceil(page_size())];
    // SAFETY: a new mapping at an address of the kernel's choice, which is only asked about, never read, and unmapped below.
    let result = unsafe {
        let at = mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, first)?;
        let result = libc::mincore(at, length, pages.as_mut_ptr());
        let told = if result == 0 { Ok(()) } else { Err(last_error()) };
        munmap(at, length)?;
        told
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

    /// A file on a disk, with `pages` pages that are there and in memory.
    fn file(pages: usize) -> File {
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("the source lies on a disk");
        file.write_all(&vec![7; pages * 4096]).expect("there is room");
        file.sync_all().expect("it can be made durable");
        file
    }

    #[test]
    fn what_was_written_is_in_memory_by_both_ways_of_asking() {
        let file = backing(&file(64));
        assert!(resident(&file, 0, 64 * 4096).expect("mincore tells"));
        assert!(holds(&file, 100, 63 * 4096));
        let mut buffer = vec![0; 64 * 4096];
        assert_eq!(read(&file, 0, &mut buffer), Some(buffer.len()));
        assert!(buffer.iter().all(|byte| *byte == 7));
    }

    #[test]
    fn asking_for_what_is_not_in_memory_has_nothing_read() {
        let file = file(64);
        fadvise(&file, 0, None, Advice::DontNeed).expect("advice is taken");
        let file = backing(&file);
        if holds(&file, 0, 4096) {
            eprintln!("skipped: the file system here keeps its pages");
            return;
        }
        for _ in 0..10 {
            assert_eq!(read(&file, 0, &mut vec![0; 64 * 4096]), None);
            assert!(!resident(&file, 0, 64 * 4096).expect("mincore tells"));
            // What were to be read would be there some time later.
            std::thread::sleep(std::time::Duration::from_millis(10));
            assert!(!holds(&file, 0, 4096), "asking had it read");
        }
    }

    #[test]
    fn a_hole_in_what_is_in_memory_is_seen() {
        let file = file(64);
        fadvise(&file, 16 * 4096, std::num::NonZeroU64::new(16 * 4096), Advice::DontNeed).expect("advice is taken");
        let file = backing(&file);
        if holds(&file, 16 * 4096, 4096) {
            eprintln!("skipped: the file system here keeps its pages");
            return;
        }
        assert!(holds(&file, 0, 16 * 4096) && holds(&file, 16 * 4096, 0), "nothing is always there");
        for (offset, bytes) in [(0, 17 * 4096), (31 * 4096, 8192), (0, 64 * 4096), (16 * 4096 + 1, 1)] {
            assert!(
                !holds(&file, offset, bytes)
                    && !resident(&file, offset - offset % 4096, bytes.next_multiple_of(4096)).expect("mincore tells")
            );
        }
    }

    #[test]
    fn beyond_the_end_nothing_is_in_memory() {
        let file = backing(&file(1));
        assert!(!holds(&file, 4096, 4096));
        assert_eq!(read(&file, 4096, &mut [0; 10]), None);
    }
}
