//! The machine that a program runs on: block devices with their schedulers and tunables, processes
//! with their I/O priorities and control groups.
//!
//! Everything is read from sysfs and procfs below a [`Root`]. A root other than `/` is a copy of
//! another machine's files, or a tree that a test has made. The crate does not print.
//!
//! - [`devices()`] reads all block devices; [`find()`] finds one by a name, a path or a file on it.
//! - [`queues_below`] and [`request_path`] follow stacked devices to the queues that order
//!   requests.
//! - [`SettingsPlan`] changes schedulers, tunables and queue settings, and restores them on errors.
//! - [`Inventory`], [`SettingsReport`] and [`PriorityReport`] are the answers of `hoistway
//!   devices`, `hoistway devices set` and `hoistway ionice --explain`.
//! - [`open_unused`] opens a file or block device for writing, unless it is in use.
//! - [`SysfsDevice`], [`mounts()`] and [`ProcessFiles`] read single facts for other crates: this is
//!   the one reader of `mountinfo` and `/proc/PID` in the workspace.
//!
//! # Where to change
//!
//! - what is read of a block device: `devices.rs`; the fields are in `device.rs`, `queue.rs`,
//!   `identity.rs` and `kind.rs`
//! - the names that [`find()`] accepts: `find.rs`
//! - how stacked devices lead to queues: `stacking.rs`
//! - what counts as a use that a second writer would destroy, and its text: `in_use.rs`
//! - mounts and swap: `mounts.rs`; the memory of the machine: `memory.rs`
//! - unit, range and text of a queue setting; the kernel's names of tunables: `attribute_info.rs`;
//!   the texts of tunables are the elevators' own rows in `hoistway_core`
//! - what `hoistway devices set` checks, writes and restores: `settings/plan.rs`,
//!   `settings/apply.rs`
//! - udev rules: `udev.rs`; when one is written, `settings/report.rs`
//! - the JSON of `hoistway devices`: `inventory.rs`, with docs/devices.md, which a test compares
//! - what is read of a process: `process/files.rs`; the devices that it uses,
//!   `process/device_use.rs`
//! - control groups: `cgroup.rs`
//! - what a scheduler makes of an I/O priority, in words: `priority_effect.rs`; the figures are in
//!   `hoistway_core`'s `priority_effect.rs`
//! - the kernel module `hoistway_iosched` and the names of its elevators: `kernel_module.rs`
//! - remarks and JSON of `hoistway ionice --explain`: `priority_report.rs`
//!
//! # Parsing of procfs
//!
//! `procfs-core` parses `stat`, `cgroup` and `io` of a process, and `meminfo`. This crate parses:
//!
//! - `mountinfo`, because mount points need not be UTF-8, octal escapes have to be decoded, and one
//!   line of another form must not hide the other mounts;
//! - `status`, because each caller needs one field, and a kernel may lack others. The liveness
//!   check of a mount reads this file for each waiting thread: to read the file and find one field
//!   takes 8 µs, with the parser of `procfs-core` 40 µs;
//! - `fdinfo`, for one field;
//! - `swaps`, for which `procfs-core` has no parser.
//!
#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod attribute_info;
mod cgroup;
mod device;
mod device_number;
mod devices;
mod files;
mod find;
mod identity;
mod in_use;
mod installed_modules;
mod inventory;
mod kernel_module;
mod kind;
mod memory;
mod mounts;
pub mod priority;
mod priority_effect;
mod priority_report;
mod process;
mod queue;
mod root;
mod scheduler_names;
mod settings;
mod stacking;
mod sysfs;
pub mod udev;

pub use attribute_info::{AttributeInfo, QUEUE_SETTINGS, kernel_tunables, setting_info, successor, tunable_infos};
pub use cgroup::{GroupPolicy, io_weight, is_cost_enabled, policies};
pub use device::{BlockDevice, Mount, Opener};
pub use device_number::{DeviceNumber, DeviceNumberError};
pub use devices::{DevicesError, devices, openers};
pub use find::{FindError, find};
pub use identity::{Identity, Transport};
pub use in_use::{InUse, OpenUnusedError, OpenedForWriting, Use, create_unused, find_use, open_unused};
pub use inventory::{DeviceReport, Inventory, QueueReport, queue_remarks, queues_instead};
pub use kernel_module::{MODULE, MODULE_ELEVATORS, ModuleState, scheduler_of_elevator};
pub use kind::Kind;
pub use memory::{available_bytes, memory_bytes};
pub use mounts::{MountEntry, SwapArea, mounts, swap_areas};
pub use priority::{Class, CpuPolicy, Priority, PriorityError, PriorityTarget};
pub use priority_effect::{EffectText, effect_on, effect_under};
pub use priority_report::{
    EffectUnderElevator, ExplainedPriority, PriorityAtQueue, PriorityExplainer, PriorityOnDevice, PriorityReport,
};
pub use process::{
    DeviceUse, DeviceUses, Process, ProcessError, ProcessFiles, ProcessStat, SignalSet, device_use, process,
};
pub use queue::{Attribute, Queue, WriteCache, queue_directory};
pub use root::Root;
pub use scheduler_names::elevator_of_scheduler;
pub use settings::{
    AppliedSettings, ApplyError, Assignment, AssignmentError, OtherRuleReport, PlanError, RuleReport, RuleTarget,
    SettingChange, SettingsError, SettingsPlan, SettingsReport, defaults_of, why_no_choice,
};
pub use stacking::{
    all_below, directly_below, drives_below, hidden_paths, queues_below, request_path, schedules_for_paths,
    scheduling_holder,
};
pub use sysfs::SysfsDevice;
