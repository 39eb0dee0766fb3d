//! Data of contexts: their queues, and the group and priority with which these were looked up.

use super::queue::{Queue, ThinkTime};
use super::{ASYNC, Cfq, SYNC};
use crate::collections::{Count, NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::group::ROOT;
use crate::priority::{Class, NORMAL_LEVEL, Priority};

/// The data of a context, at its slot. It is valid if the context's history is marked as known.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContextState {
    /// Its group at the last look-up of its queues, or [`NIL`].
    pub group: Slot,
    /// The priority set at the last look-up of its queues.
    priority: Priority,
    /// Its async and sync queue.
    pub queues: [Slot; 2],
    pub think: ThinkTime,
}

impl Default for ContextState {
    fn default() -> Self {
        ContextState { group: NIL, priority: Priority::UNSET, queues: [NIL; 2], think: ThinkTime::default() }
    }
}

impl<H: HostTypes> Cfq<H> {
    /// The queue of a context's requests, or [`NIL`] if there is none.
    pub(super) fn queue_of(&self, core: &QueueCore<H>, context: Slot, sync: bool) -> Slot {
        let [of_async, of_sync] = self.contexts[context].queues;
        match (core.tables.contexts[context].history.known, sync) {
            (false, _) => NIL,
            (_, false) => of_async,
            (_, true) => of_sync,
        }
    }

    /// The queue for a new request of a context. Applies changes of priority and group. [`NIL`]: no
    /// room.
    #[inline]
    pub(super) fn queue_for_request(&mut self, core: &mut QueueCore<H>, context: Slot, sync: bool) -> Slot {
        let entry = &core.tables.contexts[context];
        let state = &self.contexts[context];
        let group = if self.tunables.groups { entry.group } else { ROOT };
        let unchanged = entry.history.known && state.priority == entry.priority && state.group == group;
        let [of_async, of_sync] = state.queues;
        let slot = if sync { of_sync } else { of_async };
        let queue = &self.queues[slot];
        let kept = !(queue.coop && queue.split_coop) && queue.merge_into == NIL;
        if unchanged && slot != NIL && kept { slot } else { self.update_queue(core, context, sync) }
    }

    #[inline(never)]
    fn update_queue(&mut self, core: &mut QueueCore<H>, context: Slot, sync: bool) -> Slot {
        let history = &mut core.tables.contexts[context].history;
        if !history.known {
            history.known = true;
            let think = ThinkTime::since(core.counted_ns());
            self.contexts[context] = ContextState { think, ..ContextState::default() };
        }
        self.apply_priority_change(core, context);
        self.apply_group_change(core, context);
        let mut slot = self.queue_of(core, context, sync);
        if slot != NIL && self.queues[slot].coop && self.queues[slot].split_coop {
            slot = self.split(core, context, slot);
        }
        if slot == NIL {
            slot = self.get_queue(core, context, sync);
            let [of_async, of_sync] = &mut self.contexts[context].queues;
            *(if sync { of_sync } else { of_async }) = slot;
        } else if self.queues[slot].merge_into != NIL {
            slot = self.follow_merge(core, context, slot);
        }
        slot
    }

    /// Applies a changed priority: the sync queue reads it at its next request. As in the kernel,
    /// the async queue is looked up by the previous priority, so async requests follow a change
    /// late.
    fn apply_priority_change(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let priority = core.tables.contexts[context].priority;
        let state = &self.contexts[context];
        if state.priority == priority {
            return;
        }
        let [old, sync] = state.queues;
        if old != NIL {
            self.unreference(core, old);
            let new = self.get_queue(core, context, false);
            self.contexts[context].queues[ASYNC] = new;
        }
        if sync != NIL {
            self.queues[sync].priority_changed = true;
        }
        self.contexts[context].priority = priority;
    }

    /// Applies a changed group: the context gets other queues. (At this point the kernel loses the
    /// reference that a planned merge counted in advance, so that the other queue's memory is never
    /// freed. This is fixed here, because the table would fill up.)
    fn apply_group_change(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let group = self.group_of(core, context);
        if self.contexts[context].group != group {
            self.drop_queues(core, context);
            self.contexts[context].group = group;
        }
    }

    pub(super) fn drop_queues(&mut self, core: &mut QueueCore<H>, context: Slot) {
        for queue in core::mem::replace(&mut self.contexts[context].queues, [NIL; 2]) {
            if queue != NIL {
                self.leave_queue(core, queue);
            }
        }
    }

    fn group_of(&self, core: &QueueCore<H>, context: Slot) -> Slot {
        if self.tunables.groups { core.tables.contexts[context].group } else { ROOT }
    }

