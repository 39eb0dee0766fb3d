//! The sizes of requests.

use hoistway_fio::{BlockSize, Direction, Job};
use rand::RngExt;
use rand_pcg::Pcg64;

/// Draws the size of a request, in bytes.
pub(crate) fn draw(job: &Job, direction: Direction, is_random: bool, rng: &mut Pcg64) -> u64 {
    match size_of(job, direction, is_random) {
        BlockSize::Fixed(bytes) => *bytes,
        BlockSize::Range { min, max } if job.blocks.bs_unaligned => rng.random_range(*min..=*max.max(min)),
        // As in fio, any number of bytes up to the largest size is drawn, and rounded up to a
        // multiple of the smallest size or to the largest one.
        BlockSize::Range { min, max } => {
            let min = (*min).max(1);
            rng.random_range(1..=(*max).max(min)).next_multiple_of(min).min((*max).max(min))
        }
        BlockSize::Split(entries) => {
            let mut ticket = rng.random_range(0..100u8);
            for entry in entries {
                if ticket < entry.percent {
                    return entry.bytes;
                }
                ticket -= entry.percent;
            }
            entries.last().map_or(4096, |entry| entry.bytes)
        }
    }
}

/// Returns true if all requests of a job have one size, which the directions without requests have,
/// too.
pub(crate) fn is_one(job: &Job) -> bool {
    let mut sizes = job.directions().map(|direction| size_of(job, direction, true));
    let first = sizes.next();
    let is_fixed = matches!(first, Some(BlockSize::Fixed(_)) | None) && sizes.all(|size| Some(size) == first);
    is_fixed && job.directions().all(|direction| smallest(job, direction) == map_unit(job))
}

/// The unit of the map of blocks that random requests touched, in bytes: the smallest request of
/// all directions, those without requests included.
pub(crate) fn map_unit(job: &Job) -> u64 {
    Direction::ALL.into_iter().map(|direction| smallest(job, direction)).min().unwrap_or(1)
}

/// The unit that a request's size is rounded down to, in bytes.
pub(crate) fn unit(job: &Job, direction: Direction, is_random: bool) -> u64 {
    match (job.blocks.bs_unaligned, job.blocks.bs_is_seq_rand) {
        (true, _) => 1,
        (false, true) => smallest(job, direction),
        (false, false) => size_of(job, direction, is_random).min().max(1),
    }
}

/// The smallest request of a direction, in bytes; not 0.
pub(crate) fn smallest(job: &Job, direction: Direction) -> u64 {
    job.min_bs(direction).max(1)
}

/// The smallest request of all directions of a job, in bytes.
pub(crate) fn smallest_of_all(job: &Job) -> u64 {
    job.directions().map(|direction| smallest(job, direction)).min().unwrap_or(1)
}

/// The multiple of which random offsets are, in bytes: the smallest among the directions of the
/// job.
pub(crate) fn grain(job: &Job) -> u64 {
    let of = |direction: Direction| match job.blocks.blockalign.get(direction) {
        0 => smallest(job, direction),
        align => *align,
    };
    job.directions().map(of).min().unwrap_or(1).max(1)
}

/// With `bs_is_seq_rand`, the values for reads and writes are those of sequential and random
/// requests.
fn size_of(job: &Job, direction: Direction, is_random: bool) -> &BlockSize {
    match (job.blocks.bs_is_seq_rand, is_random) {
        (true, false) => &job.blocks.bs.read,
        (true, true) => &job.blocks.bs.write,
        (false, _) => job.blocks.bs.get(direction),
    }
}
