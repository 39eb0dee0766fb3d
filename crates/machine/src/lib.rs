//! The machine that a program runs on: block devices with their schedulers and tunables, processes with their I/O priorities and control groups.
//!
//! Everything is read from sysfs and procfs below a [`Root`] that can be another than `/`, so that tests bring machines of their own. Nothing here prints.
//!
//! - [`devices`] reads all block devices, [`find()`] the one that a person means by a name, a path or a file on it, [`queues_below`] the queues that
//!   requests to it end in.
//! - [`Entry`] is the directory of one device in sysfs, found by its number or name alone, and [`mounts()`] the table of mounts.

#![warn(missing_docs)]

mod cgroup;
mod device;
mod entry;
mod find;
mod identity;
mod kind;
mod mounts;
pub mod priority;
mod process;
mod queue;
mod read;
mod root;
mod rows;
mod set;
mod stack;
pub mod udev;

pub use cgroup::{GroupPolicy, io_weight, is_cost_enabled, policies};
pub use device::{BlockDevice, Mount, Number, Opener};
pub use entry::Entry;
pub use find::{FindError, find};
pub use identity::{Identity, Transport};
pub use kind::Kind;
pub use mounts::{Mounted, mounts};
pub use priority::{Class, CpuPolicy, Priority, PriorityError, Who};
pub use process::{Process, ProcessError, Use, Uses, cgroup_of, nice_of, policy_of, process, uses};
pub use queue::{Attribute, Queue, WriteCache, queue_directory};
pub use read::{DevicesError, devices, openers};
pub use root::Root;
pub use rows::{Row, SETTINGS, kernel_tunables, setting, successor};
pub use set::{Applied, ApplyError, Assignment, Change, Plan, PlanError, Rows, why_no_choice};
pub use stack::{all_below, directly_below, drives_below, hidden_paths, queues_below, schedules_for_paths, way_down};
