//! The contract between the request queue and its elevators.

pub mod capacity;
pub mod custom;
pub mod dispatch_list;
pub mod hooks;
pub mod info;
pub mod queue_core;
pub mod reservation;
pub mod tables;
pub mod tunable;

use crate::bio::{Bio, Op};
use crate::clock::Timer;
use crate::collections::Slot;
use capacity::Capacity;
use queue_core::QueueCore;
use reservation::{Reservation, ReservationHolder, ReservationSummary, ReserveError};
use tables::{HostTypes, TableMaker};

/// An elevator's answer before a request is allocated for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayQueue {
    /// The rules of the request pool apply.
    May,
    /// Allocate even if the pool is full.
    Must,
    /// Let the process sleep: it has enough requests queued.
    No,
}

/// An elevator's answer to a search for a request into which a bio can be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// Use the queue's search: the last merged request, then back merges, then front merges.
    Usual,
    /// The elevator's own search found no request.
    Nothing,
    /// The elevator's own search found this request.
    Found(Slot, Merge),
}

/// The end at which a bio was merged into a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// At the end of the request.
    Back,
    /// At the front of the request; its first sector has changed.
    Front,
}

/// The active queue of an elevator with slices: it alone is served until its slice ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveSlice {
    /// The process id of the queue, or 0 for a queue that processes share.
    pub queue: u32,
    /// The latest end of the slice, in ns of the host's time; `None` while it is not set: several
    /// elevators set it at the queue's first completion. A slice also ends when the queue has no
    /// more requests, and in BFQ when its budget of sectors is used up. Paternoster estimates the
    /// end from the cost of requests.
    pub until_ns: Option<u64>,
}

/// An elevator whose tables follow from the capacity alone. All elevators implement this except the
/// registry's enum, which also needs the kind.
pub(crate) trait MakeTables<H: HostTypes>: Elevator<H> {
    /// Makes the tables, always in the same order.
    fn make_tables<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Self::Tables;
}

/// An elevator: it holds requests and decides which one moves to the dispatch list next.
///
/// For each request the queue calls `allocate`, `prepare_insert`, `insert`, possibly `merged` and
/// `join`, then `dispatch` until the request has moved, `activate` when the driver takes it,
/// `complete`, and `free`. The argument `core` is the rest of the queue.
pub(crate) trait Elevator<H: HostTypes>: Sized {
    /// The tables that the elevator needs beyond the queue's own.
    type Tables;

    /// Creates an elevator with default tunables. Groups and contexts may exist already.
    fn new(core: &mut QueueCore<H>, tables: Self::Tables) -> Self;

    /// Ends the elevator and returns its tables.
    fn into_tables(self) -> Self::Tables;

    /// Releases the contexts that the elevator holds, before it is replaced.
    fn retire(&mut self, _core: &mut QueueCore<H>) {}

    /// The value of the tunable at `index` of [`Info::tunables`](info::Info::tunables).
    fn tunable(&self, _index: usize) -> i64 {
        0
    }

    /// Sets the tunable at `index`. The value is within its range.
    fn set_tunable(&mut self, _core: &mut QueueCore<H>, _index: usize, _value: i64) {}

    /// Searches for a request into which a bio can be merged, in elevators with a search of their
    /// own.
    fn find_merge(&mut self, _core: &mut QueueCore<H>, _bio: &Bio) -> Search {
        Search::Usual
    }

    /// Returns true if the elevator uses its own search ([`find_merge`](Elevator::find_merge)). The
    /// queue then keeps no merge hash and merges no requests at insertion.
    fn searches_merges(&self) -> bool {
        false
    }

    /// Returns true if the bio may be merged into this queued request. Block layers from 2.6.19 on
    /// call it before they compare the extents.
    fn allow_merge(&mut self, _core: &mut QueueCore<H>, _request: Slot, _bio: &Bio) -> bool {
        true
    }

    /// Returns a queued request that begins at the end of the bio, or [`crate::collections::NIL`].
    fn find_front_merge(&mut self, _core: &mut QueueCore<H>, _bio: &Bio) -> Slot {
        crate::collections::NIL
    }

    /// Returns the queued request before this one that could be merged with it (its neighbour by
    /// sector in the queue's nodes), or [`crate::collections::NIL`].
    fn former(&self, core: &QueueCore<H>, request: Slot) -> Slot {
        core.tables.nodes[request].prev()
    }

    /// Returns the queued request after this one, or [`crate::collections::NIL`].
    fn latter(&self, core: &QueueCore<H>, request: Slot) -> Slot {
        core.tables.nodes[request].next()
    }

    /// A bio was merged into a queued request and no requests were merged. After a front merge the
    /// request must be sorted again.
    fn merged(&mut self, _core: &mut QueueCore<H>, _request: Slot, _merge: Merge) {}

