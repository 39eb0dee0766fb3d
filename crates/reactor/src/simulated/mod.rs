//! A simulated engine: sockets, files and time in one process, determined by a seed.
//!
//! [`SimEngine`] implements [`Engine`](crate::Engine) over [`Sim`]: a network whose connections are
//! slow, short of buffer space, reset or silently gone, and disks that reorder, fail, hang and lose
//! what was not flushed when the power fails. [`Trace`] is the log of a run; the same seed gives
//! the same hash.

mod block;
mod disk;
mod engine;
mod links;
mod pipe;
mod prng;
mod sim;
#[cfg(test)]
mod tests;
mod trace;

pub use disk::{Disk, DiskPlan, SECTOR};
pub use engine::SimEngine;
pub use links::{LinkPlan, State};
pub use prng::Prng;
pub use sim::{Actor, ActorId, DiskId, LinkId, Sabotage, Sim};
pub use trace::Trace;
