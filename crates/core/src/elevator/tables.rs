//! The tables in which requests, contexts and groups are stored.

use core::marker::PhantomData;
use core::ops::DerefMut;

use crate::collections::{Arena, Node};
use crate::context::{Context, ContextId};
use crate::event::Sink;
use crate::group::Group;
use crate::request::{Arrival, MergedBio, Request};

/// Where a queue's tables lie (borrowed slices or owned boxes) and where its trace events go.
pub trait HostTypes {
    /// A table of `T`.
    type Slots<T: 'static>: DerefMut<Target = [T]>;
    /// Takes the trace events.
    type Sink: Sink;
}

/// Tables that are slices of somebody else's memory.
#[derive(Debug)]
pub struct Borrowed<'a, S>(PhantomData<(&'a mut (), S)>);

impl<'a, S: Sink> HostTypes for Borrowed<'a, S> {
    type Slots<T: 'static> = &'a mut [T];
    type Sink = S;
}

/// Tables on the heap, allocated when the storage is made and never again.
#[cfg(feature = "alloc")]
#[derive(Debug)]
pub struct Owned<S>(PhantomData<S>);

#[cfg(feature = "alloc")]
impl<S: Sink> HostTypes for Owned<S> {
    type Slots<T: 'static> = alloc::boxed::Box<[T]>;
    type Sink = S;
}

/// Makes tables, each filled with defaults: the one way in which storage comes to be, on the heap, in a caller's block of memory, or only
/// on paper to learn how much is needed.
pub trait TableMaker<H: HostTypes> {
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
pub enum DeferredWork {
    /// Run the queue: give the driver what it takes.
    #[default]
    Run,
    /// Unplug the queue. [`next_work`](crate::RequestQueue::next_work) does it itself and never answers this.
    Unplug,
    /// A process that slept for a request may go on: submit its bio again with `resubmit`.
    Wake(ContextId),
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

/// A table whose storage the home provides.
pub(crate) type TableOf<H, T> = Arena<T, <H as HostTypes>::Slots<T>>;

/// The tables that requests and contexts lie in.
pub(crate) struct QueueTables<H: HostTypes> {
    pub requests: TableOf<H, Request>,
    pub nodes: TableOf<H, Node>,
    pub arrivals: TableOf<H, Arrival>,
    pub merged: TableOf<H, MergedBio>,
    pub contexts: TableOf<H, Context>,
    pub groups: TableOf<H, Group>,
}
