//! The changes that advice amounts to: assignments, shell commands, udev rules and the way back.

use hoistway_core::Kind;
use hoistway_machine::udev::{self, Rule};
use hoistway_machine::{
    AppliedSettings, ApplyError, Assignment, BlockDevice, PlanError, SettingsPlan, elevator_of_scheduler,
    scheduler_of_elevator,
};
use serde::{Serialize, Serializer};

use crate::case::Case;
use crate::choice::{Choice, kernel_value};
use crate::subject::Subject;
use hoistway_compare::scheduler_name;

const SCHEDULER: &str = "scheduler";

/// The changes of a device and of others like it.
#[derive(Clone, Debug, Default)]
pub struct ChangePlan {
    /// The device; `None` if the case has none.
    pub device: Option<String>,
    /// Further devices that are changed in the same way.
    pub alike: Vec<String>,
    /// The assignments, the scheduler first; empty if nothing changes.
    pub assignments: Vec<Assignment>,
    /// The assignments that restore the current settings.
    pub back: Vec<Assignment>,
    /// The udev rule of each device.
    pub rules: Vec<PlannedRule>,
}

/// A udev rule, or the reason that a device has none.
#[derive(Clone, Debug)]
pub enum PlannedRule {
    /// The rule.
    Rule(Rule),
    /// The reason.
    None(String),
}

impl Serialize for PlannedRule {
    /// Serialises `path` and `text` of a rule, or `none` with the reason.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Form<'a> {
            Rule { path: &'a std::path::Path, text: &'a str },
            None { none: &'a str },
        }
        let form = match self {
            PlannedRule::Rule(rule) => Form::Rule { path: &rule.path, text: &rule.text },
            PlannedRule::None(why) => Form::None { none: why },
        };
        form.serialize(serializer)
    }
}

/// The settings of a device were not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The assignments do not fit the device.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The kernel refused a value.
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl ChangePlan {
    /// The changes that lead from the current settings of a case to a choice.
    pub fn new(case: &Case, chosen: &Choice) -> ChangePlan {
        let devices = || case.subject.iter().flat_map(Subject::devices);
        let mut names = devices().map(|device| device.name.clone());
        let (device, alike) = (names.next(), names.collect());
        if *chosen == case.now {
            return ChangePlan { device, alike, ..ChangePlan::default() };
        }
        let name = |kind| name_on(case, kind);
        let assignments = assignments(chosen, &case.now, &name);
        // A rule has to set the scheduler too: another may be active after the next start.
        let mut persistent = assignments.clone();
        if !persistent.iter().any(|assignment| assignment.name == SCHEDULER) {
            persistent.insert(0, Assignment::new(SCHEDULER, name(chosen.kind)));
        }
        let rule = |device: &BlockDevice| match udev::rule(device, &persistent) {
            Ok(rule) => PlannedRule::Rule(rule),
            Err(error) => PlannedRule::None(error.to_string()),
        };
        let rules = devices().map(rule).collect();
        ChangePlan { device, alike, back: self::assignments(&case.now, chosen, &name), assignments, rules }
    }

    /// The names of all devices to change.
    pub fn devices(&self) -> Vec<&str> {
        self.device.iter().chain(&self.alike).map(String::as_str).collect()
    }

    /// The names of the devices; `DEVICE` if the case has none.
    fn names(&self) -> Vec<&str> {
        if self.device.is_none() { vec!["DEVICE"] } else { self.devices() }
    }

    /// Shell commands that make the changes until the next start.
    pub fn commands(&self) -> Vec<String> {
        self.names().iter().flat_map(|name| echo_commands(name, &self.assignments)).collect()
    }

    /// Commands that make the changes persistent, with the udev rules as comments and text.
    pub fn persistent_commands(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        if self.assignments.is_empty() {
            return lines;
        }
        for (index, name) in self.names().iter().enumerate() {
            let command = format!("hoistway devices set {name} {} --persist", Assignment::list(&self.assignments));
            match self.rules.get(index) {
                Some(PlannedRule::None(why)) => lines.push(format!("# no udev rule: {why}")),
                Some(PlannedRule::Rule(rule)) => {
                    lines.push(command);
                    lines.push(format!("# or, in {}:", rule.path.display()));
                    lines.extend(rule.text.lines().map(str::to_owned));
                }
                None => lines.push(command),
            }
        }
        lines
    }

    /// Shell commands that restore the current settings.
    pub fn way_back(&self) -> Vec<String> {
        self.names().iter().flat_map(|name| echo_commands(name, &self.back)).collect()
    }

    /// Makes the changes on one device.
    ///
    /// # Errors
    /// [`ChangeError`]; the device is as before then.
    pub fn apply(&self, subject: &Subject, device: &BlockDevice) -> Result<AppliedSettings, ChangeError> {
        Ok(SettingsPlan::new(&subject.root, device, &self.assignments)?.apply()?)
    }
}

fn echo_commands(device: &str, assignments: &[Assignment]) -> Vec<String> {
    let file = |name: &str| match name {
        SCHEDULER | "read_ahead_kb" | "nr_requests" => format!("queue/{name}"),
        "queue_depth" => "device/queue_depth".to_owned(),
        name => format!("queue/iosched/{name}"),
    };
    let command =
        |assignment: &Assignment| format!("echo {} > /sys/block/{device}/{}", assignment.value, file(&assignment.name));
    assignments.iter().map(command).collect()
}

/// The name of an elevator in the file `scheduler` of the case's device: that of the active
/// scheduler if it is this elevator, else the listed one, else the kernel's.
fn name_on(case: &Case, kind: Kind) -> String {
    let queue = case.subject.as_ref().and_then(|subject| subject.device.queue.as_ref());
    let active = queue.and_then(|queue| queue.scheduler.as_deref());
    let active = active.filter(|name| elevator_of_scheduler(name) == Some(kind));
    let listed = || queue.and_then(|queue| scheduler_of_elevator(queue, kind));
    active.or_else(listed).unwrap_or(scheduler_name(kind)).to_owned()
}

/// The assignments that lead from one choice to another: the scheduler if it changes, then the
/// tunables that differ.
fn assignments(to: &Choice, from: &Choice, name: &dyn Fn(Kind) -> String) -> Vec<Assignment> {
    let mut assignments = Vec::new();
    if to.kind != from.kind {
        assignments.push(Assignment::new(SCHEDULER, name(to.kind)));
    }
    let set = |of: &Choice, name: &str| of.tunables.iter().find(|(set, _)| *set == name).map(|(_, value)| *value);
    for tunable in to.kind.info().tunables {
        // A scheduler that is switched to starts with its defaults.
        let former = if to.kind == from.kind { set(from, tunable.name) } else { None }.unwrap_or(tunable.default);
        let wanted = set(to, tunable.name).unwrap_or(tunable.default);
        if let Some(value) = kernel_value(to.kind, tunable.name, wanted).filter(|_| wanted != former) {
            assignments.push(Assignment::new(tunable.name, value));
        }
    }
    let queue = [
        ("read_ahead_kb", to.read_ahead_kib),
        ("nr_requests", to.nr_requests.map(u64::from)),
        ("queue_depth", to.queue_depth.map(u64::from)),
    ];
    assignments.extend(queue.into_iter().filter_map(|(name, value)| Some(Assignment::new(name, value?.to_string()))));
    assignments
}
