//! Activation of a queue: its budget, its raising and preemption; and deactivation.

use super::raising::{INTERACTIVE, Reference, SOFT_RAISING_MS, SOFT_REAL_TIME};
use super::state::Phase;
use super::wf2q::{Insertion, ROOT_LEVEL, Removal};
use super::{NEVER, Scheduler, Tick, engine_tick, tick};
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::{Expiry, Note};

/// The time without requests, in ms, after which a queue may be starting a program.
const IDLE_LONG_MS: Tick = 2000;
/// The further time without requests, in ms, after which a queue no longer belongs to a burst.
const BURST_FORGOTTEN_MS: Tick = 10_000;
/// The time after a split, in ms, in which a queue is not raised.
const RAISED_AFTER_SPLIT_MS: Tick = 2000;
/// The default weight (level 4). Only queues of this weight are raised.
const DEFAULT_WEIGHT: u32 = 40;

/// The classification of a queue that becomes busy.
#[derive(Clone, Copy, Debug)]
struct Classification {
    /// It resembles the start of a program.
    interactive: bool,
    /// It resembles soft real-time I/O, such as playback.
    soft: bool,
    /// It qualifies for raising.
    qualifies: bool,
    /// It was empty for long.
    empty_long: bool,
    /// It belongs to a large burst.
    large_burst: bool,
}

impl<H: HostTypes> Scheduler<H> {
    /// Activates a queue that received its first request. Returns true if it looks interactive.
    pub(super) fn activate_queue(&mut self, core: &mut QueueCore<H>, slot: Slot, coefficient: u32) -> bool {
        debug_assert!(self.queues[slot].next != NIL);
        let now = tick(core);
        let kind = self.classify(core, slot);
        let returns = self.renew_budget(core, slot);
        let queue = &self.queues[slot];
        let forgotten = kind.empty_long && now > queue.service.timeout.saturating_add(BURST_FORGOTTEN_MS);
        if !queue.is_fresh() && forgotten {
            self.leave_burst(slot);
        }
        let long_since_split = now > self.queues[slot].sharing.split_at.saturating_add(RAISED_AFTER_SPLIT_MS);
        if self.tunables.low_latency && long_since_split {
            self.change_raising(slot, coefficient, kind, now);
            if self.coefficient(slot) != coefficient {
                self.engine.entities[slot].pending = true;
                let coefficient = self.coefficient(slot);
                core.note(|_| Note::WeightRaised { queue: self.name(slot), coefficient });
            }
        }
        let queue = &mut self.queues[slot];
        queue.soft.busy_since = now;
        queue.service.served = 0;
        queue.soft_later = false;
        self.become_busy(core, slot, returns);
        self.preempt(core, slot, returns);
        kind.interactive
    }

    fn classify(&self, core: &QueueCore<H>, slot: Slot) -> Classification {
        let now = tick(core);
        let queue = &self.queues[slot];
        let default_weight = self.engine.entities[slot].new_base == DEFAULT_WEIGHT;
        let empty_long = queue.in_flight == 0 && now > queue.service.timeout.saturating_add(IDLE_LONG_MS);
        let soft = !queue.locality.is_totally_seeky()
            && !queue.is_in_large_burst()
            && now > queue.soft.earliest
            && queue.in_flight == 0
            && default_weight;
        let interactive = !queue.is_in_large_burst() && empty_long && default_weight;
        let context = core.tables.requests[queue.next].context;
        let alone = queue.sharing.owner != NIL || self.contexts[context].merged_permanently;
        let raised = self.coefficient(slot) > 1;
        let qualifies = self.tunables.low_latency && (raised || (queue.sync && alone && (interactive || soft)));
        Classification { interactive, soft, qualifies, empty_long, large_burst: queue.is_in_large_burst() }
    }

    /// Sets a queue's budget: the rest of the last one if it left service only because it had no
    /// requests and returns in time. Returns true in that case.
    fn renew_budget(&mut self, core: &QueueCore<H>, slot: Slot) -> bool {
        let queue = &self.queues[slot];
        let until_ns = queue.habits.last_end_ns.saturating_add(self.tunables.slice_idle_ns.saturating_mul(3));
        let left = self.budget_left(slot);
        let cost = self.cost(core, queue.next, slot);
        let queue = &mut self.queues[slot];
        let entity = &mut self.engine.entities[slot];
        entity.service = 0;
        if queue.phase == Phase::RanEmpty && core.ktime_ns() <= until_ns && left > 0 {
            entity.budget = left.unsigned_abs().min(queue.service.budget_max);
            return true;
        }
        entity.budget = queue.service.budget_max.max(cost);
        false
    }

