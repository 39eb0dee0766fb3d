//! `hoistway bench`: measures hoistway itself.

use std::process::Command;

use anyhow::{Context, Result};
use hoistway_bench::counters::Counts;
use hoistway_bench::elevators::{self, ElevatorBench, ElevatorCost, ElevatorCosts};
use hoistway_bench::sim::{self, Load, SimCosts};
use hoistway_bench::{mount, trace};
use hoistway_drive::Profile;

use crate::cli::{BenchCommand, BenchElevatorsArgs, BenchMountArgs, BenchSimArgs, BenchTraceArgs};
use crate::commands::compare;
use crate::failure::Exit;
use crate::output::{self, Out};
use crate::program;
use crate::progress::Bar;
use hoistway_units::figures::bytes;

/// Runs one of the measurements.
pub fn run(what: &BenchCommand, out: &mut Out) -> Result<Exit> {
    match what {
        BenchCommand::Elevators(args) => bench_elevators(args, out)?,
        BenchCommand::Mount(args) => bench_mount(args, out)?,
        BenchCommand::Sim(args) => bench_sim(args, out)?,
        BenchCommand::Trace(args) => bench_trace(args, out)?,
    }
    Ok(Exit::Success)
}

fn bench_elevators(args: &BenchElevatorsArgs, out: &mut Out) -> Result<()> {
    let bench = ElevatorBench {
        kinds: compare::elevators(&args.elevators, hoistway_custom::all)?,
        processes: args.processes.clone(),
        requests: args.requests,
        runs: args.runs,
    };
    let bar = Bar::new((bench.kinds.len() * bench.processes.len()) as u64, "measuring");
    let costs = elevators::measure(&bench, &|done| bar.set(done as u64));
    bar.clear();
    if args.json {
        return out.json(&costs);
    }
    out.line("CPU time per request in ns, by number of processes:")?;
    let header: Vec<String> = args.processes.iter().map(u32::to_string).collect();
    let header: Vec<&str> = std::iter::once("elevator").chain(header.iter().map(String::as_str)).collect();
    print_costs(out, &header, &costs, |cell| format!("{:.1}", cell.ns_per_request))?;
    if let Some(reason) = &costs.not_counted {
        return Ok(out.line(format_args!("Instructions and cache misses are not counted: {reason}."))?);
    }
    for (index, name) in Counts::NAMES.iter().enumerate() {
        out.line(format_args!("{name} per request, by number of processes:"))?;
        let decimals = if index == 0 { 0 } else { 2 };
        print_costs(out, &header, &costs, |cell| {
            cell.per_request.map_or("-".to_owned(), |counts| format!("{:.decimals$}", counts.figures()[index]))
        })?;
    }
    Ok(())
}

/// Prints one figure of all cells: a row per elevator.
fn print_costs(
    out: &mut Out,
    header: &[&str],
    costs: &ElevatorCosts,
    figure: impl Fn(&ElevatorCost) -> String,
) -> Result<()> {
    let mut table = output::table(header, 1);
    for row in costs.elevators.chunks(header.len().saturating_sub(1).max(1)) {
        let name = row.first().map_or("", |cell| cell.name).to_owned();
        table.add_row(std::iter::once(name).chain(row.iter().map(&figure)));
    }
    Ok(out.table(&mut table)?)
}

fn bench_mount(args: &BenchMountArgs, out: &mut Out) -> Result<()> {
    let kinds = compare::elevators(&args.elevators, hoistway_custom::all)?;
    let bar = Bar::new(kinds.len() as u64, "measuring");
    let costs = mount::measure(&kinds, args.operations, &|done| bar.set(done as u64));
    bar.clear();
    let costs = costs?;
    if args.json {
        return out.json(&costs);
    }
    out.line("CPU time of scheduling an operation without contention, in ns:")?;
    let mut table = output::table(&["elevator", "read", "fsync", "lookup"], 1);
    for row in costs.elevators {
        let figures = [row.read_ns, row.sync_ns, row.lookup_ns].map(|ns| format!("{ns:.0}"));
        table.add_row(std::iter::once(row.name.to_owned()).chain(figures));
    }
    Ok(out.table(&mut table)?)
}

