//! The block bitmap of a block group: one bit a block, set while the block is used.

use super::geometry::GROUP_BLOCKS;

/// Words of a bitmap.
pub(super) const WORDS: usize = GROUP_BLOCKS as usize / 64;

/// The first run of free blocks at or after `from`: its start and length.
pub(super) fn next_run(map: &[u64; WORDS], from: u64) -> Option<(u64, u64)> {
    let start = next_bit(map, from, 0)?;
    let end = next_bit(map, start, u64::MAX).unwrap_or(GROUP_BLOCKS);
    Some((start, end - start))
}

/// Marks blocks as used or free.
pub(super) fn set(map: &mut [u64; WORDS], first: u64, blocks: u64, used: bool) {
    let (mut at, end) = (first, (first + blocks).min(GROUP_BLOCKS));
    while at < end {
        let (word, bit) = ((at / 64) as usize, at % 64);
        let count = (64 - bit).min(end - at);
        let mask = if count == 64 { u64::MAX } else { ((1 << count) - 1) << bit };
        match used {
            true => map[word] |= mask,
            false => map[word] &= !mask,
        }
        at += count;
    }
}

/// The first block from `from` on that is free (`flip` 0) or used (`flip` all ones).
fn next_bit(map: &[u64; WORDS], from: u64, flip: u64) -> Option<u64> {
    let mut word = (from / 64) as usize;
    let mut skip = u64::MAX << (from % 64);
    while word < WORDS {
        let bits = !(map[word] ^ flip) & skip;
        if bits != 0 {
            return Some(word as u64 * 64 + u64::from(bits.trailing_zeros()));
        }
        skip = u64::MAX;
        word += 1;
    }
    None
}
