//! Probes: measurements of a drive from outside, with commands and a clock.
//!
//! The probes do not read the profile. They use the methods by which real drives are measured
//! (Worthington, Ganger, Patt & Wilkes, "On-line extraction of SCSI disk drive parameters",
//! SIGMETRICS 1995; Schindler & Ganger, "Automated disk drive characterization", CMU-CS-99-176),
//! and they overwrite the content of the drive.
//!
//! ```
//! use hoistway_drive::Profile;
//! use hoistway_drive::probe::{Probe, ProbeReport};
//! let profile = Profile::builtin("slide-7200").expect("a built-in profile");
//! let report = ProbeReport::measure(&profile, &[Probe::Rotation])?;
//! let rotation = report.findings.rotation.expect("a disk rotates");
//! assert!((rotation.revolution_ns - 60e9 / 7200.0).abs() < 1000.0);
//! # Ok::<(), hoistway_drive::probe::ProbeError>(())
//! ```

mod cache;
mod depth;
mod flash;
mod rotation;
mod seek;
mod under_test;
mod zones;

use serde::Serialize;

use crate::command::AccessError;
use crate::drive::Drive;
use crate::profile::Profile;
use under_test::DriveUnderTest;

/// A kind of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// The time of a revolution, from repeated writes of one sector.
    Rotation,
    /// Positioning time by distance. It measures the rotation first.
    Seek,
    /// Sequential rate along the address space.
    Zones,
    /// Operations a second and latency by commands in flight.
    Depth,
    /// Rereads from memory, and bursts of writes.
    Cache,
    /// Rate and latency by command size.
    Sizes,
    /// The rate of random writes to a full drive over time.
    Overwrite,
}

/// The results of probes. A result that was not requested, or that does not apply, is `None`;
/// `notes` may give the reason.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Findings {
    /// The rotation of the platter.
    pub rotation: Option<Rotation>,
    /// The movements of the arm.
    pub seek: Option<Seek>,
    /// Sequential rate along the address space, by rising sector.
    pub zones: Option<Vec<ZonePoint>>,
    /// Random reads by rising number of commands in flight.
    pub depth: Option<Vec<DepthPoint>>,
    /// The memory of the drive.
    pub cache: Option<Cache>,
    /// Rate and latency by rising size.
    pub sizes: Option<Vec<SizePoint>>,
    /// The rate of random writes over time.
    pub overwrite: Option<Overwrite>,
    /// Number of failed commands.
    pub failures: u64,
    /// Sectors that could not be read or written, in the order of discovery; at most
    /// [`FAILURES_KEPT`].
    pub failed_sectors: Vec<u64>,
    /// Notes about the results: measurements that failed or ended early.
    pub notes: Vec<String>,
}

/// The findings of the probes of one drive.
///
/// Its serialised form is the JSON document of `hoistway drives --probe --json`. A finding that was
/// not requested, or that does not exist, is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProbeReport {
    /// The version of the JSON form: 1.
    pub schema: u32,
    /// The name of the drive's profile.
    pub drive: String,
    /// The findings.
    #[serde(flatten)]
    pub findings: Findings,
}

impl ProbeReport {
    /// Builds the drive of `profile` and runs `probes`, or [`Probe::recommended`] if the list is
    /// empty.
    ///
    /// # Errors
    /// Those of [`probe`].
    pub fn measure(profile: &Profile, probes: &[Probe]) -> Result<ProbeReport, ProbeError> {
        let drive = Drive::new(profile);
        let findings =
            if probes.is_empty() { probe(&drive, Probe::recommended(profile))? } else { probe(&drive, probes)? };
        Ok(ProbeReport { schema: 1, drive: profile.name().to_owned(), findings })
    }

    /// The notes of the probes, followed by a sentence about failed commands if there are any.
    pub fn notes(&self) -> Vec<String> {
        let Findings { failures, failed_sectors, notes, .. } = &self.findings;
        let mut notes = notes.clone();
        if *failures > 0 {
            let sectors: Vec<String> = failed_sectors.iter().map(u64::to_string).collect();
            let more = if *failures as usize > sectors.len() { ", among others" } else { "" };
            notes.push(format!("{failures} commands failed, at the sectors {}{more}", sectors.join(", ")));
        }
        notes
    }
}

/// The largest number of failed sectors that are listed.
pub const FAILURES_KEPT: usize = 64;

/// The rotation of a platter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rotation {
    /// Time of a revolution in ns.
    pub revolution_ns: f64,
    /// The largest deviation of a completion from a multiple of the revolution, in ns.
    pub residue_ns: f64,
    /// Sectors of the first track, from the angle between adjacent sectors.
    pub first_track_sectors: u32,
}