    /// Handles the exit of a context. Its queues, also shared ones, expire if active.
    pub(super) fn exit_queues(&mut self, core: &mut QueueCore<H>, context: Slot) {
        if !core.tables.contexts[context].history.known {
            return;
        }
        for queue in core::mem::replace(&mut self.contexts[context].queues, [NIL; 2]) {
            if queue == NIL {
                continue;
            }
            if queue == self.active {
                self.expire(core, false);
                self.kick(core);
            }
            self.leave_queue(core, queue);
        }
    }

    /// A queue for a context's requests, created if necessary, with one more reference. [`NIL`]: no
    /// room.
    fn get_queue(&mut self, core: &mut QueueCore<H>, context: Slot, sync: bool) -> Slot {
        let group = self.group_of(core, context);
        let entry = &core.tables.contexts[context];
        let priority = self.contexts[context].priority.effective_under(entry.nice, entry.policy);
        if !sync {
            let shared = self.groups[group].async_queues.get(priority);
            if shared != NIL {
                self.reference(shared);
                return shared;
            }
        }
        let slot = self.free_queues.pop_front(&mut self.queues);
        if slot == NIL {
            return NIL;
        }
        let pid = if sync { entry.pid } else { 0 };
        self.queues[slot] =
            Queue { pid, sync, group, idle_window: sync, priority_changed: true, references: 1, ..Queue::default() };
        self.read_priority(core, slot, context);
        if !sync {
            // The group's own reference keeps it permanently.
            self.groups[group].async_queues.put(priority, slot);
            self.reference(slot);
        }
        slot
    }

    /// Reads a queue's priority again from a context that uses it, if it has changed. Its position
    /// in the tree stays.
    pub(super) fn read_priority(&mut self, core: &QueueCore<H>, slot: Slot, context: Slot) {
        let queue = &mut self.queues[slot];
        if !queue.priority_changed {
            return;
        }
        queue.priority_changed = false;
        let entry = &core.tables.contexts[context];
        queue.priority = self.contexts[context].priority.effective_under(entry.nice, entry.policy);
        queue.original = queue.priority;
        if queue.is_idle_class() {
            queue.idle_window = false;
        }
    }

    /// While metadata requests are queued, a queue below normal best effort counts as normal best
    /// effort, as a process of any priority may wait for them.
    pub(super) fn boost(&mut self, slot: Slot, metadata: bool) {
        let queue = &mut self.queues[slot];
        queue.priority = queue.original;
        if !metadata {
            return;
        }
        let class = if queue.is_idle_class() { Class::BestEffort } else { queue.class() };
        let level = queue.level().min(NORMAL_LEVEL);
        queue.priority = Priority::new(class, level).unwrap_or(queue.priority);
    }

    pub(super) fn reference(&mut self, slot: Slot) {
        if slot != NIL {
            self.queues[slot].references.increment();
        }
    }

    pub(super) fn unreference(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        if slot == NIL {
            return;
        }
        let queue = &mut self.queues[slot];
        debug_assert!(queue.references > queue.allocated.saturating_sub(1));
        queue.references.decrement();
        if queue.references == 0 {
            self.free_queue(core, slot);
        }
    }

    /// Frees a queue without references.
    #[inline(never)]
    pub(super) fn free_queue(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        if self.active == slot {
            self.expire(core, false);
            self.kick(core);
        }
        debug_assert!(self.queues[slot].filed.is_none() && self.queues[slot].is_empty());
        self.free_queues.push_front(&mut self.queues, slot);
    }

    /// Returns true if no queue is left after contexts and groups have released theirs; all
    /// requests have completed.
    pub(super) fn all_queues_are_freed(&mut self, core: &mut QueueCore<H>) -> bool {
        for context in 0..self.contexts.capacity() {
            if core.tables.contexts[context].history.known {
                self.drop_queues(core, context);
            }
        }
        for group in 0..self.groups.capacity() {
            for queue in core::mem::take(&mut self.groups[group].async_queues).all() {
                self.unreference(core, queue);
            }
        }
        let (mut at, mut free) = (self.free_queues.head(), 0u32);
        while at != NIL {
            free.increment();
            at = self.queues[at].free.next;
        }
        free == self.queues.capacity().min(self.service_nodes.capacity()).min(self.positions.capacity())
    }

    /// Releases the data of a group without contexts. Returns true if no request of it is left.
    pub(super) fn release_group(&mut self, core: &mut QueueCore<H>, group: Slot) -> bool {
        if self.groups[group].requests > 0 {
            return false;
        }
        // Contexts that left the group and sent no request since still refer to its queues.
        for context in 0..self.contexts.capacity() {
            let known = core.tables.contexts[context].history.known;
            if known && self.contexts[context].group == group {
                self.drop_queues(core, context);
                self.contexts[context].group = NIL;
            }
        }
        for queue in core::mem::take(&mut self.groups[group].async_queues).all() {
            self.unreference(core, queue);
        }
        debug_assert_eq!(self.groups[group].queues, 0);
        true
    }
}

const _: () = assert!(ASYNC == 0 && SYNC == 1);
