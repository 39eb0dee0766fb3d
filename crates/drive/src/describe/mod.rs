//! Descriptions of drives: figures that follow from a profile and can be checked by hand.

mod json;
mod list;
mod queue;

use crate::command::{Op, SECTOR_BYTES};
use crate::flash::greedy_write_amplification;
use crate::geometry::Geometry;
use crate::profile::{
    ArrayProfile, BucketProfile, BufferProfile, CloudProfile, DiskProfile, FlashProfile, Kind, Mapping, NullProfile,
    Precondition, Profile, ReadAheadUntil, SingleKind, UNIT_BYTES, ZoneProfile,
};
use crate::seek::SeekCurve;
pub use list::DriveList;

/// The figures of a drive that follow from its profile. Rates in MB/s are 10^6 bytes a second.
///
/// Its serialised form is an entry of the JSON document of `hoistway drives --json`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(into = "json::DescriptionJson")]
pub struct Description {
    /// The name of the profile.
    pub name: String,
    /// The drive that the profile models.
    pub what: String,
    /// The sources of the figures.
    pub source: String,
    /// The licence of the figures, if they were published under one.
    pub licence: Option<String>,
    /// Figures that are assumed, each with the reason.
    pub inputs: Vec<String>,
    /// Capacity in sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// The largest number of commands in flight.
    pub depth: u32,
    /// The rule of the command queue in words; empty without a queue.
    pub queue: String,
    /// The faults of the drive, one sentence each.
    pub faults: Vec<String>,
    /// Revolutions a minute; `None` for a drive without a platter.
    pub rpm: Option<f64>,
    /// Time of one revolution in ms; 0 without a platter.
    pub revolution_ms: f64,
    /// Number of surfaces, which is the number of heads.
    pub surfaces: u32,
    /// Number of cylinders, including those that belong to no zone.
    pub cylinders: u32,
    /// The order of tracks, or the structure of an array or a flash drive, in words.
    pub mapping: String,
    /// Mean seek in ms over pairs of uniform cylinders.
    pub mean_seek_cylinders_ms: f64,
    /// Mean seek in ms over pairs of uniform sectors. It is shorter, because outer tracks hold more
    /// sectors.
    pub mean_seek_sectors_ms: f64,
    /// Seek of one cylinder in ms.
    pub single_seek_ms: f64,
    /// Seek from the first to the last cylinder in ms.
    pub full_seek_ms: f64,
    /// Head switch in ms.
    pub head_switch_ms: f64,
    /// Additional settling time of a write in ms.
    pub write_settle_ms: f64,
    /// The zones, outermost first.
    pub zones: Vec<ZoneDescription>,
    /// The read-ahead buffer; `None` without one.
    pub buffer: Option<BufferDescription>,
    /// The parts of a flash drive; `None` for every other drive.
    pub flash: Option<FlashDescription>,
    /// Rate of the interface in MB/s; `None` if it needs no time.
    pub interface_mb_s: Option<f64>,
    /// Mean service time of a random 4 KiB read in ms, including overheads.
    pub random_read_4k_ms: f64,
    /// Random 4 KiB reads a second, one at a time.
    pub random_read_4k_iops: f64,
    /// Sequential rate of the outermost tracks in MB/s.
    pub sequential_outer_mb_s: f64,
    /// Sequential rate of the innermost tracks in MB/s.
    pub sequential_inner_mb_s: f64,
    /// Notes about the figures.
    pub warnings: Vec<String>,
}

/// The figures of one zone.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ZoneDescription {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder.
    pub last_cylinder: u32,
    /// First sector.
    pub first_sector: u64,
    /// Number of sectors with an address.
    pub sectors: u64,
    /// Sectors of a track.
    pub sectors_per_track: u32,
    /// Rate under the head in MB/s: sectors a track x 512 / revolution.
    pub media_mb_s: f64,
    /// Sequential rate in MB/s, including the skews.
    pub sustained_mb_s: f64,
}

/// The figures of the read-ahead buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferDescription {
    /// True if the buffer is switched on.
    pub enabled: bool,
    /// Number of segments.
    pub segments: u32,
    /// Sectors of a segment.
    pub segment_sectors: u32,
    /// The largest number of sectors that are read ahead.
    pub read_ahead_sectors: u32,
    /// The end of read-ahead in words.
    pub read_ahead_until: String,
    /// True if a read may begin with the sector that is under the head first.
    pub immediate_read: bool,
    /// Capacity of the write cache in sectors; `None` if writes complete on the media.
    pub write_cache_sectors: Option<u64>,
}

