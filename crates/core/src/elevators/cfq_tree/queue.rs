//! The queue of one process's sync requests, or of all async ones of one priority; and the tree that queues with requests wait in.

use crate::collections::{List, NIL, Node, Slot, Tree};
use crate::elevator::tables::{HostTypes, TableOf};
use crate::priority::{Class, Priority};
use crate::request::Arrivals;

/// A queue of CFQ's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// The process, or `None` for async requests, which processes share.
    pub(super) pid: Option<u32>,
    pub(super) priority: Priority,
    pub(super) tree: Tree,
    /// The request to serve next, if none is overdue.
    pub(super) next: Slot,
    pub(super) fifo: List<Arrivals>,
    /// Whether it waits in the service tree: it does as long as it has requests, and while it has the disk.
    pub(super) filed: bool,
    /// The time that it is filed under within its class, in ticks.
    pub(super) key: u64,
    /// The tick at which its slice is over, once the slice has begun.
    pub(super) slice_end: u64,
    /// What its last slice left, or took too much (below 0), in ticks; it counts when it is filed next.
    pub(super) slice_left: i64,
    /// Requests on the dispatch list or in the device.
    pub(super) dispatched: u32,
    /// Metadata requests that it holds.
    pub(super) metadata: u32,
    /// The context and requests that point here; async queues count one more and stay for good.
    pub(super) references: u32,
    /// It has the disk, but no request of it has completed since: the slice has not begun.
    pub(super) slice_new: bool,
    pub(super) must_dispatch: bool,
    pub(super) wait_request: bool,
    pub(super) must_alloc_slice: bool,
    /// Whether its oldest request was looked at in this slice.
    pub(super) fifo_used: bool,
    pub(super) idle_window: bool,
    pub(super) priority_changed: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            pid: None,
            priority: Priority::UNSET,
            tree: Tree::default(),
            next: NIL,
            fifo: List::default(),
            filed: false,
            key: 0,
            slice_end: 0,
            slice_left: 0,
            dispatched: 0,
            metadata: 0,
            references: 0,
            slice_new: false,
            must_dispatch: false,
            wait_request: false,
            must_alloc_slice: false,
            fifo_used: false,
            idle_window: false,
            priority_changed: false,
        }
    }
}

impl Queue {
    /// For one process's sync requests.
    pub(super) fn is_sync(&self) -> bool {
        self.pid.is_some()
    }

    pub(super) fn is_idle_class(&self) -> bool {
        self.priority.class() == Class::Idle
    }

    pub(super) fn level(&self) -> u8 {
        self.priority.level()
    }

    /// Whether its slice has begun and is over.
    pub(super) fn slice_is_used(&self, now: u64) -> bool {
        !self.slice_new && now >= self.slice_end
    }

    pub(super) fn is_real_time(&self) -> bool {
        self.priority.class() == Class::RealTime
    }

    /// What events call it.
    pub(super) fn name(&self) -> u32 {
        self.pid.unwrap_or(0)
    }

    /// What it is sorted by: real time before best effort before idle, then the time of its key (62 bits of ticks are enough).
    fn rank(&self) -> u64 {
        let class = match self.priority.class() {
            Class::RealTime => 0u64,
            Class::Idle => 2,
            _ => 1,
        };
        (class << 62) | self.key.min((1 << 62) - 1)
    }
}

/// The queues with requests, in the order of their turns; of equals the one that came first.
pub(super) struct ServiceTree<H: HostTypes> {
    nodes: TableOf<H, Node>,
    tree: Tree,
    /// How many there are.
    pub count: u32,
}

impl<H: HostTypes> ServiceTree<H> {
    pub fn new(nodes: TableOf<H, Node>) -> Self {
        ServiceTree { nodes, tree: Tree::default(), count: 0 }
    }

    pub fn into_nodes(self) -> H::Slots<Node> {
        self.nodes.into_slots()
    }

    /// For how many queues there is room.
    pub fn capacity(&self) -> u32 {
        self.nodes.capacity()
    }

    /// The queue whose turn is next, or [`NIL`].
    pub fn first(&self) -> Slot {
        self.tree.first()
    }

    /// Files a queue, or moves it; under the key that it has already it keeps its place among equals.
    pub fn file(&mut self, queues: &mut TableOf<H, Queue>, slot: Slot, key: u64) {
        debug_assert!(slot < self.nodes.capacity());
        let queue = &mut queues[slot];
        if queue.filed {
            if queue.key == key {
                return;
            }
            self.tree.remove(&mut self.nodes, slot);
        }
        queue.filed = true;
        queue.key = key;
        self.tree.insert(&mut self.nodes, slot, queue.rank());
    }

    /// A queue's class has changed. It keeps its place, but what is filed from now on is compared with what it is now.
    pub fn class_changed(&mut self, queues: &TableOf<H, Queue>, slot: Slot) {
        if queues[slot].filed {
            self.nodes[slot].set_key(queues[slot].rank());
        }
    }

    /// Takes a queue out.
    pub fn unfile(&mut self, queues: &mut TableOf<H, Queue>, slot: Slot) {
        if core::mem::take(&mut queues[slot].filed) {
            self.tree.remove(&mut self.nodes, slot);
            self.count = self.count.saturating_sub(1);
        }
    }
}
