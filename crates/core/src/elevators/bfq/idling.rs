//! The questions that all decisions ask: is everybody alike, is it worth keeping the disk idle for a queue, is its time over.

use super::Bfq;
use super::state::Tick;
use crate::collections::Slot;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;

/// An async sector counts so many times where all queues are alike: else shares must be exact.
const ASYNC_FACTOR: u64 = 3;
/// A raised queue with so many requests of others in the device needs the disk kept for it.
const OTHERS_IN_FLIGHT: u32 = 4;

impl<H: HostTypes> Bfq<H> {
    /// Whether queues differ, so that the order in which the device serves what it has matters to their shares: in weight (a queue of the
    /// lowest one cannot be wronged), in class, or by groups.
    pub(super) fn is_asymmetric(&self, queue: Slot) -> bool {
        let classes = self.busy.iter().filter(|&&count| count != 0).count();
        let weights = self.engine.weights_differ() && !self.engine.is_lightest(queue);
        weights || classes > 1 || self.engine.groups_pending > 0
    }

    /// What a request costs its queue, in sectors.
    pub(super) fn cost(&self, core: &QueueCore<H>, request: Slot, queue: Slot) -> u64 {
        let sectors = u64::from(core.tables.requests[request].sectors);
        if self.queues[queue].sync || self.coefficient(queue) > 1 || self.is_asymmetric(queue) {
            sectors
        } else {
            sectors.saturating_mul(ASYNC_FACTOR)
        }
    }

    /// Whether throughput gains by keeping the disk idle for this queue.
    pub(super) fn idling_boosts(&self, slot: Slot) -> bool {
        let queue = &self.queues[slot];
        if queue.users == 0 || self.raised_busy != 0 {
            return false;
        }
        let single = self.queueing.queues == Some(false);
        let sequential = !queue.is_seeky() && queue.io_bound && queue.short_think;
        (self.rotational && single) || ((self.rotational || single) && sequential)
    }

    /// Whether this queue would lose its share if the disk went to others while it has no request.
    pub(super) fn idling_is_needed(&self, slot: Slot) -> bool {
        let queue = &self.queues[slot];
        let crowded = self.in_flight >= queue.in_flight.saturating_add(OTHERS_IN_FLIGHT);
        let raised = self.coefficient(slot) > 1 && (self.raised_busy < self.busy_queues() || crowded);
        queue.users > 0 && (raised || self.is_asymmetric(slot) || self.busy_queues() == 1)
    }

    /// Whether the disk is kept for this queue when it has no request.
    pub(super) fn may_idle(&self, slot: Slot) -> bool {
        if self.queues[slot].users == 0 {
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

    /// Whether the time of a queue's slot is over; one that the disk waits for and that has used most of its budget is given some more.
    pub(super) fn may_time_out(&self, slot: Slot, tick: Tick) -> bool {
        let queue = &self.queues[slot];
        tick >= queue.timeout && (!queue.waits || self.has_third_left(slot))
    }

    /// Whether a third of its budget is left.
    pub(super) fn has_third_left(&self, slot: Slot) -> bool {
        self.budget_left(slot) >= (self.engine.entities[slot].budget / 3) as i64
    }
}
