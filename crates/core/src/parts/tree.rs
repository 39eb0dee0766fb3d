//! Red-black trees through the nodes of an arena, threaded in order.
//!
//! A tree is a *sequence*: a node is put at a place (by key, or right after another node) and keeps it. Keys are only
//! what the ordered look-ups compare. Nodes know their neighbours, so stepping is one read. With an [`Augment`] each
//! node also holds a summary of its subtree, by which a look-up can skip whole subtrees.
//!
//! Insertion, deletion and rebalancing are the textbook ones (Cormen, Leiserson, Rivest and Stein, chapter 13): O(log N).

use core::cmp::Ordering;
use core::hint::select_unpredictable;
use core::ops::{Index, IndexMut};

use super::{NIL, Slot};

/// What a node remembers of its whole subtree, and how keys compare.
pub trait Augment: Copy + Default + PartialEq {
    /// Whether there is anything to remember; `false` compiles the upkeep away.
    const KEPT: bool;
    /// What a node carries besides its key for the summary to be made of.
    type Value: Copy + Default + core::fmt::Debug;
    /// The summary of a node with this key and value over those of its two subtrees.
    fn summary(key: u64, value: Self::Value, left: Option<Self>, right: Option<Self>) -> Self;
    /// Whether a key comes before another. Not the plain order where keys wrap around.
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

/// The least key of a subtree.
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

/// The least and the greatest key of a subtree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The least key.
    pub least: u64,
    /// The greatest key.
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

/// The links of one entry in one tree.
#[derive(Clone, Copy, Debug)]
pub struct Node<G: Augment = ()> {
    key: u64,
    value: G::Value,
    parent: Slot,
    left: Slot,
    right: Slot,
    prev: Slot,
    next: Slot,
    red: bool,
    summary: G,
}

impl<G: Augment> Default for Node<G> {
    fn default() -> Self {
        let (value, summary) = (G::Value::default(), G::default());
        Node { key: 0, value, parent: NIL, left: NIL, right: NIL, prev: NIL, next: NIL, red: false, summary }
    }
}

impl<G: Augment> Node<G> {
    /// The key it was filed under.
    #[inline]
    pub fn key(&self) -> u64 {
        self.key
    }

    /// The node after it in its tree, or `u32::MAX`.
    #[inline]
    pub fn next(&self) -> Slot {
        self.next
    }

    /// The node before it in its tree, or `u32::MAX`.
    #[inline]
    pub fn prev(&self) -> Slot {
        self.prev
    }

    /// The root of the subtree before it, or `u32::MAX`.
    #[inline]
    pub fn left(&self) -> Slot {
        self.left
    }

    /// The root of the subtree after it, or `u32::MAX`.
    #[inline]
    pub fn right(&self) -> Slot {
        self.right
    }

    /// What it remembers of its subtree.
    #[inline]
    pub fn summary(&self) -> G {
        self.summary
    }
}

impl Node {
    /// Gives the node another key where it stands, without moving it: from then on, what is filed is compared with the new key. A tree
    /// that is out of order for it still gives everything a place, the one that the textbook's descent from the root finds.
    #[inline]
    pub fn set_key(&mut self, key: u64) {
        self.key = key;
    }
}

/// A red-black tree; its nodes lie in an arena that is passed to every call.
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Tree {
    /// Whether it has no nodes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.root == NIL
    }

    /// The node at the top, where a search by hand begins, or [`NIL`]. Which one it is, the textbook's rebalancing says.
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

    /// Files `slot` under `key`, after all nodes of the same key.
    #[inline]
    pub fn insert<G: Augment, A>(&mut self, nodes: &mut A, slot: Slot, key: u64)
    where
        A: IndexMut<Slot> + Index<Slot, Output = Node<G>>,
    {
        self.insert_with(nodes, slot, key, G::Value::default());
    }

    /// The same, with a value for the summaries.
    #[inline]
    pub fn insert_with<G: Augment, A>(&mut self, nodes: &mut A, slot: Slot, key: u64, value: G::Value)
    where
        A: IndexMut<Slot> + Index<Slot, Output = Node<G>>,
    {
        let (mut parent, mut side, mut at) = (NIL, Side::Left, self.root);
        while at != NIL {
            let node = &nodes[at];
            parent = at;
            // Which way it goes is a coin toss to the processor: it had better not guess.
            let left = G::before(key, node.key);
            side = if left { Side::Left } else { Side::Right };
            at = select_unpredictable(left, node.left, node.right);
        }
        self.attach(nodes, slot, (key, value), parent, side);
    }

