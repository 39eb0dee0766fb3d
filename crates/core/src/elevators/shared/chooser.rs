//! The choice between two requests by their distance from the disk's head, as in CFQ, BFQ and the
//! anticipatory elevator.

use core::hint::select_unpredictable;

use crate::bio::Flags;
use crate::collections::{NIL, Slot, Tree};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;

/// The parameters of the choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chooser {
    /// The maximum distance behind the head of a candidate, in sectors.
    pub back_max: u64,
    /// The factor by which distances behind the head count more.
    pub back_penalty: u64,
    /// Whether a sync request precedes an async one, and a metadata request precedes data,
    /// regardless of distance (2.6.19 and later).
    pub marks_count: bool,
}

impl Chooser {
    /// Returns the request that is nearer to `head`; either may be [`NIL`].
    ///
    /// A request too far behind the head belongs to the next sweep: it loses against any request of
    /// the current sweep; of two such requests the lower wins. Of two equally near ones the higher
    /// wins; if all is equal, the first.
    #[inline]
    pub fn best<H: HostTypes>(&self, core: &QueueCore<H>, first: Slot, second: Slot, head: u64) -> Slot {
        if first == NIL || first == second {
            return second;
        }
        if second == NIL {
            return first;
        }
        let (mut a, mut b) = (core.tables.nodes[first].key(), core.tables.nodes[second].key());
        if self.marks_count {
            let (one, other) = (&core.tables.requests[first], &core.tables.requests[second]);
            if one.is_sync() != other.is_sync() {
                return if one.is_sync() { first } else { second };
            }
            let (meta, other_meta) = (one.flags.has(Flags::META), other.flags.has(Flags::META));
            if meta != other_meta {
                return if meta { first } else { second };
            }
            // A request with a front merge may not have been sorted again yet.
            (a, b) = (one.sector, other.sector);
        }
        // All comparisons are unpredictable: avoid branches.
        let ((x, ahead), (y, other_ahead)) = (self.cost(a, head), self.cost(b, head));
        let nearer = (x < y) | ((x == y) & (a >= b));
        let lower = !ahead & !other_ahead & (a <= b);
        let first_wins = (ahead & !other_ahead) | (ahead & other_ahead & nearer) | lower;
        select_unpredictable(first_wins, first, second)
    }

    /// Of the two neighbours of a request in its tree, returns the one nearer to `head`: its
    /// successor (the lowest request if it is the highest) or its predecessor. It becomes the next
    /// request when this one leaves.
    pub fn neighbour<H: HostTypes>(&self, core: &QueueCore<H>, tree: &Tree, request: Slot, head: u64) -> Slot {
        let node = &core.tables.nodes[request];
        let after = match node.next() {
            NIL if tree.first() != request => tree.first(),
            next => next,
        };
        self.best(core, after, node.prev(), head)
    }

    /// The distance of a sector from the head as it counts, and whether it belongs to the current
    /// sweep.
    #[inline]
    fn cost(&self, sector: u64, head: u64) -> (u64, bool) {
        let behind = head.saturating_sub(sector).saturating_mul(self.back_penalty);
        let cost = select_unpredictable(sector >= head, sector.wrapping_sub(head), behind);
        (cost, sector.saturating_add(self.back_max) >= head)
    }
}
