//! The table `[array]` before its checks.

use serde::Deserialize;
use toml::Spanned;

use super::super::DestageOrder;
use super::RawProfile;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawArray {
    pub(in crate::profile) depth: Spanned<u32>,
    pub(in crate::profile) command_us: Spanned<f64>,
    pub(in crate::profile) link_sector_ns: Spanned<u32>,
    pub(in crate::profile) copies: Option<Spanned<u32>>,
    pub(in crate::profile) chunk_sectors: Option<Spanned<u32>>,
    pub(in crate::profile) cache: Option<Spanned<RawArrayCache>>,
    #[serde(default)]
    pub(in crate::profile) member: Vec<Spanned<RawMember>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawArrayCache {
    pub(in crate::profile) sectors: Spanned<u64>,
    pub(in crate::profile) battery: bool,
    pub(in crate::profile) high_part: Spanned<f64>,
    pub(in crate::profile) low_part: Spanned<f64>,
    pub(in crate::profile) idle_ms: Spanned<f64>,
    pub(in crate::profile) order: DestageOrder,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawMember {
    pub(in crate::profile) drive: Option<Spanned<String>>,
    pub(in crate::profile) profile: Option<Spanned<Box<RawProfile>>>,
    pub(in crate::profile) count: Option<Spanned<u32>>,
}