/// The parts of a flash drive and their times.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FlashDescription {
    /// Processing time of the controller for a command in us.
    #[serde(skip)]
    pub command_us: f64,
    /// Number of channels.
    pub channels: u32,
    /// Rate of a channel in MB/s.
    pub channel_mb_s: f64,
    /// Number of dies on all channels.
    pub dies: u32,
    /// Planes of a die, which read, program and erase together.
    pub planes: u32,
    /// Blocks of a plane.
    pub blocks_per_plane: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Page read times in us, one for each kind of page.
    pub page_read_us: Vec<f64>,
    /// Pages of a plane that are programmed together.
    pub wordline_pages: u32,
    /// Program time in us.
    pub program_us: f64,
    /// Block erase time in us.
    pub erase_us: f64,
    /// Time in us to suspend a program or an erase for reads; `None` if reads wait.
    pub suspend_us: Option<f64>,
    /// The spare share of the flash.
    pub spare_factor: f64,
    /// Write amplification under uniform random writes, from the closed form for greedy garbage
    /// collection.
    pub write_amplification: f64,
    /// The state at time 0 in words.
    pub precondition: String,
    /// Capacity of the write buffer in bytes. With 0 a write completes when it is programmed.
    pub buffer_bytes: u64,
    /// Time of a flush in us, in addition to emptying the buffer.
    pub flush_us: f64,
    /// True if the buffer survives a power loss. A flush then does not empty it.
    pub power_loss_protection: bool,
    /// True if other commands wait for a flush.
    pub flush_blocks_commands: bool,
    /// Simulated capacity in bytes. Higher addresses are folded into it.
    pub simulated_bytes: u64,
}

/// Derives the description of a drive from its profile.
pub fn describe(profile: &Profile) -> Description {
    let mut description = match profile.kind() {
        Kind::Single(single) => describe_single(single),
        Kind::Array(array) => describe_array(array),
    };
    description.name = profile.name.clone();
    description.what = profile.what.clone();
    description.source = profile.source.trim().to_string();
    description.licence = profile.licence.clone();
    description.inputs = profile.inputs.clone();
    description
}

fn describe_single(single: &SingleKind) -> Description {
    match single {
        SingleKind::Disk(disk) => describe_disk(disk),
        SingleKind::Flash(flash) => describe_flash(flash),
        SingleKind::Cloud(cloud) => describe_cloud(cloud),
        SingleKind::Null(null) => describe_null(null),
    }
}

fn describe_null(null: &NullProfile) -> Description {
    let service_ms = null.service_ns as f64 / 1e6;
    let iops = if null.service_ns == 0 { f64::INFINITY } else { 1000.0 / service_ms };
    let mut description = blank(null.capacity_sectors, null.depth);
    (description.random_read_4k_ms, description.random_read_4k_iops) = (service_ms, iops);
    description.mapping = "none".to_string();
    description
}

/// The service time of a 4 KiB read is the sum of command, page read, and transfer over channel and
/// link.
fn describe_flash(flash: &FlashProfile) -> Description {
    let random_ns = (flash.command_ns + flash.interface_ns + flash.channel.ns(8) + flash.link.ns(8)) as f64;
    let random_ms = (random_ns + flash.page_read_mean_ns()) / 1e6;
    let mut description = Description {
        mapping: format!("pages of {} bytes over {} dies in turn", flash.page_bytes, flash.dies),
        random_read_4k_ms: random_ms,
        random_read_4k_iops: if random_ms > 0.0 { 1000.0 / random_ms } else { f64::INFINITY },
        interface_mb_s: Some(flash.link.mb_s()),
        flash: Some(flash_parts(flash)),
        ..blank(flash.capacity_sectors, flash.depth)
    };
    if flash.slice_blocks.is_some() {
        let percent = flash.live_units() as f64 / flash.capacity_units() as f64 * 100.0;
        description.warnings.push(format!(
            "a slice of {percent:.1} % of the drive is simulated, and addresses are folded into it: a fresh drive collects garbage earlier, \
             and a small hot region is a greater part"
        ));
    }
    description
}

