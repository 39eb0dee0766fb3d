//! `hoistway devices set` and `reset`.

use anyhow::{Result, bail};
use hoistway_machine::{
    Assignment, AttributeInfo, BlockDevice, PlanError, Root, RuleReport, RuleTarget, SettingChange, SettingsPlan,
    SettingsReport, defaults_of, devices, scheduling_holder, setting_info, successor, tunable_infos,
};

use crate::cli::{ResetArgs, SetArgs};
use crate::failure::{Exit, UsageError, print_message};
use crate::names::did_you_mean;
use crate::output::Out;

/// Checks all assignments, writes them, and prints the changes.
pub fn run(root: &Root, args: &SetArgs, out: &mut Out) -> Result<Exit> {
    let assignments: Result<Vec<Assignment>, _> = args.words.iter().map(|word| Assignment::parse(word)).collect();
    let assignments = assignments.map_err(|error| UsageError(error.to_string()))?;
    let device = super::find_device(root, &args.device)?;
    set(root, args, &device, &assignments, out)
}

/// Resets the tunables of the current scheduler to their defaults.
pub fn reset(root: &Root, args: &ResetArgs, out: &mut Out) -> Result<Exit> {
    let device = super::find_device(root, &args.device)?;
    let assignments = defaults_of(&device);
    if assignments.is_empty() {
        let scheduler = device.queue.as_ref().and_then(|queue| queue.scheduler.as_deref()).unwrap_or("none");
        bail!(
            "{} has nothing to reset: its scheduler ({scheduler}) has no tunables whose defaults are known",
            device.name
        );
    }
    let args = SetArgs {
        device: args.device.clone(),
        words: Vec::new(),
        dry_run: args.dry_run,
        persist: None,
        json: args.json,
    };
    set(root, &args, &device, &assignments, out)
}

fn set(root: &Root, args: &SetArgs, device: &BlockDevice, assignments: &[Assignment], out: &mut Out) -> Result<Exit> {
    let plan = SettingsPlan::new(root, device, assignments)
        .map_err(|error| anyhow::anyhow!("{error}{}", suggestion(&error)))?;
    let target = args.persist.as_ref().map(|file| match file {
        Some(path) => RuleTarget::File(path.clone()),
        None => RuleTarget::Default,
    });
    let report = plan.carry_out(root, args.dry_run, target.as_ref())?;
    for (path, error) in &report.not_removed {
        print_message(&format!(
            "warning: {}: the former rule for this device cannot be removed: {error}",
            path.display()
        ));
    }
    note_bypassed_path(root, device)?;
    if args.json {
        out.json(&report)?
    } else {
        print(&report, &plan, out)?
    }
    Ok(Exit::Success)
}

/// Notes on standard error that a multipath device bypasses the scheduler of its path.
fn note_bypassed_path(root: &Root, device: &BlockDevice) -> Result<()> {
    let all = if device.holders.is_empty() { Vec::new() } else { devices(root)? };
    if let Some(holder) = scheduling_holder(&all, device) {
        print_message(&format!(
            "note: {} is a path of {}, whose scheduler is used: requests bypass the scheduler of the path",
            device.name, holder.name
        ));
    }
    Ok(())
}

/// The name nearest to an unknown one, as ` (did you mean ...?)`.
fn suggestion(error: &PlanError) -> String {
    match error {
        PlanError::Scheduler { scheduler, .. } if successor(scheduler).is_some() => String::new(),
        PlanError::Scheduler { scheduler, available, .. } => {
            did_you_mean(scheduler, available.iter().map(String::as_str))
        }
        PlanError::Name { name, tunables, settings, .. } => {
            did_you_mean(name, tunables.iter().chain(settings).map(String::as_str).chain(["scheduler"]))
        }
        _ => String::new(),
    }
}

