//! What BFQ keeps: of each queue, of each process, of each group.

use crate::collections::{Link, LinkOf, List, Mean, NIL, Slot, Tree};
use crate::elevators::shared::async_queues::AsyncQueues;
use crate::elevators::shared::sorted_fifo::SortedFifo;
use crate::priority::Priority;

/// A time in whole milliseconds since boot, by which the coarser decisions are taken.
pub(super) type Tick = i64;

/// Before all times: nothing is within any distance of it.
pub(super) const NEVER: Tick = i64::MIN / 4;

/// Index of a process's async queue.
pub(super) const ASYNC: usize = 0;
/// Index of its sync queue.
pub(super) const SYNC: usize = 1;

/// The coefficient of a queue that is raised to load a program or answer a user.
pub(super) const INTERACTIVE: u32 = 30;
/// The coefficient of one that plays or records.
pub(super) const SOFT_REAL_TIME: u32 = 3000;
/// How long the latter is raised at a time, in ms. It also tells the two apart: no interactive raising is that short.
pub(super) const SOFT_RAISING_MS: Tick = 300;

/// More ones than this among the 32 last requests make a queue seeky.
const SEEKY_ABOVE: u32 = 19;

/// The requests of one process's sync kind, of several that read side by side, or of all async ones of one priority in a group.
///
/// Budget, service, weight and class are in the engine's entity of the same number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub generation: u32,
    pub exists: bool,
    pub sync: bool,
    /// The process that it was made for; 0 if it is async.
    pub pid: u32,
    /// The only process that uses it, if it has been told, or [`NIL`].
    pub owner: Slot,
    /// Processes that point here, those that are to by planned merges, and the group of an async queue.
    pub users: u32,
    /// Its requests from insertion to completion.
    pub allocated: u32,
    /// Processes that may come to share it if it turns out well.
    pub links: u32,
    /// The queue that its processes are to use instead, or [`NIL`].
    pub target: Slot,

    pub requests: SortedFifo,
    /// The request to serve next, or [`NIL`].
    pub next: Slot,
    /// Requests waiting: async, sync.
    pub queued: [u32; 2],
    pub in_flight: u32,

    /// What its budget starts from when it comes to be served again, in sectors.
    pub budget_max: u64,

    /// It is scheduled: it has requests, or is in service.
    pub busy: bool,
    /// It has not been busy yet.
    pub fresh: bool,
    /// It left service only for want of requests: what is left of its budget is kept for a while.
    pub expired_waiting: bool,
    /// Several processes use it, or did.
    pub shared: bool,
    /// They no longer read side by side: each gets its own again.
    pub to_split: bool,
    /// It came with many others at once: it is not raised.
    pub large_burst: bool,
    /// It is one of those that came together lately.
    pub in_burst: bool,
    /// When it may be raised as soft real time is reckoned once its last request completes.
    pub soft_later: bool,
    /// The oldest request was looked at in this slot.
    pub fifo_checked: bool,
    /// The disk is kept idle for it.
    pub waits: bool,

    pub created: Tick,
    /// In service: when its slot times out. Else: when it was left without requests, those in the device included.
    pub timeout: Tick,
    /// The start of its raising; while it is not raised, up to when it certainly was not.
    pub raised_at: Tick,
    /// The start of the interactive raising that one as soft real time has broken off.
    pub interactive_at: Tick,
    /// How long its raising lasts.
    pub raised_for: Tick,
    /// When it got its own requests back.
    pub split_at: Tick,
    /// From when on a request of it makes it soft real time.
    pub soft_start: Tick,
    /// When it last became busy.
    pub active_since: Tick,
    /// When the first request since then was served.
    pub first_served: Tick,
    /// Sectors charged since it became busy.
    pub served: u64,
    /// Sectors charged since its raising began.
    pub served_raised: u64,

    /// When its last request completed, in ns; one more than its making before that.
    pub last_end_ns: u64,
    /// Since when its idle time is summed up, in ns.
    pub observed_ns: u64,
    pub idle_ns: u64,
    pub think: Mean,
    /// Its process sends the next request soon.
    pub short_think: bool,
    pub io_bound: bool,
    /// A one for each of the last 32 requests that was far from the one before.
    pub history: u32,
    /// The end of the last request that arrived.
    pub last_sector: u64,

    /// How many requests in the device at most while another is put in.
    pub inject_limit: u32,
    /// How long a request of it takes if no other is put in, in ns; 0 is not known.
    pub baseline_ns: u64,
    /// When the limit was last lowered, or all this forgotten.
    pub lowered_at: Tick,

    /// The queue whose completions make this one send its next request, or [`NIL`].
    pub waker: Slot,
    /// One that may be, with its generation; how often it was seen, and since when (ns).
    pub tentative: (Slot, u32),
    pub sightings: u32,
    pub sighted_ns: u64,
    /// The queues whose waker this is.
    pub woken: List<Woken>,
    pub woken_link: Link,

    /// The group in whose index of positions it is, or [`NIL`].
    pub indexed: Slot,
    pub burst_link: Link,
    /// Its place among the queues of its group, or among free entries.
    pub member_link: Link,
}

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
    /// Requests waiting.
    pub fn pending(&self) -> u32 {
        let [one, other] = self.queued;
        one.saturating_add(other)
    }

    /// Most of its requests are far from the one before.
    pub fn is_seeky(&self) -> bool {
        self.history.count_ones() > SEEKY_ABOVE
    }

    /// All of them are.
    pub fn is_totally_seeky(&self) -> bool {
        self.history == u32::MAX
    }

    /// Raised as soft real time, if it is raised.
    pub fn is_soft(&self) -> bool {
        self.raised_for == SOFT_RAISING_MS
    }
}

/// What is known of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    /// Its async and its sync queue, or [`NIL`].
    pub queues: [Slot; 2],
    /// The priority that was last seen.
    pub priority: Priority,
    /// The group that was last seen, with its generation.
    pub group: (Slot, u32),
    /// A queue that was made shortly before its own, with which that may be merged, or [`NIL`].
    pub link: Slot,
    /// Its queue was merged for that reason: it is not split again.
    pub stably: bool,
    /// Its requests from insertion to completion.
    pub requests: u32,
    /// Its own queue as it was when it was merged into another.
    pub saved: Saved,
}

impl Default for Process {
    fn default() -> Self {
        Process {
            queues: [NIL; 2],
            priority: Priority::UNSET,
            group: (NIL, 0),
            link: NIL,
            stably: false,
            requests: 0,
            saved: Saved::default(),
        }
    }
}

/// A queue's state while its process shares another.
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

/// What is known of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupState {
    pub async_queues: AsyncQueues,
    /// The sync queue that was made last, or [`NIL`].
    pub newest: Slot,
    /// Queues by where their next requests lie.
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

/// The queues that one waker wakes.
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

/// The queues that came together lately.
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

/// The queues of a group; free entries.
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
