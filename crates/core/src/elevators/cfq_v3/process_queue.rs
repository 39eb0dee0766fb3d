//! The queue of one process's sync requests, or of all async ones of one priority.

use crate::collections::{Link, LinkOf, List, NIL, Slot, Tree};
use crate::priority::{Class, Priority};
use crate::request::Arrivals;

/// A queue of CFQ's.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessQueue {
    /// The process, or `None` for async requests, which processes share.
    pub(super) pid: Option<u32>,
    pub(super) priority: Priority,
    /// The priority as it was when last read from its owner: look-ups compare this one.
    pub(super) original: Priority,
    pub(super) tree: Tree,
    /// The request to serve next, if none is overdue.
    pub(super) next: Slot,
    pub(super) fifo: List<Arrivals>,
    /// The list that it is filed on, if it has requests.
    pub(super) filed: Option<u8>,
    /// The tick after which its slice is over; 0 until its first request is dispatched.
    pub(super) slice_end: u64,
    pub(super) slice_left: u64,
    /// When it was served last; 0 is never.
    pub(super) service_last: u64,
    /// Requests on the dispatch list or in the device: async, sync.
    pub(super) on_dispatch: [u32; 2],
    /// Contexts and requests that point here.
    pub(super) references: u32,
    pub(super) by_pid: Link,
    /// Its place among those that have requests under way.
    pub(super) busy: Link,
    pub(super) must_dispatch: bool,
    pub(super) wait_request: bool,
    pub(super) must_alloc_slice: bool,
    /// An overdue request has gone first in this slice already.
    pub(super) fifo_used: bool,
    pub(super) idle_window: bool,
    pub(super) priority_changed: bool,
}

impl Default for ProcessQueue {
    fn default() -> Self {
        ProcessQueue {
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

impl ProcessQueue {
    /// Made for one process's sync requests.
    pub(super) fn is_for_sync(&self) -> bool {
        self.pid.is_some()
    }

    /// Counts as sync: made for it, or with sync requests under way.
    pub(super) fn is_sync(&self) -> bool {
        self.is_for_sync() || self.on_dispatch[1] > 0
    }

    pub(super) fn is_idle_class(&self) -> bool {
        self.priority.class() == Class::Idle
    }

    pub(super) fn level(&self) -> u8 {
        self.priority.level()
    }

    /// Requests under way.
    pub(super) fn dispatched(&self) -> u32 {
        let [a, b] = self.on_dispatch;
        a.saturating_add(b)
    }

    /// What events call it.
    pub(super) fn name(&self) -> u32 {
        self.pid.unwrap_or(0)
    }
}

/// The chains of queues by process; a free entry's link is its place among the free ones.
#[derive(Debug)]
pub(super) struct ByPid;

impl LinkOf<ProcessQueue> for ByPid {
    fn link(queue: &ProcessQueue) -> &Link {
        &queue.by_pid
    }
    fn link_mut(queue: &mut ProcessQueue) -> &mut Link {
        &mut queue.by_pid
    }
}

/// The list of queues that have requests under way.
#[derive(Debug)]
pub(super) struct Busy;

impl LinkOf<ProcessQueue> for Busy {
    fn link(queue: &ProcessQueue) -> &Link {
        &queue.busy
    }
    fn link_mut(queue: &mut ProcessQueue) -> &mut Link {
        &mut queue.busy
    }
}

/// The key that queues of one process (or all async ones) are found by.
pub(super) fn key_of(pid: Option<u32>) -> u64 {
    pid.map_or(0, |pid| u64::from(pid).saturating_add(1))
}
