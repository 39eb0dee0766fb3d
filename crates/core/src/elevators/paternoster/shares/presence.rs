//! Presence: which contexts count in the shares.
//!
//! A context is present while it has requests, and for a grace period after its last completion.
//! Without the grace period a process that thinks between two requests would leave at each
//! completion, and all shares would change.

use crate::collections::{Count, NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;

use super::super::Paternoster;
use super::super::context::ContextQueue;

/// The bounds of the grace period, in ns.
const GRACE_MIN_NS: u64 = 10_000_000;
const GRACE_MAX_NS: u64 = 300_000_000;

impl<H: HostTypes> Paternoster<H> {
    /// Divides a cost by the share of a context.
    pub(in super::super) fn normalised(&self, core: &QueueCore<H>, context: Slot, cost_ns: u64) -> u64 {
        self.shares.normalised(core, self.contexts[context].membership, cost_ns)
    }

    /// Makes a context present. The state of one that the elevator has not seen begins.
    pub(in super::super) fn set_present(&mut self, core: &mut QueueCore<H>, context: Slot) {
        if !core::mem::replace(&mut core.tables.contexts[context].history.known, true) {
            debug_assert_eq!(self.contexts[context].queued, 0, "a new context has no requests");
            self.forget(core, context);
            self.contexts[context] = ContextQueue::at(self.order.virtual_time);
        }
        let entry = &mut self.contexts[context];
        if !entry.is_present {
            entry.is_present = true;
            entry.membership = self.shares.membership_of(core, context);
            self.shares.enter(core, entry.membership);
        } else if entry.is_idle() {
            self.idle.remove(&mut self.contexts, context);
        }
    }

    /// Removes an earlier context at the slot.
    fn forget(&mut self, core: &mut QueueCore<H>, context: Slot) {
        if self.in_turn == context {
            self.end_turn(core);
            core.kick();
        }
        if self.contexts[context].is_present {
            self.set_absent(core, context);
        }
    }

    /// Ends the presence of an idle context.
    pub(in super::super) fn set_absent(&mut self, core: &QueueCore<H>, context: Slot) {
        self.idle.remove(&mut self.contexts, context);
        self.set_deprived(context, false);
        self.set_scattered(context, false);
        self.contexts[context].is_present = false;
        self.shares.leave(core, self.contexts[context].membership);
    }

    /// Begins the grace period of a context that has become idle.
    pub(in super::super) fn begin_grace_if_idle(&mut self, context: Slot) {
        let entry = &self.contexts[context];
        if entry.is_idle() && entry.is_present {
            self.idle.push_back(&mut self.contexts, context);
        }
    }

    /// Ends the presence of contexts whose grace period is over, of at most two a call.
    pub(in super::super) fn end_grace(&mut self, core: &QueueCore<H>) {
        let grace_ns = self.seeks.turn_ns.saturating_mul(2).clamp(GRACE_MIN_NS, GRACE_MAX_NS);
        for _ in 0..2 {
            let context = self.idle.head();
            if context == NIL || self.contexts[context].completed_ns.saturating_add(grace_ns) > core.ktime_ns() {
                return;
            }
            self.set_absent(core, context);
        }
    }

    /// Ends the presence of the idle contexts of a group.
    pub(in super::super) fn end_grace_in(&mut self, core: &QueueCore<H>, group: Slot) {
        let mut context = self.idle.head();
        while context != NIL {
            let next = self.idle.next(&self.contexts, context);
            if self.contexts[context].membership.group == group {
                self.set_absent(core, context);
            }
            context = next;
        }
    }

    /// Applies a changed priority or group.
    pub(in super::super) fn reweigh(&mut self, core: &QueueCore<H>, context: Slot) {
        if context >= self.capacity || !self.contexts[context].is_present {
            return;
        }
        self.shares.leave(core, self.contexts[context].membership);
        let membership = self.shares.membership_of(core, context);
        self.shares.enter(core, membership);
        self.contexts[context].membership = membership;
    }

    /// Counts a context as scattered, or no longer.
    pub(in super::super) fn set_scattered(&mut self, context: Slot, is_scattered: bool) {
        count_if(&mut self.contexts[context].is_scattered, is_scattered, &mut self.scattered);
    }

    /// Counts a context as deprived, or no longer.
    pub(in super::super) fn set_deprived(&mut self, context: Slot, is_deprived: bool) {
        count_if(&mut self.contexts[context].is_deprived, is_deprived, &mut self.deprived);
    }
}

/// Sets a mark, and counts how many are set.
fn count_if(mark: &mut bool, is_set: bool, count: &mut u32) {
    match (core::mem::replace(mark, is_set), is_set) {
        (false, true) => count.increment(),
        (true, false) => count.decrement(),
        _ => {}
    }
}
