//! Profiles of drives: what a model needs to know, read from TOML and checked once.

mod array;
mod check;
mod cloud;
mod flash;
mod raw;

use std::path::{Path, PathBuf};

use crate::Op;
use crate::array::Layout;
use crate::builtin;
use crate::faults::Faults;
use crate::seek::SeekCurve;
pub(crate) use array::{ArrayCacheProfile, ArrayProfile, DestageOrder};
pub(crate) use cloud::{BucketProfile, CloudProfile, LatencyProfile};
pub(crate) use flash::{FlashProfile, Precondition, UNIT_BYTES, UNIT_SECTORS};

/// A drive's description, checked: whatever is in here makes a drive that works.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) source: String,
    pub(crate) licence: Option<String>,
    pub(crate) inputs: Vec<String>,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Disk(Box<DiskProfile>),
    Flash(Box<FlashProfile>),
    Cloud(CloudProfile),
    Array(Box<ArrayProfile>),
    Null(NullProfile),
}

/// A device of constant service time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NullProfile {
    pub(crate) service_ns: u64,
    pub(crate) depth: u32,
    pub(crate) capacity_sectors: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DiskProfile {
    pub(crate) revolution_ns: f64,
    /// The platter's angle at time 0, in revolutions.
    pub(crate) phase_revolutions: f64,
    pub(crate) surfaces: u32,
    pub(crate) cylinders: u32,
    pub(crate) mapping: Mapping,
    pub(crate) capacity_sectors: u64,
    pub(crate) head_switch_ms: f64,
    pub(crate) write_settle_ms: f64,
    pub(crate) seek: SeekCurve,
    pub(crate) zones: Vec<ZoneProfile>,
    /// Sectors that are skipped: from the first number on, so many more. By sector, rising.
    pub(crate) slips: Vec<(u64, u32)>,
    /// After so long without a command the drive goes back over what was written, if it does.
    pub(crate) idle_verify_ms: Option<f64>,
    /// Whether the head that reads flies beside the one that writes, so that the arm has to move between the two.
    pub(crate) heads_apart: bool,
    pub(crate) overheads: OverheadsNs,
    pub(crate) interface_sector_ns: u32,
    /// Whether the data of a read cross the interface when all of them have been read, and not behind the head.
    pub(crate) store_and_forward: bool,
    pub(crate) buffer: BufferProfile,
    pub(crate) queue: QueueProfile,
    pub(crate) faults: Faults,
}

/// In which order tracks follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mapping {
    /// All surfaces of a cylinder, then the next cylinder.
    Cylinder,
    /// A run of cylinders on one surface, then back on the next surface.
    Serpentine { run_cylinders: u32 },
}

/// Cylinders with equally many sectors on a track. Skews and offset in revolutions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ZoneProfile {
    pub(crate) first_cylinder: u32,
    pub(crate) last_cylinder: u32,
    pub(crate) sectors_per_track: u32,
    /// From track to track within a run.
    pub(crate) track_skew_revolutions: f64,
    /// From run to run: of the cylinder, or of the head when the mapping is serpentine.
    pub(crate) change_skew_revolutions: f64,
    /// From one group of runs over all surfaces to the next (serpentine).
    pub(crate) group_skew_revolutions: f64,
    /// The angle of the zone's first track; without it the zone follows on from the last.
    pub(crate) offset_revolutions: Option<f64>,
    pub(crate) empty_front_sectors: u64,
    pub(crate) spare_sectors_per_run: u32,
    /// Spare sectors at the end of the zone.
    pub(crate) spare_sectors: u64,
}

impl ZoneProfile {
    pub(crate) fn cylinders(&self) -> u32 {
        self.last_cylinder - self.first_cylinder + 1
    }

    /// Sectors on all tracks.
    pub(crate) fn geometry_sectors(&self, surfaces: u32) -> u64 {
        u64::from(self.cylinders()) * u64::from(surfaces) * u64::from(self.sectors_per_track)
    }

    /// Sectors with an address; `None` when more are spare than there are.
    pub(crate) fn mapped_sectors(&self, surfaces: u32, mapping: Mapping) -> Option<u64> {
        let runs = match mapping {
            Mapping::Cylinder => u64::from(self.cylinders()),
            Mapping::Serpentine { run_cylinders } => {
                u64::from(self.cylinders().div_ceil(run_cylinders)) * u64::from(surfaces)
            }
        };
        self.geometry_sectors(surfaces)
            .checked_sub(runs * u64::from(self.spare_sectors_per_run))?
            .checked_sub(self.empty_front_sectors)?
            .checked_sub(self.spare_sectors)
    }
}

