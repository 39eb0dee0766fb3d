//! A table of connections by the ids of the engine.

use hoistway_reactor::ConnId;

/// Connections by the slots of the engine. Iteration is in the order of the slots.
#[derive(Debug)]
pub(crate) struct ConnectionTable<C> {
    slots: Vec<Option<(ConnId, Box<C>)>>,
    len: usize,
}

impl<C> ConnectionTable<C> {
    /// Creates an empty table.
    pub(crate) fn new() -> ConnectionTable<C> {
        ConnectionTable { slots: Vec::new(), len: 0 }
    }

    /// Returns the number of connections.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a connection. The previous connection of the slot must have been removed.
    pub(crate) fn insert(&mut self, id: ConnId, connection: C) {
        let slot = id.slot as usize;
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        let previous = self.slots[slot].replace((id, Box::new(connection)));
        debug_assert!(previous.is_none(), "two connections in one slot");
        self.len += usize::from(previous.is_none());
    }

    /// Returns the connection with this id for changes; `None` if it was removed.
    pub(crate) fn get_mut(&mut self, id: ConnId) -> Option<&mut C> {
        match self.slots.get_mut(id.slot as usize) {
            Some(Some((present, connection))) if *present == id => Some(connection),
            _ => None,
        }
    }

    /// Returns the connection with this id; `None` if it was removed.
    pub(crate) fn get(&self, id: ConnId) -> Option<&C> {
        match self.slots.get(id.slot as usize) {
            Some(Some((present, connection))) if *present == id => Some(connection),
            _ => None,
        }
    }

    /// Returns the connection of which a ticket has the lowest 16 bits of the generation.
    pub(crate) fn get_by_ticket(&mut self, id: ConnId) -> Option<&mut C> {
        match self.slots.get_mut(id.slot as usize) {
            Some(Some((present, connection))) if present.generation & 0xffff == id.generation => Some(connection),
            _ => None,
        }
    }

    /// Removes a connection and returns it.
    pub(crate) fn remove(&mut self, id: ConnId) -> Option<Box<C>> {
        match self.slots.get_mut(id.slot as usize) {
            Some(slot) if slot.as_ref().is_some_and(|(present, _)| *present == id) => {
                self.len -= 1;
                slot.take().map(|(_, connection)| connection)
            }
            _ => None,
        }
    }

    /// Iterates over all connections and their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnId, &C)> + Clone {
        self.slots.iter().flatten().map(|(id, connection)| (*id, connection.as_ref()))
    }

    /// Returns the ids of all connections.
    pub(crate) fn ids(&self) -> Vec<ConnId> {
        self.iter().map(|(id, _)| id).collect()
    }
}
