//! Replays of recorded decisions of the kernels' own schedulers: the same bios and completions at
//! the same times must lead to the same requests at the driver, in the same order and at the same
//! nanosecond.
//!
//! A decision file has one scenario per line (JSON). A scenario lists the submitted bios, the
//! service time of each request, and the decisions of a kernel's scheduler that was compiled from
//! its own source and run in virtual time. [`replay_file`] feeds bios and service times to
//! hoistway's elevator of that kernel and compares the decisions. [`replay_files`] also accepts
//! recordings of the kernel module ([`crate::kernel_recording`]).

mod compare;
mod conformance;
mod decision;
mod error;
mod file;
mod format;
mod groups;
mod log;
mod replay;
mod scenario;
mod targets;

pub use compare::{Difference, compare};
pub use conformance::{Conformance, FileFailure, Replayed, Totals, replay_files};
pub use decision::{Decision, Domain, List, MergeKind, PlugEvent};
pub use error::{DecisionError, ScenarioError};
pub use file::{FileReport, ListCount, ScenarioReport, replay_file};
pub use replay::{Replay, ReplayedDecision, replay_scenario};
pub use scenario::Scenario;
pub use targets::{Target, targets};
