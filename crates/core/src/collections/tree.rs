//! Red-black trees through the nodes of an arena, threaded in order.
//!
//! A tree is a *sequence*: a node is inserted at a position (by key, or directly after another
//! node) and keeps it. Keys matter only for ordered look-ups. Nodes link to their neighbours, so a
//! step is one read. With an [`Augment`], each node also holds a summary of its subtree, with which
//! a look-up can skip whole subtrees.
//!
//! Insertion, deletion and rebalancing follow the textbook (Cormen, Leiserson, Rivest and Stein,
//! chapter 13): O(log N).

use core::hint::select_unpredictable;
use core::ops::DerefMut;

use super::{Arena, NIL, Slot};

/// The summary that a node holds of its subtree, and the order of keys.
pub trait Augment: Copy + Default + PartialEq {
    /// Whether there is a summary; `false` removes its upkeep at compile time.
    const KEPT: bool;
    /// The data of a node, besides its key, from which the summary is computed.
    type Value: Copy + Default + core::fmt::Debug;
    /// Computes the summary of a node with this key and value over those of its two subtrees.
    fn summary(key: u64, value: Self::Value, left: Option<Self>, right: Option<Self>) -> Self;
    /// Returns true if a key precedes another. This differs from the integer order where keys wrap
    /// around.
    #[inline(always)]
    fn before(key: u64, other: u64) -> bool {
        key < other
    }
}

impl Augment for () {
    const KEPT: bool = false;
    type Value = ();
    #[inline(always)]
    fn summary(_: u64, (): (), _: Option<()>, _: Option<()>) {}
}

/// The minimum key of a subtree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Least(pub u64);

impl Augment for Least {
    const KEPT: bool = true;
    type Value = ();
    #[inline]
    fn summary(key: u64, (): (), left: Option<Least>, right: Option<Least>) -> Least {
        let least = key.min(left.map_or(u64::MAX, |l| l.0)).min(right.map_or(u64::MAX, |r| r.0));
        Least(least)
    }
}

/// The minimum and maximum key of a subtree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The minimum key.
    pub least: u64,
    /// The maximum key.
    pub greatest: u64,
}

impl Augment for Range {
    const KEPT: bool = true;
    type Value = ();
    #[inline]
    fn summary(key: u64, (): (), left: Option<Range>, right: Option<Range>) -> Range {
        let around = |one: Range, other: Option<Range>| match other {
            Some(other) => Range { least: one.least.min(other.least), greatest: one.greatest.max(other.greatest) },
            None => one,
        };
        around(around(Range { least: key, greatest: key }, left), right)
    }
}

/// The links of an entry in a tree.
#[derive(Clone, Copy, Debug)]
pub struct Node<G: Augment = ()> {
    key: u64,
    value: G::Value,
    parent: Slot,
    /// The left and the right child.
    children: [Slot; 2],
    prev: Slot,
    next: Slot,
    red: bool,
    summary: G,
}

impl<G: Augment> Default for Node<G> {
    fn default() -> Self {
        let (value, summary) = (G::Value::default(), G::default());
        Node { key: 0, value, parent: NIL, children: [NIL; 2], prev: NIL, next: NIL, red: false, summary }
    }
}

impl<G: Augment> Node<G> {
    /// The key under which the node was inserted.
    #[inline]
    pub fn key(&self) -> u64 {
        self.key
    }

    /// The next node in order, or `u32::MAX`.
    #[inline]
    pub fn next(&self) -> Slot {
        self.next
    }

    /// The previous node in order, or `u32::MAX`.
    #[inline]
    pub fn prev(&self) -> Slot {
        self.prev
    }

    /// The root of the left subtree, or `u32::MAX`.
    #[inline]
    pub fn left(&self) -> Slot {
        let [left, _] = self.children;
        left
    }

    /// The root of the right subtree, or `u32::MAX`.
    #[inline]
    pub fn right(&self) -> Slot {
        let [_, right] = self.children;
        right
    }

    /// The summary of the node's subtree.
    #[inline]
    pub fn summary(&self) -> G {
        self.summary
    }
}

impl Node {
    /// Changes the key of a node without moving it. Later insertions are compared with the new key.
    /// In a tree that is out of order because of this, every insertion still has a defined
    /// position: the one that the textbook's descent from the root finds.
    #[inline]
    pub fn set_key(&mut self, key: u64) {
        self.key = key;
    }
}

