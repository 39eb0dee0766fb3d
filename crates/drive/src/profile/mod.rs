//! Profiles of drives: the parameters of a model, read from TOML and checked once.

mod array;
mod buffer;
mod check;
mod cloud;
mod disk;
mod error;
mod flash;
mod queue;
mod raw;
mod single;

use std::path::Path;

use crate::builtin;
use crate::faults::{Faults, FaultsError};
pub(crate) use array::{ArrayCacheProfile, ArrayProfile, CACHE_LINE_SECTORS, DestageOrder, MemberProfile};
pub(crate) use buffer::{BufferProfile, ReadAheadUntil, ReadAheadWhen, Replacement, WriteCacheProfile};
pub(crate) use cloud::{BucketProfile, CloudProfile, LatencyProfile};
pub(crate) use disk::{DiskProfile, Mapping, OverheadsNs, ZoneProfile};
pub use error::ProfileError;
pub(crate) use flash::{FlashProfile, Precondition, UNIT_BYTES, UNIT_SECTORS};
pub(crate) use queue::{QueuePolicy, QueueProfile};
pub(crate) use single::{NullProfile, SingleKind};

/// The checked description of a drive. Every value of this type makes a drive that works.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) source: String,
    pub(crate) licence: Option<String>,
    pub(crate) inputs: Vec<String>,
    pub(crate) kind: Kind,
}

/// A single drive, or an array of single drives.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Single(SingleKind),
    Array(Box<ArrayProfile>),
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
        if let Some(disk) = self.disk_mut() {
            disk.buffer.enabled = false;
        }
        self
    }

    /// The same drive with its write cache switched off: every write ends on the media.
    #[must_use]
    pub fn without_write_cache(mut self) -> Profile {
        if let Some(disk) = self.disk_mut() {
            disk.buffer.write_cache = None;
        }
        self
    }

    /// The same drive with an interface that takes no time.
    #[must_use]
    pub fn with_instant_interface(mut self) -> Profile {
        if let Some(disk) = self.disk_mut() {
            disk.interface_sector_ns = 0;
        }
        self
    }

    /// The same drive with commands that cost nothing before the arm moves.
    #[must_use]
    pub fn without_overheads(mut self) -> Profile {
        if let Some(disk) = self.disk_mut() {
            disk.overheads = OverheadsNs::default();
        }
        self
    }

    /// The same drive with a revolution of `revolution_ns` (kept within 0.1 ms to 1 s) that stands at
    /// `phase_revolutions` at time 0.
    #[must_use]
    pub fn with_rotation(mut self, revolution_ns: f64, phase_revolutions: f64) -> Profile {
        if let Some(disk) = self.disk_mut() {
            disk.set_rotation(revolution_ns, phase_revolutions);
        }
        self
    }

    /// The time of one revolution of a disk, rounded down to whole nanoseconds; `None` for what does not turn, and for arrays.
    pub fn revolution_ns(&self) -> Option<u64> {
        match &self.kind {
            Kind::Single(single) => single.revolution_ns(),
            Kind::Array(_) => None,
        }
    }

    /// Returns true for a disk and for an array with at least one disk.
    pub fn is_rotational(&self) -> bool {
        match &self.kind {
            Kind::Single(single) => single.disk().is_some(),
            Kind::Array(array) => array.members.iter().any(|member| member.kind.disk().is_some()),
        }
    }

    /// Returns true for a single disk.
    pub fn is_disk(&self) -> bool {
        self.disk().is_some()
    }

    /// Capacity in sectors of 512 bytes.
    pub fn capacity_sectors(&self) -> u64 {
        match &self.kind {
            Kind::Single(single) => single.capacity_sectors(),
            Kind::Array(array) => array.capacity_sectors(),
        }
    }

    /// The same disk with `faults` in place of its own.
    ///
    /// # Errors
    /// [`FaultsError`] for every drive but a disk, and for a value out of range.
    pub fn with_faults(mut self, faults: Faults) -> Result<Profile, FaultsError> {
        let name = self.name.clone();
        let Some(disk) = self.disk_mut() else { return Err(FaultsError::NotADisk { drive: name }) };
        if let Some((_, error)) = faults.problem(disk.capacity_sectors) {
            return Err(error);
        }
        disk.faults = faults;
        Ok(self)
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The parameters of a single disk; `None` for every other drive.
    pub(crate) fn disk(&self) -> Option<&DiskProfile> {
        match &self.kind {
            Kind::Single(single) => single.disk(),
            Kind::Array(_) => None,
        }
    }

    /// The parameters of a single disk for a change; `None` for every other drive.
    pub(crate) fn disk_mut(&mut self) -> Option<&mut DiskProfile> {
        match &mut self.kind {
            Kind::Single(SingleKind::Disk(disk)) => Some(disk),
            _ => None,
        }
    }
}
