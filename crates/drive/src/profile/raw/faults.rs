//! The table `[faults]` before its checks.

use serde::Deserialize;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawFaults {
    #[serde(default)]
    pub(in crate::profile) bad_sectors: Vec<Spanned<(u64, u32)>>,
    #[serde(default)]
    pub(in crate::profile) slow_sectors: Vec<Spanned<(u64, u32)>>,
    pub(in crate::profile) bad_share: Option<Spanned<f64>>,
    pub(in crate::profile) slow_share: Option<Spanned<f64>>,
    pub(in crate::profile) seed: Option<u64>,
    pub(in crate::profile) retries: Option<Spanned<u32>>,
    pub(in crate::profile) spare_sectors: Option<u32>,
    #[serde(default)]
    pub(in crate::profile) hangs: Vec<Spanned<RawHang>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawHang {
    pub(in crate::profile) at_ms: f64,
    pub(in crate::profile) for_ms: Option<f64>,
}
