//! The scheduler of the first form (2008, built without groups): one level; the next queue is
//! searched when it is needed.

use super::{CLASSES, Engine, ROOT_LEVEL, TreePart, is_later, virtual_distance};
use crate::collections::{NIL, Slot};
use crate::elevator::tables::HostTypes;

impl<H: HostTypes> Engine<H> {
    /// Activates a queue that had no requests.
    pub fn flat_activate(&mut self, queue: Slot) {
        self.activate(queue, false);
    }

    /// Requeues a queue with requests that leaves service, or that waits with a new budget, behind
    /// others of the same finish.
    pub fn flat_requeue(&mut self, queue: Slot) {
        self.requeue(queue);
        self.flat_leave_service(queue);
    }

    /// Deactivates a queue without requests. With `keep` it stays known as long as it is ahead of
    /// the tree's time.
    pub fn flat_deactivate(&mut self, queue: Slot, keep: bool) {
        let at = self.entities[queue];
        if !at.known {
            return;
        }
        if self.levels[at.level].current == queue {
            let served = virtual_distance(at.service, u64::from(at.weight));
            self.entities[queue].finish = at.start.wrapping_add(served);
            self.flat_leave_service(queue);
        }
        match at.part {
            TreePart::Active => self.leave_active(queue),
            TreePart::Idle => self.leave_idle(queue),
            TreePart::Neither => {}
        }
        if keep && is_later(self.entities[queue].finish, self.time_of(queue)) {
            self.enter_idle(queue);
        } else {
            self.forget(queue);
        }
    }

    /// Puts the next queue into service and returns it, or [`NIL`]. If no queue is eligible, the
    /// time jumps to the least start.
    pub fn flat_select(&mut self) -> Slot {
        debug_assert!(self.levels[ROOT_LEVEL].current == NIL);
        for class in 0..CLASSES as u8 {
            let tree = *self.levels[ROOT_LEVEL].tree(class);
            if tree.active.is_empty() {
                continue;
            }
            let least = self.least_start(&tree.active);
            if is_later(least, tree.time) {
                self.tree_mut(ROOT_LEVEL, class).time = least;
                self.prune(ROOT_LEVEL, class);
            }
            let queue = self.pick(&tree.active, self.levels[ROOT_LEVEL].tree(class).time);
            self.leave_active(queue);
            self.levels[ROOT_LEVEL].current = queue;
            self.entities[queue].service = 0;
            return queue;
        }
        NIL
    }

    fn flat_leave_service(&mut self, queue: Slot) {
        if self.levels[ROOT_LEVEL].current == queue {
            self.levels[ROOT_LEVEL].current = NIL;
        }
    }
}
