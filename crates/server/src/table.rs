//! Who is connected, by the engine's names.

use hoistway_reactor::ConnId;

/// Clients at the engine's places. Walking over them is in the order of places.
#[derive(Debug)]
pub(crate) struct Table<C> {
    places: Vec<Option<(ConnId, Box<C>)>>,
    len: usize,
}

impl<C> Table<C> {
    /// Nobody.
    pub(crate) fn new() -> Table<C> {
        Table { places: Vec::new(), len: 0 }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds one. Whoever was at its place before has been removed by then.
    pub(crate) fn insert(&mut self, id: ConnId, client: C) {
        let place = id.slot as usize;
        if self.places.len() <= place {
            self.places.resize_with(place + 1, || None);
        }
        let before = self.places[place].replace((id, Box::new(client)));
        debug_assert!(before.is_none(), "two connections at one place");
        self.len += usize::from(before.is_none());
    }

    /// The one of this name, if it is still there.
    pub(crate) fn get_mut(&mut self, id: ConnId) -> Option<&mut C> {
        match self.places.get_mut(id.slot as usize) {
            Some(Some((here, client))) if *here == id => Some(client),
            _ => None,
        }
    }

    /// The same, to be looked at.
    pub(crate) fn get(&self, id: ConnId) -> Option<&C> {
        match self.places.get(id.slot as usize) {
            Some(Some((here, client))) if *here == id => Some(client),
            _ => None,
        }
    }

    /// The one at a place with the lowest 16 bits of this generation.
    pub(crate) fn get_by_ticket(&mut self, slot: u32, generation: u32) -> Option<(ConnId, &mut C)> {
        match self.places.get_mut(slot as usize) {
            Some(Some((here, client))) if here.generation & 0xffff == generation => Some((*here, client)),
            _ => None,
        }
    }

    /// Takes one away.
    pub(crate) fn remove(&mut self, id: ConnId) -> Option<Box<C>> {
        match self.places.get_mut(id.slot as usize) {
            Some(place) if place.as_ref().is_some_and(|(here, _)| *here == id) => {
                self.len -= 1;
                place.take().map(|(_, client)| client)
            }
            _ => None,
        }
    }

    /// All of them, to be looked at.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &C> {
        self.places.iter().flatten().map(|(_, client)| client.as_ref())
    }

    /// Their names.
    pub(crate) fn ids(&self) -> Vec<ConnId> {
        self.places.iter().flatten().map(|(id, _)| *id).collect()
    }
}
