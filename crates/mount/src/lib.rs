//! A FUSE mount of a directory with one request queue per block device below it. Every thread that
//! reads or writes through the mount is an I/O context of an elevator.
//!
//! ```text
//! process ─▶ kernel ─▶ session thread ─▶ Passthrough (decodes the FUSE operation)
//!                                          │ cached data? answered at once
//!                                          ▼
//!                                        Gate::admit ──now──▶ the session thread does the I/O
//!                                          │ later
//!                                          ▼
//!                                        Gate::park ─▶ device queue (limits, elevator)
//!                                                        └─▶ io_uring or a worker ─▶ reply
//! ```
//!
//! [`Passthrough`] implements FUSE over the source directory and contains no scheduling.
//! A [`Gate`] classifies callers, places requests on the device and schedules them, and contains no
//! FUSE. [`Unscheduled`] is the gate that admits every request at once; with it the compiler
//! removes scheduling. [`scheduled`] is the gate with queues.
//!
//! Where to change what:
//! - mounting, unmounting and session threads: `session.rs`
//! - a FUSE operation: `passthrough/filesystem.rs` names the module that implements it, for example
//!   `passthrough/data.rs` for reads and writes, `passthrough/namespace.rs` for changes of metadata
//! - node numbers, and how long an inode is held: `passthrough/numbers.rs`, `passthrough/nodes.rs`
//! - which reads count as cached: `page_cache.rs`
//! - when a request waits: `scheduled/mod.rs`; its way through the disk's queue:
//!   `scheduled/queue.rs`
//! - what is known of a calling thread: `scheduled/thread_facts.rs`, `scheduled/issuers.rs`; its
//!   tenant: `scheduled/rules.rs`, `scheduled/cgroups.rs`
//! - addresses on the disk: `scheduled/extents.rs`; the disk of a file: `scheduled/disks.rs`
//! - execution of dispatched requests: `scheduled/executors.rs`, `scheduled/task.rs`,
//!   `scheduled/ring.rs`
//! - timers, killed and exited threads: `scheduled/timer.rs`, `scheduled/maintenance.rs`
//! - write-back and its limits: `scheduled/writeback/`
//! - memory that an idle mount releases: `passthrough/idle.rs`, `memory.rs`
//! - the control tree: `scheduled/admin.rs`, `scheduled/endpoints.rs`; terms that are changed at
//!   run time: `scheduled/run_time_terms.rs`
//!
#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod backing;
mod buffer;
mod gate;
mod memory;
mod page_cache;
mod passthrough;
pub mod scheduled;
mod session;

pub use backing::Backing;
pub use buffer::{ALIGNMENT, Buffer};
pub use gate::{Admission, Caller, Gate, GateRequest, Job, Operation, ReadDone, Unscheduled};
pub use passthrough::{Bypass, Counts, Options, Passthrough, WriteBack};
pub use session::{FILE_SYSTEM, MountError, MountOptions, Session, UnmountError, Unmounted, Unmounter, Users};
