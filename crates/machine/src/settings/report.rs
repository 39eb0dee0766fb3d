//! The answer of `hoistway devices set`: changes, the way back, and the udev rule that keeps them.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{AppliedSettings, ApplyError, Assignment, SettingChange, SettingsPlan};
use crate::device::BlockDevice;
use crate::devices::{DevicesError, devices};
use crate::root::Root;
use crate::udev::{self, NoIdError, OtherRule, PreparedRule, Rule, WriteError};

/// What was set, or would be; docs/devices.md describes the serialised fields.
#[derive(Clone, Debug, Serialize)]
pub struct SettingsReport {
    /// The version of the serialised form: 1.
    pub schema: u32,
    /// The device.
    pub device: String,
    /// True if nothing was written.
    pub dry_run: bool,
    /// The requested changes in the order of writing.
    pub changes: Vec<SettingChange>,
    /// Settings that the kernel changed as a side effect.
    pub besides: Vec<SettingChange>,
    /// The command that restores the former state; `None` if nothing changed.
    pub back: Option<String>,
    /// The udev rule, if one was requested.
    pub rule: Option<RuleReport>,
    /// Former rules that could not be removed, each with the system's error.
    #[serde(skip)]
    pub not_removed: Vec<(PathBuf, String)>,
}

/// A udev rule that was written, or would be.
#[derive(Clone, Debug, Serialize)]
pub struct RuleReport {
    /// The file.
    pub path: PathBuf,
    /// The content of the file.
    pub text: String,
    /// The udev key that identifies the device.
    pub key: String,
    /// The value of the key.
    pub value: String,
    /// Former rules of this program that the rule replaces.
    pub replaces: Vec<PathBuf>,
    /// Other devices with the same identifier; the rule applies to them too.
    pub also: Vec<String>,
    /// Rules of other programs that also set the scheduler of the device.
    pub others: Vec<OtherRuleReport>,
}

/// A rule of another program that also sets the scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct OtherRuleReport {
    /// The file.
    pub path: PathBuf,
    /// The line number, from 1.
    pub line: usize,
    /// The scheduler that the rule sets.
    pub scheduler: String,
    /// True if all conditions of the rule are known to hold.
    pub sure: bool,
}

/// Settings were not applied, or not kept.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The device has no identifier for a rule.
    #[error(transparent)]
    NoId(#[from] NoIdError),
    /// The devices cannot be listed.
    #[error(transparent)]
    Devices(#[from] DevicesError),
    /// The rule cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The kernel refused a value.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The rule could not be put in place after the settings were applied.
    #[error("{cause}; {}", if *is_restored { "all former settings are restored" } else { "the device keeps the new settings" })]
    NotPersisted {
        /// Why the rule was not written.
        cause: WriteError,
        /// True if the former settings were restored.
        is_restored: bool,
    },
}

/// Where to keep settings across restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleTarget {
    /// The default file in `/etc/udev/rules.d`, named after the identifier of the device.
    Default,
    /// Another file.
    File(PathBuf),
}

impl SettingsPlan {
    /// Applies the plan, or only computes its effect with `dry_run`, and writes a udev rule if
    /// `target` is given. If the rule cannot be put in place, the former settings are restored.
    ///
    /// # Errors
    /// [`SettingsError`]; nothing has changed then unless the error says otherwise.
    pub fn carry_out(
        &self,
        root: &Root,
        dry_run: bool,
        target: Option<&RuleTarget>,
    ) -> Result<SettingsReport, SettingsError> {
        let mut kept = target.map(|target| KeptRule::new(root, self, target, dry_run)).transpose()?;
        let applied = match dry_run {
            true => AppliedSettings { changes: self.dry_run(), ..AppliedSettings::default() },
            false => self.apply()?,
        };
        let mut not_removed = Vec::new();
        if let Some(kept) = kept.as_mut().filter(|_| !dry_run) {
            not_removed = kept.commit(root, &applied, self.device())?;
        }
        let AppliedSettings { changes, besides, back } = applied;
        let root_option =
            if root.is_machine() { String::new() } else { format!(" --root {}", root.path("/").display()) };
        let device = self.device().name.clone();
        let back = (!back.is_empty())
            .then(|| format!("hoistway devices set {device} {}{root_option}", Assignment::list(&back)));
        let rule = kept.map(KeptRule::into_report);
        Ok(SettingsReport { schema: 1, device, dry_run, changes, besides, back, rule, not_removed })
    }
}

/// A udev rule between its preparation and its commit.
struct KeptRule {
    rule: Rule,
    /// The final path, as a path of the machine.
    to: PathBuf,
    /// Former rules of this program for the device.
    former: Vec<PathBuf>,
    others: Vec<OtherRule>,
    /// Other devices with the same identifier.
    also: Vec<String>,
    prepared: Option<PreparedRule>,
}

impl KeptRule {
    fn new(root: &Root, plan: &SettingsPlan, target: &RuleTarget, dry_run: bool) -> Result<KeptRule, SettingsError> {
        let device = plan.device();
        let assignments: Vec<Assignment> = plan.steps().map(|(assignment, _)| assignment.clone()).collect();
        let rule = udev::rule(device, &assignments)?;
        let file = match target {
            RuleTarget::Default => None,
            RuleTarget::File(path) => Some(path.as_path()),
        };
        let prepared = if dry_run { None } else { Some(udev::prepare(root, &rule, file)?) };
        let former = if file.is_none() { udev::own_rules(root, device) } else { Vec::new() };
        let others = udev::others(root, device);
        let has_same_id = |other: &BlockDevice| {
            other.number != device.number && udev::stable_id(other).is_ok_and(|id| id.value == rule.id.value)
        };
        let also = devices(root)?.iter().filter(|other| has_same_id(other)).map(|other| other.name.clone()).collect();
        let to = file.map_or_else(|| rule.path.clone(), Path::to_path_buf);
        Ok(KeptRule { rule, to, former, others, also, prepared })
    }

    /// Puts the rule in place and removes former rules. Returns the rules that could not be
    /// removed.
    fn commit(
        &mut self,
        root: &Root,
        applied: &AppliedSettings,
        device: &BlockDevice,
    ) -> Result<Vec<(PathBuf, String)>, SettingsError> {
        let Some(prepared) = self.prepared.take() else { return Ok(Vec::new()) };
        if let Err(cause) = prepared.commit() {
            let restored = || SettingsPlan::new(root, device, &applied.back).ok()?.apply().ok();
            return Err(SettingsError::NotPersisted {
                cause,
                is_restored: applied.back.is_empty() || restored().is_some(),
            });
        }
        let superseded = self.former.iter().filter(|path| **path != self.to);
        let failed = superseded.filter_map(|path| {
            let error = std::fs::remove_file(root.path(path)).err()?;
            Some((path.clone(), error.to_string()))
        });
        Ok(failed.collect())
    }

    fn into_report(self) -> RuleReport {
        let others = self.others.into_iter().map(|other| OtherRuleReport {
            path: other.path,
            line: other.line,
            scheduler: other.scheduler,
            sure: other.is_sure,
        });
        RuleReport {
            path: self.to,
            text: self.rule.text,
            key: self.rule.id.key,
            value: self.rule.id.value,
            replaces: self.former,
            also: self.also,
            others: others.collect(),
        }
    }
}
