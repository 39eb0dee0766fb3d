//! The table `[cloud]` before its checks.

use serde::Deserialize;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawCloud {
    pub(in crate::profile) capacity_sectors: Spanned<u64>,
    pub(in crate::profile) depth: Spanned<u32>,
    pub(in crate::profile) unit_bytes: Spanned<u32>,
    pub(in crate::profile) operations: RawBucket,
    pub(in crate::profile) bytes: RawBucket,
    pub(in crate::profile) latency: RawLatency,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawBucket {
    pub(in crate::profile) rate_per_s: Spanned<u64>,
    pub(in crate::profile) depth: Option<Spanned<u64>>,
    pub(in crate::profile) start: Option<Spanned<u64>>,
    pub(in crate::profile) ceiling_per_s: Option<Spanned<u64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawLatency {
    pub(in crate::profile) floor_us: Spanned<f64>,
    pub(in crate::profile) jitter_median_us: Option<Spanned<f64>>,
    pub(in crate::profile) jitter_sigma: Option<Spanned<f64>>,
    #[serde(default)]
    pub(in crate::profile) seed: u64,
}
