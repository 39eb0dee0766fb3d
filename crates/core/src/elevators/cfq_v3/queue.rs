//! The queue of one context's sync requests, or of all async ones of one priority.

use crate::collections::{Link, LinkOf, List, NIL, Slot, Tree};
use crate::priority::{Class, Priority};
use crate::request::Arrivals;

/// A queue of CFQ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// The process id, or `None` for async requests, which contexts share.
    pub(super) pid: Option<u32>,
    pub(super) priority: Priority,
    /// The priority when last read from its context, which look-ups compare.
    pub(super) original: Priority,
    pub(super) tree: Tree,
    /// The request to serve next, if none is overdue.
    pub(super) next: Slot,
    pub(super) fifo: List<Arrivals>,
    /// The index of its list, if it has requests.
    pub(super) filed: Option<u8>,
    /// The last tick of its slice; 0 until its first request is dispatched.
    pub(super) slice_end: u64,
    pub(super) slice_left: u64,
    /// The time of its last service; 0 for never.
    pub(super) service_last: u64,
    /// Requests on the dispatch list or in the device: async, sync.
    pub(super) on_dispatch: [u32; 2],
    /// References: contexts and requests.
    pub(super) references: u32,
    pub(super) by_pid: Link,
    /// The link in the list of queues with in-flight requests.
    pub(super) busy: Link,
    /// Its next request is dispatched although its slice is over. Set while the disk is kept idle
    /// for it, and when it preempts.
    pub(super) must_dispatch: bool,
    /// The disk is kept idle for its next request.
    pub(super) wait_request: bool,
    /// A request was granted from a full pool in this slice, to end the idling for this queue.
    pub(super) must_alloc_slice: bool,
    /// An overdue request has gone first in this slice.
    pub(super) fifo_used: bool,
    pub(super) idle_window: bool,
    pub(super) priority_changed: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            pid: None,
            priority: Priority::UNSET,
            original: Priority::UNSET,
            tree: Tree::default(),
            next: NIL,
            fifo: List::default(),
            filed: None,
            slice_end: 0,
            slice_left: 0,
            service_last: 0,
            on_dispatch: [0; 2],
            references: 0,
            by_pid: Link::default(),
            busy: Link::default(),
            must_dispatch: false,
            wait_request: false,
            must_alloc_slice: false,
            fifo_used: false,
            idle_window: false,
            priority_changed: false,
        }
    }
}

impl Queue {
    /// Returns true for a queue of one context's sync requests.
    pub(super) fn is_for_sync(&self) -> bool {
        self.pid.is_some()
    }

    /// Returns true if it counts as sync: made for sync requests, or with such requests in flight.
    pub(super) fn is_sync(&self) -> bool {
        self.is_for_sync() || self.on_dispatch[1] > 0
    }

    pub(super) fn is_idle_class(&self) -> bool {
        self.priority.class() == Class::Idle
    }

    pub(super) fn level(&self) -> u8 {
        self.priority.level()
    }

    /// Requests on the dispatch list or in the device.
    pub(super) fn dispatched(&self) -> u32 {
        let [a, b] = self.on_dispatch;
        a.saturating_add(b)
    }

    /// The name in events: the process id, or 0.
    pub(super) fn name(&self) -> u32 {
        self.pid.unwrap_or(0)
    }
}

/// The hash chains of queues by process id. For a free entry, the link in the list of free entries.
#[derive(Debug)]
pub(super) struct ByPid;

impl LinkOf<Queue> for ByPid {
    fn link(queue: &Queue) -> &Link {
        &queue.by_pid
    }
    fn link_mut(queue: &mut Queue) -> &mut Link {
        &mut queue.by_pid
    }
}

/// The list of queues with in-flight requests.
#[derive(Debug)]
pub(super) struct Busy;

impl LinkOf<Queue> for Busy {
    fn link(queue: &Queue) -> &Link {
        &queue.busy
    }
    fn link_mut(queue: &mut Queue) -> &mut Link {
        &mut queue.busy
    }
}

/// The hash key of the queues of one process id, or of all async queues.
pub(super) fn key_of(pid: Option<u32>) -> u64 {
    pid.map_or(0, |pid| u64::from(pid).saturating_add(1))
}
