//! `cargo xtask bench-elevators`: the CPU cost of the elevators beside that of the kernels' own
//! code: the first section of docs/elevator-costs.md.
//!
//! The page is written even if goals are missed; then the task fails.

mod instructions;
mod kernel;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use hoistway_workspace::programs;
use serde_json::Value;

use crate::goals::Goal;
use crate::processor;
use crate::sections::{self, Section};

const PAGE: &str = "docs/elevator-costs.md";
/// The numbers of processes of the first table.
const PROCESSES: [u32; 5] = [1, 8, 128, 1024, 8192];
/// The elevator that searches a linear list, as Linux 2.4 did: it has no goal, and fewer requests
/// are measured.
const LINEAR: &str = "linus";
/// The greatest cost with 8192 processes, in ns.
const NS_MAX: f64 = 300.0;

/// Options of `cargo xtask bench-elevators`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Requests per run
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..))]
    requests: u64,
    /// Runs per figure
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// The program to measure, instead of the one for packages, which is built
    #[arg(long, value_name = "PROGRAM")]
    hoistway: Option<PathBuf>,
    /// Write the figures to docs/elevator-costs.md instead of printing them
    #[arg(long)]
    write: bool,
}

/// The measured cost of one elevator, for each of [`PROCESSES`].
struct Row {
    name: String,
    ns: Vec<f64>,
    /// Instructions per request by the processor's counters, if it counts.
    instructions: Option<Vec<f64>>,
}

/// Measures all elevators and prints or writes the section. Fails if a goal is missed.
pub fn run(options: &Options) -> Result<()> {
    let hoistway = sections::program(options.hoistway.as_deref())?;
    let machine = processor::machine("");
    let mut rows = measure(&hoistway, options, LINEAR, options.requests / 10)?;
    rows.extend(measure(&hoistway, options, "all", options.requests)?.into_iter().filter(|row| row.name != LINEAR));
    let mut text = heading(options, &machine)?;
    table(&mut text, "elevator", &PROCESSES, &rows, |row| Some(row.ns.iter().map(|ns| format!("{ns:.1}")).collect()));
    instruction_table(&mut text, &hoistway, &rows)?;
    let goals = goals(&rows);
    reasons(&mut text, &goals);
    sections::publish(PAGE, vec![("elevators", Section { text, goals })], options.write)
}

fn heading(options: &Options, machine: &str) -> Result<String> {
    let date = programs::output(Command::new("date").args(["--utc", "+%F"]))?;
    Ok(format!(
        "```console no-run\n$ cargo xtask bench-elevators --write\n```\n\n{}: {machine}\n\
         CPU time per request in ns, by number of processes; medians of {} runs of {} requests (`{LINEAR}`: a tenth of them):\n\n",
        date.trim(),
        options.runs,
        options.requests
    ))
}

/// Runs `hoistway bench elevators` and reads its document.
fn measure(hoistway: &Path, options: &Options, elevators: &str, requests: u64) -> Result<Vec<Row>> {
    let processes: Vec<String> = PROCESSES.iter().map(u32::to_string).collect();
    let mut command = Command::new(hoistway);
    command.args(["bench", "elevators", "--json", "--elevators", elevators, "--processes", &processes.join(",")]);
    command.args(["--requests", &requests.to_string(), "--runs", &options.runs.to_string()]);
    read(&programs::output(&mut command)?)
}

/// The rows of the document of `hoistway bench elevators --json`.
fn read(document: &str) -> Result<Vec<Row>> {
    let document: Value = serde_json::from_str(document).context("the output of hoistway bench elevators")?;
    let cells = document["elevators"].as_array().context("no list of elevators")?;
    let rows = cells.chunks(PROCESSES.len()).map(|cells| {
        let name = cells.first().and_then(|cell| cell["name"].as_str()).context("a cell without a name")?;
        let ns = cells.iter().map(|cell| cell["ns_per_request"].as_f64().context("a cell without a time"));
        let instructions = cells.iter().map(|cell| cell["per_request"]["instructions"].as_f64()).collect();
        Ok(Row { name: name.to_owned(), ns: ns.collect::<Result<_>>()?, instructions })
    });
    rows.collect()
}

/// Appends a table with one row per elevator; rows without figures are left out.
fn table(
    text: &mut String,
    name: &str,
    processes: &[u32],
    rows: &[Row],
    figures: impl Fn(&Row) -> Option<Vec<String>>,
) {
    let header: Vec<String> = processes.iter().map(u32::to_string).collect();
    let _ = writeln!(text, "| {name} | {} |\n|---{}|", header.join(" | "), "|---:".repeat(processes.len()));
    for row in rows {
        if let Some(figures) = figures(row) {
            let _ = writeln!(text, "| `{}` | {} |", row.name, figures.join(" | "));
        }
    }
}

