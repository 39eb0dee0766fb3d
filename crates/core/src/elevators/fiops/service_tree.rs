//! The order of service: by vios spent, the least first.

use crate::collections::{Count, NIL, Node, Slot, Tree};
use crate::elevator::tables::{HostTypes, TableOf};

/// Returns true if one sum of costs is below another. Sums wrap around, so the sign of the
/// difference decides.
#[inline]
pub(super) fn is_below(vios: u64, other: u64) -> bool {
    (vios.wrapping_sub(other) as i64) < 0
}

/// Members with requests, ordered by vios spent; among equals the latest is last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServiceTree {
    tree: Tree,
    len: u32,
    /// The highest value that the first member had spent; it never decreases.
    floor: u64,
}

impl ServiceTree {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    /// The number of members.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// The member that has spent the least, or [`NIL`].
    #[inline]
    pub fn first(&self) -> Slot {
        self.tree.first()
    }

    /// The member that has spent the most, or [`NIL`].
    #[inline]
    pub fn last(&self) -> Slot {
        self.tree.last()
    }

    /// The vios with which a formerly idle member enters: at least the floor.
    #[inline]
    pub fn entry(&self, vios: u64) -> u64 {
        if is_below(vios, self.floor) { self.floor } else { vios }
    }

    /// Adds a member.
    pub fn insert<H: HostTypes>(&mut self, nodes: &mut TableOf<H, Node>, slot: Slot, vios: u64) {
        self.place::<H>(nodes, slot, vios);
        self.len.increment();
        debug_assert!(!self.tree.is_empty(), "an added member is counted");
    }

    /// Sorts a member in, behind its equals. Mostly it has spent the most.
    fn place<H: HostTypes>(&mut self, nodes: &mut TableOf<H, Node>, slot: Slot, vios: u64) {
        let last = self.tree.last();
        if last == NIL || !is_below(vios, nodes[last].key()) {
            self.tree.insert_after(nodes, last, slot, vios);
        } else {
            self.tree.insert_by(nodes, slot, vios, |_, other| is_below(vios, other));
        }
    }

    /// Removes a member. The floor stays until [`raise_floor`](Self::raise_floor), as the member
    /// may return.
    pub fn remove<H: HostTypes>(&mut self, nodes: &mut TableOf<H, Node>, slot: Slot) {
        self.tree.remove(nodes, slot);
        debug_assert!(self.len > 0, "a removed member was counted");
        self.len.decrement();
    }

    /// Moves a member after its vios have changed, behind its equals. A member in the right
    /// position stays.
    pub fn refile<H: HostTypes>(&mut self, nodes: &mut TableOf<H, Node>, slot: Slot, vios: u64) {
        let (before, after) = (nodes[slot].prev(), nodes[slot].next());
        let late = before != NIL && is_below(vios, nodes[before].key());
        let early = after != NIL && !is_below(vios, nodes[after].key());
        if late || early {
            self.tree.remove(nodes, slot);
            self.place::<H>(nodes, slot, vios);
        } else {
            nodes[slot].set_key(vios);
        }
    }

    /// Raises the floor to what the first member has spent, if the floor is below.
    pub fn raise_floor<H: HostTypes>(&mut self, nodes: &TableOf<H, Node>) {
        let first = self.tree.first();
        if first != NIL {
            self.floor = self.entry(nodes[first].key());
        }
    }
}
