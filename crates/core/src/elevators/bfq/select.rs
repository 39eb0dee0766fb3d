//! Who is served: the queue in service as long as its budget and time last, then the one that B-WF2Q+ picks; and which of its requests.

use super::rate::Dispatched;
use super::{Bfq, engine_tick, tick};
use crate::elevators::wf2q;
use crate::event::{Expiry, Note};
use crate::parts::{NIL, Slot};
use crate::queue::block::Block;
use crate::storage::Home;

impl<H: Home> Bfq<H> {
    /// Moves the next request, if any may be moved now.
    pub(super) fn dispatch_one(&mut self, block: &mut Block<H>) -> u32 {
        if self.queued == 0 || self.busy_queues() == 0 || (self.tunables.strict && self.in_flight > 0) {
            return 0;
        }
        let slot = self.select(block);
        let request = self.queues[slot].next;
        if slot == NIL || request == NIL {
            debug_assert!(slot == NIL, "a queue that is selected has a request");
            return 0;
        }
        let cost = self.cost(block, request, slot);
        self.serve(block, slot, cost);
        if slot == self.in_service {
            self.injection.request_leaves(request);
        } else {
            block.note(|_| Note::Injected { queue: self.name(slot), into: self.name(self.in_service) });
        }
        self.hand_over(block, slot, request);
        if slot == self.in_service {
            self.check_raising(block, slot);
            if self.is_idle_class(slot) && self.busy_queues() > 1 {
                self.expire(block, slot, Expiry::Exhausted, false);
            }
        }
        1
    }

