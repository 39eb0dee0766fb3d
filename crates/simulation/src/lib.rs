//! Simulated worlds: the whole block server in virtual time, from a seed.
//!
//! [`Plan`] is what a seed makes of a world: devices, exports, tenants, clients, an operator and
//! faults. [`play`] runs it on the simulated engine of `hoistway_reactor`, and [`history`] checks
//! that no client saw what it must not see.
//!
//! Where to change what:
//! - what a seed makes of a world: `plan.rs` and `plan/`
//! - what clients do, well-behaved or not: `client/`
//! - what an operator changes while the server runs: `operator.rs`
//! - what must hold: `history.rs`, `run.rs`

pub mod client;
pub mod history;
mod operator;
mod plan;
mod run;
pub mod wire;

pub use plan::{DevicePlan, Medium, Plan};
pub use run::{Outcome, play};
