//! Writes of parts of pages. What such a page holds beside them comes from the disk, if it is not in memory: that is a read, and waits for its turn as one.

use rustix::fs::fstat;
use rustix::param::page_size;

use crate::backing::Backing;
use crate::memory;

/// Whether a write covers parts of pages.
#[inline]
pub(super) fn is_partial(offset: u64, length: u64) -> bool {
    (offset | offset.wrapping_add(length)) & (page_size() as u64 - 1) != 0
}

/// Where what has to be read before a write begins, and how long it is, in bytes; `None`: it is in memory, or there is nothing.
pub(super) fn missing(file: &Backing, offset: u64, length: u64) -> Option<(u64, u64)> {
    let page = page_size() as u64;
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

/// Whether the file has a page that is not in memory. Where the system does not tell, it is taken not to be.
fn is_missing(file: &Backing, at: u64, page: u64) -> bool {
    !memory::holds(file, at, page) && fstat(file).is_ok_and(|told| told.st_size as u64 > at)
}
