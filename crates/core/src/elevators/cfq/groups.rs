//! Groups: a tree of weights, and the group that is served next.
//!
//! A group with queues is in a tree by its virtual time, which runs the slower the larger the
//! group's fraction of the disk is; the lowest is served next. The fraction is the product of
//! shares on the way to the root: the group's own contexts against its child groups, the group
//! against its siblings, and so on, among those with queues.

use super::queue::{Kind, ThinkTime};
use super::{Cfq, workload::ServiceTree};
use crate::collections::{Count, NIL, Slot, Tree};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::elevators::shared::async_queues::AsyncQueues;
use crate::event::Note;
use crate::group::{GroupWeights, ROOT};
use crate::priority::Class;

/// The fixed-point shift of fractions of the disk.
const FRACTION_SHIFT: u32 = 12;
/// The minimum weight.
const WEIGHT_MIN: u16 = 10;
/// The default weight of the root.
const ROOT_WEIGHT: u16 = 1000;
/// The virtual time by which a new group starts behind the last one in the tree. It is not scaled
/// like charges, so its effect is small.
const DELAY_NS: u64 = 200_000_000;
/// The same if requests are charged instead of time.
const DELAY_REQUESTS: u64 = 200;
/// Virtual times beyond this are all reduced at once, long before an overflow.
const VIRTUAL_TIME_MAX: u64 = 1 << 61;

/// The state of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupState {
    vdisktime: u64,
    /// Its fraction of the disk when it was last inserted into the tree.
    vfraction: u64,
    on_tree: bool,
    /// The weights as last counted.
    weight: u64,
    leaf_weight: u64,
    /// The sum of weights of the members with queues: its own contexts and its child groups.
    children_weight: u64,
    /// The number of those members.
    active_members: u32,
    /// The number of filed queues.
    pub queues: u32,
    /// The average number of queues: real time, best effort.
    busy_average: [u64; 2],
    pub dispatched: u32,
    /// The number of allocated requests.
    pub requests: u32,
    pub think: ThinkTime,
    /// The rest of the workload's time when the group last stopped being served; 0 for none.
    pub saved_slice: u64,
    pub saved_class: Class,
    pub saved_kind: Kind,
    /// Three kinds each: real time, then best effort.
    trees: [ServiceTree; 6],
    idle: ServiceTree,
    pub async_queues: AsyncQueues,
}

impl Default for GroupState {
    fn default() -> Self {
        GroupState::new(0)
    }
}

impl GroupState {
    pub fn new(now: u64) -> GroupState {
        let tree = ServiceTree { think: ThinkTime::since(now), ..ServiceTree::default() };
        GroupState {
            vdisktime: 0,
            vfraction: 1 << FRACTION_SHIFT,
            on_tree: false,
            weight: 0,
            leaf_weight: 0,
            children_weight: 0,
            active_members: 0,
            queues: 0,
            busy_average: [0; 2],
            dispatched: 0,
            requests: 0,
            think: ThinkTime::since(now),
            saved_slice: 0,
            saved_class: Class::BestEffort,
            saved_kind: Kind::Async,
            trees: [tree; 6],
            idle: tree,
            async_queues: AsyncQueues::default(),
        }
    }

    /// The tree of a class and kind; the idle class has a single one.
    pub fn tree(&self, class: Class, kind: Kind) -> &ServiceTree {
        index_of(class, kind).and_then(|index| self.trees.get(index)).unwrap_or(&self.idle)
    }

    pub fn tree_mut(&mut self, class: Class, kind: Kind) -> &mut ServiceTree {
        match index_of(class, kind).and_then(|index| self.trees.get_mut(index)) {
            Some(tree) => tree,
            None => &mut self.idle,
        }
    }

    /// The number of queues of a class.
    pub fn busy(&self, class: Class) -> u32 {
        if class == Class::Idle {
            return self.idle.count;
        }
        Kind::ALL.iter().fold(0u32, |sum, &kind| sum.saturating_add(self.tree(class, kind).count))
    }

    /// The number of async queues outside the idle class.
    pub fn busy_async(&self) -> u32 {
        let real_time = self.tree(Class::RealTime, Kind::Async).count;
        real_time.saturating_add(self.tree(Class::BestEffort, Kind::Async).count)
    }

    /// Returns true if it has sync queues outside the idle class.
    fn has_sync(&self) -> bool {
        self.queues > self.busy_async().saturating_add(self.idle.count)
    }

