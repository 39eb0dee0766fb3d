//! The lists that queues with requests are filed on, and which level's turn it is.
//!
//! A best-effort queue waits on the list of its level; whole lists move to the *current* one, which is served from its head. The
//! kernel files a queue by a walk from the list's tail, past all that were served no earlier than it: a tree of the
//! list's places, each subtree with its least time of service, gives the same place in O(log N).

use super::process_queue::ProcessQueue;
use crate::parts::tree::Least;
use crate::parts::{NIL, Node, Slot, Tree};
use crate::priority::{Class, LEVELS};
use crate::queue::block::Of;
use crate::storage::Home;

const LEVEL_COUNT: usize = LEVELS as usize;
const LISTS: usize = LEVEL_COUNT + 3;
const BUSY: u8 = LEVELS + 1;
const IDLE: u8 = LEVELS + 2;

/// The lists. A list moves as a whole by giving its number to another role.
pub(super) struct Filing<H: Home> {
    nodes: Of<H, Node<Least>>,
    lists: [Tree; LISTS],
    /// The number of each level's list.
    level_lists: [u8; LEVEL_COUNT],
    /// The number of the current list.
    current: u8,
    /// The rotation over levels: 0; 0, 1; 0, 1, 2; ... `level` is the next, `last_level` the last of this round.
    level: u8,
    last_level: u8,
}

impl<H: Home> Filing<H> {
    pub fn new(nodes: Of<H, Node<Least>>) -> Self {
        Filing {
            nodes,
            lists: [Tree::default(); LISTS],
            level_lists: [0, 1, 2, 3, 4, 5, 6, 7],
            current: LEVELS,
            level: 0,
            last_level: 0,
        }
    }

    pub fn into_nodes(self) -> H::Slots<Node<Least>> {
        self.nodes.into_slots()
    }

    /// The first of the current list, or [`NIL`].
    pub fn first_current(&self) -> Slot {
        self.list(self.current).first()
    }

    /// The first of those that have requests under way, or [`NIL`].
    pub fn first_busy(&self) -> Slot {
        self.list(BUSY).first()
    }

    /// The first of the idle class, or [`NIL`].
    pub fn first_idle(&self) -> Slot {
        self.list(IDLE).first()
    }

    /// The queue after this one on its list, or [`NIL`].
    pub fn next(&self, slot: Slot) -> Slot {
        self.nodes[slot].next()
    }

    /// The first queue of all lists, levels first, then busy, current, idle: the order of a forced drain.
    pub fn first_of_all(&self) -> Slot {
        let levels = self.level_lists.iter().copied();
        let order = levels.chain([BUSY, self.current, IDLE]);
        order.map(|list| self.list(list).first()).find(|&first| first != NIL).unwrap_or(NIL)
    }

    /// Files a queue (anew) where its class, level and last service say; a preempted one goes near the end instead.
    pub fn refile(&mut self, queues: &mut Of<H, ProcessQueue>, slot: Slot, preempted: bool) {
        self.unfile(queues, slot);
        let queue = &mut queues[slot];
        let number = match queue.priority.class() {
            Class::RealTime => self.current,
            Class::Idle => IDLE,
            _ if queue.dispatched() > 0 => BUSY,
            _ => self.level_lists.get(usize::from(queue.level())).copied().unwrap_or(BUSY),
        };
        queue.filed = Some(number);
        let service_last = queue.service_last;
        let list = self.list(number);
        let before = if preempted {
            // The kernel means the front, but inserts right before the last.
            if list.last() == NIL { NIL } else { self.nodes[list.last()].prev() }
        } else if number == BUSY {
            list.last()
        } else {
            // Behind the last one that was never served or was served earlier; a new one only behind new ones.
            list.last_below(&self.nodes, service_last.max(1))
        };
        if let Some(list) = self.lists.get_mut(usize::from(number)) {
            list.insert_after(&mut self.nodes, before, slot, service_last);
        }
    }

    /// Takes a queue off its list.
    pub fn unfile(&mut self, queues: &mut Of<H, ProcessQueue>, slot: Slot) {
        if let Some(number) = queues[slot].filed.take()
            && let Some(list) = self.lists.get_mut(usize::from(number))
        {
            list.remove(&mut self.nodes, slot);
        }
    }

    /// Makes the next level's list the current one, which must be empty; answers whether any level has queues.
    pub fn take_next_level(&mut self) -> bool {
        debug_assert!(self.list(self.current).is_empty());
        let Some(level) = self.find_level() else { return false };
        if let Some(number) = self.level_lists.get_mut(usize::from(level)) {
            core::mem::swap(number, &mut self.current);
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
        let mut wrapped = false;
        loop {
            for level in self.level..=self.last_level {
                let number = self.level_lists.get(usize::from(level)).copied().unwrap_or(BUSY);
                if !self.list(number).is_empty() {
                    return Some(level);
                }
            }
            self.level = 0;
            self.last_level = self.last_level.saturating_add(1);
            if self.last_level >= LEVELS {
                self.last_level = 0;
                if wrapped {
                    return None;
                }
                wrapped = true;
            }
        }
    }

    fn list(&self, number: u8) -> Tree {
        self.lists.get(usize::from(number)).copied().unwrap_or_default()
    }
}
