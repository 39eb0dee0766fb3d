//! A fixed table of entries whose look-ups cannot fail.

use core::ops::{DerefMut, Index, IndexMut};

/// The index of an entry in its [`Arena`].
pub type Slot = u32;

/// The index of no entry.
pub const NIL: Slot = Slot::MAX;

/// A fixed table of entries, indexed by [`Slot`]; `S` is the storage (`&mut [T]` or `Box<[T]>`).
///
/// Reading out of range returns a default entry, or the last value written out of range. Both are
/// errors of the caller, which debug assertions catch where they matter; neither panics.
#[derive(Debug)]
pub struct Arena<T, S> {
    slots: S,
    nil: T,
}

impl<T: Copy + Default, S: DerefMut<Target = [T]>> Arena<T, S> {
    /// Takes the storage and resets every entry.
    pub fn new(mut slots: S) -> Self {
        slots.fill(T::default());
        Arena { slots, nil: T::default() }
    }

    /// The number of entries, at most `u32::MAX - 1`.
    pub fn capacity(&self) -> u32 {
        let len = self.slots.len();
        if len >= NIL as usize { NIL - 1 } else { len as u32 }
    }

    /// Returns the storage.
    pub fn into_slots(self) -> S {
        self.slots
    }

    /// The entry at `slot`, mutable, if it exists. [`NIL`] is out of range, so one test covers both
    /// cases.
    #[inline(always)]
    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        self.slots.get_mut(slot as usize)
    }

    /// All entries, for code that performs many look-ups.
    #[inline(always)]
    pub fn entries(&self) -> &[T] {
        &self.slots
    }

    /// All entries, mutable.
    #[inline(always)]
    pub fn entries_mut(&mut self) -> &mut [T] {
        &mut self.slots
    }
}

impl<T: Copy + Default, S: DerefMut<Target = [T]>> Index<Slot> for Arena<T, S> {
    type Output = T;

    #[inline(always)]
    fn index(&self, slot: Slot) -> &T {
        match self.slots.get(slot as usize) {
            Some(entry) => entry,
            None => &self.nil,
        }
    }
}

impl<T: Copy + Default, S: DerefMut<Target = [T]>> IndexMut<Slot> for Arena<T, S> {
    #[inline(always)]
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        match self.slots.get_mut(slot as usize) {
            Some(entry) => entry,
            None => clean(&mut self.nil),
        }
    }
}

/// Resets the entry that stands for all slots out of range. A separate function, as default entries
/// can be large.
#[cold]
#[inline(never)]
fn clean<T: Default>(nil: &mut T) -> &mut T {
    *nil = T::default();
    nil
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_up_out_of_range_reads_a_default_and_forgets_writes() {
        let mut storage = [7u64; 2];
        let mut arena = Arena::new(&mut storage[..]);
        arena[1] = 9;
        arena[5] = 11;
        assert_eq!((arena[0], arena[1], arena[NIL]), (0, 9, 11), "the entry for NIL keeps the last write");
        arena[NIL] += 1;
        assert_eq!(arena[NIL], 1, "each mutable look-up of NIL resets the entry");
    }
}
