//! The contract between the request queue and its elevators, below both.

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
use queue_core::QueueCore;
use reservation::{Reservation, ReservationHolder, ReservationSummary, ReserveError};
use tables::{Capacity, HostTypes, TableMaker};

/// What an elevator answers when a process is about to allocate a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayQueue {
    /// The pool's rules apply.
    May,
    /// Allocate even from a full pool.
    Must,
    /// The process has enough requests for now: it waits.
    No,
}

/// What an elevator answers when a request is looked for that a bio could join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// The queue's own search: the last merged, then by end, then by front.
    Usual,
    /// The elevator searches for itself and has found nothing.
    Nothing,
    /// It has found this one.
    Found(Slot, Merge),
}

/// How a bio was merged into a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// At its end.
    Back,
    /// At its front: its first sector has changed.
    Front,
}

/// An elevator whose tables can be made from the capacity alone: each but the registry's enum of them all, which has to be told the kind.
pub(crate) trait MakeTables<H: HostTypes>: Elevator<H> {
    /// Has its tables made, in an order of its own that is always the same.
    fn make_tables<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Self::Tables;
}

/// An elevator: it holds requests and decides which goes to the dispatch list next.
///
/// The queue calls it in this order for each request: `allocate`, `prepare_insert`, `insert`, perhaps `merged` and `join`, then
/// `dispatch` until it is moved, `activate` when the driver takes it, `complete`, `free`. `block` is the rest of the queue.
pub(crate) trait Elevator<H: HostTypes>: Sized {
    /// The tables that it needs beyond the queue's own.
    type Tables;

    /// A fresh elevator, with its default tunables. Groups and contexts may be there already.
    fn new(core: &mut QueueCore<H>, tables: Self::Tables) -> Self;

    /// Ends it and gives the tables back.
    fn into_tables(self) -> Self::Tables;

    /// It is about to be replaced: let go of contexts that it holds.
    fn retire(&mut self, _core: &mut QueueCore<H>) {}

    /// The value of the tunable at place `index` of its declaration's list.
    fn tunable(&self, _index: usize) -> i64 {
        0
    }

    /// Stores the tunable at place `index`; the value is within its range.
    fn set_tunable(&mut self, _core: &mut QueueCore<H>, _index: usize, _value: i64) {}

    /// Looks for a request that a bio could join, in elevators that do not leave that to the queue.
    fn find_merge(&mut self, _core: &mut QueueCore<H>, _bio: &Bio) -> Search {
        Search::Usual
    }

    /// Whether it searches for merges by itself, by [`find_merge`](Elevator::find_merge): then the queue keeps no hash of requests, and joins
    /// none as it is inserted.
    fn searches_merges(&self) -> bool {
        false
    }

    /// Whether the bio may join this queued request, in block layers that ask (2.6.19 and later); asked before it is known whether they
    /// touch.
    fn allow_merge(&mut self, _core: &mut QueueCore<H>, _request: Slot, _bio: &Bio) -> bool {
        true
    }

    /// A queued request that begins where the bio ends, if the elevator looks for one, or [`crate::collections::NIL`].
    fn find_front_merge(&mut self, _core: &mut QueueCore<H>, _bio: &Bio) -> Slot {
        crate::collections::NIL
    }

    /// The queued request that comes before this one and could join it, or [`crate::collections::NIL`]: its neighbour by sector, where requests
    /// are sorted in the queue's nodes.
    fn former(&self, core: &QueueCore<H>, request: Slot) -> Slot {
        core.tables.nodes[request].prev()
    }

    /// The queued request that comes after.
    fn latter(&self, core: &QueueCore<H>, request: Slot) -> Slot {
        core.tables.nodes[request].next()
    }

    /// A bio was merged into a queued request and nothing joined; after a front merge it must be re-filed.
    fn merged(&mut self, _core: &mut QueueCore<H>, _request: Slot, _merge: Merge) {}

    /// `absorbed` has become part of `request`, its lower neighbour: forget it. (One that joins as it is inserted was never inside: it is
    /// freed without this.)
    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot);

    /// Whether a process may allocate a request in this direction.
    fn may_queue(&mut self, _core: &mut QueueCore<H>, _context: Slot, _op: Op) -> MayQueue {
        MayQueue::May
    }

    /// How many of a pool of `nr_requests` may be allocated when this bio asks for a request, in multi-queue block layers.
    fn depth_limit(&self, _core: &QueueCore<H>, nr_requests: u32, _bio: &Bio) -> u32 {
        nr_requests
    }

    /// A request was allocated.
    fn allocate(&mut self, _core: &mut QueueCore<H>, _request: Slot) {}

    /// A request is freed: completed, or absorbed.
    fn free(&mut self, _core: &mut QueueCore<H>, _request: Slot) {}

    /// A new request is about to be inserted, or to join a queued one instead.
    fn prepare_insert(&mut self, _core: &mut QueueCore<H>, _request: Slot) {}

    /// A new request.
    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot);

    /// Moves requests to the dispatch list and answers how many; 0 is none for now. Forced, it moves all it has.
    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32;

    /// The same, but of real-time processes only, whoever has the disk: for a layer above that has requests which come between those
    /// and all others. An elevator without classes has none.
    fn dispatch_real_time(&mut self, _core: &mut QueueCore<H>) -> u32 {
        0
    }

    /// Whether it keeps the disk idle and would begin that wait anew if it were asked for a request now.
    fn waits_anew(&self, _core: &QueueCore<H>) -> bool {
        false
    }

    /// The driver takes a request.
    fn activate(&mut self, _core: &mut QueueCore<H>, _request: Slot) {}

    /// The driver gives it back, to be sent again.
    fn deactivate(&mut self, _core: &mut QueueCore<H>, _request: Slot) {}

    /// A request is done.
    fn complete(&mut self, _core: &mut QueueCore<H>, _request: Slot) {}

    /// Whether no request is inside.
    fn is_empty(&self) -> bool;

    /// The process of a context exits.
    fn exit(&mut self, _core: &mut QueueCore<H>, _context: Slot) {}

    /// A context's priority was changed.
    fn priority_changed(&mut self, _core: &mut QueueCore<H>, _context: Slot) {}

    /// Reserves bandwidth for a context or group, or changes what it has reserved.
    fn reserve(
        &mut self,
        _core: &mut QueueCore<H>,
        _holder: ReservationHolder,
        _wanted: Reservation,
    ) -> Result<(), ReserveError> {
        Err(ReserveError::NotSupported)
    }

    /// Gives a context's or group's reservation back, if it has one.
    fn release(&mut self, _core: &mut QueueCore<H>, _holder: ReservationHolder) {}

    /// What a context or group has reserved.
    fn reservation(&self, _holder: ReservationHolder) -> Option<Reservation> {
        None
    }

    /// How much of the device is reserved, in elevators that reserve.
    fn reserved(&self) -> Option<ReservationSummary> {
        None
    }

    /// A group was made.
    fn group_created(&mut self, _core: &mut QueueCore<H>, _group: Slot) {}

    /// A group's weights were changed.
    fn group_weights_changed(&mut self, _core: &mut QueueCore<H>, _group: Slot) {}

    /// A group without contexts and child groups is to be removed: let go of all that is kept for it, and answer whether no request
    /// of it is left.
    fn release_group(&mut self, _core: &mut QueueCore<H>, _group: Slot) -> bool {
        true
    }

    /// A context was moved to another group.
    fn group_changed(&mut self, _core: &mut QueueCore<H>, _context: Slot) {}

    /// A timer that the elevator armed has fired.
    fn timer(&mut self, _core: &mut QueueCore<H>, _timer: Timer) {}
}