fn bench_sim(args: &BenchSimArgs, out: &mut Out) -> Result<()> {
    if let Some(row) = &args.row {
        let load = serde_json::from_str(row).context("--row is for hoistway's own use")?;
        return out.json(&sim::measure(&load)?);
    }
    let loads = loads(args)?;
    let mut costs = SimCosts { schema: 2, rows: Vec::new(), sweep: None };
    match (args.sweep, loads.first()) {
        (Some(runs), Some(load)) => costs.sweep = Some(sim::sweep(load, runs)?),
        _ => {
            let loads = if args.scaling { loads.iter().flat_map(Load::scaled).collect() } else { loads };
            let bar = Bar::new(loads.len() as u64, "measuring");
            for load in &loads {
                costs.rows.push(sim::measure_in_child(load, row_command(load)?)?);
                bar.set(costs.rows.len() as u64);
            }
            bar.clear();
        }
    }
    if args.json { out.json(&costs) } else { print_sim(&costs, out) }
}

/// The command that measures a load in a process of its own.
fn row_command(load: &Load) -> Result<Command> {
    let mut command = Command::new(program::file()?);
    command.args(["bench", "sim", "--row", &serde_json::to_string(load)?]);
    Ok(command)
}

fn loads(args: &BenchSimArgs) -> Result<Vec<Load>> {
    let pattern = args.pattern.map(sim::Pattern::from);
    let load = |drive: &str, default| Load {
        drive: drive.to_owned(),
        pattern: pattern.unwrap_or(default),
        elevator: args.elevator.info().name.to_owned(),
        processes: args.processes,
        requests: args.requests,
    };
    // Unknown drives are reported before the first measurement.
    args.drives.iter().try_for_each(|drive| Profile::choose(drive).map(drop))?;
    Ok(match args.drives.as_slice() {
        [] => sim::DEFAULT_LOADS.iter().map(|(drive, pattern)| load(drive, *pattern)).collect(),
        drives => drives.iter().map(|drive| load(drive, sim::Pattern::Randread)).collect(),
    })
}

fn print_sim(costs: &SimCosts, out: &mut Out) -> Result<()> {
    if let Some(sweep) = &costs.sweep {
        let sim::Sweep { runs, cores, speed_up, .. } = sweep;
        let s = |ns: u64| ns as f64 / 1e9;
        return Ok(out.line(format_args!(
            "{runs} worlds: {:.2} s on one core, {:.2} s on {cores}: {speed_up:.2} times as fast; CPU time {:.2} and {:.2} s",
            s(sweep.one_core_ns),
            s(sweep.all_cores_ns),
            s(sweep.one_core_cpu_ns),
            s(sweep.all_cores_cpu_ns)
        ))?);
    }
    let header = [
        "drive",
        "pattern",
        "elevator",
        "processes",
        "requests",
        "requests/s\nof CPU time",
        "ns a\nrequest",
        "start-up\nms",
        "peak\nmemory",
    ];
    let mut table = output::table(&header, 3);
    for row in &costs.rows {
        table.add_row([
            row.load.drive.clone(),
            row.load.pattern.as_fio().to_owned(),
            row.load.elevator.clone(),
            row.load.processes.to_string(),
            row.load.requests.to_string(),
            format!("{:.0}", row.requests_per_s),
            format!("{:.0}", row.ns_per_request),
            format!("{:.1}", row.start_up_ns as f64 / 1e6),
            row.peak_memory_bytes.map_or_else(|| "-".to_owned(), bytes),
        ]);
    }
    Ok(out.table(&mut table)?)
}

fn bench_trace(args: &BenchTraceArgs, out: &mut Out) -> Result<()> {
    let costs = trace::measure(args.requests, args.runs)?;
    if args.json {
        return out.json(&costs);
    }
    out.line(format_args!("{} events:", costs.events))?;
    let mut table = output::table(&["", "CPU s", "wall s", "events/s\nof CPU time"], 1);
    for row in costs.rows {
        let millions = format!("{:.2} M", row.events_per_s / 1e6);
        let [cpu, wall] = [row.cpu_seconds, row.wall_seconds].map(|seconds| format!("{seconds:.2}"));
        table.add_row([row.what, cpu, wall, millions]);
    }
    Ok(out.table(&mut table)?)
}
