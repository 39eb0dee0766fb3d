//! The scheduler of levels within levels (mainline's): each level keeps at hand who is next, and a change below is told upwards only as
//! far as it changes that.

use super::{CLASSES, Engine, IDLE, Level, Place, ROOT_LEVEL, is_later, later, virtual_distance};
use crate::collections::{NIL, Slot};
use crate::elevator::tables::HostTypes;

impl<H: HostTypes> Engine<H> {
    /// An entity has got something to be served, or another budget, or leaves service with something left; and so upwards, as long as that
    /// changes who is next above, or to the top with `all`. `expiring`: a queue is leaving service. `tick` is now.
    pub fn raise(&mut self, entity: Slot, backshift: bool, all: bool, expiring: bool, tick: u64) {
        let mut entity = entity;
        while entity != NIL {
            let Level { current, group, .. } = *self.level_of(entity);
            if current == entity || self.entities[entity].place == Place::Active {
                self.requeue(entity);
            } else {
                self.activate(entity, backshift);
            }
            let changed = self.refresh(self.entities[entity].level, entity, expiring, tick);
            if !changed && !all {
                return;
            }
            entity = group;
        }
    }

    /// Finds out who is next at a level. A candidate that is eligible and finishes before the present one takes its place without a search.
    /// Answers whether that may change the level above: somebody is next where nobody was, or the group's budget has shrunk.
    pub fn refresh(&mut self, level: Slot, candidate: Slot, expiring: bool, tick: u64) -> bool {
        let Level { next, group, .. } = self.levels[level];
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

    /// Who is to be served next at a level, or [`NIL`]. If nobody's start has come, the time jumps to the least start; but only for this
    /// look while a member is still being served.
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
            let tree = self.levels[level].tree(class);
            if tree.active.is_empty() {
                continue;
            }
            let time = later(tree.time, self.least_start(&tree.active));
            if is_later(time, tree.time) && (self.levels[level].current == NIL || expiring) {
                self.tree_mut(level, class).time = time;
                self.prune(level, class);
            }
            return self.pick(&tree.active, time);
        }
        NIL
    }

    /// An entity has nothing left to be served; if that is so of its whole level, so has the group, and so upwards. It stays known as long
    /// as it is ahead, if it is to be kept.
    pub fn deactivate(&mut self, entity: Slot, keep: bool, expiring: bool, tick: u64) {
        let (mut entity, mut keep) = (entity, keep);
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
        let at = self.entities[entity];
        let served = virtual_distance(at.service, u64::from(at.weight));
        self.entities[entity].finish = at.start.wrapping_add(served);
        if self.levels[at.level].current == entity {
            self.levels[at.level].current = NIL;
        } else {
            self.entities[entity].service = 0;
        }
        match at.place {
            Place::Active => self.leave_active(entity),
            Place::Idle => self.leave_idle(entity),
            Place::Neither => {}
        }
        if keep && is_later(self.entities[entity].finish, self.time_of(entity)) {
            self.enter_idle(entity);
        } else {
            self.forget(entity);
        }
    }

    /// Puts the next queue into service and answers it, or [`NIL`]. A group of which others may be served next stays in its tree meanwhile.
    pub fn pick_next(&mut self, tick: u64) -> Slot {
        let mut level = ROOT_LEVEL;
        let queue = loop {
            let next = self.levels[level].next;
            if next == NIL {
                debug_assert!(level == ROOT_LEVEL, "a group that is next has a member that is next");
                break NIL;
            }
            self.levels[level].current = next;
            let inner = self.entities[next].inner;
            if self.entities[next].place == Place::Active && (inner == NIL || self.levels[inner].active == 1) {
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

    /// A queue leaves service, and the groups that it is in.
    pub fn clear_current(&mut self, queue: Slot) {
        let mut entity = queue;
        while entity != NIL {
            let level = self.entities[entity].level;
            self.levels[level].current = NIL;
            entity = self.levels[level].group;
        }
    }

    /// Puts an entity that no tree knows under another level.
    pub fn set_parent(&mut self, entity: Slot, level: Slot) {
        debug_assert!(!self.entities[entity].known, "it is under another level still");
        self.entities[entity].level = level;
    }

    /// A queue has nothing queued and nothing in the device: neither have its groups, up to the first that has others; and its weight is
    /// no longer compared.
    pub fn leave_all(&mut self, queue: Slot) {
        let mut group = self.level_of(queue).group;
        while group != NIL && !self.has_next_or_current(self.entities[group].inner) {
            if core::mem::take(&mut self.entities[group].counted) {
                self.groups_pending = self.groups_pending.saturating_sub(1);
            }
            group = self.level_of(group).group;
        }
        self.leave_weights(queue);
    }

    /// Whether a level has a member that is next or in service.
    pub fn has_next_or_current(&self, level: Slot) -> bool {
        self.levels[level].next != NIL || self.levels[level].current != NIL
    }

    fn level_of(&self, entity: Slot) -> &Level {
        &self.levels[self.entities[entity].level]
    }
}
