//! The driver's list as elevators kept it before Linux 2.6.14: what is decided, in an order that is the elevator's own, given to
//! the block layer one by one.
//!
//! Each form of CFQ has a rule of its own for where a request goes, told as a walk from the list's tail to the last entry of some kind. A
//! tree of the list's places, each subtree with the range of its first sectors, gives the same place in O(log N).

use crate::collections::tree::Range;
use crate::collections::{NIL, Node, Slot, Tree};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableOf};

/// The list. Its entries lie at the requests' slots.
///
/// It is filled all at once and then given away from its head, so requests that were given stay in the tree, as *stale* ones before the
/// head, until another one comes; if none does before the list is empty, the tree is forgotten as a whole.
pub(crate) struct DriverList<H: HostTypes> {
    nodes: TableOf<H, Node<Range>>,
    places: Tree,
    /// The first request, or [`NIL`]. Before it in the tree are stale ones only.
    head: Slot,
}

impl<H: HostTypes> DriverList<H> {
    pub fn new(nodes: TableOf<H, Node<Range>>) -> Self {
        DriverList { nodes, places: Tree::default(), head: NIL }
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
        self.places.last()
    }

    /// The request before this one, or [`NIL`].
    pub fn before(&self, request: Slot) -> Slot {
        if request == self.head { NIL } else { self.nodes[request].prev() }
    }

    /// The last request of which `holds` says so, or [`NIL`]; it is asked about ranges of first sectors, and must hold for a range of
    /// several requests just if it does for one of them.
    pub fn last_that(&mut self, holds: impl Fn(Range) -> bool) -> Slot {
        self.drop_stale();
        self.places.last_that(&self.nodes, holds)
    }

    /// Puts a request that has left its queue right after another, or first; it takes no more bios.
    pub fn insert_after(&mut self, core: &mut QueueCore<H>, before: Slot, request: Slot) {
        self.drop_stale();
        core.end_merging(request);
        let sector = core.tables.requests[request].sector;
        self.places.insert_after(&mut self.nodes, before, request, sector);
        self.head = self.places.first();
    }

    /// Puts a request last.
    pub fn append(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.insert_after(core, self.places.last(), request);
    }

    /// Gives the first request to the block layer; answers how many that were: 1 or 0.
    pub fn give_first(&mut self, core: &mut QueueCore<H>) -> u32 {
        let request = self.head;
        if request == NIL {
            return 0;
        }
        self.head = self.nodes[request].next();
        if self.head == NIL {
            self.places = Tree::default();
        }
        core.dispatch_append(request);
        1
    }

    /// Takes out of the tree what was given: each request once, so that it costs no more than if that had been done then.
    fn drop_stale(&mut self) {
        while self.places.first() != self.head {
            let stale = self.places.first();
            self.places.remove(&mut self.nodes, stale);
        }
    }

    /// Gives all requests to the block layer.
    pub fn give_all(&mut self, core: &mut QueueCore<H>) -> u32 {
        let mut given = 0u32;
        while self.give_first(core) > 0 {
            given = given.saturating_add(1);
        }
        given
    }
}
