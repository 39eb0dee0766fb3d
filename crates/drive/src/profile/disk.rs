//! The parameters of a disk model.

use super::buffer::BufferProfile;
use super::queue::QueueProfile;
use crate::command::Op;
use crate::faults::Faults;
use crate::seek::SeekCurve;

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
