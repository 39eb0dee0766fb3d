//! A directory seen through FUSE, with a request queue for each device below it: every process that reads or writes there is an I/O context.
//!
//! ```text
//! process ─▶ kernel ─▶ a session's thread ─▶ Passthrough (what the operation is)
//!                                              │ in memory already? answered at once
//!                                              ▼
//!                                            Gate::enter ──now──▶ the thread does it itself, and answers
//!                                              │ later
//!                                              ▼
//!                                            Gate::park ─▶ RequestQueue (limits, reservations, elevator) ─▶ io_uring or a worker ─▶ answer
//! ```
//!
//! [`Passthrough`] knows FUSE and the directory below, and nothing of scheduling; a [`Gate`] knows who asks, where on the disk data lie and whose turn it is,
//! and nothing of FUSE. [`Open`] is the gate that lets everything pass: with it scheduling is compiled out.

#![warn(missing_docs)]

mod backing;
mod buffer;
mod gate;
mod memory;
mod passthrough;
pub mod scheduled;
mod seldom;
mod session;

pub use backing::Backing;
pub use buffer::{ALIGNMENT, Buffer};
pub use gate::{Ask, Asker, Entered, Gate, Job, Open, Operation, ReadDone};
pub use passthrough::{Bypass, Counts, Options, Passthrough, WriteBack};
pub use session::{FILE_SYSTEM, MountError, MountOptions, Session, UnmountError, Unmounted, Unmounter, Users};
