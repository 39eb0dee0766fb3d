//! The storage that a queue lives in: handed over when it is made, given back when it ends, never grown.

use core::marker::PhantomData;
use core::ops::DerefMut;

use crate::context::{Context, ContextId};
use crate::elevators::cfq_v3::ProcessQueue;
use crate::event::Sink;
use crate::parts::tree::Least;
use crate::parts::{HeapEntry, Node};
use crate::request::{Arrival, MergedBio, Request};

/// Where a queue's tables lie (borrowed slices or owned boxes) and where its trace events go.
pub trait Home {
    /// A table of `T`.
    type Slots<T: 'static>: DerefMut<Target = [T]>;
    /// Takes the trace events.
    type Sink: Sink;
}

/// Tables that are slices of somebody else's memory.
#[derive(Debug)]
pub struct Borrowed<'a, S>(PhantomData<(&'a mut (), S)>);

impl<'a, S: Sink> Home for Borrowed<'a, S> {
    type Slots<T: 'static> = &'a mut [T];
    type Sink = S;
}

/// Tables on the heap, allocated when the storage is made and never again.
#[cfg(feature = "alloc")]
#[derive(Debug)]
pub struct Owned<S>(PhantomData<S>);

#[cfg(feature = "alloc")]
impl<S: Sink> Home for Owned<S> {
    type Slots<T: 'static> = alloc::boxed::Box<[T]>;
    type Sink = S;
}

/// How much a queue holds at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Requests: queued, dispatched and in the device.
    pub requests: u32,
    /// I/O contexts, those that have exited but still have requests included.
    pub contexts: u32,
    /// Bios merged into requests, beyond the one that each request was made for.
    pub merged_bios: u32,
}

impl Default for Capacity {
    /// Room for the classic pool (1.5 times 128 in either direction), 256 processes, and well merged requests.
    fn default() -> Self {
        Capacity { requests: 384, contexts: 256, merged_bios: 4096 }
    }
}

/// Requests that the queue keeps for itself: a flush before and after a barrier, and the barrier's stand-in.
pub const RESERVED_REQUESTS: u32 = 3;

/// What waits to be done after an event, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// Run the queue: give the driver what it takes.
    #[default]
    Run,
    /// Unplug the queue. [`next_work`](crate::RequestQueue::next_work) does it itself and never answers this.
    Unplug,
    /// A process that slept for a request may go on: submit its bio again with `resubmit`.
    Wake(ContextId),
}

/// The tables of a queue.
#[allow(missing_debug_implementations)]
pub struct Storage<H: Home> {
    /// Requests: the capacity and [`RESERVED_REQUESTS`] more.
    pub requests: H::Slots<Request>,
    /// As many tree nodes.
    pub nodes: H::Slots<Node>,
    /// As many places in order of arrival.
    pub arrivals: H::Slots<Arrival>,
    /// As many entries for the dispatch list.
    pub sweep: H::Slots<HeapEntry>,
    /// Merged bios.
    pub merged: H::Slots<MergedBio>,
    /// Contexts.
    pub contexts: H::Slots<Context>,
    /// Buckets of the merge hash: the power of two at or above the number of requests is right.
    pub buckets: H::Slots<u32>,
    /// Deferred work: three more than there are contexts.
    pub work: H::Slots<Work>,
}

/// The tables that an elevator needs beyond the queue's own; empty ones for an elevator that keeps everything in the entries of
/// requests and contexts.
#[allow(missing_debug_implementations)]
pub struct ElevatorStorage<H: Home> {
    /// Queues: [`Capacity::queues`] of them. With fewer, requests that find no queue are served in order of arrival.
    pub queues: H::Slots<ProcessQueue>,
    /// As many nodes, for the lists that queues are filed on.
    pub nodes: H::Slots<Node<Least>>,
    /// Buckets of the look-up by process: a power of two.
    pub buckets: H::Slots<u32>,
}

impl Capacity {
    /// How many per-process queues an elevator of this capacity can come to need.
    pub const fn queues(self) -> u32 {
        self.contexts.saturating_mul(2).saturating_add(self.requests)
    }

    /// How long the table of requests has to be.
    pub const fn request_slots(self) -> u32 {
        self.requests.saturating_add(RESERVED_REQUESTS)
    }

    /// How long the table of deferred work has to be.
    pub const fn work_slots(self) -> u32 {
        self.contexts.saturating_add(3)
    }
}

#[cfg(feature = "alloc")]
mod owned {
    use super::*;
    use crate::parts::Slot;
    use crate::registry::Kind;
    use alloc::boxed::Box;
    use alloc::vec;

    fn table<T: Default + Clone>(len: u32) -> Box<[T]> {
        vec![T::default(); len as usize].into_boxed_slice()
    }

    fn buckets(entries: u32) -> Box<[Slot]> {
        table(entries.max(1).checked_next_power_of_two().unwrap_or(1 << 31))
    }

    impl<S: Sink> Storage<Owned<S>> {
        /// Tables on the heap for this capacity.
        pub fn owned(capacity: Capacity) -> Self {
            Storage {
                requests: table(capacity.request_slots()),
                nodes: table(capacity.request_slots()),
                arrivals: table(capacity.request_slots()),
                sweep: table(capacity.request_slots()),
                merged: table(capacity.merged_bios),
                contexts: table(capacity.contexts),
                buckets: buckets(capacity.requests),
                work: table(capacity.work_slots()),
            }
        }
    }

    impl<S: Sink> ElevatorStorage<Owned<S>> {
        /// Tables on the heap for what an elevator of this kind needs at this capacity.
        pub fn owned(kind: Kind, capacity: Capacity) -> Self {
            let queues = if kind.info().has_queues { capacity.queues() } else { 0 };
            let contexts = if kind.info().has_queues { capacity.contexts } else { 0 };
            ElevatorStorage { queues: table(queues), nodes: table(queues), buckets: buckets(contexts) }
        }
    }
}