fn flash_parts(flash: &FlashProfile) -> FlashDescription {
    let us = |ns: u64| ns as f64 / 1000.0;
    FlashDescription {
        command_us: us(flash.command_ns),
        channels: flash.channels,
        channel_mb_s: flash.channel.mb_s(),
        dies: flash.dies,
        planes: flash.planes,
        blocks_per_plane: flash.blocks_per_plane,
        pages_per_block: flash.pages_per_block,
        page_bytes: flash.page_bytes,
        page_read_us: flash.page_read_ns.iter().map(|ns| us(*ns)).collect(),
        wordline_pages: flash.wordline_pages,
        program_us: us(flash.program_ns),
        erase_us: us(flash.erase_ns),
        suspend_us: flash.suspend_ns.map(us),
        spare_factor: flash.spare_factor,
        // The last digits of `exp` differ between machines.
        write_amplification: (greedy_write_amplification(flash.spare_factor) * 1e6).round() / 1e6,
        precondition: match flash.precondition {
            Precondition::Fresh => "fresh: never written",
            Precondition::Sequential => "sequential: written once in order",
            Precondition::Steady => "steady: written at random until the write amplification was constant",
        }
        .to_string(),
        buffer_bytes: u64::from(flash.buffer_units) * u64::from(UNIT_BYTES),
        flush_us: us(flash.flush.flush_ns),
        power_loss_protection: flash.flush.power_loss_protection,
        flush_blocks_commands: flash.flush.blocks_commands,
        simulated_bytes: flash.live_units() * u64::from(UNIT_BYTES),
    }
}

/// The service time of a 4 KiB read is its latency, or the interval of the token buckets if that is
/// longer.
fn describe_cloud(cloud: &CloudProfile) -> Description {
    let sigma = f64::from(cloud.latency.jitter_sigma_milli) / 1000.0;
    let jitter_ns = cloud.latency.jitter_median_ns as f64 * (sigma * sigma / 2.0).exp();
    let latency_ms = (cloud.latency.floor_ns as f64 + jitter_ns) / 1e6;
    let fastest = |bucket: &BucketProfile| bucket.ceiling_per_s.unwrap_or(bucket.rate_per_s) as f64;
    let random_ms = latency_ms.max(1000.0 / fastest(&cloud.operations));
    let account = |bucket: &BucketProfile, what: &str| {
        let burst =
            bucket.ceiling_per_s.map(|ceiling| format!(", {ceiling} while credits last, {} at most", bucket.depth));
        format!("{} {what} a second{}", bucket.rate_per_s, burst.unwrap_or_default())
    };
    Description {
        mapping: format!("{}; {}", account(&cloud.operations, "operations"), account(&cloud.bytes, "bytes")),
        random_read_4k_ms: random_ms,
        random_read_4k_iops: 1000.0 / random_ms,
        interface_mb_s: Some(fastest(&cloud.bytes) / 1e6),
        ..blank(cloud.capacity_sectors, cloud.depth)
    }
}

/// The service time of a 4 KiB read is the sum of controller, member and link. Sequential reads use
/// all columns up to the rate of the link.
fn describe_array(array: &ArrayProfile) -> Description {
    let members: Vec<Description> = array.members.iter().map(|member| describe_single(&member.kind)).collect();
    let mean_ms = members.iter().map(|member| member.random_read_4k_ms).sum::<f64>() / members.len().max(1) as f64;
    let link_ns = f64::from(array.link_sector_ns);
    let random_ms = mean_ms + (array.command_ns as f64 + 8.0 * link_ns) / 1e6;
    let interface_mb_s = (array.link_sector_ns > 0).then(|| SECTOR_BYTES as f64 * 1000.0 / link_ns);
    let columns = f64::from(array.columns());
    let sequential = |of: fn(&Description) -> f64| {
        let slowest = members.iter().map(of).fold(f64::INFINITY, f64::min);
        (slowest * columns).min(interface_mb_s.unwrap_or(f64::INFINITY))
    };
    Description {
        mapping: array_mapping(array),
        random_read_4k_ms: random_ms,
        random_read_4k_iops: 1000.0 / random_ms,
        interface_mb_s,
        sequential_outer_mb_s: sequential(|member| member.sequential_outer_mb_s),
        sequential_inner_mb_s: sequential(|member| member.sequential_inner_mb_s),
        ..blank(array.capacity_sectors(), array.depth)
    }
}

