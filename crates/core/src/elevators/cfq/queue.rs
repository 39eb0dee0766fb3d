//! The queue of one context's sync requests, or of all async ones of a group and priority.

use crate::collections::{Link, LinkOf, Mean, NIL, Slot};
use crate::elevators::shared::sorted_fifo::SortedFifo;
use crate::priority::{Class, Priority};

/// The kinds of service, which select the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Async requests.
    #[default]
    Async = 0,
    /// Sync requests of contexts for which idling alone is useless: the disk is kept idle for all
    /// of them together.
    SyncNoIdle = 1,
    /// Sync requests of contexts for which the disk is kept idle.
    Sync = 2,
}

impl Kind {
    /// All kinds, in the order in which ties between their trees are broken.
    pub const ALL: [Kind; 3] = [Kind::Async, Kind::SyncNoIdle, Kind::Sync];
}

/// A queue is seeky if more of its last 32 requests than this were seeks (or small).
const SEEKY_ABOVE: u32 = 4;

/// A queue.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Queue {
    // What every request needs comes first, in 128 bytes.
    pub requests: SortedFifo,
    pub queued: u32,
    /// The request to serve next, if none is overdue.
    pub next: Slot,
    /// Requests on the dispatch list or in the device.
    pub dispatched: u32,
    /// References: contexts, requests, the group's table, and queues to be merged into this one.
    pub references: u32,
    /// The references that are requests.
    pub allocated: u32,
    pub group: Slot,
    /// The queue that its contexts use from their next sync request on, or [`NIL`].
    pub merge_into: Slot,
    /// The last 32 requests, one bit each: 1 for a seek (on non-rotational devices: for a small
    /// request).
    pub seek_history: u32,
    /// The sector after its last request.
    pub last_position: u64,
    /// The tree in which it is filed. It stays there until it is filed again, even if its class or
    /// kind changes.
    pub filed: Option<(Class, Kind)>,
    /// The index of its tree of positions.
    pub positioned: Option<u8>,
    /// The effective priority, raised above the original one while metadata requests are queued.
    pub priority: Priority,
    pub original: Priority,
    pub sync: bool,
    /// Several contexts use it.
    pub coop: bool,
    /// It is to be split.
    pub split_coop: bool,
    pub priority_changed: bool,
    /// It has had four queued requests at a time.
    pub deep: bool,
    /// The disk may be kept idle for it.
    pub idle_window: bool,
    /// It is active, and none of its requests has completed in this slice.
    pub slice_new: bool,
    /// Its next request is dispatched although its slice is over or enough requests are in the
    /// device. Set by an overdue request, and by a small request for which the disk was kept idle:
    /// it waits for merges until the idle timer fires, which then does not expire the queue.
    /// Cleared by that dispatch, and when the queue becomes the active one.
    pub must_dispatch: bool,
    /// Its oldest request was checked in this slice.
    pub fifo_checked: bool,
    /// The disk is kept idle for its next request.
    pub wait_request: bool,
    /// Its slice was extended to wait for a request.
    pub wait_busy: bool,
    /// A request was granted from a full pool because the disk is kept idle for this queue. Set
    /// with that grant, and cleared when the queue becomes the active one: one request ends the
    /// idling, and more would undermine the limit of the pool.
    pub must_alloc_slice: bool,
    /// The number of queued metadata requests.
    pub metadata: u32,
    /// Requests dispatched since it became the active queue. They limit the slice of an async
    /// queue, and are the charge of its group if requests are charged instead of time.
    pub slice_dispatch: u32,
    /// The end of its slice, once that has begun.
    pub slice_end: u64,
    /// The time of the first completion in its slice; 0 before.
    pub slice_start: u64,

    // The rest is for rarer events.
    /// The process id for which it was made; 0 for shared async queues.
    pub pid: u32,
    /// The time at which it became the active queue.
    pub dispatch_start: u64,
    /// The length of its slice; 0 before it has begun.
    pub allocated_slice: u64,
    /// The rest of its slice if it was preempted; negative if it overran.
    pub slice_left: i64,
    /// The link in the list of free entries.
    pub free: Link,
}

const _: () = assert!(core::mem::offset_of!(Queue, slice_end) < 128);

impl Default for Queue {
    fn default() -> Self {
        Queue {
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

impl Queue {
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

    /// Its kind, according to its current state.
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

    /// Returns true if its slice is over.
    pub fn slice_used(&self, now: u64) -> bool {
        !self.slice_new && now >= self.slice_end
    }

    /// References other than requests: the contexts that use it or are to use it.
    pub fn users(&self) -> u32 {
        self.references.saturating_sub(self.allocated)
    }
}

/// The list of free entries.
#[derive(Debug)]
pub(super) struct FreeQueues;

impl LinkOf<Queue> for FreeQueues {
    fn link(queue: &Queue) -> &Link {
        &queue.free
    }
    fn link_mut(queue: &mut Queue) -> &mut Link {
        &mut queue.free
    }
}

/// The think time of a context or group, from a completion to the next request, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThinkTime {
    /// The time of the last completion; initially the time of creation.
    pub last_end: u64,
    mean: Mean,
}

impl ThinkTime {
    pub fn since(now: u64) -> ThinkTime {
        ThinkTime { last_end: now, mean: Mean::default() }
    }

    /// Adds a sample at the next request. Times above twice the idle wait count as twice the wait.
    pub fn sample(&mut self, now: u64, wait: u64) {
        self.mean.add_think(now.saturating_sub(self.last_end).min(wait.saturating_mul(2)));
    }

    /// The mean, once there are enough samples.
    pub fn mean(&self) -> Option<u64> {
        self.mean.is_valid().then_some(self.mean.mean)
    }

    /// Returns true if the mean is known to exceed `wait`.
    pub fn is_above(&self, wait: u64) -> bool {
        self.mean().is_some_and(|mean| mean > wait)
    }
}
