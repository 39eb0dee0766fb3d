//! The active queue, its slice, and idling.

use super::{CfqTree, SEEKY_SECTORS, is_metadata};
use crate::clock::Timer;
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::elevators::shared::idling::{grace_end, idle_wait};
use crate::event::Note;

impl<H: HostTypes> CfqTree<H> {
    /// Selects the queue to dispatch from, or [`NIL`] to wait.
    pub(super) fn select(&mut self, core: &mut QueueCore<H>) -> Slot {
        if self.active == NIL {
            return self.activate_next(core);
        }
        let queue = &self.queues[self.active];
        if !queue.slice_is_used(core.ticks()) {
            if !queue.tree.is_empty() {
                return self.active;
            }
            let idling = core.timers.armed_for(Timer::Idle).is_some();
            if idling || (queue.dispatched > 0 && queue.idle_window) {
                return NIL;
            }
        }
        self.expire(core, false);
        self.activate_next(core)
    }

    /// Activates the queue whose turn it is.
    fn activate_next(&mut self, core: &mut QueueCore<H>) -> Slot {
        let mut slot = self.service.first();
        if slot != NIL && self.queues[slot].is_idle_class() {
            let grace_ends = grace_end(core, self.last_end);
            if core.ticks() < grace_ends {
                core.arm_at_tick(Timer::Grace, grace_ends);
                slot = NIL;
            }
        }
        self.active = slot;
        if slot == NIL {
            return NIL;
        }
        core.timers.cancel(Timer::Grace);
        let queue = &mut self.queues[slot];
        queue.slice_end = 0;
        queue.slice_new = true;
        queue.must_alloc_slice = false;
        queue.fifo_used = false;
        let (name, level) = (queue.name(), queue.level());
        core.note(|_| Note::Activate { queue: name, level });
        slot
    }

    /// Expires the active queue, if there is one. With `keep`, the rest of a slice that has begun
    /// is kept.
    pub(super) fn expire(&mut self, core: &mut QueueCore<H>, keep: bool) {
        let slot = self.active;
        if slot == NIL {
            return;
        }
        let now = core.ticks();
        let queue = &mut self.queues[slot];
        if queue.wait_request {
            core.timers.cancel(Timer::Idle);
        }
        queue.wait_request = false;
        let begun = !queue.slice_new;
        let left = if begun { queue.slice_end.saturating_sub(now) } else { 0 };
        if keep && begun {
            queue.slice_left = (queue.slice_end as i64).wrapping_sub(now as i64);
        }
        let (name, filed) = (queue.name(), queue.filed);
        core.note(|core| Note::SliceExpired { queue: name, left_ns: core.clock.ns_of_ticks(left), preempted: keep });
        if filed {
            self.refile(core, slot);
        }
        self.active = NIL;
        self.follow(core, NIL);
    }

    /// Files a queue by the current time: later for shorter slices and more waiting queues. As
    /// shipped, an unused rest of its last slice also delays it.
    pub(super) fn refile(&mut self, core: &QueueCore<H>, slot: Slot) {
        let longest = self.tunables.slice_of(true, 0);
        let queue = &mut self.queues[slot];
        let own = self.tunables.slice_of(queue.is_sync(), queue.level());
        // The kernel multiplies as unsigned 32 bits: a slice longer than the longest sync slice
        // comes 2^32 ticks late.
        let others = self.service.count.saturating_sub(1);
        let offset = others.wrapping_mul((longest as u32).wrapping_sub(own as u32));
        let left = core::mem::take(&mut queue.slice_left);
        let key = core.ticks().saturating_add(u64::from(offset)).saturating_add_signed(left);
        self.service.file(&mut self.queues, slot, key);
    }

    /// Sets the context whose statistics decide about idling.
    pub(super) fn follow(&mut self, core: &mut QueueCore<H>, context: Slot) {
        core.hold_instead(&mut self.active_context, context);
    }

    /// Handles a completion of the active queue: its slice begins or ends, or the disk is kept idle
    /// for its next request.
    pub(super) fn active_completed(&mut self, core: &mut QueueCore<H>, sync: bool) {
        let now = core.ticks();
        let queue = &mut self.queues[self.active];
        if core::mem::take(&mut queue.slice_new) {
            queue.slice_end = now.saturating_add(self.tunables.slice_of(queue.is_sync(), queue.level()));
            let (name, end) = (queue.name(), queue.slice_end);
            core.note(|core| Note::SliceSet { queue: name, until_ns: core.clock.time_of_tick(end) });
        }
        let queue = &self.queues[self.active];
        if queue.slice_is_used(now) {
            self.expire(core, true);
        } else if sync && queue.tree.is_empty() {
            self.arm_idle(core);
        }
    }

