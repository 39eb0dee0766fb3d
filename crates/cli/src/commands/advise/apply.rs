//! What is to be written, how it comes back, and writing it.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Result, bail};
use hoistway_advise::{Choice, Verdict, kernel_value, scheduler_name};
use hoistway_machine::udev::{self, Rule};
use hoistway_machine::{Assignment, BlockDevice};

use super::case::Case;
use super::subject::Subject;
use super::{is_change, usage};
use crate::cli::AdviseArgs;
use crate::failure::{Exit, tell as tell_on_stderr};
use crate::output::Out;

/// The word that comes first.
const SCHEDULER: &str = "scheduler";

/// What a device's files are to hold, and what they hold.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The device; none if none was named.
    pub device: Option<String>,
    /// Others that are set in the same way.
    pub alike: Vec<String>,
    /// What is written, the scheduler first; empty when nothing changes.
    pub words: Vec<Assignment>,
    /// What brings back what is set now.
    pub back: Vec<Assignment>,
    /// The udev rule of each device, or why it has none.
    pub rules: Vec<Result<Rule, String>>,
}

/// Refuses early what could not be asked later.
pub fn check(args: &AdviseArgs) -> Result<()> {
    if args.apply && args.json && !args.yes {
        return Err(usage(
            "--apply asks, and --json is read by programs: give --yes as well, or leave one of them out",
        ));
    }
    if args.apply && !args.yes && !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(usage(
            "--apply asks before it writes, and this is no terminal: give --yes as well, or leave it out and read what would be written",
        ));
    }
    Ok(())
}

impl Plan {
    /// What makes a device as it is advised.
    pub fn new(case: &Case, chosen: &Choice) -> Plan {
        let devices = || case.subject.iter().flat_map(|subject| std::iter::once(&subject.device).chain(&subject.alike));
        let mut names = devices().map(|device| device.name.clone());
        let (device, alike) = (names.next(), names.collect());
        if *chosen == case.now {
            return Plan { device, alike, ..Plan::default() };
        }
        let words = words(chosen, &case.now);
        // A rule has to bring the scheduler, too: at the next start another may be set.
        let mut for_good = words.clone();
        if !for_good.iter().any(|word| word.name == SCHEDULER) {
            for_good.insert(0, word(SCHEDULER, scheduler_name(chosen.kind)));
        }
        let rules = devices().map(|device| udev::rule(device, &for_good).map_err(|error| error.to_string())).collect();
        Plan { device, alike, back: self::words(&case.now, chosen), words, rules }
    }

    /// As commands, the way back behind them.
    pub fn print(&self, out: &mut Out) -> Result<()> {
        if self.words.is_empty() {
            return Ok(());
        }
        let mut section = |title: &str, lines: &[String]| -> Result<()> {
            out.line("")?;
            out.heading(title)?;
            Ok(lines.iter().try_for_each(|line| match line.starts_with("# ") {
                true => out.paragraph(2, line),
                false => out.line(format_args!("  {line}")),
            })?)
        };
        section("Set it, until the next start", &self.commands())?;
        section("Set it for good", &self.for_good())?;
        section("And back", &self.way_back())
    }

    fn devices(&self) -> Vec<&str> {
        self.device.iter().chain(&self.alike).map(String::as_str).collect()
    }

    /// What the plan is for, where no device was named.
    fn names(&self) -> Vec<&str> {
        if self.device.is_none() { vec!["DEVICE"] } else { self.devices() }
    }

    /// Commands of a shell that write it.
    pub fn commands(&self) -> Vec<String> {
        self.names().iter().flat_map(|name| echoes(name, &self.words)).collect()
    }

    /// The command of ours that does it for good, and the rule that it writes.
    pub fn for_good(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        if self.words.is_empty() {
            return lines;
        }
        for (place, name) in self.names().iter().enumerate() {
            match self.rules.get(place) {
                Some(Err(why)) => lines.push(format!("# no udev rule: {why}")),
                Some(Ok(rule)) => {
                    lines.push(format!("hoistway devices set {name} {} --persist", Assignment::list(&self.words)));
                    lines.push(format!("# or, in {}:", rule.path.display()));
                    lines.extend(rule.text.lines().map(str::to_owned));
                }
                None => lines.push(format!("hoistway devices set {name} {} --persist", Assignment::list(&self.words))),
            }
        }
        lines
    }

