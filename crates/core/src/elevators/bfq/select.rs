//! Selection: the queue in service while its budget and time last, then the one that B-WF2Q+ picks;
//! and the next request within it.

use super::rate::Dispatched;
use super::{Scheduler, engine_tick, tick};
use crate::collections::{Count, NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::elevators::shared::wf2q::{self, Removal};
use crate::event::{Expiry, Note};

impl<H: HostTypes> Scheduler<H> {
    /// Dispatches the next request, if one may be dispatched now.
    pub(super) fn dispatch_one(&mut self, core: &mut QueueCore<H>) -> u32 {
        if self.queued == 0 || self.busy_queues() == 0 || (self.tunables.strict && self.in_flight > 0) {
            return 0;
        }
        let slot = self.select(core);
        let request = self.queues[slot].next;
        if slot == NIL || request == NIL {
            debug_assert!(slot == NIL, "a selected queue has a request");
            return 0;
        }
        let cost = self.cost(core, request, slot);
        self.serve(core, slot, cost);
        if slot == self.in_service {
            self.injection.request_dispatched(request);
        } else {
            core.note(|_| Note::Injected { queue: self.name(slot), into: self.name(self.in_service) });
        }
        self.move_to_dispatch(core, slot, request);
        if slot == self.in_service {
            self.check_raising(core, slot);
            if self.is_idle_class(slot) && self.busy_queues() > 1 {
                self.expire(core, slot, Expiry::Exhausted, false);
            }
        }
        1
    }

    /// Returns true if the next dispatched request is real-time, or can be made so by preempting a
    /// queue of another class. Classes are compared within a group, so the root's count. A
    /// real-time queue in service without requests is waited for as usual.
    pub(super) fn takes_real_time(&mut self, core: &mut QueueCore<H>) -> bool {
        let served = self.in_service;
        let entity = &self.engine.entities[served];
        let serves = served != NIL && entity.class == wf2q::REAL_TIME && entity.level == wf2q::ROOT_LEVEL;
        if serves && self.queues[served].next != NIL {
            return true;
        }
        if self.engine.levels[wf2q::ROOT_LEVEL].tree(wf2q::REAL_TIME).active.is_empty() {
            return false;
        }
        if serves {
            let queue = &self.queues[served];
            return !(self.waits || (queue.in_flight > 0 && self.may_idle(served)));
        }
        if served != NIL {
            self.expire(core, served, Expiry::Preempted, false);
        }
        true
    }

    /// Dispatches all queued requests in any order of turns.
    #[inline(never)]
    pub(super) fn drain(&mut self, core: &mut QueueCore<H>) -> u32 {
        if self.in_service != NIL {
            self.expire(core, self.in_service, Expiry::NoMoreRequests, false);
        }
        let mut moved = 0u32;
        loop {
            let slot = self.engine.recent_first();
            let request = self.queues[slot].next;
            if slot == NIL {
                break;
            }
            if request == NIL {
                // It waits for its turn without requests, as the disk should have been kept idle
                // for it.
                self.leave_busy(core, slot, Removal::Empty);
                continue;
            }
            self.move_to_dispatch(core, slot, request);
            moved.increment();
        }
        debug_assert!(self.queued == 0, "every queue with requests is in an active tree");
        moved
    }

    /// Moves a request to the dispatch list.
    fn move_to_dispatch(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot) {
        let (sectors, end) = (core.tables.requests[request].sectors, core.tables.requests[request].end());
        let queue = &mut self.queues[slot];
        queue.in_flight.increment();
        let far = self.is_far(core, self.position, request);
        let dispatched = Dispatched { sectors, far, in_flight: self.in_flight };
        if self.rate.dispatched(dispatched, core.ktime_ns()) {
            self.rate_changed();
        }
        self.position = end;
        if slot == self.in_service {
            self.position_in_service = end;
        }
        self.remove(core, request);
        self.in_flight.increment();
        core.dispatch_append(request);
    }

    /// Applies a changed peak rate: the maximum budget changes unless the tunable sets it.
    #[inline(never)]
    pub(super) fn rate_changed(&mut self) {
        if self.tunables.max_budget == 0 {
            self.find_budget_max();
        }
    }

    /// The queue from which to dispatch, or [`NIL`] if there is none or the disk is kept idle.
    fn select(&mut self, core: &mut QueueCore<H>) -> Slot {
        let served = self.in_service;
        if served != NIL && self.may_time_out(served, tick(core)) {
            let kept = self.queues[served].next == NIL && self.may_idle(served);
            if !kept {
                self.expire(core, served, Expiry::TimedOut, false);
            }
        }
        // Each turn begins with a queue that had none in this call, so there are at most as many
        // turns as queues.
        for _ in 0..=self.queues.capacity() {
            if self.in_service == NIL && !self.begin_slot(core) {
                return NIL;
            }
            let slot = self.in_service;
            let next = self.queues[slot].next;
            if next != NIL {
                if self.cost(core, next, slot) as i64 <= self.budget_left(slot) {
                    self.stop_waiting(core);
                    return slot;
                }
                self.expire(core, slot, Expiry::Exhausted, false);
                continue;
            }
            let queue = &self.queues[slot];
            if self.waits || (queue.in_flight > 0 && self.may_idle(slot)) {
                return self.injected(core, slot);
            }
            self.expire(core, slot, Expiry::NoMoreRequests, false);
        }
        NIL
    }

    /// Puts the next queue into service. Returns true if there is one.
    fn begin_slot(&mut self, core: &mut QueueCore<H>) -> bool {
        if self.busy_queues() == 0 {
            return false;
        }
        let slot = self.engine.pick_next(engine_tick(core));
        if slot == NIL {
            return false;
        }
        let now = tick(core);
        self.slots = self.slots.saturating_mul(7).saturating_add(256) / 8;
        let raised = self.coefficient(slot) > 1;
        let queue = &mut self.queues[slot];
        queue.oldest_checked = false;
        if raised && queue.raising.is_soft() && now > queue.raising.at && now > queue.service.timeout {
            // Its raising lasts longer by the time in which it waited for service.
            queue.raising.at = if queue.service.timeout > queue.raising.at {
                queue.raising.at.saturating_add(now).saturating_sub(queue.service.timeout)
            } else {
                now
            };
        }
        self.slot_start_ns = core.ktime_ns();
        let timeout = self.slot_timeout(slot, now);
        self.queues[slot].service.timeout = timeout;
        self.position_in_service = 0;
        self.in_service = slot;
        core.note(|_| Note::Activate { queue: self.name(slot), level: self.level(slot) });
        true
    }

    /// Removes a request that is dispatched or was merged into another.
    pub(super) fn remove(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let slot = core.tables.requests[request].owner;
        if self.queues[slot].next == request {
            let next = self.successor(core, slot, request);
            self.queues[slot].next = next;
            self.mark_index(core, slot);
            self.next_changed(core, slot);
        }
        let kind = usize::from(core.tables.requests[request].is_sync());
        let queue = &mut self.queues[slot];
        queue.requests.remove(core, request);
        if let Some(queued) = queue.queued.get_mut(kind) {
            queued.decrement();
        }
        self.queued.decrement();
        if !self.queues[slot].requests.is_empty() {
            if !self.flash_queueing {
                self.index(core, slot);
            }
            return;
        }
        self.queues[slot].next = NIL;
        if self.queues[slot].is_busy() && slot != self.in_service {
            self.leave_busy(core, slot, Removal::Empty);
            let entity = &mut self.engine.entities[slot];
            (entity.budget, entity.service) = (0, 0);
        }
        self.unindex(slot);
    }

    /// The request after one that leaves: once a slot the oldest one, if it is overdue; otherwise
    /// the nearest.
    fn successor(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot) -> Slot {
        if !core::mem::replace(&mut self.queues[slot].oldest_checked, true) {
            let oldest = self.queues[slot].requests.oldest();
            if oldest != NIL && oldest != request && core.ktime_ns() >= core.tables.arrivals[oldest].deadline {
                core.note(|core| Note::Overdue { token: core.tables.requests[oldest].token });
                return oldest;
            }
        }
        let start = core.tables.requests[request].sector;
        self.chooser().neighbour(core, self.queues[slot].requests.tree(), request, start)
    }
}