    /// Updates the average number of queues of a class: a lower present number counts a quarter, a
    /// higher one three quarters. The idle class uses the best-effort average.
    pub fn update_busy_average(&mut self, class: Class) -> u64 {
        let class = if class == Class::RealTime { class } else { Class::BestEffort };
        let busy = u64::from(self.busy(class));
        let average = self.busy_average(class);
        let new = average.max(busy).saturating_mul(3).saturating_add(average.min(busy)).saturating_add(2) / 4;
        let [real_time, best_effort] = &mut self.busy_average;
        *(if class == Class::RealTime { real_time } else { best_effort }) = new;
        new
    }

    /// The average as last updated.
    pub fn busy_average(&self, class: Class) -> u64 {
        let [real_time, best_effort] = self.busy_average;
        if class == Class::RealTime { real_time } else { best_effort }
    }

    /// Its fraction of a time.
    pub fn part_of(&self, time: u64) -> u64 {
        time.saturating_mul(self.vfraction) >> FRACTION_SHIFT
    }
}

fn index_of(class: Class, kind: Kind) -> Option<usize> {
    match class {
        Class::RealTime => Some(kind as usize),
        Class::Idle => None,
        _ => Some((kind as usize).saturating_add(3)),
    }
}

/// The effective weights; CFQ's minimum applies. The root has 1000 as in the kernel, unless other
/// weights than the default were set. Its weight matters only between its own contexts and its
/// child groups.
fn weights_in_force<H: HostTypes>(core: &QueueCore<H>, group: Slot) -> (u64, u64) {
    let mut weights = core.tables.groups[group].weights;
    if group == ROOT && weights == GroupWeights::default() {
        weights = GroupWeights::of(ROOT_WEIGHT);
    }
    (u64::from(weights.weight.max(WEIGHT_MIN)), u64::from(weights.leaf_weight.max(WEIGHT_MIN)))
}

impl<H: HostTypes> Cfq<H> {
    /// Returns true if requests are charged instead of time: without idling on a device with its
    /// own queue.
    fn charges_requests(&self) -> bool {
        self.tunables.slice_idle == 0 && self.hw_queue.may_queue()
    }

    /// Handles the filing of a queue of the group.
    pub(super) fn group_gained_queue(&mut self, core: &QueueCore<H>, group: Slot) {
        let state = &mut self.groups[group];
        state.queues.increment();
        if state.on_tree {
            return;
        }
        let last = self.group_tree.last();
        self.groups[group].vdisktime = if last == NIL {
            self.min_vdisktime
        } else {
            let delay = if self.charges_requests() { DELAY_REQUESTS } else { DELAY_NS };
            self.groups[last].vdisktime.saturating_add(delay)
        };
        self.put_group_on_tree(core, group);
    }

    /// Handles the removal of a queue of the group.
    pub(super) fn group_lost_queue(&mut self, core: &QueueCore<H>, group: Slot) {
        let state = &mut self.groups[group];
        debug_assert!(state.queues > 0 && state.on_tree);
        state.queues.decrement();
        if state.queues == 0 {
            self.take_group_off_tree(core, group);
            self.groups[group].saved_slice = 0;
        }
    }

    /// The group to be served next, or [`NIL`].
    pub(super) fn next_group(&mut self) -> Slot {
        let first = self.group_tree.first();
        if first == NIL {
            return NIL;
        }
        self.min_vdisktime = self.min_vdisktime.max(self.groups[first].vdisktime);
        if self.min_vdisktime > VIRTUAL_TIME_MAX {
            self.reduce_virtual_times();
        }
        first
    }

    /// Charges the group of the active queue, which stops being served, and saves the rest of the
    /// workload's time.
    pub(super) fn charge_group(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        let now = core.counted_ns();
        let queue = &self.queues[slot];
        let (pid, group) = (queue.pid, queue.group);
        let charge = if self.charges_requests() {
            u64::from(queue.slice_dispatch)
        } else if !queue.sync && !self.groups[group].has_sync() {
            queue.allocated_slice
        } else if queue.slice_start == 0 || queue.slice_start == now {
            // Nothing has completed, or only now: the device may have been seeking. The minimum
            // charge is a tick.
            now.saturating_sub(queue.dispatch_start).max(core.clock.ns_of_ticks(1))
        } else {
            now.saturating_sub(queue.slice_start).min(queue.allocated_slice)
        };
        core.note(|_| Note::Charge { queue: pid, amount: charge });
        let state = &self.groups[group];
        let scaled = charge.min(u64::MAX >> 24) << 24;
        let vdisktime = state.vdisktime.saturating_add(scaled.checked_div(state.vfraction).unwrap_or(scaled));
        if state.on_tree {
            self.take_group_off_tree(core, group);
            self.groups[group].vdisktime = vdisktime;
            self.put_group_on_tree(core, group);
        }
        let left = self.workload_expires.wrapping_sub(now);
        let state = &mut self.groups[group];
        state.saved_slice = 0;
        if left as i64 > 0 {
            (state.saved_slice, state.saved_class, state.saved_kind) = (left, self.serving_class, self.serving_kind);
        }
    }

