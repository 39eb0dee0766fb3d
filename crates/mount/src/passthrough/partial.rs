//! Writes of parts of pages. What such a page holds beside them comes from the disk, if it is not in memory: that is a read, and waits for its turn as one.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use rustix::fs::fstat;
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use super::files::OpenFile;

/// `cachestat(2)`, from Linux 6.5: the same number everywhere.
const CACHESTAT: libc::c_long = 451;

/// `struct cachestat_range`.
#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// `struct cachestat`: pages by what they are.
#[repr(C)]
#[derive(Default)]
struct Pages {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Whether a write covers parts of pages.
#[inline]
pub(super) fn is_partial(offset: u64, length: u64) -> bool {
    (offset | offset.wrapping_add(length)) & (page_bytes() - 1) != 0
}

/// Where what has to be read before a write begins, and how long it is, in bytes; `None`: it is in memory, or there is nothing.
pub(super) fn missing(file: &OpenFile, offset: u64, length: u64) -> Option<(u64, u64)> {
    let page = page_bytes();
    let end = offset.saturating_add(length);
    let (first, last) = (offset - offset % page, end - end % page);
    let head = offset != first && is_missing(file, first, page);
    let tail = end != last && (last != first || offset == first) && is_missing(file, last, page);
    match (head, tail) {
        (false, false) => None,
        (true, false) => Some((first, page)),
        (false, true) => Some((last, page)),
        (true, true) => Some((first, last + page - first)),
    }
}

#[inline]
fn page_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    // SAFETY: it takes a number and changes nothing.
    *BYTES.get_or_init(|| u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096))
}

/// Whether the file has a page that is not in memory, as far as can be told.
fn is_missing(file: &OpenFile, at: u64, page: u64) -> bool {
    if file.nowait.load(Ordering::Relaxed) {
        let mut byte = [0];
        match preadv2(&file.backing, &mut [IoSliceMut::new(&mut byte)], at, ReadWriteFlags::NOWAIT) {
            Ok(_) => return false,
            Err(Errno::AGAIN) => return true,
            // It was opened to write alone, or its file system does not tell in this way.
            Err(_) => {}
        }
    }
    !is_cached(&file.backing, at, page) && fstat(&file.backing).is_ok_and(|told| told.st_size as u64 > at)
}

fn is_cached(file: impl AsFd, offset: u64, length: u64) -> bool {
    let (range, mut pages) = (Range { offset, length }, Pages::default());
    // SAFETY: both structures are laid out as the kernel has them, and live through the call.
    let told = unsafe {
        libc::syscall(CACHESTAT, file.as_fd().as_raw_fd(), &raw const range, &raw mut pages, 0 as libc::c_uint)
    };
    told == 0 && pages.cached > 0
}