/// Positioning times without rotational latency.
///
/// The time runs from the command to the first moment at which the target can be written, minus the
/// time of a write of the same sector without a seek. It includes the settling of a write.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seek {
    /// Number of surfaces; `None` if the tracks do not show them.
    pub surfaces: Option<u32>,
    /// Time to another surface of the same cylinder in ns; `None` if the next track is on the next
    /// cylinder.
    pub head_switch_ns: Option<u64>,
    /// Time to the next cylinder in ns.
    pub single_ns: u64,
    /// Time to the last sectors in ns.
    pub full_ns: u64,
    /// Times to the tracks after the first, in their order.
    pub tracks: Vec<SeekPoint>,
    /// Times to sectors at growing distances from the first track.
    pub curve: Vec<SeekPoint>,
}

/// The positioning time of one distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "(u64, u64)")]
pub struct SeekPoint {
    /// Distance in sectors.
    pub distance_sectors: u64,
    /// Positioning time in ns.
    pub positioning_ns: u64,
}

impl From<SeekPoint> for (u64, u64) {
    fn from(point: SeekPoint) -> (u64, u64) {
        (point.distance_sectors, point.positioning_ns)
    }
}

/// The sequential rate at one position.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ZonePoint {
    /// The first sector of the read.
    pub sector: u64,
    /// Rate in MB/s (10^6 bytes a second).
    pub mb_s: f64,
}

/// Random reads of 4 KiB at one queue depth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DepthPoint {
    /// Commands in flight.
    pub depth: u32,
    /// Reads a second.
    pub iops: f64,
    /// Mean latency in ns.
    pub mean_ns: f64,
    /// The 99th percentile of the latency in ns.
    pub p99_ns: u64,
}

/// The memory of a drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cache {
    /// The largest span in bytes that is reread from memory; `None` if memory makes no difference.
    pub read_bytes: Option<u64>,
    /// The largest span in bytes that is read from memory after its first 4 KiB alone were read;
    /// `None` without read-ahead.
    pub ahead_bytes: Option<u64>,
    /// The number of distant reads that memory holds together; `None` for none.
    pub segments: Option<u32>,
    /// The size in bytes of a burst of random writes before one has to wait, including write-back
    /// during the burst.
    ///
    /// [`BURST_BYTES_MAX`] if none has to wait. `None` if such writes take as long as writes to the
    /// media.
    pub write_bytes: Option<u64>,
    /// Reads of 4 KiB out of order in spans of growing size.
    pub spans: Vec<SpanPoint>,
}

/// The largest burst of writes in bytes.
pub const BURST_BYTES_MAX: u64 = 512 << 20;

/// A span that is read out of order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SpanPoint {
    /// Size of the span in bytes.
    pub bytes: u64,
    /// Mean latency of a read in ns after the span was read in order.
    pub again_ns: f64,
    /// Mean latency of a read in ns after a pause since the first 4 KiB were read.
    pub ahead_ns: f64,
}

/// Commands of one size at random positions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SizePoint {
    /// Size in bytes.
    pub bytes: u64,
    /// Mean latency in ns of reads, one at a time.
    pub read_ns: f64,
    /// Rate of reads at full depth in MB/s.
    pub read_mb_s: f64,
    /// Mean latency in ns of writes, one at a time.
    pub write_ns: f64,
    /// Rate of writes at full depth in MB/s.
    pub write_mb_s: f64,
}

/// Random writes of 4 KiB at full depth to a drive that was filled sequentially.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overwrite {
    /// Bytes written at random when the rate fell below 70 % of the initial rate; `None` if it did
    /// not.
    pub onset_bytes: Option<u64>,
    /// The rate of the last tenth of the writes in MB/s.
    pub steady_mb_s: f64,
    /// The rate over time.
    pub windows: Vec<OverwritePoint>,
}

/// A window of the random writes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(into = "(u64, f64)")]
pub struct OverwritePoint {
    /// Bytes written at random up to the end of the window.
    pub bytes: u64,
    /// Rate in MB/s.
    pub mb_s: f64,
}

impl From<OverwritePoint> for (u64, f64) {
    fn from(point: OverwritePoint) -> (u64, f64) {
        (point.bytes, point.mb_s)
    }
}

