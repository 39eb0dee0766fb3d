//! The active queue, its slice, and idling.

use super::queue::Queue;
use super::{CfqV3, SEEKY_SECTORS};
use crate::clock::Timer;
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::elevators::shared::idling::{grace_end, idle_wait};
use crate::event::Note;
use crate::priority::Class;

impl<H: HostTypes> CfqV3<H> {
    /// Selects the queue to dispatch from, or [`NIL`] to wait.
    pub(super) fn select(&mut self, core: &mut QueueCore<H>) -> Slot {
        if self.active == NIL {
            return self.activate_next(core);
        }
        let queue = &self.queues[self.active];
        if !queue.must_dispatch && core.ticks() > queue.slice_end {
            self.expire(core, false);
            return self.activate_next(core);
        }
        if !queue.tree.is_empty() {
            return self.active;
        }
        if queue.dispatched() > 0 {
            return NIL;
        }
        if queue.is_for_sync() && self.arm_idle(core) {
            return NIL;
        }
        self.expire(core, false);
        self.activate_next(core)
    }

    /// Selects the real-time queue to dispatch from, or [`NIL`] if none has requests. An active
    /// queue of another class is preempted.
    pub(super) fn select_real_time(&mut self, core: &mut QueueCore<H>) -> Slot {
        let is_real_time = |queue: &Queue| queue.priority.class() == Class::RealTime;
        // Real-time queues with requests are on the current list, at any level.
        let mut slot = self.filing.first_current();
        while slot != NIL && !is_real_time(&self.queues[slot]) {
            slot = self.filing.next(slot);
        }
        if slot == NIL || self.active == NIL {
            self.set_active_unless_nil(core, slot);
            return slot;
        }
        let active = &self.queues[self.active];
        let over = !active.must_dispatch && core.ticks() > active.slice_end;
        if is_real_time(active) && !active.tree.is_empty() && !over {
            return self.active;
        }
        let preempted = !is_real_time(active);
        self.expire(core, preempted);
        self.set_active(core, slot);
        slot
    }

    fn set_active_unless_nil(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        if slot != NIL {
            self.set_active(core, slot);
        }
    }

    /// Activates the queue whose turn it is.
    fn activate_next(&mut self, core: &mut QueueCore<H>) -> Slot {
        let mut slot = self.filing.first_current();
        if slot == NIL && self.filing.take_next_level() {
            slot = self.filing.first_current();
        }
        if slot == NIL {
            slot = self.filing.first_busy();
        }
        if slot == NIL && self.filing.first_idle() != NIL {
            let grace_ends = grace_end(core, self.last_end);
            if core.ticks() >= grace_ends {
                slot = self.filing.first_idle();
            } else {
                core.arm_at_tick(Timer::Grace, grace_ends);
            }
        }
        self.set_active(core, slot);
        slot
    }

    fn set_active(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        self.active = slot;
        if slot == NIL {
            return;
        }
        core.timers.cancel(Timer::Grace);
        let queue = &mut self.queues[slot];
        queue.slice_end = 0;
        queue.slice_left = 0;
        queue.must_alloc_slice = false;
        queue.fifo_used = false;
        let (name, level) = (queue.name(), queue.level());
        core.note(|_| Note::Activate { queue: name, level });
    }

    /// Expires the active queue, if there is one.
    pub(super) fn expire(&mut self, core: &mut QueueCore<H>, preempted: bool) {
        let slot = self.active;
        if slot == NIL {
            return;
        }
        let now = core.ticks();
        let queue = &mut self.queues[slot];
        if queue.wait_request {
            core.timers.cancel(Timer::Idle);
        }
        let served = !preempted && queue.dispatched() == 0;
        if served {
            queue.service_last = now;
        }
        queue.must_dispatch = false;
        queue.wait_request = false;
        queue.slice_left = queue.slice_end.saturating_sub(now);
        let (name, left, filed) = (queue.name(), queue.slice_left, queue.filed.is_some());
        core.note(|core| Note::SliceExpired { queue: name, left_ns: core.clock.ns_of_ticks(left), preempted });
        if served {
            self.kick(core);
        }
        if filed {
            self.filing.refile(&mut self.queues, slot, preempted);
        }
        self.active = NIL;
        self.follow(core, NIL);
        self.dispatch_slice = 0;
    }

    /// Sets the context whose statistics decide about idling.
    pub(super) fn follow(&mut self, core: &mut QueueCore<H>, context: Slot) {
        core.hold_instead(&mut self.active_context, context);
    }

    /// Handles a dispatched round of requests: starts the slice if it has not begun, and ends it if
    /// the queue has used up its requests.
    pub(super) fn after_round(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        let queue = &mut self.queues[slot];
        let (sync, level) = (queue.is_sync(), queue.level());
        if queue.slice_end == 0 {
            queue.slice_end = core.ticks().saturating_add(self.tunables.slice_of(sync, level));
            let (name, end) = (queue.name(), queue.slice_end);
            core.note(|core| Note::SliceSet { queue: name, until_ns: core.clock.time_of_tick(end) });
        }
        let enough = !sync && self.dispatch_slice >= self.tunables.max_async_requests(level);
        if enough || self.queues[slot].is_idle_class() || !self.queues[slot].idle_window {
            self.expire(core, false);
        }
    }

