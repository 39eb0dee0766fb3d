//! The write-back of a mount in simulated worlds: the real gate over a simulated page cache and
//! disk, in virtual time, on one thread.
//!
//! Where to change what:
//! - simulated threads and time: `host.rs`
//! - the page cache, write-back errors, power failures: `disk.rs`
//! - the processes, and what must hold: `run.rs`

mod disk;
mod host;
mod run;

pub use run::{MountPlan, Sabotage, play};
