//! Insertion of requests: the queue, statistics of its context, and sorting.

use super::lifetime::weight_of;
use super::raising::INTERACTIVE;
use super::state::{ContextState, Phase, Usage};
use super::{ASYNC, SYNC, Scheduler, Tick, tick};
use crate::collections::{Count, NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::elevators::shared::wf2q::{Entity, Insertion};
use crate::event::{Expiry, Note};

/// The gap, in ms, after which an async queue is raised by a request.
const ASYNC_GAP_MS: Tick = 500;
/// A single request shorter than this does not end idling, as the next one is probably merged into
/// it.
const SMALL_SECTORS: u32 = 32;

impl<H: HostTypes> Scheduler<H> {
    /// Finds the queue of a new request, and applies changes of its context.
    pub(super) fn assign(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let entry = &core.tables.requests[request];
        let (context, sync) = (entry.context, entry.is_sync());
        self.update_context(core, context);
        let ContextState { queues: [async_queue, sync_queue], merged_permanently, .. } = self.contexts[context];
        let mut slot = if sync { sync_queue } else { async_queue };
        let (mut split, mut kept) = (false, false);
        let queue = &self.queues[slot];
        if slot == NIL {
            slot = if sync { self.create(core, context) } else { self.use_async(core, context) };
        } else if queue.usage == Usage::Diverging && !merged_permanently {
            let own = self.split(core, context, slot);
            (kept, split) = (own == slot, true);
            slot = own;
        }
        if slot == NIL {
            return;
        }
        core.tables.requests[request].owner = slot;
        self.contexts[context].requests.increment();
        let queue = &mut self.queues[slot];
        queue.allocated.increment();
        if queue.sharing.target == NIL && queue.sharing.users == 1 {
            queue.sharing.owner = context;
            if split {
                self.restore(core, context, slot, kept);
            }
        }
        if self.queues[slot].is_fresh() && (self.burst.size > 0 || self.busy_queues() == 0) {
            self.track_burst(slot, tick(core));
        }
    }

    /// Creates the statistics of a new context, and applies a changed priority or group.
    #[inline]
    fn update_context(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let (entry, state) = (&core.tables.contexts[context], &self.contexts[context]);
        let unchanged = state.priority == entry.effective_priority() && state.group == self.group_now(core, context);
        if !(entry.history.known && unchanged) {
            self.prepare_context(core, context);
            self.apply_priority_change(core, context);
            self.apply_group_change(core, context);
        }
    }

    /// Assigns a context to the async queue of its group and priority.
    #[cold]
    #[inline(never)]
    fn use_async(&mut self, core: &mut QueueCore<H>, context: Slot) -> Slot {
        let slot = self.async_queue(core, context);
        if slot != NIL {
            self.add_user(slot);
            self.set_queue(context, ASYNC, slot);
        }
        slot
    }

    /// Creates the statistics of a new context.
    #[cold]
    #[inline(never)]
    fn prepare_context(&mut self, core: &mut QueueCore<H>, context: Slot) {
        if !core::mem::replace(&mut core.tables.contexts[context].history.known, true) {
            let priority = core.tables.contexts[context].effective_priority();
            let group = self.group_now(core, context);
            self.contexts[context] = ContextState { priority, group, ..ContextState::default() };
        }
    }

    /// Applies a changed class or level: the context gets another async queue at once, and its sync
    /// queue changes when it is next scheduled.
    #[cold]
    #[inline(never)]
    fn apply_priority_change(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let priority = core.tables.contexts[context].effective_priority();
        if core::mem::replace(&mut self.contexts[context].priority, priority) == priority {
            return;
        }
        let [old, sync] = self.contexts[context].queues;
        if old != NIL {
            self.set_queue(context, ASYNC, NIL);
            let new = self.async_queue(core, context);
            if new != NIL {
                self.add_user(new);
                self.set_queue(context, ASYNC, new);
            }
            self.release(core, old);
        }
        if sync != NIL {
            let entity = &mut self.engine.entities[sync];
            entity.new_class = priority.class().rank();
            entity.new_base = weight_of(priority);
            entity.pending = true;
        }
    }

    /// Inserts a request into its queue, or into the queue to which that one is merged.
    pub(super) fn insert_request(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let entry = &core.tables.requests[request];
        let (context, sector, mut slot) = (entry.context, entry.sector, entry.owner);
        let target = self.merge_test(core, slot, sector, context);
        if target != NIL {
            slot = self.insert_into(core, request, slot, target);
        }
        let Entity { coefficient, class, .. } = self.engine.entities[slot];
        self.update_think_time(core, slot, class);
        self.update_seekiness(core, slot, request, coefficient);
        let coefficient = self.coefficient(slot);
        self.count(core, slot, request, context);
        let interactive = self.file(core, slot, request, coefficient);
        let raised = coefficient > 1 && self.coefficient(slot) > 1;
        let queue = &mut self.queues[slot];
        if self.tunables.low_latency && (!raised || interactive) {
            queue.raising.at = tick(core);
        }
        queue.locality.last_sector = core.tables.requests[request].end();
        if self.in_service == slot && self.waits {
            self.end_waiting(core, slot, request);
        }
    }

    /// Moves a new request and its context to the queue to which its queue is merged.
    #[cold]
    #[inline(never)]
    fn insert_into(&mut self, core: &mut QueueCore<H>, request: Slot, from: Slot, to: Slot) -> Slot {
        let context = core.tables.requests[request].context;
        self.queues[from].allocated.decrement();
        self.queues[to].allocated.increment();
        if self.queues[from].is_fresh() {
            self.queues[from].phase = Phase::Idle;
        }
        core.tables.requests[request].owner = to;
        self.follow(core, context, from, to)
    }

    /// Sorts a request in and schedules its queue. Returns true if the queue became busy as an
    /// interactive one. `coefficient` is the queue's previous one.
    fn file(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot, coefficient: u32) -> bool {
        let sync = core.tables.requests[request].is_sync();
        let [expire_async_ns, expire_sync_ns] = self.tunables.fifo_expire_ns;
        let expire_ns = if sync { expire_sync_ns } else { expire_async_ns };
        let deadline_ns = core.ktime_ns().saturating_add(expire_ns);
        let chooser = self.chooser();
        let queue = &mut self.queues[slot];
        queue.requests.insert(core, request, deadline_ns);
        let before = queue.next;
        let next = chooser.best(core, before, request, self.position);
        queue.next = next;
        if next != before && !self.flash_queueing {
            self.index(core, slot);
        } else {
            self.mark_index(core, slot);
        }
        let queue = &self.queues[slot];
        if !queue.is_busy() {
            return self.activate_queue(core, slot, coefficient);
        }
        let gap = tick(core) > queue.raising.at.saturating_add(ASYNC_GAP_MS);
        if !sync && self.tunables.low_latency && coefficient == 1 && gap {
            self.raise_interactive(slot);
            self.raised_busy.increment();
            self.engine.entities[slot].pending = true;
            core.note(|_| Note::WeightRaised { queue: self.name(slot), coefficient: INTERACTIVE });
        }
        if next != before {
            self.next_changed(core, slot);
        }
        false
    }

    /// Handles the request for which the disk was kept idle.
    #[inline(never)]
    fn end_waiting(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot) {
        let kind = if core.tables.requests[request].is_sync() { SYNC } else { ASYNC };
        let queue = &self.queues[slot];
        let lone = queue.queued.get(kind) == Some(&1) && core.tables.requests[request].sectors < SMALL_SECTORS;
        let timed_out = tick(core) >= queue.service.timeout;
        if lone && self.idling_boosts(slot) && !timed_out {
            return;
        }
        self.stop_waiting(core);
        core.note(|_| Note::IdleHit { queue: self.name(slot) });
        if timed_out {
            self.expire(core, slot, Expiry::TimedOut, false);
        }
    }

    /// Updates the budget of a waiting queue whose next request has changed.
    pub(super) fn next_changed(&mut self, core: &QueueCore<H>, slot: Slot) {
        let queue = &self.queues[slot];
        let (next, budget_max) = (queue.next, queue.service.budget_max);
        if next == NIL || slot == self.in_service {
            return;
        }
        let cost = self.cost(core, next, slot);
        let entity = &mut self.engine.entities[slot];
        let budget = budget_max.max(cost).max(entity.service);
        if core::mem::replace(&mut entity.budget, budget) != budget {
            self.engine.raise(slot, Insertion::Pending, super::engine_tick(core));
        }
    }

    /// Handles a front merge. The request is sorted again only if it has passed the one before it.
    pub(super) fn merged_at_front(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let slot = core.tables.requests[request].owner;
        if slot == NIL {
            return;
        }
        let below = core.tables.nodes[request].prev();
        let sector = core.tables.requests[request].sector;
        if below == NIL || core.tables.requests[below].sector <= sector {
            self.queues[slot].requests.rekey(core, request);
            return self.mark_index(core, slot);
        }
        self.queues[slot].requests.resort(core, request);
        let before = self.queues[slot].next;
        let next = self.chooser().best(core, before, request, self.position);
        self.queues[slot].next = next;
        self.mark_index(core, slot);
        if next != before {
            self.next_changed(core, slot);
            if !self.flash_queueing {
                self.index(core, slot);
            }
        }
    }

    /// Handles a merge of `absorbed` into `request`, which may be in another queue.
    pub(super) fn join_requests(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        let (slot, other) = (core.tables.requests[request].owner, core.tables.requests[absorbed].owner);
        if slot != NIL && slot == other {
            self.queues[slot].requests.inherit(core, request, absorbed);
        }
        if slot != NIL && self.queues[slot].next == absorbed {
            self.queues[slot].next = request;
            self.mark_index(core, slot);
        }
        if other != NIL {
            self.remove(core, absorbed);
        }
    }
}
