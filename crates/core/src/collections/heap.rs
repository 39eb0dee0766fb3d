//! A heap of entries whose keys are compared relative to a moving base, in insertion order among
//! equals.
//!
//! Each node has four children (Johnson 1975; LaMarca and Ladner 1996 on caches). The four are one
//! cache line. An insertion costs O(1) on average for keys in random order and O(log N) in the
//! worst case; removing the first entry costs O(log N).

use core::hint::select_unpredictable;
use core::ops::DerefMut;

use super::{Count, NIL, Slot};

/// An entry of a heap.
#[derive(Clone, Copy, Debug, Default)]
struct HeapEntry {
    key: u64,
    /// The insertion count, which orders equal keys, in the upper half; the slot in the lower.
    order_and_slot: u64,
}

impl HeapEntry {
    #[inline]
    fn slot(self) -> Slot {
        self.order_and_slot as Slot
    }
}

const CHILDREN: usize = 4;

/// The four children of one node. The first of a heap holds only the root.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub struct Siblings([HeapEntry; CHILDREN]);

/// A heap. Keys are compared by their distance above a base (modulo 2^64). The base may move as
/// long as the order of the contained entries does not change.
#[derive(Debug)]
pub struct Heap<S> {
    siblings: S,
    len: u32,
    order: u32,
    last: HeapEntry,
}

impl<S: DerefMut<Target = [Siblings]>> Heap<S> {
    /// The length of the storage for this number of entries.
    pub const fn table_len(entries: u32) -> u32 {
        // The root, and the others by four.
        entries.div_ceil(CHILDREN as u32).saturating_add(1)
    }

    /// Takes the storage.
    pub fn new(siblings: S) -> Self {
        Heap { siblings, len: 0, order: 0, last: HeapEntry::default() }
    }

    /// The capacity in entries.
    pub fn capacity(&self) -> u32 {
        let below_root = self.siblings.len().saturating_sub(1).saturating_mul(CHILDREN);
        u32::try_from(below_root).unwrap_or(u32::MAX)
    }

    /// Returns true if the heap is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first entry in order, or [`NIL`].
    #[inline]
    pub fn first(&self) -> Slot {
        if self.len == 0 { NIL } else { self.at(0).slot() }
    }

    /// The last entry in order, or [`NIL`].
    #[inline]
    pub fn last(&self) -> Slot {
        if self.len == 0 { NIL } else { self.last.slot() }
    }