    /// Commands of a shell that bring back what is set now.
    pub fn way_back(&self) -> Vec<String> {
        self.names().iter().flat_map(|name| echoes(name, &self.back)).collect()
    }
}

fn word(name: &str, value: impl Into<String>) -> Assignment {
    Assignment { name: name.to_owned(), value: value.into() }
}

fn echoes(device: &str, words: &[Assignment]) -> Vec<String> {
    let file = |name: &str| match name {
        SCHEDULER | "read_ahead_kb" | "nr_requests" => format!("queue/{name}"),
        "queue_depth" => "device/queue_depth".to_owned(),
        name => format!("queue/iosched/{name}"),
    };
    words.iter().map(|word| format!("echo {} > /sys/block/{device}/{}", word.value, file(&word.name))).collect()
}

/// What leads from one choice to another: the scheduler if it is another, then tunables that differ from what they are then.
fn words(to: &Choice, from: &Choice) -> Vec<Assignment> {
    let mut words = Vec::new();
    if to.kind != from.kind {
        words.push(word(SCHEDULER, scheduler_name(to.kind)));
    }
    let set = |of: &Choice, name: &str| of.tunables.iter().find(|(set, _)| *set == name).map(|(_, value)| *value);
    for row in to.kind.info().tunables {
        // A scheduler that is switched to begins with its defaults.
        let was = if to.kind == from.kind { set(from, row.name) } else { None }.unwrap_or(row.default);
        let wanted = set(to, row.name).unwrap_or(row.default);
        if let Some(value) = kernel_value(to.kind, row.name, wanted).filter(|_| wanted != was) {
            words.push(word(row.name, value));
        }
    }
    let queue = [
        ("read_ahead_kb", to.read_ahead_kib),
        ("nr_requests", to.nr_requests.map(u64::from)),
        ("queue_depth", to.queue_depth.map(u64::from)),
    ];
    words.extend(queue.into_iter().filter_map(|(name, value)| Some(word(name, value?.to_string()))));
    words
}

/// Asks, writes, and says how it comes back.
pub fn run(args: &AdviseArgs, case: &Case, plan: &Plan, verdict: Verdict, out: &mut Out) -> Result<Exit> {
    out.flush()?;
    if !args.apply {
        return Ok(Exit::Success);
    }
    if !is_change(verdict) || plan.words.is_empty() {
        tell_on_stderr("nothing to apply: the advice is to leave it");
        return Ok(Exit::Success);
    }
    let devices = plan.devices().join(", ");
    if !args.yes && !asked(&format!("Set this on {devices} now?"))? {
        tell_on_stderr("nothing was written");
        return Ok(Exit::Success);
    }
    let Some(subject) = &case.subject else { bail!("no device was named") };
    for device in std::iter::once(&subject.device).chain(&subject.alike) {
        let back = write(subject, device, &plan.words)?;
        tell_on_stderr(&format!(
            "{}: set. Back: hoistway devices set {} {}",
            device.name,
            device.name,
            Assignment::list(&back)
        ));
    }
    Ok(Exit::Success)
}

fn asked(question: &str) -> Result<bool> {
    loop {
        write!(io::stderr(), "{question} [yes/no] ")?;
        let mut answer = String::new();
        if io::stdin().lock().read_line(&mut answer)? == 0 {
            return Ok(false);
        }
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => tell_on_stderr("answer yes or no"),
        }
    }
}

/// Writes to one device; answers what brings it back.
fn write(subject: &Subject, device: &BlockDevice, words: &[Assignment]) -> Result<Vec<Assignment>> {
    let plan = hoistway_machine::SettingsPlan::new(&subject.root, device, words)?;
    let applied = plan.apply()?;
    for change in applied.changes.iter().filter(|change| !change.is_as_requested()) {
        let (name, asked, is) = (&change.name, change.asked.as_deref(), change.after.as_deref());
        tell_on_stderr(&format!(
            "note: {}: {name} is {} and was to be {}: the kernel has made that of it",
            device.name,
            is.unwrap_or("gone"),
            asked.unwrap_or("left as it was")
        ));
    }
    Ok(applied.back)
}