/// A red-black tree. Its nodes are in an arena that is passed to every call.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    root: Slot,
    first: Slot,
    last: Slot,
}

impl Default for Tree {
    fn default() -> Self {
        Tree { root: NIL, first: NIL, last: NIL }
    }
}

/// The index of a child: left or right.
type Side = bool;
const LEFT: Side = false;
const RIGHT: Side = true;

impl Tree {
    /// Returns true if the tree is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.root == NIL
    }

    /// The root, where a search by the caller starts, or [`NIL`]. The textbook's rebalancing
    /// determines which node it is.
    #[inline]
    pub fn root(&self) -> Slot {
        self.root
    }

    /// The first node, or [`NIL`].
    #[inline]
    pub fn first(&self) -> Slot {
        self.first
    }

    /// The last node, or [`NIL`].
    #[inline]
    pub fn last(&self) -> Slot {
        self.last
    }

    /// Inserts `slot` under `key`, after all nodes with the same key.
    #[inline]
    pub fn insert<G: Augment, S>(&mut self, nodes: &mut Arena<Node<G>, S>, slot: Slot, key: u64)
    where
        S: DerefMut<Target = [Node<G>]>,
    {
        self.insert_with(nodes, slot, key, G::Value::default());
    }

    /// Inserts `slot` under `key`, with a value for the summaries.
    #[inline]
    pub fn insert_with<G: Augment, S>(&mut self, nodes: &mut Arena<Node<G>, S>, slot: Slot, key: u64, value: G::Value)
    where
        S: DerefMut<Target = [Node<G>]>,
    {
        let nodes = nodes.entries_mut();
        if self.is_empty() {
            self.insert_alone(nodes, slot, (key, value));
        } else {
            self.insert_among(nodes, slot, (key, value));
        }
    }

    /// Inserts `slot` as [`Tree::insert_with`] does, faster if no key is above `key`. Only for
    /// trees in order, whose keys do not change.
    #[inline]
    pub fn insert_late<G: Augment, S>(&mut self, nodes: &mut Arena<Node<G>, S>, slot: Slot, key: u64, value: G::Value)
    where
        S: DerefMut<Target = [Node<G>]>,
    {
        let nodes = nodes.entries_mut();
        match nodes.get(self.last as usize) {
            None => self.insert_alone(nodes, slot, (key, value)),
            Some(last) if G::before(key, last.key) => self.insert_among(nodes, slot, (key, value)),
            Some(_) => self.attach(nodes, slot, (key, value), self.last, RIGHT),
        }
    }

    /// Inserts `slot` into an empty tree.
    #[inline]
    fn insert_alone<G: Augment>(&mut self, nodes: &mut [Node<G>], slot: Slot, (key, value): (u64, G::Value)) {
        if let Some(stored) = nodes.get_mut(slot as usize) {
            *stored = Node { key, value, summary: G::summary(key, value, None, None), ..Node::default() };
            *self = Tree { root: slot, first: slot, last: slot };
        }
    }

    #[inline(never)]
    fn insert_among<G: Augment>(&mut self, nodes: &mut [Node<G>], slot: Slot, filed: (u64, G::Value)) {
        let (mut parent, mut side, mut at) = (NIL, LEFT, self.root);
        while let Some(node) = nodes.get(at as usize) {
            parent = at;
            // The direction is unpredictable: avoid a branch.
            let left = G::before(filed.0, node.key);
            side = !left;
            at = select_unpredictable(left, node.left(), node.right());
        }
        self.attach(nodes, slot, filed, parent, side);
    }

    /// Inserts `slot` under `key` by the caller's order: `precedes` returns true if `slot` goes
    /// before a node (its slot and key). Such a tree supports stepping; the look-ups by key do not
    /// apply to it.
    pub fn insert_by<G: Augment, S>(
        &mut self,
        nodes: &mut Arena<Node<G>, S>,
        slot: Slot,
        key: u64,
        mut precedes: impl FnMut(Slot, u64) -> bool,
    ) where
        S: DerefMut<Target = [Node<G>]>,
    {
        let nodes = nodes.entries_mut();
        if self.is_empty() {
            return self.insert_alone(nodes, slot, (key, G::Value::default()));
        }
        let (mut parent, mut side, mut at) = (NIL, LEFT, self.root);
        while let Some(node) = nodes.get(at as usize) {
            parent = at;
            let left = precedes(at, node.key);
            side = !left;
            at = select_unpredictable(left, node.left(), node.right());
        }
        self.attach(nodes, slot, (key, G::Value::default()), parent, side);
    }

    /// Inserts `slot` at the end of a descent in the unchanged tree that found no equal node.
    #[inline]
    pub fn insert_at<G: Augment, S>(&mut self, nodes: &mut Arena<Node<G>, S>, end: Descent, slot: Slot, key: u64)
    where
        S: DerefMut<Target = [Node<G>]>,
    {
        let nodes = nodes.entries_mut();
        if self.is_empty() {
            return self.insert_alone(nodes, slot, (key, G::Value::default()));
        }
        // The descent went to the right last if the position is directly behind the last node.
        let side = if end.before == end.last { RIGHT } else { LEFT };
        self.attach(nodes, slot, (key, G::Value::default()), end.last, side);
    }

    /// Inserts `slot` directly after `before` regardless of keys, or first if `before` is [`NIL`].
    pub fn insert_after<G: Augment, S>(&mut self, nodes: &mut Arena<Node<G>, S>, before: Slot, slot: Slot, key: u64)
    where
        S: DerefMut<Target = [Node<G>]>,
    {
        let nodes = nodes.entries_mut();
        if self.is_empty() {
            return self.insert_alone(nodes, slot, (key, G::Value::default()));
        }
        let (parent, side) = match nodes.get(before as usize) {
            None => (self.first, LEFT),
            Some(node) if node.right() == NIL => (before, RIGHT),
            // The node after `before` is the leftmost one of its right subtree and has no left
            // child.
            Some(node) => (node.next, LEFT),
        };
        self.attach(nodes, slot, (key, G::Value::default()), parent, side);
    }

    /// The first node with this key, or [`NIL`]. For trees filled by [`Tree::insert`].
    pub fn find<G: Augment, S>(&self, nodes: &Arena<Node<G>, S>, key: u64) -> Slot
    where
        S: DerefMut<Target = [Node<G>]>,
    {
        let at = self.first_not_below(nodes, key);
        if at != NIL && nodes[at].key == key { at } else { NIL }
    }

    /// The node with this key that a search from the root meets first, or [`NIL`]. For trees filled
    /// by [`Tree::insert`].
    pub fn find_topmost<G: Augment, S>(&self, nodes: &Arena<Node<G>, S>, key: u64) -> Slot
    where
        S: DerefMut<Target = [Node<G>]>,
    {
        let (nodes, mut at) = (nodes.entries(), self.root);
        while let Some(node) = nodes.get(at as usize) {
            if node.key == key {
                return at;
            }
            at = select_unpredictable(key < node.key, node.left(), node.right());
        }
        NIL
    }

    /// The first node whose key is not below `key`, or [`NIL`]. For trees filled by
    /// [`Tree::insert`].
    pub fn first_not_below<G: Augment, S>(&self, nodes: &Arena<Node<G>, S>, key: u64) -> Slot
    where
        S: DerefMut<Target = [Node<G>]>,
    {
        let nodes = nodes.entries();
        let (mut found, mut at) = (NIL, self.root);
        while let Some(node) = nodes.get(at as usize) {
            let below = G::before(node.key, key);
            found = select_unpredictable(below, found, at);
            at = select_unpredictable(below, node.right(), node.left());
        }
        found
    }

    /// The last node whose key is below `bound`, at any position of the sequence, or [`NIL`].
    pub fn last_below<S>(&self, nodes: &Arena<Node<Least>, S>, bound: u64) -> Slot
    where
        S: DerefMut<Target = [Node<Least>]>,
    {
        self.last_matching(nodes, |least| least.0 < bound)
    }

    /// The last node for which `holds` returns true, at any position of the sequence, or [`NIL`].
    /// `holds` is called with summaries of subtrees and of single nodes. It must be true of a
    /// subtree exactly if it is true of one of its nodes.
    pub fn last_matching<G: Augment, S>(&self, nodes: &Arena<Node<G>, S>, holds: impl Fn(G) -> bool) -> Slot
    where
        S: DerefMut<Target = [Node<G>]>,
    {
        let nodes = nodes.entries();
        let holds_one = |at: Slot| nodes.get(at as usize).is_some_and(|node| holds(node.summary));
        let mut at = self.root;
        if !holds_one(at) {
            return NIL;
        }
        while let Some(node) = nodes.get(at as usize) {
            if holds_one(node.right()) {
                at = node.right();
            } else if holds(G::summary(node.key, node.value, None, None)) || !holds_one(node.left()) {
                return at;
            } else {
                at = node.left();
            }
        }
        at
    }

    /// Removes `slot`, which must be in this tree.
    #[inline]
    pub fn remove<G: Augment, S>(&mut self, nodes: &mut Arena<Node<G>, S>, slot: Slot)
    where
        S: DerefMut<Target = [Node<G>]>,
    {
        let nodes = nodes.entries_mut();
        if self.first != self.last {
            self.remove_from_among(nodes, slot);
        } else if let Some(stored) = nodes.get_mut(slot as usize) {
            *stored = Node::default();
            *self = Tree::default();
        }
    }

    #[inline(never)]
    fn remove_from_among<G: Augment>(&mut self, nodes: &mut [Node<G>], slot: Slot) {
        let Some(stored) = nodes.get_mut(slot as usize) else { return };
        let node = *stored;
        *stored = Node::default();
        *self.link_after(nodes, node.prev) = node.next;
        *self.link_before(nodes, node.next) = node.prev;
        // `hole` takes the place of the node that is spliced out; the upkeep starts at its parent
        // `above`.
        let (hole, above, removed_red);
        // The summaries up to `replaced` are out of date even if their values do not change.
        let mut replaced = node.parent;
        let [left, right] = node.children;
        if left == NIL || right == NIL {
            hole = if left == NIL { right } else { left };
            (above, removed_red) = (node.parent, node.red);
            self.replace_child(nodes, node.parent, slot, hole);
            set_parent(nodes, hole, node.parent);
        } else {
            // The successor has no left child: it is spliced out and takes this node's position and
            // colour.
            let successor = node.next;
            let Some(entry) = nodes.get_mut(successor as usize) else { return };
            removed_red = entry.red;
            hole = entry.right();
            let parent = entry.parent;
            (entry.parent, entry.red, entry.summary) = (node.parent, node.red, node.summary);
            if parent == slot {
                entry.children = [left, hole];
                above = successor;
            } else {
                entry.children = [left, right];
                above = parent;
                if let Some(parent) = nodes.get_mut(parent as usize) {
                    parent.children[usize::from(LEFT)] = hole;
                }
                set_parent(nodes, hole, above);
                set_parent(nodes, right, successor);
            }
            set_parent(nodes, left, successor);
            self.replace_child(nodes, node.parent, slot, successor);
            replaced = successor;
        }
        if G::KEPT {
            summarise_up(nodes, above, replaced);
        }
        if !removed_red {
            self.rebalance_after_removal(nodes, hole, above);
        }
    }

    /// Inserts `slot` under `parent` of a tree with nodes.
    #[inline(never)]
    fn attach<G: Augment>(
        &mut self,
        nodes: &mut [Node<G>],
        slot: Slot,
        filed: (u64, G::Value),
        parent: Slot,
        side: Side,
    ) {
        let (key, value) = filed;
        let Some(above) = nodes.get_mut(parent as usize) else { return };
        // It goes between its parent and the parent's neighbour on its side.
        let prev = select_unpredictable(side == LEFT, above.prev, parent);
        let next = select_unpredictable(side == LEFT, parent, above.next);
        above.children[usize::from(side)] = slot;
        let parent_is_red = above.red;
        let Some(stored) = nodes.get_mut(slot as usize) else { return };
        let summary = G::summary(key, value, None, None);
        *stored = Node { key, value, parent, children: [NIL; 2], prev, next, red: true, summary };
        *self.link_after(nodes, prev) = slot;
        *self.link_before(nodes, next) = slot;
        if G::KEPT {
            summarise_up(nodes, parent, parent);
        }
        if parent_is_red {
            self.rebalance_after_insertion(nodes, slot);
        }
    }

    /// The link to the node after `slot`; for [`NIL`] the link to the first node. Whether a
    /// neighbour exists is unpredictable, so both links are written through one reference, without
    /// a branch.
    #[inline(always)]
    fn link_after<'a, G: Augment>(&'a mut self, nodes: &'a mut [Node<G>], slot: Slot) -> &'a mut Slot {
        match nodes.get_mut(slot as usize) {
            Some(node) => &mut node.next,
            None => &mut self.first,
        }
    }

    /// The link to the node before `slot`; for [`NIL`] the link to the last node.
    #[inline(always)]
    fn link_before<'a, G: Augment>(&'a mut self, nodes: &'a mut [Node<G>], slot: Slot) -> &'a mut Slot {
        match nodes.get_mut(slot as usize) {
            Some(node) => &mut node.prev,
            None => &mut self.last,
        }
    }

    /// Puts `with` in the place of `child` under `parent`, or at the root.
    #[inline]
    fn replace_child<G: Augment>(&mut self, nodes: &mut [Node<G>], parent: Slot, child: Slot, with: Slot) {
        match nodes.get_mut(parent as usize) {
            Some(above) => {
                let side = above.side_of(child);
                above.children[usize::from(side)] = with;
            }
            None => self.root = with,
        }
    }

    /// Rotates the edge between `slot` and its child on the other side, so that `slot` goes down to
    /// `side`. Summaries are updated.
    fn rotate<G: Augment>(&mut self, nodes: &mut [Node<G>], slot: Slot, side: Side) {
        let Some(node) = nodes.get(slot as usize) else { return };
        let (parent, riser, summary) = (node.parent, node.child(!side), node.summary);
        let Some(above) = nodes.get_mut(riser as usize) else { return };
        let inner = above.child(side);
        above.children[usize::from(side)] = slot;
        above.parent = parent;
        // The subtree of the rising node is now what the other node's subtree was.
        above.summary = summary;
        set_parent(nodes, inner, slot);
        if let Some(node) = nodes.get_mut(slot as usize) {
            node.children[usize::from(!side)] = inner;
            node.parent = riser;
        }
        self.replace_child(nodes, parent, slot, riser);
        if G::KEPT {
            summarise(nodes, slot);
        }
    }

    /// `slot` and its parent are red.
    fn rebalance_after_insertion<G: Augment>(&mut self, nodes: &mut [Node<G>], mut slot: Slot) {
        while let Some(node) = nodes.get(slot as usize) {
            let parent = node.parent;
            let Some(above) = nodes.get(parent as usize) else { break };
            let (red, grand, inner) = (above.red, above.parent, above.side_of(slot));
            if !red {
                return;
            }
            let Some(top) = nodes.get_mut(grand as usize) else { break };
            let side = top.side_of(parent);
            let uncle = top.child(!side);
            top.red = true;
            if let Some(uncle) = nodes.get_mut(uncle as usize)
                && uncle.red
            {
                uncle.red = false;
                set_red(nodes, parent, false);
                slot = grand;
                continue;
            }
            let mut top = parent;
            if inner != side {
                self.rotate(nodes, parent, side);
                top = slot;
            }
            set_red(nodes, top, false);
            self.rotate(nodes, grand, !side);
            return;
        }
        set_red(nodes, self.root, false);
    }

    /// `hole` (perhaps [`NIL`]) under `above` is one black short.
    fn rebalance_after_removal<G: Augment>(&mut self, nodes: &mut [Node<G>], mut hole: Slot, mut above: Slot) {
        while let Some(parent) = nodes.get(above as usize)
            && !is_red(nodes, hole)
        {
            let side = parent.side_of(hole);
            let (mut sibling, mut above_is_red) = (parent.child(!side), parent.red);
            if is_red(nodes, sibling) {
                set_red(nodes, sibling, false);
                set_red(nodes, above, true);
                above_is_red = true;
                self.rotate(nodes, above, side);
                sibling = nodes.get(above as usize).map_or(NIL, |parent| parent.child(!side));
            }
            let Some(beside) = nodes.get(sibling as usize) else {
                debug_assert!(false, "a node that is one black short has a sibling");
                return;
            };
            let (near, mut far) = (beside.child(side), beside.child(!side));
            if !is_red(nodes, far) {
                if !is_red(nodes, near) {
                    set_red(nodes, sibling, true);
                    hole = above;
                    above = parent_of(nodes, above);
                    continue;
                }
                set_red(nodes, near, false);
                set_red(nodes, sibling, true);
                self.rotate(nodes, sibling, !side);
                (far, sibling) = (sibling, near);
            }
            set_red(nodes, sibling, above_is_red);
            set_red(nodes, above, false);
            set_red(nodes, far, false);
            self.rotate(nodes, above, side);
            return;
        }
        set_red(nodes, hole, false);
    }
}

