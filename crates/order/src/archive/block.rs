//! The blocks of an archive.

/// Block size of an archive in bytes.
pub(super) const BLOCK: usize = 512;

/// Appends zeros up to the next block boundary.
pub(super) fn fill_block(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(BLOCK), 0);
}
