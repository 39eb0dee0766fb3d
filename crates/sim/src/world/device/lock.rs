//! The CPU time of the elevator's work, which is done under a lock.

use rand_pcg::Pcg64;

use super::super::task::SubmitterId;
use crate::config::ElevatorCost;
use crate::workload::distribution::unit;
use crate::workload::stream;

/// The lock under which the elevator works.
#[derive(Debug)]
pub(super) struct ElevatorLock {
    cost: ElevatorCost,
    /// True if several processors can do the elevator's work.
    shared: bool,
    /// The time from which the lock is free.
    free_ns: u64,
    /// The submitter that had the lock last.
    last: Option<SubmitterId>,
    /// The random numbers of the times under the lock.
    rng: Pcg64,
}

impl ElevatorLock {
    pub fn new(cost: ElevatorCost, shared: bool, seed: u64) -> ElevatorLock {
        ElevatorLock { cost, shared, free_ns: 0, last: None, rng: stream(seed, 0, 9) }
    }

    /// Returns the time of the elevator's work for `bios` of a submitter from `at_ns` on, with the
    /// time in which the submitter spins until the lock is free.
    pub fn work_ns(&mut self, submitter: SubmitterId, at_ns: u64, bios: u64) -> u64 {
        if self.cost.contended_ns == 0 {
            return bios * self.cost.work_ns;
        }
        let is_taken_over = self.shared && self.last.is_some_and(|last| last != submitter);
        let work_ns = match (is_taken_over, at_ns < self.free_ns) {
            (false, _) => self.cost.work_ns,
            (true, false) => self.drawn_ns(self.cost.shared_ns),
            (true, true) => self.drawn_ns(self.cost.contended_ns),
        };
        let hold_ns = bios * work_ns;
        self.last = Some(submitter);
        self.free_ns = self.free_ns.max(at_ns).saturating_add(hold_ns);
        self.free_ns - at_ns
    }

    /// Draws the time of the work under a lock that another processor had. It is exponential: the
    /// cache lines to fetch and the visits to the lock differ from request to request.
    fn drawn_ns(&mut self, mean_ns: u64) -> u64 {
        (-(mean_ns as f64) * (1.0 - unit(&mut self.rng)).ln()) as u64
    }
}
