//! `hoistway bench`: measures hoistway itself.

use anyhow::{Context, Result};
use hoistway_core::Kind;
use hoistway_mount::Operation;
use serde::Serialize;

use crate::bench::{elevators::measure, mount, sim, trace};
use crate::cli::{BenchCommand, BenchElevatorsArgs, BenchMountArgs, BenchSimArgs, BenchTraceArgs, Pattern};
use crate::failure::Exit;
use crate::figures::bytes;
use crate::output::{self, Out};
use crate::progress::Bar;

/// Runs one of the measurements.
pub fn run(what: &BenchCommand, out: &mut Out) -> Result<Exit> {
    match what {
        BenchCommand::Elevators(args) => elevators(args, out),
        BenchCommand::Mount(args) => scheduling(args, out),
        BenchCommand::Sim(args) => simulator(args, out),
        BenchCommand::Trace(args) => traces(args, out),
    }
}

/// The JSON document of `hoistway bench elevators --json`.
#[derive(Serialize)]
struct ElevatorsDocument {
    /// Version of the document's form: 1.
    schema: u32,
    /// Requests per run.
    requests: u64,
    /// Runs per cell; the cell is their median.
    runs: u16,
    /// One entry per elevator and number of processes.
    elevators: Vec<ElevatorCell>,
}

