//! Worlds: the whole server in virtual time, from a seed.
//!
//! [`SimEngine`] is the third engine. Its outside ([`Sim`]) is a network whose connections are slow, short of room, reset or silently
//! gone, and disks that reorder, fail, hang and lose what was not flushed when the power fails; all that happens there follows from a
//! seed. What is written about a run is its [`Trace`]: the same seed gives the same hash.

mod block;
pub mod client;
mod dice;
mod disk;
mod engine;
pub mod history;
mod links;
mod operator;
mod pipe;
mod plan;
mod run;
mod sim;
mod trace;
pub mod wire;

pub use dice::Dice;
pub use disk::{Disk, DiskPlan, SECTOR};
pub use engine::SimEngine;
pub use links::{LinkPlan, State};
pub use plan::{DevicePlan, Medium, Plan};
pub use run::{Outcome, play};
pub use sim::{Actor, ActorId, DiskId, LinkId, Sabotage, Sim};
pub use trace::Trace;

#[cfg(test)]
mod tests;
