//! A fresh machine: a minimal Debian with a plain Rust toolchain, an empty home directory and a
//! clone of the workspace. The commands of README.md and the checks of continuous integration run
//! in it, so that neither relies on what a developer once installed.
//!
//! - the commands: `commands.rs`
//! - the system, its toolchain, and how a command runs in it: `machine.rs`
//! - what of this machine's access to packages the system gets: `registries.rs`
//! - the table of results: `report.rs`

#![forbid(unsafe_code)]

mod commands;
mod machine;
mod registries;
mod report;

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use hoistway_workspace::cargo::Workspace;

use commands::Command;
use machine::Machine;
use report::{Outcome, Report, Row};

/// Options of `cargo xtask check-fresh`.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    /// Run only the commands that contain this text; may be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Print the commands and do nothing else
    #[arg(long)]
    list: bool,
    /// Keep the system, which has up to 30 GB, after the last command
    #[arg(long)]
    keep: bool,
    /// Use the system that an earlier call kept, with its clone
    #[arg(long)]
    again: bool,
}

/// Runs the commands in a fresh machine, in the order of README.md, and then `.ci/run`. The output
/// goes to the terminal and to `check-fresh/log.txt` in the target directory, the table of results
/// to `check-fresh/summary.txt`.
///
/// # Errors
///
/// A text of `--only` that no command contains, a machine that cannot be made (only root can), and
/// a command that fails, after all of them have run.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let commands = selected(commands::all(&workspace.root)?, &options.only)?;
    if options.list {
        commands.iter().for_each(|command| println!("{:<20} {}", command.place(), command.shown()));
        return Ok(());
    }
    let directory = workspace.target_directory.join("check-fresh");
    fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let begun = Instant::now();
    let machine = Machine::new(workspace, &directory, options.again)?;
    println!("== the machine is made in {:.0} s: {}", begun.elapsed().as_secs_f64(), machine.root().display());
    let mut report = Report::default();
    for command in &commands {
        println!("== {}: {}", command.place(), command.shown());
        let begun = Instant::now();
        let (outcome, skipped) = run_one(&machine, command)?;
        let row = Row {
            place: command.place(),
            command: command.shown(),
            seconds: begun.elapsed().as_secs_f64(),
            outcome,
            skipped,
        };
        println!("== {row}");
        report.rows.push(row);
        // What is known is written at once: the whole takes hours.
        write(&directory.join("summary.txt"), &report.to_string())?;
    }
    if options.keep || options.again {
        println!("the system is kept; enter it with\n  {}", machine.enter_command());
    } else {
        machine.remove()?;
    }
    println!("{report}");
    match report.failed().as_slice() {
        [] => Ok(()),
        failed => bail!("on a fresh machine these fail: {}", failed.join("; ")),
    }
}

/// Selects the commands that contain one of the texts; all if there is none.
fn selected(commands: Vec<Command>, only: &[String]) -> Result<Vec<Command>> {
    for text in only {
        if !commands.iter().any(|command| command.shown().contains(text.as_str())) {
            let known: Vec<String> = commands.iter().map(Command::shown).collect();
            bail!("--only {text}: no command contains this text; the commands are\n  {}", known.join("\n  "));
        }
    }
    let wanted = |command: &Command| only.is_empty() || only.iter().any(|text| command.shown().contains(text.as_str()));
    Ok(commands.into_iter().filter(wanted).collect())
}

/// Runs a command. Returns how it ended, and the lines of what it skipped.
fn run_one(machine: &Machine, command: &Command) -> Result<(Outcome, Vec<String>)> {
    let (outcome, printed) = match command {
        Command::Line { text, .. } => {
            let (status, printed) = machine.run(machine::CLONE, text)?;
            let outcome = if status == 0 { Outcome::Passed } else { Outcome::Failed(format!("exits with {status}")) };
            (outcome, printed)
        }
        Command::Session { document, block } => {
            for program in &block.needs {
                if machine.run(machine::CLONE, &format!("command -v {program}"))?.0 != 0 {
                    return Ok((Outcome::Passed, vec![format!("SKIPPED: {program} is not installed")]));
                }
            }
            machine.make_session_directory()?;
            block.append_files(&machine.at(machine::SESSIONS))?;
            let (_, printed) = machine.run(machine::SESSIONS, &block.script())?;
            let failures = hoistway_workspace::console::failures(document, block, &block.results(&printed));
            (if failures.is_empty() { Outcome::Passed } else { Outcome::Failed(failures.join("\n")) }, printed)
        }
    };
    Ok((outcome, report::skipped(&printed)))
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_no_command_contains_is_refused_with_the_commands() {
        let line = |text: &str| Command::Line { place: "README.md:1".to_owned(), text: text.to_owned() };
        let commands = || vec![line("cargo install"), line(".ci/run")];
        let chosen = selected(commands(), &["ci".to_owned()]).expect("one contains it");
        assert_eq!(chosen.iter().map(Command::shown).collect::<Vec<_>>(), [".ci/run"]);
        let error = selected(commands(), &["npm".to_owned()]).expect_err("none contains it").to_string();
        assert!(error.ends_with("the commands are\n  cargo install\n  .ci/run"), "{error}");
    }
}
