//! `hoistway bench`: what hoistway itself costs.

use anyhow::Result;
use hoistway_core::Kind;
use serde::Serialize;

use crate::bench::{elevators::measure, sim};
use crate::cli::{BenchCommand, BenchElevatorsArgs, BenchSimArgs};
use crate::failure::Exit;
use crate::figures::bytes;
use crate::output::{self, Out};
use crate::progress::Bar;

/// Measures one of the two.
pub fn run(what: &BenchCommand, out: &mut Out) -> Result<Exit> {
    match what {
        BenchCommand::Elevators(args) => elevators(args, out),
        BenchCommand::Sim(args) => simulator(args, out),
    }
}

/// The JSON document of `hoistway bench elevators --json`.
#[derive(Serialize)]
struct ElevatorsDocument {
    /// The version of this form: 1.
    schema: u32,
    /// Requests a run.
    requests: u64,
    /// Runs a cell, of which the median is told.
    runs: u16,
    /// The cells.
    elevators: Vec<ElevatorCell>,
}

/// One elevator among so many processes.
#[derive(Clone, Serialize)]
struct ElevatorCell {
    /// The elevator.
    name: &'static str,
    /// How many processes competed.
    processes: u32,
    /// CPU time a request, in ns.
    ns_per_request: f64,
}

fn elevators(args: &BenchElevatorsArgs, out: &mut Out) -> Result<Exit> {
    let kinds = if args.elevators.is_empty() { Kind::ALL } else { &args.elevators };
    let bar = Bar::new((kinds.len() * args.processes.len()) as u64, "measuring");
    let mut cells = Vec::new();
    for kind in kinds {
        for &processes in &args.processes {
            let ns_per_request = measure(*kind, processes, args.requests, usize::from(args.runs));
            cells.push(ElevatorCell { name: kind.info().name, processes, ns_per_request });
            bar.set(cells.len() as u64);
        }
    }
    bar.clear();
    if args.json {
        out.json(&ElevatorsDocument { schema: 1, requests: args.requests, runs: args.runs, elevators: cells })?;
        return Ok(Exit::Success);
    }
    out.line("CPU time a request, in ns, among so many processes:")?;
    let header: Vec<String> = args.processes.iter().map(u32::to_string).collect();
    let header: Vec<&str> = std::iter::once("elevator").chain(header.iter().map(String::as_str)).collect();
    let mut table = output::table(&header, 1);
    for row in cells.chunks(args.processes.len().max(1)) {
        let name = row.first().map_or("", |cell| cell.name).to_owned();
        table.add_row(std::iter::once(name).chain(row.iter().map(|cell| format!("{:.1}", cell.ns_per_request))));
    }
    out.table(&mut table)?;
    Ok(Exit::Success)
}

/// The JSON document of `hoistway bench sim --json`.
#[derive(Serialize)]
struct SimDocument {
    /// The version of this form: 1.
    schema: u32,
    /// Requests that were simulated.
    requests: u64,
    /// Of these so many a second of CPU time, on one core.
    requests_per_s: f64,
    /// CPU time, in ns.
    cpu_ns: u64,
    /// The most memory that the process has had, in bytes; null where the system does not tell.
    peak_memory_bytes: Option<u64>,
}

fn simulator(args: &BenchSimArgs, out: &mut Out) -> Result<Exit> {
    let sim::Measured { requests, cpu_ns, peak_memory_bytes } = sim::measure(args.requests)?;
    let requests_per_s = requests as f64 * 1e9 / cpu_ns.max(1) as f64;
    if args.json {
        out.json(&SimDocument { schema: 1, requests, requests_per_s, cpu_ns, peak_memory_bytes })?;
        return Ok(Exit::Success);
    }
    out.line(format_args!("{requests} requests in {:.3} s of CPU time on one core", cpu_ns as f64 / 1e9))?;
    out.line(format_args!("{requests_per_s:.0} simulated requests a second"))?;
    let memory = peak_memory_bytes.map_or_else(|| "not told by this system".to_owned(), bytes);
    out.line(format_args!("peak memory {memory}"))?;
    Ok(Exit::Success)
}
