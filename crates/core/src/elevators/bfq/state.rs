//! The state of BFQ: queues, processes and groups.

use crate::collections::{Link, LinkOf, List, Mean, NIL, Slot, Tree};
use crate::elevators::shared::async_queues::AsyncQueues;
use crate::elevators::shared::sorted_fifo::SortedFifo;
use crate::priority::Priority;

/// A time in whole milliseconds since boot, the resolution of the coarser decisions.
pub(super) type Tick = i64;

/// A time before all others, farther away than any interval.
pub(super) const NEVER: Tick = i64::MIN / 4;

/// The index of a process's async queue.
pub(super) const ASYNC: usize = 0;
/// The index of a process's sync queue.
pub(super) const SYNC: usize = 1;

/// The coefficient of interactive raising, for programs that start or answer a user.
pub(super) const INTERACTIVE: u32 = 30;
/// The coefficient of soft real-time raising, for playback and recording.
pub(super) const SOFT_REAL_TIME: u32 = 3000;
/// The duration of soft real-time raising, in ms. It distinguishes the two kinds, as interactive
/// raising is always longer.
pub(super) const SOFT_RAISING_MS: Tick = 300;

/// A queue is seeky if more of the last 32 requests than this were far from the previous one.
const SEEKY_ABOVE: u32 = 19;

/// A queue of sync requests of one process or of several cooperators, or of all async requests of
/// one priority in a group.
///
/// Budget, service, weight and class are in the engine's entity of the same number.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Queue {
    // What every request needs comes first, in 192 bytes.
    pub requests: SortedFifo,
    /// The request to serve next, or [`NIL`].
    pub next: Slot,
    /// Queued requests: async, sync.
    pub queued: [u32; 2],
    pub in_flight: u32,
    /// Its requests from insertion to completion.
    pub allocated: u32,
    /// References: processes, planned merges, and the group of an async queue.
    pub users: u32,
    /// The queue to which its processes are to move, or [`NIL`].
    pub target: Slot,
    /// The only process that uses it, if known, or [`NIL`].
    pub owner: Slot,
    /// The group in whose index of positions it is, or [`NIL`].
    pub indexed: Slot,
    /// The last 32 requests, one bit each: 1 if far from the previous one.
    pub history: u32,
    /// It is scheduled: it has requests or is in service.
    pub busy: bool,
    /// It has not been busy yet.
    pub fresh: bool,
    pub sync: bool,
    /// The disk is kept idle for it.
    pub waits: bool,
    /// The time of its last completion, in ns; before that one more than its creation.
    pub last_end_ns: u64,
    /// The end of the last request that arrived.
    pub last_sector: u64,
    pub think: Mean,
    /// In service: the timeout of its slot. Otherwise: the time at which its last request left,
    /// including requests in the device.
    pub timeout: Tick,
    /// The maximum from which its next budget follows, in sectors.
    pub budget_max: u64,
    /// Sectors charged since it became busy.
    pub served: u64,
    /// The time of the first service since then.
    pub first_served: Tick,
    /// The time of its last split.
    pub split_at: Tick,
    pub created: Tick,
    /// The start of its raising; while not raised, a time up to which it certainly was not raised.
    pub raised_at: Tick,
    /// The start of the current idle-time window, in ns.
    pub observed_ns: u64,
    pub idle_ns: u64,
    /// It left service only because it had no requests: the rest of its budget is kept for some
    /// time.
    pub expired_waiting: bool,
    /// Several processes use it or have used it.
    pub shared: bool,
    /// Its processes no longer read adjacent sectors: each gets its own queue again.
    pub to_split: bool,
    /// It belongs to a large burst and is not raised.
    pub large_burst: bool,
    /// It belongs to the current burst.
    pub in_burst: bool,
    /// `soft_start` is computed when its last request completes.
    pub soft_later: bool,
    /// The oldest request was checked in this slot.
    pub fifo_checked: bool,
    /// Its process has a short think time.
    pub short_think: bool,
    pub io_bound: bool,
    pub exists: bool,

    // The rest is for rarer events.
    /// The start of the interactive raising that soft real-time raising interrupted.
    pub interactive_at: Tick,
    /// The duration of its raising.
    pub raised_for: Tick,
    /// The time from which a request makes it soft real-time.
    pub soft_start: Tick,
    /// The time at which it last became busy.
    pub active_since: Tick,
    /// Sectors charged since its raising began.
    pub served_raised: u64,
    /// The latency of its requests without injection, in ns; 0 is unknown.
    pub baseline_ns: u64,
    /// The time at which the limit was last lowered or the statistics reset.
    pub lowered_at: Tick,
    pub sighted_ns: u64,
    pub generation: u32,
    /// The process id for which it was made; 0 for async.
    pub pid: u32,
    /// Processes that may merge with it later.
    pub links: u32,
    /// The maximum of requests in the device for an injection.
    pub inject_limit: u32,
    /// The queue whose completions trigger this one's next request, or [`NIL`].
    pub waker: Slot,
    pub sightings: u32,
    /// The tentative waker with its generation; the number of observations and their start (ns).
    pub tentative: (Slot, u32),
    /// The queues of which it is the waker.
    pub woken: List<Woken>,
    pub woken_link: Link,
    pub burst_link: Link,
    /// The link in the list of its group's queues, or of free entries.
    pub member_link: Link,
}

