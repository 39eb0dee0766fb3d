//! Requests of one kind in two orders at once: by sector, and by arrival with a deadline each.

use crate::collections::{List, NIL, Slot, Tree};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::request::Arrivals;

/// A set of requests, sorted by sector and queued by arrival.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SortedFifo {
    tree: Tree,
    fifo: List<Arrivals>,
}

/// Moves the request out that begins at the same sector as one that was just sorted into a tree, if there is one.
///
/// Before Linux 3.x an order by sector had room for one request a sector: the older one was dispatched, whoever's turn it was, *before* the
/// newer one was sorted in. So the newer one stands aside while `move_out` looks at the older one's neighbours.
#[inline]
pub(crate) fn move_alias<H: HostTypes, E>(
    elevator: &mut E,
    core: &mut QueueCore<H>,
    request: Slot,
    tree: impl Fn(&mut E) -> &mut Tree,
    move_out: impl FnOnce(&mut E, &mut QueueCore<H>, Slot),
) {
    let (sector, alias) = (core.tables.nodes[request].key(), core.tables.nodes[request].prev());
    if alias == NIL || core.tables.nodes[alias].key() != sector {
        return;
    }
    tree(elevator).remove(&mut core.tables.nodes, request);
    move_out(elevator, core, alias);
    tree(elevator).insert(&mut core.tables.nodes, request, sector);
    debug_assert_ne!(core.tables.nodes[request].prev(), alias);
}

/// Gives `request` the earlier of its own deadline and that of `absorbed`, which joins it. Its place in order of arrival stays.
pub(crate) fn take_older_deadline<H: HostTypes>(core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
    let older = core.tables.arrivals[absorbed].deadline;
    let deadline = &mut core.tables.arrivals[request].deadline;
    *deadline = older.min(*deadline);
}

impl SortedFifo {
    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// The order by sector.
    #[inline]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The same, to be changed.
    #[inline]
    pub fn tree_mut(&mut self) -> &mut Tree {
        &mut self.tree
    }

    /// Takes a request in. Of several that begin at one sector, the new one comes last.
    #[inline]
    pub fn insert<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot, deadline: u64) {
        let sector = core.tables.requests[request].sector;
        self.tree.insert(&mut core.tables.nodes, request, sector);
        core.tables.arrivals[request].deadline = deadline;
        self.fifo.push_back(&mut core.tables.arrivals, request);
    }

    /// Takes a request out.
    #[inline]
    pub fn remove<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.tree.remove(&mut core.tables.nodes, request);
        self.fifo.remove(&mut core.tables.arrivals, request);
    }

    /// Sorts a request anew, whose first sector has changed; its place in order of arrival stays.
    pub fn resort<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.tree.remove(&mut core.tables.nodes, request);
        let sector = core.tables.requests[request].sector;
        self.tree.insert(&mut core.tables.nodes, request, sector);
    }

    /// Gives `request` the deadline and the place of `absorbed`, if those are the earlier; answers whether they were.
    pub fn inherit<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) -> bool {
        let deadline = core.tables.arrivals[absorbed].deadline;
        if deadline >= core.tables.arrivals[request].deadline {
            return false;
        }
        core.tables.arrivals[request].deadline = deadline;
        self.fifo.remove(&mut core.tables.arrivals, request);
        self.fifo.insert_after(&mut core.tables.arrivals, absorbed, request);
        true
    }

    /// A request that begins at `sector`, or [`NIL`]: of several the one that a search from the tree's root meets first, as in the kernel,
    /// whose trees have the same shape.
    #[inline]
    pub fn at_sector<H: HostTypes>(&self, core: &QueueCore<H>, sector: u64) -> Slot {
        self.tree.find_topmost(&core.tables.nodes, sector)
    }

    /// A request begins at another sector than before, but still between the same others.
    pub fn rekey<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let sector = core.tables.requests[request].sector;
        core.tables.nodes[request].set_key(sector);
    }

    /// The request of the lowest sector, or [`NIL`].
    #[inline]
    pub fn lowest(&self) -> Slot {
        self.tree.first()
    }

    /// The oldest request, or [`NIL`].
    #[inline]
    pub fn oldest(&self) -> Slot {
        self.fifo.head()
    }

    /// Whether the oldest request should have been started before `now`.
    #[inline]
    pub fn is_overdue<H: HostTypes>(&self, core: &QueueCore<H>, now: u64) -> bool {
        let oldest = self.oldest();
        oldest != NIL && now > core.tables.arrivals[oldest].deadline
    }
}
