//! The queue of one process or group, and the order in which passes visit queues.

use crate::collections::{Count, Link, LinkOf, List, NIL, Node, Slot, Tree};
use crate::elevator::tables::{HostTypes, TableOf};
use crate::request::Arrivals;

/// The contexts that share a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// The contexts of the process with this id.
    Process(u32),
    /// The contexts of the group at this slot.
    Group(Slot),
}

impl Default for Key {
    fn default() -> Self {
        Key::Process(0)
    }
}

impl Key {
    /// The key of the hash chains.
    pub(super) fn hash(self) -> u64 {
        match self {
            Key::Process(pid) => u64::from(pid),
            Key::Group(group) => (1 << 32) | u64::from(group),
        }
    }

    /// Returns true if both are processes or both groups.
    pub(super) fn is_same_type(self, other: Key) -> bool {
        matches!((self, other), (Key::Process(_), Key::Process(_)) | (Key::Group(_), Key::Group(_)))
    }
}

/// A queue of CFQ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub(super) key: Key,
    pub(super) tree: Tree,
    /// The request nearest to the head.
    pub(super) next: Slot,
    /// Async and sync requests in order of arrival.
    pub(super) fifos: [List<Arrivals>; 2],
    /// The time at which a request last went first because of its age.
    pub(super) last_fifo_expire: u64,
    /// Whether passes visit it: it has requests.
    pub(super) filed: bool,
    /// The start of the second over which service counts; `None` before the first service.
    pub(super) service_start: Option<u64>,
    /// The service received: ticks, or requests on a device with its own queue.
    pub(super) service_used: u64,
    /// Requests on the driver's list or in the device.
    pub(super) in_flight: u32,
    /// Requests allocated: reads, writes.
    pub(super) allocated: [u32; 2],
    /// References: its contexts and requests.
    pub(super) references: u32,
    pub(super) by_key: Link,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            key: Key::default(),
            tree: Tree::default(),
            next: NIL,
            fifos: [List::default(); 2],
            last_fifo_expire: 0,
            filed: false,
            service_start: None,
            service_used: 0,
            in_flight: 0,
            allocated: [0; 2],
            references: 0,
            by_key: Link::default(),
        }
    }
}

impl Queue {
    /// The name in events: the process id, or 0 for a group's queue.
    pub(super) fn name(&self) -> u32 {
        match self.key {
            Key::Process(pid) => pid,
            Key::Group(_) => 0,
        }
    }

    /// Returns true if its second of service is over.
    pub(super) fn period_is_over(&self, now: u64, period: u64) -> bool {
        self.service_start.is_some_and(|start| now > start.saturating_add(period))
    }
}

/// The hash chains of queues by key. For a free entry, the link in the list of free entries.
#[derive(Debug)]
pub(super) struct ByKey;

impl LinkOf<Queue> for ByKey {
    fn link(queue: &Queue) -> &Link {
        &queue.by_key
    }
    fn link_mut(queue: &mut Queue) -> &mut Link {
        &mut queue.by_key
    }
}

/// The queues with requests, the least served first; among equals, the one inserted last.
pub(super) struct Turns<H: HostTypes> {
    nodes: TableOf<H, Node>,
    tree: Tree,
    /// The number of queues.
    pub count: u32,
}

impl<H: HostTypes> Turns<H> {
    pub fn new(nodes: TableOf<H, Node>) -> Self {
        Turns { nodes, tree: Tree::default(), count: 0 }
    }

    pub fn into_nodes(self) -> H::Slots<Node> {
        self.nodes.into_slots()
    }

    /// The capacity in queues.
    pub fn capacity(&self) -> u32 {
        self.nodes.capacity()
    }

    /// The queue that a pass visits first, or [`NIL`].
    pub fn first(&self) -> Slot {
        self.tree.first()
    }

    /// The next queue of a pass, or [`NIL`].
    pub fn next(&self, slot: Slot) -> Slot {
        self.nodes[slot].next()
    }

    /// Inserts a queue that has requests now.
    pub fn file(&mut self, queues: &mut TableOf<H, Queue>, slot: Slot) {
        debug_assert!(!queues[slot].filed);
        queues[slot].filed = true;
        self.count.increment();
        self.insert(queues, slot);
    }

    /// Removes a queue without requests.
    pub fn unfile(&mut self, queues: &mut TableOf<H, Queue>, slot: Slot) {
        if core::mem::take(&mut queues[slot].filed) {
            self.tree.remove(&mut self.nodes, slot);
            self.count.decrement();
        }
    }

    /// Applies changed service of a queue. It is moved only if it is out of order with its
    /// neighbours.
    pub fn service_changed(&mut self, queues: &TableOf<H, Queue>, slot: Slot) {
        let Queue { filed, service_used, .. } = queues[slot];
        if !filed {
            return;
        }
        let (before, after) = (self.nodes[slot].prev(), self.nodes[slot].next());
        let late = before != NIL && self.nodes[before].key() > service_used;
        let early = after != NIL && self.nodes[after].key() < service_used;
        if late || early {
            self.tree.remove(&mut self.nodes, slot);
            self.insert(queues, slot);
        } else {
            self.nodes[slot].set_key(service_used);
        }
    }

    fn insert(&mut self, queues: &TableOf<H, Queue>, slot: Slot) {
        let used = queues[slot].service_used;
        let before = match self.tree.first_not_below(&self.nodes, used) {
            NIL => self.tree.last(),
            after => self.nodes[after].prev(),
        };
        self.tree.insert_after(&mut self.nodes, before, slot, used);
    }
}
