//! The tables of a disk before their checks.

use serde::Deserialize;
use toml::Spanned;

use super::super::{QueuePolicy, ReadAheadUntil, ReadAheadWhen, Replacement};
use super::table::table;

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

fn yes() -> bool {
    true
}

table! {
    /// A disk.
    RawDisk, "disk" {
        /// Revolutions a minute.
        rpm: Option<Spanned<f64>> = "60 to 600000", "this or `revolution_ns`";
        /// The time of a revolution.
        revolution_ns: Option<Spanned<f64>> = "100000 to 1000000000", "this or `rpm`";
        /// The angle under the head at time 0.
        phase_revolutions: Option<Spanned<f64>> = "0 or more and below 1", "0";
        /// Surfaces with data.
        surfaces: Spanned<u32> = "1 to 255", "required";
        /// Cylinders, including those in no zone.
        cylinders: Spanned<u32> = "1 to 16777216", "required";
        /// Cylinders in no zone.
        spare_cylinders: Option<Spanned<u32>> = "the cylinders in no zone", "0";
        /// Sectors with an address: those of the zones without the spare ones.
        capacity_sectors: Spanned<u64> = "the sum of the zones", "required";
        /// The order of the tracks. Cylinder: all surfaces of a cylinder, then the next.
        /// Serpentine: a run of cylinders on one surface, then back on the next surface.
        mapping: RawMapping = "`\"cylinder\"`, `\"serpentine\"`", "required";
        /// Cylinders in a run (serpentine).
        run_cylinders: Option<Spanned<u32>> = "1 to 65535", "required by `\"serpentine\"`";
        /// The head switch.
        head_switch_ms: Spanned<f64> = "0 to 4000", "required";
        /// Additional settling time of a write after a seek or a head switch.
        write_settle_ms: Option<Spanned<f64>> = "-4000 to 4000", "0";
        /// The skew from track to track; a zone can have its own.
        track_skew_revolutions: Option<Spanned<f64>> = "0 or more and below 1", "0";
        /// The skew from cylinder to cylinder, or from run to run (serpentine).
        change_skew_revolutions: Option<Spanned<f64>> = "0 or more and below 1", "the track's";
        /// The skew from one group of runs over all surfaces to the next (serpentine).
        group_skew_revolutions: Option<Spanned<f64>> = "0 or more and below 1", "the change's";
        /// At each of these addresses this many sectors are slipped.
        #[serde(default)]
        slips: Vec<Spanned<(u64, u32)>> = "a list of `[sector, count]`", "none";
        /// The idle time after which the drive verifies written sectors.
        idle_verify_ms: Option<Spanned<f64>> = "0 to 4000", "never";
        /// Read head and write head are side by side, so the arm moves between a read and a write.
        #[serde(default)]
        heads_apart: bool = "`true`, `false`", "`false`";
    }
}

table! {
    /// The seek curve of a disk.
    RawSeek, "seek" {
        /// The form of the curve. Each form needs its own keys among those below.
        form: RawForm = "`\"table\"`, `\"lee-katz\"`, `\"ruemmler-wilkes\"`", "required";
        /// The table is measured and may fall.
        #[serde(default)]
        measured: bool = "`true`, `false`", "`false`";
        /// Table: seek times; distances rise from 1, with straight lines between the points.
        points_ms: Option<Vec<Spanned<(u32, f64)>>> = "a list of `[cylinders, ms]`", "required by `\"table\"`";
        /// Lee and Katz: one cylinder.
        single_ms: Option<Spanned<f64>> = "-4000 to 4000", "required by `\"lee-katz\"`";
        /// Lee and Katz: the mean over pairs of cylinders.
        average_ms: Option<Spanned<f64>> = "-4000 to 4000", "required by `\"lee-katz\"`";
        /// Lee and Katz: the full stroke.
        full_ms: Option<Spanned<f64>> = "-4000 to 4000", "required by `\"lee-katz\"`";
        /// Ruemmler and Wilkes: `a + b sqrt(d)` below this distance, `c + e d` from there.
        knee_cylinders: Option<Spanned<u32>> = "1 to 16777216", "required by `\"ruemmler-wilkes\"`";
        /// Ruemmler and Wilkes: `a`.
        a_ms: Option<Spanned<f64>> = "-4000 to 4000", "required by `\"ruemmler-wilkes\"`";
        /// Ruemmler and Wilkes: `b`.
        b_ms: Option<Spanned<f64>> = "-4000 to 4000", "required by `\"ruemmler-wilkes\"`";
        /// Ruemmler and Wilkes: `c`.
        c_ms: Option<Spanned<f64>> = "-4000 to 4000", "required by `\"ruemmler-wilkes\"`";
        /// Ruemmler and Wilkes: `e`.
        e_ms: Option<Spanned<f64>> = "-4000 to 4000", "required by `\"ruemmler-wilkes\"`";
    }
}

