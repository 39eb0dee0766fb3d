//! Buffered writes of partial pages. If the page is not cached, the kernel first reads the rest of
//! it from the disk; that read is scheduled as a read.

use rustix::fs::fstat;
use rustix::param::page_size;

use crate::backing::Backing;
use crate::page_cache;

/// Returns true if a write covers a part of a page.
#[inline]
pub(super) fn is_partial(offset: u64, length: u64) -> bool {
    (offset | offset.wrapping_add(length)) & (page_size() as u64 - 1) != 0
}

/// Returns offset and length in bytes of the range that has to be read before a write, or `None` if
/// nothing has to.
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

/// Returns true if the page at `at` exists in the file and is not cached. If the system does
/// not report that, the page counts as cached.
fn is_missing(file: &Backing, at: u64, page: u64) -> bool {
    !page_cache::contains(file, at, page) && fstat(file).is_ok_and(|stat| stat.st_size as u64 > at)
}
