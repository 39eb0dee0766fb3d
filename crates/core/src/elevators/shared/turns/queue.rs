//! The queue of one process's sync requests, or of all async ones of one priority.

use crate::collections::{Link, LinkOf, List, NIL, Slot, Tree};
use crate::priority::Priority;
use crate::request::Arrivals;

/// A queue. What the engine knows of it lies in its entity, at the same slot.
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
    /// What its elevator keeps of its turns.
    pub(crate) own: T,
    /// The context, places among the async queues, and requests that point here.
    pub(crate) references: u32,
    /// It has requests, or the disk.
    pub(crate) busy: bool,
    /// Its oldest request was looked at in this slot.
    pub(crate) fifo_checked: bool,
    /// The disk may be kept idle for it.
    pub(crate) idle_window: bool,
    /// The disk is being kept idle for it.
    pub(crate) wait_request: bool,
    /// Its place among free entries, or among those that only the engine remembers.
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
    /// For one process's sync requests.
    pub(crate) fn is_sync(&self) -> bool {
        self.pid.is_some()
    }

    /// What events call it.
    pub(crate) fn name(&self) -> u32 {
        self.pid.unwrap_or(0)
    }
}

/// The lists of free entries and of those that only the engine remembers.
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
