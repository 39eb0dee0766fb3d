//! The queue of one process's sync requests, or of all async ones of a group and priority.

use crate::collections::{Link, LinkOf, Mean, NIL, Slot};
use crate::elevators::shared::sorted_fifo::SortedFifo;
use crate::priority::{Class, Priority};

/// How a queue is served: what its tree is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Async requests.
    #[default]
    Async = 0,
    /// Sync requests of somebody who is not worth waiting for alone: the disk is kept for all of them together.
    SyncNoIdle = 1,
    /// Sync requests of somebody who is waited for.
    Sync = 2,
}

impl Kind {
    /// In the order in which ties between their trees are broken.
    pub const ALL: [Kind; 3] = [Kind::Async, Kind::SyncNoIdle, Kind::Sync];
}

/// More far (or small) requests than this among the last 32 make a queue seeky.
const SEEKY_ABOVE: u32 = 4;

/// A queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessQueue {
    /// The process that it was made for; 0 if processes share it for their async requests.
    pub pid: u32,
    pub sync: bool,
    pub group: Slot,
    /// What counts now: raised above the original while metadata is asked for.
    pub priority: Priority,
    pub original: Priority,
    pub requests: SortedFifo,
    pub queued: u32,
    /// Metadata among them.
    pub metadata: u32,
    /// The request to serve next, if none is overdue.
    pub next: Slot,
    /// Requests on the dispatch list or in the device.
    pub dispatched: u32,
    /// The tree that it is filed in: it stays there, whatever becomes of its class and kind, until it is filed anew.
    pub filed: Option<(Class, Kind)>,
    /// Which tree of positions it is in.
    pub positioned: Option<u8>,
    pub dispatch_start: u64,
    /// The first completion of its slice; 0 before.
    pub slice_start: u64,
    pub slice_end: u64,
    pub allocated_slice: u64,
    /// What was left of its slice, if it was cut short; below 0 if it took too long.
    pub slice_left: i64,
    pub slice_dispatch: u32,
    /// The sector after its last request.
    pub last_position: u64,
    /// A bit for each of its last 32 requests: whether it lay far off (on devices without an arm: was small).
    pub seek_history: u32,
    /// Contexts, requests, the group's table and queues to be merged into this one that point here.
    pub references: u32,
    /// Those that are requests.
    pub allocated: u32,
    /// The queue that its processes are to use from their next sync request on, or [`NIL`].
    pub merge_into: Slot,
    /// Its place among free entries.
    pub free: Link,
    /// The disk is kept idle for its next request.
    pub wait_request: bool,
    /// Its slice was drawn out to wait for a request.
    pub wait_busy: bool,
    pub must_dispatch: bool,
    pub must_alloc_slice: bool,
    /// Its oldest request was looked at in this slice already.
    pub fifo_checked: bool,
    /// The disk may be kept idle for it.
    pub idle_window: bool,
    pub priority_changed: bool,
    /// It has the disk, and none of its requests has completed since.
    pub slice_new: bool,
    /// Several processes use it.
    pub coop: bool,
    /// They should part.
    pub split_coop: bool,
    /// It once had four requests at a time.
    pub deep: bool,
}

impl Default for ProcessQueue {
    fn default() -> Self {
        ProcessQueue {
            pid: 0,
            sync: false,
            group: NIL,
            priority: Priority::UNSET,
            original: Priority::UNSET,
            requests: SortedFifo::default(),
            queued: 0,
            metadata: 0,
            next: NIL,
            dispatched: 0,
            filed: None,
            positioned: None,
            dispatch_start: 0,
            slice_start: 0,
            slice_end: 0,
            allocated_slice: 0,
            slice_left: 0,
            slice_dispatch: 0,
            last_position: 0,
            seek_history: 0,
            references: 0,
            allocated: 0,
            merge_into: NIL,
            free: Link::default(),
            wait_request: false,
            wait_busy: false,
            must_dispatch: false,
            must_alloc_slice: false,
            fifo_checked: false,
            idle_window: false,
            priority_changed: false,
            slice_new: false,
            coop: false,
            split_coop: false,
            deep: false,
        }
    }
}

impl ProcessQueue {
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub fn class(&self) -> Class {
        self.priority.class()
    }

    pub fn is_idle_class(&self) -> bool {
        self.class() == Class::Idle
    }

    pub fn is_real_time(&self) -> bool {
        self.class() == Class::RealTime
    }

    pub fn level(&self) -> u8 {
        self.priority.level()
    }

    /// How it is served, going by what it is now.
    pub fn kind(&self) -> Kind {
        if !self.sync {
            Kind::Async
        } else if self.idle_window {
            Kind::Sync
        } else {
            Kind::SyncNoIdle
        }
    }

    pub fn is_seeky(&self) -> bool {
        self.seek_history.count_ones() > SEEKY_ABOVE
    }

    /// Its slice is over.
    pub fn slice_used(&self, now: u64) -> bool {
        !self.slice_new && now >= self.slice_end
    }

    /// References that are not requests' own: the processes that use it, or are to.
    pub fn users(&self) -> u32 {
        self.references.saturating_sub(self.allocated)
    }
}

/// The list of free entries.
#[derive(Debug)]
pub(super) struct FreeQueues;

impl LinkOf<ProcessQueue> for FreeQueues {
    fn link(queue: &ProcessQueue) -> &Link {
        &queue.free
    }
    fn link_mut(queue: &mut ProcessQueue) -> &mut Link {
        &mut queue.free
    }
}

/// How long somebody thinks between a completion and the next request, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThinkTime {
    /// The last completion; to begin with, when it was made.
    pub last_end: u64,
    mean: Mean,
}

impl ThinkTime {
    pub fn since(now: u64) -> ThinkTime {
        ThinkTime { last_end: now, mean: Mean::default() }
    }

    /// The next request has come. What is longer than twice the time that one would wait counts as that.
    pub fn sample(&mut self, now: u64, wait: u64) {
        self.mean.add_think(now.saturating_sub(self.last_end).min(wait.saturating_mul(2)));
    }

    /// The mean, once enough was seen.
    pub fn mean(&self) -> Option<u64> {
        self.mean.is_valid().then_some(self.mean.mean)
    }

    /// Whether it is known to be longer than this.
    pub fn is_above(&self, wait: u64) -> bool {
        self.mean().is_some_and(|mean| mean > wait)
    }
}