    /// `absorbed` was merged into `request`, its lower neighbour: remove `absorbed`. A request that
    /// is merged at insertion was never in the elevator and is freed without this call.
    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot);

    /// A new request was merged into this queued one, at its end, and will not be inserted.
    fn joined_at_insert(&mut self, _core: &mut QueueCore<H>, _request: Slot) {}

    /// Returns true if two requests that are queued may be merged when a third one joins them.
    fn joins_queued(&self) -> bool {
        true
    }

    /// Returns one after the other the requests that the elevator holds for the driver in a decided
    /// order, and with which nothing is merged: the first for [`crate::collections::NIL`], then the
    /// one after each.
    fn settled_after(&self, _request: Slot) -> Slot {
        crate::collections::NIL
    }

    /// Decides whether a process may allocate a request in this direction.
    fn may_queue(&mut self, _core: &mut QueueCore<H>, _context: Slot, _op: Op) -> MayQueue {
        MayQueue::May
    }

    /// Returns how many of a pool of `nr_requests` may be allocated for this bio, in multi-queue
    /// layers.
    fn depth_limit(&self, _core: &QueueCore<H>, nr_requests: u32, _bio: &Bio) -> u32 {
        nr_requests
    }

    /// A request has been allocated.
    fn allocate(&mut self, _core: &mut QueueCore<H>, _request: Slot) {}

    /// A request is freed after completion, or because it was merged into another.
    fn free(&mut self, _core: &mut QueueCore<H>, _request: Slot) {}

    /// A new request is about to be inserted or merged into a queued one.
    fn prepare_insert(&mut self, _core: &mut QueueCore<H>, _request: Slot) {}

    /// Inserts a new request.
    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot);

    /// Prepares the insertion of a new request and inserts it: two steps with nothing in between.
    fn prepare_and_insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.prepare_insert(core, request);
        self.insert(core, request);
    }

    /// Completes and frees a request: two steps with nothing in between.
    fn complete_and_free(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.complete(core, request);
        self.free(core, request);
    }

    /// Moves requests to the dispatch list. Returns their number; 0 means none for now. With
    /// `force` all requests move.
    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32;

    /// Removes a queued request that goes to the dispatch list out of turn. Returns false if the
    /// elevator decides on all of its requests itself.
    fn withdraw(&mut self, _core: &mut QueueCore<H>, _request: Slot) -> bool {
        false
    }

    /// Moves requests of real-time processes only, whichever queue is active. The reservation layer
    /// uses it, whose requests rank between real time and all others. Elevators without classes
    /// return 0.
    fn dispatch_real_time(&mut self, _core: &mut QueueCore<H>) -> u32 {
        0
    }

    /// Returns true if the elevator keeps the disk idle and a `dispatch` now would restart that
    /// wait.
    fn would_restart_wait(&self, _core: &QueueCore<H>) -> bool {
        false
    }

    /// The driver takes a request.
    fn activate(&mut self, _core: &mut QueueCore<H>, _request: Slot) {}

    /// The driver returns a request to be issued again.
    fn deactivate(&mut self, _core: &mut QueueCore<H>, _request: Slot) {}

    /// A request has completed.
    fn complete(&mut self, _core: &mut QueueCore<H>, _request: Slot) {}

    /// The error in a custom elevator's own code, if one occurred.
    fn failure(&self) -> Option<&str> {
        None
    }

    /// Returns true if the elevator holds no request.
    fn is_empty(&self) -> bool;

    /// Returns the slice of the active queue; `None` without one, and in elevators without slices.
    fn slice(&self, _core: &QueueCore<H>) -> Option<ActiveSlice> {
        None
    }

    /// The process of a context exits.
    fn exit(&mut self, _core: &mut QueueCore<H>, _context: Slot) {}

    /// The priority of a context has changed.
    fn priority_changed(&mut self, _core: &mut QueueCore<H>, _context: Slot) {}

    /// Reserves bandwidth for a context or group, or changes its reservation.
    fn reserve(
        &mut self,
        _core: &mut QueueCore<H>,
        _holder: ReservationHolder,
        _wanted: Reservation,
    ) -> Result<(), ReserveError> {
        Err(ReserveError::NotSupported)
    }

    /// Ends the reservation of a context or group, if it has one.
    fn release(&mut self, _core: &mut QueueCore<H>, _holder: ReservationHolder) {}

    /// The reservation of a context or group.
    fn reservation(&self, _holder: ReservationHolder) -> Option<Reservation> {
        None
    }

    /// The load of all reservations on the device, in elevators with reservations.
    fn reserved(&self) -> Option<ReservationSummary> {
        None
    }

    /// Returns true while there are reservations, or requests that were made within one.
    fn reserves(&self) -> bool {
        false
    }

    /// Returns by how many ns a request that is not complete is behind the bound of its
    /// reservation, 0 if it is not; `None` if it is not within a reservation.
    fn lateness_ns(&self, _core: &QueueCore<H>, _request: Slot, _now_ns: u64) -> Option<u64> {
        None
    }

    /// A group was created.
    fn group_created(&mut self, _core: &mut QueueCore<H>, _group: Slot) {}

    /// The weights of a group were changed.
    fn group_weights_changed(&mut self, _core: &mut QueueCore<H>, _group: Slot) {}

    /// A group without contexts and child groups is to be removed. Releases the elevator's data on
    /// it; returns true if no request of the group is left.
    fn release_group(&mut self, _core: &mut QueueCore<H>, _group: Slot) -> bool {
        true
    }

    /// A context was moved to another group.
    fn group_changed(&mut self, _core: &mut QueueCore<H>, _context: Slot) {}

    /// A timer that the elevator armed has fired.
    fn timer(&mut self, _core: &mut QueueCore<H>, _timer: Timer) {}
}
