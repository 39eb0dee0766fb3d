//! The NBD server: connections on one side, devices on the other, driven by one engine.
//!
//! ```text
//! sockets ─▶ Engine ─events─▶ Server ─bytes─▶ Connection (TLS, NBD state machine) ─requests─▶ Device (blockdev)
//!            Engine ◀─sends── Server ◀─replies─ Connection ◀──────completions────────────────┘
//! ```
//!
//! One turn processes all events that happened since the last turn before any device runs, so that
//! an elevator sees every waiting request. Then devices run, and each connection sends its replies
//! in one message. Nothing here blocks, reads a clock or opens a file.
//!
//! Where to change what:
//! - one turn: `server.rs`; the state that all connections share: `state.rs`
//! - bytes to requests and completions to replies: `connection.rs`, `connection/reply.rs`;
//!   messages: `outgoing.rs`; TLS: `tls.rs`
//! - how much may be in progress: `budget.rs`
//! - start, reload, shutdown: `start.rs`, `reload.rs`, `drain.rs`
//! - what the control tree sees and changes: `admin.rs`; control and metrics connections:
//!   `admin_connection.rs`
//! - who may connect: `access/`; sockets and notifications of systemd: `systemd.rs`

pub mod access;
mod admin;
mod admin_connection;
mod budget;
mod connection;
mod drain;
mod exports;
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
mod tls;

pub use budget::{Bounds, FLOOR_BYTES};
pub use purpose::Purpose;
pub use reload::ReloadError;
pub use server::{Server, Turn};
pub use start::{Settings, StartError};