const _: () = assert!(size_of::<Queue>() == 320 && core::mem::offset_of!(Queue, exists) < 192);

impl Default for Queue {
    fn default() -> Self {
        Queue {
            generation: 0,
            exists: false,
            sync: false,
            pid: 0,
            owner: NIL,
            users: 0,
            allocated: 0,
            links: 0,
            target: NIL,
            requests: SortedFifo::default(),
            next: NIL,
            queued: [0; 2],
            in_flight: 0,
            budget_max: 0,
            busy: false,
            fresh: false,
            expired_waiting: false,
            shared: false,
            to_split: false,
            large_burst: false,
            in_burst: false,
            soft_later: false,
            fifo_checked: false,
            waits: false,
            created: 0,
            timeout: NEVER,
            raised_at: 0,
            interactive_at: NEVER,
            raised_for: 0,
            split_at: NEVER,
            soft_start: 0,
            active_since: 0,
            first_served: 0,
            served: 0,
            served_raised: 0,
            last_end_ns: 0,
            observed_ns: 0,
            idle_ns: 0,
            think: Mean::default(),
            short_think: false,
            io_bound: false,
            history: 1,
            last_sector: 0,
            inject_limit: 0,
            baseline_ns: 0,
            lowered_at: 0,
            waker: NIL,
            tentative: (NIL, 0),
            sightings: 0,
            sighted_ns: 0,
            woken: List::default(),
            woken_link: Link::default(),
            indexed: NIL,
            burst_link: Link::default(),
            member_link: Link::default(),
        }
    }
}

impl Queue {
    /// The number of queued requests.
    pub fn pending(&self) -> u32 {
        let [one, other] = self.queued;
        one.saturating_add(other)
    }

    /// Returns true if most of its requests were far from the previous one.
    pub fn is_seeky(&self) -> bool {
        self.history.count_ones() > SEEKY_ABOVE
    }

    /// Returns true if all of its requests were far from the previous one.
    pub fn is_totally_seeky(&self) -> bool {
        self.history == u32::MAX
    }

    /// Returns true if it is soft real-time, provided that it is raised.
    pub fn is_soft(&self) -> bool {
        self.raised_for == SOFT_RAISING_MS
    }
}

/// The state of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    /// Its async and its sync queue, or [`NIL`].
    pub queues: [Slot; 2],
    /// The last known priority.
    pub priority: Priority,
    /// The last known group, with its generation.
    pub group: (Slot, u32),
    /// A queue created shortly before its own, with which that may be merged, or [`NIL`].
    pub link: Slot,
    /// Its queue was merged for that reason and is not split again.
    pub merged_permanently: bool,
    /// Its requests from insertion to completion.
    pub requests: u32,
    /// The state of its own queue before it was merged into another.
    pub saved: Saved,
}

impl Default for Process {
    fn default() -> Self {
        Process {
            queues: [NIL; 2],
            priority: Priority::UNSET,
            group: (NIL, 0),
            link: NIL,
            merged_permanently: false,
            requests: 0,
            saved: Saved::default(),
        }
    }
}

/// A queue's state while its process shares another queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Saved {
    pub baseline_ns: u64,
    pub inject_limit: u32,
    pub lowered_at: Tick,
    pub weight: u32,
    pub think: Mean,
    pub last_end_ns: u64,
    pub short_think: bool,
    pub io_bound: bool,
    pub observed_ns: u64,
    pub idle_ns: u64,
    pub large_burst: bool,
    pub in_burst: bool,
    pub coefficient: u32,
    pub interactive_at: Tick,
    pub served_raised: u64,
    pub raised_at: Tick,
    pub raised_for: Tick,
}

/// The state of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupState {
    pub async_queues: AsyncQueues,
    /// The sync queue created last, or [`NIL`].
    pub newest: Slot,
    /// Queues by the position of their next request.
    pub index: Tree,
    /// All queues of the group.
    pub members: List<Member>,
}

impl Default for GroupState {
    fn default() -> Self {
        GroupState {
            async_queues: AsyncQueues::default(),
            newest: NIL,
            index: Tree::default(),
            members: List::default(),
        }
    }
}

/// The queues with the same waker.
#[derive(Debug)]
pub(super) struct Woken;

impl LinkOf<Queue> for Woken {
    fn link(queue: &Queue) -> &Link {
        &queue.woken_link
    }
    fn link_mut(queue: &mut Queue) -> &mut Link {
        &mut queue.woken_link
    }
}

/// The queues of the current burst.
#[derive(Debug)]
pub(super) struct InBurst;

impl LinkOf<Queue> for InBurst {
    fn link(queue: &Queue) -> &Link {
        &queue.burst_link
    }
    fn link_mut(queue: &mut Queue) -> &mut Link {
        &mut queue.burst_link
    }
}

/// The list of a group's queues, or of free entries.
#[derive(Debug)]
pub(super) struct Member;

impl LinkOf<Queue> for Member {
    fn link(queue: &Queue) -> &Link {
        &queue.member_link
    }
    fn link_mut(queue: &mut Queue) -> &mut Link {
        &mut queue.member_link
    }
}
