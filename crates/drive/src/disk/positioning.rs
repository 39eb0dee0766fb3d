//! The access time from the current position of the arm to the first sector of a command.
//!
//! Times are angles of the platter, 2^32 a revolution, so that the rotational latency after a seek
//! is a subtraction.

use crate::command::{Access, Op};
use crate::geometry::SectorPosition;
use crate::platter::Platter;
use crate::profile::OverheadsNs;

use super::mechanics::Mechanics;

/// The position of arm and platter at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Positioning<'a> {
    pub(super) at_ns: u64,
    pub(super) arm: &'a SectorPosition,
    pub(super) mechanics: &'a Mechanics,
    pub(super) platter: &'a Platter,
    pub(super) overheads: &'a OverheadsNs,
    pub(super) interface_sector_ns: u64,
    pub(super) last: Op,
    /// The angle under the head.
    pub(super) angle: u32,
    /// Reads that begin in this range of sectors (both ends included) continue the current stream.
    pub(super) stream: Option<(u64, u64)>,
    /// The sector at which the read-ahead of the current stream stops.
    pub(super) ahead_limit: u64,
}

impl Positioning<'_> {
    pub(super) fn now_ns(&self) -> u64 {
        self.at_ns
    }

    /// The lower bound of access times.
    pub(super) fn lower_bound(&self) -> LowerBound<'_> {
        let (moves, shift) = self.mechanics.move_bounds();
        LowerBound { cylinder: self.arm.cylinder, angle: self.angle, tolerance: self.platter.tolerance(), moves, shift }
    }

    /// The access time, as an angle, to the first sector at `spot` of a command that has waited for
    /// `waited_ns`.
    pub(super) fn needed(&self, access: &Access, spot: &SectorPosition, waited_ns: u64) -> u64 {
        let (op, sector) = (access.op, access.sector);
        if op == Op::Read && self.stream.is_some_and(|(first, next)| first <= sector && sector <= next) {
            return 0;
        }
        let is_ahead = self.stream.is_some_and(|(_, next)| next < sector && sector <= self.ahead_limit);
        if op == Op::Read && is_ahead && self.arm.same_track(spot) {
            // The read-ahead reads the sector before the command is processed.
            return reached(spot.angle.wrapping_sub(self.angle), 0, self.platter.tolerance());
        }
        let overhead_ns = self.overheads.miss(op, self.last);
        let first_ns = if op == Op::Write { self.interface_sector_ns } else { 0 };
        let move_ns = overhead_ns.saturating_sub(waited_ns) + self.mechanics.move_ns(self.arm, spot, op);
        // The first sector of a write must have arrived.
        let move_ns = move_ns.max((overhead_ns + first_ns).saturating_sub(waited_ns));
        reached(spot.angle.wrapping_sub(self.angle), self.platter.angle_in(move_ns), self.platter.tolerance())
    }

    /// Converts a time to an angle.
    pub(super) fn turns(&self, span_ns: u64) -> u64 {
        self.platter.angle_in(span_ns)
    }
}

/// A lower bound of the access time from the distance alone. Its fields are adjacent in memory,
/// because every choice compares every waiting command with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LowerBound<'a> {
    cylinder: u32,
    angle: u32,
    tolerance: u32,
    shift: u32,
    moves: &'a [u64],
}

impl LowerBound<'_> {
    /// The lower bound for a sector at `cylinder` and `angle`.
    #[inline]
    pub(super) fn turns(&self, cylinder: u32, angle: u32) -> u64 {
        let distance = self.cylinder.abs_diff(cylinder);
        let move_turns = self.moves.get((distance >> self.shift) as usize).copied().unwrap_or(0);
        reached(angle.wrapping_sub(self.angle), move_turns, self.tolerance)
    }
}

/// The angle until a sector that is `ahead` is under the head for the first time after a move. A
/// sector that has just passed is still read.
#[inline]
fn reached(ahead: u32, move_turns: u64, tolerance: u32) -> u64 {
    let wait = ahead.wrapping_add(tolerance).wrapping_sub(move_turns as u32);
    (move_turns + u64::from(wait)).saturating_sub(u64::from(tolerance))
}
