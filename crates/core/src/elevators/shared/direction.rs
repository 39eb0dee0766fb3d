//! The direction of deadline's and mq-deadline's batches: reads go first, and writes are starved only so often.

use crate::bio::Op;
use crate::elevator::tunable::{Tunable, Unit};

/// Indices of what an elevator has for each direction.
pub(crate) const READ: usize = Op::Read.direction();
pub(crate) const WRITE: usize = Op::Write.direction();

/// How often reads go first: the row of both deadlines.
pub(in crate::elevators) const WRITES_STARVED: Tunable = Tunable {
    name: "writes_starved",
    unit: Unit::Times,
    default: 2,
    min: i32::MIN as i64,
    max: i32::MAX as i64,
    meaning: "How often reads are preferred to waiting writes.",
    trade_off: "Higher favours reads, lower keeps writes flowing.",
};

/// The direction that a batch begins with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Direction {
    /// How often reads have been chosen over waiting writes.
    starved: i64,
    /// How often they may be.
    pub writes_starved: i64,
}

impl Direction {
    /// Reads, unless there are none or they have been preferred to waiting writes often enough; nothing if nothing waits in either.
    pub fn choose(&mut self, waiting: [bool; 2]) -> Option<usize> {
        let [reads, writes] = waiting;
        if reads && !writes {
            return Some(READ);
        }
        if reads {
            let enough = self.starved >= self.writes_starved;
            self.starved = self.starved.saturating_add(1);
            if !enough {
                return Some(READ);
            }
        }
        if !writes {
            return None;
        }
        self.starved = 0;
        Some(WRITE)
    }
}
