//! How long the works need, from where they are, until a command's first sector is under the head.
//!
//! Times are counted in turns of the platter, 2^32 a revolution, so that the wait for an angle after a move is a subtraction.

use crate::command::{Access, Op};
use crate::geometry::Spot;
use crate::platter::Platter;
use crate::profile::OverheadsNs;

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

    /// What can be told at a glance.
    pub(super) fn least(&self) -> Least<'_> {
        let (moves, shift) = self.mechanics.least_moves();
        Least { cylinder: self.arm.cylinder, angle: self.angle, tolerance: self.platter.tolerance(), moves, shift }
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
        reached(spot.angle.wrapping_sub(self.angle), self.platter.angle_in(move_ns), self.platter.tolerance())
    }

    /// A time as turns.
    pub(super) fn turns(&self, span_ns: u64) -> u64 {
        self.platter.angle_in(span_ns)
    }
}

/// A bound from the distance alone. Its parts lie close together: every waiting command is held against it at every choice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Least<'a> {
    cylinder: u32,
    angle: u32,
    tolerance: u32,
    shift: u32,
    moves: &'a [u64],
}

impl Least<'_> {
    /// Nothing at `cylinder` and `angle` is reached in fewer turns.
    #[inline]
    pub(super) fn turns(&self, cylinder: u32, angle: u32) -> u64 {
        let distance = self.cylinder.abs_diff(cylinder);
        let move_turns = self.moves.get((distance >> self.shift) as usize).copied().unwrap_or(0);
        reached(angle.wrapping_sub(self.angle), move_turns, self.tolerance)
    }
}

/// When an angle that is `ahead` is under the head for the first time after a move. A mark that has only just passed is still caught.
#[inline]
fn reached(ahead: u32, move_turns: u64, tolerance: u32) -> u64 {
    let wait = ahead.wrapping_add(tolerance).wrapping_sub(move_turns as u32);
    (move_turns + u64::from(wait)).saturating_sub(u64::from(tolerance))
}
