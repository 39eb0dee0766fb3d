//! Sockets, files and time for single-threaded servers.
//!
//! [`Engine`] is the trait; its implementations are [`Uring`] (io_uring), [`Threads`] (epoll, and
//! worker threads for files) and [`Virtual`] (virtual time without I/O) and, with the feature
//! `simulated`, [`simulated::SimEngine`](crate::engine). One thread calls the engine, and nothing
//! in an engine call blocks but [`Engine::turn`].
//!
//! | module | contents |
//! |---|---|
//! | [`engine`] | the trait, operations and events |
//! | [`buffer`], [`shared`] | page-aligned buffers from a pool, and memory that is mapped once and shared |
//! | [`choice`], [`options`] | which engine works on this machine and why the other does not; sizes of an engine |
//! | `uring/` | io_uring: sockets, provided buffers, block I/O |
//! | `threads`, `helpers` | epoll, and the worker threads for files |
//! | [`peer`] | the process at the other end of a Unix socket |
//!
//! Both real engines pass one suite of tests, `tests.rs`.

pub mod buffer;
pub mod choice;
mod clock;
pub mod engine;
mod files;
mod helpers;
pub mod options;
pub mod peer;
mod sending;
pub mod shared;
mod signals;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;
mod table;
#[cfg(test)]
mod tests;
mod threads;
mod uring;
mod virtual_time;
mod waiting;

pub use buffer::{Buffer, Pool};
pub use choice::{EngineKind, Unavailable, probe};
pub use engine::{
    Address, Allocation, ConnId, Engine, Event, FileId, Io, IoDone, IoOp, ListenerId, Message, Part, Peer, Process,
    Signal,
};
pub use options::{Options, WATCH_NS};
pub use shared::{Region, Shared};
pub use threads::Threads;
pub use uring::Uring;
pub use virtual_time::Virtual;
