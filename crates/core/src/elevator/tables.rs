//! The tables in which requests, contexts and groups are stored.

use core::marker::PhantomData;
use core::ops::DerefMut;

use crate::collections::{Arena, Node};
use crate::context::{Context, ContextId};
use crate::elevator::custom::{CustomElevators, NoCustom};
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
    /// The elevators of the host's own; [`NoCustom`] if it has none.
    type Custom: CustomElevators;
    /// True if queues can switch elevators. A host without switches leaves out the code that
    /// replaces an elevator, which takes most of the stack of a completion.
    const SWITCHES: bool = true;
}

/// Host types with tables in borrowed slices.
#[derive(Debug)]
pub struct Borrowed<'a, S>(PhantomData<(&'a mut (), S)>);

impl<'a, S: Sink> HostTypes for Borrowed<'a, S> {
    type Slots<T: 'static> = &'a mut [T];
    type Sink = S;
    type Custom = NoCustom;
}

/// Host types with tables on the heap, allocated once at construction, and with the custom
/// elevators `C`.
#[cfg(feature = "alloc")]
#[derive(Debug)]
pub struct Owned<S, C = NoCustom>(PhantomData<(S, C)>);

#[cfg(feature = "alloc")]
impl<S: Sink, C: CustomElevators> HostTypes for Owned<S, C> {
    type Slots<T: 'static> = alloc::boxed::Box<[T]>;
    type Sink = S;
    type Custom = C;
}

/// Makes tables filled with default values. All storage is made through this trait: on the heap, in
/// a caller's memory, or in a dry run that computes the size.
pub trait TableMaker<H: HostTypes> {
    /// Makes a table of `len` entries.
    fn table<T: Default + Clone + 'static>(&mut self, len: u32) -> H::Slots<T>;
}

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

/// The number of hash buckets for this many entries; a power of two.
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
