//! The one way into the scheduler for calls that change it.

use super::Scheduler;
use crate::elevator::tables::HostTypes;

/// BFQ as an elevator. The field is private to this file, so no call can omit the sweep.
pub(crate) struct Bfq<H: HostTypes>(Scheduler<H>);

impl<H: HostTypes> Bfq<H> {
    pub(super) fn around(scheduler: Scheduler<H>) -> Self {
        Bfq(scheduler)
    }

    pub(super) fn into_scheduler(self) -> Scheduler<H> {
        self.0
    }

    /// The scheduler, for calls that do not change it.
    pub(super) fn scheduler(&self) -> &Scheduler<H> {
        &self.0
    }

    /// Runs a call that may change the scheduler, then sweeps: the engine forgets queues that the
    /// virtual time has passed, and the sweep frees those of them that have no users.
    #[inline(always)]
    pub(super) fn change<R>(&mut self, call: impl FnOnce(&mut Scheduler<H>) -> R) -> R {
        let answer = call(&mut self.0);
        if self.0.engine.has_forgotten() {
            self.0.free_forgotten();
        }
        answer
    }
}
