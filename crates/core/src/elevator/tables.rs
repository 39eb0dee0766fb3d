//! The tables in which requests, contexts and groups are stored.

use core::marker::PhantomData;
use core::ops::DerefMut;

use crate::collections::{Arena, Node};
use crate::context::{Context, ContextId};
use crate::event::Sink;
use crate::group::Group;
use crate::request::{Arrival, MergedBio, Request};

/// The types that the host supplies: the storage of tables (borrowed slices or boxes) and the sink
/// of trace events.
pub trait HostTypes {
    /// The storage of a table of `T`.
    type Slots<T: 'static>: DerefMut<Target = [T]>;
    /// The sink of trace events.
    type Sink: Sink;
}

/// Host types with tables in borrowed slices.
#[derive(Debug)]
pub struct Borrowed<'a, S>(PhantomData<(&'a mut (), S)>);

impl<'a, S: Sink> HostTypes for Borrowed<'a, S> {
    type Slots<T: 'static> = &'a mut [T];
    type Sink = S;
}

/// Host types with tables on the heap, allocated once at construction.
#[cfg(feature = "alloc")]
#[derive(Debug)]
pub struct Owned<S>(PhantomData<S>);

#[cfg(feature = "alloc")]
impl<S: Sink> HostTypes for Owned<S> {
    type Slots<T: 'static> = alloc::boxed::Box<[T]>;
    type Sink = S;
}

/// Makes tables filled with default values. All storage is made through this trait: on the heap, in
/// a caller's memory, or in a dry run that computes the size.
pub trait TableMaker<H: HostTypes> {
    /// Makes a table of `len` entries.
    fn table<T: Default + Clone + 'static>(&mut self, len: u32) -> H::Slots<T>;
}

/// The maximum number of objects in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Requests that are queued, dispatched or in the device: 1 to about 2^24.
    pub requests: u32,
    /// I/O contexts, including exited ones with pending requests.
    pub contexts: u32,
    /// Bios merged into requests, not counting the bio for which each request was made.
    pub merged_bios: u32,
    /// Groups including the root; 0 and 1 both mean the root only.
    pub groups: u32,
}

impl Default for Capacity {
    /// The classic pool (1.5 times 128 per direction), 256 processes, well merged requests, 16
    /// groups.
    fn default() -> Self {
        Capacity { requests: 384, contexts: 256, merged_bios: 4096, groups: 16 }
    }
}

/// Requests reserved for the queue: a flush before and after a barrier, and the barrier's proxy.
pub const RESERVED_REQUESTS: u32 = 3;

/// Work to be done after an event, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeferredWork {
    /// Run the queue: pass requests to the driver.
    #[default]
    Run,
    /// Unplug the queue. [`next_work`](crate::RequestQueue::next_work) does this itself and never
    /// returns it.
    Unplug,
    /// Wake a process that slept for a request: submit its bio again with `resubmit`.
    Wake(ContextId),
}

impl Capacity {
    /// The capacity that both have.
    pub(crate) fn common(self, other: Capacity) -> Capacity {
        Capacity {
            requests: self.requests.min(other.requests),
            contexts: self.contexts.min(other.contexts),
            merged_bios: self.merged_bios.min(other.merged_bios),
            groups: self.groups.min(other.groups),
        }
    }

    /// The maximum number of queues in an elevator with one sync and one async queue per process.
    pub const fn queues(self) -> u32 {
        self.contexts.saturating_mul(2).saturating_add(self.requests)
    }

    /// The length of the request table.
    pub const fn request_slots(self) -> u32 {
        self.requests.saturating_add(RESERVED_REQUESTS)
    }

    /// The length of the group table, including the root.
    pub const fn group_slots(self) -> u32 {
        if self.groups == 0 { 1 } else { self.groups }
    }

    /// The length of the ring of deferred work.
    pub const fn work_slots(self) -> u32 {
        self.contexts.saturating_add(3)
    }
}

/// The number of hash buckets for so many entries; a power of two.
pub(crate) fn buckets(entries: u32) -> u32 {
    entries.max(1).checked_next_power_of_two().unwrap_or(1 << 31)
}

/// A table in the host's storage.
pub(crate) type TableOf<H, T> = Arena<T, <H as HostTypes>::Slots<T>>;

/// The tables of requests, contexts and groups.
pub(crate) struct QueueTables<H: HostTypes> {
    pub requests: TableOf<H, Request>,
    pub nodes: TableOf<H, Node>,
    pub arrivals: TableOf<H, Arrival>,
    pub merged: TableOf<H, MergedBio>,
    pub contexts: TableOf<H, Context>,
    pub groups: TableOf<H, Group>,
}
