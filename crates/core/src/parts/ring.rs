//! A fixed first-in first-out ring.

use core::ops::DerefMut;

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

    /// The number of entries that wait.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends `value`; answers whether there was room.
    pub fn push(&mut self, value: T) -> bool {
        let at = self.wrap(self.head.saturating_add(self.len));
        match self.slots.get_mut(at as usize) {
            Some(slot) if self.len < Self::limit(self.head, at, self.len) => *slot = value,
            _ => return false,
        }
        self.len = self.len.saturating_add(1);
        true
    }

    /// Takes the oldest entry.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let value = self.slots.get(self.head as usize).copied();
        self.head = self.wrap(self.head.saturating_add(1));
        self.len = self.len.saturating_sub(1);
        value
    }

    /// Gives the storage back.
    pub fn into_slots(self) -> S {
        self.slots
    }

    fn wrap(&self, at: u32) -> u32 {
        let len = self.slots.len() as u32;
        if at >= len { at.saturating_sub(len) } else { at }
    }

    /// A full ring's next place is its head: only an empty one may write there.
    fn limit(head: u32, at: u32, len: u32) -> u32 {
        if at == head && len > 0 { 0 } else { u32::MAX }
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
        assert_eq!((ring.pop(), ring.push(3), ring.pop(), ring.pop(), ring.pop()), (Some(1), true, Some(2), Some(3), None));
    }
}
