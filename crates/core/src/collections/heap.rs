//! A heap of entries whose keys are compared relative to a moving base, in insertion order among
//! equals.
//!
//! Each node has four children (Johnson 1975; LaMarca and Ladner 1996 on caches), so that siblings
//! share a cache line. An insertion costs O(1) on average for keys in random order and O(log N) in
//! the worst case; removing the first entry costs O(log N).

use core::hint::select_unpredictable;
use core::ops::DerefMut;

use super::Count;
use super::{NIL, Slot};

/// An entry of a heap.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeapEntry {
    key: u64,
    /// The insertion count, which orders equal keys.
    order: u32,
    slot: Slot,
}

/// A heap. Keys are compared by their distance above a base (modulo 2^64). The base may move as
/// long as the order of the contained entries does not change.
#[derive(Debug)]
pub struct Heap<S> {
    entries: S,
    len: u32,
    order: u32,
    last: HeapEntry,
}

const CHILDREN: usize = 4;

impl<S: DerefMut<Target = [HeapEntry]>> Heap<S> {
    /// Takes the storage.
    pub fn new(entries: S) -> Self {
        Heap { entries, len: 0, order: 0, last: HeapEntry::default() }
    }

    /// The capacity in entries.
    pub fn capacity(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    /// Returns true if the heap is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first entry in order, or [`NIL`].
    #[inline]
    pub fn first(&self) -> Slot {
        if self.len == 0 { NIL } else { self.at(0).slot }
    }

    /// The last entry in order, or [`NIL`].
    #[inline]
    pub fn last(&self) -> Slot {
        if self.len == 0 { NIL } else { self.last.slot }
    }

    /// All entries, in no order.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.entries.iter().take(self.len as usize).map(|entry| entry.slot)
    }

    /// The keys of the first and last entry; meaningless for an empty heap.
    #[inline]
    pub fn key_range(&self) -> (u64, u64) {
        (self.at(0).key, self.last.key)
    }

    /// Adds `slot`. Returns false if the heap is full.
    #[inline(never)]
    pub fn push(&mut self, key: u64, slot: Slot, base: u64) -> bool {
        if self.len as usize >= self.entries.len() {
            debug_assert!(false, "the heap has room for all requests");
            return false;
        }
        self.order = self.order.wrapping_add(1);
        let entry = HeapEntry { key, order: self.order, slot };
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
        let first = self.at(0).slot;
        self.len.decrement();
        let (len, moved) = (self.len as usize, self.at(self.len as usize));
        // The hole sinks to the bottom, where the replacement nearly always belongs (Wegener 1993).
        let mut hole = 0usize;
        while let Some((child, entry)) = self.least_child(hole, len, base) {
            self.set(hole, entry);
            hole = child;
        }
        self.rise(hole, moved, base);
        first
    }

    /// Puts `entry` into the hole, after moving down the entries that it precedes on the way up.
    #[inline]
    fn rise(&mut self, mut hole: usize, entry: HeapEntry, base: u64) {
        while hole > 0 {
            let parent = hole.saturating_sub(1) / CHILDREN;
            let above = self.at(parent);
            if !self.rank(&entry, base).is_below(self.rank(&above, base)) {
                break;
            }
            self.set(hole, above);
            hole = parent;
        }
        self.set(hole, entry);
    }

    #[inline]
    fn least_child(&self, parent: usize, len: usize, base: u64) -> Option<(usize, HeapEntry)> {
        let from = parent.saturating_mul(CHILDREN).saturating_add(1);
        let children = self.entries.get(from..from.saturating_add(CHILDREN).min(len))?;
        let (mut least, mut lowest) = (0usize, self.rank(children.first()?, base));
        for (i, child) in (1..CHILDREN).zip(children.iter().skip(1)) {
            let rank = self.rank(child, base);
            // The smallest child is unpredictable: avoid a branch.
            let precedes = rank.is_below(lowest);
            least = select_unpredictable(precedes, i, least);
            lowest.above = select_unpredictable(precedes, rank.above, lowest.above);
            lowest.since = select_unpredictable(precedes, rank.since, lowest.since);
        }
        Some((from.saturating_add(least), *children.get(least)?))
    }

    #[inline(always)]
    fn rank(&self, entry: &HeapEntry, base: u64) -> Rank {
        // The insertion count wraps around, so it is compared relative to the latest one.
        let since = entry.order.wrapping_sub(self.order).wrapping_sub(1);
        Rank { above: entry.key.wrapping_sub(base), since }
    }

    #[inline]
    fn at(&self, index: usize) -> HeapEntry {
        self.entries.get(index).copied().unwrap_or_default()
    }

    #[inline]
    fn set(&mut self, index: usize, entry: HeapEntry) {
        if let Some(position) = self.entries.get_mut(index) {
            *position = entry;
        }
    }
}

/// The sort key of an entry: the distance of its key above the base, then its insertion count.
#[derive(Clone, Copy)]
struct Rank {
    above: u64,
    since: u32,
}

impl Rank {
    #[inline(always)]
    fn is_below(self, other: Rank) -> bool {
        (self.above < other.above) | ((self.above == other.above) & (self.since < other.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_heap_returns_a_stable_sort_from_its_base() {
        let (mut state, base) = (9u64, 700);
        let mut storage = [HeapEntry::default(); 300];
        let mut heap = Heap::new(&mut storage[..]);
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
