//! The driver's list of elevators before Linux 2.6.14: dispatched requests in an order defined by
//! the elevator, passed to the block layer one by one.
//!
//! Each form of CFQ has its own insertion rule, defined as a walk from the list's tail to the last
//! entry with some property. A tree of the list's positions, with the range of first sectors of
//! each subtree, finds the same position in O(log N).

use crate::collections::{Count, tree::Range};
use crate::collections::{NIL, Node, Slot, Tree};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableOf};
use crate::request::Marks;

/// The list. Its entries are at the requests' slots.
///
/// The list is filled at once and then emptied from its head. Requests that were passed on stay in
/// the tree as *stale* entries before the head until the next insertion; when the list becomes
/// empty, the whole tree is dropped.
pub(crate) struct DriverList<H: HostTypes> {
    nodes: TableOf<H, Node<Range>>,
    order: Tree,
    /// The first request, or [`NIL`]. All entries before it in the tree are stale.
    head: Slot,
}

impl<H: HostTypes> DriverList<H> {
    pub fn new(nodes: TableOf<H, Node<Range>>) -> Self {
        DriverList { nodes, order: Tree::default(), head: NIL }
    }

    pub fn into_nodes(self) -> H::Slots<Node<Range>> {
        self.nodes.into_slots()
    }

    pub fn is_empty(&self) -> bool {
        self.head == NIL
    }

    /// The first request, or [`NIL`].
    pub fn first(&self) -> Slot {
        self.head
    }

    /// The last request, or [`NIL`].
    pub fn last(&self) -> Slot {
        self.order.last()
    }

    /// The request after this one, or the first for [`NIL`]; [`NIL`] at the end.
    pub fn after(&self, request: Slot) -> Slot {
        if request == NIL { self.head } else { self.nodes[request].next() }
    }

    /// The request before this one, or [`NIL`].
    pub fn before(&self, request: Slot) -> Slot {
        if request == self.head { NIL } else { self.nodes[request].prev() }
    }

    /// The last request for which `holds` returns true, or [`NIL`]. `holds` is called with ranges
    /// of first sectors. It must be true of a range of several requests exactly if it is true of
    /// one of them.
    pub fn last_matching(&mut self, holds: impl Fn(Range) -> bool) -> Slot {
        self.drop_stale();
        self.order.last_matching(&self.nodes, holds)
    }

    /// Inserts a request directly after another, or first, and excludes it from further merges. It
    /// has left its queue.
    pub fn insert_after(&mut self, core: &mut QueueCore<H>, before: Slot, request: Slot) {
        self.drop_stale();
        core.end_merging(request);
        core.tables.requests[request].marks.set(Marks::NO_MERGE);
        let sector = core.tables.requests[request].sector;
        self.order.insert_after(&mut self.nodes, before, request, sector);
        self.head = self.order.first();
    }

    /// Appends a request.
    pub fn append(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.insert_after(core, self.order.last(), request);
    }

    /// Passes the first request to the block layer. Returns the number of requests passed: 1 or 0.
    pub fn pass_first(&mut self, core: &mut QueueCore<H>) -> u32 {
        let request = self.head;
        if request == NIL {
            return 0;
        }
        self.head = self.nodes[request].next();
        if self.head == NIL {
            self.order = Tree::default();
        }
        core.dispatch_append(request);
        1
    }

    /// Removes stale entries from the tree. Each is removed once, so the total cost equals
    /// immediate removal.
    fn drop_stale(&mut self) {
        while self.order.first() != self.head {
            let stale = self.order.first();
            self.order.remove(&mut self.nodes, stale);
        }
    }

    /// Passes all requests to the block layer. Returns their number.
    pub fn pass_all(&mut self, core: &mut QueueCore<H>) -> u32 {
        let mut given = 0u32;
        while self.pass_first(core) > 0 {
            given.increment();
        }
        given
    }
}
