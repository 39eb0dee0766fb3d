//! Ageing of a file system: the blocks that other files use in a block group.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::bitmap::{WORDS, next_run, set};
use super::geometry::{BLOCK_BYTES, GROUP_BLOCKS};
use super::sizes::SizeLaw;

/// Duration of use and fill of an aged file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ageing {
    /// Number of rounds, each of which deletes a third of all files and writes them anew.
    pub rounds: u32,
    /// Percent of the blocks that other files use at the end, 0 to 95.
    pub full_percent: u8,
}

/// Sizes of other files, from a study of ten thousand machines (Agrawal, Bolosky, Douceur & Lorch,
/// "A five-year study of file-system metadata", FAST 2007): a median of 4 KiB, and a mean of 189 KB
/// in its last year.
const OTHERS: SizeLaw = SizeLaw { median_bytes: 4096, mean_bytes: 189_000 };
/// Longest file of others: a larger one would fill most of a group.
const LARGEST_BLOCKS: u64 = GROUP_BLOCKS / 8;

/// Fills a group half-way from `full_percent` to the brim, deletes and rewrites a third in each
/// round, and deletes again until it has the requested fill. The free blocks are then scattered.
pub(super) fn age_group(map: &mut [u64; WORDS], ageing: Ageing, rng: &mut Pcg64) {
    let own = used(map);
    let room = GROUP_BLOCKS - own;
    let target = own + room * u64::from(ageing.full_percent) / 100;
    let peak = target + (GROUP_BLOCKS - target) / 2;
    let mut files: Vec<Vec<(u64, u64)>> = Vec::new();
    let mut in_use = own;
    if target == own {
        return;
    }
    fill(map, &mut in_use, peak, &mut files, rng);
    for _ in 0..ageing.rounds {
        for _ in 0..files.len() / 3 {
            delete_one(map, &mut in_use, &mut files, rng);
        }
        fill(map, &mut in_use, peak, &mut files, rng);
    }
    while in_use > target && !files.is_empty() {
        delete_one(map, &mut in_use, &mut files, rng);
    }
}

/// Creates files, each in the next free blocks after a random position, until `blocks` blocks are
/// used.
fn fill(map: &mut [u64; WORDS], in_use: &mut u64, peak: u64, files: &mut Vec<Vec<(u64, u64)>>, rng: &mut Pcg64) {
    while *in_use < peak {
        let wanted = OTHERS.draw(rng).div_ceil(BLOCK_BYTES).clamp(1, LARGEST_BLOCKS);
        let mut left = wanted.min(peak - *in_use);
        let mut at = rng.random_range(0..GROUP_BLOCKS);
        let mut runs = Vec::new();
        while left > 0 {
            let Some((first, length)) = next_run(map, at) else {
                at = 0;
                continue;
            };
            let taken = length.min(left);
            set(map, first, taken, true);
            runs.push((first, taken));
            *in_use += taken;
            left -= taken;
            at = first + taken;
        }
        files.push(runs);
    }
}

fn delete_one(map: &mut [u64; WORDS], in_use: &mut u64, files: &mut Vec<Vec<(u64, u64)>>, rng: &mut Pcg64) {
    if files.is_empty() {
        return;
    }
    for (first, blocks) in files.swap_remove(rng.random_range(0..files.len())) {
        set(map, first, blocks, false);
        *in_use -= blocks;
    }
}

fn used(map: &[u64; WORDS]) -> u64 {
    map.iter().map(|word| u64::from(word.count_ones())).sum()
}
