//! The NBD server: connections on one side, devices on the other, driven by one engine.
//!
//! ```text
//! sockets ─▶ Engine ─events─▶ Server ─bytes─▶ Connection ─requests─▶ Device (blockdev)
//!            Engine ◀─sends── Server ◀─replies─ (TLS, NBD) ◀─completions─┘
//! ```
//!
//! One turn processes all events that happened since the last turn before any device runs, so that
//! an elevator sees every waiting request. Then devices run, and each connection sends its replies
//! in one message. A turn blocks only in `Engine::turn`; it reads no clock and opens no file.
//!
//! Dependencies run one way: `state` (shared by all connections), then `membership` (a client of a
//! device, without a protocol), then `connection` (NBD), then `server` (data and accessors), then
//! the operations `turn`, `start`, `reload`, `drain` and `admin`.
//!
//! Where to change what:
//! - one turn: `turn.rs`; the state that all connections share: `state.rs`; lists of connections:
//!   `lists.rs`
//! - the phases of a connection, TLS and its end: `connection.rs`; options of the handshake:
//!   `connection/handshake.rs`; bytes to requests: `connection/transmission.rs`; completions to
//!   replies: `connection/reply.rs`; messages: `outgoing.rs`
//! - a client as a member of a device, whatever its protocol: `membership.rs`
//! - the bounds on requests in progress: `budget.rs`; reasons to disconnect: `close_reason.rs`
//! - start, reload, shutdown: `start.rs`, `reload.rs`, `drain.rs`
//! - the control tree: `admin/target.rs`; control and metrics connections: `admin/service.rs`
//! - listening sockets: `access/`; systemd: `systemd.rs`
//!
#![doc = include_str!("../README.md")]

pub mod access;
mod admin;
mod budget;
mod close_reason;
mod connection;
mod drain;
mod drain_state;
mod exports;
mod lists;
mod membership;
mod outgoing;
mod protocol;
mod purpose;
mod reload;
mod reply_history;
mod server;
mod start;
mod state;
pub mod systemd;
mod table;
#[cfg(test)]
mod tests;
mod ticket;
mod turn;

pub use budget::{Bounds, FLOOR_BYTES};
pub use purpose::Purpose;
pub use reload::ReloadError;
pub use server::{Server, Turn};
pub use start::{Settings, StartError};