fn array_mapping(array: &ArrayProfile) -> String {
    let mut names: Vec<(&str, u32)> = Vec::new();
    for member in &array.members {
        match names.last_mut() {
            Some((name, count)) if *name == member.name => *count += 1,
            _ => names.push((&member.name, 1)),
        }
    }
    let names: Vec<String> = names.iter().map(|(name, count)| format!("{count} x {name}")).collect();
    let mut parts = vec![names.join(", ")];
    if array.columns() > 1 {
        parts.push(format!("striped in chunks of {} KiB", f64::from(array.chunk_sectors) / 2.0));
    }
    if array.copies > 1 {
        parts.push(format!("{} copies of each sector", array.copies));
    }
    if let Some(cache) = &array.cache {
        let battery = if cache.battery { "with" } else { "without" };
        parts.push(format!("{} MiB of write cache {battery} a battery", cache.sectors as f64 / 2048.0));
    }
    parts.join("; ")
}

fn describe_disk(disk: &DiskProfile) -> Description {
    let seek_sectors_ms = mean_seek_ms(disk, |zone| f64::from(zone.sectors_per_track));
    let revolution_ms = disk.revolution_ns / 1e6;
    let zones = zones(disk);
    let interface_ns = f64::from(disk.interface_sector_ns);
    let interface_mb_s = (disk.interface_sector_ns > 0).then(|| SECTOR_BYTES as f64 * 1000.0 / interface_ns);
    let sequential = |zone: Option<&ZoneDescription>| {
        let media = zone.map_or(0.0, |zone| zone.sustained_mb_s);
        interface_mb_s.map_or(media, |interface| interface.min(media))
    };
    let random_ms = seek_sectors_ms + revolution_ms / 2.0 + transfer_ms(disk, 8.0) + overhead_ms(disk);
    Description {
        rpm: Some(6e10 / disk.revolution_ns),
        revolution_ms,
        surfaces: disk.surfaces,
        cylinders: disk.cylinders,
        mapping: match disk.mapping {
            Mapping::Cylinder => "all surfaces of a cylinder, then the next cylinder".to_string(),
            Mapping::Serpentine { run_cylinders } => {
                format!("serpentine: {run_cylinders} cylinders on one surface, then back on the next")
            }
        },
        mean_seek_cylinders_ms: mean_seek_ms(disk, |_| 1.0),
        mean_seek_sectors_ms: seek_sectors_ms,
        single_seek_ms: disk.seek.time_ms(1, disk.cylinders),
        full_seek_ms: disk.seek.time_ms(disk.cylinders - 1, disk.cylinders),
        head_switch_ms: disk.head_switch_ms,
        write_settle_ms: disk.write_settle_ms,
        sequential_outer_mb_s: sequential(zones.first()),
        sequential_inner_mb_s: sequential(zones.last()),
        zones,
        buffer: (disk.buffer.segments > 0).then(|| buffer(&disk.buffer)),
        interface_mb_s,
        random_read_4k_ms: random_ms,
        random_read_4k_iops: 1000.0 / random_ms,
        warnings: warnings(disk),
        queue: queue::queue(&disk.queue),
        faults: queue::faults(&disk.faults),
        ..blank(disk.capacity_sectors, disk.queue.depth)
    }
}

fn blank(capacity_sectors: u64, depth: u32) -> Description {
    Description {
        name: String::new(),
        what: String::new(),
        source: String::new(),
        licence: None,
        inputs: Vec::new(),
        capacity_sectors,
        depth,
        queue: String::new(),
        faults: Vec::new(),
        rpm: None,
        revolution_ms: 0.0,
        surfaces: 0,
        cylinders: 0,
        mapping: String::new(),
        mean_seek_cylinders_ms: 0.0,
        mean_seek_sectors_ms: 0.0,
        single_seek_ms: 0.0,
        full_seek_ms: 0.0,
        head_switch_ms: 0.0,
        write_settle_ms: 0.0,
        zones: Vec::new(),
        buffer: None,
        flash: None,
        interface_mb_s: None,
        random_read_4k_ms: 0.0,
        random_read_4k_iops: 0.0,
        sequential_outer_mb_s: 0.0,
        sequential_inner_mb_s: 0.0,
        warnings: Vec::new(),
    }
}

