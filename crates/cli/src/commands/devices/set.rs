//! `hoistway devices set`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use hoistway_machine::udev::{self, OtherRule, Prepared, Rule};
use hoistway_machine::{
    Applied, Assignment, BlockDevice, Change, Plan, PlanError, Root, Row, devices, schedules_for_paths, setting,
    successor,
};
use serde::Serialize;

use super::rows::{rows, with_unit};
use crate::cli::{ResetArgs, SetArgs};
use crate::failure::{Exit, UsageError, tell};
use crate::names::did_you_mean;
use crate::output::Out;

/// Checks all words, writes them, and tells what became of them.
pub fn run(root: &Root, args: &SetArgs, out: &mut Out) -> Result<Exit> {
    let words: Result<Vec<Assignment>, PlanError> = args.words.iter().map(|word| Assignment::parse(word)).collect();
    let words = words.map_err(|error| UsageError(error.to_string()))?;
    let device = super::one(root, &args.device)?;
    set(root, args, &device, &words, out)
}

/// Sets the tunables of the scheduler that is set to what they are unless set.
pub fn reset(root: &Root, args: &ResetArgs, out: &mut Out) -> Result<Exit> {
    let device = super::one(root, &args.device)?;
    let queue = device.queue.as_ref();
    let scheduler = queue.and_then(|queue| queue.scheduler.as_deref()).unwrap_or("none");
    // slice_idle says the same, and comes first.
    let known = rows(scheduler).into_iter().filter(|row| row.name != "slice_idle_us");
    let words: Vec<Assignment> = known
        .filter(|row| queue.is_some_and(|queue| queue.tunable(row.name).is_some()))
        .filter_map(|row| Some(Assignment { name: row.name.to_owned(), value: row.default?.to_string() }))
        .collect();
    if words.is_empty() {
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
    set(root, &args, &device, &words, out)
}

fn set(root: &Root, args: &SetArgs, device: &BlockDevice, words: &[Assignment], out: &mut Out) -> Result<Exit> {
    let plan = Plan::new(root, device, words, &rows).map_err(|error| anyhow::anyhow!("{error}{}", nearest(&error)))?;
    let mut persisted = match &args.persist {
        Some(to) => Some(Persisted::new(root, &plan, to.as_deref(), args.dry_run)?),
        None => None,
    };
    let applied = if args.dry_run { None } else { Some(plan.apply(&rows)?) };
    if let (Some(applied), Some(persisted)) = (&applied, &mut persisted) {
        persisted.put(root, applied, device)?;
    }
    let told = Told::new(root, device, &plan, applied, persisted.as_ref());
    note_of_path(root, device)?;
    if args.json {
        out.json(&told)?
    } else {
        print(&told, &plan, out)?
    }
    Ok(Exit::Success)
}

/// Says of a path of several to one disk that what is set on it changes nothing.
fn note_of_path(root: &Root, device: &BlockDevice) -> Result<()> {
    let all = if device.holders.is_empty() { Vec::new() } else { devices(root)? };
    let is_above = |other: &&BlockDevice| device.holders.contains(&other.name) && schedules_for_paths(other);
    if let Some(above) = all.iter().find(is_above) {
        tell(&format!(
            "note: {} is a path of {}, whose scheduler counts: requests pass this one by",
            device.name, above.name
        ));
    }
    Ok(())
}

/// What a misspelt word may have meant.
fn nearest(error: &PlanError) -> String {
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

/// A rule of udev on its way to its place.
struct Persisted {
    rule: Rule,
    /// Where it belongs, on the machine.
    to: PathBuf,
    /// Ours for the same device, which it replaces: those that are called otherwise are removed.
    former: Vec<PathBuf>,
    others: Vec<OtherRule>,
    /// Other devices that go by the same id.
    also: Vec<String>,
    prepared: Option<Prepared>,
}

impl Persisted {
    fn new(root: &Root, plan: &Plan, to: Option<&Path>, dry_run: bool) -> Result<Persisted> {
        let device = plan.device();
        let words: Vec<Assignment> = plan.steps().map(|(word, _)| word.clone()).collect();
        let rule = udev::rule(device, &words)?;
        let prepared = if dry_run { None } else { Some(udev::prepare(root, &rule, to)?) };
        let own_place = to.is_none();
        let former = if own_place { udev::own_rules(root, device) } else { Vec::new() };
        let others = udev::others(root, device);
        let is_same = |other: &BlockDevice| {
            other.number != device.number && udev::stable_id(other).is_ok_and(|id| id.value == rule.id.value)
        };
        let also = devices(root)?.iter().filter(|other| is_same(other)).map(|other| other.name.clone()).collect();
        let to = to.map_or_else(|| rule.path.clone(), Path::to_path_buf);
        Ok(Persisted { rule, to, former, others, also, prepared })
    }

    /// Moves it to its place. Where that fails, the device is brought back: all or nothing.
    fn put(&mut self, root: &Root, applied: &Applied, device: &BlockDevice) -> Result<()> {
        let Some(prepared) = self.prepared.take() else { return Ok(()) };
        if let Err(error) = prepared.put() {
            let back = Plan::new(root, device, &applied.back, &rows).ok().and_then(|plan| plan.apply(&rows).ok());
            let state = if back.is_some() || applied.back.is_empty() {
                "everything is as it was"
            } else {
                "the device is set all the same"
            };
            bail!("{error}; {state}");
        }
        for path in self.former.iter().filter(|path| **path != self.to) {
            if let Err(error) = std::fs::remove_file(root.path(path)) {
                tell(&format!(
                    "warning: {}: the former rule for this device cannot be removed: {error}",
                    path.display()
                ));
            }
        }
        Ok(())
    }
}

/// What is told, and the JSON document.
#[derive(Serialize)]
struct Told {
    /// The version of this form: 1.
    schema: u32,
    device: String,
    /// Nothing was done.
    dry_run: bool,
    /// What was set, or would be, in this order.
    changes: Vec<Change>,
    /// What the kernel changed besides.
    besides: Vec<Change>,
    /// The command that brings all of it back; none if there is nothing to bring back.
    back: Option<String>,
    rule: Option<ToldRule>,
}

#[derive(Serialize)]
struct ToldRule {
    path: PathBuf,
    text: String,
    /// What the device is found by, as udev has it.
    key: String,
    value: String,
    /// The rules of ours that it replaces.
    replaces: Vec<PathBuf>,
    /// Devices that go by the same id, and get the same.
    also: Vec<String>,
    /// Rules of others that set the scheduler of the device too.
    others: Vec<ToldOther>,
}

#[derive(Serialize)]
struct ToldOther {
    path: PathBuf,
    line: usize,
    scheduler: String,
    /// Whether its conditions are known to hold.
    sure: bool,
}

impl Told {
    fn new(
        root: &Root,
        device: &BlockDevice,
        plan: &Plan,
        applied: Option<Applied>,
        persisted: Option<&Persisted>,
    ) -> Told {
        let dry_run = applied.is_none();
        let applied = applied.unwrap_or_else(|| Applied {
            changes: planned(device, plan),
            besides: Vec::new(),
            back: Vec::new(),
        });
        let back = applied.back.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let other_root =
            if root.is_machine() { String::new() } else { format!(" --root {}", root.path("/").display()) };
        let back = (!back.is_empty()).then(|| format!("hoistway devices set {} {back}{other_root}", device.name));
        let rule = persisted.map(|persisted| ToldRule {
            path: persisted.to.clone(),
            text: persisted.rule.text.clone(),
            key: persisted.rule.id.key.clone(),
            value: persisted.rule.id.value.clone(),
            replaces: persisted.former.clone(),
            also: persisted.also.clone(),
            others: persisted
                .others
                .iter()
                .map(|other| ToldOther {
                    path: other.path.clone(),
                    line: other.line,
                    scheduler: other.scheduler.clone(),
                    sure: other.is_sure,
                })
                .collect(),
        });
        let Applied { changes, besides, .. } = applied;
        Told { schema: 1, device: device.name.clone(), dry_run, changes, besides, back, rule }
    }
}

/// What would be set, beside what is now.
fn planned(device: &BlockDevice, plan: &Plan) -> Vec<Change> {
    let queue = device.queue.as_ref();
    let switches = plan
        .steps()
        .any(|(word, _)| word.name == "scheduler" && queue.and_then(|q| q.scheduler.as_ref()) != Some(&word.value));
    let steps = plan.steps().map(|(word, file)| {
        let before = match word.name.as_str() {
            "scheduler" => queue.and_then(|queue| queue.scheduler.clone()),
            name if file.starts_with("queue/iosched/") => {
                queue.filter(|_| !switches).and_then(|queue| queue.tunable(name)).map(|tunable| tunable.value.clone())
            }
            name => queue.and_then(|queue| queue.setting(name)).map(|setting| setting.value.clone()),
        };
        Change { name: word.name.clone(), before, asked: Some(word.value.clone()), after: None }
    });
    steps.collect()
}

fn print(told: &Told, plan: &Plan, out: &mut Out) -> Result<()> {
    let scheduler = plan.steps().find(|(word, _)| word.name == "scheduler").map(|(word, _)| word.value.clone());
    let present = plan.device().queue.as_ref().and_then(|queue| queue.scheduler.clone());
    let known = rows(&scheduler.or(present).unwrap_or_default());
    let row = |name: &str| known.iter().find(|row| row.name == name).or_else(|| setting(name)).copied();
    out.heading(format_args!(
        "{}{}",
        told.device,
        if told.dry_run { ": nothing is written; this would be" } else { "" }
    ))?;
    for change in &told.changes {
        out.line(format_args!("  {:<20}{}", change.name, became(change, row(&change.name).as_ref(), told.dry_run)))?;
    }
    if !told.besides.is_empty() {
        out.line("")?;
        out.line("The kernel changed besides:")?;
        for change in &told.besides {
            out.line(format_args!("  {:<20}{}", change.name, became(change, row(&change.name).as_ref(), false)))?;
        }
    }
    if let Some(back) = &told.back {
        out.line("")?;
        out.line("The way back:")?;
        out.line(format_args!("  {back}"))?;
    }
    if let Some(rule) = &told.rule {
        print_rule(told, rule, out)?;
    }
    Ok(())
}

fn became(change: &Change, row: Option<&Row>, dry_run: bool) -> String {
    let shown =
        |value: &Option<String>| value.as_deref().map_or_else(|| "gone".to_owned(), |value| with_unit(value, row));
    let asked = || shown(&change.asked);
    if dry_run {
        return match &change.before {
            Some(before) if Some(before) == change.asked.as_ref() => format!("{} already", asked()),
            Some(before) => format!("{before} -> {}", asked()),
            None => format!("-> {}", asked()),
        };
    }
    let now = shown(&change.after);
    match &change.before {
        Some(before) if change.is_none() && change.is_as_asked() => format!("{} already", with_unit(before, row)),
        Some(before) if change.is_none() => format!("stays {before}: the kernel took {} and did nothing", asked()),
        Some(before) if change.is_as_asked() => format!("{before} -> {now}"),
        Some(before) => format!("{before} -> {now}: the kernel made that of {}", asked()),
        None if change.is_as_asked() => format!("-> {now}"),
        None => format!("-> {now}: the kernel made that of {}", asked()),
    }
}

fn print_rule(told: &Told, rule: &ToldRule, out: &mut Out) -> Result<()> {
    out.line("")?;
    let verb = if told.dry_run { "It would be kept" } else { "Kept" };
    out.line(format_args!("{verb} in {}:", rule.path.display()))?;
    for line in rule.text.lines() {
        out.line(format_args!("  {line}"))?;
    }
    for former in &rule.replaces {
        let how = if *former == rule.path {
            "the former one of this name is replaced".to_owned()
        } else {
            format!("{} is removed for it", former.display())
        };
        out.line(format_args!("  ({how})"))?;
    }
    out.line("To undo:")?;
    if rule.path.starts_with("/etc/udev/rules.d") {
        out.line(format_args!("  hoistway devices forget {}", told.device))?;
    } else {
        out.line(format_args!("  rm {}", rule.path.display()))?;
        out.paragraph(2, "udev reads what lies in /etc/udev/rules.d.")?;
    }
    if !rule.also.is_empty() {
        let also = rule.also.join(", ");
        tell(&format!(
            "warning: {also} goes by the same {}, and will be set so too: another path to the same disk, or a bridge that gives its own",
            rule.value
        ));
    }
    for other in &rule.others {
        let ToldOther { path, line, scheduler, sure } = other;
        let about = if *sure { "sets" } else { "may set" };
        let who_wins = if path.file_name() > rule.path.file_name() {
            "and comes later, so it wins"
        } else {
            "and comes before, so this rule wins"
        };
        tell(&format!(
            "warning: {}:{line} {about} the scheduler of {} to {scheduler} too, {who_wins}",
            path.display(),
            told.device
        ));
    }
    Ok(())
}