    /// Files `slot` under `key` by an order of the caller's: `precedes` tells whether it goes before a node (its slot and key). Such a
    /// tree is stepped through; the look-ups by key are not for it.
    pub fn insert_by<G: Augment, A>(
        &mut self,
        nodes: &mut A,
        slot: Slot,
        key: u64,
        mut precedes: impl FnMut(Slot, u64) -> bool,
    ) where
        A: IndexMut<Slot> + Index<Slot, Output = Node<G>>,
    {
        let (mut parent, mut side, mut at) = (NIL, Side::Left, self.root);
        while at != NIL {
            parent = at;
            side = if precedes(at, nodes[at].key) { Side::Left } else { Side::Right };
            at = child(nodes, at, side);
        }
        self.attach(nodes, slot, (key, G::Value::default()), parent, side);
    }

    /// Puts `slot` right after `before`, whatever the keys; with `before` [`NIL`], first.
    pub fn insert_after<G: Augment, A>(&mut self, nodes: &mut A, before: Slot, slot: Slot, key: u64)
    where
        A: IndexMut<Slot> + Index<Slot, Output = Node<G>>,
    {
        let (parent, side) = if before == NIL {
            (self.first, Side::Left)
        } else if nodes[before].right == NIL {
            (before, Side::Right)
        } else {
            // The node after `before` is the leftmost one of its right subtree: it has no left child.
            (nodes[before].next, Side::Left)
        };
        self.attach(nodes, slot, (key, G::Value::default()), parent, side);
    }

    /// A node of this key, the first of them, or [`NIL`]. For trees that were filled by [`Tree::insert`].
    pub fn find<G: Augment, A>(&self, nodes: &A, key: u64) -> Slot
    where
        A: Index<Slot, Output = Node<G>>,
    {
        let at = self.first_not_below(nodes, key);
        if at != NIL && nodes[at].key == key { at } else { NIL }
    }

    /// A node of this key, of several the one that a search from the root meets first, or [`NIL`]. For trees that were filled by
    /// [`Tree::insert`].
    pub fn find_topmost<G: Augment, A>(&self, nodes: &A, key: u64) -> Slot
    where
        A: Index<Slot, Output = Node<G>>,
    {
        let mut at = self.root;
        while at != NIL && nodes[at].key != key {
            let node = &nodes[at];
            at = select_unpredictable(key < node.key, node.left, node.right);
        }
        at
    }

    /// The first node whose key is not below `key`, or [`NIL`]. For trees that were filled by [`Tree::insert`].
    pub fn first_not_below<G: Augment, A>(&self, nodes: &A, key: u64) -> Slot
    where
        A: Index<Slot, Output = Node<G>>,
    {
        let (mut found, mut at) = (NIL, self.root);
        while at != NIL {
            let node = &nodes[at];
            let below = G::before(node.key, key);
            found = select_unpredictable(below, found, at);
            at = select_unpredictable(below, node.right, node.left);
        }
        found
    }

    /// The last node whose key is below `bound`, wherever it stands in the sequence, or [`NIL`].
    pub fn last_below<A>(&self, nodes: &A, bound: u64) -> Slot
    where
        A: Index<Slot, Output = Node<Least>>,
    {
        self.last_that(nodes, |least| least.0 < bound)
    }

    /// The last node for which `holds`, wherever it stands in the sequence, or [`NIL`]. `holds` is asked about the summaries of subtrees
    /// and of single nodes: it must hold for a subtree just if it does for one of its nodes.
    pub fn last_that<G: Augment, A>(&self, nodes: &A, holds: impl Fn(G) -> bool) -> Slot
    where
        A: Index<Slot, Output = Node<G>>,
    {
        let holds_one = |at: Slot| at != NIL && holds(nodes[at].summary);
        let mut at = self.root;
        if !holds_one(at) {
            return NIL;
        }
        loop {
            let node = &nodes[at];
            if holds_one(node.right) {
                at = node.right;
            } else if holds(G::summary(node.key, node.value, None, None)) || !holds_one(node.left) {
                return at;
            } else {
                at = node.left;
            }
        }
    }

    /// Takes `slot`, which must be in this tree, out of it.
    pub fn remove<G: Augment, A>(&mut self, nodes: &mut A, slot: Slot)
    where
        A: IndexMut<Slot> + Index<Slot, Output = Node<G>>,
    {
        let node = nodes[slot];
        self.unthread(nodes, &node);
        // `hole` is what takes the place of the node that is spliced out, `above` its parent: the upkeep starts there.
        let (hole, above, removed_red);
        // The summaries up to `replaced` are out of date whatever they read.
        let mut replaced = node.parent;
        if node.left == NIL || node.right == NIL {
            hole = if node.left == NIL { node.right } else { node.left };
            (above, removed_red) = (node.parent, node.red);
            self.replace_child(nodes, node.parent, slot, hole);
        } else {
            // The node after it has no left child: it is spliced out and takes this node's place and colour.
            let heir = node.next;
            removed_red = nodes[heir].red;
            hole = nodes[heir].right;
            if nodes[heir].parent == slot {
                above = heir;
            } else {
                above = nodes[heir].parent;
                self.replace_child(nodes, above, heir, hole);
                nodes[heir].right = node.right;
                nodes[node.right].parent = heir;
            }
            nodes[heir].left = node.left;
            nodes[node.left].parent = heir;
            nodes[heir].red = node.red;
            nodes[heir].summary = node.summary;
            self.replace_child(nodes, node.parent, slot, heir);
            replaced = heir;
        }
        nodes[slot] = Node::default();
        if G::KEPT {
            self.summarise_up(nodes, above, replaced);
        }
        if !removed_red {
            self.rebalance_after_removal(nodes, hole, above);
        }
    }

