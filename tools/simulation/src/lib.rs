//! Simulated worlds: the block server, or the write-back of a mount, in virtual time from a seed;
//! and parts of the crash tests of the real programs.
//!
//! [`Plan`] derives a world from a seed: devices, exports, tenants, clients, an operator and
//! faults. [`play`] runs it on the simulated engine of `hoistway_reactor`, and [`history`] checks
//! that the data of every reply are possible.
//!
//! Where to change what:
//! - the derivation of a world from a seed: `plan.rs` and `plan/`
//! - the behaviour of clients: `client/`; of misbehaving ones: `client/misbehaving.rs`
//! - changes by an operator while the server runs: `operator.rs`
//! - the remote servers behind devices, and their failures: `remote.rs`
//! - invariants: `history.rs` (data), `run.rs` (memory, shutdown, disks)
//! - the server that the fuzzers run: `wire.rs`
//! - the write-back of a mount: `mount/`
//! - custom elevators that break rules: `wrong.rs`
//! - the crash tests of the real programs: `crash/`

pub mod client;
pub mod crash;
pub mod history;
pub mod mount;
mod operator;
mod plan;
mod remote;
mod run;
pub mod wire;
mod wrong;

pub use plan::{DevicePlan, Medium, Plan};
pub use remote::RemotePlan;
pub use run::{WorldReport, play};
pub use wrong::register_wrong_elevators;
