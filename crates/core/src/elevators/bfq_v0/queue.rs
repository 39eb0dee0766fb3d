//! The queue of one process's sync requests, or of all async ones of one priority.

use crate::parts::{Link, LinkOf, List, NIL, Slot, Tree};
use crate::priority::Priority;
use crate::request::Arrivals;

/// A queue of BFQ's. What the engine knows of it lies in its entity, at the same slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// The process, or `None` for async requests, which processes share.
    pub(super) pid: Option<u32>,
    /// The priority as last read from its process.
    pub(super) priority: Priority,
    pub(super) tree: Tree,
    /// The request to serve next, if none is overdue.
    pub(super) next: Slot,
    pub(super) fifo: List<Arrivals>,
    /// The budget that it is given, in sectors, if that is enough for its next request.
    pub(super) max_budget: u64,
    /// Requests on the dispatch list or in the device.
    pub(super) in_flight: u32,
    /// Slots granted, as a decaying count: 32 60 84 ... towards 256.
    pub(super) slots: u32,
    /// When the first request completed in this slot: tick and ns since boot.
    pub(super) clock_started: Option<(u64, u64)>,
    /// The mean seek distance of its process, in sectors.
    pub(super) seek_mean: u64,
    /// The context, places among the async queues, and requests that point here.
    pub(super) references: u32,
    /// It has requests, or the disk.
    pub(super) busy: bool,
    /// Its oldest request was looked at in this slot.
    pub(super) fifo_checked: bool,
    /// The disk may be kept idle for it.
    pub(super) idle_window: bool,
    /// The disk is being kept idle for it.
    pub(super) wait_request: bool,
    /// Its place among free entries, or among those that only the engine remembers.
    pub(super) spare: Link,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            pid: None,
            priority: Priority::UNSET,
            tree: Tree::default(),
            next: NIL,
            fifo: List::default(),
            max_budget: 0,
            in_flight: 0,
            slots: 0,
            clock_started: None,
            seek_mean: 0,
            references: 0,
            busy: false,
            fifo_checked: false,
            idle_window: false,
            wait_request: false,
            spare: Link::default(),
        }
    }
}

impl Queue {
    /// For one process's sync requests.
    pub(super) fn is_sync(&self) -> bool {
        self.pid.is_some()
    }

    /// What events call it.
    pub(super) fn name(&self) -> u32 {
        self.pid.unwrap_or(0)
    }
}

/// The lists of free entries and of those that only the engine remembers.
#[derive(Debug)]
pub(super) struct Spare;

impl LinkOf<Queue> for Spare {
    fn link(queue: &Queue) -> &Link {
        &queue.spare
    }
    fn link_mut(queue: &mut Queue) -> &mut Link {
        &mut queue.spare
    }
}
