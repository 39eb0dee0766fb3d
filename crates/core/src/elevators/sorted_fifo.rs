//! Requests of one kind in two orders at once: by sector, and by arrival with a deadline each.

use crate::parts::{List, NIL, Slot, Tree};
use crate::queue::block::Block;
use crate::request::Arrivals;
use crate::storage::Home;

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
pub(crate) fn move_alias<H: Home, E>(
    elevator: &mut E,
    block: &mut Block<H>,
    request: Slot,
    tree: impl Fn(&mut E) -> &mut Tree,
    move_out: impl FnOnce(&mut E, &mut Block<H>, Slot),
) {
    let (sector, alias) = (block.table.nodes[request].key(), block.table.nodes[request].prev());
    if alias == NIL || block.table.nodes[alias].key() != sector {
        return;
    }
    tree(elevator).remove(&mut block.table.nodes, request);
    move_out(elevator, block, alias);
    tree(elevator).insert(&mut block.table.nodes, request, sector);
    debug_assert_ne!(block.table.nodes[request].prev(), alias);
}

/// Gives `request` the earlier of its own deadline and that of `absorbed`, which joins it. Its place in order of arrival stays.
pub(crate) fn take_older_deadline<H: Home>(block: &mut Block<H>, request: Slot, absorbed: Slot) {
    let older = block.table.arrivals[absorbed].deadline;
    let deadline = &mut block.table.arrivals[request].deadline;
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
    pub fn insert<H: Home>(&mut self, block: &mut Block<H>, request: Slot, deadline: u64) {
        let sector = block.table.requests[request].sector;
        self.tree.insert(&mut block.table.nodes, request, sector);
        block.table.arrivals[request].deadline = deadline;
        self.fifo.push_back(&mut block.table.arrivals, request);
    }

    /// Takes a request out.
    #[inline]
    pub fn remove<H: Home>(&mut self, block: &mut Block<H>, request: Slot) {
        self.tree.remove(&mut block.table.nodes, request);
        self.fifo.remove(&mut block.table.arrivals, request);
    }

    /// Sorts a request anew, whose first sector has changed; its place in order of arrival stays.
    pub fn resort<H: Home>(&mut self, block: &mut Block<H>, request: Slot) {
        self.tree.remove(&mut block.table.nodes, request);
        let sector = block.table.requests[request].sector;
        self.tree.insert(&mut block.table.nodes, request, sector);
    }

    /// Gives `request` the deadline and the place of `absorbed`, if those are the earlier; answers whether they were.
    pub fn inherit<H: Home>(&mut self, block: &mut Block<H>, request: Slot, absorbed: Slot) -> bool {
        let deadline = block.table.arrivals[absorbed].deadline;
        if deadline >= block.table.arrivals[request].deadline {
            return false;
        }
        block.table.arrivals[request].deadline = deadline;
        self.fifo.remove(&mut block.table.arrivals, request);
        self.fifo.insert_after(&mut block.table.arrivals, absorbed, request);
        true
    }

    /// A request that begins at `sector`, or [`NIL`]: of several the one that a search from the tree's root meets first, as in the kernel,
    /// whose trees have the same shape.
    #[inline]
    pub fn at_sector<H: Home>(&self, block: &Block<H>, sector: u64) -> Slot {
        self.tree.find_topmost(&block.table.nodes, sector)
    }

    /// A request begins at another sector than before, but still between the same others.
    pub fn rekey<H: Home>(&mut self, block: &mut Block<H>, request: Slot) {
        let sector = block.table.requests[request].sector;
        block.table.nodes[request].set_key(sector);
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
    pub fn is_overdue<H: Home>(&self, block: &Block<H>, now: u64) -> bool {
        let oldest = self.oldest();
        oldest != NIL && now > block.table.arrivals[oldest].deadline
    }
}
