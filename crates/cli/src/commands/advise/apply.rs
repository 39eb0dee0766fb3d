//! Prints the commands that carry advice out, and with `--apply` carries them out after asking.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Result, bail};
use hoistway_advise::{Case, ChangePlan, Subject, Verdict};
use hoistway_machine::{Assignment, BlockDevice};

use super::request::usage;
use crate::cli::AdviseArgs;
use crate::failure::{Exit, print_message};
use crate::output::Out;

/// Refuses `--apply` early where it could not ask.
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

/// Prints the commands of a plan, with the way back.
pub fn print(plan: &ChangePlan, out: &mut Out) -> Result<()> {
    if plan.assignments.is_empty() {
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
    section("Set it, until the next start", &plan.commands())?;
    section("Set it for good", &plan.persistent_commands())?;
    section("And back", &plan.way_back())
}

/// With `--apply` asks, writes, and prints the way back.
pub fn run(args: &AdviseArgs, case: &Case, plan: &ChangePlan, verdict: Verdict, out: &mut Out) -> Result<Exit> {
    out.flush()?;
    if !args.apply {
        return Ok(Exit::Success);
    }
    if verdict != Verdict::Change || plan.assignments.is_empty() {
        print_message("nothing to apply: the advice is to leave it");
        return Ok(Exit::Success);
    }
    let devices = plan.devices().join(", ");
    if !args.yes && !confirm(&format!("Set this on {devices} now?"))? {
        print_message("nothing was written");
        return Ok(Exit::Success);
    }
    let Some(subject) = &case.subject else { bail!("no device was named") };
    for device in subject.devices() {
        let back = apply(plan, subject, device)?;
        let back = Assignment::list(&back);
        print_message(&format!("{}: set. Back: hoistway devices set {} {back}", device.name, device.name));
    }
    Ok(Exit::Success)
}

/// Asks a question on the terminal; the end of the input counts as no.
fn confirm(question: &str) -> Result<bool> {
    loop {
        write!(io::stderr(), "{question} [yes/no] ")?;
        let mut answer = String::new();
        if io::stdin().lock().read_line(&mut answer)? == 0 {
            return Ok(false);
        }
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => print_message("answer yes or no"),
        }
    }
}

/// Carries the plan out on one device and returns the way back.
fn apply(plan: &ChangePlan, subject: &Subject, device: &BlockDevice) -> Result<Vec<Assignment>> {
    let applied = plan.apply(subject, device)?;
    for change in applied.changes.iter().filter(|change| !change.is_as_requested()) {
        let (name, requested, value) = (&change.name, change.asked.as_deref(), change.after.as_deref());
        print_message(&format!(
            "note: {}: {name} is {} and should be {}: the kernel changed the value",
            device.name,
            value.unwrap_or("gone"),
            requested.unwrap_or("as before")
        ));
    }
    Ok(applied.back)
}