fn zones(disk: &DiskProfile) -> Vec<ZoneDescription> {
    let bounds = Geometry::new(disk).bounds();
    let describe = |(zone, (first_sector, end)): (&ZoneProfile, (u64, u64))| {
        let per_revolution = f64::from(zone.sectors_per_track) * SECTOR_BYTES as f64;
        ZoneDescription {
            first_cylinder: zone.first_cylinder,
            last_cylinder: zone.last_cylinder,
            first_sector,
            sectors: end - first_sector,
            sectors_per_track: zone.sectors_per_track,
            media_mb_s: per_revolution * 1000.0 / disk.revolution_ns,
            sustained_mb_s: sustained_mb_s(disk, zone),
        }
    };
    disk.zones.iter().zip(bounds).map(describe).collect()
}

/// Sequential rate over a cylinder or a group of runs: its sectors over its revolutions and skews.
/// A skew that is shorter than its switch costs another revolution.
fn sustained_mb_s(disk: &DiskProfile, zone: &ZoneProfile) -> f64 {
    let (per_run, runs) = match disk.mapping {
        Mapping::Cylinder => (f64::from(disk.surfaces), 1.0),
        Mapping::Serpentine { run_cylinders } => (f64::from(run_cylinders), f64::from(disk.surfaces)),
    };
    let revolutions = |ms: f64| ms * 1e6 / disk.revolution_ns;
    let seek = |distance: u32| revolutions(disk.seek.time_ms(distance, disk.cylinders));
    let head_switch = revolutions(disk.head_switch_ms);
    let (track, change, group) = match disk.mapping {
        Mapping::Cylinder => (head_switch, seek(1).max(head_switch), 0.0),
        Mapping::Serpentine { run_cylinders } => (seek(1), head_switch, seek(run_cylinders)),
    };
    let wait = |skew: f64, needed: f64| if needed <= skew + 1e-9 { skew } else { skew + (needed - skew).ceil() };
    let spare = f64::from(zone.spare_sectors_per_run) / f64::from(zone.sectors_per_track);
    let changes = match disk.mapping {
        Mapping::Cylinder => wait(zone.change_skew_revolutions + spare, change) - spare,
        Mapping::Serpentine { .. } => {
            (runs - 1.0) * (wait(zone.change_skew_revolutions + spare, change) - spare)
                + wait(zone.group_skew_revolutions + spare, group)
                - spare
        }
    };
    let total = runs * per_run + runs * (per_run - 1.0) * wait(zone.track_skew_revolutions, track) + changes;
    let sectors = runs * (per_run * f64::from(zone.sectors_per_track) - f64::from(zone.spare_sectors_per_run));
    sectors * SECTOR_BYTES as f64 * 1000.0 / (total * disk.revolution_ns)
}

/// The mean seek over pairs of cylinders with density `weight`.
///
/// The weight of a distance is the autocorrelation of the density over the cylinders. The density
/// is constant within a zone, so its second difference has impulses only at the differences of zone
/// borders, and two running sums give every weight.
fn mean_seek_ms(disk: &DiskProfile, weight: impl Fn(&ZoneProfile) -> f64) -> f64 {
    let mut jumps: Vec<(u32, f64)> = Vec::new();
    for zone in &disk.zones {
        jumps.push((zone.first_cylinder, weight(zone)));
        jumps.push((zone.last_cylinder + 1, -weight(zone)));
    }
    let mut impulses = vec![0.0; disk.cylinders as usize + 1];
    for (from, low) in &jumps {
        for (to, high) in jumps.iter().filter(|(to, _)| to >= from) {
            if let Some(impulse) = impulses.get_mut((to - from) as usize) {
                *impulse -= low * high;
            }
        }
    }
    // The distances fall from the longest, with weight 0. Distances other than 0 occur in both
    // directions.
    let (mut slope, mut weight_here, mut sum, mut total) = (0.0, 0.0, 0.0, 0.0);
    for distance in (0..disk.cylinders).rev() {
        slope += impulses.get(distance as usize + 1).copied().unwrap_or(0.0);
        weight_here += slope;
        let pairs = if distance == 0 { weight_here } else { 2.0 * weight_here };
        sum += pairs * disk.seek.time_ms(distance, disk.cylinders).max(0.0);
        total += pairs;
    }
    if total > 0.0 { sum / total } else { 0.0 }
}

