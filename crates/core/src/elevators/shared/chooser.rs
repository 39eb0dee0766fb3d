//! Which of two requests is nearer to the head of the disk: the chooser that CFQ, BFQ and the anticipatory elevator share.

use crate::bio::Flags;
use crate::collections::{NIL, Slot, Tree};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;

/// The weights of the choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chooser {
    /// How far behind the head a request may lie and still be chosen, in sectors.
    pub back_max: u64,
    /// How many times farther a request behind the head counts.
    pub back_penalty: u64,
    /// Wherever they lie, a sync request goes before an async one, then a metadata request before data (2.6.19 and later).
    pub marks_count: bool,
}

impl Chooser {
    /// The request that is nearer to `head`, going up; either may be [`NIL`].
    ///
    /// A request that lies too far behind counts as one of the next sweep: it loses against any of this one, and among two the
    /// lower wins. Of two equally near the higher wins, and in a tie of everything the first.
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
            // A request that grew at its front may not have been filed anew.
            (a, b) = (one.sector, other.sector);
        }
        match (self.cost(a, head), self.cost(b, head)) {
            (Some(_), None) => first,
            (None, Some(_)) => second,
            (None, None) => {
                if a <= b {
                    first
                } else {
                    second
                }
            }
            (Some(x), Some(y)) if x != y => {
                if x < y {
                    first
                } else {
                    second
                }
            }
            _ => {
                if a >= b {
                    first
                } else {
                    second
                }
            }
        }
    }

    /// The one that is nearer to `head` of the two around a request in its tree: the one after it (above the highest the lowest comes)
    /// and the one before it. It is what comes next when the request leaves.
    pub fn neighbour<H: HostTypes>(&self, core: &QueueCore<H>, tree: &Tree, request: Slot, head: u64) -> Slot {
        let node = &core.tables.nodes[request];
        let after = match node.next() {
            NIL if tree.first() != request => tree.first(),
            next => next,
        };
        self.best(core, after, node.prev(), head)
    }

    #[inline]
    fn cost(&self, sector: u64, head: u64) -> Option<u64> {
        if sector >= head {
            Some(sector.saturating_sub(head))
        } else if sector.saturating_add(self.back_max) >= head {
            Some(head.saturating_sub(sector).saturating_mul(self.back_penalty))
        } else {
            None
        }
    }
}
