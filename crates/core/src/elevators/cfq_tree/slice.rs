//! Who has the disk, for how long, and when it is kept idle.

use super::{CfqTree, SEEKY_SECTORS, is_metadata};
use crate::clock::Timer;
use crate::event::Note;
use crate::parts::{NIL, Slot};
use crate::queue::block::Block;
use crate::storage::Home;

/// How long the disk has to be free of others before the idle class is served.
const IDLE_GRACE_MS: u64 = 100;
/// How long a seeky process is waited for at most.
const SEEKY_IDLE_MS: u64 = 2;

impl<H: Home> CfqTree<H> {
    /// The queue to dispatch from now, or [`NIL`] to wait.
    pub(super) fn select(&mut self, block: &mut Block<H>) -> Slot {
        if self.active == NIL {
            return self.activate_next(block);
        }
        let queue = &self.queues[self.active];
        if !queue.slice_is_used(block.ticks()) {
            if !queue.tree.is_empty() {
                return self.active;
            }
            let idling = block.timers.armed_for(Timer::Idle).is_some();
            if idling || (queue.dispatched > 0 && queue.idle_window) {
                return NIL;
            }
        }
        self.expire(block, false);
        self.activate_next(block)
    }

    /// Gives the disk to the queue whose turn it is.
    fn activate_next(&mut self, block: &mut Block<H>) -> Slot {
        let mut slot = self.service.first();
        if slot != NIL && self.queues[slot].is_idle_class() {
            let grace_ends = self.grace_ends(block);
            if block.ticks() < grace_ends {
                block.arm_at_tick(Timer::Grace, grace_ends);
                slot = NIL;
            }
        }
        self.active = slot;
        if slot == NIL {
            return NIL;
        }
        block.timers.cancel(Timer::Grace);
        let queue = &mut self.queues[slot];
        queue.slice_end = 0;
        queue.slice_new = true;
        queue.must_alloc_slice = false;
        queue.fifo_used = false;
        let (name, level) = (queue.name(), queue.level());
        block.note(|_| Note::Activate { queue: name, level });
        slot
    }

    /// Takes the disk from the active queue, if one has it. What is left of its slice is kept if that began and `keep` is set.
    pub(super) fn expire(&mut self, block: &mut Block<H>, keep: bool) {
        let slot = self.active;
        if slot == NIL {
            return;
        }
        let now = block.ticks();
        let queue = &mut self.queues[slot];
        if queue.wait_request {
            block.timers.cancel(Timer::Idle);
        }
        queue.must_dispatch = false;
        queue.wait_request = false;
        let begun = !queue.slice_new;
        let left = if begun { queue.slice_end.saturating_sub(now) } else { 0 };
        if keep && begun {
            queue.slice_left = (queue.slice_end as i64).wrapping_sub(now as i64);
        }
        let (name, filed) = (queue.name(), queue.filed);
        block.note(|block| Note::SliceExpired { queue: name, left_ns: block.clock.ns_of_ticks(left), preempted: keep });
        if filed {
            self.refile(block, slot);
        }
        self.active = NIL;
        self.follow(block, NIL);
    }

    /// Files a queue by the present time: the shorter its slices and the more queues wait, the later its turn. As shipped, what was
    /// left of its last slice puts it back too.
    pub(super) fn refile(&mut self, block: &Block<H>, slot: Slot) {
        let longest = self.tunables.slice_of(true, 0);
        let queue = &mut self.queues[slot];
        let own = self.tunables.slice_of(queue.is_sync(), queue.level());
        // The kernel multiplies in 32 bits without a sign: a slice longer than the longest sync one comes 2^32 ticks late.
        let others = self.service.count.saturating_sub(1);
        let offset = others.wrapping_mul((longest as u32).wrapping_sub(own as u32));
        let left = core::mem::take(&mut queue.slice_left);
        let key = block.ticks().saturating_add(u64::from(offset)).saturating_add_signed(left);
        self.service.file(&mut self.queues, slot, key);
    }

    /// Makes `context` the one whose habits decide whether the disk is kept idle.
    pub(super) fn follow(&mut self, block: &mut Block<H>, context: Slot) {
        if self.active_context != context {
            block.hold_context(context);
            block.unhold_context(self.active_context);
            self.active_context = context;
        }
    }

    /// A request of the active queue has completed: its slice begins or ends, or the disk is kept idle for its next request.
    pub(super) fn active_completed(&mut self, block: &mut Block<H>, sync: bool) {
        let now = block.ticks();
        let queue = &mut self.queues[self.active];
        if core::mem::take(&mut queue.slice_new) {
            queue.slice_end = now.saturating_add(self.tunables.slice_of(queue.is_sync(), queue.level()));
            let (name, end) = (queue.name(), queue.slice_end);
            block.note(|block| Note::SliceSet { queue: name, until_ns: block.clock.time_of_tick(end) });
        }
        let queue = &self.queues[self.active];
        if queue.slice_is_used(now) {
            self.expire(block, true);
        } else if sync && queue.tree.is_empty() {
            self.arm_idle(block);
        }
    }