table! {
    /// A zone of a disk.
    RawZone, "[zone]" {
        /// The first cylinder.
        first_cylinder: Spanned<u32> = "behind the previous zone", "required";
        /// The last cylinder.
        last_cylinder: Spanned<u32> = "`first_cylinder` or more", "required";
        /// Sectors of a track.
        sectors_per_track: Spanned<u32> = "2 to 65535", "required";
        /// The skew from track to track.
        track_skew_sectors: Option<Spanned<f64>> = "0 to `sectors_per_track`", "the disk's";
        /// The skew from cylinder to cylinder, or from run to run.
        change_skew_sectors: Option<Spanned<f64>> = "0 to `sectors_per_track`", "the disk's";
        /// The angle of the first track.
        offset_sectors: Option<Spanned<f64>> = "0 to `sectors_per_track`", "continues the previous zone";
        /// The same in revolutions.
        offset_revolutions: Option<Spanned<f64>> = "0 or more and below 1", "continues the previous zone";
        /// Sectors without an address at the beginning.
        empty_front_sectors: Option<Spanned<u64>> = "fewer than the zone has", "0";
        /// Spare sectors at the end of each cylinder or run.
        spare_sectors_per_run: Option<Spanned<u32>> = "0 to `sectors_per_track` - 1", "0";
        /// Spare sectors at the end of the zone.
        spare_sectors: Option<Spanned<u64>> = "fewer than the zone has", "0";
    }
}

table! {
    /// The buffer serves a hit, the media serve a miss. On some drives the overhead depends on the
    /// previous command.
    RawOverhead [Default], "overhead" {
        /// A read hit after a read.
        read_hit_after_read_ms: Option<Spanned<f64>> = "0 to 4000", "0";
        /// A read hit after a write.
        read_hit_after_write_ms: Option<Spanned<f64>> = "0 to 4000", "0";
        /// A read miss after a read.
        read_miss_after_read_ms: Option<Spanned<f64>> = "0 to 4000", "0";
        /// A read miss after a write.
        read_miss_after_write_ms: Option<Spanned<f64>> = "0 to 4000", "0";
        /// A write into the cache after a read.
        write_hit_after_read_ms: Option<Spanned<f64>> = "0 to 4000", "0";
        /// A write into the cache after a write.
        write_hit_after_write_ms: Option<Spanned<f64>> = "0 to 4000", "0";
        /// A write to the media after a read.
        write_miss_after_read_ms: Option<Spanned<f64>> = "0 to 4000", "0";
        /// A write to the media after a write.
        write_miss_after_write_ms: Option<Spanned<f64>> = "0 to 4000", "0";
    }
}

table! {
    /// The interface of a disk.
    RawInterface [Default], "interface" {
        /// The transfer time of a sector.
        sector_ns: Option<Spanned<u32>> = "0 to 1000000000", "0";
        /// Data of a read cross the interface after the last sector was read, and not while sectors
        /// are read.
        #[serde(default)]
        store_and_forward: bool = "`true`, `false`", "`false`";
    }
}

