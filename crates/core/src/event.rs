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
    /// Its slice was set to end at this tick.
    SliceSet {
        /// The queue.
        queue: u32,
        /// The last tick of the slice.
        end_tick: u64,
    },
    /// It lost the disk with so many ticks of its slice left.
    SliceExpired {
        /// The queue.
        queue: u32,
        /// Ticks that were left of it.
        left_ticks: u64,
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
    /// The elevator was switched; it goes by its place in the registry.
    Switched {
        /// Its place in the registry.
        elevator: u8,
    },
}
