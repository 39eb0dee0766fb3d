//! The cost of writes that a write cache hides.
//!
//! A drive with a write cache takes writes at once and works on them later, in the time of other
//! requests. While there are writes in the device, and for a moment after them, the busy time that
//! the cost of the reads does not explain belongs to the writes: a factor on their lines follows.

use crate::collections::Count;

/// The time after a write in which the times of reads may be due to the write, in ns.
const AFTER_WRITE_NS: u64 = 50_000_000;
/// The number of writes after which the factor is computed again.
const WRITES_A_FACTOR: u64 = 64;
/// The factor 1.
const FACTOR_ONE: u64 = 256;
/// The bounds of the factor: 1/4 and 256.
const FACTOR_MIN: u64 = 64;
const FACTOR_MAX: u64 = 65536;

/// The writes in the device, and the factor on the lines of writes.
#[derive(Debug)]
pub struct Writes {
    pub in_flight: u32,
    /// The time of the last completion of a write.
    pub completed_ns: u64,
    /// The factor, times [`FACTOR_ONE`].
    factor: u64,
    /// Since the factor was computed: the busy time, the cost of reads, the cost of writes by their
    /// lines, the number of writes.
    busy_ns: u64,
    reads_ns: u64,
    writes_ns: u64,
    count: u64,
}

impl Default for Writes {
    fn default() -> Self {
        let factor = FACTOR_ONE;
        Writes { in_flight: 0, completed_ns: 0, factor, busy_ns: 0, reads_ns: 0, writes_ns: 0, count: 0 }
    }
}

impl Writes {
    /// Returns true if the device may be busy with writes.
    pub fn are_active(&self, now_ns: u64) -> bool {
        self.in_flight > 0 || now_ns.saturating_sub(self.completed_ns) < AFTER_WRITE_NS
    }

    /// The cost of a write whose cost by its line is this.
    pub fn cost(&self, line_ns: u64) -> u64 {
        line_ns.saturating_mul(self.factor) / FACTOR_ONE
    }

    /// Adds a request that completed while writes were active, with its cost by its line.
    pub fn add(&mut self, is_write: bool, line_ns: u64, time_ns: u64) {
        self.busy_ns = self.busy_ns.saturating_add(time_ns);
        if !is_write {
            self.reads_ns = self.reads_ns.saturating_add(line_ns);
            return;
        }
        self.writes_ns = self.writes_ns.saturating_add(line_ns);
        self.count.increment();
        if self.count < WRITES_A_FACTOR {
            return;
        }
        let rest = self.busy_ns.saturating_sub(self.reads_ns);
        let factor = rest.saturating_mul(FACTOR_ONE) / self.writes_ns.max(1);
        let factor = self.factor.saturating_mul(3).saturating_add(factor) / 4;
        self.factor = factor.clamp(FACTOR_MIN, FACTOR_MAX);
        (self.busy_ns, self.reads_ns, self.writes_ns, self.count) = (0, 0, 0, 0);
    }
}
