//! The profile as the file has it, with the place of every value that can be wrong.

use serde::Deserialize;
use toml::Spanned;

use super::{QueuePolicy, ReadAheadUntil, Replacement};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawProfile {
    pub(super) name: Spanned<String>,
    pub(super) what: String,
    pub(super) source: String,
    pub(super) licence: Option<String>,
    #[serde(default)]
    pub(super) inputs: Vec<String>,
    pub(super) null: Option<Spanned<RawNull>>,
    pub(super) flash: Option<Spanned<RawFlash>>,
    pub(super) disk: Option<Spanned<RawDisk>>,
    pub(super) seek: Option<Spanned<RawSeek>>,
    #[serde(default)]
    pub(super) overhead: RawOverhead,
    #[serde(default)]
    pub(super) interface: RawInterface,
    pub(super) buffer: Option<RawBuffer>,
    pub(super) queue: Option<Spanned<RawQueue>>,
    #[serde(default)]
    pub(super) zone: Vec<Spanned<RawZone>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawNull {
    pub(super) service_ns: Spanned<u64>,
    pub(super) depth: Spanned<u32>,
    pub(super) capacity_sectors: Spanned<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFlash {
    pub(super) depth: Spanned<u32>,
    pub(super) capacity_sectors: Spanned<u64>,
    pub(super) command_us: Spanned<f64>,
    pub(super) dies: Spanned<u32>,
    pub(super) page_bytes: Spanned<u32>,
    pub(super) page_read_us: Spanned<f64>,
    pub(super) page_program_us: Spanned<f64>,
    pub(super) link_sector_ns: Spanned<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDisk {
    pub(super) rpm: Option<Spanned<f64>>,
    pub(super) revolution_ns: Option<Spanned<f64>>,
    pub(super) phase_revolutions: Option<Spanned<f64>>,
    pub(super) surfaces: Spanned<u32>,
    pub(super) cylinders: Spanned<u32>,
    pub(super) spare_cylinders: Option<Spanned<u32>>,
    pub(super) capacity_sectors: Spanned<u64>,
    pub(super) mapping: RawMapping,
    pub(super) run_cylinders: Option<Spanned<u32>>,
    pub(super) head_switch_ms: Spanned<f64>,
    pub(super) write_settle_ms: Option<Spanned<f64>>,
    pub(super) track_skew_revolutions: Option<Spanned<f64>>,
    pub(super) change_skew_revolutions: Option<Spanned<f64>>,
    pub(super) group_skew_revolutions: Option<Spanned<f64>>,
    #[serde(default)]
    pub(super) slips: Vec<Spanned<(u64, u32)>>,
    pub(super) idle_verify_ms: Option<Spanned<f64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawMapping {
    Cylinder,
    Serpentine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawForm {
    Table,
    LeeKatz,
    RuemmlerWilkes,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSeek {
    pub(super) form: RawForm,
    #[serde(default)]
    pub(super) measured: bool,
    pub(super) points_ms: Option<Vec<Spanned<(u32, f64)>>>,
    pub(super) single_ms: Option<Spanned<f64>>,
    pub(super) average_ms: Option<Spanned<f64>>,
    pub(super) full_ms: Option<Spanned<f64>>,
    pub(super) knee_cylinders: Option<Spanned<u32>>,
    pub(super) a_ms: Option<Spanned<f64>>,
    pub(super) b_ms: Option<Spanned<f64>>,
    pub(super) c_ms: Option<Spanned<f64>>,
    pub(super) e_ms: Option<Spanned<f64>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawOverhead {
    pub(super) read_hit_after_read_ms: Option<Spanned<f64>>,
    pub(super) read_hit_after_write_ms: Option<Spanned<f64>>,
    pub(super) read_miss_after_read_ms: Option<Spanned<f64>>,
    pub(super) read_miss_after_write_ms: Option<Spanned<f64>>,
    pub(super) write_hit_after_read_ms: Option<Spanned<f64>>,
    pub(super) write_hit_after_write_ms: Option<Spanned<f64>>,
    pub(super) write_miss_after_read_ms: Option<Spanned<f64>>,
    pub(super) write_miss_after_write_ms: Option<Spanned<f64>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawInterface {
    pub(super) sector_ns: Option<Spanned<u32>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBuffer {
    pub(super) segments: Spanned<u32>,
    pub(super) segment_sectors: Spanned<u32>,
    pub(super) read_ahead_sectors: Option<Spanned<u32>>,
    pub(super) read_ahead_until: ReadAheadUntil,
    #[serde(default = "yes")]
    pub(super) enabled: bool,
    #[serde(default)]
    pub(super) immediate_read: bool,
    #[serde(default)]
    pub(super) replacement: Replacement,
    #[serde(default)]
    pub(super) write_cache: bool,
    pub(super) write_segments: Option<Spanned<u32>>,
    pub(super) write_sectors: Option<Spanned<u32>>,
    pub(super) write_high: Option<Spanned<f64>>,
    pub(super) write_low: Option<Spanned<f64>>,
    pub(super) write_idle_ms: Option<Spanned<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawQueue {
    pub(super) depth: Spanned<u32>,
    pub(super) policy: QueuePolicy,
    pub(super) window: Option<Spanned<u32>>,
    pub(super) age_weight: Option<Spanned<f64>>,
    pub(super) max_wait_ms: Option<Spanned<f64>>,
    #[serde(default = "yes")]
    pub(super) flush_blocks: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawZone {
    pub(super) first_cylinder: Spanned<u32>,
    pub(super) last_cylinder: Spanned<u32>,
    pub(super) sectors_per_track: Spanned<u32>,
    pub(super) track_skew_sectors: Option<Spanned<f64>>,
    pub(super) change_skew_sectors: Option<Spanned<f64>>,
    pub(super) offset_sectors: Option<Spanned<f64>>,
    pub(super) offset_revolutions: Option<Spanned<f64>>,
    pub(super) empty_front_sectors: Option<Spanned<u64>>,
    pub(super) spare_sectors_per_run: Option<Spanned<u32>>,
    pub(super) spare_sectors: Option<Spanned<u64>>,
}
