//! Typed trace events of the queue and its elevators.

use crate::bio::{Flags, Op};

/// A destination of trace events. Events for [`NoSink`] are never constructed.
pub trait Sink {
    /// Whether events are wanted; `false` removes their construction at compile time.
    const ENABLED: bool = true;
    /// Returns false while no events are wanted; they are not constructed then.
    #[inline(always)]
    fn is_on(&self) -> bool {
        true
    }
    /// Records an event that occurred at `now_ns`.
    fn record(&mut self, now_ns: u64, event: Event);
}

/// A sink that discards all events at no cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {
    const ENABLED: bool = false;
    #[inline(always)]
    fn record(&mut self, _: u64, _: Event) {}
}

/// The process and extent of a bio or request in an event. A request is identified by the token of
/// the bio for which it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// The token of the bio.
    pub token: u64,
    /// The process id of the submitter.
    pub pid: u32,
    /// The operation.
    pub op: Op,
    /// The first sector (512 bytes).
    pub sector: u64,
    /// The length in sectors.
    pub sectors: u32,
    /// The flags of the bio, or those of the request.
    pub flags: Flags,
}

/// A trace event. Descriptions begin with blktrace's letter for the action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Q: a bio was submitted.
    Queue(Io),
    /// G: a request was allocated for a bio.
    Get(Io),
    /// S: a process sleeps until a request can be allocated.
    Sleep(Io),
    /// M: a bio was merged to the end of a request.
    BackMerge {
        /// The merged bio.
        bio: Io,
        /// The token of the request that it joined.
        into: u64,
    },
    /// F: a bio was merged to the front of a request.
    FrontMerge {
        /// The merged bio.
        bio: Io,
        /// The token of the request that it joined.
        into: u64,
    },
    /// A request was merged into its lower neighbour after their extents had become adjacent.
    Join {
        /// The request that was absorbed.
        request: Io,
        /// The token of the request that it joined.
        into: u64,
    },
    /// I: a request was inserted into the elevator.
    Insert(Io),
    /// P: the queue was plugged.
    Plug,
    /// U: the queue was unplugged.
    Unplug {
        /// Requests that are allocated and not in the device.
        waiting: u32,
    },
    /// UT: the unplug timer fired.
    UnplugTimer,
    /// D: the driver took a request.
    Issue(Io),
    /// R: the driver gave it back.
    Requeue(Io),
    /// C: a request completed.
    Complete(Io),
    /// A note of the elevator.
    Note(Note),
}

