//! The first process and the workers of a virtual machine that tests elevators of the kernel.
//!
//! `cargo xtask kernel test` packs the program into an initial RAM disk together with modules and a
//! [`plan::Plan`], boots a kernel with it in QEMU, and judges the [`protocol::Event`]s that the
//! program prints. The program mounts the file systems of the kernel, inserts modules, runs the
//! campaigns of the plan and powers the machine off.
//!
//! - what the host and the guest exchange: `plan.rs`, `protocol.rs`
//! - files for the host: `transfer.rs`
//! - reports in the kernel's log: `kernel_log.rs`; its search for leaks: `kmemleak.rs`
//! - blocks that reveal lost, stale and misplaced writes: `cell.rs`; the load that writes and reads
//!   them: `load.rs`
//! - block devices and their queues: `device.rs`, `scsi.rs`; their traces: `blktrace.rs`; calls of
//!   the kernel: `system.rs`, `async_io.rs`
//! - worker processes: `worker.rs`, `player.rs`
//! - the campaigns, each a module: `campaigns/`

#![deny(unsafe_code)]

pub mod async_io;
pub mod blktrace;
pub mod campaigns;
pub mod cell;
pub mod device;
pub mod init;
pub mod kernel_log;
pub mod kmemleak;
pub mod load;
pub mod module;
pub mod plan;
pub mod player;
pub mod prng;
pub mod protocol;
pub mod scsi;
pub mod system;
pub mod transfer;
pub mod wait;
pub mod worker;

/// A result whose error is a message for the report.
pub type Outcome<T> = Result<T, String>;
