//! Probes: what a drive shows to whoever gives it commands and looks at the clock.
//!
//! Nothing here reads a profile. The methods are those by which real drives are measured from outside (Worthington, Ganger, Patt & Wilkes,
//! "On-line extraction of SCSI disk drive parameters", SIGMETRICS 1995; Schindler & Ganger, "Automated disk drive
//! characterization", CMU-CS-99-176): they write over what is on the drive.
//!
//! ```
//! use hoistway_drive::probe::{Probe, probe};
//! use hoistway_drive::{Drive, Profile};
//! let drive = Drive::new(&Profile::builtin("slide-7200").expect("a built-in profile"));
//! let found = probe(&drive, &[Probe::Rotation])?;
//! let rotation = found.rotation.expect("a platter turns in it");
//! assert!((rotation.revolution_ns - 60e9 / 7200.0).abs() < 1000.0);
//! # Ok::<(), hoistway_drive::probe::ProbeError>(())
//! ```

mod cache;
mod depth;
mod flash;
mod rotation;
mod seek;
mod subject;
mod zones;

use serde::Serialize;

use crate::command::AccessError;
use crate::drive::Drive;
use crate::profile::Profile;
use subject::Subject;

/// What can be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// The time of a revolution, from writes of one sector.
    Rotation,
    /// Positioning time against distance; needs a rotation.
    Seek,
    /// Sequential rate along the address space.
    Zones,
    /// Operations a second and latency by commands under way.
    Depth,
    /// What is read again from memory, and what a burst of writes finds there.
    Cache,
    /// Rate and latency by size of command.
    Sizes,
    /// Random writes over a full drive, over time.
    Overwrite,
}

/// What was found. Whatever was not asked for, or is not there, is `None`; then `notes` may say why.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Findings {
    /// The platter's turning.
    pub rotation: Option<Rotation>,
    /// The arm's moves.
    pub seek: Option<Seek>,
    /// Sequential rate along the address space, rising sectors.
    pub zones: Option<Vec<ZonePoint>>,
    /// By commands under way, rising.
    pub depth: Option<Vec<DepthPoint>>,
    /// Memory in the drive.
    pub cache: Option<Cache>,
    /// By size, rising.
    pub sizes: Option<Vec<SizePoint>>,
    /// Random writes over time.
    pub overwrite: Option<Overwrite>,
    /// How many commands failed.
    pub failures: u64,
    /// Sectors that could not be read or written, in order of discovery: at most [`FAILURES_KEPT`].
    pub failed_sectors: Vec<u64>,
    /// What a reader should know: what was looked for in vain, what ended early.
    pub notes: Vec<String>,
}

/// The findings of the probes of one drive.
///
/// Its serialised form is the JSON document of `hoistway drives --probe --json`: a finding that was
/// not looked for, or not there, is null.
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
    /// Builds the drive of `profile` and runs `probes`, or [`Probe::recommended`] if the list is empty.
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

/// So many failed sectors are listed.
pub const FAILURES_KEPT: usize = 64;

/// A revolution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rotation {
    /// In ns.
    pub revolution_ns: f64,
    /// How far single completions lay from the revolutions that were found, in ns at most.
    pub residue_ns: f64,
    /// Sectors on the first track, from the angle between its sectors.
    pub first_track_sectors: u32,
}

/// Positioning, without the wait for rotation: from the command to the first moment at which the target could be written, less
/// what a write of the same sector takes when the arm is there. The settling of a write is in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seek {
    /// Surfaces that take turns in a cylinder; `None` when tracks do not show any.
    pub surfaces: Option<u32>,
    /// To the other surfaces of a cylinder; `None` when the next track is on the next cylinder.
    pub head_switch_ns: Option<u64>,
    /// To the next cylinder.
    pub single_ns: u64,
    /// To the last sectors.
    pub full_ns: u64,
    /// To the tracks that follow the first, in their order.
    pub tracks: Vec<SeekPoint>,
    /// To sectors farther and farther away from the first track.
    pub curve: Vec<SeekPoint>,
}

/// Positioning over a distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "(u64, u64)")]
pub struct SeekPoint {
    /// In sectors.
    pub distance_sectors: u64,
    /// In ns.
    pub positioning_ns: u64,
}

impl From<SeekPoint> for (u64, u64) {
    fn from(point: SeekPoint) -> (u64, u64) {
        (point.distance_sectors, point.positioning_ns)
    }
}

/// Sequential rate at a place.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ZonePoint {
    /// Where reading began.
    pub sector: u64,
    /// In MB/s (10^6 bytes).
    pub mb_s: f64,
}

/// Random reads of 4 KiB with so many under way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DepthPoint {
    /// Commands under way.
    pub depth: u32,
    /// Reads a second.
    pub iops: f64,
    /// Mean latency in ns.
    pub mean_ns: f64,
    /// The 99th percentile of the latency in ns.
    pub p99_ns: u64,
}

/// Memory in the drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cache {
    /// The largest span that came from memory when it was read again, in bytes; `None` when memory made no difference.
    pub read_bytes: Option<u64>,
    /// The largest span that came from memory when its first 4 KiB alone had been read, in bytes; `None` when nothing is read ahead.
    pub ahead_bytes: Option<u64>,
    /// Places far from each other that it remembers together; `None` when it remembers none.
    pub segments: Option<u32>,
    /// What a burst of random writes found room for before one had to wait, in bytes: what was written back meanwhile included; [`BURST_BYTES_MAX`] when
    /// none had to. `None` when such writes take no less than writes to the media.
    pub write_bytes: Option<u64>,
    /// Reading spans of growing size, 4 KiB at a time and out of order.
    pub spans: Vec<SpanPoint>,
}