    /// Begins to keep the disk idle for the active queue. Returns true if it does.
    pub(super) fn arm_idle(&mut self, core: &mut QueueCore<H>) -> bool {
        let context = &core.tables.contexts[self.active_context];
        let queue = &mut self.queues[self.active];
        if self.tunables.slice_idle == 0 || !queue.idle_window || self.active_context == NIL || !context.is_running() {
            return false;
        }
        let seek = context.history.seek;
        let wait = idle_wait(core, self.tunables.slice_idle, seek, SEEKY_SECTORS);
        queue.must_dispatch = true;
        queue.wait_request = true;
        let (name, until) = (queue.name(), core.ticks().saturating_add(wait));
        core.arm_at_tick(Timer::Idle, until);
        core.note(|core| Note::IdleArmed { queue: name, until_ns: core.clock.time_of_tick(until) });
        true
    }

    /// Handles a new request: updates the statistics, and dispatches if it was waited for or
    /// preempts.
    pub(super) fn enqueued(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot) {
        let context = core.tables.requests[request].context;
        if !core.reads(request) {
            if context == self.active_context && core.timers.cancel(Timer::Idle) {
                self.expire(core, false);
                core.run_now();
            }
            return;
        }
        self.update_history(core, slot, request);
        if slot == self.active {
            if self.queues[slot].wait_request {
                self.queues[slot].must_dispatch = true;
                core.timers.cancel(Timer::Idle);
                let name = self.queues[slot].name();
                core.note(|_| Note::IdleHit { queue: name });
                core.run_now();
            }
        } else if self.should_preempt(slot) {
            self.preempt(core, slot);
            self.queues[slot].must_dispatch = true;
            core.run_now();
        }
    }

    fn update_history(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot) {
        let (now, idle) = (core.ticks(), self.tunables.slice_idle);
        let (sector, end) = (core.tables.requests[request].sector, core.tables.requests[request].end());
        let context = core.context_of(request);
        let running = context.is_running();
        let history = &mut context.history;
        history.update(now, idle, sector.abs_diff(history.last_position), end);
        let seeky = self.hw_queue && history.seek.mean > SEEKY_SECTORS;
        let queue = &mut self.queues[slot];
        if let Some(idle_window) = history.idle_window(running, idle, seeky) {
            queue.idle_window = idle_window;
        }
    }

    fn should_preempt(&self, slot: Slot) -> bool {
        let (new, active) = (&self.queues[slot], &self.queues[self.active]);
        if new.is_idle_class() || self.active == NIL {
            return false;
        }
        if active.is_idle_class() {
            return true;
        }
        // Only an active queue ever waits for a request, so as shipped this condition never holds.
        if !new.wait_request && !self.preempt_fixed {
            return false;
        }
        new.slice_left >= self.tunables.slice_idle && !active.is_sync()
    }

    fn preempt(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        let (queue, victim) = (self.queues[slot].name(), self.queues[self.active].name());
        core.note(|_| Note::Preempt { queue, victim });
        let mut at = self.filing.first_current();
        while at != NIL {
            let next = self.filing.next(at);
            // A real-time queue would be filed on this very list again: with three of them the loop
            // would never end.
            if self.queues[at].priority.class() != Class::RealTime {
                self.filing.refile(&mut self.queues, at, true);
            }
            at = next;
        }
        let new = &mut self.queues[slot];
        if new.slice_left == 0 {
            new.slice_left = self.tunables.slice_of(new.is_sync(), new.level()) / 2;
        }
        self.expire(core, true);
        self.set_active(core, slot);
    }

    /// The wait for the active queue's next request timed out.
    pub(super) fn idle_over(&mut self, core: &mut QueueCore<H>) {
        if self.active != NIL {
            let queue = &mut self.queues[self.active];
            let name = queue.name();
            core.note(|_| Note::IdleTimeout { queue: name });
            if core.ticks() <= queue.slice_end {
                if self.busy_queues == 0 {
                    // No other queue has requests: the queue stays active, and the next request of
                    // another queue waits once more.
                    return;
                }
                if !queue.tree.is_empty() {
                    queue.must_dispatch = true;
                    return self.kick(core);
                }
            }
            self.expire(core, false);
        }
        self.kick(core);
    }

    /// Handles the possible end of the idle class's grace period.
    pub(super) fn grace_over(&mut self, core: &mut QueueCore<H>) {
        let ends = grace_end(core, self.last_end);
        if core.ticks() < ends {
            core.arm_at_tick(Timer::Grace, ends);
        } else {
            self.kick(core);
        }
    }

    /// Schedules a run of the request queue if any queue has requests.
    pub(super) fn kick(&self, core: &mut QueueCore<H>) {
        if self.busy_queues > 0 {
            core.kick();
        }
    }
}
