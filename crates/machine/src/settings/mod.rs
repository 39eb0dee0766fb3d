//! Changes of a queue's settings: checked first, then written, read back, and restored on failure.
//!
//! [`SettingsPlan::new`] checks [`Assignment`]s against the device; [`SettingsPlan::apply`] writes
//! them and returns what the kernel made of them, with the assignments that restore the old values.

mod apply;
mod assignment;
mod plan;
mod report;

pub use apply::{AppliedSettings, ApplyError, SettingChange};
pub use assignment::{Assignment, AssignmentError};
pub use plan::{PlanError, SettingsPlan, defaults_of, why_no_choice};
pub use report::{OtherRuleReport, RuleReport, RuleTarget, SettingsError, SettingsReport};

/// The name of the setting that selects the scheduler.
pub(crate) const SCHEDULER: &str = "scheduler";
