//! The write-back of a mount in simulated worlds: the real gate over a simulated kernel and file
//! system, in virtual time, on one thread.
//!
//! Where to change what:
//! - a world of a seed, deliberate faults: `plan.rs`
//! - simulated threads and time: `machine.rs`
//! - the page cache and the disk blocks of a file, write-back errors: `inode.rs`
//! - names, the journal, room: `file_system.rs`
//! - system calls, writes of pages, commits: `kernel.rs`
//! - what must hold: `judge.rs`
//! - the processes and the FUSE operations: `process.rs`
//! - power failures, deaths of the mount, the end of a world: `run.rs`

mod file_system;
mod inode;
mod judge;
mod kernel;
mod machine;
mod plan;
mod process;
mod run;

pub use plan::{FaultBelow, MountPlan, Sabotage};
pub use run::play;
