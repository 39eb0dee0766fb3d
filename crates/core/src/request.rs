//! Requests: what the elevator orders and the driver carries out.

use crate::bio::{Flags, Op};
use crate::collections::{Link, LinkOf, NIL, Slot};
use crate::priority::Priority;

/// Names a request from its submission to its completion; stale afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    pub(crate) slot: Slot,
    pub(crate) generation: u32,
}

/// A request: one extent of the disk, made of one or more bios that lie side by side.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Request {
    pub(crate) sector: u64,
    /// The token of the bio that it was made for.
    pub(crate) token: u64,
    /// When it was submitted, in ns.
    pub(crate) submitted_ns: u64,
    pub(crate) sectors: u32,
    pub(crate) context: Slot,
    pub(crate) generation: u32,
    /// The elevator's queue that it belongs to, in elevators that have queues.
    pub(crate) owner: Slot,
    /// Its place in its merge hash chain while the elevator has it; on the dispatch list's plain part; among free entries.
    pub(crate) list: Link,
    /// The first and last of the bios that were merged into it.
    pub(crate) merged: [Slot; 2],
    pub(crate) op: Op,
    pub(crate) flags: Flags,
    pub(crate) marks: Marks,
    pub(crate) state: State,
    /// The priority that counted for its context when it was made.
    pub(crate) priority: Priority,
}

/// Where a request stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Free,
    /// Allocated; the elevator has it.
    Sorted,
    /// On the dispatch list.
    Dispatched,
    /// The driver has it.
    Started,
}

/// The queue's own marks on a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(u16);

impl Marks {
    /// A merge into it was refused for size: it takes no more.
    pub const NO_MERGE: Marks = Marks(1);
    /// Nothing is sorted past it.
    pub const SOFT_BARRIER: Marks = Marks(2);
    /// Nothing passes it in either direction.
    pub const HARD_BARRIER: Marks = Marks(4);
    /// The elevator knows it (it was allocated while no switch was under way).
    pub const PRIVATE: Marks = Marks(8);
    /// The colour of the ordered sequence it was inserted in.
    pub const ORDERED_COLOUR: Marks = Marks(16);
    /// It is in the merge hash.
    pub const HASHED: Marks = Marks(32);
    /// The queue's own: a flush before or after a barrier, or the barrier's stand-in.
    pub const SEQUENCE: Marks = Marks(64);
    /// The driver has had it before.
    pub const ACTIVATED: Marks = Marks(128);
    /// The elevator has had it in its lists.
    pub const SORTED: Marks = Marks(256);
    /// On the dispatch list: it stands in the plain part, not in the sweep.
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

    /// What it does.
    pub fn op(&self) -> Op {
        self.op
    }

    /// Its marks: those of the bio it was made for.
    pub fn flags(&self) -> Flags {
        self.flags
    }

    /// The priority of its context as it was when the request was made, an unset one following nice and the CPU policy.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// The token of the bio that it was made for.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// When that bio became a request, in ns.
    pub fn submitted_ns(&self) -> u64 {
        self.submitted_ns
    }

    /// The sector after its last.
    #[inline]
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.sectors))
    }

    /// A read, or a write that somebody waits for.
    #[inline]
    pub(crate) fn is_sync(&self) -> bool {
        self.op.is_sync(self.flags)
    }
}

/// A request's place in order of arrival, apart from the rest of it: neighbours there are strangers otherwise, and this much of
/// all of them stays in the processor's cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival {
    /// Until when the elevator means to start it, or since when it has it: in the elevator's unit of time.
    pub(crate) deadline: u64,
    pub(crate) link: Link,
}

/// Lists of requests in order of arrival.
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

/// A bio that was merged into a request: the links of its request's chain.
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

/// Lists through the requests themselves: merge hash chains, the dispatch list's plain part, free entries. A request is on one of
/// them at a time.
#[derive(Debug)]
pub(crate) struct Plain;

impl LinkOf<Request> for Plain {
    #[inline]
    fn link(request: &Request) -> &Link {
        &request.list
    }
    #[inline]
    fn link_mut(request: &mut Request) -> &mut Link {
        &mut request.list
    }
}

/// A request is one cache line: where many are outstanding, what is read of each is what costs.
const _: () = assert!(size_of::<Request>() == 64);