/// Notes of elevators. The field `queue` is a process id, or 0 for a queue that processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A queue became the active one: the elevator dispatches from it.
    Activate {
        /// The queue.
        queue: u32,
        /// Its priority level, 0 to 7.
        level: u8,
    },
    /// The end of the active queue's slice was set.
    SliceSet {
        /// The queue.
        queue: u32,
        /// The end of the slice, in ns of the host's time.
        until_ns: u64,
    },
    /// The slice of a queue ended.
    SliceExpired {
        /// The queue.
        queue: u32,
        /// The unused rest of the slice, in ns.
        left_ns: u64,
        /// Whether another queue preempted it.
        preempted: bool,
    },
    /// The disk is kept idle for the next request of a queue.
    IdleArmed {
        /// The queue.
        queue: u32,
        /// The latest end of the wait, in ns of the host's time.
        until_ns: u64,
    },
    /// The wait ended because the queue's next request arrived.
    IdleHit {
        /// The queue.
        queue: u32,
    },
    /// The wait ended by timeout.
    IdleTimeout {
        /// The queue.
        queue: u32,
    },
    /// A queue preempted the active queue.
    Preempt {
        /// The queue.
        queue: u32,
        /// The preempted queue.
        victim: u32,
    },
    /// A batch of one direction began (deadline, anticipatory).
    Batch {
        /// The direction of the batch.
        op: Op,
    },
    /// A request was dispatched out of order because its deadline had passed.
    Overdue {
        /// The token of the request.
        token: u64,
    },
    /// The anticipatory elevator keeps the disk idle for a process.
    Anticipate {
        /// The process id.
        pid: u32,
        /// The latest end of the wait, in ns of the host's time.
        until_ns: u64,
    },
    /// Anticipation ended early: a better request arrived, or a close request became unlikely.
    AnticipationBroken {
        /// The process id.
        pid: u32,
    },
    /// Anticipation ended by timeout.
    AnticipationTimeout {
        /// The process id.
        pid: u32,
    },
    /// A queue (or group) was charged for service. The unit depends on the elevator: requests (sfq;
    /// cfq-v2 on a device with its own queue; cfq on one, with slice_idle 0), ticks (cfq-v2
    /// otherwise), ns (cfq otherwise), us (cfq-wf2q), sectors (both forms of BFQ), vios (FIOPS),
    /// bytes (bandwidth class).
    Charge {
        /// The queue; for sfq the number of the bucket.
        queue: u32,
        /// The charge, in the elevator's unit.
        amount: u64,
    },
    /// The budget of the active queue ended (BFQ).
    BudgetExpired {
        /// The queue.
        queue: u32,
        /// The reason.
        reason: Expiry,
        /// Service received, in sectors.
        served: u64,
        /// The budget, in sectors.
        budget: u64,
    },
    /// The weight-raising coefficient of a queue changed (BFQ).
    WeightRaised {
        /// The queue.
        queue: u32,
        /// The factor applied to the weight; 1 ends the raising.
        coefficient: u32,
    },
    /// The queues of two processes that read adjacent sectors were merged.
    QueuesMerged {
        /// The queue that was merged into the other.
        queue: u32,
        /// The shared queue.
        into: u32,
    },
    /// A process received a queue of its own again after a merge.
    QueueSplit {
        /// The process id.
        queue: u32,
    },
    /// A request of another queue was dispatched while the disk is kept idle for the active queue.
    Injected {
        /// The queue of the injected request.
        queue: u32,
        /// The active queue.
        into: u32,
    },
    /// The number of tokens of a domain changed (Kyber).
    TokenDepth {
        /// The domain: 0 reads, 1 writes, 2 discards, 3 others.
        domain: u8,
        /// The new limit of requests in the device.
        depth: u32,
    },
    /// A request of a lower class was dispatched before those of a higher class because of its age.
    Aged {
        /// The token of the request.
        token: u64,
    },
    /// A workload became the active one (CFQ's final form).
    Workload {
        /// The class: 1 real time, 2 best effort, 3 idle.
        class: u8,
        /// The kind: 0 async, 1 sync without idling, 2 sync.
        kind: u8,
        /// The end of its time, in ns of the host's time.
        until_ns: u64,
    },
    /// Requests are held back: async requests while sync ones are in the device (FIOPS, CFQ), or a
    /// reserving process's request until the next sweep (bandwidth class).
    Postponed,
    /// A sweep over the requests of reserving processes began (bandwidth class).
    SweepBegun {
        /// The bytes in the sweep.
        bytes: u64,
    },
    /// Reserving processes were served later than the bound in three consecutive sweeps: the device
    /// is slower than its configured figures (bandwidth class).
    Degraded {
        /// The bound on the time from eligibility to completion, in ns.
        bound_ns: u64,
    },
    /// The elevator was switched.
    Switched {
        /// The index of the new elevator in [`Kind::ALL`](crate::Kind::ALL).
        elevator: u8,
    },
}

/// The reasons for which a budget ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Expiry {
    /// The queue sent no request within the idle wait.
    TooIdle = 0,
    /// The time limit of the budget passed.
    TimedOut = 1,
    /// The budget was used up.
    Exhausted = 2,
    /// The queue had no more requests.
    NoMoreRequests = 3,
    /// Another queue preempted it.
    Preempted = 4,
}
