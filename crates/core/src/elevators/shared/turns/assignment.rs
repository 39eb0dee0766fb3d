//! The queues: assignment of requests, priorities and groups, and reuse of free entries.

use super::{ASYNC, Measure, PRIORITY_CHANGED, Queue, SYNC, Turns, level_of, queue_of};
use crate::collections::{Count, NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::elevators::shared::async_queues::AsyncQueues;
use crate::elevators::shared::wf2q::{IDLE, ROOT_LEVEL, Removal};
use crate::priority::Priority;

impl<H: HostTypes, M: Measure> Turns<H, M> {
    /// The queue for a context's next request, created if necessary; [`NIL`] without room. Applies
    /// a changed priority.
    pub(super) fn queue_for(&mut self, core: &mut QueueCore<H>, context: Slot, sync: bool) -> Slot {
        let now = core.ticks();
        let history = &mut core.tables.contexts[context].history;
        if !history.known {
            history.known = true;
            history.last_end = now;
        }
        if history.marks & PRIORITY_CHANGED != 0 {
            history.marks &= !PRIORITY_CHANGED;
            self.read_priority(core, context);
        }
        let found = queue_of(core, context, sync);
        if found != NIL {
            return found;
        }
        let queue = if sync {
            let entry = &core.tables.contexts[context];
            let (priority, pid) = (entry.effective_priority(), entry.pid);
            self.make_queue(core, level_of::<H, M>(core, context), priority, Some(pid))
        } else {
            self.async_queue(core, context)
        };
        self.reference(queue);
        core.tables.contexts[context].history.queues[usize::from(sync)] = queue;
        queue
    }

    /// Applies a process's changed priority: its sync queue adopts it when it next waits for a
    /// turn; its async requests go to another queue.
    fn read_priority(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let [old, sync] = core.tables.contexts[context].history.queues;
        let priority = core.tables.contexts[context].effective_priority();
        if old != NIL {
            let level = level_of::<H, M>(core, context);
            let new = if self.measure.moves_async_queue() && self.async_queues[level].get(priority) == NIL {
                self.put_async(level, priority, old);
                old
            } else {
                self.async_queue(core, context)
            };
            self.reference(new);
            core.tables.contexts[context].history.queues[ASYNC] = new;
            self.unreference(old);
        }
        if sync != NIL {
            self.queues[sync].priority = priority;
            let entity = &mut self.engine.entities[sync];
            entity.new_class = priority.class().rank();
            entity.new_base = self.measure.weight_of(priority);
            entity.pending = true;
            if entity.new_class == IDLE {
                self.queues[sync].idle_window = false;
            }
        }
    }

    /// Applies changed weights of priorities: queues adopt them when they next wait for a turn.
    pub fn update_weights(&mut self) {
        for slot in 0..self.queues.capacity().min(self.engine.queue_capacity()) {
            let entity = &mut self.engine.entities[slot];
            entity.new_base = self.measure.weight_of(self.queues[slot].priority);
            entity.pending = true;
        }
    }

    /// The async queue that processes with this group and priority share, or [`NIL`] if there is no
    /// room for it.
    fn async_queue(&mut self, core: &mut QueueCore<H>, context: Slot) -> Slot {
        let priority = core.tables.contexts[context].effective_priority();
        let level = level_of::<H, M>(core, context);
        let found = self.async_queues[level].get(priority);
        if found != NIL {
            return found;
        }
        let new = self.make_queue(core, level, priority, None);
        if new != NIL {
            self.put_async(level, priority, new);
        }
        new
    }

    /// Sets the shared queue of a priority, for good.
    fn put_async(&mut self, level: Slot, priority: Priority, queue: Slot) {
        self.async_queues[level].put(priority, queue);
        self.reference(queue);
    }

    /// Creates a queue without references, or returns [`NIL`].
    fn make_queue(&mut self, core: &mut QueueCore<H>, level: Slot, priority: Priority, pid: Option<u32>) -> Slot {
        let mut slot = self.free_queues.pop_front(&mut self.queues);
        if slot == NIL {
            slot = self.remembered.head();
            if slot == NIL {
                return NIL;
            }
            // Reuse the entry of a queue that only the engine refers to; its past service is
            // forgotten.
            if slot == self.active {
                self.end_service(core);
            }
            self.remembered.remove(&mut self.queues, slot);
        }
        let class = priority.class().rank();
        let idle_window = pid.is_some() && class != IDLE;
        self.queues[slot] = Queue { pid, priority, idle_window, ..Queue::default() };
        self.engine.init_queue(slot, level, class, self.measure.weight_of(priority), 0);
        M::begin_with(self, slot);
        slot
    }

    pub(super) fn reference(&mut self, slot: Slot) {
        if slot != NIL {
            self.queues[slot].references.increment();
        }
    }

    pub(super) fn unreference(&mut self, slot: Slot) {
        if slot == NIL {
            return;
        }
        let queue = &mut self.queues[slot];
        queue.references.decrement();
        if queue.references > 0 {
            return;
        }
        // It has no requests, but it may still be the active queue or be ahead of its tree's time.
        let is_free = self.engine.is_out(slot) && !self.engine.entities[slot].forgotten;
        let spare = if is_free { &mut self.free_queues } else { &mut self.remembered };
        spare.push_back(&mut self.queues, slot);
    }

    /// Frees the queues that the engine has forgotten.
    pub(super) fn free_forgotten(&mut self) {
        loop {
            let slot = self.engine.take_forgotten();
            if slot == NIL {
                return;
            }
            if self.queues[slot].references == 0 {
                self.remembered.remove(&mut self.queues, slot);
                self.free_queues.push_back(&mut self.queues, slot);
            }
        }
    }

    /// Adds the groups that exist when the elevator is attached.
    pub(super) fn add_groups(&mut self, core: &QueueCore<H>) {
        for group in ROOT_LEVEL.saturating_add(1)..self.async_queues.capacity() {
            if core.tables.groups[group].in_use {
                self.add_group(core, group);
            }
        }
    }

    pub(super) fn add_group(&mut self, core: &QueueCore<H>, group: Slot) {
        if M::GROUPS && group < self.async_queues.capacity() {
            let entry = &core.tables.groups[group];
            self.engine.init_group(group, entry.parent, u32::from(entry.weights.weight));
            self.async_queues[group] = AsyncQueues::default();
        }
    }

    /// Applies a group's weight when the group next waits for a turn.
    pub(super) fn update_group_weight(&mut self, core: &QueueCore<H>, group: Slot) {
        if M::GROUPS && group != ROOT_LEVEL {
            let entity = self.engine.group_entity(group);
            let entity = &mut self.engine.entities[entity];
            entity.new_base = u32::from(core.tables.groups[group].weights.weight);
            entity.pending = true;
        }
    }

    /// Moves a process's sync queue with its requests to another group. Async requests stay in
    /// their queues.
    pub(super) fn move_to_group(&mut self, core: &mut QueueCore<H>, context: Slot) {
        if !M::GROUPS {
            return;
        }
        M::account(self, core);
        let [old, sync] = core.tables.contexts[context].history.queues;
        core.tables.contexts[context].history.queues[ASYNC] = NIL;
        self.unreference(old);
        if sync != NIL {
            debug_assert!(queue_of(core, context, true) == core.tables.contexts[context].history.queues[SYNC]);
            if sync == self.active {
                self.end_service(core);
                self.kick(core);
            }
            let busy = self.queues[sync].busy;
            if busy {
                self.engine.deactivate(sync, Removal::Move, core.ticks());
            } else {
                self.engine.forget(sync);
            }
            self.engine.set_parent(sync, level_of::<H, M>(core, context));
            if busy {
                self.wait_for_turn(core, sync);
            }
        }
        self.free_forgotten();
    }

    /// Removes a group. Returns false if requests of it are left.
    pub(super) fn remove_group(&mut self, core: &mut QueueCore<H>, group: Slot) -> bool {
        if !M::GROUPS || group == ROOT_LEVEL {
            return true;
        }
        M::account(self, core);
        let active = self.active;
        let is_of_group = active != NIL && self.engine.entities[active].level == group;
        let ends_turn = is_of_group && self.queues[active].next == NIL;
        let async_queues = self.async_queues[group];
        let in_use = |slot: Slot| {
            // One reference is that of the shared slot. An active queue without requests is busy
            // only until its turn ends.
            let busy = |slot: Slot| self.queues[slot].busy && !(ends_turn && slot == active);
            slot != NIL && (self.queues[slot].references > 1 || busy(slot))
        };
        if async_queues.all().any(in_use) {
            return false;
        }
        if ends_turn {
            self.end_service(core);
            self.kick(core);
        }
        self.engine.forget_idle(group);
        async_queues.all().for_each(|queue| self.unreference(queue));
        self.async_queues[group] = AsyncQueues::default();
        let entity = self.engine.group_entity(group);
        self.engine.forget_entirely(entity);
        self.free_forgotten();
        true
    }
}
