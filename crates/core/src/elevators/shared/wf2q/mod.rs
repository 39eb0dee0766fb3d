//! B-WF2Q+: worst-case fair weighted fair queueing with budgets as packets. It is the engine of
//! both forms of BFQ and of cfq-wf2q.
//!
//! The idea (Bennett and Zhang's WF2Q+, Valente's budgets): every entity has a virtual start `S`
//! and finish `F = S + budget / weight`. The tree's virtual time `V` advances by service over the
//! sum of weights, as if all were served at once. Of the eligible entities (`S <= V`) the one with
//! the least finish is served alone for its budget. Its next start is computed from the service
//! that it actually used, so an unsuitable budget does not change the share of any entity.
//!
//! An [`Engine`] has entities (queues and groups, in one table: queues first, then groups) and
//! levels (one per group; the root's is 0), each with a tree per class. Trees are sorted by finish
//! and keep the least start of each subtree, so every operation is O(log N) per level. Stepping
//! through the active queues, as BFQ does for injection, is linear.
//!
//! `entity` has the state, this file the operations on one entity in its tree, `flat` the scheduler
//! of a single level of 2008, `hierarchy` that of nested levels as in mainline.

mod entity;
mod flat;
mod hierarchy;
mod search;
#[cfg(all(test, feature = "alloc"))]
mod tests;

use crate::collections::{Arena, Count, List, NIL, Node, Slot, Tree};
use crate::elevator::tables::{HostTypes, TableMaker, TableOf};

pub(crate) use entity::{CLASSES, Entity, IDLE, LeastStart, Level, REAL_TIME, TreePart, is_later};
use entity::{Recent, later, virtual_distance};
pub(crate) use hierarchy::{Insertion, Removal};

/// The level of queues that are in no group.
pub(crate) const ROOT_LEVEL: Slot = 0;

/// The differences between the forms of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Whether the search for the least eligible finish is exact. The search that Linux shipped
    /// remembers an eligible ancestor and returns it where it should search to the right of an
    /// ineligible node.
    pub exact_search: bool,
    /// Whether the virtual time stays when the last active entity has left. As shipped it becomes
    /// the greatest finish of the idle entities, which can be earlier.
    pub keeps_time: bool,
    /// The number of ticks after which the idle class is served once before the others, in forms
    /// with this guarantee.
    pub idle_guarantee: Option<u64>,
}

/// The tables of the engine.
pub(crate) struct Tables<H: HostTypes> {
    entities: H::Slots<Entity>,
    nodes: H::Slots<Node<LeastStart>>,
    /// Nodes of the queues in the tree of weights.
    weights: H::Slots<Node>,
    levels: H::Slots<Level>,
}

/// The engine.
pub(crate) struct Engine<H: HostTypes> {
    pub entities: TableOf<H, Entity>,
    pub levels: TableOf<H, Level>,
    pub rules: Rules,
    nodes: TableOf<H, Node<LeastStart>>,
    queues: u32,
    /// Queues in active trees, the latest first.
    recent: List<Recent>,
    /// Queues that a tree has forgotten, until `take_forgotten` returns them.
    forgotten: List<Recent>,
    /// The compared queues, by weight.
    weighed: Tree,
    weight_nodes: TableOf<H, Node>,
    /// The number of groups with requests queued or in the device.
    pub groups_pending: u32,
}

impl<H: HostTypes> Engine<H> {
    /// Makes tables for this number of queues, and of groups including the root.
    pub fn make_tables<M: TableMaker<H>>(queues: u32, groups: u32, maker: &mut M) -> Tables<H> {
        let entities = queues.saturating_add(groups);
        Tables {
            entities: maker.table(entities),
            nodes: maker.table(entities),
            weights: maker.table(queues),
            levels: maker.table(groups),
        }
    }

    /// Creates an engine without queues and with only the root's level. `tick` is the current tick.
    pub fn new(tables: Tables<H>, rules: Rules, tick: u64) -> Self {
        let (entities, weight_nodes): (TableOf<H, Entity>, TableOf<H, Node>) =
            (Arena::new(tables.entities), Arena::new(tables.weights));
        let mut levels: TableOf<H, Level> = Arena::new(tables.levels);
        levels[ROOT_LEVEL].idle_stamp = tick;
        Engine {
            queues: weight_nodes.capacity(),
            entities,
            levels,
            rules,
            nodes: Arena::new(tables.nodes),
            recent: List::default(),
            forgotten: List::default(),
            weighed: Tree::default(),
            weight_nodes,
            groups_pending: 0,
        }
    }

