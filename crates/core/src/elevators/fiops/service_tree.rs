//! The order of service: by what has been spent, the least first.

use crate::collections::{NIL, Node, Slot, Tree};
use crate::elevator::tables::{HostTypes, TableOf};

/// Whether one sum of costs is below another. Sums go on for ever, so it is their signed difference that counts.
#[inline]
pub(super) fn is_below(vios: u64, other: u64) -> bool {
    (vios.wrapping_sub(other) as i64) < 0
}

/// Members with work, ordered by what they have spent; of equals, who came last is last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServiceTree {
    tree: Tree,
    len: u32,
    /// What the one that has spent least had spent, at the highest: it never goes back.
    floor: u64,
}

impl ServiceTree {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// How many members are in it.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Who has spent least, or [`NIL`].
    #[inline]
    pub fn first(&self) -> Slot {
        self.tree.first()
    }

    /// Who has spent most, or [`NIL`].
    #[inline]
    pub fn last(&self) -> Slot {
        self.tree.last()
    }

    /// What somebody who was idle enters with: no less than everybody else has spent.
    #[inline]
    pub fn entry(&self, vios: u64) -> u64 {
        if is_below(vios, self.floor) { self.floor } else { vios }
    }

    /// Takes a member in.
    pub fn insert<H: HostTypes>(&mut self, nodes: &mut TableOf<H, Node>, slot: Slot, vios: u64) {
        self.tree.insert_by(nodes, slot, vios, |_, other| is_below(vios, other));
        self.len = self.len.saturating_add(1);
        debug_assert!(!self.tree.is_empty(), "a member that was taken in is inside");
    }

    /// Takes a member out. The floor stays where it is until [`raise_floor`](Self::raise_floor): the member may come back.
    pub fn remove<H: HostTypes>(&mut self, nodes: &mut TableOf<H, Node>, slot: Slot) {
        self.tree.remove(nodes, slot);
        debug_assert!(self.len > 0, "a member that is taken out was inside");
        self.len = self.len.saturating_sub(1);
    }

    /// Gives a member that has spent more (or less) its place by that: behind its equals. One that stands right is left where it is.
    pub fn refile<H: HostTypes>(&mut self, nodes: &mut TableOf<H, Node>, slot: Slot, vios: u64) {
        let (before, after) = (nodes[slot].prev(), nodes[slot].next());
        let late = before != NIL && is_below(vios, nodes[before].key());
        let early = after != NIL && !is_below(vios, nodes[after].key());
        if late || early {
            self.tree.remove(nodes, slot);
            self.tree.insert_by(nodes, slot, vios, |_, other| is_below(vios, other));
        } else {
            nodes[slot].set_key(vios);
        }
    }

    /// Raises the floor to what the first has spent, if it lies below.
    pub fn raise_floor<H: HostTypes>(&mut self, nodes: &TableOf<H, Node>) {
        let first = self.tree.first();
        if first != NIL {
            self.floor = self.entry(nodes[first].key());
        }
    }
}
