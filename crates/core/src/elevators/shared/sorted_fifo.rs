//! A set of requests in two orders: by sector, and by arrival with a deadline each.

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

/// Dispatches the request that begins at the same sector as one just sorted into a tree, if there
/// is one.
///
/// Before Linux 3.x a sorted tree had room for one request per sector: the older one was dispatched
/// *before* the newer one was inserted, regardless of whose turn it was. The newer one is therefore
/// taken out of the tree while `move_out` examines the neighbours of the older one.
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

/// Gives `request` the earlier of its own deadline and that of `absorbed`, which is merged into it.
/// Its position in order of arrival stays.
pub(crate) fn take_older_deadline<H: HostTypes>(core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
    let older = core.tables.arrivals[absorbed].deadline;
    let deadline = &mut core.tables.arrivals[request].deadline;
    *deadline = older.min(*deadline);
}

impl SortedFifo {
    /// Returns true if the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// The tree of requests by sector.
    #[inline]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The tree of requests by sector, mutable.
    #[inline]
    pub fn tree_mut(&mut self) -> &mut Tree {
        &mut self.tree
    }

    /// Adds a request. Of several that begin at one sector, the newest is last.
    #[inline]
    pub fn insert<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot, deadline: u64) {
        let sector = core.tables.requests[request].sector;
        self.tree.insert(&mut core.tables.nodes, request, sector);
        core.tables.arrivals[request].deadline = deadline;
        self.fifo.push_back(&mut core.tables.arrivals, request);
    }

    /// Removes a request.
    #[inline]
    pub fn remove<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.tree.remove(&mut core.tables.nodes, request);
        self.fifo.remove(&mut core.tables.arrivals, request);
    }

    /// Sorts a request again after its first sector has changed. Its position in order of arrival
    /// stays.
    pub fn resort<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.tree.remove(&mut core.tables.nodes, request);
        let sector = core.tables.requests[request].sector;
        self.tree.insert(&mut core.tables.nodes, request, sector);
    }

    /// Gives `request` the deadline and position of `absorbed` if its deadline is earlier. Returns
    /// true if it was.
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

    /// A request that begins at `sector`, or [`NIL`]. Of several, the one that a search from the
    /// tree's root meets first, as in the kernel, whose trees have the same shape.
    #[inline]
    pub fn at_sector<H: HostTypes>(&self, core: &QueueCore<H>, sector: u64) -> Slot {
        self.tree.find_topmost(&core.tables.nodes, sector)
    }

    /// Updates the key of a request whose first sector has changed but whose neighbours are the
    /// same.
    pub fn rekey<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let sector = core.tables.requests[request].sector;
        core.tables.nodes[request].set_key(sector);
    }

    /// The request with the lowest sector, or [`NIL`].
    #[inline]
    pub fn lowest(&self) -> Slot {
        self.tree.first()
    }

    /// The oldest request, or [`NIL`].
    #[inline]
    pub fn oldest(&self) -> Slot {
        self.fifo.head()
    }

    /// Returns true if the deadline of the oldest request is before `now`.
    #[inline]
    pub fn is_overdue<H: HostTypes>(&self, core: &QueueCore<H>, now: u64) -> bool {
        let oldest = self.oldest();
        oldest != NIL && now > core.tables.arrivals[oldest].deadline
    }
}
