//! The scheduler of nested levels (mainline): each level caches its next entity, and a change is
//! propagated upwards only as far as it changes the next entity.

use super::{CLASSES, Engine, IDLE, Level, ROOT_LEVEL, TreePart, is_later, later, virtual_distance};
use crate::collections::{Count, NIL, Slot};
use crate::elevator::tables::HostTypes;

/// Why an entity is inserted into its active tree, or changes its position there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insertion {
    /// It received pending service, or its budget changed.
    Pending,
    /// It received pending service soon after it left service without: it gets the position that it
    /// would have had.
    Return,
    /// It leaves service with pending service left.
    Expiry,
}

/// Why an entity leaves its active tree or service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// It has no pending service left.
    Empty,
    /// The same, and it leaves service.
    Expiry,
    /// It moves to another level.
    Move,
}

impl<H: HostTypes> Engine<H> {
    /// Activates or requeues an entity. The change is propagated upwards as long as it changes the
    /// next entity above, after service to the root. `tick` is the current tick.
    pub fn raise(&mut self, entity: Slot, reason: Insertion, tick: u64) {
        let (mut entity, expiring) = (entity, reason == Insertion::Expiry);
        while entity != NIL {
            let Level { current, group, .. } = *self.level_of(entity);
            if current == entity || self.entities[entity].part == TreePart::Active {
                self.requeue(entity);
            } else {
                self.activate(entity, reason == Insertion::Return);
            }
            let changed = self.refresh(self.entities[entity].level, entity, expiring, tick);
            if !changed && !expiring {
                return;
            }
            entity = group;
        }
    }

    /// Updates the next entity of a level. A candidate that is eligible and finishes before the
    /// current next entity replaces it without a search. Returns true if the level above may
    /// change: there was no next entity before, or the group's budget has shrunk.
    pub fn refresh(&mut self, level: Slot, candidate: Slot, expiring: bool, tick: u64) -> bool {
        let &Level { next, group, .. } = &self.levels[level];
        let takes_over = candidate != NIL && candidate != next && (next == NIL || self.goes_before(candidate, next));
        let found = if takes_over { candidate } else { self.search(level, expiring, tick) };
        let mut changed = false;
        if found != NIL {
            changed = next == NIL;
            if group != NIL {
                let budget = self.entities[found].budget;
                changed |= self.entities[group].budget > budget;
                self.entities[group].budget = budget;
            }
        }
        self.levels[level].next = found;
        changed
    }

    fn goes_before(&self, candidate: Slot, next: Slot) -> bool {
        let (one, other) = (&self.entities[candidate], &self.entities[next]);
        one.class == other.class && !is_later(one.start, self.time_of(candidate)) && is_later(other.finish, one.finish)
    }

    /// Searches the next entity of a level, or returns [`NIL`]. If no entity is eligible, the time
    /// jumps to the least start, for this search only while a member is in service.
    pub fn search(&mut self, level: Slot, expiring: bool, tick: u64) -> Slot {
        let mut first = 0;
        if let Some(timeout) = self.rules.idle_guarantee
            && tick > self.levels[level].idle_stamp.saturating_add(timeout)
        {
            if !self.levels[level].tree(IDLE).active.is_empty() {
                first = IDLE;
            }
            self.levels[level].idle_stamp = tick;
        }
        for class in first..CLASSES as u8 {
            let at = &mut self.levels[level];
            let idle = at.current == NIL;
            let tree = at.tree_mut(class);
            let active = tree.active;
            if active.is_empty() {
                continue;
            }
            // The least start of the tree.
            let time = later(tree.time, self.nodes[active.root()].summary().0);
            if is_later(time, tree.time) && (idle || expiring) {
                tree.time = time;
                self.prune(level, class);
            }
            return self.pick(&active, time);
        }
        NIL
    }

    /// Deactivates an entity, and the groups above whose levels have no pending service either.
    /// Unless it moves, it stays known as long as it is ahead of the tree's time.
    pub fn deactivate(&mut self, entity: Slot, reason: Removal, tick: u64) {
        let expiring = reason == Removal::Expiry;
        let (mut entity, mut keep) = (entity, reason != Removal::Move);
        while entity != NIL {
            if !self.entities[entity].known {
                return;
            }
            self.leave_tree(entity, keep);
            let level = self.entities[entity].level;
            if self.levels[level].next == entity {
                self.refresh(level, NIL, expiring, tick);
            }
            entity = self.levels[level].group;
            if self.has_next_or_current(level) {
                break;
            }
            keep = true;
        }
        while entity != NIL {
            self.requeue(entity);
            let level = self.entities[entity].level;
            if !self.refresh(level, entity, expiring, tick) && !expiring {
                return;
            }
            entity = self.levels[level].group;
        }
    }

    fn leave_tree(&mut self, entity: Slot, keep: bool) {
        let at = &mut self.entities[entity];
        let finish = at.start.wrapping_add(virtual_distance(at.service, u64::from(at.weight)));
        at.finish = finish;
        let level = &mut self.levels[at.level];
        if level.current == entity {
            level.current = NIL;
        } else {
            at.service = 0;
        }
        let time = level.tree(at.class).time;
        match at.part {
            TreePart::Active => self.leave_active(entity),
            TreePart::Idle => self.leave_idle(entity),
            TreePart::Neither => {}
        }
        if keep && is_later(finish, time) {
            self.enter_idle(entity);
        } else {
            self.forget(entity);
        }
    }

    /// Puts the next queue into service and returns it, or [`NIL`]. A group with other members to
    /// serve next stays in its tree.
    pub fn pick_next(&mut self, tick: u64) -> Slot {
        let mut level = ROOT_LEVEL;
        let queue = loop {
            let next = self.levels[level].next;
            if next == NIL {
                debug_assert!(level == ROOT_LEVEL, "a group that is next has a next member");
                break NIL;
            }
            self.levels[level].current = next;
            let inner = self.entities[next].inner;
            if self.entities[next].part == TreePart::Active && (inner == NIL || self.levels[inner].active == 1) {
                self.leave_active(next);
            }
            if inner == NIL {
                break next;
            }
            level = inner;
        };
        let mut changed = queue;
        while changed != NIL && self.refresh(self.entities[changed].level, NIL, false, tick) {
            changed = self.level_of(changed).group;
        }
        queue
    }

    /// Takes a queue and its groups out of service.
    pub fn clear_current(&mut self, queue: Slot) {
        let mut entity = queue;
        while entity != NIL {
            let level = self.entities[entity].level;
            self.levels[level].current = NIL;
            entity = self.levels[level].group;
        }
    }

    /// Moves an entity unknown to any tree to another level.
    pub fn set_parent(&mut self, entity: Slot, level: Slot) {
        debug_assert!(!self.entities[entity].known, "the entity is still in a tree of its level");
        self.entities[entity].level = level;
    }

    /// Removes a queue without queued and in-flight requests from the counts of its groups, up to
    /// the first group with other members, and from the compared weights.
    pub fn leave_all(&mut self, queue: Slot) {
        let mut group = self.level_of(queue).group;
        while group != NIL && !self.has_next_or_current(self.entities[group].inner) {
            if core::mem::take(&mut self.entities[group].counted) {
                self.groups_pending.decrement();
            }
            group = self.level_of(group).group;
        }
        self.leave_weights(queue);
    }

    /// Returns true if a level has a member that is next or in service.
    pub fn has_next_or_current(&self, level: Slot) -> bool {
        self.levels[level].next != NIL || self.levels[level].current != NIL
    }

    fn level_of(&self, entity: Slot) -> &Level {
        &self.levels[self.entities[entity].level]
    }
}