/// Time from a command's arrival to its first movement, in ns: a hit or a miss in the buffer, after a read or a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OverheadsNs {
    pub(crate) read_hit_after_read: u32,
    pub(crate) read_hit_after_write: u32,
    pub(crate) read_miss_after_read: u32,
    pub(crate) read_miss_after_write: u32,
    pub(crate) write_hit_after_read: u32,
    pub(crate) write_hit_after_write: u32,
    pub(crate) write_miss_after_read: u32,
    pub(crate) write_miss_after_write: u32,
}

impl OverheadsNs {
    pub(crate) fn hit(&self, op: Op, last: Op) -> u64 {
        u64::from(match (op, last) {
            (Op::Read, Op::Read) => self.read_hit_after_read,
            (Op::Read, Op::Write) => self.read_hit_after_write,
            (Op::Write, Op::Read) => self.write_hit_after_read,
            (Op::Write, Op::Write) => self.write_hit_after_write,
        })
    }

    pub(crate) fn miss(&self, op: Op, last: Op) -> u64 {
        u64::from(match (op, last) {
            (Op::Read, Op::Read) => self.read_miss_after_read,
            (Op::Read, Op::Write) => self.read_miss_after_write,
            (Op::Write, Op::Read) => self.write_miss_after_read,
            (Op::Write, Op::Write) => self.write_miss_after_write,
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BufferProfile {
    pub(crate) enabled: bool,
    pub(crate) segments: u32,
    pub(crate) segment_sectors: u32,
    pub(crate) read_ahead_sectors: u32,
    pub(crate) read_ahead_until: ReadAheadUntil,
    pub(crate) read_ahead_when: ReadAheadWhen,
    pub(crate) immediate_read: bool,
    pub(crate) replacement: Replacement,
    /// What writes complete in; `None`: they complete on the media.
    pub(crate) write_cache: Option<WriteCacheProfile>,
}

/// What a write cache holds and when it is emptied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WriteCacheProfile {
    /// The most dirty sectors.
    pub(crate) sectors: u64,
    /// The most runs of dirty sectors, and how many that were written stay readable.
    pub(crate) runs: usize,
    /// The share of either above which the cache is emptied whatever else there is to do, and the one at which that ends.
    pub(crate) high: f64,
    pub(crate) low: f64,
    /// The arm has been free for so long when idle emptying begins.
    pub(crate) idle_ns: u64,
}

/// Which segment is given up for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Replacement {
    /// The one used longest ago.
    #[default]
    Lru,
    /// One after the other.
    RoundRobin,
}

/// After which reads the drive reads ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReadAheadWhen {
    /// After every one.
    #[default]
    Always,
    /// After those that go on where a segment ends: a single read shows no need of it.
    Sequential,
}

/// How far read-ahead goes when no command stops it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReadAheadUntil {
    /// The segment is full.
    Segment,
    /// The end of the track on which the command ended.
    Track,
    /// The end of the track after it.
    NextTrack,
    /// The end of the cylinder on which the command ended.
    Cylinder,
}

/// The commands that a disk takes at once, and how it chooses among them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QueueProfile {
    pub(crate) depth: u32,
    pub(crate) policy: QueuePolicy,
    /// How many of the oldest are looked at.
    pub(crate) window: u32,
    /// So much shorter a command's positioning time counts for each unit of time that it has waited.
    pub(crate) age_weight: f64,
    /// After so long the oldest goes first.
    pub(crate) max_wait_ms: Option<f64>,
    /// Whether a flush waits for the commands before it and lets none after it begin, as in SATA, which cannot queue it.
    pub(crate) flush_blocks: bool,
}

impl Default for QueueProfile {
    /// One command at a time.
    fn default() -> QueueProfile {
        QueueProfile {
            depth: 1,
            policy: QueuePolicy::Fifo,
            window: 1,
            age_weight: 0.0,
            max_wait_ms: None,
            flush_blocks: true,
        }
    }
}

/// Which of the waiting commands a disk begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum QueuePolicy {
    /// The oldest.
    Fifo,
    /// The one whose first sector is under the head soonest: shortest access time first (D. M. Jacobson and J. Wilkes, "Disk scheduling
    /// algorithms based on rotational position", HPL-CSP-91-7, 1991; M. Seltzer, P. Chen and J. Ousterhout, "Disk scheduling
    /// revisited", USENIX Winter 1990).
    Satf,
}

