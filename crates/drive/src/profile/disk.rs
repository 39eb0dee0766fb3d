//! The parameters of a disk model.

use super::buffer::BufferProfile;
use super::queue::QueueProfile;
use crate::command::Op;
use crate::faults::Faults;
use crate::seek::SeekCurve;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DiskProfile {
    pub(crate) revolution_ns: f64,
    /// The angle of the platter at time 0, in revolutions.
    pub(crate) phase_revolutions: f64,
    pub(crate) surfaces: u32,
    pub(crate) cylinders: u32,
    pub(crate) mapping: Mapping,
    pub(crate) capacity_sectors: u64,
    pub(crate) head_switch_ms: f64,
    pub(crate) write_settle_ms: f64,
    pub(crate) seek: SeekCurve,
    pub(crate) zones: Vec<ZoneProfile>,
    /// Slipped sectors in rising order: the address at which the slip occurs and the number of
    /// sectors that are skipped.
    pub(crate) slips: Vec<(u64, u32)>,
    /// Idle time after which the drive verifies what it has written; `None` if it does not verify.
    pub(crate) idle_verify_ms: Option<f64>,
    /// True if the read head and the write head are side by side. The arm then moves between a read
    /// and a write of one track.
    pub(crate) heads_apart: bool,
    pub(crate) overheads: OverheadsNs,
    pub(crate) interface_sector_ns: u32,
    /// True if the data of a read cross the interface after the last sector was read, and not while
    /// sectors are read.
    pub(crate) store_and_forward: bool,
    pub(crate) buffer: BufferProfile,
    pub(crate) queue: QueueProfile,
    pub(crate) faults: Faults,
}

/// The order of tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mapping {
    /// All surfaces of a cylinder, then the next cylinder.
    Cylinder,
    /// A run of cylinders on one surface, then back on the next surface.
    Serpentine { run_cylinders: u32 },
}

/// Cylinders with the same number of sectors a track. Skews and the offset are in revolutions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ZoneProfile {
    pub(crate) first_cylinder: u32,
    pub(crate) last_cylinder: u32,
    pub(crate) sectors_per_track: u32,
    /// Skew from track to track within a run.
    pub(crate) track_skew_revolutions: f64,
    /// Skew from run to run: a change of cylinder, or of the head with the serpentine mapping.
    pub(crate) change_skew_revolutions: f64,
    /// Skew from one group of runs over all surfaces to the next (serpentine mapping).
    pub(crate) group_skew_revolutions: f64,
    /// The angle of the first track of the zone; `None` if the zone continues the previous one.
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

    /// Physical sectors of all tracks.
    pub(crate) fn geometry_sectors(&self, surfaces: u32) -> u64 {
        u64::from(self.cylinders()) * u64::from(surfaces) * u64::from(self.sectors_per_track)
    }

    /// Sectors with an address; `None` if there are more spare sectors than sectors.
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

/// Overheads in ns, from the arrival of a command to the first movement. They depend on buffer hit
/// or miss, on the operation, and on the previous operation.
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
