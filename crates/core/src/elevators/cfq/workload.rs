//! The service trees of queues with requests, and the choice of the tree to serve.
//!
//! A group has a tree for each class and kind of queue. Within a tree, the key of a queue is a
//! time: the current one, plus an offset that grows with the number of queues and for shorter
//! slices. The tree to serve is chosen anew when its time is over or it is empty.

use super::Cfq;
use super::queue::{Kind, ThinkTime};
use crate::collections::{Count, NIL, Slot, Tree};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::Note;
use crate::priority::Class;

/// The offset of a queue of the idle class, in ns.
const IDLE_DELAY_NS: u64 = 200_000_000;
/// The distance before the first queue at which a preempting queue is filed, in ns.
const FRONT_NS: u64 = 1_000_000_000;
/// The minimum time for which a tree is served, in ticks.
const WORKLOAD_TICKS_MIN: u64 = 2;

/// The queues of a class and kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServiceTree {
    pub tree: Tree,
    pub count: u32,
    pub think: ThinkTime,
}

/// The position at which a queue is filed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FilingPosition {
    /// By its key.
    Usual,
    /// Before all others, because it preempts the active queue.
    Front,
}

impl<H: HostTypes> Cfq<H> {
    /// Files a queue in the tree of its current class and kind, or moves it there.
    pub(super) fn file(&mut self, core: &mut QueueCore<H>, slot: Slot, place: FilingPosition) {
        let now = core.counted_ns();
        let queue = &self.queues[slot];
        let (group, class, kind, filed) = (queue.group, queue.class(), queue.kind(), queue.filed);
        let first = self.groups[group].tree(class, kind).tree.first();
        // Keys wrap around and are compared as integers: one below zero comes last.
        let key = if class == Class::Idle {
            now.wrapping_add(IDLE_DELAY_NS)
        } else if place == FilingPosition::Front {
            let from = if first == NIL { now } else { self.service_nodes[first].key() };
            from.wrapping_sub(FRONT_NS)
        } else {
            let left = core::mem::take(&mut self.queues[slot].slice_left);
            self.key_offset(slot).wrapping_add(now).wrapping_sub(left as u64)
        };
        match filed {
            Some(at) if at == (class, kind) && self.service_nodes[slot].key() == key => return,
            Some(_) => self.leave_tree(slot),
            None => {
                self.busy_queues.increment();
                let sync = u32::from(self.queues[slot].sync);
                self.busy_sync_queues = self.busy_sync_queues.saturating_add(sync);
            }
        }
        let tree = self.groups[group].tree_mut(class, kind);
        tree.count.increment();
        tree.tree.insert_late(&mut self.service_nodes, slot, key, ());
        self.queues[slot].filed = Some((class, kind));
        if filed.is_none() {
            // The group counts the queue only now: its own key is computed without it.
            self.group_gained_queue(core, group);
        }
    }

    /// Removes a queue without requests from its tree.
    pub(super) fn unfile(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        debug_assert!(self.queues[slot].filed.is_some() && self.queues[slot].is_empty());
        self.leave_tree(slot);
        self.leave_positions(slot);
        let queue = &self.queues[slot];
        let (group, sync) = (queue.group, u32::from(queue.sync));
        self.group_lost_queue(core, group);
        self.busy_queues.decrement();
        self.busy_sync_queues = self.busy_sync_queues.saturating_sub(sync);
    }

    fn leave_tree(&mut self, slot: Slot) {
        let queue = &mut self.queues[slot];
        let Some((class, kind)) = queue.filed.take() else { return };
        let tree = self.groups[queue.group].tree_mut(class, kind);
        debug_assert!(tree.count > 0);
        tree.count.decrement();
        tree.tree.remove(&mut self.service_nodes, slot);
    }

    /// The offset of a queue's key: for each other queue of its group the difference between the
    /// longest slice and its own. It may be negative while the group does not count the queue yet.
    fn key_offset(&self, slot: Slot) -> u64 {
        let queue = &self.queues[slot];
        let others = u64::from(self.groups[queue.group].queues).wrapping_sub(1);
        let longest = self.tunables.slice_of(true, 0);
        others.wrapping_mul(longest.wrapping_sub(self.tunables.slice_of(queue.sync, queue.level())))
    }

