//! A table whose slots are reused.

/// Entries by slot number; a freed number is used again.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    pub fn new() -> Self {
        Slab { entries: Vec::new(), free: Vec::new() }
    }

    pub fn insert(&mut self, entry: T) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        }
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> u32 {
        (self.entries.len() - self.free.len()) as u32
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get_mut(&mut self, slot: u32) -> &mut T {
        &mut self.entries[slot as usize]
    }

    /// Removes and returns an entry.
    pub fn remove(&mut self, slot: u32) -> T {
        self.free.push(slot);
        self.entries[slot as usize]
    }
}
