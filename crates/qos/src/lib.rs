//! One disk's queue, without I/O: tenants with weights, limits and reservations share the disk by
//! an elevator.
//!
//! ```text
//! submit ─▶ limits ─▶ pieces ─▶ RequestQueue (reservations, elevator) ─▶ queue depth ─▶ Medium
//!    └─ flushes: one in flight at a time ───────────────────────────────────────────┘
//! ```
//!
//! The NBD server hosts a [`DiskQueue`] over a file, memory or an emulated drive; the FUSE mount
//! hosts one over the disk below a directory. The host passes the time to every call, implements
//! [`Medium`], and calls [`DiskQueue::run`] when [`DiskQueue::next_wake_ns`] says so. Nothing here
//! reads a clock or does I/O.
//!
//! | module | contents |
//! |---|---|
//! | [`terms`] | what a tenant is granted: priority, weight, reservation, limits |
//! | [`request`] | requests, completions and errors at the boundary to the host |
//! | [`medium`] | the trait that a host implements to start I/O |
//! | [`queue`] | the flow of requests: admission, splitting, dispatch, flushes, completion |
//! | [`scheduler`] | everything that does not depend on the host's data types: request queue, elevator, tenants, limits, queue depth |
//! | [`limiter`] | token buckets of tenants and groups |
//! | [`account`] | counters and latency histograms for each tenant |
//! | [`recorder`] | the interface of recorders of queue events |
//!
//! Where to change what:
//! - the defaults of a device's elevator, and what a switch sets up again: `scheduler/elevator.rs`
//! - tenants, groups, reservations at run time: `scheduler/membership.rs`
//! - the order of admission, pieces, completion: `queue/dispatch.rs`; flush coalescing:
//!   `queue/flush.rs`
//! - the ids of I/O and commands: `ids.rs`
//! - the bandwidth figures that admission of reservations uses: `figures.rs`
//! - the rate of log lines that clients cause, of server and mount: `log_limit.rs`
//!
#![doc = include_str!("../README.md")]

pub mod account;
mod entries;
mod figures;
mod ids;
pub mod limiter;
mod log_limit;
pub mod medium;
pub mod queue;
pub mod recorder;
pub mod request;
pub mod scheduler;
mod tenants;
pub mod terms;

pub use account::{Account, OpAccount, OpKind};
pub use figures::{is_layer_tunable, reservation_figures, reservation_of};
pub use ids::{CommandId, IoId};
pub use log_limit::LogRateLimiter;
pub use medium::{Begin, Medium, MediumEvent, MediumProperties, MediumRequest, Output};
pub use queue::DiskQueue;
pub use recorder::Recorder;
pub use request::{Completion, Hints, IoError, IoRequest, RequestOp};
pub use scheduler::{
    CAPACITY, CLOCK, DEPTH_MAX, DiskQueueConfig, DiskScheduler, JoinError, MemberId, ProcessPriority, QueueError,
    ReconfigureError, SliceState, SwitchError, TermsError,
};
pub use terms::{Limits, Rate, Reserve, Terms};