    /// The tree in which a queue is filed.
    pub(super) fn tree_of(&self, slot: Slot) -> Option<&ServiceTree> {
        let queue = &self.queues[slot];
        queue.filed.map(|(class, kind)| self.groups[queue.group].tree(class, kind))
    }

    /// Chooses the group, class and kind to serve, and returns the first queue there, or [`NIL`].
    pub(super) fn choose_queue(&mut self, core: &mut QueueCore<H>) -> Slot {
        let group = self.next_group();
        if group == NIL {
            debug_assert_eq!(self.busy_queues, 0);
            return NIL;
        }
        self.choose_in_group(core, group)
    }

    /// Chooses the class and kind to serve in this group, which has queues, and returns the first
    /// queue.
    pub(super) fn choose_in_group(&mut self, core: &mut QueueCore<H>, group: Slot) -> Slot {
        let now = core.counted_ns();
        let state = &self.groups[group];
        if state.saved_slice > 0 {
            self.workload_expires = now.wrapping_add(state.saved_slice);
            (self.serving_class, self.serving_kind) = (state.saved_class, state.saved_kind);
        } else {
            self.workload_expires = now.wrapping_sub(1);
        }
        self.choose_workload(core, group, now);
        self.groups[group].tree(self.serving_class, self.serving_kind).tree.first()
    }

    fn choose_workload(&mut self, core: &mut QueueCore<H>, group: Slot, now: u64) {
        let state = &self.groups[group];
        let served = self.serving_class;
        let class = [Class::RealTime, Class::BestEffort].into_iter().find(|&class| state.busy(class) > 0);
        self.serving_class = class.unwrap_or(Class::Idle);
        let Some(class) = class else {
            self.workload_expires = now.wrapping_add(core.clock.ns_of_ticks(1));
            return;
        };
        let over = now.wrapping_sub(self.workload_expires) as i64 > 0;
        if class == served && state.tree(class, self.serving_kind).count > 0 && !over {
            return;
        }
        self.serving_kind = self.earliest_kind(group, class);
        let slice =
            core.clock.counted_length(self.workload_slice(group)).max(core.clock.ns_of_ticks(WORKLOAD_TICKS_MIN));
        self.workload_expires = now.wrapping_add(slice);
        let kind = self.serving_kind as u8;
        let until = self.workload_expires;
        core.note(|core| Note::Workload { class: class as u8, kind, until_ns: core.clock.host_ns(until) });
    }

    /// The kind whose first queue has the lowest key.
    fn earliest_kind(&self, group: Slot, class: Class) -> Kind {
        let mut earliest: Option<(u64, Kind)> = None;
        for kind in Kind::ALL {
            let first = self.groups[group].tree(class, kind).tree.first();
            let key = self.service_nodes[first].key();
            if first != NIL && earliest.is_none_or(|(lowest, _)| key < lowest) {
                earliest = Some((key, kind));
            }
        }
        earliest.map_or(Kind::SyncNoIdle, |(_, kind)| kind)
    }

    /// The time for which the chosen tree is served: its queues' part of the group's part of the
    /// target latency.
    fn workload_slice(&self, group: Slot) -> u64 {
        let state = &self.groups[group];
        let (class, kind) = (self.serving_class, self.serving_kind);
        let count = u64::from(state.tree(class, kind).count);
        let target = self.tunables.target_latency;
        let queues = state.busy_average(class).max(u64::from(state.busy(class)));
        let slice = state.part_of(target).saturating_mul(count).checked_div(queues).unwrap_or(0);
        if kind != Kind::Async {
            return slice.max(self.tunables.slice_idle.saturating_mul(2));
        }
        // Async queues count as one among all queues, and less in proportion to their shorter
        // slices.
        let busy_async = u64::from(state.busy_async());
        let among_all = target.saturating_mul(busy_async).checked_div(u64::from(self.busy_queues)).unwrap_or(0);
        let [slice_async, slice_sync] = self.tunables.slice;
        slice.min(among_all).saturating_mul(slice_async).checked_div(slice_sync).unwrap_or(0)
    }
}