/// A burst of writes ends here.
pub const BURST_BYTES_MAX: u64 = 512 << 20;

/// A span that is read out of order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SpanPoint {
    /// Its size.
    pub bytes: u64,
    /// Mean latency of a read in ns, right after it was read in order.
    pub again_ns: f64,
    /// Mean latency of a read in ns, a while after its first 4 KiB were read.
    pub ahead_ns: f64,
}

/// Commands of one size at random places.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SizePoint {
    /// Their size.
    pub bytes: u64,
    /// Mean latency in ns of reads, one at a time.
    pub read_ns: f64,
    /// Rate of reads with as many under way as the drive takes, in MB/s.
    pub read_mb_s: f64,
    /// Mean latency in ns of writes, one at a time.
    pub write_ns: f64,
    /// Rate of writes with as many under way as the drive takes, in MB/s.
    pub write_mb_s: f64,
}

/// Random writes of 4 KiB over a drive that was filled in sequence, as many under way as it takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overwrite {
    /// What had been written at random when the rate fell below 70 % of what it was at first; `None` when it did not.
    pub onset_bytes: Option<u64>,
    /// The rate of the last tenth, in MB/s.
    pub steady_mb_s: f64,
    /// The rate over time.
    pub windows: Vec<OverwritePoint>,
}

/// A part of the random writes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(into = "(u64, f64)")]
pub struct OverwritePoint {
    /// Bytes written at random up to its end.
    pub bytes: u64,
    /// In MB/s.
    pub mb_s: f64,
}

impl From<OverwritePoint> for (u64, f64) {
    fn from(point: OverwritePoint) -> (u64, f64) {
        (point.bytes, point.mb_s)
    }
}

/// Why a drive could not be probed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The drive refused a command.
    #[error("{probe}: the drive refused a command: {source}")]
    Refused {
        /// The probe's name.
        probe: &'static str,
        /// Why.
        source: AccessError,
    },
    /// Too much of the drive cannot be read or written.
    #[error("{probe}: {failures} commands failed, the last at sector {sector}: the drive is too damaged to be probed")]
    Damaged {
        /// The probe's name.
        probe: &'static str,
        /// How many commands failed.
        failures: u64,
        /// The last that did.
        sector: u64,
    },
    /// A command was never answered.
    #[error("{probe}: the drive never answered a command: it has been silent from {:.3} ms of its clock on", *since_ns as f64 / 1e6)]
    Silent {
        /// The probe's name.
        probe: &'static str,
        /// When the drive was last heard of, on its own clock.
        since_ns: u64,
    },
    /// The drive is too small for a probe.
    #[error("{probe}: the drive has {capacity_sectors} sectors: at least {needed} are needed")]
    TooSmall {
        /// The probe's name.
        probe: &'static str,
        /// What the drive has.
        capacity_sectors: u64,
        /// What the probe needs.
        needed: u64,
    },
}

impl Probe {
    /// All, in the order in which they are made.
    pub const ALL: &[Probe] =
        &[Probe::Rotation, Probe::Seek, Probe::Zones, Probe::Depth, Probe::Cache, Probe::Sizes, Probe::Overwrite];

    /// The name: "rotation", "seek", "zones", "depth", "cache", "sizes", "overwrite".
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

    /// The probe of this name.
    pub fn from_name(name: &str) -> Option<Probe> {
        Probe::ALL.iter().copied().find(|probe| probe.name() == name)
    }
}

/// Makes the probes of `which` on copies of `drive`, each on one of its own, and tells what they show. A seek probe finds the rotation
/// that it needs by itself.
///
/// # Errors
/// [`ProbeError`] when a drive is too small, too damaged or silent. Single sectors that fail are listed in what was found.
pub fn probe(drive: &Drive, which: &[Probe]) -> Result<Findings, ProbeError> {
    let mut found = Findings::default();
    let asked = |probe| which.contains(&probe);
    let rotation = if asked(Probe::Rotation) || asked(Probe::Seek) {
        on(drive, Probe::Rotation, &mut found, rotation::probe)?
    } else {
        None
    };
    if (asked(Probe::Rotation) || asked(Probe::Seek)) && rotation.is_none() {
        found.notes.push("writes of one sector do not come at a period: nothing turns, or memory hides it".to_owned());
    }
    if asked(Probe::Rotation) {
        found.rotation = rotation;
    }
    if let Some(rotation) = rotation.filter(|_| asked(Probe::Seek)) {
        found.seek = on(drive, Probe::Seek, &mut found, |subject| seek::probe(subject, &rotation))?;
    }
    if asked(Probe::Zones) {
        found.zones = Some(on(drive, Probe::Zones, &mut found, zones::probe)?);
    }
    if asked(Probe::Depth) {
        found.depth = Some(depth::probe(drive, &mut found)?);
    }
    if asked(Probe::Cache) {
        found.cache = Some(cache::probe(drive, &mut found)?);
    }
    if asked(Probe::Sizes) {
        found.sizes = Some(flash::sizes(drive, &mut found)?);
    }
    if asked(Probe::Overwrite) {
        found.overwrite = Some(on(drive, Probe::Overwrite, &mut found, flash::overwrite)?);
    }
    Ok(found)
}

/// Makes a probe on a copy of the drive, and takes over what failed.
fn on<T>(
    drive: &Drive,
    probe: Probe,
    found: &mut Findings,
    make: impl FnOnce(&mut Subject) -> Result<T, ProbeError>,
) -> Result<T, ProbeError> {
    let mut subject = Subject::new(drive.clone(), probe.name());
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