/// Reasons for which a drive cannot be probed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The drive refused a command.
    #[error("{probe}: the drive refused a command: {source}")]
    Refused {
        /// The name of the probe.
        probe: &'static str,
        /// The reason.
        source: AccessError,
    },
    /// Too many sectors of the drive cannot be read or written.
    #[error("{probe}: {failures} commands failed, the last at sector {sector}: the drive is too damaged to be probed")]
    Damaged {
        /// The name of the probe.
        probe: &'static str,
        /// Number of failed commands.
        failures: u64,
        /// The sector of the last failure.
        sector: u64,
    },
    /// The drive never completed a command.
    #[error("{probe}: the drive never completed a command: it has not responded since {:.3} ms on its clock", *since_ns as f64 / 1e6)]
    Silent {
        /// The name of the probe.
        probe: &'static str,
        /// The time of the last completion on the clock of the drive.
        since_ns: u64,
    },
    /// The drive is too small for a probe.
    #[error("{probe}: the drive has {capacity_sectors} sectors: at least {needed} are needed")]
    TooSmall {
        /// The name of the probe.
        probe: &'static str,
        /// Capacity of the drive in sectors.
        capacity_sectors: u64,
        /// Sectors that the probe needs.
        needed: u64,
    },
}

impl Probe {
    /// All probes in the order in which they run.
    pub const ALL: &[Probe] =
        &[Probe::Rotation, Probe::Seek, Probe::Zones, Probe::Depth, Probe::Cache, Probe::Sizes, Probe::Overwrite];

    /// The name of the probe: `rotation`, `seek`, `zones`, `depth`, `cache`, `sizes` or
    /// `overwrite`.
    pub fn name(self) -> &'static str {
        match self {
            Probe::Rotation => "rotation",
            Probe::Seek => "seek",
            Probe::Zones => "zones",
            Probe::Depth => "depth",
            Probe::Cache => "cache",
            Probe::Sizes => "sizes",
            Probe::Overwrite => "overwrite",
        }
    }

    /// The probes that are meaningful for the kind of drive that `profile` describes.
    pub fn recommended(profile: &Profile) -> &'static [Probe] {
        if profile.is_disk() {
            &[Probe::Rotation, Probe::Seek, Probe::Zones, Probe::Depth, Probe::Cache]
        } else if profile.is_rotational() {
            &[Probe::Zones, Probe::Depth, Probe::Cache, Probe::Sizes]
        } else {
            &[Probe::Depth, Probe::Cache, Probe::Sizes, Probe::Overwrite]
        }
    }

    /// The probe with this name.
    pub fn from_name(name: &str) -> Option<Probe> {
        Probe::ALL.iter().copied().find(|probe| probe.name() == name)
    }
}

/// Runs the probes of `which`, each on its own copy of `drive`. The seek probe measures the
/// rotation first.
///
/// # Errors
/// [`ProbeError`] if the drive is too small, too damaged or does not respond. Single failed sectors
/// are listed in the findings.
pub fn probe(drive: &Drive, which: &[Probe]) -> Result<Findings, ProbeError> {
    let mut found = Findings::default();
    let is_requested = |probe| which.contains(&probe);
    let rotation = if is_requested(Probe::Rotation) || is_requested(Probe::Seek) {
        run_probe(drive, Probe::Rotation, &mut found, rotation::probe)?
    } else {
        None
    };
    if (is_requested(Probe::Rotation) || is_requested(Probe::Seek)) && rotation.is_none() {
        found.notes.push(
            "writes of one sector have no period: the drive does not rotate, or its memory hides the rotation"
                .to_owned(),
        );
    }
    if is_requested(Probe::Rotation) {
        found.rotation = rotation;
    }
    if let Some(rotation) = rotation.filter(|_| is_requested(Probe::Seek)) {
        found.seek = run_probe(drive, Probe::Seek, &mut found, |subject| seek::probe(subject, &rotation))?;
    }
    if is_requested(Probe::Zones) {
        found.zones = Some(run_probe(drive, Probe::Zones, &mut found, zones::probe)?);
    }
    if is_requested(Probe::Depth) {
        found.depth = Some(depth::probe(drive, &mut found)?);
    }
    if is_requested(Probe::Cache) {
        found.cache = Some(cache::probe(drive, &mut found)?);
    }
    if is_requested(Probe::Sizes) {
        found.sizes = Some(flash::sizes(drive, &mut found)?);
    }
    if is_requested(Probe::Overwrite) {
        found.overwrite = Some(run_probe(drive, Probe::Overwrite, &mut found, flash::overwrite)?);
    }
    Ok(found)
}

/// Runs a probe on a copy of the drive and collects its failures and notes.
fn run_probe<T>(
    drive: &Drive,
    probe: Probe,
    found: &mut Findings,
    make: impl FnOnce(&mut DriveUnderTest) -> Result<T, ProbeError>,
) -> Result<T, ProbeError> {
    let mut subject = DriveUnderTest::new(drive.clone(), probe.name());
    let result = make(&mut subject);
    found.failures += subject.failures;
    for sector in subject.failed_sectors {
        if found.failed_sectors.len() < FAILURES_KEPT && !found.failed_sectors.contains(&sector) {
            found.failed_sectors.push(sector);
        }
    }
    found.notes.append(&mut subject.notes);
    result
}
