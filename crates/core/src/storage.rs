//! The storage that a queue lives in: handed over when it is made, given back when it ends, never grown.

use core::marker::PhantomData;
use core::ops::DerefMut;

use crate::context::{Context, ContextId};
use crate::event::Sink;
use crate::group::Group;
use crate::parts::{HeapEntry, Node};
use crate::registry::{AnyTables, Kind};
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

/// Makes tables, each filled with defaults: the one way in which storage comes to be, on the heap, in a caller's block of memory, or only
/// on paper to learn how much is needed.
pub trait Maker<H: Home> {
    /// A table of this length.
    fn table<T: Default + Clone + 'static>(&mut self, len: u32) -> H::Slots<T>;
}

/// How much a queue holds at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Requests: queued, dispatched and in the device, 1 to 2^24 or so (places are `u32`).
    pub requests: u32,
    /// I/O contexts, those that have exited but still have requests included.
    pub contexts: u32,
    /// Bios merged into requests, beyond the one that each request was made for.
    pub merged_bios: u32,
    /// Groups, the root included: with 0 or 1 there is only the root.
    pub groups: u32,
}

impl Default for Capacity {
    /// Room for the classic pool (1.5 times 128 in either direction), 256 processes, well merged requests, and 16 groups.
    fn default() -> Self {
        Capacity { requests: 384, contexts: 256, merged_bios: 4096, groups: 16 }
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
    pub(crate) requests: H::Slots<Request>,
    /// As many tree nodes.
    pub(crate) nodes: H::Slots<Node>,
    /// As many places in order of arrival.
    pub(crate) arrivals: H::Slots<Arrival>,
    /// As many entries for the dispatch list.
    pub(crate) sweep: H::Slots<HeapEntry>,
    pub(crate) merged: H::Slots<MergedBio>,
    pub(crate) contexts: H::Slots<Context>,
    pub(crate) groups: H::Slots<Group>,
    /// Buckets of the merge hash: a power of two.
    pub(crate) buckets: H::Slots<u32>,
    /// Deferred work.
    pub(crate) work: H::Slots<Work>,
    /// What they were made for.
    pub(crate) capacity: Capacity,
}

impl<H: Home> Storage<H> {
    /// The tables that a queue of this capacity needs, made in this order.
    pub fn make<M: Maker<H>>(capacity: Capacity, maker: &mut M) -> Self {
        let requests = capacity.request_slots();
        Storage {
            requests: maker.table(requests),
            nodes: maker.table(requests),
            arrivals: maker.table(requests),
            sweep: maker.table(requests),
            merged: maker.table(capacity.merged_bios),
            contexts: maker.table(capacity.contexts),
            groups: maker.table(capacity.group_slots()),
            buckets: maker.table(buckets(capacity.requests)),
            work: maker.table(capacity.work_slots()),
            capacity,
        }
    }
}

/// The tables that an elevator of one kind needs beyond the queue's own. Handing them over says which elevator is meant.
#[allow(missing_debug_implementations)]
pub struct ElevatorStorage<H: Home> {
    pub(crate) tables: AnyTables<H>,
    /// What they were made for, or less.
    pub(crate) capacity: Capacity,
}

impl<H: Home> ElevatorStorage<H> {
    /// The tables that an elevator of this kind needs at this capacity.
    pub fn make<M: Maker<H>>(kind: Kind, capacity: Capacity, maker: &mut M) -> Self {
        ElevatorStorage { tables: AnyTables::make(kind, capacity, maker), capacity }
    }

    /// The same with the layer of reserved bandwidth over the elevator, so that processes and groups can reserve whatever the elevator below
    /// is. `cfq-bw` is that layer over `cfq-v3` already: for it this is [`make`](Self::make).
    pub fn make_reserving<M: Maker<H>>(kind: Kind, capacity: Capacity, maker: &mut M) -> Self {
        ElevatorStorage { tables: AnyTables::make_reserving(kind, capacity, maker), capacity }
    }

    /// The kind of elevator that they are for; the layer of reserved bandwidth does not change it.
    pub fn kind(&self) -> Kind {
        self.tables.kind()
    }

    /// Whether processes and groups will be able to reserve bandwidth: with the layer, and from `cfq-bw`.
    pub fn is_reserving(&self) -> bool {
        self.is_layered() || self.kind().info().reservations
    }

    pub(crate) fn is_layered(&self) -> bool {
        self.tables.is_layered()
    }
}

impl Capacity {
    /// What both hold.
    pub(crate) fn common(self, other: Capacity) -> Capacity {
        Capacity {
            requests: self.requests.min(other.requests),
            contexts: self.contexts.min(other.contexts),
            merged_bios: self.merged_bios.min(other.merged_bios),
            groups: self.groups.min(other.groups),
        }
    }

    /// How many queues an elevator that keeps one for each process's sync and async requests can come to need.
    pub const fn queues(self) -> u32 {
        self.contexts.saturating_mul(2).saturating_add(self.requests)
    }

    /// How long the table of requests has to be.
    pub const fn request_slots(self) -> u32 {
        self.requests.saturating_add(RESERVED_REQUESTS)
    }

    /// How long the table of groups has to be: the root is always there.
    pub const fn group_slots(self) -> u32 {
        if self.groups == 0 { 1 } else { self.groups }
    }

    /// How long the table of deferred work has to be.
    pub const fn work_slots(self) -> u32 {
        self.contexts.saturating_add(3)
    }
}

/// The number of buckets that fits a hash of so many entries: a power of two.
pub(crate) fn buckets(entries: u32) -> u32 {
    entries.max(1).checked_next_power_of_two().unwrap_or(1 << 31)
}

#[cfg(feature = "alloc")]
mod owned {
    use super::*;
    use alloc::vec;

    /// Makes tables on the heap.
    struct Heap;

    impl<S: Sink> Maker<Owned<S>> for Heap {
        fn table<T: Default + Clone + 'static>(&mut self, len: u32) -> alloc::boxed::Box<[T]> {
            vec![T::default(); len as usize].into_boxed_slice()
        }
    }

    impl<S: Sink> Storage<Owned<S>> {
        /// Tables on the heap for this capacity.
        pub fn owned(capacity: Capacity) -> Self {
            Storage::make(capacity, &mut Heap)
        }
    }

    impl<S: Sink> ElevatorStorage<Owned<S>> {
        /// Tables on the heap for what an elevator of this kind needs at this capacity.
        pub fn owned(kind: Kind, capacity: Capacity) -> Self {
            ElevatorStorage::make(kind, capacity, &mut Heap)
        }

        /// The same with the layer of reserved bandwidth over it: see [`make_reserving`](Self::make_reserving).
        pub fn owned_reserving(kind: Kind, capacity: Capacity) -> Self {
            ElevatorStorage::make_reserving(kind, capacity, &mut Heap)
        }
    }
}
