//! The arm: what it takes to bring a head over a track.

use std::sync::Arc;

use crate::Op;
use crate::geometry::Spot;
use crate::profile::DiskProfile;

/// What it takes to bring a head over a track.
#[derive(Debug, Clone)]
pub(super) struct Mechanics {
    seek_ns: Arc<[u32]>,
    head_switch_ns: u64,
    write_settle_ns: i64,
}

impl Mechanics {
    pub(super) fn new(profile: &DiskProfile) -> Mechanics {
        Mechanics {
            seek_ns: profile.seek.table_ns(profile.cylinders).into(),
            head_switch_ns: (profile.head_switch_ms * 1e6).round() as u64,
            write_settle_ns: (profile.write_settle_ms * 1e6).round() as i64,
        }
    }

    /// From track to track: a seek, during which heads switch too, or a head switch alone; writes settle after either.
    pub(super) fn move_ns(&self, from: &Spot, to: &Spot, op: Op) -> u64 {
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
