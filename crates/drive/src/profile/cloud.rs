//! The parameters of a cloud volume model.

/// A rented volume. Token buckets limit it, not mechanics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CloudProfile {
    pub(crate) capacity_sectors: u64,
    /// The largest number of commands in service.
    pub(crate) depth: u32,
    /// The largest operation in bytes that costs one token; larger operations cost several.
    /// Adjacent commands are merged up to this size.
    pub(crate) unit_bytes: u32,
    pub(crate) operations: BucketProfile,
    pub(crate) bytes: BucketProfile,
    pub(crate) latency: LatencyProfile,
}

/// A token bucket of operations or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketProfile {
    /// Refill rate in tokens a second.
    pub(crate) rate_per_s: u64,
    /// Capacity in tokens.
    pub(crate) depth: u64,
    /// Tokens at time 0.
    pub(crate) start: u64,
    /// The largest drain rate in tokens a second; `None` for no limit but the content.
    pub(crate) ceiling_per_s: Option<u64>,
}

/// The latency of a command after admission: a floor plus a lognormal part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LatencyProfile {
    pub(crate) floor_ns: u64,
    /// Median of the lognormal part.
    pub(crate) jitter_median_ns: u64,
    /// Standard deviation of the logarithm of the lognormal part, in thousandths.
    pub(crate) jitter_sigma_milli: u32,
    pub(crate) seed: u64,
}
