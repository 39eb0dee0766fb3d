//! `cargo xtask kernel compare`: a job of fio in a guest whose disk is an emulated drive, beside
//! the simulation of the same job on the same drive.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use hoistway_guest::plan::{Campaign, JobPart, JobSetup};
use hoistway_guest::transfer;
use hoistway_vm::architecture;
use hoistway_vm::boot::{Backing, Disk};
use hoistway_vm::fetch::Fetched;
use hoistway_workspace::{cargo, parts, programs, repository};
use serde_json::Value;

use super::plans::{self, Choice};
use super::test::Session;
use super::{Selection, build};
use hoistway_workspace::server::Server;

/// The page with the table.
const PAGE: &str = "docs/kernel.md";
/// The serial number of the disk.
const SERIAL: &str = "emulated";

/// Options of `cargo xtask kernel compare`.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    selection: Selection,
    /// The job file, by its path from the root of the repository
    #[arg(long, value_name = "FILE", default_value = "examples/kernel-readers.fio")]
    job: String,
    /// The drive
    #[arg(long, value_name = "NAME", default_value = "sata-7200-2006")]
    drive: String,
    /// The elevators
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "none,mq-deadline,bfq,cfq,anticipatory,fiops,cfq-v3"
    )]
    elevators: Vec<String>,
    /// Write the table to docs/kernel.md; for one kernel
    #[arg(long)]
    write: bool,
}

/// The rates of the processes of a job in bytes a second.
#[derive(Clone, Debug, Default, PartialEq)]
struct Rates {
    all: f64,
    slowest: f64,
    fastest: f64,
}

/// Runs the job in guests and in the simulator.
pub fn run(options: &Options) -> Result<()> {
    super::test::require_programs(architecture::BUILD, true, true)?;
    let job = fs::read_to_string(repository::root().join(&options.job)).with_context(|| options.job.clone())?;
    let hoistway = cargo::hoistway()?;
    let simulated = simulate(&hoistway, options)?;
    for fetched in super::present(&options.selection.kernels()?, &super::folder()?)? {
        println!("{}: {}", fetched.kernel.name, fetched.release);
        let real = in_guest(&hoistway, options, &job, &fetched)?;
        let table = table(&options.elevators, &real, &simulated);
        println!("{table}");
        if options.write {
            let text = format!("Linux {}, {} on `{}`:\n\n{table}", fetched.release, options.job, options.drive);
            parts::put(PAGE, &[("simulator", text)])?;
        }
    }
    Ok(())
}

/// Simulates the job under all elevators on Linux 6.1.
fn simulate(hoistway: &Path, options: &Options) -> Result<BTreeMap<String, Rates>> {
    let mut command = Command::new(hoistway);
    command.args(["compare", &options.job, "--drive", &options.drive, "--kernel", "6.1", "--json", "--elevators"]);
    command.arg(options.elevators.join(",")).env("DISK", "/dev/emulated").current_dir(repository::root());
    let document: Value = serde_json::from_str(&programs::output(&mut command)?).context("hoistway compare --json")?;
    let listed = document["elevators"].as_array().context("no elevators in the answer of hoistway compare")?;
    let rates = |one: &Value| -> Option<(String, Rates)> {
        let processes = &one["process_bytes_per_s"];
        let rates = Rates {
            all: one["bytes_per_s"].as_f64()?,
            slowest: processes["min"].as_f64()?,
            fastest: processes["max"].as_f64()?,
        };
        Some((one["name"].as_str()?.to_owned(), rates))
    };
    listed.iter().map(|one| rates(one).context("an elevator without rates")).collect()
}

/// Runs the job under all elevators in one boot.
fn in_guest(hoistway: &Path, options: &Options, job: &str, fetched: &Fetched) -> Result<BTreeMap<String, Rates>> {
    let session = Session::new("compare", 1024, "")?.with_program("fio", "usr/bin/fio");
    let built = build::build(fetched, session.folder())?;
    let (server, socket) = Server::start_emulated(hoistway, Path::new(&options.drive), None, session.folder())?;
    let session =
        session.with_disks(vec![Disk { serial: SERIAL, backing: Backing::Nbd { socket, write_cache: true } }]);
    let setup = |elevator: &String| JobSetup {
        serial: SERIAL.to_owned(),
        // One request at a time: the order in which they reach the disk is that of the elevator.
        depth: 1,
        elevator: elevator.clone(),
        on_files: false,
        parts: vec![JobPart { job: job.to_owned(), results: format!("{elevator}.json"), ..JobPart::default() }],
        trees: Vec::new(),
    };
    let campaigns = options.elevators.iter().map(|elevator| (elevator.clone(), Campaign::Job(setup(elevator))));
    let choice = Choice { subject: Some(plans::registered()), elevators: Vec::new(), full: true, seed: 1 };
    let boot = session.boot(fetched, Some(&built.file), plans::of_campaigns(&choice, 600, campaigns), true)?;
    server.stop()?;
    if !boot.failures.is_empty() {
        bail!("{}\nthe logs are in {}", boot.failures.join("\n"), boot.directory.display());
    }
    let mut rates = BTreeMap::new();
    transfer::receive(&boot.transfer, |name, bytes| {
        if let Some(elevator) = name.strip_suffix(".json") {
            let document: Value = serde_json::from_slice(bytes)?;
            rates.insert(elevator.to_owned(), rates_of_fio(&document));
        }
        Ok(())
    })?;
    Ok(rates)
}

/// The rates in the results of fio: of all processes over the time of the last one to end.
fn rates_of_fio(document: &Value) -> Rates {
    let jobs = document["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (mut bytes, mut longest_ms) = (0.0, 0.0f64);
    let mut rates = Rates { slowest: f64::INFINITY, ..Rates::default() };
    for job in jobs {
        let figure = |key: &str| job["read"][key].as_f64().unwrap_or(0.0) + job["write"][key].as_f64().unwrap_or(0.0);
        bytes += figure("io_bytes");
        longest_ms = longest_ms.max(figure("runtime"));
        rates.slowest = rates.slowest.min(figure("bw_bytes"));
        rates.fastest = rates.fastest.max(figure("bw_bytes"));
    }
    rates.all = bytes * 1e3 / longest_ms.max(1.0);
    rates
}

fn table(elevators: &[String], real: &BTreeMap<String, Rates>, simulated: &BTreeMap<String, Rates>) -> String {
    let mut lines = vec![
        "| elevator | in the guest: all | slowest to fastest | simulated: all | slowest to fastest | guest / simulated |"
            .to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for elevator in elevators {
        let (Some(real), Some(simulated)) = (real.get(elevator), simulated.get(elevator)) else { continue };
        let cells = [real, simulated].map(|rates| {
            let [all, slowest, fastest] = [rates.all, rates.slowest, rates.fastest].map(|rate| rate / 1e6);
            format!("{all:.1} MB/s | {slowest:.2} to {fastest:.2}")
        });
        let ratio = real.all / simulated.all.max(1.0);
        lines.push(format!("| `{elevator}` | {} | {ratio:.2} |", cells.join(" | ")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_fio_are_those_of_all_processes() {
        let text = r#"{"jobs": [{"read": {"io_bytes": 3000, "runtime": 1000, "bw_bytes": 3000}},
                                {"read": {"io_bytes": 3000, "runtime": 2000, "bw_bytes": 1500}}]}"#;
        let document = serde_json::from_str(text).expect("it is JSON");
        assert_eq!(rates_of_fio(&document), Rates { all: 3000.0, slowest: 1500.0, fastest: 3000.0 });
    }
}
