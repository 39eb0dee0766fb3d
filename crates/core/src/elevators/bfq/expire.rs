//! Expiration of the queue in service: its charge and its next budget.

use super::state::{Phase, Usage};
use super::wf2q::{Insertion, Removal};
use super::{SLOTS_KNOWN, Scheduler, Tick, engine_tick, tick};
use crate::clock::Timer;
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::{Expiry, Note};

/// Shorter slots do not measure the duration of requests, in us. They count as some ms.
const SLOT_US_MIN: u64 = 1000;
/// The length that such a slot counts as, in ms: Linux's idle wait for the kind of device.
const SHORT_SLOT_FLASH_MS: u64 = 2;
const SHORT_SLOT_ROTATIONAL_MS: u64 = 8;
/// The length from which a slot measures a queue's speed, in us; below, seeky queues count as slow.
const MEASURED_US: u64 = 20_000;
/// The time for which the maximum budget stands in charges for time, in ms, independent of
/// timeout_sync.
const CHARGED_MS_MAX: u64 = 125;

impl<H: HostTypes> Scheduler<H> {
    /// Expires the queue in service. With `idled` the disk was idle until now, and the slot ended
    /// when the idling began.
    pub(super) fn expire(&mut self, core: &mut QueueCore<H>, slot: Slot, reason: Expiry, idled: bool) {
        debug_assert!(slot != NIL && slot == self.in_service);
        let now = tick(core);
        let served = self.engine.entities[slot].service;
        self.charge_time(core, slot, reason, idled);
        self.note_expiry(core, slot, reason, served);
        let raised = self.coefficient(slot) > 1;
        if self.tunables.low_latency && !raised {
            self.queues[slot].raising.at = now;
        }
        if self.tunables.low_latency && self.queues[slot].requests.is_empty() {
            if self.queues[slot].in_flight == 0 {
                self.queues[slot].soft.earliest = self.next_soft_start(slot, now);
            } else {
                self.queues[slot].soft_later = true;
            }
        }
        self.injection.cancel();
        self.adapt_budget(core, slot, reason);
        self.close(core, slot, reason);
        if !self.queues[slot].is_busy() && reason != Expiry::TimedOut && reason != Expiry::Exhausted {
            self.queues[slot].phase = Phase::RanEmpty;
        } else {
            self.engine.entities[slot].service = 0;
        }
        let mut group = self.engine.levels[self.group_of(slot)].group;
        while group != NIL {
            let entity = &mut self.engine.entities[group];
            entity.service = 0;
            group = self.engine.levels[entity.level].group;
        }
    }

    fn note_expiry(&self, core: &mut QueueCore<H>, slot: Slot, reason: Expiry, served: u64) {
        let (queue, budget) = (self.name(slot), self.engine.entities[slot].budget);
        let charged = self.engine.entities[slot].service;
        core.note(|_| Note::BudgetExpired { queue, reason, served, budget });
        if charged != served {
            core.note(|_| Note::Charge { queue, amount: charged });
        }
    }

    /// Charges a slow queue, or one that timed out long before its budget, as if it had transferred
    /// data at the peak rate all the time.
    fn charge_time(&mut self, core: &QueueCore<H>, slot: Slot, reason: Expiry, idled: bool) {
        let served = self.engine.entities[slot].service;
        let end_ns = if idled { self.idle_start_ns } else { core.ktime_ns() };
        let (mut slow, mut length_ms) = (false, 0);
        if self.queues[slot].sync {
            let length_us = end_ns.saturating_sub(self.slot_start_ns) / 1000;
            slow = self.queues[slot].locality.is_seeky();
            length_ms = match (length_us < SLOT_US_MIN, self.rotational) {
                (true, true) => SHORT_SLOT_ROTATIONAL_MS,
                (true, false) => SHORT_SLOT_FLASH_MS,
                _ => length_us / 1000,
            };
            if length_us > MEASURED_US {
                slow = served < self.budget_max / 2;
            }
        }
        let wasted = reason == Expiry::TimedOut && self.has_third_left(slot);
        if self.coefficient(slot) == 1 && (slow || wasted) {
            let time = self.budget_max.saturating_mul(length_ms.min(CHARGED_MS_MAX)) / CHARGED_MS_MAX;
            let total = time.max(served);
            let entity = &mut self.engine.entities[slot];
            entity.budget = entity.budget.max(total);
            self.serve(core, slot, total.saturating_sub(served));
        }
    }

