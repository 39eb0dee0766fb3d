//! What the queue and its elevators tell of what they do: typed trace events.

use crate::bio::Op;

/// Takes trace events. The events of [`NoSink`] are never made.
pub trait Sink {
    /// Whether events are wanted; `false` compiles their making away.
    const ENABLED: bool = true;
    /// Takes an event that happened at `now_ns`.
    fn record(&mut self, now_ns: u64, event: Event);
}

/// Takes nothing and costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {
    const ENABLED: bool = false;
    #[inline(always)]
    fn record(&mut self, _: u64, _: Event) {}
}

/// The extent and the owner of a bio or request in an event. A request goes by the token of the bio it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// The token.
    pub token: u64,
    /// The process it belongs to.
    pub pid: u32,
    /// What it does.
    pub op: Op,
    /// The first sector (512 bytes).
    pub sector: u64,
    /// The length in sectors.
    pub sectors: u32,
}

/// A trace event; blktrace's letter stands first in each description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Q: a bio was submitted.
    Queue(Io),
    /// G: a request was allocated for it.
    Get(Io),
    /// S: its process sleeps until a request is free.
    Sleep(Io),
    /// M: a bio was merged to the end of a request, which goes by the token `into`.
    BackMerge {
        /// The bio.
        bio: Io,
        /// The token of the request that it joined.
        into: u64,
    },
    /// F: a bio was merged to the front of a request.
    FrontMerge {
        /// The bio.
        bio: Io,
        /// The token of the request that it joined.
        into: u64,
    },
    /// A queued request closed up with its lower neighbour `into` and is part of it now.
    Join {
        /// The request that was absorbed.
        request: Io,
        /// The token of the request that it joined.
        into: u64,
    },
    /// I: a request went to the elevator.
    Insert(Io),
    /// P: the queue was plugged.
    Plug,
    /// U: the queue was unplugged; so many requests were waiting.
    Unplug {
        /// Requests allocated and not in the device.
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
    /// A note of the elevator's.
    Note(Note),
}

/// What an elevator notes. A `queue` goes by its process id (0 for one that processes share).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A queue got the disk.
    Activate {
        /// The queue.
        queue: u32,
        /// Its level, 0 to 7.
        level: u8,
    },
    /// Its slice was set to end then.
    SliceSet {
        /// The queue.
        queue: u32,
        /// The end of the slice, in ns of the host's time.
        until_ns: u64,
    },
    /// It lost the disk with so much of its slice left.
    SliceExpired {
        /// The queue.
        queue: u32,
        /// What was left of it, in ns.
        left_ns: u64,
        /// Whether another queue took the disk from it.
        preempted: bool,
    },
    /// The disk is kept idle for it until this time (ns) at the latest.
    IdleArmed {
        /// The queue.
        queue: u32,
        /// The end of the wait, in ns of the host's time.
        until_ns: u64,
    },
    /// The wait ended because its next request came.
    IdleHit {
        /// The queue.
        queue: u32,
    },
    /// The wait ended because the time was over.
    IdleTimeout {
        /// The queue.
        queue: u32,
    },
    /// A queue took the disk from another before its time.
    Preempt {
        /// The queue.
        queue: u32,
        /// The queue that lost the disk.
        victim: u32,
    },
    /// A batch of one direction began (deadline, anticipatory).
    Batch {
        /// The direction of the batch.
        op: Op,
    },
    /// A request was taken out of order because its deadline had passed.
    Overdue {
        /// The request.
        token: u64,
    },
    /// The anticipatory elevator waits for this process.
    Anticipate {
        /// The process.
        pid: u32,
        /// The end of the wait, in ns of the host's time.
        until_ns: u64,
    },
    /// It stopped waiting: something better came, or no hope is left.
    AnticipationBroken {
        /// The process.
        pid: u32,
    },
    /// It waited for the whole time in vain.
    AnticipationTimeout {
        /// The process.
        pid: u32,
    },
    /// A queue (or group) was charged for service, in the elevator's own measure: requests (sfq; cfq-v2 on a device that queues
    /// itself; cfq on one, with slice_idle 0), ticks (cfq-v2 else), ns (cfq else), us (cfq-wf2q), sectors (BFQ in both forms), FIOPS's vios,
    /// bytes (bandwidth class).
    Charge {
        /// The queue; in sfq the number of its bucket.
        queue: u32,
        /// How much.
        amount: u64,
    },
    /// A queue lost the disk at the end of a budget (BFQ).
    BudgetExpired {
        /// The queue.
        queue: u32,
        /// Why.
        reason: Expiry,
        /// Sectors served.
        served: u64,
        /// Sectors that it might have had.
        budget: u64,
    },
    /// The weight of a queue is multiplied from now on (BFQ's weight raising).
    WeightRaised {
        /// The queue.
        queue: u32,
        /// By how much; 1 is the end of it.
        coefficient: u32,
    },
    /// Two processes that read side by side share a queue from now on.
    QueuesMerged {
        /// The queue that is given up.
        queue: u32,
        /// The one that serves both.
        into: u32,
    },
    /// A process got a queue of its own again.
    QueueSplit {
        /// The process.
        queue: u32,
    },
    /// A request of another queue was put in while the disk is kept for this one.
    Injected {
        /// The queue that it came from.
        queue: u32,
        /// The queue that has the disk.
        into: u32,
    },
    /// A kind of requests may have so many in the device from now on (Kyber).
    TokenDepth {
        /// 0 reads, 1 writes, 2 discards, 3 others.
        domain: u8,
        /// How many.
        depth: u32,
    },
    /// A request of a lower class went before those of a higher one, because it had waited long enough.
    Aged {
        /// The request.
        token: u64,
    },
    /// A kind of requests is served for a while (CFQ's final form).
    Workload {
        /// The class that is served: 1 real time, 2 best effort, 3 idle.
        class: u8,
        /// 0 async, 1 sync without idling, 2 sync.
        kind: u8,
        /// Until when, in ns of the host's time.
        until_ns: u64,
    },
    /// Requests are held back: async ones, as sync ones are in the device (FIOPS, CFQ); one of a reserving process, until the next sweep
    /// (bandwidth class).
    Postponed,
    /// A sweep over the requests of reserving processes began (bandwidth class).
    SweepBegun {
        /// How many bytes it has.
        bytes: u64,
    },
    /// In three sweeps in a row, reserving processes were served later than their bound: the device is slower than was measured (bandwidth
    /// class).
    Degraded {
        /// The bound from when a request is within its reservation to its completion, in ns.
        bound_ns: u64,
    },
    /// The elevator was switched; it goes by its place in the registry.
    Switched {
        /// Its place in the registry.
        elevator: u8,
    },
}

/// Why a queue lost the disk at the end of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Expiry {
    /// It did not send the next request in time.
    TooIdle = 0,
    /// The time of its budget was over.
    TimedOut = 1,
    /// Its budget was used up.
    Exhausted = 2,
    /// It had no more requests.
    NoMoreRequests = 3,
    /// Another queue took the disk.
    Preempted = 4,
}
