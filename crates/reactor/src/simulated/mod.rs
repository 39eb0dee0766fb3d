//! A simulated engine: sockets, files and time in one process, determined by a seed.
//!
//! [`SimEngine`] implements [`Engine`](crate::Engine) over [`Sim`]: a network whose connections are
//! slow, have small buffers, are reset or fail silently, and disks that reorder, fail, hang, and
//! lose unflushed data at a power failure. [`Trace`] is the log of a run; the same seed gives the
//! same hash.
//!
//! | module | contents |
//! |---|---|
//! | `sim` | the simulation: time, scheduled events, actors |
//! | `link`, `pipe`, `network` | connections, and the operations of both sides on them |
//! | `disk`, `block` | disks with a volatile write cache, and I/O on them |
//! | `engine` | the engine of the server |

mod block;
mod disk;
mod engine;
mod ids;
mod link;
mod network;
mod pipe;
mod prng;
mod sim;
#[cfg(test)]
mod tests;
mod trace;

pub use disk::{Disk, DiskPlan, SECTOR};
pub use engine::SimEngine;
pub use ids::{ActorId, DiskId, LinkId};
pub use link::{LinkPlan, LinkState};
pub use prng::Prng;
pub use sim::{Actor, Sabotage, Sim};
pub use trace::Trace;
