//! `cargo xtask compare`: the cost of two builds of the program, measured side by side in one run.
//!
//! The two programs alternate within each round, so that a disturbance of the machine affects both.
//! The figure of a program is the least over the rounds: a disturbance only adds to a cost.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use hoistway_workspace::{cargo, programs};
use serde_json::Value;

use crate::bench_mount::ways::{Reached, Way};
use crate::bench_nbd::servers::{Running, Server};
use crate::bench_nbd::{self, load::Load};
use crate::goals::{self, Goal};

/// The largest ratio of new cost to old cost that is no increase.
const RATIO_MAX: f64 = 1.03;
/// The number of simulated requests of a run of `hoistway bench sim`.
const SIMULATED_REQUESTS: &str = "300000";
/// The elevators that are measured in the server and in the mount.
const ELEVATORS: [&str; 4] = ["noop", "mq-deadline", "kyber", "bfq"];
/// The file that is read through the mount, in bytes.
const MOUNTED_FILE_BYTES: usize = 256 << 20;
/// The bytes of a read through the mount.
const READ_BYTES: usize = 4096;

/// Options of `cargo xtask compare`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The earlier program
    #[arg(long, value_name = "PROGRAM")]
    old: PathBuf,
    /// The later program, instead of the one that is built with the profile `dist`
    #[arg(long, value_name = "PROGRAM")]
    new: Option<PathBuf>,
    /// Rounds; figures are the least over them
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds of a run that measures the server
    #[arg(long, default_value_t = 1.5, value_name = "S")]
    seconds: f64,
    /// Measure only this part; may be repeated
    #[arg(long, value_name = "PART")]
    only: Vec<Part>,
}

/// What is measured.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// CPU time of each elevator per request
    Elevators,
    /// CPU time of the simulator per request
    Sim,
    /// CPU time of scheduling per operation of a mount
    Scheduling,
    /// CPU time of the mount's process per read
    Mount,
    /// CPU time of the server's process per request
    Server,
}

impl Part {
    const ALL: [Part; 5] = [Part::Elevators, Part::Sim, Part::Scheduling, Part::Mount, Part::Server];

    /// Measures this part of one program once. Returns costs in ns by the name of their row.
    fn measure(self, program: &Path, options: &Options) -> Result<Costs> {
        match self {
            Part::Elevators => elevators(program),
            Part::Sim => simulator(program),
            Part::Scheduling => scheduling(program),
            Part::Mount => mount(program),
            Part::Server => servers_cost(program, options.seconds),
        }
    }
}

/// Costs in ns per operation, by the name of their row.
type Costs = BTreeMap<String, f64>;

/// Measures both programs, prints a table, and fails if the later one costs more.
pub fn run(options: &Options) -> Result<()> {
    let new = match &options.new {
        Some(program) => program.clone(),
        None => cargo::packaged()?,
    };
    let mut found = Vec::new();
    println!("| cost, ns | old | new | new : old |\n|---|---|---|---|");
    for part in Part::ALL.into_iter().filter(|part| options.only.is_empty() || options.only.contains(part)) {
        let (mut least_old, mut least_new) = (Costs::new(), Costs::new());
        for round in 0..options.rounds {
            eprintln!("{part:?}: round {} of {}", round + 1, options.rounds);
            let mut pair = [(&options.old, &mut least_old), (&new, &mut least_new)];
            if round % 2 == 1 {
                pair.reverse();
            }
            for (program, least) in pair {
                keep_least(least, part.measure(program, options)?);
            }
        }
        found.extend(rows(&least_old, &least_new));
    }
    goals::judge(&found)
}

/// Lowers the costs of `least` to those of a further run.
fn keep_least(least: &mut Costs, costs: Costs) {
    for (row, cost) in costs {
        least.entry(row).and_modify(|known| *known = known.min(cost)).or_insert(cost);
    }
}

/// Prints a row for each cost that both programs have, and returns the goal of each.
fn rows(old: &Costs, new: &Costs) -> Vec<Goal> {
    let mut found = Vec::new();
    for (row, new_ns) in new {
        let Some(old_ns) = old.get(row) else { continue };
        let ratio = new_ns / old_ns;
        println!("| {row} | {old_ns:.0} | {new_ns:.0} | {ratio:.3} |");
        let figures = format!("{old_ns:.0} -> {new_ns:.0} ns, {ratio:.3}");
        found.push(Goal::found(&format!("{row}: at most {RATIO_MAX} times the cost"), figures, ratio <= RATIO_MAX));
    }
    found
}

/// Runs `hoistway bench` with arguments and returns its JSON.
fn bench(program: &Path, arguments: &[&str]) -> Result<Value> {
    let mut command = Command::new(program);
    command.arg("bench").args(arguments).arg("--json");
    serde_json::from_str(&programs::output(&mut command)?).with_context(|| format!("the output of {command:?}"))
}

/// Reads the rows of a table of JSON: the name of a row from `names`, its cost from `cost`.
fn read_rows(document: &Value, table: &str, names: &[&str], cost: &str) -> Result<Costs> {
    let rows = document[table].as_array().with_context(|| format!("no table {table}"))?;
    let read = |row: &Value| {
        let name = names.iter().map(|name| row[*name].to_string().replace('"', "")).collect::<Vec<_>>().join(" ");
        Ok((name, row[cost].as_f64().with_context(|| format!("no {cost}"))?))
    };
    rows.iter().map(read).collect()
}