    /// Begins to keep the disk idle for the active queue, if idling is useful.
    fn arm_idle(&mut self, core: &mut QueueCore<H>) {
        let context = &core.tables.contexts[self.active_context];
        let queue = &mut self.queues[self.active];
        let known = self.active_context != NIL && context.is_running();
        if self.tunables.slice_idle == 0 || !queue.idle_window || !known {
            return;
        }
        let seek = context.history.seek;
        let wait = idle_wait(core, self.tunables.slice_idle, seek, SEEKY_SECTORS);
        queue.wait_request = true;
        let (name, until) = (queue.name(), core.ticks().saturating_add(wait));
        core.arm_at_tick(Timer::Idle, until);
        core.note(|core| Note::IdleArmed { queue: name, until_ns: core.clock.time_of_tick(until) });
    }

    /// Handles a new request: updates the statistics, and dispatches if it was waited for or
    /// preempts.
    pub(super) fn enqueued(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot) {
        self.update_history(core, slot, request);
        if slot == self.active {
            if self.queues[slot].wait_request {
                core.timers.cancel(Timer::Idle);
                let name = self.queues[slot].name();
                core.note(|_| Note::IdleHit { queue: name });
                core.run_now();
            }
        } else if self.should_preempt(core, slot, request) {
            self.preempt(core, slot);
            core.run_now();
        }
    }

    /// Updates the context's statistics with every request; only those of sync queues decide about
    /// idling.
    fn update_history(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot) {
        let (now, idle) = (core.ticks(), self.tunables.slice_idle);
        let (sector, end) = (core.tables.requests[request].sector, core.tables.requests[request].end());
        let context = core.context_of(request);
        let running = context.is_running();
        let history = &mut context.history;
        history.update(now, idle, sector.abs_diff(history.last_position), end);
        let seeky = self.hw_queue && history.seek.mean > SEEKY_SECTORS;
        let queue = &mut self.queues[slot];
        if !queue.is_sync() {
            return;
        }
        if let Some(idle_window) = history.idle_window(running, idle, seeky) {
            queue.idle_window = idle_window;
        }
    }

    fn should_preempt(&self, core: &QueueCore<H>, slot: Slot, request: Slot) -> bool {
        let (new, active) = (&self.queues[slot], &self.queues[self.active]);
        if self.active == NIL {
            return false;
        }
        if active.slice_is_used(core.ticks()) {
            return true;
        }
        if new.is_idle_class() {
            return false;
        }
        if active.is_idle_class() {
            return true;
        }
        if core.tables.requests[request].is_sync() && !active.is_sync() {
            return true;
        }
        if is_metadata(core, request) && active.metadata == 0 {
            return true;
        }
        if self.active_context == NIL || !active.wait_request {
            return false;
        }
        // While the disk is idle anyway, a request may be served that is as near as the active
        // context's own usually are.
        let seek = core.tables.contexts[self.active_context].history.seek;
        seek.is_valid() && core.tables.requests[request].sector.abs_diff(self.last_position) <= seek.mean
    }

    /// Preempts the active queue and files this one before all others of its class; it is selected
    /// when the queue runs.
    fn preempt(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        debug_assert!(self.queues[slot].filed);
        let (queue, victim) = (self.queues[slot].name(), self.queues[self.active].name());
        core.note(|_| Note::Preempt { queue, victim });
        self.expire(core, true);
        self.service.file(&mut self.queues, slot, 0);
        let new = &mut self.queues[slot];
        new.slice_end = 0;
        new.slice_new = true;
    }

    /// The wait for the active queue's next request timed out.
    pub(super) fn idle_over(&mut self, core: &mut QueueCore<H>) {
        if self.active != NIL {
            let queue = &mut self.queues[self.active];
            let name = queue.name();
            core.note(|_| Note::IdleTimeout { queue: name });
            if !queue.slice_is_used(core.ticks()) {
                if self.service.count == 0 {
                    // No other queue has requests: the active queue stays active until one has.
                    return;
                }
                if !queue.tree.is_empty() {
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

    /// Schedules a run of the request queue if any process queue has requests.
    pub(super) fn kick(&self, core: &mut QueueCore<H>) {
        if self.service.count > 0 {
            core.kick();
        }
    }
}
