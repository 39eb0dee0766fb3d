//! The places of the async queues that processes of one priority share.

use crate::collections::{NIL, Slot};
use crate::priority::{Class, LEVELS, Priority};

const LEVEL_COUNT: usize = LEVELS as usize;

/// One place a level for the real-time class and for best effort, and one for the whole idle class; [`NIL`] while a place is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsyncQueues {
    places: [Slot; AsyncQueues::COUNT as usize],
}

impl Default for AsyncQueues {
    fn default() -> Self {
        AsyncQueues { places: [NIL; AsyncQueues::COUNT as usize] }
    }
}

impl AsyncQueues {
    /// The number of places.
    pub const COUNT: u32 = LEVELS as u32 * 2 + 1;

    /// The number of the place for this priority, from 0.
    pub fn place(priority: Priority) -> usize {
        let level = usize::from(priority.level()).min(LEVEL_COUNT.saturating_sub(1));
        match priority.class() {
            Class::RealTime => level,
            Class::Idle => LEVEL_COUNT.saturating_mul(2),
            _ => LEVEL_COUNT.saturating_add(level),
        }
    }

    /// The queue in the place for this priority, or [`NIL`].
    pub fn get(&self, priority: Priority) -> Slot {
        self.places.get(Self::place(priority)).copied().unwrap_or(NIL)
    }

    /// What is in all places.
    pub fn all(&self) -> impl Iterator<Item = Slot> {
        self.places.into_iter()
    }

    /// Puts a queue in the place for this priority.
    pub fn put(&mut self, priority: Priority, queue: Slot) {
        if let Some(place) = self.places.get_mut(Self::place(priority)) {
            *place = queue;
        }
    }
}
