//! Splitting: processes that no longer read adjacent sectors get queues of their own again.

use super::state::{INTERACTIVE, SYNC, Tick};
use super::{Scheduler, tick};
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::Note;

impl<H: HostTypes> Scheduler<H> {
    /// Gives a process its own queue instead of a shared one; the same queue if it is the last
    /// user. [`NIL`]: no room.
    #[inline(never)]
    pub(super) fn split(&mut self, core: &mut QueueCore<H>, process: Slot, shared: Slot) -> Slot {
        core.note(|core| Note::QueueSplit { queue: core.tables.contexts[process].pid });
        if self.queues[shared].large_burst {
            self.processes[process].saved.large_burst = true;
        }
        if self.queues[shared].users == 1 && self.queues[shared].target == NIL {
            self.queues[shared].shared = false;
            self.queues[shared].to_split = false;
            return shared;
        }
        let waker = self.waker_to_keep(shared);
        self.set_queue(process, SYNC, NIL);
        self.release_targets(shared);
        self.release(core, shared);
        let slot = self.create_own(core, process);
        if slot == NIL {
            return NIL;
        }
        let saved = self.processes[process].saved;
        if (saved.in_burst && self.burst.large) || saved.large_burst {
            self.queues[slot].large_burst = true;
        } else if saved.in_burst {
            self.join_burst(slot);
        }
        self.queues[slot].split_at = tick(core);
        if waker != NIL && self.queues[waker].exists {
            self.set_waker(slot, waker);
        }
        slot
    }

    /// The waker of a shared queue, if it still has users after one process has left the queue and
    /// its planned merges.
    fn waker_to_keep(&self, shared: Slot) -> Slot {
        let waker = self.queues[shared].waker;
        if waker == NIL {
            return NIL;
        }
        let mut at = self.queues[shared].target;
        while at != NIL && at != waker {
            at = self.queues[at].target;
        }
        let leaving = if at == waker { 1 } else { 0 };
        if self.queues[waker].users <= leaving { NIL } else { waker }
    }

    /// Restores the state that a process's queue had before the merge. `kept`: it is the queue that
    /// was shared.
    #[inline(never)]
    pub(super) fn restore(&mut self, core: &mut QueueCore<H>, process: Slot, slot: Slot, kept: bool) {
        let (saved, now) = (self.processes[process].saved, tick(core));
        let before = self.coefficient(slot);
        let queue = &mut self.queues[slot];
        queue.baseline_ns = saved.baseline_ns;
        queue.inject_limit = saved.inject_limit;
        queue.lowered_at = saved.lowered_at;
        queue.think = saved.think;
        queue.last_end_ns = saved.last_end_ns;
        queue.short_think = saved.short_think;
        queue.io_bound = saved.io_bound;
        queue.observed_ns = saved.observed_ns;
        queue.idle_ns = saved.idle_ns;
        queue.interactive_at = saved.interactive_at;
        queue.served_raised = saved.served_raised;
        queue.raised_at = saved.raised_at;
        queue.raised_for = saved.raised_for;
        let entity = &mut self.engine.entities[slot];
        entity.new_base = saved.weight.max(1);
        if self.tunables.low_latency {
            entity.coefficient = saved.coefficient.max(1);
        }
        entity.pending = true;
        self.end_expired_raising(slot, now);
        if kept && self.queues[slot].busy {
            match (before > 1, self.coefficient(slot) > 1) {
                (false, true) => self.raised_busy = self.raised_busy.saturating_add(1),
                (true, false) => self.raised_busy = self.raised_busy.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Ends a restored raising that is over by now.
    fn end_expired_raising(&mut self, slot: Slot, now: Tick) {
        let queue = &self.queues[slot];
        let over = now > queue.raised_at.saturating_add(queue.raised_for);
        if self.coefficient(slot) <= 1 || !(queue.large_burst || over) {
            return;
        }
        if queue.is_soft() && !queue.large_burst && !self.interactive_is_over(slot, now) {
            self.resume_interactive(slot);
            debug_assert!(self.coefficient(slot) == INTERACTIVE);
        } else {
            self.engine.entities[slot].coefficient = 1;
        }
    }
}
