//! The tree against a plain vector.

use std::vec::Vec;

use super::super::Arena;
use super::*;

/// A few thousand pseudo-random numbers without a dependency (xorshift, Marsaglia 2003).
fn numbers(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}

fn check<G: Augment>(tree: &Tree, nodes: &Arena<Node<G>, &mut [Node<G>]>, expected: &[(Slot, u64)]) {
    let mut seen = 0;
    let (mut at, mut before) = (tree.first(), NIL);
    while at != NIL {
        assert_eq!((at, nodes[at].key()), expected[seen]);
        assert_eq!(nodes[at].prev(), before);
        (before, at, seen) = (at, nodes[at].next(), seen + 1);
    }
    assert_eq!((seen, before), (expected.len(), tree.last()));
    black_height(nodes, tree.root, NIL);
}

fn black_height<G: Augment>(nodes: &Arena<Node<G>, &mut [Node<G>]>, slot: Slot, parent: Slot) -> u32 {
    if slot == NIL {
        return 1;
    }
    let node = &nodes[slot];
    assert_eq!(node.parent, parent);
    for child in [node.left(), node.right()] {
        assert!(child == NIL || !(node.red && nodes[child].red), "no red node has a red child");
    }
    let (left, right) = (black_height(nodes, node.left(), slot), black_height(nodes, node.right(), slot));
    assert_eq!(left, right, "every path has as many black nodes");
    left + u32::from(!node.red)
}

#[test]
fn a_tree_by_key_is_a_stable_sort() {
    let mut storage = [Node::<()>::default(); 200];
    let mut nodes = Arena::new(&mut storage[..]);
    let (mut tree, mut expected, mut random) = (Tree::default(), Vec::new(), numbers(7));
    for _ in 0..20_000 {
        let slot = random(200) as Slot;
        if let Some(at) = expected.iter().position(|&(s, _)| s == slot) {
            expected.remove(at);
            tree.remove(&mut nodes, slot);
        } else {
            let key = random(60);
            expected.insert(expected.iter().take_while(|&&(_, k)| k <= key).count(), (slot, key));
            tree.insert(&mut nodes, slot, key);
        }
        check(&tree, &nodes, &expected);
        let key = random(60);
        let not_below = expected.iter().find(|&&(_, k)| k >= key);
        assert_eq!(tree.first_not_below(&nodes, key), not_below.map_or(NIL, |e| e.0));
        assert_eq!(tree.find(&nodes, key), not_below.filter(|e| e.1 == key).map_or(NIL, |e| e.0));
    }
}

#[test]
fn a_sequence_keeps_its_positions_and_finds_the_last_key_below_a_bound() {
    let mut storage = [Node::<Least>::default(); 100];
    let mut nodes = Arena::new(&mut storage[..]);
    let (mut tree, mut expected, mut random) = (Tree::default(), Vec::<(Slot, u64)>::new(), numbers(11));
    for _ in 0..20_000 {
        let slot = random(100) as Slot;
        if let Some(at) = expected.iter().position(|&(s, _)| s == slot) {
            expected.remove(at);
            tree.remove(&mut nodes, slot);
        } else {
            let (position, key) = (random(expected.len() as u64 + 1) as usize, random(50));
            let before = if position == 0 { NIL } else { expected[position - 1].0 };
            expected.insert(position, (slot, key));
            tree.insert_after(&mut nodes, before, slot, key);
        }
        check(&tree, &nodes, &expected);
        let bound = random(52);
        let last = expected.iter().rev().find(|&&(_, k)| k < bound);
        assert_eq!(tree.last_below(&nodes, bound), last.map_or(NIL, |e| e.0));
    }
}

#[test]
fn a_tree_with_ranges_finds_the_last_key_outside_a_range() {
    let mut storage = [Node::<Range>::default(); 100];
    let mut nodes = Arena::new(&mut storage[..]);
    let (mut tree, mut expected, mut random) = (Tree::default(), Vec::<(Slot, u64)>::new(), numbers(13));
    for _ in 0..20_000 {
        let slot = random(100) as Slot;
        if let Some(at) = expected.iter().position(|&(s, _)| s == slot) {
            expected.remove(at);
            tree.remove(&mut nodes, slot);
        } else {
            let (position, key) = (random(expected.len() as u64 + 1) as usize, random(50));
            let before = if position == 0 { NIL } else { expected[position - 1].0 };
            expected.insert(position, (slot, key));
            tree.insert_after(&mut nodes, before, slot, key);
        }
        let (from, to) = (random(30), 20 + random(32));
        let last = expected.iter().rev().find(|&&(_, k)| k < from || k > to);
        let found = tree.last_matching(&nodes, |range: Range| range.least < from || range.greatest > to);
        assert_eq!(found, last.map_or(NIL, |e| e.0));
    }
}

#[test]
fn a_shortcut_of_an_insertion_gives_the_textbook_s_tree() {
    // Three trees over the same keys: by descents from the root, with the shortcut for the last
    // position, and at the end of a search.
    let mut storage = [[Node::<()>::default(); 100]; 3];
    let [one, two, three] = &mut storage;
    let (mut one, mut two, mut three) =
        (Arena::new(&mut one[..]), Arena::new(&mut two[..]), Arena::new(&mut three[..]));
    let [mut by_key, mut late, mut searched] = [Tree::default(); 3];
    let (mut filed, mut random) = ([false; 100], numbers(11));
    for step in 0..10_000u64 {
        let slot = random(100);
        let at = slot as usize;
        let slot = slot as Slot;
        if core::mem::take(&mut filed[at]) {
            by_key.remove(&mut one, slot);
            late.remove(&mut two, slot);
            searched.remove(&mut three, slot);
        } else {
            // Mostly behind all others, and never equal to another.
            let key = if random(4) == 0 { random(step + 1) * 128 } else { step * 128 } + u64::from(slot);
            filed[at] = true;
            by_key.insert(&mut one, slot, key);
            late.insert_late(&mut two, slot, key, ());
            let end = searched.descend(&three, key, |_, _| true);
            assert_eq!(end.found, NIL);
            searched.insert_at(&mut three, end, slot, key);
        }
        for other in 0..100 {
            let links = |node: &Node| (node.key, node.parent, node.children, node.prev, node.next, node.red);
            assert_eq!(links(&one[other]), links(&two[other]));
            assert_eq!(links(&one[other]), links(&three[other]));
        }
        let ends = |tree: &Tree| (tree.root, tree.first, tree.last);
        assert_eq!((ends(&by_key), ends(&by_key)), (ends(&late), ends(&searched)));
    }
}
