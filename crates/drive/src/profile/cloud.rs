//! What a model of a cloud volume needs to know.

/// A volume that is rented: its limits are accounts, not mechanics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CloudProfile {
    pub(crate) capacity_sectors: u64,
    /// Commands that it serves at once.
    pub(crate) depth: u32,
    /// An operation of so many bytes is charged once, larger ones several times; neighbours are merged up to this.
    pub(crate) unit_bytes: u32,
    pub(crate) operations: BucketProfile,
    pub(crate) bytes: BucketProfile,
    pub(crate) latency: LatencyProfile,
}

/// An account that fills at a rate and is drawn on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketProfile {
    /// What flows in, in units a second.
    pub(crate) rate_per_s: u64,
    /// The most that it holds.
    pub(crate) depth: u64,
    /// What it holds at the beginning.
    pub(crate) start: u64,
    /// The fastest that it is drawn on, in units a second, however full it is; none but its content limits it without.
    pub(crate) ceiling_per_s: Option<u64>,
}

/// How long a command takes once it is let in: a floor, and a lognormal part above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LatencyProfile {
    pub(crate) floor_ns: u64,
    /// The median of what is above the floor.
    pub(crate) jitter_median_ns: u64,
    /// The standard deviation of the logarithm of what is above the floor, in thousandths.
    pub(crate) jitter_sigma_milli: u32,
    pub(crate) seed: u64,
}
