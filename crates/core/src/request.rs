//! Requests: what the elevator orders and the driver carries out.

use crate::bio::{Flags, Op};
use crate::parts::{Link, LinkOf, NIL, Slot};

/// Names a request from its submission to its completion; stale afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    pub(crate) slot: Slot,
    pub(crate) generation: u32,
}

/// A request: one extent of the disk, made of one or more bios that lie side by side.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub(crate) sector: u64,
    /// The token of the bio that it was made for.
    pub(crate) token: u64,
    /// When it was submitted, in ns.
    pub(crate) submitted_ns: u64,
    /// Until when the elevator means to start it, or since when it has it: in the elevator's unit of time.
    pub(crate) deadline: u64,
    pub(crate) sectors: u32,
    pub(crate) context: Slot,
    pub(crate) generation: u32,
    /// The elevator's queue that it belongs to, in elevators that have queues.
    pub(crate) owner: Slot,
    /// Its place in order of arrival.
    pub(crate) fifo: Link,
    /// Its place on the dispatch list's unsorted part, among free entries, or in an elevator's plain list.
    pub(crate) list: Link,
    /// Its place in its merge hash chain.
    pub(crate) hash: Link,
    /// The first and last of the bios that were merged into it.
    pub(crate) merged: [Slot; 2],
    pub(crate) op: Op,
    pub(crate) flags: Flags,
    pub(crate) marks: Marks,
    pub(crate) state: State,
    /// On the dispatch list: it stands in the plain part, not in the sweep.
    pub(crate) in_plain_part: bool,
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
            deadline: 0,
            sectors: 0,
            context: NIL,
            generation: 0,
            owner: NIL,
            fifo: Link::default(),
            list: Link::default(),
            hash: Link::default(),
            merged: [NIL; 2],
            op: Op::Read,
            flags: Flags::NONE,
            marks: Marks::default(),
            state: State::Free,
            in_plain_part: false,
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
        self.op == Op::Read || self.flags.has(Flags::SYNC)
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

macro_rules! request_link {
    ($(#[$doc:meta])* $name:ident, $field:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name;

        impl LinkOf<Request> for $name {
            #[inline]
            fn link(request: &Request) -> &Link {
                &request.$field
            }
            #[inline]
            fn link_mut(request: &mut Request) -> &mut Link {
                &mut request.$field
            }
        }
    };
}

request_link!(
    /// Lists in order of arrival.
    Fifo,
    fifo
);
request_link!(
    /// The dispatch list's unsorted part, free entries, plain lists of elevators.
    Plain,
    list
);
request_link!(
    /// Merge hash chains.
    Hashed,
    hash
);
