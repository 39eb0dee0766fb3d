//! Hash chains through the entries of an arena, newest entry first.

use core::ops::DerefMut;

use super::{Arena, Link, LinkOf, NIL, Slot};

/// Hash buckets of chains through the links `K` of entries.
///
/// The bucket of a key is not observable: entries with equal keys are in one chain, newest first.
#[derive(Debug)]
pub struct HashChains<S> {
    buckets: S,
    mask: u64,
}

impl<S: DerefMut<Target = [u32]>> HashChains<S> {
    /// Takes the storage of the buckets. Only the largest power of two that fits is used.
    pub fn new(mut buckets: S) -> Self {
        buckets.fill(NIL);
        // The mask of the largest power of two 2^n that does not exceed the number of buckets: 2^n
        // - 1.
        let mask = match (buckets.len() as u64).checked_ilog2() {
            Some(bits) => 1u64.checked_shl(bits).unwrap_or(1).saturating_sub(1),
            None => 0,
        };
        HashChains { buckets, mask }
    }

    /// Returns the storage.
    pub fn into_slots(self) -> S {
        self.buckets
    }

    /// The newest entry of the chain of `key`, or [`NIL`]. The chain may contain other keys.
    #[inline]
    pub fn first(&self, key: u64) -> Slot {
        self.buckets.get(self.bucket(key)).copied().unwrap_or(NIL)
    }

    /// Adds `slot` under `key` at the head of its chain.
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

    /// Removes `slot`, which was added under `key`, from its chain.
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

    /// Multiplication by 2^64 / golden ratio spreads keys that differ in few bits.
    #[inline]
    fn bucket(&self, key: u64) -> usize {
        ((key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) & self.mask) as usize
    }
}
