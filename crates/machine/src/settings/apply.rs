//! Writes a plan, reads each value back, and restores everything if a value is refused.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::{Assignment, SCHEDULER, SettingsPlan};
use crate::attribute_info::tunable_infos;
use crate::device::BlockDevice;
use crate::files::read_text;
use crate::queue::{Queue, parse_schedulers};

/// The change of one setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingChange {
    /// The name.
    pub name: String,
    /// The value before; `None` if the file did not exist.
    pub before: Option<String>,
    /// The requested value; `None` for a side effect.
    pub asked: Option<String>,
    /// The value now; `None` if the file is gone, or for a plan that was not applied.
    pub after: Option<String>,
}

impl SettingChange {
    /// Returns true if the value is the requested one, or if none was requested.
    pub fn is_as_requested(&self) -> bool {
        self.asked.is_none() || self.asked == self.after
    }

    /// Returns true if the value is the same as before.
    pub fn is_unchanged(&self) -> bool {
        self.before == self.after
    }
}

/// The effect of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AppliedSettings {
    /// The requested changes in the order of writing.
    pub changes: Vec<SettingChange>,
    /// Settings that the kernel changed as a side effect.
    pub besides: Vec<SettingChange>,
    /// The assignments that restore the former state.
    pub back: Vec<Assignment>,
}

/// A plan failed while it was written.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The kernel refused a value.
    #[error("{device}: {name}={value} was refused: {}{}", explain(cause), restored(not_restored))]
    Write {
        /// The device.
        device: String,
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// The system's error.
        cause: io::Error,
        /// The settings that could not be restored; empty if everything is as before.
        not_restored: Vec<String>,
    },
    /// The device has vanished.
    #[error("{device}: the device has vanished")]
    Gone {
        /// The device.
        device: String,
    },
}

fn explain(cause: &io::Error) -> String {
    match cause.raw_os_error() {
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => {
            format!("this needs root, and a /sys that can be written ({cause})")
        }
        Some(libc::EINVAL) => format!("the kernel refuses the value ({cause})"),
        Some(libc::ENOENT) => format!("there is no such setting ({cause})"),
        _ => cause.to_string(),
    }
}

fn restored(not_restored: &[String]) -> String {
    match not_restored {
        [] => "; all former settings are restored".to_owned(),
        names => format!("; these could not be restored: {}", names.join(", ")),
    }
}

impl SettingsPlan {
    /// Writes all assignments in order and reads each back. A value that is set already is not
    /// written again.
    ///
    /// # Errors
    /// [`ApplyError::Write`] if the kernel refuses a value; everything is restored then.
    /// [`ApplyError::Gone`] if the device has vanished.
    pub fn apply(&self) -> Result<AppliedSettings, ApplyError> {
        let device = self.device();
        let sysfs = &device.sysfs;
        let gone = || ApplyError::Gone { device: device.name.clone() };
        let former = Queue::read(sysfs).ok_or_else(gone)?;
        let mut changes = Vec::new();
        for (assignment, file) in self.steps() {
            let path = sysfs.join(file);
            let is_scheduler = assignment.name == SCHEDULER;
            let before = if is_scheduler { former.scheduler.clone() } else { current_value(&path, &assignment.name) };
            let is_set = before.as_deref() == Some(&assignment.value);
            let written = if is_set { Ok(()) } else { write_value(&path, &assignment.value) };
            let after = current_value(&path, &assignment.name);
            let refusal = match written {
                Ok(()) if is_scheduler && after.as_deref() != Some(&assignment.value) => {
                    Some(io::Error::from_raw_os_error(libc::EINVAL))
                }
                Ok(()) => None,
                Err(cause) => Some(cause),
            };
            if let Some(cause) = refusal {
                let (name, value) = (assignment.name.clone(), assignment.value.clone());
                let not_restored = restore(sysfs, &former);
                return Err(ApplyError::Write { device: device.name.clone(), name, value, cause, not_restored });
            }
            // A tunable of the same name of the former scheduler is another tunable.
            let before = before.filter(|_| !file.starts_with("queue/iosched/") || !self.switches_from(&former));
            changes.push(SettingChange {
                name: assignment.name.clone(),
                before,
                asked: Some(assignment.value.clone()),
                after,
            });
        }
        let present = Queue::read(sysfs).ok_or_else(gone)?;
        let besides = side_effects(&former, &present, &changes);
        let back = self.way_back(&former, &changes, &besides);
        Ok(AppliedSettings { changes, besides, back })
    }

