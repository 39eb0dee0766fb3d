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
mod context;
mod effect;
mod elevators;
mod event;
mod group;
mod layer;
mod parts;
mod priority;
mod queue;
mod registry;
mod request;
mod storage;
mod tunable;

pub use bio::{Bio, Flags, Op};
pub use bucket::TokenBucket;
pub use clock::ClockConfig;
pub use context::{Context, ContextId};
pub use effect::PriorityEffect;
pub use elevators::{DeviceFigures, Merge};
pub use event::{Event, Expiry, Io, NoSink, Note, Sink};
pub use group::{Group, GroupError, GroupId, GroupWeights};
pub use layer::BlockLayer;
pub use parts::{HeapEntry, Node};
pub use priority::{Class, CpuPolicy, LEVELS, NORMAL_LEVEL, Priority};
pub use queue::reserve::{Reservation, ReserveError, Reserved};
pub use queue::{Full, Kick, Next, OrderedMode, QueueConfig, RequestQueue, Stale, SubmitError, Submitted};
pub use registry::{Info, Kind};
pub use request::{Arrival, MergedBio, Request, RequestId};
#[cfg(feature = "alloc")]
pub use storage::Owned;
pub use storage::{Borrowed, Capacity, ElevatorStorage, Home, Maker, RESERVED_REQUESTS, Storage, Work};
pub use tunable::{Tunable, TunableError, Unit};
