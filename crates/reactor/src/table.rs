//! Connections by their names: a place that is used again has another generation, so that an old
//! name finds nothing.

use crate::engine::ConnId;

/// Connections.
#[derive(Debug)]
pub(crate) struct Table<C> {
    places: Vec<Place<C>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<C> {
    generation: u32,
    conn: Option<C>,
}

impl<C> Table<C> {
    pub fn new() -> Table<C> {
        Table { places: Vec::new(), free: Vec::new() }
    }

    pub fn insert(&mut self, conn: C) -> ConnId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, conn: None });
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[slot as usize];
        place.conn = Some(conn);
        ConnId { slot, generation: place.generation }
    }

    /// A connection, if that is still what is there.
    pub fn get(&mut self, id: ConnId) -> Option<&mut C> {
        self.places.get_mut(id.slot as usize).filter(|place| place.generation == id.generation)?.conn.as_mut()
    }

    /// Whatever is in a place, with its name.
    pub fn at(&mut self, slot: u32) -> Option<(ConnId, &mut C)> {
        let place = self.places.get_mut(slot as usize)?;
        let id = ConnId { slot, generation: place.generation };
        place.conn.as_mut().map(|conn| (id, conn))
    }

    pub fn remove(&mut self, slot: u32) -> Option<C> {
        let place = self.places.get_mut(slot as usize)?;
        let conn = place.conn.take()?;
        // A generation that has come round is not used again: an old name could find it.
        if let Some(next) = place.generation.checked_add(1) {
            place.generation = next;
            self.free.push(slot);
        }
        Some(conn)
    }

    pub fn slots(&self) -> Vec<u32> {
        let held = self.places.iter().enumerate().filter(|(_, place)| place.conn.is_some());
        held.map(|(slot, _)| slot as u32).collect()
    }
}