    /// All entries, in no order.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        (0..self.len as usize).map(|index| self.at(index).slot())
    }

    /// The keys of the first and last entry; meaningless for an empty heap.
    #[inline]
    pub fn key_range(&self) -> (u64, u64) {
        (self.at(0).key, self.last.key)
    }

    /// Adds `slot`. Returns false if the heap is full.
    #[inline(never)]
    pub fn push(&mut self, key: u64, slot: Slot, base: u64) -> bool {
        if self.len >= self.capacity() {
            debug_assert!(false, "the heap has room for all requests");
            return false;
        }
        self.order = self.order.wrapping_add(1);
        let entry = HeapEntry { key, order_and_slot: (u64::from(self.order) << 32) | u64::from(slot) };
        if self.len == 0 || key.wrapping_sub(base) >= self.last.key.wrapping_sub(base) {
            self.last = entry;
        }
        let hole = self.len as usize;
        self.len.increment();
        self.rise(hole, entry, base);
        true
    }

    /// Removes and returns the first entry, or [`NIL`].
    #[inline(never)]
    pub fn pop(&mut self, base: u64) -> Slot {
        if self.len == 0 {
            return NIL;
        }
        let first = self.at(0).slot();
        self.len.decrement();
        let (len, moved) = (self.len as usize, self.at(self.len as usize));
        // The hole sinks to the bottom, where the replacement nearly always belongs (Wegener 1993).
        let mut hole = 0usize;
        loop {
            let eldest = hole.wrapping_mul(CHILDREN).wrapping_add(1);
            let Some(Siblings(siblings)) = self.siblings.get(hole.wrapping_add(1)) else { break };
            let (child, entry) = if eldest.wrapping_add(CHILDREN) <= len {
                self.least_of_four(siblings, base)
            } else if eldest < len {
                self.least_of(siblings, len.wrapping_sub(eldest), base)
            } else {
                break;
            };
            self.set(hole, entry);
            hole = eldest.wrapping_add(child);
        }
        self.rise(hole, moved, base);
        first
    }

    /// Puts `entry` into the hole, after moving down the entries that it precedes on the way up.
    #[inline]
    fn rise(&mut self, mut hole: usize, entry: HeapEntry, base: u64) {
        let rank = self.rank(&entry, base);
        while hole > 0 {
            let parent = hole.saturating_sub(1) / CHILDREN;
            let above = self.at(parent);
            if rank >= self.rank(&above, base) {
                break;
            }
            self.set(hole, above);
            hole = parent;
        }
        self.set(hole, entry);
    }

    /// The least of four siblings, with its number. It is unpredictable: avoid branches.
    #[inline(always)]
    fn least_of_four(&self, siblings: &[HeapEntry; CHILDREN], base: u64) -> (usize, HeapEntry) {
        let [a, b, c, d] = siblings;
        let lesser = |(i, one): (usize, &HeapEntry), (j, other): (usize, &HeapEntry)| {
            let is_less = self.rank(other, base) < self.rank(one, base);
            let key = select_unpredictable(is_less, other.key, one.key);
            let order_and_slot = select_unpredictable(is_less, other.order_and_slot, one.order_and_slot);
            (select_unpredictable(is_less, j, i), HeapEntry { key, order_and_slot })
        };
        let ((i, one), (j, other)) = (lesser((0, a), (1, b)), lesser((2, c), (3, d)));
        lesser((i, &one), (j, &other))
    }

    /// The least of the first siblings, of which the last node has fewer than four.
    #[inline(always)]
    fn least_of(&self, siblings: &[HeapEntry; CHILDREN], count: usize, base: u64) -> (usize, HeapEntry) {
        let [eldest, ..] = siblings;
        let mut least = (0, *eldest);
        for (i, sibling) in (1..CHILDREN).zip(siblings.iter().take(count).skip(1)) {
            if self.rank(sibling, base) < self.rank(&least.1, base) {
                least = (i, *sibling);
            }
        }
        least
    }

    /// The sort key of an entry: the distance of its key above the base, then its insertion count.
    #[inline(always)]
    fn rank(&self, entry: &HeapEntry, base: u64) -> u128 {
        // The insertion count wraps around, so it is compared relative to the latest one.
        let since = entry.order_and_slot.wrapping_sub((u64::from(self.order) << 32).wrapping_add(1 << 32));
        (u128::from(entry.key.wrapping_sub(base)) << 64) | u128::from(since)
    }

    #[inline(always)]
    fn at(&self, index: usize) -> HeapEntry {
        let (node, sibling) = position(index);
        self.siblings.get(node).and_then(|siblings| siblings.0.get(sibling)).copied().unwrap_or_default()
    }

    #[inline(always)]
    fn set(&mut self, index: usize, entry: HeapEntry) {
        let (node, sibling) = position(index);
        if let Some(place) = self.siblings.get_mut(node).and_then(|siblings| siblings.0.get_mut(sibling)) {
            *place = entry;
        }
    }
}

/// The siblings among which an entry is, and its number among them. The root is the last of its
/// siblings, so that the children of entry N are siblings N + 1.
#[inline(always)]
fn position(index: usize) -> (usize, usize) {
    let shifted = index.wrapping_add(CHILDREN.wrapping_sub(1));
    (shifted / CHILDREN, shifted % CHILDREN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_heap_returns_a_stable_sort_from_its_base() {
        let (mut state, base) = (9u64, 700);
        let mut storage = [Siblings::default(); Heap::<&mut [Siblings]>::table_len(300) as usize];
        let mut heap = Heap::new(&mut storage[..]);
        assert_eq!(heap.capacity(), 300);
        let mut expected: Vec<(u64, Slot)> = Vec::new();
        for step in 0..20_000u32 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if expected.len() < 300 && state % 5 < 3 {
                let rank = (state >> 8) % 1000;
                let position = expected.iter().take_while(|e| e.0 <= rank).count();
                expected.insert(position, (rank, step));
                assert!(heap.push(rank.wrapping_add(base), step, base));
            } else if !expected.is_empty() {
                assert_eq!(heap.pop(base), expected.remove(0).1);
            }
            assert_eq!(heap.first(), expected.first().map_or(NIL, |e| e.1));
            assert_eq!(heap.last(), expected.last().map_or(NIL, |e| e.1));
        }
    }
}