    /// The changes that [`SettingsPlan::apply`] would make. Nothing is written: `after` is `None`.
    pub fn dry_run(&self) -> Vec<SettingChange> {
        let device: &BlockDevice = self.device();
        let empty = Queue::default();
        let queue = device.queue.as_ref().unwrap_or(&empty);
        let switches = self.switches_from(queue);
        let steps = self.steps().map(|(assignment, file)| {
            let before = match assignment.name.as_str() {
                SCHEDULER => queue.scheduler.clone(),
                name if file.starts_with("queue/iosched/") => {
                    queue.tunable(name).filter(|_| !switches).map(|tunable| tunable.value.clone())
                }
                name => queue.setting(name).map(|setting| setting.value.clone()),
            };
            SettingChange { name: assignment.name.clone(), before, asked: Some(assignment.value.clone()), after: None }
        });
        steps.collect()
    }

    /// Returns true if the plan sets another scheduler than a queue has.
    fn switches_from(&self, queue: &Queue) -> bool {
        self.steps().any(|(assignment, _)| {
            assignment.name == SCHEDULER && queue.scheduler.as_deref() != Some(&assignment.value)
        })
    }

    /// The assignments that restore the former state: changed settings, tunables of the former
    /// scheduler that were not at their defaults, and side effects.
    fn way_back(&self, former: &Queue, changes: &[SettingChange], besides: &[SettingChange]) -> Vec<Assignment> {
        let mut back: Vec<Assignment> = Vec::new();
        let mut add = |name: &str, value: &str| {
            if !back.iter().any(|assignment| assignment.name == name) {
                back.push(Assignment::new(name, value));
            }
        };
        for change in changes.iter().filter(|change| !change.is_unchanged()) {
            if let Some(before) = &change.before {
                add(&change.name, before);
            }
        }
        if self.switches_from(former) {
            let infos = tunable_infos(former.scheduler.as_deref().unwrap_or("none"));
            for tunable in former.tunables.iter().filter(|tunable| tunable.writable) {
                let default = infos.iter().find(|info| info.name == tunable.name).and_then(|info| info.default);
                // slice_idle holds the same time in a coarser unit.
                let is_repeated = tunable.name == "slice_idle_us"
                    && former
                        .tunable("slice_idle")
                        .is_some_and(|coarse| format!("{}000", coarse.value) == tunable.value);
                if !is_repeated && default.is_none_or(|default| default.to_string() != tunable.value) {
                    add(&tunable.name, &tunable.value);
                }
            }
        }
        for change in besides {
            if let Some(before) = &change.before {
                add(&change.name, before);
            }
        }
        back
    }
}

/// The writable settings that changed without a request. Tunables are compared only if the
/// scheduler is the same: they come and go with it.
fn side_effects(former: &Queue, present: &Queue, changes: &[SettingChange]) -> Vec<SettingChange> {
    let is_requested = |name: &str| changes.iter().any(|change| change.name == name);
    let same_scheduler = former.scheduler == present.scheduler;
    let values = |queue: &Queue| -> BTreeMap<String, String> {
        let tunables = queue.tunables.iter().filter(|_| same_scheduler);
        let all = queue.settings.iter().chain(tunables).filter(|attribute| attribute.writable);
        all.map(|attribute| (attribute.name.clone(), attribute.value.clone())).collect()
    };
    let (former, present) = (values(former), values(present));
    let difference = |(name, before): (&String, &String)| {
        let after = present.get(name);
        (after != Some(before) && !is_requested(name)).then(|| SettingChange {
            name: name.clone(),
            before: Some(before.clone()),
            asked: None,
            after: after.cloned(),
        })
    };
    former.iter().filter_map(difference).collect()
}

/// Restores a queue and returns the settings that could not be restored, as `NAME=VALUE`.
fn restore(sysfs: &Path, former: &Queue) -> Vec<String> {
    let mut failed = Vec::new();
    let mut put = |name: &str, file: &str, value: &str| {
        let path = sysfs.join(file);
        if current_value(&path, name).as_deref() != Some(value)
            && (write_value(&path, value).is_err() || current_value(&path, name).as_deref() != Some(value))
        {
            failed.push(format!("{name}={value}"));
        }
    };
    if let Some(scheduler) = &former.scheduler {
        put(SCHEDULER, "queue/scheduler", scheduler);
    }
    for attribute in former.tunables.iter().chain(&former.settings).filter(|attribute| attribute.writable) {
        put(&attribute.name, &attribute.file, &attribute.value);
    }
    failed
}

/// The value of a file; of the scheduler file the one in brackets.
fn current_value(path: &Path, name: &str) -> Option<String> {
    let text = read_text(path)?;
    if name == SCHEDULER { parse_schedulers(&text).1 } else { Some(text) }
}

/// Writes a value in one call, as sysfs requires it. A missing file is not created.
fn write_value(path: &Path, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() < 4096) {
        // Files of sysfs report the length of a page and need no truncation; copies do.
        let _ = file.set_len(0);
    }
    file.write_all(format!("{value}\n").as_bytes())
}
