//! The async queues that all processes of one priority share.

use crate::collections::{NIL, Slot};
use crate::priority::{Class, LEVELS, Priority};

const LEVEL_COUNT: usize = LEVELS as usize;

/// One queue per level of the real-time and best-effort class, and one for the idle class; [`NIL`]
/// for a queue that does not exist.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsyncQueues {
    queues: [Slot; AsyncQueues::COUNT as usize],
}

impl Default for AsyncQueues {
    fn default() -> Self {
        AsyncQueues { queues: [NIL; AsyncQueues::COUNT as usize] }
    }
}

impl AsyncQueues {
    /// The number of shared queues.
    pub const COUNT: u32 = LEVELS as u32 * 2 + 1;

    /// The index of the queue for this priority.
    pub fn index_of(priority: Priority) -> usize {
        let level = usize::from(priority.level()).min(LEVEL_COUNT.saturating_sub(1));
        match priority.class() {
            Class::RealTime => level,
            Class::Idle => LEVEL_COUNT.saturating_mul(2),
            _ => LEVEL_COUNT.saturating_add(level),
        }
    }

    /// The queue for this priority, or [`NIL`].
    pub fn get(&self, priority: Priority) -> Slot {
        self.queues.get(Self::index_of(priority)).copied().unwrap_or(NIL)
    }

    /// All slots of queues, including [`NIL`].
    pub fn all(&self) -> impl Iterator<Item = Slot> {
        self.queues.into_iter()
    }

    /// Sets the queue for this priority.
    pub fn put(&mut self, priority: Priority, queue: Slot) {
        if let Some(slot) = self.queues.get_mut(Self::index_of(priority)) {
            *slot = queue;
        }
    }
}
