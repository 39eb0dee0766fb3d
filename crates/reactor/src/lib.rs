//! Sockets, files and time for single-threaded servers.
//!
//! [`Engine`] is the trait. Its implementations are [`Uring`] (io_uring), [`Threads`] (epoll, and
//! helper threads for files), [`Virtual`] (virtual time, neither sockets nor files) and, with the
//! feature `simulated`, `simulated::SimEngine` (a network and disks from a seed). One thread calls
//! the engine, and only [`Engine::turn`] blocks. [`BlockRing`] is for block I/O alone, by io_uring
//! on borrowed files.
//!
//! | module | contents |
//! |---|---|
//! | [`engine`] | the trait, operations and events |
//! | [`buffer`], [`shared`] | page-aligned buffers from a pool, and memory that is mapped once and shared |
//! | [`choice`], [`options`] | whether io_uring works on this machine, and why not; sizes of an engine |
//! | `uring/` | io_uring: sockets, receive buffers, block I/O ([`BlockRing`]) |
//! | `threads`, `helpers`, `files` | epoll, the helper threads, and their blocking system calls |
//! | `simulated/`, `virtual_time` | simulated sockets, disks and time; virtual time alone |
//! | `connector`, `table`, `outgoing` | outgoing connections, a thread for each attempt; connections by ID; messages that are being sent |
//! | [`peer`] | the process at the other end of a Unix socket |
//! | `wait`, `wake`, `signals`, `clock` | sleep or polling in a turn, the end of a turn by other threads, signals, the time |
//!
//! Where to change what:
//! - a turn of the engine on io_uring: `uring/mod.rs`; submission and completions:
//!   `uring/kernel.rs`
//! - connections on io_uring: `uring/sockets.rs`; their receive buffers: `uring/receives.rs`
//! - block I/O on io_uring: `uring/block.rs`; short transfers and retries: `uring/transfer.rs`
//! - the file systems whose files io_uring does not read and write: `files.rs` ([`suits_ring`])
//! - how long a wait polls before it sleeps: `wait.rs`
//!
//! The tests in `tests.rs` run on [`Uring`] and on [`Threads`].
//!
#![doc = include_str!("../README.md")]

pub mod buffer;
pub mod choice;
mod clock;
mod connector;
pub mod engine;
mod files;
mod helpers;
pub mod options;
mod outgoing;
pub mod peer;
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
mod wait;
mod wake;

pub use buffer::{Buffer, Pool};
pub use choice::{EngineKind, Unavailable, probe};
pub use engine::{
    Address, Allocation, ConnId, Endpoint, Engine, Event, FileId, Io, IoDone, IoOp, ListenerId, Message, Part, Peer,
    Process, Signal,
};
pub use files::suits_ring;
pub use options::{Options, WATCH_NS};
pub use shared::{Region, Shared};
pub use threads::Threads;
pub use uring::Uring;
pub use uring::block_ring::BlockRing;
pub use uring::transfer::{BlockOp, BlockTarget, Ended};
pub use virtual_time::Virtual;
pub use wake::Waker;
