//! A table of connections by ID. A reused slot has another generation, so that the ID of a closed
//! connection finds nothing.

use crate::engine::ConnId;

/// A table of connections.
#[derive(Debug)]
pub(crate) struct Table<C> {
    slots: Vec<Slot<C>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<C> {
    generation: u32,
    connection: Option<C>,
}

impl<C> Table<C> {
    pub fn new() -> Table<C> {
        Table { slots: Vec::new(), free: Vec::new() }
    }

    /// Adds a connection.
    pub fn insert(&mut self, connection: C) -> ConnId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, connection: None });
            (self.slots.len() - 1) as u32
        });
        let entry = &mut self.slots[slot as usize];
        entry.connection = Some(connection);
        ConnId { slot, generation: entry.generation }
    }

    /// Returns the connection with an ID, unless it was removed.
    pub fn get(&mut self, id: ConnId) -> Option<&mut C> {
        self.slots.get_mut(id.slot as usize).filter(|entry| entry.generation == id.generation)?.connection.as_mut()
    }

    /// Returns the connection in a slot, and its ID.
    pub fn at(&mut self, slot: u32) -> Option<(ConnId, &mut C)> {
        let entry = self.slots.get_mut(slot as usize)?;
        let id = ConnId { slot, generation: entry.generation };
        entry.connection.as_mut().map(|connection| (id, connection))
    }

    /// Removes the connection in a slot.
    pub fn remove(&mut self, slot: u32) -> Option<C> {
        let entry = self.slots.get_mut(slot as usize)?;
        let connection = entry.connection.take()?;
        // A slot whose generations are exhausted is not reused.
        if let Some(next) = entry.generation.checked_add(1) {
            entry.generation = next;
            self.free.push(slot);
        }
        Some(connection)
    }

    /// Returns the slots of all connections.
    pub fn slots(&self) -> Vec<u32> {
        let held = self.slots.iter().enumerate().filter(|(_, entry)| entry.connection.is_some());
        held.map(|(slot, _)| slot as u32).collect()
    }
}