    /// Begins to keep the disk idle for the active queue, if it is worth it.
    fn arm_idle(&mut self, block: &mut Block<H>) {
        let context = &block.table.contexts[self.active_context];
        let queue = &mut self.queues[self.active];
        let known = self.active_context != NIL && context.is_running();
        if self.tunables.slice_idle == 0 || !queue.idle_window || !known {
            return;
        }
        let seek = context.history.seek;
        let mut wait = self.tunables.slice_idle;
        if seek.is_valid() && seek.mean > SEEKY_SECTORS {
            wait = wait.min(block.clock.ticks_of_ms(SEEKY_IDLE_MS));
        }
        queue.must_dispatch = true;
        queue.wait_request = true;
        let (name, until) = (queue.name(), block.ticks().saturating_add(wait));
        block.arm_at_tick(Timer::Idle, until);
        block.note(|block| Note::IdleArmed { queue: name, until_ns: block.clock.time_of_tick(until) });
    }

    /// A request has come: learn from it, and give its queue the disk if it was waited for or may take it.
    pub(super) fn enqueued(&mut self, block: &mut Block<H>, slot: Slot, request: Slot) {
        self.update_history(block, slot, request);
        if slot == self.active {
            if self.queues[slot].wait_request {
                self.queues[slot].must_dispatch = true;
                block.timers.cancel(Timer::Idle);
                let name = self.queues[slot].name();
                block.note(|_| Note::IdleHit { queue: name });
                block.run_now();
            }
        } else if self.should_preempt(block, slot, request) {
            self.preempt(block, slot);
            block.run_now();
        }
    }

    /// Every request counts for what is known of its process, but only those of sync queues decide about waiting.
    fn update_history(&mut self, block: &mut Block<H>, slot: Slot, request: Slot) {
        let (now, idle) = (block.ticks(), self.tunables.slice_idle);
        let (sector, end) = (block.table.requests[request].sector, block.table.requests[request].end());
        let context = block.context_of(request);
        let running = context.is_running();
        let history = &mut context.history;
        history.learn(now, idle, sector.abs_diff(history.last_position), end);
        let seeky = self.hw_queue && history.seek.mean > SEEKY_SECTORS;
        let queue = &mut self.queues[slot];
        if !queue.is_sync() {
            return;
        }
        if !running || idle == 0 || seeky {
            queue.idle_window = false;
        } else if let Some(comes_back) = history.comes_back_in(idle) {
            queue.idle_window = comes_back;
        }
    }

    fn should_preempt(&self, block: &Block<H>, slot: Slot, request: Slot) -> bool {
        let (new, active) = (&self.queues[slot], &self.queues[self.active]);
        if self.active == NIL {
            return false;
        }
        if active.slice_is_used(block.ticks()) {
            return true;
        }
        if new.is_idle_class() {
            return false;
        }
        if active.is_idle_class() {
            return true;
        }
        if block.table.requests[request].is_sync() && !active.is_sync() {
            return true;
        }
        if is_metadata(block, request) && active.metadata == 0 {
            return true;
        }
        if self.active_context == NIL || !active.wait_request {
            return false;
        }
        // While the disk is kept idle anyway, a request may go in that lies as near as the active process's own usually do.
        let seek = block.table.contexts[self.active_context].history.seek;
        seek.is_valid() && block.table.requests[request].sector.abs_diff(self.last_position) <= seek.mean
    }

    /// Takes the disk from the active queue and files this one before all others of its class; it is chosen when the queue runs.
    fn preempt(&mut self, block: &mut Block<H>, slot: Slot) {
        debug_assert!(self.queues[slot].filed);
        let (queue, victim) = (self.queues[slot].name(), self.queues[self.active].name());
        block.note(|_| Note::Preempt { queue, victim });
        self.expire(block, true);
        self.service.file(&mut self.queues, slot, 0);
        let new = &mut self.queues[slot];
        new.slice_end = 0;
        new.slice_new = true;
        new.must_dispatch = true;
    }

    /// The wait for the active queue's next request is over.
    pub(super) fn idle_over(&mut self, block: &mut Block<H>) {
        if self.active != NIL {
            let queue = &mut self.queues[self.active];
            let name = queue.name();
            block.note(|_| Note::IdleTimeout { queue: name });
            if !queue.slice_is_used(block.ticks()) {
                if self.service.count == 0 {
                    // Nobody else wants the disk: it stays where it is until somebody does.
                    return;
                }
                if !queue.tree.is_empty() {
                    queue.must_dispatch = true;
                    return self.kick(block);
                }
            }
            self.expire(block, false);
        }
        self.kick(block);
    }

    /// The grace period of the idle class may be over.
    pub(super) fn grace_over(&mut self, block: &mut Block<H>) {
        let ends = self.grace_ends(block);
        if block.ticks() < ends {
            block.arm_at_tick(Timer::Grace, ends);
        } else {
            self.kick(block);
        }
    }

    fn grace_ends(&self, block: &Block<H>) -> u64 {
        self.last_end.saturating_add(block.clock.ticks_of_ms(IDLE_GRACE_MS))
    }

    /// Asks for a run of the queue, if any queue has requests.
    pub(super) fn kick(&self, block: &mut Block<H>) {
        if self.service.count > 0 {
            block.kick();
        }
    }
}
