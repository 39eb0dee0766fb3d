//! The size of a page.

/// Bytes in a page of the page cache.
pub const PAGE_BYTES: u64 = 4096;
/// Sectors of 512 bytes in a page.
pub(crate) const PAGE_SECTORS: u64 = PAGE_BYTES / 512;
