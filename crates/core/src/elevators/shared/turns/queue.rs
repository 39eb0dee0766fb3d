//! The queue of one process's sync requests, or of all async ones of one priority.

use crate::collections::{Link, LinkOf, List, NIL, Slot, Tree};
use crate::priority::Priority;
use crate::request::Arrivals;

/// A queue. The engine's data on it is in the entity at the same slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue<T> {
    /// The process, or `None` for async requests, which processes share.
    pub(crate) pid: Option<u32>,
    /// The priority as last read from its process.
    pub(crate) priority: Priority,
    pub(crate) tree: Tree,
    /// The request to serve next, if none is overdue.
    pub(crate) next: Slot,
    pub(crate) fifo: List<Arrivals>,
    /// Requests on the dispatch list or in the device.
    pub(crate) in_flight: u32,
    /// The measure's data on its turns.
    pub(crate) own: T,
    /// References: the context, the shared slot of its priority, and its requests.
    pub(crate) references: u32,
    /// Whether it has requests or is active.
    pub(crate) busy: bool,
    /// Whether its oldest request was checked in this turn.
    pub(crate) fifo_checked: bool,
    /// Whether the disk may be kept idle for it.
    pub(crate) idle_window: bool,
    /// Whether the disk is being kept idle for it.
    pub(crate) wait_request: bool,
    /// The link in the list of free entries, or of queues to which only the engine refers.
    pub(crate) spare: Link,
}

impl<T: Default> Default for Queue<T> {
    fn default() -> Self {
        Queue {
            pid: None,
            priority: Priority::UNSET,
            tree: Tree::default(),
            next: NIL,
            fifo: List::default(),
            in_flight: 0,
            own: T::default(),
            references: 0,
            busy: false,
            fifo_checked: false,
            idle_window: false,
            wait_request: false,
            spare: Link::default(),
        }
    }
}

impl<T> Queue<T> {
    /// Returns true for a queue of one process's sync requests.
    pub(crate) fn is_sync(&self) -> bool {
        self.pid.is_some()
    }

    /// The name in events: the process id, or 0.
    pub(crate) fn name(&self) -> u32 {
        self.pid.unwrap_or(0)
    }
}

/// The lists of free entries and of queues to which only the engine refers.
#[derive(Debug)]
pub(crate) struct Spare;

impl<T> LinkOf<Queue<T>> for Spare {
    fn link(queue: &Queue<T>) -> &Link {
        &queue.spare
    }
    fn link_mut(queue: &mut Queue<T>) -> &mut Link {
        &mut queue.spare
    }
}
