//! The requests of a fio job, one after the other, without a clock and without I/O.
//!
//! A [`Generator`] chooses direction, file, offset and size of each request of a process, as fio
//! does for the options of the job. The other types say when a request is due
//! ([`pacing::Pacing`]), whether a job is ahead of others ([`shares::Shares`]), and when it ends
//! ([`endings`]). [`regions`] has the parts of files that a job works on. The host, `hoistway-sim`,
//! calls them in virtual time.
//!
//! The order of requests was compared with that of fio 3.33 (`--write_iolog`); random numbers are
//! different ones.
//!
//! # Where to change ...
//!
//! | what | where |
//! |---|---|
//! | direction, size and offset of a request, passes, verification | `offsets.rs`, `sizes.rs`, `verification.rs` |
//! | distributions of random offsets | `distribution.rs`, `permutation.rs`, `free_blocks.rs` |
//! | the part of each file that a job works on | `regions.rs` |
//! | zones | `zones.rs` |
//! | the choice of the next file | `files.rs` |
//! | caps on rates; shares among jobs | `pacing.rs`; `shares.rs` |
//! | what a recorded request waits for | `release.rs` |
//! | the ends of a job: least rates, steady rates, depths within a latency | `endings.rs` |
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod distribution;
pub mod endings;
mod files;
mod free_blocks;
pub mod offsets;
pub mod pacing;
mod permutation;
pub mod regions;
mod release;
mod request;
pub mod shares;
mod sizes;
mod syncs;
mod verification;
mod zones;

pub use offsets::Generator;
pub use release::{Release, ReleaseDelay};
pub use request::{IoUnit, Region};
pub use syncs::{FileSync, Work};
pub use zones::WrittenZones;

use rand_pcg::Pcg64;

/// Creates the random stream of a process and a purpose. Streams of one seed are independent: the
/// use of one does not change another.
pub fn stream(seed: u64, process: u64, purpose: u64) -> Pcg64 {
    let state = mix(seed ^ mix(process)).wrapping_add(mix(purpose));
    Pcg64::new(
        u128::from(mix(state)) << 64 | u128::from(mix(state ^ !seed)),
        u128::from(process) << 8 | u128::from(purpose),
    )
}

/// Spreads a number over all 64 bits (the finaliser of SplitMix64: Steele, Lea & Flood, "Fast
/// splittable pseudorandom number generators", OOPSLA 2014).
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