/// Adds what is measured to the names of rows.
fn labelled(label: &str, costs: Costs) -> Costs {
    costs.into_iter().map(|(row, cost)| (format!("{label}: {row}"), cost)).collect()
}

fn elevators(program: &Path) -> Result<Costs> {
    let document = bench(program, &["elevators", "--processes", "8", "--requests", "300000", "--runs", "1"])?;
    Ok(labelled("elevator", read_rows(&document, "elevators", &["name"], "ns_per_request")?))
}

fn simulator(program: &Path) -> Result<Costs> {
    let document = bench(program, &["sim", "--requests", SIMULATED_REQUESTS])?;
    Ok(labelled("simulator", read_rows(&document, "rows", &["drive", "pattern"], "ns_per_request")?))
}

fn scheduling(program: &Path) -> Result<Costs> {
    let document = bench(program, &["mount", "--elevators", &ELEVATORS.join(",")])?;
    let mut costs = Costs::new();
    for (label, key) in [("read", "read_ns"), ("fsync", "sync_ns"), ("lookup", "look_ns")] {
        costs.extend(labelled(
            &format!("scheduling a {label} of a mount"),
            read_rows(&document, "elevators", &["name"], key)?,
        ));
    }
    Ok(costs)
}

/// Reads a file in memory through a mount, at offsets spread over the file.
fn mount(program: &Path) -> Result<Costs> {
    let directory = PathBuf::from(format!("/dev/shm/hoistway-compare-{}", std::process::id()));
    let source = directory.join("source");
    fs::create_dir_all(&source).with_context(|| format!("cannot create {}", source.display()))?;
    fs::write(source.join("data"), vec![7; MOUNTED_FILE_BYTES])?;
    let mut costs = Costs::new();
    for elevator in ELEVATORS {
        let reached = Reached::new(Way::Under(elevator), program, &source, &directory.join("seen"))?;
        let before = reached.cpu()?;
        let reads = read_spread(&reached.at.join("data"))?;
        let used_s = reached.cpu()?.since(before);
        costs.insert(format!("mount: random 4 KiB read, {elevator}"), used_s * 1e9 / reads as f64);
    }
    fs::remove_dir_all(&directory)?;
    Ok(costs)
}

/// Reads each block of a file once, in an order that defeats read-ahead. Returns the number of
/// reads.
fn read_spread(path: &Path) -> Result<usize> {
    use std::os::unix::fs::FileExt as _;
    let file = fs::File::open(path)?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random)?;
    let blocks = MOUNTED_FILE_BYTES / READ_BYTES;
    let mut buffer = [0; READ_BYTES];
    for index in 0..blocks {
        // The factor is odd and the number of blocks a power of two: each block is read once.
        let block = index * 40_503 % blocks;
        file.read_exact_at(&mut buffer, (block * READ_BYTES) as u64)?;
    }
    ensure!(buffer[0] == 7, "the mount returned other bytes than the file holds");
    Ok(blocks)
}

fn servers_cost(program: &Path, seconds: f64) -> Result<Costs> {
    let bench = bench_nbd::prepare(program.to_owned())?;
    let scheduled = ELEVATORS.map(|elevator| Server::HoistwayMemory(Some(elevator)));
    let mut costs = Costs::new();
    for kind in scheduled.into_iter().chain([Server::HoistwayNull, Server::HoistwayFile]) {
        let running = Running::start(kind, &bench)?;
        let before = running.cpu()?;
        let outcome = Load::random_reads(16, seconds).run(&bench.uri(kind.export()))?;
        let used_s = running.cpu()?.since(before);
        running.stop();
        costs.insert(
            format!("server: {}, random 4 KiB read, QD16", kind.name()),
            used_s * 1e9 / outcome.operations.max(1.0),
        );
    }
    fs::remove_dir_all(&bench.directory)?;
    Ok(costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(rows: &[(&str, f64)]) -> Costs {
        rows.iter().map(|(row, cost)| ((*row).to_owned(), *cost)).collect()
    }

    #[test]
    fn a_cost_that_grows_by_more_than_the_tolerance_misses_its_goal() {
        let found = rows(&costs(&[("a", 100.0), ("b", 100.0)]), &costs(&[("a", 102.0), ("b", 104.0), ("c", 1.0)]));
        assert_eq!(found.iter().map(|goal| goal.holds).collect::<Vec<_>>(), [Some(true), Some(false)]);
    }

    #[test]
    fn the_least_of_the_rounds_is_kept() {
        let mut least = costs(&[("a", 3.0)]);
        keep_least(&mut least, costs(&[("a", 2.0), ("b", 5.0)]));
        keep_least(&mut least, costs(&[("a", 4.0)]));
        assert_eq!(least, costs(&[("a", 2.0), ("b", 5.0)]));
    }

    #[test]
    fn rows_are_read_by_name_and_cost() {
        let document = serde_json::json!({"rows": [{"drive": "d", "processes": 8, "ns": 2.5}]});
        assert_eq!(read_rows(&document, "rows", &["drive", "processes"], "ns").ok(), Some(costs(&[("d 8", 2.5)])));
        assert!(read_rows(&document, "rows", &["drive"], "absent").is_err());
    }
}
