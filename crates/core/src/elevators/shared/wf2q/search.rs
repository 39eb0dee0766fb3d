//! The search for the next entity of one tree.

use super::{Engine, is_later};
use crate::collections::{NIL, Slot, Tree};
use crate::elevator::tables::HostTypes;

impl<H: HostTypes> Engine<H> {
    /// The least start in a non-empty active tree.
    pub(super) fn least_start(&self, tree: &Tree) -> u64 {
        self.nodes[tree.root()].summary().0
    }

    /// The selected one of the entities that start at `time` or before; there is at least one.
    pub(super) fn pick(&self, tree: &Tree, time: u64) -> Slot {
        debug_assert!(!is_later(self.least_start(tree), time), "an entity is eligible");
        if self.rules.exact_search { self.pick_exactly(tree, time) } else { self.pick_as_shipped(tree, time) }
    }

    /// The first eligible entity in order of finish.
    fn pick_exactly(&self, tree: &Tree, time: u64) -> Slot {
        let mut at = tree.root();
        while at != NIL {
            let node = &self.nodes[at];
            if self.holds_eligible(node.left(), time) {
                at = node.left();
            } else if !is_later(self.entities[at].start, time) {
                return at;
            } else {
                at = node.right();
            }
        }
        NIL
    }

    /// Linux's search: once it has seen an eligible node, it never searches to the right of an
    /// ineligible one. The result is eligible, but not always the first; it depends on the shape of
    /// the tree.
    fn pick_as_shipped(&self, tree: &Tree, time: u64) -> Slot {
        let (mut at, mut best) = (tree.root(), NIL);
        while at != NIL {
            let node = &self.nodes[at];
            if !is_later(self.entities[at].start, time) {
                best = at;
            }
            if self.holds_eligible(node.left(), time) {
                at = node.left();
            } else if best != NIL {
                return best;
            } else {
                at = node.right();
            }
        }
        best
    }

    fn holds_eligible(&self, root: Slot, time: u64) -> bool {
        root != NIL && !is_later(self.nodes[root].summary().0, time)
    }
}