fn print(report: &SettingsReport, plan: &SettingsPlan, out: &mut Out) -> Result<()> {
    let requested = plan.steps().find(|(assignment, _)| assignment.name == "scheduler");
    let requested = requested.map(|(assignment, _)| assignment.value.clone());
    let present = plan.device().queue.as_ref().and_then(|queue| queue.scheduler.clone());
    let tunables = tunable_infos(&requested.or(present).unwrap_or_default());
    let info = |name: &str| tunables.iter().find(|info| info.name == name).or_else(|| setting_info(name)).copied();
    let title = if report.dry_run { ": nothing is written; this would be" } else { "" };
    out.heading(format_args!("{}{title}", report.device))?;
    for change in &report.changes {
        let text = change_text(change, info(&change.name).as_ref(), report.dry_run);
        out.line(format_args!("  {:<20}{text}", change.name))?;
    }
    if !report.besides.is_empty() {
        out.line("")?;
        out.line("The kernel also changed:")?;
        for change in &report.besides {
            out.line(format_args!("  {:<20}{}", change.name, change_text(change, info(&change.name).as_ref(), false)))?;
        }
    }
    if let Some(back) = &report.back {
        out.line("")?;
        out.line("The way back:")?;
        out.line(format_args!("  {back}"))?;
    }
    match &report.rule {
        Some(rule) => print_rule(report, rule, out),
        None => Ok(()),
    }
}

fn change_text(change: &SettingChange, info: Option<&AttributeInfo>, dry_run: bool) -> String {
    let with_unit = |value: &str| info.map_or_else(|| value.to_owned(), |info| info.with_unit(value));
    let shown = |value: &Option<String>| value.as_deref().map_or_else(|| "gone".to_owned(), with_unit);
    let requested = || shown(&change.asked);
    if dry_run {
        return match &change.before {
            Some(before) if Some(before) == change.asked.as_ref() => format!("{} already", requested()),
            Some(before) => format!("{before} -> {}", requested()),
            None => format!("-> {}", requested()),
        };
    }
    let now = shown(&change.after);
    match &change.before {
        Some(before) if change.is_unchanged() && change.is_as_requested() => format!("{} already", with_unit(before)),
        Some(before) if change.is_unchanged() => {
            format!("stays {before}: the kernel accepted {} and ignored it", requested())
        }
        Some(before) if change.is_as_requested() => format!("{before} -> {now}"),
        Some(before) => format!("{before} -> {now}: the kernel made that of {}", requested()),
        None if change.is_as_requested() => format!("-> {now}"),
        None => format!("-> {now}: the kernel made that of {}", requested()),
    }
}

fn print_rule(report: &SettingsReport, rule: &RuleReport, out: &mut Out) -> Result<()> {
    out.line("")?;
    let verb = if report.dry_run { "It would be kept" } else { "Kept" };
    out.line(format_args!("{verb} in {}:", rule.path.display()))?;
    for line in rule.text.lines() {
        out.line(format_args!("  {line}"))?;
    }
    for former in &rule.replaces {
        let text = if *former == rule.path {
            "the former rule of this name is replaced".to_owned()
        } else {
            format!("{} is removed for it", former.display())
        };
        out.line(format_args!("  ({text})"))?;
    }
    out.line("To undo:")?;
    if rule.path.starts_with("/etc/udev/rules.d") {
        out.line(format_args!("  hoistway devices forget {}", report.device))?;
    } else {
        out.line(format_args!("  rm {}", rule.path.display()))?;
        out.paragraph(2, "udev reads the rules in /etc/udev/rules.d.")?;
    }
    warn_of_conflicts(report, rule);
    Ok(())
}

/// Warns of other devices with the same identifier, and of other rules that set the scheduler.
fn warn_of_conflicts(report: &SettingsReport, rule: &RuleReport) {
    if !rule.also.is_empty() {
        let also = rule.also.join(", ");
        print_message(&format!(
            "warning: {also} has the same identifier {}, and the rule will set it too: another path to the same disk, or a bridge that reports its own",
            rule.value
        ));
    }
    for other in &rule.others {
        let verb = if other.sure { "sets" } else { "may set" };
        let order = if other.path.file_name() > rule.path.file_name() {
            "and comes later, so it wins"
        } else {
            "and comes before, so this rule wins"
        };
        print_message(&format!(
            "warning: {}:{} {verb} the scheduler of {} to {} too, {order}",
            other.path.display(),
            other.line,
            report.device,
            other.scheduler
        ));
    }
}
