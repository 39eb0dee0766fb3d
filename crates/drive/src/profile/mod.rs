//! Profiles of drives: the parameters of a model, read from TOML and checked once.

mod array;
mod buffer;
mod check;
mod cloud;
mod disk;
mod error;
mod flash;
mod keys;
mod packed;
mod queue;
mod raw;
pub mod reference;
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
use packed::{pack_block, unpack_block};
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
    pub(crate) fua: bool,
    pub(crate) kind: Kind,
}

/// A single drive, or an array of single drives.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Single(SingleKind),
    Array(Box<ArrayProfile>),
}

impl Profile {
    /// The built-in profile of this name, as listed by [`Profile::names`].
    pub fn builtin(name: &str) -> Option<Profile> {
        unpack_block(builtin::PACKED, builtin::index(name)?)
    }

    /// The TOML text of a built-in profile.
    pub fn builtin_toml(name: &str) -> Option<&'static str> {
        builtin::text(name).map(|(_, text)| text)
    }

    /// The names of the built-in profiles in the order of the documentation.
    pub fn names() -> impl Iterator<Item = &'static str> {
        builtin::names()
    }

    /// Parses and checks a profile in TOML. Errors quote `file_name`.
    ///
    /// # Errors
    /// [`ProfileError::Toml`] and [`ProfileError::Value`], with line, column, the invalid value and
    /// the valid ones.
    pub fn from_toml(text: &str, file_name: &str) -> Result<Profile, ProfileError> {
        check::profile(text, file_name)
    }

    /// Reads, parses and checks a drive file.
    ///
    /// # Errors
    /// [`ProfileError::Read`] if the file cannot be read, and the errors of [`Profile::from_toml`].
    pub fn load(path: impl AsRef<Path>) -> Result<Profile, ProfileError> {
        let path = path.as_ref();
        let text =
            std::fs::read_to_string(path).map_err(|source| ProfileError::Read { path: path.to_path_buf(), source })?;
        Profile::from_toml(&text, &path.display().to_string())
    }

    /// The name of the profile.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same drive with the read-ahead buffer switched off: every read uses the media.
    #[must_use]
    pub fn without_buffer(mut self) -> Profile {
        if let Some(disk) = self.disk_mut() {
            disk.buffer.enabled = false;
        }
        self
    }

    /// The same drive with the write cache switched off: every write completes on the media.
    #[must_use]
    pub fn without_write_cache(mut self) -> Profile {
        if let Some(disk) = self.disk_mut() {
            disk.buffer.write_cache = None;
        }
        self
    }

    /// The same drive with an interface that needs no time.
    #[must_use]
    pub fn with_instant_interface(mut self) -> Profile {
        if let Some(disk) = self.disk_mut() {
            disk.interface_sector_ns = 0;
        }
        self
    }

    /// The same drive without command overheads.
    #[must_use]
    pub fn without_overheads(mut self) -> Profile {
        if let Some(disk) = self.disk_mut() {
            disk.overheads = OverheadsNs::default();
        }
        self
    }

    /// The same drive with another revolution (kept within 0.1 ms to 1 s), and with the platter at
    /// `phase_revolutions` at time 0.
    #[must_use]
    pub fn with_rotation(mut self, revolution_ns: f64, phase_revolutions: f64) -> Profile {
        if let Some(disk) = self.disk_mut() {
            disk.set_rotation(revolution_ns, phase_revolutions);
        }
        self
    }

    /// Time of one revolution of a disk, rounded down to whole nanoseconds; `None` for other
    /// drives.
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

    /// The number of submission queues, each with the depth of the drive: 1 for all drives but
    /// flash drives with more.
    pub fn queues(&self) -> u32 {
        match &self.kind {
            Kind::Single(SingleKind::Flash(flash)) => flash.queues,
            _ => 1,
        }
    }

    /// Returns true if the drive reports a volatile write cache, which a host flushes. It is false
    /// for a disk whose write cache is off, a controller whose cache has a battery, and a flash
    /// drive without a write buffer. A buffer with power loss protection counts: such drives report
    /// it too, and a flush of it costs little.
    pub fn has_volatile_cache(&self) -> bool {
        match &self.kind {
            Kind::Single(single) => single.has_volatile_cache(),
            Kind::Array(array) => match &array.cache {
                Some(cache) => !cache.battery,
                None => array.members.iter().any(|member| member.kind.has_volatile_cache()),
            },
        }
    }

    /// Returns true if the host may send writes with FUA (forced unit access). Linux sends none to
    /// SATA disks by default.
    pub fn has_fua(&self) -> bool {
        self.fua
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

/// Makes the file `profiles/packed.bin` of this crate from its drive files, for `cargo xtask`.
///
/// # Errors
/// The error of the first drive file that is invalid.
#[doc(hidden)]
pub fn pack_builtin_profiles() -> Result<Vec<u8>, ProfileError> {
    let mut packed = Vec::new();
    for (file, text) in builtin::TEXTS {
        pack_block(&Profile::from_toml(text, file)?, &mut packed);
    }
    Ok(packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compact_form_is_that_of_the_drive_files() {
        for (name, (file, text)) in builtin::NAMES.iter().zip(builtin::TEXTS) {
            let read = Profile::from_toml(text, file).expect("a valid profile");
            assert_eq!(Profile::builtin(name), Some(read), "{name}: run cargo xtask pages write --quick");
        }
        let packed = pack_builtin_profiles().expect("valid profiles");
        assert!(packed == builtin::PACKED, "profiles/packed.bin: run cargo xtask pages write --quick");
    }

    #[test]
    fn a_damaged_compact_form_is_no_profile() {
        let null = builtin::index("null").expect("built in");
        assert!(unpack_block::<Profile>(builtin::PACKED, null).is_some());
        assert_eq!(unpack_block::<Profile>(builtin::PACKED, builtin::NAMES.len()), None);
        let shorter = &builtin::PACKED[..builtin::PACKED.len() - 1];
        assert_eq!(unpack_block::<Profile>(shorter, null), None);
    }
}
