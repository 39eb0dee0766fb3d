//! Recording and replaying of block traces: of the machine's block devices, of a server's queues,
//! and the execution of the requests of a trace.
//!
//! | module | contents |
//! |---|---|
//! | [`capture`] | records block devices of this machine by the kernel's tracers |
//! | [`recording`] | records the queues of a running server or mount |
//! | [`replay`] | executes the requests of a trace on a device, an NBD server or a drive model |
//!
//! Where to change what:
//! - what of the machine's settings is changed for a capture and restored: `capture/settings.rs`
//! - the order and the names in captured traces: `capture/sink.rs`
//! - what a recording contains: `recording.rs`; records to bytes: `hoistway_trace::blktrace`
//! - which request is executed when: `replay/plan.rs` and `replay/dependent.rs`; what must not be
//!   overwritten: `crates/machine/src/in_use.rs`
//!
#![doc = include_str!("../README.md")]

pub mod capture;
pub mod recording;
pub mod replay;
