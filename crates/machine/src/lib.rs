//! The machine that a program runs on: block devices with their schedulers and tunables, processes with their I/O priorities and control groups.
//!
//! Everything is read from sysfs and procfs below a [`Root`] that can be another than `/`, so that tests bring machines of their own. Nothing here prints.
//!
//! - [`devices`] reads all block devices, [`find`] the one that a person means by a name, a path or a file on it, [`queues_below`] the queues that
//!   requests to it end in.

#![warn(missing_docs)]

mod device;
mod find;
mod identity;
mod kind;
mod mounts;
mod queue;
mod read;
mod root;
mod stack;

pub use device::{BlockDevice, Mount, Number, Opener};
pub use find::{FindError, find};
pub use identity::{Identity, Transport};
pub use kind::Kind;
pub use queue::{Attribute, Queue, WriteCache};
pub use read::{DevicesError, devices, openers};
pub use root::Root;
pub use stack::{all_below, queues_below};