    /// Returns true if `group` is `above` or below it.
    pub(super) fn is_within(&self, core: &QueueCore<H>, mut group: Slot, above: Slot) -> bool {
        while group != above && group != NIL {
            group = core.tables.groups[group].parent;
        }
        group == above
    }

    fn put_group_on_tree(&mut self, core: &QueueCore<H>, group: Slot) {
        let vdisktime = self.groups[group].vdisktime;
        self.group_tree.insert(&mut self.group_places, group, vdisktime);
        // Changed weights apply from here on; a parent's only when it gains its first member.
        let (weight, leaf_weight) = weights_in_force(core, group);
        let state = &mut self.groups[group];
        (state.on_tree, state.leaf_weight) = (true, leaf_weight);
        if state.active_members == 0 {
            state.weight = weight;
        }
        let mut gained = state.gain(leaf_weight);
        let mut fraction = state.share(1 << FRACTION_SHIFT, leaf_weight);
        let (mut at, mut parent) = (group, core.tables.groups[group].parent);
        while parent != NIL {
            let weight = self.groups[at].weight;
            let above = &mut self.groups[parent];
            if gained {
                if above.active_members == 0 {
                    above.weight = weights_in_force(core, parent).0;
                }
                gained = above.gain(weight);
            }
            fraction = above.share(fraction, weight);
            (at, parent) = (parent, core.tables.groups[parent].parent);
        }
        self.groups[group].vfraction = fraction.max(1);
    }

    fn take_group_off_tree(&mut self, core: &QueueCore<H>, group: Slot) {
        self.group_tree.remove(&mut self.group_places, group);
        let state = &mut self.groups[group];
        state.on_tree = false;
        let (mut at, mut weight) = (group, state.leaf_weight);
        while at != NIL && self.groups[at].lose(weight) {
            weight = self.groups[at].weight;
            at = core.tables.groups[at].parent;
        }
    }

    #[cold]
    fn reduce_virtual_times(&mut self) {
        let mut tree = Tree::default();
        let back = core::mem::take(&mut self.min_vdisktime);
        while !self.group_tree.is_empty() {
            let group = self.group_tree.first();
            self.group_tree.remove(&mut self.group_places, group);
            let vdisktime = self.groups[group].vdisktime.saturating_sub(back);
            self.groups[group].vdisktime = vdisktime;
            tree.insert(&mut self.group_places, group, vdisktime);
        }
        self.group_tree = tree;
    }
}

impl GroupState {
    /// Adds a member with queues: its own contexts or a child group. Returns true if it is the
    /// first.
    fn gain(&mut self, weight: u64) -> bool {
        self.children_weight = self.children_weight.saturating_add(weight);
        self.active_members.increment();
        self.active_members == 1
    }

    /// Removes such a member. Returns true if it was the last.
    fn lose(&mut self, weight: u64) -> bool {
        debug_assert!(self.active_members > 0 && self.children_weight >= weight);
        self.children_weight = self.children_weight.saturating_sub(weight);
        self.active_members.decrement();
        self.active_members == 0
    }

    /// The part of `fraction` for a member of this weight.
    fn share(&self, fraction: u64, weight: u64) -> u64 {
        fraction.saturating_mul(weight).checked_div(self.children_weight).unwrap_or(fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_number_of_queues_rises_fast_and_falls_slowly() {
        let mut group = GroupState::new(0);
        let averages = [6, 6, 6, 1, 1, 1, 1, 1].map(|busy| {
            group.tree_mut(Class::BestEffort, Kind::Sync).count = busy;
            group.update_busy_average(Class::Idle)
        });
        assert_eq!(averages, [5, 6, 6, 5, 4, 3, 3, 3], "(3 * the higher + the lower + 2) / 4");
        assert_eq!(group.busy_average(Class::RealTime), 0);
    }

    #[test]
    fn shares_multiply_on_the_way_up() {
        let (mut parent, mut child) = (GroupState::new(0), GroupState::new(0));
        assert!(child.gain(1000) && parent.gain(1000) && !parent.gain(500));
        let whole = 1 << FRACTION_SHIFT;
        let own = child.share(whole, 1000);
        assert_eq!((parent.share(own, 1000), parent.share(own, 500)), (2730, 1365), "of 4096, truncated");
        assert!(!parent.lose(500) && parent.lose(1000));
        assert_eq!(parent.children_weight, 0);
    }
}