    /// Accounts for service given to a queue.
    pub(super) fn serve(&mut self, core: &QueueCore<H>, slot: Slot, sectors: u64) {
        let raised = self.coefficient(slot) > 1;
        let queue = &mut self.queues[slot];
        if raised {
            queue.raising.served = queue.raising.served.saturating_add(sectors);
        }
        queue.service.charge(sectors, tick(core));
        self.engine.charge(slot, sectors);
    }

    /// Sets the next budget from the way this one ended; it grows as long as the queue uses it up.
    fn adapt_budget(&mut self, core: &QueueCore<H>, slot: Slot, reason: Expiry) {
        let (least, largest) = (self.budget_min(), self.budget_max);
        let queue = &self.queues[slot];
        let raised = self.coefficient(slot) > 1;
        let last = if raised { least.saturating_mul(2) } else { queue.service.budget_max };
        let budget = match reason {
            _ if !queue.sync => largest,
            _ if raised => last,
            Expiry::TooIdle if queue.in_flight > 0 => last.saturating_mul(2).min(largest),
            Expiry::TooIdle if last > least.saturating_mul(5) => last.saturating_sub(least.saturating_mul(4)),
            Expiry::TooIdle => least,
            Expiry::TimedOut => last.saturating_mul(2).min(largest),
            Expiry::Exhausted => last.saturating_mul(4).min(largest),
            Expiry::NoMoreRequests => self.engine.entities[slot].service.max(least),
            Expiry::Preempted => return,
        };
        let capped = self.slots >= SLOTS_KNOWN && self.tunables.max_budget == 0;
        let budget = if capped { budget.min(largest) } else { budget };
        let next = queue.next;
        self.queues[slot].service.budget_max = budget;
        if next != NIL {
            let cost = self.cost(core, next, slot);
            self.engine.entities[slot].budget = budget.max(cost);
        }
    }

    /// Ends the service of a queue. It waits for its turn again if it has requests, or if it was
    /// preempted although the disk should have been kept idle for it.
    pub(super) fn close(&mut self, core: &mut QueueCore<H>, slot: Slot, reason: Expiry) {
        let now = tick(core);
        let queue = &mut self.queues[slot];
        if queue.is_shared() && queue.locality.is_seeky() {
            queue.usage = Usage::Diverging;
        }
        let empty = queue.requests.is_empty();
        if empty && !(reason == Expiry::Preempted && self.idling_is_needed(slot)) {
            if self.queues[slot].in_flight == 0 {
                self.queues[slot].service.timeout = now;
            }
            self.leave_busy(core, slot, Removal::Expiry);
        } else {
            self.engine.raise(slot, Insertion::Expiry, engine_tick(core));
            if !empty && !self.flash_queueing {
                self.index(core, slot);
            }
        }
        self.stop_waiting(core);
        self.in_service = NIL;
        self.engine.clear_current(slot);
    }

    /// Ends the idling for the queue in service.
    pub(super) fn stop_waiting(&mut self, core: &mut QueueCore<H>) {
        self.waits = false;
        core.timers.cancel(Timer::Idle);
    }

    /// The timeout of a slot that begins now. A raised queue has a multiple of it, unless it is
    /// soft real-time.
    pub(super) fn slot_timeout(&self, slot: Slot, now: Tick) -> Tick {
        let entity = &self.engine.entities[slot];
        let soft = self.queues[slot].raising.is_soft();
        let times = if soft { 1 } else { entity.weight / entity.base.max(1) };
        now.saturating_add(Tick::from(self.tunables.timeout_ms).saturating_mul(Tick::from(times)))
    }
}