impl<G: Augment> Node<G> {
    #[inline(always)]
    fn child(&self, side: Side) -> Slot {
        self.children[usize::from(side)]
    }

    /// The side on which `slot` is a child; a missing child may be on both.
    #[inline(always)]
    fn side_of(&self, slot: Slot) -> Side {
        self.left() != slot
    }
}

#[inline(always)]
fn set_parent<G: Augment>(nodes: &mut [Node<G>], slot: Slot, parent: Slot) {
    if let Some(node) = nodes.get_mut(slot as usize) {
        node.parent = parent;
    }
}

#[inline(always)]
fn parent_of<G: Augment>(nodes: &[Node<G>], slot: Slot) -> Slot {
    nodes.get(slot as usize).map_or(NIL, |node| node.parent)
}

#[inline(always)]
fn set_red<G: Augment>(nodes: &mut [Node<G>], slot: Slot, red: bool) {
    if let Some(node) = nodes.get_mut(slot as usize) {
        node.red = red;
    }
}

#[inline(always)]
fn is_red<G: Augment>(nodes: &[Node<G>], slot: Slot) -> bool {
    nodes.get(slot as usize).is_some_and(|node| node.red)
}

/// Updates the summaries from `slot` upwards: at least up to `must_reach`, then as long as they
/// change.
fn summarise_up<G: Augment>(nodes: &mut [Node<G>], mut slot: Slot, must_reach: Slot) {
    let mut reached = false;
    while slot != NIL {
        reached |= slot == must_reach;
        let changed = summarise(nodes, slot);
        if reached && !changed {
            return;
        }
        slot = parent_of(nodes, slot);
    }
}

