//! The queue of one context's sync requests, or of all async requests of one priority; and the
//! service tree.

use crate::collections::{Count, List, NIL, Node, Slot, Tree};
use crate::elevator::tables::{HostTypes, TableOf};
use crate::priority::{Class, Priority};
use crate::request::Arrivals;

/// A queue of CFQ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// The process id, or `None` for async requests, which contexts share.
    pub(super) pid: Option<u32>,
    pub(super) priority: Priority,
    pub(super) tree: Tree,
    /// The request to serve next, if none is overdue.
    pub(super) next: Slot,
    pub(super) fifo: List<Arrivals>,
    /// Whether it is in the service tree: as long as it has requests, and while it is active.
    pub(super) filed: bool,
    /// Its key within its class, in ticks.
    pub(super) key: u64,
    /// The end of its slice in ticks, once the slice has begun.
    pub(super) slice_end: u64,
    /// The rest of its last slice in ticks, negative if it overran; applied when it is filed next.
    pub(super) slice_left: i64,
    /// Requests on the dispatch list or in the device.
    pub(super) dispatched: u32,
    /// The number of queued metadata requests.
    pub(super) metadata: u32,
    /// References: its context and requests. Async queues have one more and stay permanently.
    pub(super) references: u32,
    /// It is active but no request of it has completed since: the slice has not begun.
    pub(super) slice_new: bool,
    /// The disk is kept idle for its next request.
    pub(super) wait_request: bool,
    /// A request was granted from a full pool in this slice, to end the idling for this queue.
    pub(super) must_alloc_slice: bool,
    /// Whether its oldest request was checked in this slice.
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
            wait_request: false,
            must_alloc_slice: false,
            fifo_used: false,
            idle_window: false,
            priority_changed: false,
        }
    }
}

impl Queue {
    /// Returns true for a queue of one context's sync requests.
    pub(super) fn is_sync(&self) -> bool {
        self.pid.is_some()
    }

    pub(super) fn is_idle_class(&self) -> bool {
        self.priority.class() == Class::Idle
    }

    pub(super) fn level(&self) -> u8 {
        self.priority.level()
    }

    /// Returns true if its slice has begun and is over.
    pub(super) fn slice_is_used(&self, now: u64) -> bool {
        !self.slice_new && now >= self.slice_end
    }

    pub(super) fn is_real_time(&self) -> bool {
        self.priority.class() == Class::RealTime
    }

    /// The name in events: the process id, or 0.
    pub(super) fn name(&self) -> u32 {
        self.pid.unwrap_or(0)
    }

    /// The sort key: real time before best effort before idle, then the key (62 bits of ticks are
    /// enough).
    fn rank(&self) -> u64 {
        let class = match self.priority.class() {
            Class::RealTime => 0u64,
            Class::Idle => 2,
            _ => 1,
        };
        (class << 62) | self.key.min((1 << 62) - 1)
    }
}

/// The queues with requests in the order of their turns; among equal keys in order of insertion.
pub(super) struct ServiceTree<H: HostTypes> {
    nodes: TableOf<H, Node>,
    tree: Tree,
    /// The number of queues.
    pub count: u32,
}

impl<H: HostTypes> ServiceTree<H> {
    pub fn new(nodes: TableOf<H, Node>) -> Self {
        ServiceTree { nodes, tree: Tree::default(), count: 0 }
    }

    pub fn into_nodes(self) -> H::Slots<Node> {
        self.nodes.into_slots()
    }

    /// The capacity in queues.
    pub fn capacity(&self) -> u32 {
        self.nodes.capacity()
    }

    /// The queue whose turn is next, or [`NIL`].
    pub fn first(&self) -> Slot {
        self.tree.first()
    }

    /// Inserts a queue, or moves it. With an unchanged key it keeps its position among equals.
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

    /// Applies a changed class of a queue without moving it. Later insertions are compared with the
    /// new class.
    pub fn class_changed(&mut self, queues: &TableOf<H, Queue>, slot: Slot) {
        if queues[slot].filed {
            self.nodes[slot].set_key(queues[slot].rank());
        }
    }

    /// Removes a queue.
    pub fn unfile(&mut self, queues: &mut TableOf<H, Queue>, slot: Slot) {
        if core::mem::take(&mut queues[slot].filed) {
            self.tree.remove(&mut self.nodes, slot);
            self.count.decrement();
        }
    }
}