    /// Whether the next request to be moved is of real time, or it can be made so: a queue of another class then loses the disk. Classes are told
    /// apart within a group, so it is the root's that counts. A queue of real time that has the disk and no request is waited for as ever.
    pub(super) fn takes_real_time(&mut self, block: &mut Block<H>) -> bool {
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
            return !(queue.waits || (queue.in_flight > 0 && self.may_idle(served)));
        }
        if served != NIL {
            self.expire(block, served, Expiry::Preempted, false);
        }
        true
    }

    /// Moves all that is queued, whoever's turn it is.
    pub(super) fn drain(&mut self, block: &mut Block<H>) -> u32 {
        if self.in_service != NIL {
            self.expire(block, self.in_service, Expiry::NoMoreRequests, false);
        }
        let mut moved = 0u32;
        loop {
            let slot = self.engine.recent_first();
            let request = self.queues[slot].next;
            if slot == NIL {
                break;
            }
            if request == NIL {
                // It waits for its turn without a request, as the disk should have been kept for it.
                self.leave_busy(block, slot, false);
                continue;
            }
            self.hand_over(block, slot, request);
            moved = moved.saturating_add(1);
        }
        debug_assert!(self.queued == 0, "every queue with requests is in an active tree");
        moved
    }

    /// Moves a request to the driver's side.
    fn hand_over(&mut self, block: &mut Block<H>, slot: Slot, request: Slot) {
        let (sectors, end) = (block.table.requests[request].sectors, block.table.requests[request].end());
        let queue = &mut self.queues[slot];
        queue.in_flight = queue.in_flight.saturating_add(1);
        let far = self.is_far(block, self.position, request);
        let dispatched = Dispatched { sectors, far, in_flight: self.in_flight };
        if self.rate.dispatched(dispatched, block.ktime_ns()) {
            self.rate_changed();
        }
        self.position = end;
        if slot == self.in_service {
            self.position_in_service = end;
        }
        self.remove(block, request);
        self.in_flight = self.in_flight.saturating_add(1);
        block.dispatch_append(request);
    }

    /// The device's rate is another: so is the largest budget, unless the user has set one.
    pub(super) fn rate_changed(&mut self) {
        if self.tunables.max_budget == 0 {
            self.find_budget_max();
        }
    }

    /// The queue to take a request from now, or [`NIL`]: there is none, or the disk is kept for one that has none.
    fn select(&mut self, block: &mut Block<H>) -> Slot {
        let served = self.in_service;
        if served != NIL && self.may_time_out(served, tick(block)) {
            let kept = self.queues[served].next == NIL && self.may_idle(served);
            if !kept {
                self.expire(block, served, Expiry::TimedOut, false);
            }
        }
        // Each turn begins with a queue that has not had one in this call: there are no more turns than queues.
        for _ in 0..=self.queues.capacity() {
            if self.in_service == NIL && !self.begin_slot(block) {
                return NIL;
            }
            let slot = self.in_service;
            let next = self.queues[slot].next;
            if next != NIL {
                if self.cost(block, next, slot) as i64 <= self.budget_left(slot) {
                    self.stop_waiting(block, slot);
                    return slot;
                }
                self.expire(block, slot, Expiry::Exhausted, false);
                continue;
            }
            let queue = &self.queues[slot];
            if queue.waits || (queue.in_flight > 0 && self.may_idle(slot)) {
                return self.injected(block, slot);
            }
            self.expire(block, slot, Expiry::NoMoreRequests, false);
        }
        NIL
    }

    /// Puts the queue whose turn it is into service; answers whether there is one.
    fn begin_slot(&mut self, block: &mut Block<H>) -> bool {
        if self.busy_queues() == 0 {
            return false;
        }
        let slot = self.engine.pick_next(engine_tick(block));
        if slot == NIL {
            return false;
        }
        let now = tick(block);
        self.slots = self.slots.saturating_mul(7).saturating_add(256) / 8;
        let raised = self.coefficient(slot) > 1;
        let queue = &mut self.queues[slot];
        queue.fifo_checked = false;
        if raised && queue.is_soft() && now > queue.raised_at && now > queue.timeout {
            // While it waited it was not served: its raising lasts so much longer.
            queue.raised_at = if queue.timeout > queue.raised_at {
                queue.raised_at.saturating_add(now).saturating_sub(queue.timeout)
            } else {
                now
            };
        }
        self.slot_start_ns = block.ktime_ns();
        let timeout = self.slot_timeout(slot, now);
        self.queues[slot].timeout = timeout;
        self.position_in_service = 0;
        self.in_service = slot;
        block.note(|_| Note::Activate { queue: self.name(slot), level: self.level(slot) });
        true
    }

    /// Takes a request out of its queue: it is dispatched, or has become part of another.
    pub(super) fn remove(&mut self, block: &mut Block<H>, request: Slot) {
        let slot = block.table.requests[request].owner;
        if self.queues[slot].next == request {
            let next = self.successor(block, slot, request);
            self.queues[slot].next = next;
            self.mark_index(block, slot);
            self.next_changed(block, slot);
        }
        let kind = usize::from(block.table.requests[request].is_sync());
        let queue = &mut self.queues[slot];
        queue.requests.remove(block, request);
        if let Some(queued) = queue.queued.get_mut(kind) {
            *queued = queued.saturating_sub(1);
        }
        self.queued = self.queued.saturating_sub(1);
        if !self.queues[slot].requests.is_empty() {
            if !self.flash_queueing {
                self.index(block, slot);
            }
            return;
        }
        self.queues[slot].next = NIL;
        if self.queues[slot].busy && slot != self.in_service {
            self.leave_busy(block, slot, false);
            let entity = &mut self.engine.entities[slot];
            (entity.budget, entity.service) = (0, 0);
        }
        self.unindex(slot);
    }

    /// Which request of the queue comes after one that leaves: once a slot the oldest, if it is overdue; else the one nearest to it.
    fn successor(&mut self, block: &mut Block<H>, slot: Slot, request: Slot) -> Slot {
        if !core::mem::replace(&mut self.queues[slot].fifo_checked, true) {
            let oldest = self.queues[slot].requests.oldest();
            if oldest != NIL && oldest != request && block.ktime_ns() >= block.table.arrivals[oldest].deadline {
                block.note(|block| Note::Overdue { token: block.table.requests[oldest].token });
                return oldest;
            }
        }
        let start = block.table.requests[request].sector;
        self.chooser().neighbour(block, self.queues[slot].requests.tree(), request, start)
    }
}
