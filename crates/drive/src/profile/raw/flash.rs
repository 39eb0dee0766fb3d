//! A flash drive as the file has it.

use serde::Deserialize;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawFlash {
    pub(in crate::profile) depth: Spanned<u32>,
    pub(in crate::profile) capacity_sectors: Spanned<u64>,
    pub(in crate::profile) command_us: Spanned<f64>,
    pub(in crate::profile) dies: Spanned<u32>,
    pub(in crate::profile) page_bytes: Spanned<u32>,
    pub(in crate::profile) page_read_us: Spanned<f64>,
    pub(in crate::profile) page_program_us: Spanned<f64>,
    pub(in crate::profile) link_sector_ns: Spanned<u32>,
}
