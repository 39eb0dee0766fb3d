//! What is to be written, how it comes back, and writing it.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Result, bail};
use hoistway_advise::{Choice, Verdict, kernel_value, scheduler_name};

use super::case::Case;
use super::{is_change, usage};
use crate::cli::AdviseArgs;
use crate::failure::{Exit, tell as tell_on_stderr};
use crate::output::Out;

/// What a device's files are to hold, and what they hold.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The device; none if none was named.
    pub device: Option<String>,
    /// Others that are set in the same way.
    pub alike: Vec<String>,
    /// Name and value, the scheduler first; empty when nothing changes.
    pub words: Vec<(String, String)>,
    /// What brings back what is set now.
    pub back: Vec<(String, String)>,
}

/// Refuses early what could not be asked later.
pub fn check(args: &AdviseArgs) -> Result<()> {
    if args.apply && args.json && !args.yes {
        return Err(usage("--apply asks, and --json is read by programs: give --yes as well, or leave one of them out"));
    }
    if args.apply && !args.yes && !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(usage("--apply asks before it writes, and this is no terminal: give --yes as well, or leave it out and read what would be written"));
    }
    Ok(())
}

impl Plan {
    /// What makes a device as it is advised.
    pub fn new(case: &Case, chosen: &Choice) -> Plan {
        let device = case.subject.as_ref().map(|subject| subject.device.name.clone());
        let alike = case.subject.iter().flat_map(|subject| &subject.alike).map(|device| device.name.clone()).collect();
        if *chosen == case.now {
            return Plan { device, alike, ..Plan::default() };
        }
        Plan { device, alike, words: words(chosen, &case.now), back: words(&case.now, chosen) }
    }

    /// As commands, the way back behind them.
    pub fn print(&self, out: &mut Out) -> Result<()> {
        if self.words.is_empty() {
            return Ok(());
        }
        out.line("")?;
        out.heading("Set it, until the next start")?;
        self.commands().iter().try_for_each(|line| out.line(format_args!("  {line}")))?;
        out.line("")?;
        out.heading("For good")?;
        self.for_good().iter().try_for_each(|line| out.line(format_args!("  {line}")))?;
        out.line("")?;
        out.heading("And back")?;
        self.way_back().iter().try_for_each(|line| out.line(format_args!("  {line}")))?;
        Ok(())
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

    /// The command of ours that does it for good.
    pub fn for_good(&self) -> Vec<String> {
        let words: Vec<String> = self.words.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.names().iter().map(|name| format!("hoistway devices set {name} {} --persist", words.join(" "))).collect()
    }

    /// Commands of a shell that bring back what is set now.
    pub fn way_back(&self) -> Vec<String> {
        self.names().iter().flat_map(|name| echoes(name, &self.back)).collect()
    }
}

fn echoes(device: &str, words: &[(String, String)]) -> Vec<String> {
    let scheduler = words.iter().any(|(name, _)| name == "scheduler");
    let file = |name: &str| match name {
        "scheduler" | "read_ahead_kb" | "nr_requests" => format!("queue/{name}"),
        "queue_depth" => "device/queue_depth".to_owned(),
        name => format!("queue/iosched/{name}"),
    };
    debug_assert!(!scheduler || words[0].0 == "scheduler", "tunables of a scheduler come after it");
    words.iter().map(|(name, value)| format!("echo {value} > /sys/block/{device}/{}", file(name))).collect()
}

/// What leads from one choice to another: the scheduler if it is another, tunables that differ from what they are then.
fn words(to: &Choice, from: &Choice) -> Vec<(String, String)> {
    let mut words = Vec::new();
    if to.kind != from.kind {
        words.push(("scheduler".to_owned(), scheduler_name(to.kind).to_owned()));
    }
    let default = |name: &str| to.kind.info().tunables.iter().find(|row| row.name == name).map(|row| row.default);
    for row in to.kind.info().tunables {
        let wanted = to.tunables.iter().find(|(name, _)| *name == row.name).map(|(_, value)| *value);
        // A scheduler that is switched to begins with its defaults.
        let was = if to.kind == from.kind { from.tunables.iter().find(|(name, _)| *name == row.name).map(|(_, value)| *value) } else { None };
        let (wanted, was) = (wanted.or(default(row.name)), was.or(default(row.name)));
        if let Some(value) = wanted.filter(|_| wanted != was).and_then(|value| kernel_value(to.kind, row.name, value)) {
            words.push((row.name.to_owned(), value));
        }
    }
    let queue = [
        ("read_ahead_kb", to.read_ahead_kib),
        ("nr_requests", to.nr_requests.map(u64::from)),
        ("queue_depth", to.queue_depth.map(u64::from)),
    ];
    words.extend(queue.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_string()))));
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
        write(subject, device, plan)?;
        tell_on_stderr(&format!("{}: set; back with `{}`", device.name, echoes(&device.name, &plan.back).join("; ")));
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

fn write(_subject: &super::subject::Subject, _device: &hoistway_machine::BlockDevice, _plan: &Plan) -> Result<()> {
    todo!("join with machine::set")
}