    fn attach<G: Augment, A>(&mut self, nodes: &mut A, slot: Slot, filed: (u64, G::Value), parent: Slot, side: Side)
    where
        A: IndexMut<Slot> + Index<Slot, Output = Node<G>>,
    {
        let (prev, next) = match (parent, side) {
            (NIL, _) => (NIL, NIL),
            (parent, Side::Left) => (nodes[parent].prev, parent),
            (parent, Side::Right) => (parent, nodes[parent].next),
        };
        let (key, value) = filed;
        let summary = G::summary(key, value, None, None);
        nodes[slot] = Node { key, value, parent, left: NIL, right: NIL, prev, next, red: true, summary };
        match prev {
            NIL => self.first = slot,
            prev => nodes[prev].next = slot,
        }
        match next {
            NIL => self.last = slot,
            next => nodes[next].prev = slot,
        }
        if parent == NIL {
            self.root = slot;
            nodes[slot].red = false;
            return;
        }
        match side {
            Side::Left => nodes[parent].left = slot,
            Side::Right => nodes[parent].right = slot,
        }
        if G::KEPT {
            self.summarise_up(nodes, parent, parent);
        }
        self.rebalance_after_insertion(nodes, slot);
    }

    fn unthread<G: Augment, A>(&mut self, nodes: &mut A, node: &Node<G>)
    where
        A: IndexMut<Slot> + Index<Slot, Output = Node<G>>,
    {
        match node.prev {
            NIL => self.first = node.next,
            prev => nodes[prev].next = node.next,
        }
        match node.next {
            NIL => self.last = node.prev,
            next => nodes[next].prev = node.prev,
        }
    }

    fn replace_child<G: Augment, A>(&mut self, nodes: &mut A, parent: Slot, child: Slot, with: Slot)
    where
        A: IndexMut<Slot> + Index<Slot, Output = Node<G>>,
    {
        if parent == NIL {
            self.root = with;
        } else if nodes[parent].left == child {
            nodes[parent].left = with;
        } else {
            nodes[parent].right = with;
        }
        if with != NIL {
            nodes[with].parent = parent;
        }
    }

    /// Turns the edge between `slot` and its child on the other side, so that `slot` goes down to `side`.
    fn rotate<G: Augment, A>(&mut self, nodes: &mut A, slot: Slot, side: Side)
    where
        A: IndexMut<Slot> + Index<Slot, Output = Node<G>>,
    {
        let parent = nodes[slot].parent;
        let riser = child(nodes, slot, side.other());
        let inner = child(nodes, riser, side);
        set_child(nodes, slot, side.other(), inner);
        if inner != NIL {
            nodes[inner].parent = slot;
        }
        self.replace_child(nodes, parent, slot, riser);
        set_child(nodes, riser, side, slot);
        nodes[slot].parent = riser;
        if G::KEPT {
            summarise(nodes, slot);
            summarise(nodes, riser);
        }
    }

    fn rebalance_after_insertion<G: Augment, A>(&mut self, nodes: &mut A, mut slot: Slot)
    where
        A: IndexMut<Slot> + Index<Slot, Output = Node<G>>,
    {
        loop {
            let parent = nodes[slot].parent;
            if parent == NIL || !nodes[parent].red {
                break;
            }
            let grand = nodes[parent].parent;
            if grand == NIL {
                break;
            }
            let side = side_of(nodes, grand, parent);
            let uncle = child(nodes, grand, side.other());
            if uncle != NIL && nodes[uncle].red {
                nodes[parent].red = false;
                nodes[uncle].red = false;
                nodes[grand].red = true;
                slot = grand;
                continue;
            }
            let mut top = parent;
            if side_of(nodes, parent, slot) != side {
                self.rotate(nodes, parent, side);
                top = slot;
            }
            nodes[top].red = false;
            nodes[grand].red = true;
            self.rotate(nodes, grand, side.other());
            break;
        }
        let root = self.root;
        nodes[root].red = false;
    }

