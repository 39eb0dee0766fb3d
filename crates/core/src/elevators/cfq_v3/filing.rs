//! The lists of queues with requests, and the rotation over levels.
//!
//! A best-effort queue waits on the list of its level. Whole lists move to the *current* list,
//! which is served from its head. The kernel files a queue by a walk from the list's tail past all
//! queues that were not served earlier. A tree of the list's positions, with the least time of
//! service of each subtree, finds the same position in O(log N).

use super::queue::{Busy, Queue};
use crate::collections::{Count, tree::Least};
use crate::collections::{List, NIL, Node, Slot, Tree};
use crate::elevator::tables::{HostTypes, TableOf};
use crate::priority::{Class, LEVELS};

const LEVEL_COUNT: usize = LEVELS as usize;
/// The indices of the lists: one per level and the current one in changing roles, the idle class,
/// queues with in-flight requests.
const LISTS: usize = LEVEL_COUNT + 2;
const IDLE: u8 = LEVELS + 1;
const BUSY: u8 = LEVELS + 2;

/// The lists. A list moves as a whole by passing its index to another role.
pub(super) struct Filing<H: HostTypes> {
    nodes: TableOf<H, Node<Least>>,
    lists: [Tree; LISTS],
    busy: List<Busy>,
    /// The levels whose lists have queues, one bit each.
    waiting_levels: u8,
    /// The index of each level's list.
    level_lists: [u8; LEVEL_COUNT],
    /// The index of the current list.
    current: u8,
    /// The rotation over levels: 0; 0, 1; 0, 1, 2; ... `level` is the next, `last_level` the last
    /// of this round.
    level: u8,
    last_level: u8,
}

impl<H: HostTypes> Filing<H> {
    pub fn new(nodes: TableOf<H, Node<Least>>) -> Self {
        Filing {
            nodes,
            lists: [Tree::default(); LISTS],
            busy: List::default(),
            waiting_levels: 0,
            level_lists: [0, 1, 2, 3, 4, 5, 6, 7],
            current: LEVELS,
            level: 0,
            last_level: 0,
        }
    }

    pub fn into_nodes(self) -> H::Slots<Node<Least>> {
        self.nodes.into_slots()
    }

    /// The first queue of the current list, or [`NIL`].
    pub fn first_current(&self) -> Slot {
        self.list(self.current).first()
    }

    /// The first queue with in-flight requests, or [`NIL`].
    pub fn first_busy(&self) -> Slot {
        self.busy.head()
    }

    /// The first queue of the idle class, or [`NIL`].
    pub fn first_idle(&self) -> Slot {
        self.list(IDLE).first()
    }

    /// The queue after this one on its list, or [`NIL`].
    pub fn next(&self, slot: Slot) -> Slot {
        self.nodes[slot].next()
    }

    /// The first queue of all lists, levels first, then busy, current, idle: the order of a forced
    /// drain.
    pub fn first_of_all(&self) -> Slot {
        let levels = self.level_lists.iter().map(|&list| self.list(list).first());
        let rest = [self.busy.head(), self.first_current(), self.first_idle()];
        levels.chain(rest).find(|&first| first != NIL).unwrap_or(NIL)
    }

    /// Files a queue (again) by its class, level and last service; a preempted one goes near the
    /// end instead.
    pub fn refile(&mut self, queues: &mut TableOf<H, Queue>, slot: Slot, preempted: bool) {
        self.unfile(queues, slot);
        let queue = &mut queues[slot];
        let (service_last, level) = (queue.service_last, queue.level());
        let number = match queue.priority.class() {
            Class::RealTime => self.current,
            Class::Idle => IDLE,
            _ if queue.dispatched() > 0 => BUSY,
            _ => self.level_lists.get(usize::from(level)).copied().unwrap_or(IDLE),
        };
        queue.filed = Some(number);
        if number == BUSY {
            // A preempted queue goes before the last of any list, although the kernel intends the
            // front.
            let after = if preempted { self.busy.tail() } else { NIL };
            return self.busy.insert_before(queues, after, slot);
        }
        if number != IDLE && number != self.current {
            self.waiting_levels |= level_bit(level);
        }
        let Some(list) = self.lists.get_mut(usize::from(number)) else { return };
        let before = if preempted {
            if list.last() == NIL { NIL } else { self.nodes[list.last()].prev() }
        } else {
            // Behind the last one never served or served earlier; a new queue only behind new ones.
            list.last_below(&self.nodes, service_last.max(1))
        };
        list.insert_after(&mut self.nodes, before, slot, service_last);
    }

    /// Removes a queue from its list.
    pub fn unfile(&mut self, queues: &mut TableOf<H, Queue>, slot: Slot) {
        let Some(number) = queues[slot].filed.take() else { return };
        if number == BUSY {
            return self.busy.remove(queues, slot);
        }
        let Some(list) = self.lists.get_mut(usize::from(number)) else { return };
        list.remove(&mut self.nodes, slot);
        if list.is_empty() && number != IDLE && number != self.current {
            for level in 0..LEVELS {
                if self.level_lists.get(usize::from(level)) == Some(&number) {
                    self.waiting_levels &= !level_bit(level);
                }
            }
        }
    }

    /// Makes the next level's list the current one, which must be empty. Returns true if any level
    /// has queues.
    pub fn take_next_level(&mut self) -> bool {
        debug_assert!(self.list(self.current).is_empty());
        let Some(level) = self.find_level() else { return false };
        if let Some(number) = self.level_lists.get_mut(usize::from(level)) {
            core::mem::swap(number, &mut self.current);
            self.waiting_levels &= !level_bit(level);
        }
        self.level = level.saturating_add(1);
        if self.level > self.last_level {
            self.last_level = self.level;
            self.level = 0;
        }
        if self.last_level >= LEVELS {
            self.last_level = 0;
            self.level = 0;
        }
        true
    }

    fn find_level(&mut self) -> Option<u8> {
        if self.waiting_levels == 0 {
            // The rotation was completed twice without a result.
            (self.level, self.last_level) = (0, 0);
            return None;
        }
        loop {
            let up_to_last = level_bit(self.last_level) | level_bit(self.last_level).saturating_sub(1);
            let from_next = !level_bit(self.level).saturating_sub(1);
            let candidates = self.waiting_levels & up_to_last & from_next;
            if candidates != 0 {
                return Some(candidates.trailing_zeros() as u8);
            }
            self.level = 0;
            self.last_level.increment();
            if self.last_level >= LEVELS {
                self.last_level = 0;
            }
        }
    }

    fn list(&self, number: u8) -> Tree {
        self.lists.get(usize::from(number)).copied().unwrap_or_default()
    }
}

fn level_bit(level: u8) -> u8 {
    1u8.checked_shl(u32::from(level)).unwrap_or(0)
}