    pub fn into_tables(self) -> Tables<H> {
        Tables {
            entities: self.entities.into_slots(),
            nodes: self.nodes.into_slots(),
            weights: self.weight_nodes.into_slots(),
            levels: self.levels.into_slots(),
        }
    }

    /// The capacity in queues; their entities have the slots below it.
    pub fn queue_capacity(&self) -> u32 {
        self.queues
    }

    /// The entity of a group. The root, group 0, has none that is scheduled.
    pub fn group_entity(&self, group: Slot) -> Slot {
        self.queues.saturating_add(group)
    }

    /// Creates a queue with this level, class and weight. The previous entity at its slot must be
    /// unknown to the engine.
    pub fn init_queue(&mut self, queue: Slot, level: Slot, class: u8, weight: u32, budget: u64) {
        self.forget_entirely(queue);
        self.entities[queue] = Entity {
            weight,
            base: weight,
            new_base: weight,
            class,
            new_class: class,
            budget,
            level,
            ..Entity::default()
        };
    }

    /// Creates the level of a group, and its best-effort entity of this weight in its parent's
    /// level.
    pub fn init_group(&mut self, group: Slot, parent: Slot, weight: u32) {
        let entity = self.group_entity(group);
        self.levels[group] = Level { group: entity, ..Level::default() };
        self.entities[entity] =
            Entity { weight, base: weight, new_base: weight, level: parent, inner: group, ..Entity::default() };
    }

    /// Removes an entity from any tree, without an update of the levels above, before its slot is
    /// reused.
    pub fn forget_entirely(&mut self, entity: Slot) {
        self.leave_weights(entity);
        if self.entities[entity].forgotten {
            self.entities[entity].forgotten = false;
            self.forgotten.remove(&mut self.entities, entity);
        }
        if self.entities[entity].part == TreePart::Active {
            self.leave_active(entity);
        }
        if self.entities[entity].known {
            self.forget(entity);
        }
        let level = self.entities[entity].level;
        if self.levels[level].current == entity {
            self.levels[level].current = NIL;
        }
        if self.levels[level].next == entity {
            self.levels[level].next = NIL;
        }
        if core::mem::take(&mut self.entities[entity].counted) {
            self.groups_pending.decrement();
        }
        if core::mem::take(&mut self.entities[entity].forgotten) {
            self.forgotten.remove(&mut self.entities, entity);
        }
    }

    /// Returns true if a tree has forgotten a queue since the last calls of
    /// [`take_forgotten`](Self::take_forgotten).
    #[inline]
    pub fn has_forgotten(&self) -> bool {
        !self.forgotten.is_empty()
    }

    /// Returns a queue that a tree has forgotten since the last call, or [`NIL`]. Its entry is free
    /// if nothing else uses it.
    pub fn take_forgotten(&mut self) -> Slot {
        let queue = self.forgotten.pop_front(&mut self.entities);
        if queue != NIL {
            self.entities[queue].forgotten = false;
        }
        queue
    }

    /// The queue that entered an active tree last, or [`NIL`].
    pub fn recent_first(&self) -> Slot {
        self.recent.head()
    }

    /// The queue that entered an active tree before this one, or [`NIL`].
    pub fn recent_next(&self, queue: Slot) -> Slot {
        self.recent.next(&self.entities, queue)
    }

    /// Returns true if a queue is neither known to its tree nor in service, so that the engine does
    /// not need its entry.
    pub fn is_out(&self, entity: Slot) -> bool {
        let at = &self.entities[entity];
        !at.known && at.part == TreePart::Neither && self.levels[at.level].current != entity
    }

    /// The virtual time of an entity's tree.
    #[inline]
    pub fn time_of(&self, entity: Slot) -> u64 {
        let at = &self.entities[entity];
        self.levels[at.level].tree(at.class).time
    }

    /// Applies a pending weight or class. The class changes only in an entity that is in no tree.
    pub fn apply(&mut self, entity: Slot, class_too: bool) {
        if self.entities[entity].pending {
            self.apply_pending(entity, class_too);
        }
    }