table! {
    /// The read-ahead buffer and write cache of a disk.
    RawBuffer, "buffer" {
        /// The number of segments.
        segments: Spanned<u32> = "1 to 65536", "required";
        /// The sectors of a segment.
        segment_sectors: Spanned<u32> = "1 to 16777216", "required";
        /// The largest number of sectors read ahead.
        read_ahead_sectors: Option<Spanned<u32>> = "0 to 16777216", "`segment_sectors`";
        /// Sectors that are read ahead even if another command waits for the arm: the minimum
        /// pre-fetch of SCSI's caching mode page (`sdparm --get MIPF`), with which disks usually
        /// ship as 0.
        read_ahead_min_sectors: Option<Spanned<u32>> = "0 to `read_ahead_sectors`, at most a segment", "0";
        /// The end of read-ahead.
        read_ahead_until: ReadAheadUntil = "`\"segment\"`, `\"track\"`, `\"next-track\"`, `\"cylinder\"`", "required";
        /// The reads that start read-ahead: all, or those that continue a segment.
        #[serde(default)]
        read_ahead_when: ReadAheadWhen = "`\"always\"`, `\"sequential\"`", "`\"always\"`";
        /// The buffer is switched on.
        #[serde(default = "yes")]
        enabled: bool = "`true`, `false`", "`true`";
        /// A read may begin in the middle of its sectors.
        #[serde(default)]
        immediate_read: bool = "`true`, `false`", "`false`";
        /// The segment that is replaced: the least recently used one, or one after the other.
        #[serde(default)]
        replacement: Replacement = "`\"lru\"`, `\"round-robin\"`", "`\"lru\"`";
        /// Sectors stay readable after the host has read them.
        #[serde(default = "yes")]
        keep_read: bool = "`true`, `false`", "`true`";
        /// Sectors that were read stay readable after a write of other sectors.
        #[serde(default = "yes")]
        keep_after_write: bool = "`true`, `false`", "`true`";
        /// Written sectors are read from the cache.
        #[serde(default = "yes")]
        keep_written: bool = "`true`, `false`", "`true`";
        /// Writes complete when their data are in the buffer.
        #[serde(default)]
        write_cache: bool = "`true`, `false`", "`false`";
        /// Segments for writes, each for one run of adjacent sectors; this or `write_sectors`.
        write_segments: Option<Spanned<u32>> = "1 to 65536", "`segments`";
        /// The size of the write cache in sectors, in any number of runs.
        write_sectors: Option<Spanned<u32>> = "1 to 16777216", "those of `write_segments`";
        /// The share of the sectors at which write-back starts even if commands wait.
        write_high: Option<Spanned<f64>> = "0 to 1", "0.75";
        /// The share at which it ends.
        write_low: Option<Spanned<f64>> = "0 to `write_high`", "0.25";
        /// The idle time after which write-back starts.
        write_idle_ms: Option<Spanned<f64>> = "0 to 4000", "0";
    }
}

table! {
    /// The command queue of a disk. `window`, `age_weight` and `max_wait_ms` belong to `"satf"`.
    RawQueue, "queue" {
        /// The largest number of commands in flight.
        depth: Spanned<u32> = "1 to 256", "required";
        /// The order of commands: that of their arrival, or shortest access time first.
        policy: QueuePolicy = "`\"fifo\"`, `\"satf\"`", "required";
        /// The number of the oldest commands among which the drive chooses.
        window: Option<Spanned<u32>> = "1 to `depth`", "`depth`";
        /// The reduction of the access time for each unit of waiting time.
        age_weight: Option<Spanned<f64>> = "0 to 1000", "0";
        /// The waiting time after which the oldest command is first.
        max_wait_ms: Option<Spanned<f64>> = "0 to 4000", "never";
        /// A flush blocks later commands, as in SATA.
        #[serde(default = "yes")]
        flush_blocks: bool = "`true`, `false`", "`true`";
    }
}
