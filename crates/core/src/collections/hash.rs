//! Hash chains through the entries of an arena, newest entry first.

use core::ops::DerefMut;

use super::{Arena, Link, LinkOf, NIL, Slot};

/// Buckets of chains through the links `K` of entries; within a chain the newest entry comes first.
///
/// Which bucket a key falls into never shows: entries of one key lie in one chain, in the order in which they came.
#[derive(Debug)]
pub struct HashChains<S> {
    buckets: S,
    mask: u64,
}

impl<S: DerefMut<Target = [u32]>> HashChains<S> {
    /// Takes the storage of the buckets; only the largest power of two of them that fits is used.
    pub fn new(mut buckets: S) -> Self {
        buckets.fill(NIL);
        // The mask of the largest power of two that is not above the number of buckets: 2^n - 1 for 2^n.
        let mask = match (buckets.len() as u64).checked_ilog2() {
            Some(bits) => 1u64.checked_shl(bits).unwrap_or(1).saturating_sub(1),
            None => 0,
        };
        HashChains { buckets, mask }
    }

    /// Gives the storage back.
    pub fn into_slots(self) -> S {
        self.buckets
    }

    /// The newest entry of the chain that `key` falls into, or [`NIL`]. The chain may hold other keys too.
    #[inline]
    pub fn first(&self, key: u64) -> Slot {
        self.buckets.get(self.bucket(key)).copied().unwrap_or(NIL)
    }

    /// Files `slot` under `key`, before all others.
    #[inline]
    pub fn insert<K, T, R>(&mut self, arena: &mut Arena<T, R>, key: u64, slot: Slot)
    where
        K: LinkOf<T>,
        T: Copy + Default,
        R: DerefMut<Target = [T]>,
    {
        let bucket = self.bucket(key);
        if let Some(head) = self.buckets.get_mut(bucket) {
            let next = core::mem::replace(head, slot);
            *K::link_mut(&mut arena[slot]) = Link { prev: NIL, next };
            if let Some(next) = arena.get_mut(next) {
                K::link_mut(next).prev = slot;
            }
        }
    }

    /// Takes `slot`, which was filed under `key`, out of its chain.
    #[inline]
    pub fn remove<K, T, R>(&mut self, arena: &mut Arena<T, R>, key: u64, slot: Slot)
    where
        K: LinkOf<T>,
        T: Copy + Default,
        R: DerefMut<Target = [T]>,
    {
        let Link { prev, next } = core::mem::take(K::link_mut(&mut arena[slot]));
        if let Some(before) = arena.get_mut(prev) {
            K::link_mut(before).next = next;
        } else {
            let bucket = self.bucket(key);
            if let Some(head) = self.buckets.get_mut(bucket) {
                *head = next;
            }
        }
        if let Some(after) = arena.get_mut(next) {
            K::link_mut(after).prev = prev;
        }
    }

    /// Multiplying by 2^64 over the golden ratio spreads keys that differ in few bits.
    #[inline]
    fn bucket(&self, key: u64) -> usize {
        ((key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) & self.mask) as usize
    }
}
