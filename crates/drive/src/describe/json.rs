//! The serialised form of a description.
//!
//! The keys are those of `hoistway drives --json`. Their names and their order do not change.

use serde::Serialize;

use super::{BufferDescription, Description, FlashDescription, ZoneDescription};
use crate::command::SECTOR_BYTES;

/// The serialised form of a [`Description`]: sizes in bytes, and null for every figure of the
/// mechanics of a drive without a platter. MB are 10^6 bytes.
#[derive(Serialize)]
pub(super) struct DescriptionJson {
    name: String,
    what: String,
    source: String,
    licence: Option<String>,
    inputs: Vec<String>,
    capacity_bytes: u64,
    depth: u32,
    queue: Option<String>,
    faults: Vec<String>,
    rpm: Option<f64>,
    revolution_ms: Option<f64>,
    surfaces: Option<u32>,
    cylinders: Option<u32>,
    mapping: String,
    mean_seek_cylinders_ms: Option<f64>,
    mean_seek_sectors_ms: Option<f64>,
    single_seek_ms: Option<f64>,
    full_seek_ms: Option<f64>,
    head_switch_ms: Option<f64>,
    write_settle_ms: Option<f64>,
    zones: Vec<ZoneDescription>,
    buffer: Option<BufferJson>,
    flash: Option<FlashDescription>,
    interface_mb_s: Option<f64>,
    random_read_4k_ms: f64,
    random_read_4k_iops: f64,
    sequential_outer_mb_s: Option<f64>,
    sequential_inner_mb_s: Option<f64>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct BufferJson {
    enabled: bool,
    segments: u32,
    segment_bytes: u64,
    read_ahead_bytes: u64,
    read_ahead_until: String,
    immediate_read: bool,
    write_cache: bool,
    write_cache_bytes: u64,
}

impl From<Description> for DescriptionJson {
    fn from(of: Description) -> DescriptionJson {
        let disk = of.rpm.is_some();
        let figure = |value: f64| disk.then_some(value);
        DescriptionJson {
            capacity_bytes: of.capacity_sectors.saturating_mul(SECTOR_BYTES),
            depth: of.depth,
            queue: Some(of.queue).filter(|queue| !queue.is_empty()),
            faults: of.faults,
            rpm: of.rpm,
            revolution_ms: figure(of.revolution_ms),
            surfaces: disk.then_some(of.surfaces),
            cylinders: disk.then_some(of.cylinders),
            mean_seek_cylinders_ms: figure(of.mean_seek_cylinders_ms),
            mean_seek_sectors_ms: figure(of.mean_seek_sectors_ms),
            single_seek_ms: figure(of.single_seek_ms),
            full_seek_ms: figure(of.full_seek_ms),
            head_switch_ms: figure(of.head_switch_ms),
            write_settle_ms: figure(of.write_settle_ms),
            sequential_outer_mb_s: figure(of.sequential_outer_mb_s),
            sequential_inner_mb_s: figure(of.sequential_inner_mb_s),
            interface_mb_s: of.interface_mb_s,
            random_read_4k_ms: of.random_read_4k_ms,
            random_read_4k_iops: of.random_read_4k_iops,
            zones: of.zones,
            buffer: of.buffer.map(BufferJson::from),
            flash: of.flash,
            mapping: of.mapping,
            name: of.name,
            what: of.what,
            source: of.source,
            licence: of.licence,
            inputs: of.inputs,
            warnings: of.warnings,
        }
    }
}

impl From<BufferDescription> for BufferJson {
    fn from(of: BufferDescription) -> BufferJson {
        let bytes = |sectors: u32| u64::from(sectors) * SECTOR_BYTES;
        BufferJson {
            enabled: of.enabled,
            segments: of.segments,
            segment_bytes: bytes(of.segment_sectors),
            read_ahead_bytes: bytes(of.read_ahead_sectors),
            read_ahead_until: of.read_ahead_until,
            immediate_read: of.immediate_read,
            write_cache: of.write_cache_sectors.is_some(),
            write_cache_bytes: of.write_cache_sectors.unwrap_or(0) * SECTOR_BYTES,
        }
    }
}