    fn change_raising(&mut self, slot: Slot, coefficient: u32, kind: Classification, now: Tick) {
        let duration = Reference::of(self.rotational).duration(self.rate.rate);
        let entity = &mut self.engine.entities[slot];
        let queue = &mut self.queues[slot];
        if coefficient == 1 {
            if !kind.qualifies {
                return;
            }
            if kind.interactive {
                queue.raising.served = 0;
                (entity.coefficient, queue.raising.length) = (INTERACTIVE, duration);
            } else {
                queue.raising.interactive_at = NEVER;
                (entity.coefficient, queue.raising.length) = (SOFT_REAL_TIME, SOFT_RAISING_MS);
            }
            let budget_min = self.budget_min();
            let entity = &mut self.engine.entities[slot];
            entity.budget = entity.budget.min(budget_min.saturating_mul(2));
        } else if kind.interactive {
            (entity.coefficient, queue.raising.length) = (INTERACTIVE, duration);
        } else if kind.large_burst {
            entity.coefficient = 1;
        } else if kind.soft {
            if !queue.raising.is_soft() {
                queue.raising.interrupt();
                entity.coefficient = SOFT_REAL_TIME;
            }
            queue.raising.at = now;
        }
    }

    /// Preempts the queue in service if this one should be served first.
    fn preempt(&mut self, core: &mut QueueCore<H>, slot: Slot, returns: bool) {
        let served = self.in_service;
        let root = &self.engine.levels[ROOT_LEVEL];
        if served == NIL || root.next == root.current {
            return;
        }
        let (one, other) = (&self.engine.entities[slot], &self.engine.entities[served]);
        let comes_back = returns && one.coefficient >= other.coefficient;
        let above = one.class < other.class;
        if comes_back || above || self.outweighs(slot, served) || !self.may_idle(served) {
            core.note(|_| Note::Preempt { queue: self.name(slot), victim: self.name(served) });
            self.expire(core, served, Expiry::Preempted, false);
        }
    }

    /// Returns true if a queue outweighs another; across groups the groups are compared.
    fn outweighs(&self, slot: Slot, other: Slot) -> bool {
        if self.group_of(slot) == self.group_of(other) {
            return self.engine.entities[slot].weight > self.engine.entities[other].weight;
        }
        let weight = |slot: Slot| {
            let group = self.engine.levels[self.group_of(slot)].group;
            self.engine.entities[if group == NIL { slot } else { group }].weight
        };
        weight(slot) > weight(other)
    }

    fn become_busy(&mut self, core: &QueueCore<H>, slot: Slot, returns: bool) {
        debug_assert!(!self.queues[slot].is_busy());
        let reason = if returns { Insertion::Return } else { Insertion::Pending };
        self.engine.raise(slot, reason, engine_tick(core));
        self.queues[slot].phase = Phase::Busy;
        self.count_busy(slot, 1);
        if self.queues[slot].in_flight == 0 && self.coefficient(slot) == 1 {
            self.engine.enter_weights(slot);
        }
        let waker = self.queues[slot].wakers.waker;
        if waker != NIL && self.queues[waker].wakers.woken.head() != slot {
            self.set_waker(slot, waker);
        }
    }

    /// Deactivates a queue; it may still have requests in the device.
    pub(super) fn leave_busy(&mut self, core: &QueueCore<H>, slot: Slot, reason: Removal) {
        debug_assert!(self.queues[slot].is_busy());
        self.queues[slot].phase = Phase::Idle;
        self.count_busy(slot, -1);
        self.engine.deactivate(slot, reason, engine_tick(core));
        if self.queues[slot].in_flight == 0 {
            self.engine.leave_all(slot);
        }
    }

    fn count_busy(&mut self, slot: Slot, by: i32) {
        let entity = &self.engine.entities[slot];
        if let Some(count) = self.busy.get_mut(usize::from(entity.class)) {
            *count = count.saturating_add(by);
        }
        if entity.coefficient > 1 {
            self.raised_busy = self.raised_busy.saturating_add(by);
        }
    }
}
