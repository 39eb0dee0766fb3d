//! The table `[flash]` before its checks.

use serde::Deserialize;
use toml::Spanned;

use crate::profile::flash::Precondition;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawFlash {
    pub(in crate::profile) queues: Option<Spanned<u32>>,
    pub(in crate::profile) depth: Spanned<u32>,
    pub(in crate::profile) capacity_sectors: Spanned<u64>,
    pub(in crate::profile) command_us: Spanned<f64>,
    pub(in crate::profile) interface_us: Option<Spanned<f64>>,
    pub(in crate::profile) link_mb_s: Spanned<f64>,
    pub(in crate::profile) write_us: Option<Spanned<f64>>,
    pub(in crate::profile) write_latency_us: Option<Spanned<f64>>,
    pub(in crate::profile) further_unit_us: Option<Spanned<f64>>,
    #[serde(default)]
    pub(in crate::profile) link_full_duplex: bool,
    pub(in crate::profile) channels: Spanned<u32>,
    pub(in crate::profile) channel_mb_s: Spanned<f64>,
    pub(in crate::profile) dies: Spanned<u32>,
    pub(in crate::profile) planes: Option<Spanned<u32>>,
    pub(in crate::profile) blocks_per_plane: Spanned<u32>,
    pub(in crate::profile) pages_per_block: Spanned<u32>,
    pub(in crate::profile) page_bytes: Spanned<u32>,
    pub(in crate::profile) stripe_kib: Option<Spanned<u32>>,
    pub(in crate::profile) page_read_us: Spanned<Vec<Spanned<f64>>>,
    pub(in crate::profile) wordline_pages: Option<Spanned<u32>>,
    pub(in crate::profile) program_us: Spanned<f64>,
    pub(in crate::profile) erase_us: Spanned<f64>,
    pub(in crate::profile) suspend_us: Option<Spanned<f64>>,
    pub(in crate::profile) overtakes_max: Option<Spanned<u32>>,
    pub(in crate::profile) spare_factor: Spanned<f64>,
    pub(in crate::profile) gc_start_blocks: Option<Spanned<u32>>,
    pub(in crate::profile) gc_hard_blocks: Option<Spanned<u32>>,
    pub(in crate::profile) gc_turn_programs: Option<Spanned<u32>>,
    pub(in crate::profile) background_suspend_us: Option<Spanned<f64>>,
    pub(in crate::profile) slice_blocks: Option<Spanned<u32>>,
    pub(in crate::profile) precondition: Precondition,
    pub(in crate::profile) buffer_kib: Spanned<u32>,
    pub(in crate::profile) flush_us: Option<Spanned<f64>>,
    #[serde(default)]
    pub(in crate::profile) power_loss_protection: bool,
    #[serde(default)]
    pub(in crate::profile) flush_blocks_commands: bool,
}
