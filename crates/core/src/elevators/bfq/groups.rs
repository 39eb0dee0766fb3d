//! Groups: their entities in the engine, moves of contexts, removal.

use super::state::GroupState;
use super::wf2q::{Insertion, Removal};
use super::{ASYNC, SYNC, Scheduler, engine_tick};
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::Expiry;
use crate::group::ROOT;

impl<H: HostTypes> Scheduler<H> {
    /// Adds the groups that existed before the elevator, parents before children.
    pub(super) fn add_groups(&mut self, core: &QueueCore<H>) {
        let count = self.groups.capacity().min(core.tables.groups.capacity());
        for group in 0..count {
            let known = &core.tables.groups[group];
            if group != ROOT && known.in_use {
                self.engine.init_group(group, known.parent, u32::from(known.weights.weight));
            }
        }
    }

    /// Adds a new group.
    pub(super) fn add_group(&mut self, core: &QueueCore<H>, group: Slot) {
        let known = &core.tables.groups[group];
        self.groups[group] = GroupState::default();
        self.engine.init_group(group, known.parent, u32::from(known.weights.weight));
    }

    /// Applies a group's changed weight when the group is next scheduled.
    pub(super) fn update_group_weight(&mut self, core: &QueueCore<H>, group: Slot) {
        if group != ROOT {
            let entity = self.engine.group_entity(group);
            let entity = &mut self.engine.entities[entity];
            entity.new_base = u32::from(core.tables.groups[group].weights.weight);
            entity.pending = true;
        }
    }

    /// The current group of a context, with its generation; without group scheduling always the
    /// root.
    #[inline]
    pub(super) fn group_now(&self, core: &QueueCore<H>, context: Slot) -> (Slot, u32) {
        let group = if self.tunables.groups { core.tables.contexts[context].group } else { ROOT };
        (group, core.tables.groups[group].generation)
    }

    /// Handles a context that was moved: it leaves the async queues of the old group, and its sync
    /// queue moves along.
    #[inline(never)]
    pub(super) fn apply_group_change(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let now = self.group_now(core, context);
        if core::mem::replace(&mut self.contexts[context].group, now) == now {
            return;
        }
        let group = now.0;
        let [old, sync] = self.contexts[context].queues;
        if old != NIL && self.group_of(old) != group {
            self.set_queue(context, ASYNC, NIL);
            self.release(core, old);
        }
        if sync == NIL {
            return;
        }
        if !self.queues[sync].is_shared() && self.queues[sync].sharing.target == NIL {
            if self.group_of(sync) != group {
                self.move_queue(core, sync, group);
            }
        } else if self.any_outside(sync, group) {
            self.release_targets(sync);
            self.set_queue(context, SYNC, NIL);
            self.release(core, sync);
        }
    }

    /// Returns true if a queue, or a queue to which its contexts will move, is outside a group.
    fn any_outside(&self, slot: Slot, group: Slot) -> bool {
        let mut at = slot;
        while at != NIL {
            if self.group_of(at) != group {
                return true;
            }
            at = self.queues[at].sharing.target;
        }
        false
    }

    /// Moves a queue to another group.
    fn move_queue(&mut self, core: &mut QueueCore<H>, slot: Slot, group: Slot) {
        if slot == self.in_service {
            self.expire(core, slot, Expiry::Preempted, false);
        }
        let busy = self.queues[slot].is_busy();
        if busy {
            self.engine.deactivate(slot, Removal::Move, engine_tick(core));
        } else {
            self.engine.forget(slot);
        }
        let old = self.group_of(slot);
        if self.groups[old].newest == slot {
            self.groups[old].newest = NIL;
        }
        self.groups[old].members.remove(&mut self.queues, slot);
        self.groups[group].members.push_back(&mut self.queues, slot);
        self.engine.set_parent(slot, group);
        if busy {
            if !self.flash_queueing {
                self.index(core, slot);
            }
            self.engine.raise(slot, Insertion::Pending, engine_tick(core));
        }
        if self.in_service == NIL && self.in_flight == 0 && self.queued > 0 {
            core.kick();
        }
    }

    /// Releases the data of a group that is to be removed. Returns false, and keeps it, while
    /// requests of it are left.
    pub(super) fn release_group_data(&mut self, core: &mut QueueCore<H>, group: Slot) -> bool {
        let mut slot = self.groups[group].members.head();
        while slot != NIL {
            if self.queues[slot].allocated > 0 {
                return false;
            }
            slot = self.queues[slot].member_link.next;
        }
        let async_queues = core::mem::take(&mut self.groups[group].async_queues);
        for queue in async_queues.all() {
            if queue != NIL {
                self.release(core, queue);
            }
        }
        // Queues of contexts without requests since their move, and queues kept only for their
        // past service.
        loop {
            let slot = self.groups[group].members.head();
            if slot == NIL {
                break;
            }
            self.unindex(slot);
            self.move_queue(core, slot, ROOT);
            self.end_if_unused(slot);
        }
        let entity = self.engine.group_entity(group);
        self.engine.forget_entirely(entity);
        self.engine.levels[group] = Default::default();
        self.groups[group] = GroupState::default();
        true
    }
}
