//! Linux's I/O schedulers, and the request queue that they work in.
//!
//! Everything here is told the time and given events; it reads no clock, does no I/O, draws no random numbers and uses no floating
//! point. It cannot panic, does not allocate once it is made, and gives the same answers to the same calls on every machine.
//!
//! Start at [`RequestQueue`]. [`Kind`] is the registry of elevators.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod bio;
mod bucket;
mod clock;
mod collections;
mod context;
mod elevator;
mod elevators;
mod event;
mod group;
mod layer;
mod priority;
mod priority_effect;
mod queue;
mod registry;
mod request;
mod storage;

pub use bio::{Bio, Flags, Op};
pub use bucket::TokenBucket;
pub use clock::ClockConfig;
pub use collections::{HeapEntry, Node};
pub use context::{Context, ContextId};
pub use elevator::Merge;
pub use elevator::info::Info;
pub use elevator::reservation::{Reservation, ReservationSummary, ReserveError};
#[cfg(feature = "alloc")]
pub use elevator::tables::Owned;
pub use elevator::tables::{Borrowed, Capacity, DeferredWork, HostTypes, RESERVED_REQUESTS, TableMaker};
pub use elevator::tunable::{Tunable, TunableError, Unit};
pub use elevators::bandwidth::DeviceFigures;
pub use event::{Event, Expiry, Io, NoSink, Note, Sink};
pub use group::{Group, GroupError, GroupId, GroupWeights};
pub use layer::BlockLayer;
pub use priority::{Class, CpuPolicy, LEVELS, NORMAL_LEVEL, Priority};
pub use priority_effect::PriorityEffect;
pub use queue::{Full, Kick, Next, OrderedMode, QueueConfig, RequestQueue, Stale, SubmitError, Submitted};
pub use registry::Kind;
pub use request::{Arrival, MergedBio, Request, RequestId};
pub use storage::{ElevatorStorage, Storage};
