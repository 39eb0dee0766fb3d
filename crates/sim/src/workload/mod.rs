//! Workloads: the requests of the jobs of a job file.

pub(crate) mod distribution;
pub(crate) mod groups;
pub(crate) mod offsets;
pub(crate) mod pacing;
pub(crate) mod permutation;
pub(crate) mod plan;
pub(crate) mod recorded;
pub(crate) mod walk;

use rand_pcg::Pcg64;

/// Creates the random stream of a process and a purpose. Streams of one seed are independent: the
/// use of one does not change another.
pub(crate) fn stream(seed: u64, process: u64, purpose: u64) -> Pcg64 {
    let state = mix(seed ^ mix(process)).wrapping_add(mix(purpose));
    Pcg64::new(
        u128::from(mix(state)) << 64 | u128::from(mix(state ^ !seed)),
        u128::from(process) << 8 | u128::from(purpose),
    )
}

/// Spreads a number over all 64 bits (the finaliser of SplitMix64: Steele, Lea & Flood, "Fast
/// splittable pseudorandom number generators", OOPSLA 2014).
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
