//! How long the works need, from where they are, until a command's first sector is under the head.

use crate::geometry::Spot;
use crate::platter::Platter;
use crate::profile::OverheadsNs;
use crate::{Access, Op};

use super::mechanics::Mechanics;

/// Arm and platter at one moment, to compare commands by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Positioning<'a> {
    pub(super) at_ns: u64,
    pub(super) arm: &'a Spot,
    pub(super) mechanics: &'a Mechanics,
    pub(super) platter: &'a Platter,
    pub(super) overheads: &'a OverheadsNs,
    pub(super) interface_sector_ns: u64,
    pub(super) last: Op,
    /// The angle under the head.
    pub(super) angle: u32,
    /// Reads that begin in these sectors, from the first up to and with the second, go on with what the head is reading.
    pub(super) stream: Option<(u64, u64)>,
}

impl Positioning<'_> {
    pub(super) fn now_ns(&self) -> u64 {
        self.at_ns
    }

    /// Seek and rotation for a command whose first sector lies at `spot`, in ns; `None` when they are `limit_ns` or longer, which is known
    /// without the rotation for most.
    pub(super) fn needed_ns(&self, access: &Access, spot: &Spot, arrived_ns: u64, limit_ns: i64) -> Option<i64> {
        let distance = self.arm.cylinder.abs_diff(spot.cylinder);
        if i64::from(self.mechanics.least_ns(distance)) >= limit_ns {
            return None;
        }
        if self.streams(access) {
            return Some(0).filter(|none_ns| *none_ns < limit_ns);
        }
        let prepared_ns = self.at_ns.saturating_sub(arrived_ns);
        let first_ns = if access.op == Op::Write { self.interface_sector_ns } else { 0 };
        let overhead_ns = self.overheads.miss(access.op, self.last);
        let move_ns = overhead_ns.saturating_sub(prepared_ns) + self.mechanics.move_ns(self.arm, spot, access.op);
        let move_ns = move_ns.max((overhead_ns + first_ns).saturating_sub(prepared_ns));
        if move_ns as i64 >= limit_ns {
            return None;
        }
        let needed_ns = self.passing_ns(spot.angle, move_ns) as i64;
        (needed_ns < limit_ns).then_some(needed_ns)
    }

    fn streams(&self, access: &Access) -> bool {
        access.op == Op::Read
            && self.stream.is_some_and(|(first, next)| first <= access.sector && access.sector <= next)
    }

    /// When `angle` is under the head for the first time after `move_ns`.
    fn passing_ns(&self, angle: u32, move_ns: u64) -> u64 {
        let revolution_ns = self.platter.revolution_ns();
        let ahead = angle.wrapping_sub(self.angle);
        let mut passing_ns = if self.platter.is_at(ahead) { 0 } else { self.platter.turn_ns(u64::from(ahead)) };
        while passing_ns < move_ns {
            passing_ns += revolution_ns;
        }
        passing_ns
    }
}