/// The cost of one elevator with a number of processes.
#[derive(Clone, Serialize)]
struct ElevatorCell {
    /// Name of the elevator.
    name: &'static str,
    /// Number of competing processes.
    processes: u32,
    /// CPU time per request, in ns.
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
    out.line("CPU time per request in ns, by number of processes:")?;
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

/// The JSON document of `hoistway bench mount --json`.
#[derive(Serialize)]
struct MountDocument {
    /// Version of the document's form: 1.
    schema: u32,
    /// Operations per run.
    operations: u64,
    /// One entry per elevator.
    elevators: Vec<MountRow>,
}

/// CPU time per operation under one elevator, in ns.
#[derive(Serialize)]
struct MountRow {
    /// Name of the elevator.
    name: &'static str,
    /// A read of 4 KiB from the disk, in ns.
    read_ns: f64,
    /// An fsync of a file, in ns.
    sync_ns: f64,
    /// A lookup of a name on the disk, in ns.
    look_ns: f64,
}

fn scheduling(args: &BenchMountArgs, out: &mut Out) -> Result<Exit> {
    let kinds = if args.elevators.is_empty() { Kind::ALL } else { &args.elevators };
    let folder = std::env::temp_dir().join(format!("hoistway-bench-mount-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let bar = Bar::new(kinds.len() as u64, "measuring");
    let row = |(done, kind): (usize, &Kind)| -> Result<MountRow> {
        let cost = |operation| mount::cost(*kind, operation, args.operations, &folder);
        let [read, sync, look] = [Operation::Read, Operation::Sync, Operation::MetadataRead].map(cost);
        bar.set(done as u64 + 1);
        Ok(MountRow { name: kind.info().name, read_ns: read?, sync_ns: sync?, look_ns: look? })
    };
    let rows: Result<Vec<MountRow>> = kinds.iter().enumerate().map(row).collect();
    bar.clear();
    // A leftover folder is among temporary files.
    let _ = std::fs::remove_dir_all(&folder);
    let rows = rows?;
    if args.json {
        out.json(&MountDocument { schema: 1, operations: args.operations, elevators: rows })?;
        return Ok(Exit::Success);
    }
    out.line("CPU time of scheduling an operation without contention, in ns:")?;
    let mut table = output::table(&["elevator", "read", "fsync", "lookup"], 1);
    for row in rows {
        let figures = [row.read_ns, row.sync_ns, row.look_ns].map(|ns| format!("{ns:.0}"));
        table.add_row(std::iter::once(row.name.to_owned()).chain(figures));
    }
    out.table(&mut table)?;
    Ok(Exit::Success)
}

/// The JSON document of `hoistway bench sim --json`.
#[derive(Serialize)]
struct SimDocument {
    /// Version of the document's form: 2.
    schema: u32,
    /// One entry per measurement.
    rows: Vec<sim::Measured>,
    /// With `--sweep`: the comparison of one core with all cores.
    sweep: Option<sim::Sweep>,
}

/// The default loads: a disk that takes one command at a time, a disk that queues 32, and flash
/// during garbage collection.
const DEFAULT_LOADS: [(&str, Pattern); 3] =
    [("sata-7200-2006", Pattern::Randread), ("cmr-8tb", Pattern::Randread), ("ssd-nvme-tlc", Pattern::Randwrite)];

fn simulator(args: &BenchSimArgs, out: &mut Out) -> Result<Exit> {
    if let Some(row) = &args.row {
        let load = serde_json::from_str(row).context("--row is for hoistway's own use")?;
        out.json(&sim::measure(&load)?)?;
        return Ok(Exit::Success);
    }
    let loads = loads(args);
    let mut document = SimDocument { schema: 2, rows: Vec::new(), sweep: None };
    match (args.sweep, loads.first()) {
        (Some(runs), Some(load)) => document.sweep = Some(sim::sweep(load, runs)?),
        _ => {
            let loads = if args.scaling { loads.iter().flat_map(scaled).collect() } else { loads };
            let bar = Bar::new(loads.len() as u64, "measuring");
            for load in &loads {
                document.rows.push(sim::measure_apart(load)?);
                bar.set(document.rows.len() as u64);
            }
            bar.clear();
        }
    }
    if args.json {
        out.json(&document)?
    } else {
        print_sim(&document, out)?
    }
    Ok(Exit::Success)
}

fn loads(args: &BenchSimArgs) -> Vec<sim::Load> {
    let load = |drive: &str, pattern: Pattern| sim::Load {
        drive: drive.to_owned(),
        pattern: args.pattern.unwrap_or(pattern),
        elevator: args.elevator.info().name.to_owned(),
        processes: args.processes,
        requests: args.requests,
    };
    match args.drives.as_slice() {
        [] => DEFAULT_LOADS.iter().map(|(drive, pattern)| load(drive, *pattern)).collect(),
        drives => drives.iter().map(|drive| load(drive, Pattern::Randread)).collect(),
    }
}

/// The load with growing numbers of requests, then with growing numbers of processes.
fn scaled(load: &sim::Load) -> Vec<sim::Load> {
    let sizes = (5..).map(|power| 10u64.pow(power)).take_while(|requests| *requests < load.requests);
    let by_requests = sizes.chain([load.requests]).map(|requests| sim::Load { requests, ..load.clone() });
    let by_processes = [8, 64, 512, 4096].map(|processes| sim::Load { processes, ..load.clone() });
    by_requests.chain(by_processes).collect()
}

fn print_sim(document: &SimDocument, out: &mut Out) -> Result<()> {
    if let Some(sweep) = &document.sweep {
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
    for row in &document.rows {
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

/// The JSON document of `hoistway bench trace --json`.
#[derive(Serialize)]
struct TraceDocument {
    /// Version of the document's form: 1.
    schema: u32,
    /// Number of events in the capture.
    events: u64,
    /// One entry per operation.
    rows: Vec<trace::Measured>,
}

fn traces(args: &BenchTraceArgs, out: &mut Out) -> Result<Exit> {
    let folder = tempfile::tempdir().context("a temporary folder for the capture")?;
    let events = trace::generate(folder.path(), args.requests)?;
    let document = TraceDocument { schema: 1, events, rows: trace::measure(folder.path(), events, args.runs)? };
    if args.json {
        out.json(&document)?;
        return Ok(Exit::Success);
    }
    out.line(format_args!("{events} events:"))?;
    let mut table = output::table(&["", "CPU s", "wall s", "events/s\nof CPU time"], 1);
    for row in &document.rows {
        let millions = format!("{:.2} M", row.events_per_s / 1e6);
        let seconds = [row.cpu_seconds, row.wall_seconds].map(|seconds| format!("{seconds:.2}"));
        table.add_row([vec![row.what.clone()], seconds.to_vec(), vec![millions]].concat());
    }
    out.table(&mut table)?;
    Ok(Exit::Success)
}