/// Why a profile could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file could not be read.
    #[error("{}: cannot read the profile: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is not TOML, lacks a key, has one too many, or a value is of the wrong type.
    #[error("{file}:{line}:{column}: {message}")]
    Toml {
        /// The file's name, as given.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong and what would be right.
        message: String,
    },
    /// A value cannot be.
    #[error("{file}:{line}:{column}: `{key}` is {value}: {expected}")]
    Value {
        /// The file's name, as given.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The key, with its table: `zone.first_cylinder`.
        key: String,
        /// The value that was found.
        value: String,
        /// What would be right.
        expected: String,
    },
}

impl Profile {
    /// One of the profiles that come with the crate; [`Profile::names`] lists them.
    pub fn builtin(name: &str) -> Option<Profile> {
        let (file, text) = builtin::text(name)?;
        Profile::from_toml(text, file).ok()
    }

    /// The text of a built-in profile.
    pub fn builtin_toml(name: &str) -> Option<&'static str> {
        builtin::text(name).map(|(_, text)| text)
    }

    /// The names of the built-in profiles, in the order in which they are best read.
    pub fn names() -> impl Iterator<Item = &'static str> {
        builtin::names()
    }

    /// Reads a profile from TOML; `file_name` is what errors call it.
    ///
    /// # Errors
    /// [`ProfileError::Toml`] and [`ProfileError::Value`], each with line, column, what was found and what would be right.
    pub fn from_toml(text: &str, file_name: &str) -> Result<Profile, ProfileError> {
        check::profile(text, file_name)
    }

    /// Reads a profile from a file.
    ///
    /// # Errors
    /// [`ProfileError::Read`] when the file cannot be read, and those of [`Profile::from_toml`].
    pub fn load(path: impl AsRef<Path>) -> Result<Profile, ProfileError> {
        let path = path.as_ref();
        let text =
            std::fs::read_to_string(path).map_err(|source| ProfileError::Read { path: path.to_path_buf(), source })?;
        Profile::from_toml(&text, &path.display().to_string())
    }

    /// The profile's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same drive with its buffer switched off: every read goes to the media.
    #[must_use]
    pub fn without_buffer(mut self) -> Profile {
        if let Kind::Disk(disk) = &mut self.kind {
            disk.buffer.enabled = false;
        }
        self
    }

    /// The same drive with its write cache switched off: every write ends on the media.
    #[must_use]
    pub fn without_write_cache(mut self) -> Profile {
        if let Kind::Disk(disk) = &mut self.kind {
            disk.buffer.write_cache = None;
        }
        self
    }

    /// The same drive with an interface that takes no time.
    #[must_use]
    pub fn with_instant_interface(mut self) -> Profile {
        if let Kind::Disk(disk) = &mut self.kind {
            disk.interface_sector_ns = 0;
        }
        self
    }

    /// The same drive with commands that cost nothing before the arm moves.
    #[must_use]
    pub fn without_overheads(mut self) -> Profile {
        if let Kind::Disk(disk) = &mut self.kind {
            disk.overheads = OverheadsNs::default();
        }
        self
    }

    /// The same drive with a revolution of `revolution_ns` (kept within 0.1 ms to 1 s) that stands at
    /// `phase_revolutions` at time 0.
    #[must_use]
    pub fn with_rotation(mut self, revolution_ns: f64, phase_revolutions: f64) -> Profile {
        if let Kind::Disk(disk) = &mut self.kind {
            if revolution_ns.is_finite() {
                disk.revolution_ns = revolution_ns.clamp(1e5, 1e9);
            }
            if phase_revolutions.is_finite() {
                disk.phase_revolutions = phase_revolutions - phase_revolutions.floor();
            }
        }
        self
    }

    /// Whether a head seeks: the drive's, or that of an array's members.
    pub fn is_rotational(&self) -> bool {
        match &self.kind {
            Kind::Array(array) => array.members.iter().any(Profile::is_rotational),
            _ => self.is_disk(),
        }
    }

    /// Whether the drive is one disk.
    pub fn is_disk(&self) -> bool {
        matches!(self.kind, Kind::Disk(_))
    }

    /// How many sectors of 512 bytes the drive has.
    pub fn capacity_sectors(&self) -> u64 {
        match &self.kind {
            Kind::Disk(disk) => disk.capacity_sectors,
            Kind::Flash(flash) => flash.capacity_sectors,
            Kind::Cloud(cloud) => cloud.capacity_sectors,
            Kind::Array(array) => Layout::new(array).capacity_sectors(),
            Kind::Null(null) => null.capacity_sectors,
        }
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }
}
