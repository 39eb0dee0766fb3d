//! Which of two requests is nearer to the head of the disk: the chooser that CFQ and the anticipatory elevator share.

use crate::parts::{NIL, Slot};
use crate::queue::block::Block;
use crate::storage::Home;

/// The weights of the choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chooser {
    /// How far behind the head a request may lie and still be chosen, in sectors.
    pub back_max: u64,
    /// How many times farther a request behind the head counts.
    pub back_penalty: u64,
}

impl Chooser {
    /// The request that is nearer to `head`, going up; either may be [`NIL`].
    ///
    /// A request that lies too far behind counts as one of the next sweep: it loses against any of this one, and among two the
    /// lower wins. Of two equally near the higher wins, and in a tie of everything the first.
    #[inline]
    pub fn best<H: Home>(&self, block: &Block<H>, first: Slot, second: Slot, head: u64) -> Slot {
        if first == NIL || first == second {
            return second;
        }
        if second == NIL {
            return first;
        }
        let (a, b) = (block.table.nodes[first].key(), block.table.nodes[second].key());
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
