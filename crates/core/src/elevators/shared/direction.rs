//! The direction of batches in deadline and mq-deadline: reads first, with bounded starvation of
//! writes.

use crate::bio::Op;
use crate::collections::Count;
use crate::elevator::tunable::{Tunable, Unit};

/// Indices of the data directions.
pub(crate) const READ: usize = Op::Read.direction();
pub(crate) const WRITE: usize = Op::Write.direction();

/// The tunable that bounds the starvation of writes, of both deadline elevators.
pub(in crate::elevators) const WRITES_STARVED: Tunable = Tunable {
    name: "writes_starved",
    unit: Unit::Times,
    default: 2,
    min: i32::MIN as i64,
    max: i32::MAX as i64,
    meaning: "The number of times in succession that reads are preferred to waiting writes.",
    trade_off: "A higher number favours reads; a lower number shortens the wait of writes.",
};

/// The choice of the direction of the next batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Direction {
    /// The number of times that reads were preferred to waiting writes.
    starved: i64,
    /// The limit of `starved`.
    pub writes_starved: i64,
}

impl Direction {
    /// Returns reads, unless there are none or they have been preferred often enough; `None` if
    /// neither direction has requests.
    pub fn choose(&mut self, waiting: [bool; 2]) -> Option<usize> {
        let [reads, writes] = waiting;
        if reads && !writes {
            return Some(READ);
        }
        if reads {
            let enough = self.starved >= self.writes_starved;
            self.starved.increment();
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
