//! The kinds of single drives, each with the parameters of its model.

use super::cloud::CloudProfile;
use super::disk::DiskProfile;
use super::flash::FlashProfile;
use crate::platter::Platter;

/// A drive that is not an array.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SingleKind {
    Disk(Box<DiskProfile>),
    Flash(Box<FlashProfile>),
    Cloud(CloudProfile),
    Null(NullProfile),
}

/// The parameters of a device of constant service time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NullProfile {
    pub(crate) service_ns: u64,
    /// The largest number of commands in flight.
    pub(crate) depth: u32,
    pub(crate) capacity_sectors: u64,
}

impl SingleKind {
    /// Capacity in sectors of 512 bytes.
    pub(crate) fn capacity_sectors(&self) -> u64 {
        match self {
            SingleKind::Disk(disk) => disk.capacity_sectors,
            SingleKind::Flash(flash) => flash.capacity_sectors,
            SingleKind::Cloud(cloud) => cloud.capacity_sectors,
            SingleKind::Null(null) => null.capacity_sectors,
        }
    }

    /// Returns true if the drive reports a volatile write cache.
    pub(crate) fn has_volatile_cache(&self) -> bool {
        match self {
            SingleKind::Disk(disk) => disk.buffer.write_cache.is_some(),
            SingleKind::Flash(flash) => flash.buffer_units > 0,
            SingleKind::Cloud(_) => true,
            SingleKind::Null(_) => false,
        }
    }

    /// The parameters of a disk; `None` for every other drive.
    pub(crate) fn disk(&self) -> Option<&DiskProfile> {
        match self {
            SingleKind::Disk(disk) => Some(disk),
            SingleKind::Flash(_) | SingleKind::Cloud(_) | SingleKind::Null(_) => None,
        }
    }

    /// Time of one revolution of a disk, rounded down to whole nanoseconds.
    pub(crate) fn revolution_ns(&self) -> Option<u64> {
        let disk = self.disk()?;
        Some(Platter::new(disk.revolution_ns, disk.phase_revolutions).revolution_ns())
    }
}

impl DiskProfile {
    /// Sets the revolution (kept within 0.1 ms to 1 s) and the platter's angle at time 0.
    ///
    /// Values that are not finite change nothing.
    pub(crate) fn set_rotation(&mut self, revolution_ns: f64, phase_revolutions: f64) {
        if revolution_ns.is_finite() {
            self.revolution_ns = revolution_ns.clamp(1e5, 1e9);
        }
        if phase_revolutions.is_finite() {
            self.phase_revolutions = phase_revolutions - phase_revolutions.floor();
        }
    }
}
