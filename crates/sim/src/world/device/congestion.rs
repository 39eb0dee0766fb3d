//! Congestion of the request pool of the single-queue layers.

use hoistway_core::Op;

/// Whether the pool of requests is congested, for reads and for writes. The multi-queue layer
/// reports no congestion.
#[derive(Debug, Default)]
pub(super) struct Congestion {
    reads: bool,
    writes: bool,
    /// True if writes stopped being congested since the flag was last taken.
    writes_ended: bool,
}

impl Congestion {
    /// Returns true if the pool of this direction is congested: from 7/8 of the pool on, until
    /// fewer than 13/16 are used.
    pub fn is(&self, op: Op) -> bool {
        if op == Op::Read { self.reads } else { self.writes }
    }

    /// Notes how many requests of the pool of a direction are used.
    pub fn note(&mut self, op: Op, used: u32, size: u32) {
        let congested = if op == Op::Read { &mut self.reads } else { &mut self.writes };
        if used > size - size / 8 {
            *congested = true;
        } else if *congested && used + 1 < size - size / 8 - size / 16 {
            *congested = false;
            self.writes_ended |= op == Op::Write;
        }
    }

    /// Returns true if [`Self::take_end_of_writes`] does.
    #[inline]
    pub fn have_writes_ended(&self) -> bool {
        self.writes_ended
    }

    /// Returns true once after writes stopped being congested.
    pub fn take_end_of_writes(&mut self) -> bool {
        std::mem::take(&mut self.writes_ended)
    }
}
