//! The tables of a disk before their checks.

use serde::Deserialize;
use toml::Spanned;

use super::super::{QueuePolicy, ReadAheadUntil, ReadAheadWhen, Replacement};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawDisk {
    pub(in crate::profile) rpm: Option<Spanned<f64>>,
    pub(in crate::profile) revolution_ns: Option<Spanned<f64>>,
    pub(in crate::profile) phase_revolutions: Option<Spanned<f64>>,
    pub(in crate::profile) surfaces: Spanned<u32>,
    pub(in crate::profile) cylinders: Spanned<u32>,
    pub(in crate::profile) spare_cylinders: Option<Spanned<u32>>,
    pub(in crate::profile) capacity_sectors: Spanned<u64>,
    pub(in crate::profile) mapping: RawMapping,
    pub(in crate::profile) run_cylinders: Option<Spanned<u32>>,
    pub(in crate::profile) head_switch_ms: Spanned<f64>,
    pub(in crate::profile) write_settle_ms: Option<Spanned<f64>>,
    pub(in crate::profile) track_skew_revolutions: Option<Spanned<f64>>,
    pub(in crate::profile) change_skew_revolutions: Option<Spanned<f64>>,
    pub(in crate::profile) group_skew_revolutions: Option<Spanned<f64>>,
    #[serde(default)]
    pub(in crate::profile) slips: Vec<Spanned<(u64, u32)>>,
    pub(in crate::profile) idle_verify_ms: Option<Spanned<f64>>,
    #[serde(default)]
    pub(in crate::profile) heads_apart: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::profile) enum RawMapping {
    Cylinder,
    Serpentine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::profile) enum RawForm {
    Table,
    LeeKatz,
    RuemmlerWilkes,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawSeek {
    pub(in crate::profile) form: RawForm,
    #[serde(default)]
    pub(in crate::profile) measured: bool,
    pub(in crate::profile) points_ms: Option<Vec<Spanned<(u32, f64)>>>,
    pub(in crate::profile) single_ms: Option<Spanned<f64>>,
    pub(in crate::profile) average_ms: Option<Spanned<f64>>,
    pub(in crate::profile) full_ms: Option<Spanned<f64>>,
    pub(in crate::profile) knee_cylinders: Option<Spanned<u32>>,
    pub(in crate::profile) a_ms: Option<Spanned<f64>>,
    pub(in crate::profile) b_ms: Option<Spanned<f64>>,
    pub(in crate::profile) c_ms: Option<Spanned<f64>>,
    pub(in crate::profile) e_ms: Option<Spanned<f64>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawOverhead {
    pub(in crate::profile) read_hit_after_read_ms: Option<Spanned<f64>>,
    pub(in crate::profile) read_hit_after_write_ms: Option<Spanned<f64>>,
    pub(in crate::profile) read_miss_after_read_ms: Option<Spanned<f64>>,
    pub(in crate::profile) read_miss_after_write_ms: Option<Spanned<f64>>,
    pub(in crate::profile) write_hit_after_read_ms: Option<Spanned<f64>>,
    pub(in crate::profile) write_hit_after_write_ms: Option<Spanned<f64>>,
    pub(in crate::profile) write_miss_after_read_ms: Option<Spanned<f64>>,
    pub(in crate::profile) write_miss_after_write_ms: Option<Spanned<f64>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawInterface {
    pub(in crate::profile) sector_ns: Option<Spanned<u32>>,
    #[serde(default)]
    pub(in crate::profile) store_and_forward: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawBuffer {
    pub(in crate::profile) segments: Spanned<u32>,
    pub(in crate::profile) segment_sectors: Spanned<u32>,
    pub(in crate::profile) read_ahead_sectors: Option<Spanned<u32>>,
    pub(in crate::profile) read_ahead_min_sectors: Option<Spanned<u32>>,
    pub(in crate::profile) read_ahead_until: ReadAheadUntil,
    #[serde(default)]
    pub(in crate::profile) read_ahead_when: ReadAheadWhen,
    #[serde(default = "yes")]
    pub(in crate::profile) enabled: bool,
    #[serde(default)]
    pub(in crate::profile) immediate_read: bool,
    #[serde(default)]
    pub(in crate::profile) replacement: Replacement,
    #[serde(default = "yes")]
    pub(in crate::profile) keep_read: bool,
    #[serde(default = "yes")]
    pub(in crate::profile) keep_after_write: bool,
    #[serde(default = "yes")]
    pub(in crate::profile) keep_written: bool,
    #[serde(default)]
    pub(in crate::profile) write_cache: bool,
    pub(in crate::profile) write_segments: Option<Spanned<u32>>,
    pub(in crate::profile) write_sectors: Option<Spanned<u32>>,
    pub(in crate::profile) write_high: Option<Spanned<f64>>,
    pub(in crate::profile) write_low: Option<Spanned<f64>>,
    pub(in crate::profile) write_idle_ms: Option<Spanned<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawQueue {
    pub(in crate::profile) depth: Spanned<u32>,
    pub(in crate::profile) policy: QueuePolicy,
    pub(in crate::profile) window: Option<Spanned<u32>>,
    pub(in crate::profile) age_weight: Option<Spanned<f64>>,
    pub(in crate::profile) max_wait_ms: Option<Spanned<f64>>,
    #[serde(default = "yes")]
    pub(in crate::profile) flush_blocks: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::profile) struct RawZone {
    pub(in crate::profile) first_cylinder: Spanned<u32>,
    pub(in crate::profile) last_cylinder: Spanned<u32>,
    pub(in crate::profile) sectors_per_track: Spanned<u32>,
    pub(in crate::profile) track_skew_sectors: Option<Spanned<f64>>,
    pub(in crate::profile) change_skew_sectors: Option<Spanned<f64>>,
    pub(in crate::profile) offset_sectors: Option<Spanned<f64>>,
    pub(in crate::profile) offset_revolutions: Option<Spanned<f64>>,
    pub(in crate::profile) empty_front_sectors: Option<Spanned<u64>>,
    pub(in crate::profile) spare_sectors_per_run: Option<Spanned<u32>>,
    pub(in crate::profile) spare_sectors: Option<Spanned<u64>>,
}