/// Appends the instructions per request: by the processor's counters or else by valgrind.
fn instruction_table(text: &mut String, hoistway: &Path, rows: &[Row]) -> Result<()> {
    if rows.iter().all(|row| row.instructions.is_some()) {
        text.push_str("\nInstructions per request, counted by the processor:\n\n");
        table(text, "elevator", &PROCESSES, rows, |row| {
            row.instructions.as_ref().map(|counts| counts.iter().map(|count| format!("{count:.0}")).collect())
        });
        return Ok(());
    }
    let mut counted = Vec::new();
    for row in rows.iter().filter(|row| row.name != LINEAR) {
        let mut cells = Vec::new();
        for processes in kernel::PROCESSES {
            let Some(count) = instructions::count(hoistway, &row.name, processes)? else { return Ok(()) };
            cells.push(format!("{count:.0}"));
        }
        counted.push((&row.name, cells));
    }
    text.push_str("\nInstructions per request, counted by valgrind:\n\n");
    table(text, "elevator", &kernel::PROCESSES, rows, |row| {
        counted.iter().find(|(name, _)| **name == row.name).map(|(_, cells)| cells.clone())
    });
    Ok(())
}

/// The cost of a row with one of the numbers of processes for which there are kernel figures.
fn cost(row: &Row, processes: u32) -> f64 {
    let column = PROCESSES.iter().position(|&other| other == processes).unwrap_or(0);
    row.ns.get(column).copied().unwrap_or(f64::NAN)
}

/// The goals: a cost above noop no greater than the kernel's above its noop; noop no dearer than
/// the kernel's; and at most [`NS_MAX`] with the most processes.
fn goals(rows: &[Row]) -> Vec<Goal> {
    let row = |name: &str| rows.iter().find(|row| row.name == name);
    let mut goals = Vec::new();
    let Some(noop) = row("noop") else { return goals };
    let ours = kernel::PROCESSES.map(|processes| cost(noop, processes));
    goals.push(compare("noop: the kernel's (4.19)", ours, kernel::NOOP));
    for kernel in &kernel::COSTS {
        let Some(row) = row(kernel.elevator) else { continue };
        let above = |ns: [f64; 3], noop: [f64; 3]| [ns[0] - noop[0], ns[1] - noop[1], ns[2] - noop[2]];
        let found = above(kernel::PROCESSES.map(|processes| cost(row, processes)), ours);
        let what = format!("{}: the kernel's above noop ({})", kernel.elevator, kernel.version);
        goals.push(compare(&what, found, above(kernel.ns, kernel::NOOP)));
    }
    for row in rows.iter().filter(|row| row.name != LINEAR) {
        let found = row.ns.last().copied().unwrap_or(f64::NAN);
        let what = format!("{}: at most {NS_MAX:.0} ns with 8192 processes", row.name);
        goals.push(Goal::found(&what, format!("{found:.0}"), found <= NS_MAX));
    }
    goals
}

/// A goal for three numbers of processes.
fn compare(what: &str, found: [f64; 3], most: [f64; 3]) -> Goal {
    let list = |ns: [f64; 3]| ns.map(|ns| format!("{ns:.0}")).join(", ");
    let missed: Vec<String> = (0..3)
        .filter(|&column| found[column].round() > most[column].round())
        .map(|column| kernel::PROCESSES[column].to_string())
        .collect();
    let at = if missed.is_empty() { String::new() } else { format!("; missed with {}", missed.join(", ")) };
    Goal::found(&format!("{what}: {}", list(most)), format!("{}{at}", list(found)), missed.is_empty())
}

/// Appends the known reasons of missed goals.
fn reasons(text: &mut String, goals: &[Goal]) {
    let missed = |elevator: &str| {
        goals.iter().any(|goal| goal.holds != Some(true) && goal.text.starts_with(&format!("{elevator}:")))
    };
    text.push_str(
        "\nGoals, in ns with 1, 128 and 8192 processes. The kernels' figures are those of their code in user space, \
        measured with the same load on an AMD EPYC; see `tools/xtask/src/bench_elevators/kernel.rs`.\n",
    );
    for (elevator, reason) in kernel::REASONS {
        if missed(elevator) {
            let _ = writeln!(text, "- `{elevator}`: {reason}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, ns: [f64; 5]) -> Row {
        Row { name: name.to_owned(), ns: ns.to_vec(), instructions: None }
    }

    #[test]
    fn a_goal_compares_costs_above_noop() {
        let rows = [row("noop", [19.0; 5]), row("cfq", [51.0, 0.0, 92.0, 0.0, 301.0])];
        let goals = goals(&rows);
        let found: Vec<_> = goals.iter().map(|goal| (goal.found.as_str(), goal.holds)).collect();
        // The kernel's cfq costs 32, 73 and 125 ns above its noop.
        assert_eq!(
            found,
            [
                ("19, 19, 19", Some(true)),
                ("32, 73, 282; missed with 8192", Some(false)),
                ("19", Some(true)),
                ("301", Some(false))
            ]
        );
    }

    #[test]
    fn the_document_of_the_program_is_read_by_elevator() {
        let cell = |ns: u32| format!(r#"{{"name":"noop","processes":1,"ns_per_request":{ns}.5}}"#);
        let cells: Vec<String> = (0..5).map(cell).collect();
        let rows = read(&format!(r#"{{"elevators":[{}]}}"#, cells.join(","))).expect("a document");
        assert_eq!((rows.len(), rows[0].name.as_str(), rows[0].ns[4]), (1, "noop", 4.5));
        assert!(rows[0].instructions.is_none());
        assert!(read(r#"{"elevators":[{}]}"#).is_err());
    }
}
