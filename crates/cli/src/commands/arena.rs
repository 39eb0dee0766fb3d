//! `hoistway arena`: every elevator on many drives and workloads.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;
use hoistway_arena::{COST_PROCESSES, Cases, Drive, Matrix, Measure, Split, Standing, Standings, Workload};
use hoistway_core::Kind;
use hoistway_report::{ReportFile, sheet_page};
use hoistway_sweep::{ResultFolder, Summary};
use hoistway_units::figures::{duration, grouped};
use serde::Serialize;

use super::sweep::simulate;
use crate::cli::{ArenaArgs, ArenaSplit};
use crate::failure::{Exit, UsageError, print_message};
use crate::output::{self, Out};
use crate::progress::Bar;

/// Runs the simulations that have no result yet, and prints the standings.
pub fn run(args: &ArenaArgs, out: &mut Out) -> Result<Exit> {
    let matrix = matrix(args);
    if args.list {
        return list(&matrix, args.json, out);
    }
    let Some(output) = args.output.as_deref() else {
        return Err(UsageError("where do the results go? Name their folder with --output".to_owned()).into());
    };
    let report = args.report.as_deref().map(ReportFile::new).transpose()?;
    let plans = matrix.sweeps()?;
    if plans.is_empty() {
        let text = "no case of these workloads and drives is in this part of the arena: `hoistway arena --list` shows the parts";
        return Err(UsageError(text.to_owned()).into());
    }
    let folder = ResultFolder::open(output)?;
    let begun = Instant::now();
    let summary = simulate(&plans, &folder, args.threads)?;
    if summary.is_partial {
        print_message("interrupted: the same command continues with the missing runs");
        return Ok(Exit::Interrupted);
    }
    let cases = Cases::read(&matrix, output)?;
    let mut standings = Standings::of(&cases);
    if args.cpu {
        standings.add_costs(&costs(&matrix));
    }
    if let Some(report) = &report {
        report.write(&sheet_page(&hoistway_arena::page(&matrix, &cases, &standings))?, &AtomicBool::new(false))?;
    }
    if args.json {
        out.json(&Document { schema: 1, standings: &standings.standings, cases: &cases })?;
    } else if args.tables {
        out.text(hoistway_arena::markdown(&matrix, &cases, &standings))?;
    } else {
        print(&standings, args, out)?;
        let Summary { points, simulated, .. } = summary;
        let took = duration(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        out.line(format_args!(
            "{}: {} cases, {} of {} runs simulated now, in {took}",
            output.display(),
            grouped(cases.cases.len() as u64),
            grouped(simulated),
            grouped(points)
        ))?;
        if let Some(path) = &args.report {
            out.line(format_args!("The page is in {}.", path.display()))?;
        }
    }
    out.flush()?;
    if let Some(error) = cases.errors.first() {
        print_message(&format!(
            "error: {} runs have no figures; one of them: {error}",
            grouped(cases.errors.len() as u64)
        ));
        return Ok(Exit::Failed);
    }
    Ok(Exit::Success)
}

/// The document of `--json`.
#[derive(Serialize)]
struct Document<'a> {
    /// Version of the document's form: 1.
    schema: u32,
    /// The elevators, the one that fewest others beat first.
    standings: &'a [Standing],
    /// The figures of all cases.
    #[serde(flatten)]
    cases: &'a Cases,
}

/// The choice that the arguments make; the order is that of the arena.
fn matrix(args: &ArenaArgs) -> Matrix {
    let is_chosen = |workload: &Workload| args.workloads.is_empty() || args.workloads.contains(workload);
    let is_used = |drive: &Drive| args.drives.is_empty() || args.drives.contains(drive);
    Matrix {
        workloads: Workload::ALL.iter().copied().filter(is_chosen).collect(),
        drives: Drive::ALL.iter().copied().filter(is_used).collect(),
        split: match args.split {
            ArenaSplit::Design => Split::Design,
            ArenaSplit::Test => Split::Test,
            ArenaSplit::All => Split::All,
        },
        elevators: if args.elevators.is_empty() { Kind::ALL.to_vec() } else { args.elevators.clone() },
        first_seed: args.first_seed,
        seed_count: args.seeds,
        settings: args
            .settings
            .iter()
            .map(|setting| (format!("{}.{}", setting.elevator.info().name, setting.tunable), setting.value))
            .collect(),
    }
}

fn costs(matrix: &Matrix) -> hoistway_arena::Costs {
    let all = matrix.elevators.len() * COST_PROCESSES.len();
    let bar = Bar::new(all as u64, "measurements of CPU time");
    let costs = hoistway_arena::costs(&matrix.elevators, &|done| bar.set(done as u64));
    bar.clear();
    costs
}

fn print(standings: &Standings, args: &ArenaArgs, out: &mut Out) -> Result<()> {
    let mut header = vec!["elevator", "throughput", "won", "latency", "won", "isolation", "won", "missed"];
    if args.cpu {
        header.extend(["ns at 1", "at 128", "at 8192"]);
    }
    let mut table = output::table(&header, 1);
    for standing in &standings.standings {
        let mut row = vec![standing.elevator.clone()];
        for (mean, (within, of)) in standing.means.iter().zip(standing.within) {
            row.push(mean.map_or("-".to_owned(), |mean| format!("{mean:.2}")));
            row.push(format!("{within}/{of}"));
        }
        row.push(format!("{:.1}", standing.missed));
        row.extend(standing.cpu_ns.iter().map(|ns| format!("{ns:.0}")));
        table.add_row(row);
    }
    out.table(&mut table)?;
    out.line("")?;
    let [throughput, latency, isolation] = Measure::ALL.map(Measure::bound);
    out.paragraph(
        0,
        &format!(
            "throughput: geometric mean of the throughput over that of the best elevator in each case with an isolation of at least 0.8; \
             won: number of cases with at least {throughput}. latency: 99th percentile over the lowest; won: at most {latency}. \
             isolation: least rate of a process over its share of its rate alone; won: at least {isolation}. missed: seconds in \
             which a process had less than its rate. The first elevator is the one that fewest others beat."
        ),
    )?;
    Ok(())
}

/// A workload or a drive for `--list`.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    title: &'static str,
    held: bool,
}

fn list(matrix: &Matrix, as_json: bool, out: &mut Out) -> Result<Exit> {
    let workloads: Vec<Listed> = matrix
        .workloads
        .iter()
        .map(|workload| Listed { name: workload.name, title: workload.title(), held: workload.is_test })
        .collect();
    if as_json {
        let drives: Vec<&str> = matrix.drives.iter().map(|drive| drive.name).collect();
        let held: Vec<&str> = matrix.drives.iter().filter(|drive| drive.is_test).map(|drive| drive.name).collect();
        out.json(&serde_json::json!({ "workloads": workloads, "drives": drives, "held_drives": held }))?;
        return Ok(Exit::Success);
    }
    let part = |is_test: bool| if is_test { "test" } else { "design" };
    let mut table = output::table(&["workload", "part", "does"], 3);
    for Listed { name, title, held } in workloads {
        table.add_row([name, part(held), title]);
    }
    out.table(&mut table)?;
    out.line("")?;
    let mut table = output::table(&["drive", "part"], 2);
    for drive in &matrix.drives {
        table.add_row([drive.name, part(drive.is_test)]);
    }
    out.table(&mut table)?;
    Ok(Exit::Success)
}
