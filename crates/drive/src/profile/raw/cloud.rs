//! The table `[cloud]` before its checks.

use toml::Spanned;

use super::table::table;

table! {
    /// A cloud volume.
    RawCloud, "cloud" {
        /// The capacity.
        capacity_sectors: Spanned<u64> = "1 to 36028797018963968", "required";
        /// The largest number of commands in flight.
        depth: Spanned<u32> = "1 to 65536", "required";
        /// An operation costs one token for each `unit_bytes`: a multiple of 512.
        unit_bytes: Spanned<u32> = "512 to 1073741824", "required";
        /// The token bucket of operations.
        operations: RawBucket = "a table", "required";
        /// The token bucket of bytes.
        bytes: RawBucket = "a table", "required";
        /// The latency after admission.
        latency: RawLatency = "a table", "required";
    }
}

table! {
    /// A token bucket; `[cloud.bytes]` has the same keys.
    RawBucket, "cloud.operations" {
        /// Tokens added each second.
        rate_per_s: Spanned<u64> = "1 to 1099511627776", "required";
        /// The capacity in tokens.
        depth: Option<Spanned<u64>> = "1 to 1125899906842624", "the cost of one operation: 1, or `unit_bytes`";
        /// Tokens at time 0.
        start: Option<Spanned<u64>> = "0 to `depth`", "full";
        /// The largest drain rate in tokens a second.
        ceiling_per_s: Option<Spanned<u64>> = "`rate_per_s` to 1099511627776", "none";
    }
}

table! {
    /// The latency of a command after admission.
    RawLatency, "cloud.latency" {
        /// The minimum latency of a command.
        floor_us: Spanned<f64> = "0 to 1000000", "required";
        /// The median of the lognormal part above it.
        jitter_median_us: Option<Spanned<f64>> = "0 to 1000000", "0";
        /// The sigma of the lognormal part.
        jitter_sigma: Option<Spanned<f64>> = "0 to 3", "0";
        /// The seed of the latencies.
        #[serde(default)]
        seed: u64 = "a number", "0";
    }
}