    #[cold]
    #[inline(never)]
    fn apply_pending(&mut self, entity: Slot, class_too: bool) {
        let at = self.entities[entity];
        debug_assert!(!class_too || at.part == TreePart::Neither, "a class changes in no tree");
        let class = if class_too { at.new_class } else { at.class };
        let weight = at.new_base.saturating_mul(at.coefficient).max(1);
        // Groups are always best effort; a queue's class may have to wait for the next time.
        let pending = at.is_queue() && class != at.new_class;
        self.add_weight(entity, false);
        if weight != at.weight && at.is_queue() {
            self.leave_weights(entity);
        }
        let changed = &mut self.entities[entity];
        (changed.base, changed.weight, changed.class, changed.pending) = (at.new_base, weight, class, pending);
        if weight != at.weight && at.is_queue() && at.coefficient == 1 {
            self.enter_weights(entity);
        }
        self.add_weight(entity, true);
        if class != at.class {
            self.entities[entity].start = self.time_of(entity);
        }
    }

    /// Inserts an entity that was in no active tree. With `backshift`, an entity that was away only
    /// briefly gets the position that it would have had: its start is its old finish even if the
    /// time is past that.
    fn activate(&mut self, entity: Slot, backshift: bool) {
        let time = self.time_of(entity);
        let at = &mut self.entities[entity];
        debug_assert!(at.part != TreePart::Active);
        let finish = at.finish;
        let shifted = backshift && is_later(time, finish);
        let base = if shifted { finish } else { time };
        let was_idle = at.part == TreePart::Idle;
        at.start = if was_idle { later(base, finish) } else { base };
        let is_new = !core::mem::replace(&mut at.known, true);
        if was_idle {
            self.leave_idle(entity);
        } else if is_new {
            self.add_weight(entity, true);
        }
        let at = &mut self.entities[entity];
        if !at.is_queue() && !at.counted {
            at.counted = true;
            self.groups_pending.increment();
        }
        self.enqueue(entity, shifted);
    }

    /// Returns an entity to its active tree after service or with a changed budget. The service
    /// received moves its start.
    fn requeue(&mut self, entity: Slot) {
        let at = &mut self.entities[entity];
        if self.levels[at.level].current == entity {
            at.start = at.start.wrapping_add(virtual_distance(at.service, u64::from(at.weight)));
            at.finish = at.start;
        }
        if at.part == TreePart::Active {
            self.leave_active(entity);
        }
        self.enqueue(entity, false);
    }

    fn enqueue(&mut self, entity: Slot, shifted: bool) {
        self.apply(entity, true);
        let at = &mut self.entities[entity];
        let time = self.levels[at.level].tree(at.class).time;
        at.finish = at.start.wrapping_add(virtual_distance(at.budget, u64::from(at.weight)));
        if shifted && is_later(time, at.finish) {
            // The finish would still be in the past: the entity is moved up to the current time, a
            // raised queue only by its part.
            let behind = time.wrapping_sub(at.finish);
            let push = if at.is_queue() { behind / u64::from(at.coefficient.max(1)) } else { behind };
            at.start = at.start.wrapping_add(push);
            at.finish = at.finish.wrapping_add(push);
        }
        self.enter_active(entity);
    }

    /// Forgets an entity: its tree no longer counts its weight.
    pub fn forget(&mut self, entity: Slot) {
        if self.entities[entity].part == TreePart::Idle {
            self.leave_idle(entity);
        }
        let at = &mut self.entities[entity];
        let weight = u64::from(at.weight);
        if core::mem::take(&mut at.known) {
            let tree = self.levels[at.level].tree_mut(at.class);
            tree.weights = tree.weights.saturating_sub(weight);
        }
        if at.is_queue() && at.part == TreePart::Neither && !at.forgotten {
            at.forgotten = true;
            self.forgotten.push_back(&mut self.entities, entity);
        }
    }

    /// Forgets all idle entities of a level.
    pub fn forget_idle(&mut self, level: Slot) {
        for class in 0..CLASSES as u8 {
            while !self.levels[level].tree(class).idle.is_empty() {
                self.forget(self.levels[level].tree(class).idle.first());
            }
        }
    }

    /// Accounts for service given to a queue: it, its groups and the time of their trees advance.
    pub fn charge(&mut self, queue: Slot, service: u64) {
        let mut entity = queue;
        while entity != NIL {
            let at = &mut self.entities[entity];
            at.service = at.service.saturating_add(service);
            let (slot, class) = (at.level, at.class);
            let level = &mut self.levels[slot];
            entity = level.group;
            let tree = level.tree_mut(class);
            tree.time = tree.time.wrapping_add(virtual_distance(service, tree.weights));
            if !tree.idle.is_empty() {
                self.prune(slot, class);
            }
        }
    }

