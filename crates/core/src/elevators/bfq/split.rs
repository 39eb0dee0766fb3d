//! Splitting: contexts that no longer read adjacent sectors get queues of their own again.

use super::bursts::Membership;
use super::raising::INTERACTIVE;
use super::state::Usage;
use super::{SYNC, Scheduler, Tick, tick};
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::Note;

impl<H: HostTypes> Scheduler<H> {
    /// Gives a context its own queue instead of a shared one; the same queue if it is the last
    /// user. [`NIL`]: no room.
    #[inline(never)]
    pub(super) fn split(&mut self, core: &mut QueueCore<H>, context: Slot, shared: Slot) -> Slot {
        core.note(|core| Note::QueueSplit { queue: core.tables.contexts[context].pid });
        if self.queues[shared].is_in_large_burst() {
            self.contexts[context].saved.burst = Membership::Large;
        }
        if self.queues[shared].sharing.users == 1 && self.queues[shared].sharing.target == NIL {
            self.queues[shared].usage = Usage::Single;
            return shared;
        }
        let waker = self.waker_to_keep(shared);
        self.set_queue(context, SYNC, NIL);
        self.release_targets(shared);
        self.release(core, shared);
        let slot = self.create_own(core, context);
        if slot == NIL {
            return NIL;
        }
        match (self.contexts[context].saved.burst, self.burst.large) {
            (Membership::Large, _) | (Membership::Current, true) => self.queues[slot].burst = Membership::Large,
            (Membership::Current, false) => self.join_burst(slot),
            (Membership::None, _) => {}
        }
        self.queues[slot].sharing.split_at = tick(core);
        if waker != NIL && self.queues[waker].exists() {
            self.set_waker(slot, waker);
        }
        slot
    }

    /// The waker of a shared queue, if it still has users after one context has left the queue and
    /// its planned merges.
    fn waker_to_keep(&self, shared: Slot) -> Slot {
        let waker = self.queues[shared].wakers.waker;
        if waker == NIL {
            return NIL;
        }
        let mut at = self.queues[shared].sharing.target;
        while at != NIL && at != waker {
            at = self.queues[at].sharing.target;
        }
        let leaving = if at == waker { 1 } else { 0 };
        if self.queues[waker].sharing.users <= leaving { NIL } else { waker }
    }

    /// Restores the state that a context's queue had before the merge. `kept`: it is the queue that
    /// was shared.
    #[inline(never)]
    pub(super) fn restore(&mut self, core: &mut QueueCore<H>, context: Slot, slot: Slot, kept: bool) {
        let (saved, now) = (self.contexts[context].saved, tick(core));
        let before = self.coefficient(slot);
        let queue = &mut self.queues[slot];
        (queue.raising, queue.habits, queue.injection) = (saved.raising, saved.habits, saved.injection);
        let entity = &mut self.engine.entities[slot];
        entity.new_base = saved.weight.max(1);
        if self.tunables.low_latency {
            entity.coefficient = saved.coefficient.max(1);
        }
        entity.pending = true;
        self.end_expired_raising(slot, now);
        if kept && self.queues[slot].is_busy() {
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
        let over = queue.raising.is_over(now);
        if self.coefficient(slot) <= 1 || !(queue.is_in_large_burst() || over) {
            return;
        }
        if queue.raising.is_soft() && !queue.is_in_large_burst() && !self.interactive_is_over(slot, now) {
            self.resume_interactive(slot);
            debug_assert!(self.coefficient(slot) == INTERACTIVE);
        } else {
            self.engine.entities[slot].coefficient = 1;
        }
    }
}
