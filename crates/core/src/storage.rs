//! The storage that a queue lives in: handed over when it is made, given back when it ends, never grown.

use crate::collections::{HeapEntry, Node};
use crate::context::Context;
use crate::elevator::tables::{Capacity, DeferredWork, HostTypes, TableMaker, buckets};
use crate::group::Group;
use crate::registry::{AnyTables, Kind};
use crate::request::{Arrival, MergedBio, Request};

/// The tables of a queue.
#[allow(missing_debug_implementations)]
pub struct Storage<H: HostTypes> {
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
    pub(crate) work: H::Slots<DeferredWork>,
    /// What they were made for.
    pub(crate) capacity: Capacity,
}

impl<H: HostTypes> Storage<H> {
    /// The tables that a queue of this capacity needs, made in this order.
    pub fn make<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Self {
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
pub struct ElevatorStorage<H: HostTypes> {
    pub(crate) tables: AnyTables<H>,
    /// What they were made for, or less.
    pub(crate) capacity: Capacity,
}

impl<H: HostTypes> ElevatorStorage<H> {
    /// The tables that an elevator of this kind needs at this capacity.
    pub fn make<M: TableMaker<H>>(kind: Kind, capacity: Capacity, maker: &mut M) -> Self {
        ElevatorStorage { tables: AnyTables::make(kind, capacity, maker), capacity }
    }

    /// The same with the layer of reserved bandwidth over the elevator, so that processes and groups can reserve whatever the elevator below
    /// is. `cfq-bw` is that layer over `cfq-v3` already: for it this is [`make`](Self::make).
    pub fn make_reserving<M: TableMaker<H>>(kind: Kind, capacity: Capacity, maker: &mut M) -> Self {
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

#[cfg(feature = "alloc")]
mod owned {
    use super::*;
    use crate::elevator::tables::Owned;
    use crate::event::Sink;
    use alloc::vec;

    /// Makes tables on the heap.
    struct Heap;

    impl<S: Sink> TableMaker<Owned<S>> for Heap {
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