    /// `hole` (perhaps [`NIL`]) under `above` is one black short.
    fn rebalance_after_removal<G: Augment, A>(&mut self, nodes: &mut A, mut hole: Slot, mut above: Slot)
    where
        A: IndexMut<Slot> + Index<Slot, Output = Node<G>>,
    {
        while above != NIL && (hole == NIL || !nodes[hole].red) {
            let side = if nodes[above].left == hole { Side::Left } else { Side::Right };
            let mut sibling = child(nodes, above, side.other());
            if sibling == NIL {
                debug_assert!(false, "a node that is one black short has a sibling");
                return;
            }
            if nodes[sibling].red {
                nodes[sibling].red = false;
                nodes[above].red = true;
                self.rotate(nodes, above, side);
                sibling = child(nodes, above, side.other());
            }
            let (near, far) = (child(nodes, sibling, side), child(nodes, sibling, side.other()));
            let is_red = |nodes: &A, slot: Slot| slot != NIL && nodes[slot].red;
            if !is_red(nodes, near) && !is_red(nodes, far) {
                nodes[sibling].red = true;
                hole = above;
                above = nodes[above].parent;
                continue;
            }
            if !is_red(nodes, far) {
                nodes[near].red = false;
                nodes[sibling].red = true;
                self.rotate(nodes, sibling, side.other());
                sibling = near;
            }
            nodes[sibling].red = nodes[above].red;
            nodes[above].red = false;
            let far = child(nodes, sibling, side.other());
            if far != NIL {
                nodes[far].red = false;
            }
            self.rotate(nodes, above, side);
            return;
        }
        if hole != NIL {
            nodes[hole].red = false;
        }
    }

    /// Brings the summaries up to date from `slot` upwards: at least up to `must_reach`, then as long as they change.
    fn summarise_up<G: Augment, A>(&self, nodes: &mut A, mut slot: Slot, must_reach: Slot)
    where
        A: IndexMut<Slot> + Index<Slot, Output = Node<G>>,
    {
        let mut reached = false;
        while slot != NIL {
            let before = nodes[slot].summary;
            summarise(nodes, slot);
            reached |= slot == must_reach;
            if reached && nodes[slot].summary == before {
                return;
            }
            slot = nodes[slot].parent;
        }
    }
}

/// Where a search from the root ended that goes by an order of its own.
#[derive(Clone, Copy, Debug)]
pub struct Descent {
    /// The node that is what was searched for, the first to be met, or [`NIL`].
    pub found: Slot,
    /// The last node that was met otherwise, or [`NIL`]: a neighbour of what was searched for, on either side.
    pub last: Slot,
    /// The node after which it would stand, or [`NIL`] if before all.
    pub before: Slot,
}

impl Tree {
    /// Goes down from the root; `order` says how what is searched for compares to a node. Which of two neighbours is met last, and which
    /// of several equals first, depends on the shape of the tree: it is the textbook's.
    pub fn descend<G: Augment, A>(&self, nodes: &A, mut order: impl FnMut(Slot) -> Ordering) -> Descent
    where
        A: Index<Slot, Output = Node<G>>,
    {
        let mut ended = Descent { found: NIL, last: NIL, before: NIL };
        let mut at = self.root;
        while at != NIL {
            match order(at) {
                Ordering::Equal => {
                    ended.found = at;
                    break;
                }
                Ordering::Less => (ended.last, at) = (at, nodes[at].left),
                Ordering::Greater => (ended.last, ended.before, at) = (at, at, nodes[at].right),
            }
        }
        ended
    }
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

#[inline]
fn child<G: Augment, A: Index<Slot, Output = Node<G>>>(nodes: &A, slot: Slot, side: Side) -> Slot {
    match side {
        Side::Left => nodes[slot].left,
        Side::Right => nodes[slot].right,
    }
}

#[inline]
fn set_child<G: Augment, A>(nodes: &mut A, slot: Slot, side: Side, child: Slot)
where
    A: IndexMut<Slot> + Index<Slot, Output = Node<G>>,
{
    match side {
        Side::Left => nodes[slot].left = child,
        Side::Right => nodes[slot].right = child,
    }
}

#[inline]
fn side_of<G: Augment, A: Index<Slot, Output = Node<G>>>(nodes: &A, parent: Slot, slot: Slot) -> Side {
    if nodes[parent].left == slot { Side::Left } else { Side::Right }
}

fn summarise<G: Augment, A>(nodes: &mut A, slot: Slot)
where
    A: IndexMut<Slot> + Index<Slot, Output = Node<G>>,
{
    let node = nodes[slot];
    let of = |slot: Slot| if slot == NIL { None } else { Some(nodes[slot].summary) };
    let summary = G::summary(node.key, node.value, of(node.left), of(node.right));
    nodes[slot].summary = summary;
}

#[cfg(test)]
mod tests;
