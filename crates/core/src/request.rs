//! Requests: the units that elevators order and drivers execute.

use crate::bio::{Flags, Op};
use crate::collections::{Link, LinkOf, NIL, Slot};
use crate::priority::Priority;

/// The handle of a request, from submission to completion; stale afterwards. The default handle is
/// stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RequestId {
    pub(crate) slot: Slot,
    pub(crate) generation: u32,
}

/// A request: one extent of the disk, made of one or more adjacent bios.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Request {
    pub(crate) sector: u64,
    /// The token of the bio for which the request was made.
    pub(crate) token: u64,
    /// The submission time of that bio, in ns.
    pub(crate) submitted_ns: u64,
    pub(crate) sectors: u32,
    pub(crate) context: Slot,
    pub(crate) generation: u32,
    /// The slot of its queue in the elevator, in elevators with queues.
    pub(crate) owner: Slot,
    /// The link in the merge hash chain (in the elevator), in the plain part of the dispatch list,
    /// or in the list of free entries.
    pub(crate) list: Link,
    /// The first and last of the merged bios.
    pub(crate) merged: [Slot; 2],
    pub(crate) op: Op,
    pub(crate) flags: Flags,
    pub(crate) marks: Marks,
    pub(crate) state: State,
    /// The effective priority of the context when the request was made.
    pub(crate) priority: Priority,
}

/// The state of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Free,
    /// Allocated and held by the elevator.
    Sorted,
    /// On the dispatch list.
    Dispatched,
    /// Taken by the driver.
    Started,
}

/// The queue's internal marks on a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(u16);

impl Marks {
    /// No further merges: a merge was refused because of the size limit.
    pub const NO_MERGE: Marks = Marks(1);
    /// Dispatch sorting does not pass the request.
    pub const SOFT_BARRIER: Marks = Marks(2);
    /// No request passes it in either direction.
    pub const HARD_BARRIER: Marks = Marks(4);
    /// The elevator has seen the request: it was allocated while no switch was in progress.
    pub const PRIVATE: Marks = Marks(8);
    /// The colour of the ordered sequence in which the request was inserted.
    pub const ORDERED_COLOUR: Marks = Marks(16);
    /// The request is in the merge hash.
    pub const HASHED: Marks = Marks(32);
    /// A request of the queue itself: a flush before or after a barrier, or the barrier's proxy.
    pub const SEQUENCE: Marks = Marks(64);
    /// The driver has taken the request before.
    pub const ACTIVATED: Marks = Marks(128);
    /// The request has been in the elevator's lists.
    pub const SORTED: Marks = Marks(256);
    /// On the dispatch list, the request is in the plain part, not in the sweep.
    pub const PLAIN: Marks = Marks(512);

    #[inline]
    pub fn has(self, mark: Marks) -> bool {
        self.0 & mark.0 != 0
    }
    #[inline]
    pub fn set(&mut self, mark: Marks) {
        self.0 |= mark.0;
    }
    #[inline]
    pub fn clear(&mut self, mark: Marks) {
        self.0 &= !mark.0;
    }
}

impl Default for Request {
    fn default() -> Self {
        Request {
            sector: 0,
            token: 0,
            submitted_ns: 0,
            sectors: 0,
            context: NIL,
            generation: 0,
            owner: NIL,
            list: Link::default(),
            merged: [NIL; 2],
            op: Op::Read,
            flags: Flags::NONE,
            marks: Marks::default(),
            state: State::Free,
            priority: Priority::UNSET,
        }
    }
}

impl Request {
    /// The first sector, in units of 512 bytes.
    pub fn sector(&self) -> u64 {
        self.sector
    }

    /// The length in sectors of 512 bytes.
    pub fn sectors(&self) -> u32 {
        self.sectors
    }

    /// The operation.
    pub fn op(&self) -> Op {
        self.op
    }

    /// The flags, inherited from the bio for which the request was made.
    pub fn flags(&self) -> Flags {
        self.flags
    }

    /// The effective priority of the context when the request was made.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// The token of the bio for which the request was made.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// The time at which that bio became a request, in ns.
    pub fn submitted_ns(&self) -> u64 {
        self.submitted_ns
    }

    /// Returns the sector after the last one.
    #[inline]
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.sectors))
    }

    /// Returns true for a read, or a write with the flag `SYNC`.
    #[inline]
    pub(crate) fn is_sync(&self) -> bool {
        self.op.is_sync(self.flags)
    }
}

/// The position of a request in order of arrival. It is apart from [`Request`] because neighbours
/// in this order are otherwise unrelated, and this table fits the processor's cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival {
    /// The deadline or the arrival time, in the elevator's unit of time.
    pub(crate) deadline: u64,
    pub(crate) link: Link,
}

/// The lists of requests in order of arrival.
#[derive(Debug)]
pub(crate) struct Arrivals;

impl LinkOf<Arrival> for Arrivals {
    #[inline]
    fn link(arrival: &Arrival) -> &Link {
        &arrival.link
    }
    #[inline]
    fn link_mut(arrival: &mut Arrival) -> &mut Link {
        &mut arrival.link
    }
}

/// A bio that was merged into a request: an element of the request's chain.
#[derive(Clone, Copy, Debug)]
pub struct MergedBio {
    pub(crate) token: u64,
    pub(crate) next: Slot,
}

impl Default for MergedBio {
    fn default() -> Self {
        MergedBio { token: 0, next: NIL }
    }
}

/// Lists linked through the requests: merge hash chains, the plain part of the dispatch list, free
/// entries. A request is on one of them at a time.
#[derive(Debug)]
pub(crate) struct RequestLists;

impl LinkOf<Request> for RequestLists {
    #[inline]
    fn link(request: &Request) -> &Link {
        &request.list
    }
    #[inline]
    fn link_mut(request: &mut Request) -> &mut Link {
        &mut request.list
    }
}

/// A request is one cache line: with many outstanding requests, cache misses dominate the cost.
const _: () = assert!(size_of::<Request>() == 64);
