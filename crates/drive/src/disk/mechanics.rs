//! Seek and head-switch times of the arm.

use std::sync::Arc;

use crate::command::Op;
use crate::geometry::SectorPosition;
use crate::platter::Platter;
use crate::profile::DiskProfile;

/// Seek and head-switch times of the arm.
#[derive(Debug, Clone)]
pub(super) struct Mechanics {
    seek_ns: Arc<[u32]>,
    /// A lower bound of the seek for every 2^shift distances, 2^32 a revolution. The table is small
    /// enough for the processor's cache.
    least_turns: Arc<[u64]>,
    shift: u32,
    head_switch_ns: u64,
    write_settle_ns: i64,
    heads_apart: bool,
}

impl Mechanics {
    /// The approximate number of entries of the table of lower bounds.
    const LEAST_ENTRIES: usize = 1024;

    pub(super) fn new(profile: &DiskProfile, platter: &Platter) -> Mechanics {
        let seek_ns = profile.seek.table_ns(profile.cylinders);
        let shift = (seek_ns.len() / Mechanics::LEAST_ENTRIES).checked_ilog2().map_or(0, |log| log + 1);
        let least_ns = seek_ns.chunks(1 << shift).map(|chunk| u64::from(chunk.iter().copied().min().unwrap_or(0)));
        // A negative settling time makes writes faster than reads.
        let faster_ns = (profile.write_settle_ms.min(0.0) * -1e6).round() as u64;
        Mechanics {
            least_turns: least_ns.map(|least_ns| platter.angle_in(least_ns.saturating_sub(faster_ns))).collect(),
            shift,
            seek_ns: seek_ns.into(),
            head_switch_ns: (profile.head_switch_ms * 1e6).round() as u64,
            write_settle_ns: (profile.write_settle_ms * 1e6).round() as i64,
            heads_apart: profile.heads_apart,
        }
    }

    /// The lower bounds of seeks for every 2^shift distances, for reads and writes, and the shift.
    pub(super) fn move_bounds(&self) -> (&[u64], u32) {
        (&self.least_turns, self.shift)
    }

    /// The smallest move between a read and a write. With separate heads it is the seek of one
    /// cylinder.
    pub(super) fn change_ns(&self, from: Op, to: Op) -> u64 {
        if self.heads_apart && from != to { self.seek_ns.get(1).copied().map_or(0, u64::from) } else { 0 }
    }

    /// The time from track to track: a seek that includes the head switch, or a head switch alone.
    /// A write settles afterwards.
    #[inline]
    pub(super) fn move_ns(&self, from: &SectorPosition, to: &SectorPosition, op: Op) -> u64 {
        if from.same_track(to) {
            return 0;
        }
        let distance = from.cylinder.abs_diff(to.cylinder) as usize;
        let seek_ns = self.seek_ns.get(distance).copied().map_or(0, u64::from);
        let move_ns = if from.head == to.head { seek_ns } else { seek_ns.max(self.head_switch_ns) };
        match op {
            Op::Read => move_ns,
            Op::Write => move_ns.saturating_add_signed(self.write_settle_ns),
        }
    }
}
