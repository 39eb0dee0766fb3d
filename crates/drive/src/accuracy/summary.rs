//! The key figures of every built-in drive.

use serde::Serialize;

use crate::command::SECTOR_BYTES;
use crate::describe::{Description, describe};
use crate::profile::Profile;

/// The key figures of one drive, from its profile alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriveSummary {
    /// The name of the profile.
    pub drive: String,
    /// The kind of drive and the origin of its figures.
    pub class: DriveClass,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Revolutions a minute; `None` without a platter, as for all other figures of the mechanics.
    pub rpm: Option<f64>,
    /// The largest number of commands in flight.
    pub depth: u32,
    /// Mean seek over pairs of uniform sectors, in ms.
    pub mean_seek_sectors_ms: Option<f64>,
    /// Random 4 KiB reads a second, one at a time.
    pub random_read_4k_iops: f64,
    /// Sequential rate of the outermost tracks in MB/s.
    pub sequential_outer_mb_s: Option<f64>,
    /// Sequential rate of the innermost tracks in MB/s.
    pub sequential_inner_mb_s: Option<f64>,
}

/// The kind of a drive and the origin of its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveClass {
    /// A disk whose figures were measured with the drive.
    DiskMeasured,
    /// A disk that is one row of a published table.
    DiskFromTable,
    /// A disk whose figures come from data sheets.
    DiskFromDataSheet,
    /// A flash drive.
    Flash,
    /// A cloud volume.
    Cloud,
    /// An array.
    Array,
    /// A device of constant service time.
    Null,
}

/// One summary for each built-in drive.
pub(super) fn summaries() -> Vec<DriveSummary> {
    Profile::names().filter_map(Profile::builtin).map(|profile| summary(&describe(&profile))).collect()
}

fn summary(drive: &Description) -> DriveSummary {
    let disk = |value: f64| drive.rpm.map(|_| value);
    DriveSummary {
        drive: drive.name.clone(),
        class: class(drive),
        capacity_bytes: drive.capacity_sectors.saturating_mul(SECTOR_BYTES),
        rpm: drive.rpm,
        depth: drive.depth,
        mean_seek_sectors_ms: disk(drive.mean_seek_sectors_ms),
        random_read_4k_iops: drive.random_read_4k_iops,
        sequential_outer_mb_s: disk(drive.sequential_outer_mb_s),
        sequential_inner_mb_s: disk(drive.sequential_inner_mb_s),
    }
}

/// The class of a drive. The text `what` of a measured disk contains the word "measured".
fn class(drive: &Description) -> DriveClass {
    let name = drive.name.as_str();
    if drive.flash.is_some() {
        return DriveClass::Flash;
    }
    match drive.rpm {
        Some(_) if drive.what.contains("measured") => DriveClass::DiskMeasured,
        Some(_) if name.starts_with("slide-") => DriveClass::DiskFromTable,
        Some(_) => DriveClass::DiskFromDataSheet,
        None if name.starts_with("cloud-") => DriveClass::Cloud,
        None if name.starts_with("array-") => DriveClass::Array,
        None => DriveClass::Null,
    }
}