/// Updates one node's summary. Returns true if it has changed.
#[inline]
fn summarise<G: Augment>(nodes: &mut [Node<G>], slot: Slot) -> bool {
    let Some(node) = nodes.get(slot as usize) else { return false };
    let of = |slot: Slot| nodes.get(slot as usize).map(|node| node.summary);
    let summary = G::summary(node.key, node.value, of(node.left()), of(node.right()));
    let changed = summary != node.summary;
    if let Some(node) = nodes.get_mut(slot as usize) {
        node.summary = summary;
    }
    changed
}

/// The end of a search from the root.
#[derive(Clone, Copy, Debug)]
pub struct Descent {
    /// The first matching node that was met, or [`NIL`].
    pub found: Slot,
    /// The last non-matching node that was met, or [`NIL`]: a neighbour of the searched position,
    /// on either side.
    pub last: Slot,
    /// The node directly before the searched position, or [`NIL`] if the position is first.
    pub before: Slot,
}

impl Tree {
    /// Descends from the root to the position of `sector`, by the keys of the nodes. The neighbour
    /// that is met last, and the first of several equal nodes, depend on the shape of the tree,
    /// which is the textbook's. `is_up_to_date` checks a node and its key in debug builds.
    #[inline]
    pub fn descend<G: Augment, S>(
        &self,
        nodes: &Arena<Node<G>, S>,
        sector: u64,
        is_up_to_date: impl Fn(Slot, u64) -> bool,
    ) -> Descent
    where
        S: DerefMut<Target = [Node<G>]>,
    {
        let nodes = nodes.entries();
        let mut ended = Descent { found: NIL, last: NIL, before: NIL };
        let mut at = self.root;
        while let Some(node) = nodes.get(at as usize) {
            debug_assert!(is_up_to_date(at, node.key), "the node has the sector of the next request");
            if node.key == sector {
                ended.found = at;
                break;
            }
            // The direction is unpredictable: avoid a branch.
            let above = sector > node.key;
            ended.last = at;
            ended.before = select_unpredictable(above, at, ended.before);
            at = select_unpredictable(above, node.right(), node.left());
        }
        ended
    }
}

#[cfg(test)]
mod tests;
