//! How long the works need, from where they are, until a command's first sector is under the head.
//!
//! Times are counted in turns of the platter, 2^32 a revolution, so that the wait for an angle after a move is a subtraction.

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

    /// Nothing at `cylinder` and `angle` is reached in fewer turns: all that can be told from the distance at a glance.
    #[inline]
    pub(super) fn least(&self, cylinder: u32, angle: u32) -> u64 {
        self.reached(angle, self.mechanics.least_turns(self.arm.cylinder.abs_diff(cylinder)))
    }

    /// The turns until the first sector, at `spot`, of a command that has waited for `waited_ns`.
    pub(super) fn needed(&self, access: &Access, spot: &Spot, waited_ns: u64) -> u64 {
        let (op, sector) = (access.op, access.sector);
        if op == Op::Read && self.stream.is_some_and(|(first, next)| first <= sector && sector <= next) {
            return 0;
        }
        let overhead_ns = self.overheads.miss(op, self.last);
        let first_ns = if op == Op::Write { self.interface_sector_ns } else { 0 };
        let move_ns = overhead_ns.saturating_sub(waited_ns) + self.mechanics.move_ns(self.arm, spot, op);
        // The first sector of a write has to have come.
        let move_ns = move_ns.max((overhead_ns + first_ns).saturating_sub(waited_ns));
        self.reached(spot.angle, self.platter.angle_in(move_ns))
    }

    /// A time as turns.
    pub(super) fn turns(&self, span_ns: u64) -> u64 {
        self.platter.angle_in(span_ns)
    }

    /// When `angle` is under the head for the first time after a move. A mark that has only just passed is still caught.
    #[inline]
    fn reached(&self, angle: u32, move_turns: u64) -> u64 {
        let tolerance = self.platter.tolerance();
        let ahead = angle.wrapping_sub(self.angle).wrapping_add(tolerance);
        let wait = ahead.wrapping_sub(move_turns as u32);
        (move_turns + u64::from(wait)).saturating_sub(u64::from(tolerance))
    }
}
