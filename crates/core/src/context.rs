//! I/O contexts: who asks.

use crate::collections::{Link, LinkOf, Mean, NIL, Slot};
use crate::priority::{CpuPolicy, Priority};

/// Names an I/O context. It goes stale when the context's process has exited and its last request is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContextId {
    pub(crate) slot: Slot,
    pub(crate) generation: u32,
}

/// An I/O context: a process, as far as the queue knows it. It is two cache lines: what is looked at for every request, and what elevators
/// learn of how the process behaves.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Context {
    pub(crate) generation: u32,
    pub(crate) pid: u32,
    /// Its group's place.
    pub(crate) group: Slot,
    /// Requests that were allocated for it and are not freed.
    pub(crate) requests: u32,
    pub(crate) priority: Priority,
    pub(crate) policy: CpuPolicy,
    /// The CPU that its process runs on: multi-queue elevators file its requests by it.
    pub(crate) cpu: u16,
    pub(crate) nice: i8,
    pub(crate) state: State,
    /// Whether its process sleeps for a request.
    pub(crate) sleep: Sleep,
    /// Allocations that a batcher may still make from a full pool.
    pub(crate) batch_credit: u8,
    /// The tick at which it last became a batcher.
    pub(crate) last_waited: u64,
    /// Its place among those that sleep for a request, or among free entries.
    pub(crate) waiting: Link,
    /// What the elevator keeps about it.
    pub(crate) history: History,
}

const _: () = assert!(size_of::<Context>() == 128 && core::mem::offset_of!(Context, history.last_end) == 64);

/// Where an entry of the table of contexts stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Free,
    Running,
    /// Its process is gone; requests of it are not.
    Exited,
}

/// Whether a process sleeps for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sleep {
    #[default]
    Awake,
    /// Among the waiters for a read.
    ForRead,
    /// Among those for a write.
    ForWrite,
    /// Woken, but it has not gone on yet; the wake-up was for a read.
    WokenForRead,
    /// The same, for a write.
    WokenForWrite,
}

impl Sleep {
    /// Asleep for a read (0) or a write (1).
    pub const SLEEPS: [Sleep; 2] = [Sleep::ForRead, Sleep::ForWrite];
    /// Woken for one.
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

    /// The priority as it was set, perhaps [`Priority::UNSET`].
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// The priority that counts, an unset one following nice and the policy by which its process is given the CPU.
    #[inline]
    pub fn effective_priority(&self) -> Priority {
        self.priority.effective_under(self.nice, self.policy)
    }

    /// Whether its process runs.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.state == State::Running
    }
}

/// What elevators remember of a process: one shape for all of them, cleared when the elevator is switched.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct History {
    /// Whether the elevator has met the context.
    pub known: bool,
    /// Elevator's own marks.
    pub marks: u8,
    /// The context's async (0) and sync (1) queue, in elevators that have queues.
    pub queues: [Slot; 2],
    /// Requests inside the elevator.
    pub queued: u32,
    /// Requests on the dispatch list.
    pub dispatched: u32,
    /// When its last sync request completed, in the elevator's unit of time.
    pub last_end: u64,
    /// The sector after its last request.
    pub last_position: u64,
    /// How long it thinks between a completion and its next request.
    pub think: Mean,
    /// How far its requests lie apart, in sectors.
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
    /// A request has come: learn how long its process thought (more than twice the time that would be waited for it counts as that) and how far
    /// it lies from the one before. Times are in the elevator's unit, sectors of 512 bytes.
    pub fn learn(&mut self, now: u64, wait: u64, distance: u64, end: u64) {
        self.think.add_think(now.saturating_sub(self.last_end).min(wait.saturating_mul(2)));
        self.seek.add_seek_clipped(distance);
        self.last_position = end;
    }

    /// Whether the process comes back within the time that would be waited for it; `None` while too little is known.
    pub fn comes_back_in(&self, wait: u64) -> Option<bool> {
        self.think.is_valid().then_some(self.think.mean <= wait)
    }
}

/// The list of contexts that sleep for a request (or that of free entries).
#[derive(Debug)]
pub(crate) struct Waiting;

impl LinkOf<Context> for Waiting {
    fn link(context: &Context) -> &Link {
        &context.waiting
    }
    fn link_mut(context: &mut Context) -> &mut Link {
        &mut context.waiting
    }
}
