//! I/O contexts: the processes that submit I/O.

use crate::collections::{Link, LinkOf, Mean, NIL, Slot};
use crate::priority::{CpuPolicy, Priority};

/// The handle of an I/O context. It goes stale when the process has exited and its last request has
/// completed. The default handle is stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ContextId {
    pub(crate) slot: Slot,
    pub(crate) generation: u32,
}

/// An I/O context: the queue's view of a process. It occupies two cache lines: the fields used for
/// every request, and the history that elevators collect.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Context {
    pub(crate) generation: u32,
    pub(crate) pid: u32,
    /// The slot of its group.
    pub(crate) group: Slot,
    /// Requests allocated for the context and not yet freed.
    pub(crate) requests: u32,
    pub(crate) priority: Priority,
    pub(crate) policy: CpuPolicy,
    /// The CPU on which the process runs. Multi-queue elevators file requests by CPU.
    pub(crate) cpu: u16,
    pub(crate) nice: i8,
    pub(crate) state: State,
    /// Whether the process sleeps until a request can be allocated.
    pub(crate) sleep: Sleep,
    /// Allocations that a batcher may still make from a full pool.
    pub(crate) batch_credit: u8,
    /// The tick at which it last became a batcher.
    pub(crate) last_waited: u64,
    /// The link in the list of contexts that sleep for a request, or in the list of free entries.
    pub(crate) waiting: Link,
    /// The elevator's statistics of the process.
    pub(crate) history: History,
}

const _: () = assert!(size_of::<Context>() == 128 && core::mem::offset_of!(Context, history.last_end) == 64);

/// The state of an entry of the context table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Free,
    Running,
    /// The process has exited; some of its requests have not completed.
    Exited,
}

/// The sleep state of a process that needs a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sleep {
    #[default]
    Awake,
    /// Sleeps for a read request.
    ForRead,
    /// Sleeps for a write request.
    ForWrite,
    /// Was woken for a read request and has not resubmitted yet.
    WokenForRead,
    /// Was woken for a write request and has not resubmitted yet.
    WokenForWrite,
}

impl Sleep {
    /// The sleeping states, by data direction: read (0), write (1).
    pub const SLEEPS: [Sleep; 2] = [Sleep::ForRead, Sleep::ForWrite];
    /// The woken states, by data direction: read (0), write (1).
    pub const WOKEN: [Sleep; 2] = [Sleep::WokenForRead, Sleep::WokenForWrite];

    #[inline]
    pub fn is_woken(self) -> bool {
        matches!(self, Sleep::WokenForRead | Sleep::WokenForWrite)
    }
}

impl Context {
    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The priority as set by the host; may be [`Priority::UNSET`].
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// The effective priority: an unset one follows the nice value and the CPU scheduling policy.
    #[inline]
    pub fn effective_priority(&self) -> Priority {
        self.priority.effective_under(self.nice, self.policy)
    }

    /// Returns true if the process has not exited.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.state == State::Running
    }
}

/// An elevator's statistics of a process, in one layout for all elevators. A switch of the elevator
/// clears them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct History {
    /// Whether the elevator has seen the context.
    pub known: bool,
    /// Marks whose meaning the elevator defines.
    pub marks: u8,
    /// The slots of the context's async (0) and sync (1) queue, in elevators with queues per
    /// process.
    pub queues: [Slot; 2],
    /// Requests queued in the elevator.
    pub queued: u32,
    /// Requests on the dispatch list.
    pub dispatched: u32,
    /// The completion time of the last sync request, in the elevator's unit of time.
    pub last_end: u64,
    /// The sector after the end of the last request.
    pub last_position: u64,
    /// The mean think time: from a completion to the next request.
    pub think: Mean,
    /// The mean seek distance between requests, in sectors.
    pub seek: Mean,
}

impl Default for History {
    fn default() -> Self {
        History {
            known: false,
            marks: 0,
            queues: [NIL; 2],
            queued: 0,
            dispatched: 0,
            last_end: 0,
            last_position: 0,
            think: Mean::default(),
            seek: Mean::default(),
        }
    }
}

impl History {
    /// Updates think time and seek distance for a new request. Think times above twice the idle
    /// wait count as twice the wait. Times are in the elevator's unit, positions in sectors of 512
    /// bytes.
    pub fn update(&mut self, now: u64, wait: u64, distance: u64, end: u64) {
        self.think.add_think(now.saturating_sub(self.last_end).min(wait.saturating_mul(2)));
        self.seek.add_seek_clipped(distance);
        self.last_position = end;
    }

    /// Decides whether a queue may keep the disk idle for its process; `None` keeps the last
    /// decision while too few think times are known. `wait` is `slice_idle` in the elevator's unit
    /// of time.
    pub fn idle_window(&self, running: bool, wait: u64, seeky: bool) -> Option<bool> {
        if !running || wait == 0 || seeky { Some(false) } else { self.returns_within(wait) }
    }

    /// Returns true if the mean think time is at most `wait`; `None` while there are too few
    /// samples.
    pub fn returns_within(&self, wait: u64) -> Option<bool> {
        self.think.is_valid().then_some(self.think.mean <= wait)
    }
}

/// The list of contexts that sleep for a request. The same link serves the list of free entries.
#[derive(Debug)]
pub(crate) struct SleepingContexts;

impl LinkOf<Context> for SleepingContexts {
    fn link(context: &Context) -> &Link {
        &context.waiting
    }
    fn link_mut(context: &mut Context) -> &mut Link {
        &mut context.waiting
    }
}