/// Mean time in ms for `sectors` to pass under the head, over uniform sectors, including the skews
/// of the tracks crossed.
fn transfer_ms(disk: &DiskProfile, sectors: f64) -> f64 {
    let (mut sum, mut total) = (0.0, 0.0);
    for zone in &disk.zones {
        let mapped = zone.mapped_sectors(disk.surfaces, disk.mapping).unwrap_or(0) as f64;
        let crossing = (sectors - 1.0) * zone.track_skew_revolutions;
        sum += mapped * (sectors + crossing) / f64::from(zone.sectors_per_track) * disk.revolution_ns / 1e6;
        total += mapped;
    }
    if total > 0.0 { sum / total } else { 0.0 }
}

/// Time in ms of a read miss outside the mechanics: the command, and the transfer of the last
/// sector to the host.
fn overhead_ms(disk: &DiskProfile) -> f64 {
    let passing_ns = transfer_ms(disk, 1.0) * 1e6;
    let interface_ns = f64::from(disk.interface_sector_ns);
    // A slow interface is the bottleneck for 7 of 8 sectors.
    let behind_ns = if disk.store_and_forward {
        8.0 * interface_ns
    } else {
        interface_ns + 7.0 * (interface_ns - passing_ns).max(0.0)
    };
    (disk.overheads.miss(Op::Read, Op::Read) as f64 + behind_ns) / 1e6
}

fn buffer(buffer: &BufferProfile) -> BufferDescription {
    let until = match buffer.read_ahead_until {
        ReadAheadUntil::Segment => "the segment is full",
        ReadAheadUntil::Track => "the end of the track",
        ReadAheadUntil::NextTrack => "the end of the next track",
        ReadAheadUntil::Cylinder => "the end of the cylinder",
    };
    BufferDescription {
        enabled: buffer.enabled,
        segments: buffer.segments,
        segment_sectors: buffer.segment_sectors,
        read_ahead_sectors: buffer.read_ahead_sectors,
        read_ahead_until: until.to_string(),
        immediate_read: buffer.immediate_read,
        write_cache_sectors: buffer.write_cache.as_ref().map(|cache| cache.sectors),
    }
}

fn warnings(disk: &DiskProfile) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(distance) = disk.seek.first_fall(disk.cylinders) {
        warnings.push(format!("the seek table falls at distance {distance}, as measured"));
    }
    if let SeekCurve::Table(points) = &disk.seek {
        match points.last() {
            Some(last) if last.0 + 1 < disk.cylinders => {
                warnings.push(format!("the seek table ends at distance {}; longer seeks extrapolate it", last.0));
            }
            Some(last) if last.0 >= disk.cylinders => {
                warnings.push(format!("the seek table extends to distance {}, beyond the disk", last.0));
            }
            _ => {}
        }
    }
    let interface_ns = f64::from(disk.interface_sector_ns);
    let fastest = disk.zones.iter().map(|zone| disk.revolution_ns / f64::from(zone.sectors_per_track));
    if fastest.fold(f64::INFINITY, f64::min) < interface_ns {
        let rate = SECTOR_BYTES as f64 * 1000.0 / interface_ns;
        warnings.push(format!("the interface, {rate:.1} MB/s, is slower than the media and sets the sequential rate"));
    }
    lost_revolutions(disk, &mut warnings);
    warnings
}

/// Warns of every skew that is shorter than its switch, because each crossing loses a revolution.
fn lost_revolutions(disk: &DiskProfile, warnings: &mut Vec<String>) {
    let cylinder_ms = disk.seek.time_ms(1, disk.cylinders).max(disk.head_switch_ms);
    let (track_ms, change_ms) = match disk.mapping {
        Mapping::Cylinder => (disk.head_switch_ms, cylinder_ms),
        Mapping::Serpentine { .. } => (disk.seek.time_ms(1, disk.cylinders), disk.head_switch_ms),
    };
    let revolution_ms = disk.revolution_ns / 1e6;
    let mut losing = Vec::new();
    for (index, zone) in disk.zones.iter().enumerate() {
        let skew_ms = zone.track_skew_revolutions * revolution_ms;
        let spare = f64::from(zone.spare_sectors_per_run) / f64::from(zone.sectors_per_track);
        let change_skew_ms = (zone.change_skew_revolutions + spare) * revolution_ms;
        if skew_ms + 1e-6 < track_ms || change_skew_ms + 1e-6 < change_ms {
            losing.push(index);
        }
    }
    if let (Some(first), Some(last)) = (losing.first(), losing.last()) {
        warnings.push(format!(
            "a skew is shorter than its switch in {} zones ({first} to {last}): each crossing loses a revolution",
            losing.len()
        ));
    }
}
