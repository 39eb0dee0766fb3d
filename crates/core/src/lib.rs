//! Linux I/O schedulers ("elevators") and the request queue of the block layer in which they run.
//!
//! The crate performs no I/O. The host passes in the time and events; the crate reads no clock,
//! draws no random numbers and uses no floating point. It cannot panic, allocates nothing after
//! construction, and returns the same results for the same calls on every machine.
//!
//! Start at [`RequestQueue`]. [`Kind`] lists the elevators.
//!
//! # Layers
//!
//! Imports point from each layer to the ones before it:
//!
//! 1. `collections/`: arena, lists, tree, heap, hash chains, ring, decaying mean. Look-ups are
//!    total, so callers cannot panic.
//! 2. `bio.rs`, `request.rs`, `context.rs`, `group.rs`, `priority.rs`, `clock.rs`, `event.rs`,
//!    `layer.rs`, `bucket.rs`: the types.
//! 3. `elevator/`: the contract. `Elevator` (trait), `QueueCore` (the part of the queue that
//!    elevators use), `Info` and tunables.
//! 4. `elevators/`: one file or folder for each elevator; `elevators/shared/` has the rules that
//!    several of them use.
//! 5. `registry.rs`: the list of elevators and static dispatch over them; `storage.rs`: their
//!    tables.
//! 6. `queue/`: the request queue; `priority_effect.rs`: the effect of a priority on each elevator.
//!
//! # Where to change what
//!
//! - A rule of one elevator: its file in `elevators/`. It has, in this order: state, tunables,
//!   merge, insert, select, dispatch, complete, timers.
//! - A tunable: the `INFO` row in the elevator's file or its module `tunables`. Commands, pages and
//!   the control tree follow from the row.
//! - Custom elevators, which other crates bring: the contract is `elevator/custom.rs`, the checks
//!   of their answers are `elevators/custom.rs`.
//! - A new elevator: its file, one line in `elevators!` in `registry.rs`, `pub mod` in
//!   `elevators/mod.rs`, the effect of priorities in `priority_effect.rs`; see CONTRIBUTING.md.
//! - B-WF2Q+ (bfq, bfq-v0, cfq-wf2q): `elevators/shared/wf2q/`.
//! - Turns of process queues (bfq-v0, cfq-wf2q): `elevators/shared/turns/`.
//! - Deadlines and sorting: `elevators/shared/{sorted_fifo,read_write_queues,direction}.rs`.
//! - Choice of the next request by distance: `elevators/shared/chooser.rs`.
//! - Slices, idling and async queues of CFQ:
//!   `elevators/shared/{slice_tunables,idling,async_queues}.rs`.
//! - Order of the driver's list before 2.6.14 (cfq-v1, cfq-v2): `elevators/shared/driver_list.rs`.
//! - Bandwidth reservations over any elevator (`cfq-bw` is cfq-v3 with them):
//!   `elevators/bandwidth/`.
//! - Load of a reservation on a device, and admission: `elevators/bandwidth/figures.rs`.
//! - Think time and seek distance of a process: `History` in `context.rs`.
//! - Differences between block layers of kernels: `layer.rs`; elevators never test for a kernel.
//! - Token buckets of reservations and limits: `bucket.rs`.
//! - Merges that the host makes (the kernel module): `queue/host_merge.rs`.
//! - Submission, merging, plugging, the request pool, barriers, switching: one file each in
//!   `queue/`.
//! - The sorted dispatch list: `elevator/dispatch_list.rs`.
//! - Trace events and notes: `event.rs`.
//!
#![cfg_attr(feature = "alloc", doc = include_str!("../README.md"))]
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
pub use collections::{Node, Siblings};
pub use context::{Context, ContextId};
pub use elevator::capacity::{Capacity, RESERVED_REQUESTS};
pub use elevator::custom::{
    CustomElevator, CustomElevators, CustomKind, CustomRequest, LONGEST_WAIT_NS, NoCustom, QueueView, Rule, Violation,
};
pub use elevator::info::Info;
pub use elevator::reservation::{Reservation, ReservationSummary, ReserveError};
#[cfg(feature = "alloc")]
pub use elevator::tables::Owned;
pub use elevator::tables::{Borrowed, DeferredWork, HostTypes, TableMaker};
pub use elevator::tunable::{Tunable, TunableError, Unit};
pub use elevator::{ActiveSlice, Merge};
pub use elevators::bandwidth::DeviceFigures;
pub use event::{Event, Expiry, Io, NoSink, Note, Sink};
pub use group::{Group, GroupError, GroupId, GroupWeights};
pub use layer::BlockLayer;
pub use priority::{Class, CpuPolicy, LEVELS, NORMAL_LEVEL, Priority};
pub use priority_effect::PriorityEffect;
pub use queue::{
    Extent, Full, HostSearch, Kick, MergeError, Next, OrderedMode, Pending, QueueConfig, RequestQueue, Stale,
    SubmitError, Submitted,
};
pub use registry::Kind;
pub use request::{Arrival, MergedBio, Request, RequestId};
pub use storage::{ElevatorStorage, Storage};