    /// Forgets the idle entity with the least finish if the time has reached it. One per call keeps
    /// the call at O(log N).
    fn prune(&mut self, level: Slot, class: u8) {
        let tree = self.levels[level].tree_mut(class);
        if tree.idle.is_empty() {
            return;
        }
        if !self.rules.keeps_time && tree.active.is_empty() && tree.greatest_idle != NIL {
            let greatest = self.entities[tree.greatest_idle].finish;
            if !is_later(greatest, tree.time) {
                tree.time = greatest;
            }
        }
        let least = tree.idle.first();
        if !is_later(self.nodes[least].key(), tree.time) {
            self.forget(least);
        }
    }

    fn enter_active(&mut self, entity: Slot) {
        let at = &mut self.entities[entity];
        debug_assert!(at.known && at.part == TreePart::Neither);
        at.part = TreePart::Active;
        let level = &mut self.levels[at.level];
        level.active.increment();
        level.tree_mut(at.class).active.insert_late(&mut self.nodes, entity, at.finish, at.start);
        if at.is_queue() {
            if core::mem::take(&mut at.forgotten) {
                self.forgotten.remove(&mut self.entities, entity);
            }
            self.recent.push_front(&mut self.entities, entity);
        }
    }

    fn leave_active(&mut self, entity: Slot) {
        let at = &mut self.entities[entity];
        debug_assert!(at.part == TreePart::Active);
        at.part = TreePart::Neither;
        let level = &mut self.levels[at.level];
        level.active.decrement();
        level.tree_mut(at.class).active.remove(&mut self.nodes, entity);
        if at.is_queue() {
            self.recent.remove(&mut self.entities, entity);
        }
    }

    fn enter_idle(&mut self, entity: Slot) {
        let at = &mut self.entities[entity];
        debug_assert!(at.known && at.part == TreePart::Neither);
        at.part = TreePart::Idle;
        let finish = at.finish;
        let tree = self.levels[at.level].tree_mut(at.class);
        tree.idle.insert_late(&mut self.nodes, entity, finish, at.start);
        // Only a strictly later one replaces it.
        if tree.greatest_idle == NIL || is_later(finish, self.entities[tree.greatest_idle].finish) {
            tree.greatest_idle = entity;
        }
    }

    fn leave_idle(&mut self, entity: Slot) {
        let at = &mut self.entities[entity];
        debug_assert!(at.part == TreePart::Idle);
        at.part = TreePart::Neither;
        let tree = self.levels[at.level].tree_mut(at.class);
        if tree.greatest_idle == entity {
            // Of several equal entities it may have been the first; then the previous one is not
            // the greatest. This is as shipped.
            tree.greatest_idle = self.nodes[entity].prev();
        }
        tree.idle.remove(&mut self.nodes, entity);
    }

    fn add_weight(&mut self, entity: Slot, enters: bool) {
        let at = &self.entities[entity];
        let weight = u64::from(at.weight);
        let tree = self.tree_mut(at.level, at.class);
        tree.weights = if enters { tree.weights.saturating_add(weight) } else { tree.weights.saturating_sub(weight) };
    }

    fn tree_mut(&mut self, level: Slot, class: u8) -> &mut entity::ServiceTree {
        self.levels[level].tree_mut(class)
    }

    /// Adds a queue to the compared weights, if it is not among them.
    pub fn enter_weights(&mut self, queue: Slot) {
        let at = &mut self.entities[queue];
        if queue < self.queues && !core::mem::replace(&mut at.weighed, true) {
            self.weighed.insert_late(&mut self.weight_nodes, queue, u64::from(at.weight), ());
        }
    }

    /// Removes a queue from the compared weights.
    pub fn leave_weights(&mut self, queue: Slot) {
        if core::mem::take(&mut self.entities[queue].weighed) {
            self.weighed.remove(&mut self.weight_nodes, queue);
        }
    }

    /// Returns true if the compared weights have at least two different values.
    pub fn weights_differ(&self) -> bool {
        let (first, last) = (self.weighed.first(), self.weighed.last());
        first != NIL && self.weight_nodes[first].key() != self.weight_nodes[last].key()
    }

    /// Returns true if a queue is compared and no compared weight is lower.
    pub fn is_lightest(&self, queue: Slot) -> bool {
        let least = self.weight_nodes[self.weighed.first()].key();
        self.entities[queue].weighed && self.weight_nodes[queue].key() == least
    }
}
