//! One disk, many clients.
//!
//! The flow of data:
//!
//! ```text
//! sockets ─▶ Engine ─events─▶ Server ─bytes─▶ connection (TLS, NBD state machine) ─work─▶ Device
//!                                                                          limits ─▶ RequestQueue (reservations, elevator) ─▶ depth ─▶
//!            Engine ◀─sends── Server ◀─replies─ connection ◀─done─ Device ◀─ Backend (memory, null, file through the Engine), Drive
//! ```
//!
//! [`engine::Engine`] is all there is of the outside: the time, sockets, files. There are three: io_uring, threads, and a simulated world with
//! virtual time, so that the whole server runs from a seed in tests. One thread runs everything else; nothing in it blocks.

pub mod access;
pub mod backend;
pub mod buffer;
pub mod calibrate;
pub mod capture;
pub mod config;
pub mod control;
pub mod device;
pub mod engine;
pub mod limits;
pub mod metrics;
pub mod record;
pub mod replay;
pub mod rules;
pub mod server;
pub mod systemd;
pub mod tenant;
#[cfg(any(test, feature = "world"))]
pub mod world;
