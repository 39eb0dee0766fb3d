//! A fixed first-in first-out ring.

use core::ops::DerefMut;

use super::Count;

/// A first-in first-out ring over fixed storage.
#[derive(Debug)]
pub struct Ring<T, S> {
    slots: S,
    head: u32,
    len: u32,
    nil: core::marker::PhantomData<T>,
}

impl<T: Copy + Default, S: DerefMut<Target = [T]>> Ring<T, S> {
    /// Takes the storage.
    pub fn new(slots: S) -> Self {
        Ring { slots, head: 0, len: 0, nil: core::marker::PhantomData }
    }

    /// Appends `value`. Returns false if the ring is full.
    pub fn push(&mut self, value: T) -> bool {
        if self.len as usize >= self.slots.len() {
            return false;
        }
        let at = self.wrap(self.head.saturating_add(self.len));
        if let Some(slot) = self.slots.get_mut(at as usize) {
            *slot = value;
        }
        self.len.increment();
        true
    }

    /// Returns true if the ring has no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes and returns the oldest entry.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let value = self.slots.get(self.head as usize).copied();
        self.head = self.wrap(self.head.saturating_add(1));
        self.len.decrement();
        value
    }

    fn wrap(&self, at: u32) -> u32 {
        let len = self.slots.len() as u32;
        if at >= len { at.saturating_sub(len) } else { at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_refuses_and_keeps_order() {
        let mut storage = [0u8; 2];
        let mut ring = Ring::new(&mut storage[..]);
        assert!(ring.push(1) && ring.push(2) && !ring.push(3));
        assert_eq!(
            (ring.pop(), ring.push(3), ring.pop(), ring.pop(), ring.pop()),
            (Some(1), true, Some(2), Some(3), None)
        );
    }
}
