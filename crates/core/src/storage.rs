//! The storage of a queue and its elevator: passed in at construction, returned at the end, never
//! grown.

use crate::collections::{Heap, Node, Siblings};
use crate::context::Context;
use crate::elevator::capacity::Capacity;
use crate::elevator::tables::{DeferredWork, HostTypes, TableMaker, buckets};
use crate::group::Group;
use crate::registry::{AnyTables, Kind};
use crate::request::{Arrival, MergedBio, Request};

/// The tables of a queue.
#[allow(missing_debug_implementations)]
pub struct Storage<H: HostTypes> {
    /// Requests: the capacity plus [`RESERVED_REQUESTS`].
    pub(crate) requests: H::Slots<Request>,
    /// Tree nodes, one for each request.
    pub(crate) nodes: H::Slots<Node>,
    /// Positions in order of arrival, one for each request.
    pub(crate) arrivals: H::Slots<Arrival>,
    /// The heap of the dispatch list, with an entry for each request.
    pub(crate) sweep: H::Slots<Siblings>,
    pub(crate) merged: H::Slots<MergedBio>,
    pub(crate) contexts: H::Slots<Context>,
    pub(crate) groups: H::Slots<Group>,
    /// Buckets of the merge hash; a power of two.
    pub(crate) buckets: H::Slots<u32>,
    /// The ring of deferred work.
    pub(crate) work: H::Slots<DeferredWork>,
    /// The capacity for which the tables were made.
    pub(crate) capacity: Capacity,
}

impl<H: HostTypes> Storage<H> {
    /// Makes the tables that a queue of this capacity needs, in a fixed order.
    pub fn make<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Self {
        let requests = capacity.request_slots();
        Storage {
            requests: maker.table(requests),
            nodes: maker.table(requests),
            arrivals: maker.table(requests),
            sweep: maker.table(Heap::<H::Slots<Siblings>>::table_len(requests)),
            merged: maker.table(capacity.merged_bios),
            contexts: maker.table(capacity.contexts),
            groups: maker.table(capacity.group_slots()),
            buckets: maker.table(buckets(capacity.requests)),
            work: maker.table(capacity.work_slots()),
            capacity,
        }
    }
}

/// The tables that an elevator of one kind needs beyond the queue's own. They determine the kind of
/// elevator.
#[allow(missing_debug_implementations)]
pub struct ElevatorStorage<H: HostTypes> {
    pub(crate) tables: AnyTables<H>,
    /// The capacity for which the tables were made, or less.
    pub(crate) capacity: Capacity,
}

impl<H: HostTypes> ElevatorStorage<H> {
    /// Makes the tables that an elevator of this kind needs at this capacity. A custom elevator
    /// that the host does not have ([`HostTypes::Custom`]) is replaced by noop.
    pub fn make<M: TableMaker<H>>(kind: Kind, capacity: Capacity, maker: &mut M) -> Self {
        ElevatorStorage { tables: AnyTables::make(kind, capacity, maker), capacity }
    }

    /// Makes the tables of an elevator with the bandwidth-reservation layer over it. `cfq-bw`
    /// includes the layer, so for `cfq-bw` this equals [`make`](Self::make).
    pub fn make_reserving<M: TableMaker<H>>(kind: Kind, capacity: Capacity, maker: &mut M) -> Self {
        ElevatorStorage { tables: AnyTables::make_reserving(kind, capacity, maker), capacity }
    }

    /// The kind of elevator; the reservation layer does not change it.
    pub fn kind(&self) -> Kind {
        self.tables.kind()
    }

    /// Returns true if processes and groups can reserve bandwidth: with the layer, and in `cfq-bw`.
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
    use crate::elevator::custom::CustomElevators;
    use crate::elevator::tables::Owned;
    use crate::event::Sink;
    use alloc::vec;

    /// A table maker that allocates on the heap.
    struct Heap;

    impl<S: Sink, C: CustomElevators> TableMaker<Owned<S, C>> for Heap {
        fn table<T: Default + Clone + 'static>(&mut self, len: u32) -> alloc::boxed::Box<[T]> {
            vec![T::default(); len as usize].into_boxed_slice()
        }
    }

    impl<S: Sink, C: CustomElevators> Storage<Owned<S, C>> {
        /// Allocates the tables for this capacity on the heap.
        pub fn owned(capacity: Capacity) -> Self {
            Storage::make(capacity, &mut Heap)
        }
    }

    impl<S: Sink, C: CustomElevators> ElevatorStorage<Owned<S, C>> {
        /// Allocates the tables of an elevator of this kind on the heap.
        pub fn owned(kind: Kind, capacity: Capacity) -> Self {
            ElevatorStorage::make(kind, capacity, &mut Heap)
        }

        /// Allocates the tables of an elevator with the reservation layer on the heap; see
        /// [`make_reserving`](Self::make_reserving).
        pub fn owned_reserving(kind: Kind, capacity: Capacity) -> Self {
            ElevatorStorage::make_reserving(kind, capacity, &mut Heap)
        }
    }
}
