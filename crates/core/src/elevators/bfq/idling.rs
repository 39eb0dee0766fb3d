//! Conditions used by several decisions: symmetry of the scenario, usefulness of idling, timeouts.

use super::{Scheduler, Tick};
use crate::collections::Slot;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;

/// The factor on the cost of async sectors in symmetric scenarios; otherwise shares must be exact.
const ASYNC_FACTOR: u64 = 3;
/// The number of other queues' requests in the device from which a raised queue needs idling.
const OTHERS_IN_FLIGHT: u32 = 4;

impl<H: HostTypes> Scheduler<H> {
    /// Returns true if queues differ in weight (unless this one has the lowest), in class or by
    /// groups, so that the device's internal order affects their shares.
    pub(super) fn is_asymmetric(&self, queue: Slot) -> bool {
        let classes = self.busy.iter().filter(|&&count| count != 0).count();
        let weights = self.engine.weights_differ() && !self.engine.is_lightest(queue);
        weights || classes > 1 || self.engine.groups_pending > 0
    }

    /// The cost of a request to its queue, in sectors.
    pub(super) fn cost(&self, core: &QueueCore<H>, request: Slot, queue: Slot) -> u64 {
        let sectors = u64::from(core.tables.requests[request].sectors);
        if self.queues[queue].sync || self.coefficient(queue) > 1 || self.is_asymmetric(queue) {
            sectors
        } else {
            sectors.saturating_mul(ASYNC_FACTOR)
        }
    }

    /// Returns true if idling for this queue increases throughput.
    pub(super) fn idling_boosts(&self, slot: Slot) -> bool {
        let queue = &self.queues[slot];
        if queue.sharing.users == 0 || self.raised_busy != 0 {
            return false;
        }
        let single = self.queueing.queues == Some(false);
        let sequential = !queue.locality.is_seeky() && queue.habits.io_bound && queue.habits.short_think;
        (self.rotational && single) || ((self.rotational || single) && sequential)
    }

    /// Returns true if this queue would lose its share if others were served while it has no
    /// requests.
    pub(super) fn idling_is_needed(&self, slot: Slot) -> bool {
        let queue = &self.queues[slot];
        let crowded = self.in_flight >= queue.in_flight.saturating_add(OTHERS_IN_FLIGHT);
        let raised = self.coefficient(slot) > 1 && (self.raised_busy < self.busy_queues() || crowded);
        queue.sharing.users > 0 && (raised || self.is_asymmetric(slot) || self.busy_queues() == 1)
    }

    /// Returns true if the disk is kept idle for this queue when it has no requests.
    pub(super) fn may_idle(&self, slot: Slot) -> bool {
        if self.queues[slot].sharing.users == 0 {
            return false;
        }
        if self.tunables.strict {
            return true;
        }
        if self.tunables.slice_idle_ns == 0 || !self.queues[slot].sync || self.is_idle_class(slot) {
            return false;
        }
        self.idling_boosts(slot) || self.idling_is_needed(slot)
    }

    /// Returns true if a queue's slot has timed out. A queue for which the disk idles and which has
    /// used most of its budget gets more time.
    pub(super) fn may_time_out(&self, slot: Slot, tick: Tick) -> bool {
        let queue = &self.queues[slot];
        tick >= queue.service.timeout && (!self.waits || self.has_third_left(slot))
    }

    /// Returns true if a third of a queue's budget is left.
    pub(super) fn has_third_left(&self, slot: Slot) -> bool {
        self.budget_left(slot) >= (self.engine.entities[slot].budget / 3) as i64
    }
}
