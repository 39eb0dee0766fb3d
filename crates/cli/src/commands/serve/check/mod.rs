//! `hoistway serve --check JOB.fio`: compares the emulated drive with the simulator.
//!
//! The job file is rewritten with an extent of the drive for each process, in two forms: one for
//! the simulator, with direct I/O on the whole drive, and one for fio's nbd engine, with an export
//! and a connection for each process. Under each elevator fio runs against its own server, and the
//! simulator runs the same jobs. Throughput and shares must agree.
//!
//! The simulator does not model the turnaround of a client: the time from a reply to its next
//! request, for the socket and for waking up. The check measures the turnaround (fio's time per
//! operation less the server's) in a separate run and passes it to the simulator as the cost of a
//! completion, so that no run is compared with figures of its own. Each elevator has a separate
//! run, because a client that has slept for long wakes more slowly than a busy client.

mod real;
mod rewrite;

use std::io;
use std::path::Path;

use anyhow::{Context, Result, bail};
use hoistway_core::Kind;
use hoistway_drive::{Profile, SECTOR_BYTES, describe};
use hoistway_fio::JobFile;
use hoistway_sim::{CompareRequest, CpuCosts, HostConfig, Plugging, Run, Setting, group_switch};

use crate::cli::ServeArgs;
use crate::commands::compare;
use crate::drive_choice;
use crate::failure::{Exit, UsageError};
use crate::output::{self, Out};
use crate::setting;
use real::Measured;
use rewrite::{Rewritten, Times};

/// Greatest difference of throughput and shares, in percent.
const TOLERANCE_PERCENT: f64 = 5.0;
/// Default run time of a job without `runtime` under each elevator, in seconds.
const SECONDS: u32 = 20;
/// The default elevators: one of each kind.
const ELEVATORS: [&str; 4] = ["noop", "deadline", "cfq-v3", "bfq"];

/// The parameters of a check.
#[derive(Debug)]
struct Check {
    jobs: JobFile,
    profile: Profile,
    /// Value of `--drive`.
    drive: String,
    elevators: Vec<ElevatorSetup>,
    seconds: u32,
}

/// An elevator with its tunables.
#[derive(Clone, Debug)]
pub struct ElevatorSetup {
    /// The elevator.
    pub elevator: Kind,
    /// Tunables of the option `--set`.
    pub settings: Vec<Setting>,
}

impl ElevatorSetup {
    /// Time at the beginning that the measurement omits, in seconds. fio keeps a `startdelay` to
    /// about 0.1 s; a process that is alone on the drive meanwhile gets the whole throughput. bfq
    /// raises the weights of new readers for 3 to 25 s, depending on the peak rate that it
    /// estimates.
    fn ramp_seconds(&self) -> u32 {
        let is_disabled = self.settings.iter().any(|setting| setting.tunable == "low_latency" && setting.value == 0);
        if self.elevator == Kind::Bfq && !is_disabled { 26 } else { 2 }
    }
}

impl Check {
    fn new(job: &Path, args: &ServeArgs) -> Result<Check> {
        let drive = args.drive.clone().unwrap_or_else(|| drive_choice::DEFAULT.to_owned());
        let elevators: Vec<Kind> = match (args.check_elevators.as_slice(), args.elevator) {
            ([], None) => ELEVATORS.iter().filter_map(|name| Kind::from_name(name)).collect(),
            ([], Some(elevator)) => vec![elevator],
            (named, _) => named.to_vec(),
        };
        if let Some(unused) = args.settings.iter().find(|setting| !elevators.contains(&setting.elevator)) {
            let name = unused.elevator.info().name;
            return Err(UsageError(format!("--set {name}.{}: {name} is not checked", unused.tunable)).into());
        }
        let settings_of = |elevator| args.settings.iter().filter(move |setting| setting.elevator == elevator).cloned();
        let elevators =
            elevators.into_iter().map(|elevator| ElevatorSetup { elevator, settings: settings_of(elevator).collect() });
        let elevators = elevators.collect();
        Ok(Check {
            jobs: hoistway_fio::load(job)?,
            profile: drive_choice::load(&drive)?,
            drive,
            elevators,
            seconds: args.check_seconds.unwrap_or(SECONDS),
        })
    }
}

/// Predicted and measured figures under one elevator.
#[derive(Debug)]
struct CheckRow {
    elevator: &'static str,
    /// Time from a reply to the next request of a client.
    turnaround_ns: f64,
    predicted_bytes_per_s: f64,
    measured_bytes_per_s: f64,
    /// The process whose share differs most from the prediction, and the difference in percent.
    share_off: Option<(String, f64)>,
}

/// Checks each elevator and prints a table. Returns [`Exit::Different`] if a figure exceeds the
/// tolerance.
pub fn run(job: &Path, args: &ServeArgs, out: &mut Out) -> Result<Exit> {
    let check = &Check::new(job, args)?;
    let capacity_bytes = describe(&check.profile).capacity_sectors * SECTOR_BYTES;
    let rewritten_for = |setup: &ElevatorSetup| {
        let times = Times { ramp_seconds: setup.ramp_seconds(), seconds: check.seconds };
        rewrite::rewrite(&check.jobs, capacity_bytes, times)
    };
    let mut rows = Vec::new();
    for setup in &check.elevators {
        let times = Times { ramp_seconds: 0, seconds: check.seconds.min(SECONDS) };
        let short = rewrite::rewrite(&check.jobs, capacity_bytes, times)?;
        let turnaround_ns = real::turnaround_ns(&short, &check.drive, setup)?;
        let rewritten = rewritten_for(setup)?;
        let measured = real::measure(&rewritten, &check.drive, setup)?;
        let predicted = predict(check, &rewritten, setup, turnaround_ns)?;
        rows.push(CheckRow { turnaround_ns, ..compare_one(setup, &predicted, &measured)? });
    }
    print(check, &rows, out)
}

fn compare_one(setup: &ElevatorSetup, predicted: &Run, measured: &[Measured]) -> Result<CheckRow> {
    let elevator = setup.elevator;
    let sum = |figures: &mut dyn Iterator<Item = f64>| figures.sum::<f64>();
    let predicted_bytes_per_s = sum(&mut predicted.processes.iter().map(|process| process.bytes_per_s));
    let measured_bytes_per_s = sum(&mut measured.iter().map(|one| one.bytes_per_s));
    if predicted.processes.len() != measured.len() || predicted_bytes_per_s <= 0.0 || measured_bytes_per_s <= 0.0 {
        bail!("under {} the runs have nothing to compare", elevator.info().name);
    }
    let mut share_off: Option<(String, f64)> = None;
    for (process, one) in predicted.processes.iter().zip(measured) {
        let share = |bytes_per_s: f64, all: f64| bytes_per_s / all;
        let expected = share(process.bytes_per_s, predicted_bytes_per_s);
        let off = (share(one.bytes_per_s, measured_bytes_per_s) / expected - 1.0) * 100.0;
        if share_off.as_ref().is_none_or(|(_, most)| off.abs() > most.abs()) {
            share_off = Some((one.name.clone(), off));
        }
    }
    let elevator = elevator.info().name;
    Ok(CheckRow { elevator, turnaround_ns: 0.0, predicted_bytes_per_s, measured_bytes_per_s, share_off })
}

/// Simulates the jobs without page cache and plugs, with a processor for each client and with the
/// measured turnaround.
fn predict(check: &Check, rewritten: &Rewritten, setup: &ElevatorSetup, turnaround_ns: f64) -> Result<Run> {
    let includes = |path: &str, _: &str| Err(io::Error::new(io::ErrorKind::NotFound, path.to_owned()));
    let jobs = hoistway_fio::parse(&rewritten.simulated, "the simulated job", &|_| None, &includes)?;
    let costs = CpuCosts {
        system_call_ns: 0,
        copy_page_ns: 0,
        bio_ns: 0,
        fault_ns: 0,
        completion_ns: turnaround_ns.max(0.0) as u64,
    };
    let mut host = HostConfig {
        cpus: u32::try_from(rewritten.processes.len()).unwrap_or(u32::MAX).clamp(1, 4096),
        plugging: Plugging::None,
        costs,
        spindle_tolerance_ppm: 0,
        ..HostConfig::default()
    };
    host.queue.clock = hoistway_qos::CLOCK;
    host.queue.nr_requests = None;
    let request = CompareRequest {
        jobs,
        profile: check.profile.clone(),
        host,
        elevators: vec![setup.elevator],
        settings: group_settings(setup.elevator).into_iter().chain(setup.settings.iter().cloned()).collect(),
        seed: 1,
        record: false,
    };
    let (comparison, _) = compare::simulate(&request)?;
    comparison.runs.into_iter().next().context("the simulator ran nothing")
}

/// Settings that enable the groups of an elevator, as a server does.
fn group_settings(elevator: Kind) -> Vec<Setting> {
    let switch = group_switch(elevator).map(|tunable| format!("{}.{}=1", elevator.info().name, tunable.name));
    switch.and_then(|text| setting::parse(&text).ok()).into_iter().collect()
}

fn print(check: &Check, rows: &[CheckRow], out: &mut Out) -> Result<Exit> {
    let header = ["elevator", "turnaround us", "share farthest off", "predicted MB/s", "served MB/s", "off by", ""];
    let mut table = output::table(&header, 1);
    let mut all_hold = true;
    for row in rows {
        let off = (row.measured_bytes_per_s / row.predicted_bytes_per_s - 1.0) * 100.0;
        let share = row.share_off.as_ref();
        let holds = off.abs() <= TOLERANCE_PERCENT && share.is_none_or(|(_, off)| off.abs() <= TOLERANCE_PERCENT);
        all_hold &= holds;
        table.add_row([
            row.elevator.to_owned(),
            format!("{:.0}", row.turnaround_ns / 1e3),
            share.map_or_else(String::new, |(name, off)| format!("{name}: {off:+.1} %")),
            format!("{:.2}", row.predicted_bytes_per_s / 1e6),
            format!("{:.2}", row.measured_bytes_per_s / 1e6),
            format!("{off:+.1} %"),
            if holds { "agrees" } else { "differs" }.to_owned(),
        ]);
    }
    out.line(format_args!("{} in real time, and simulated: {} s under each elevator", check.drive, check.seconds))?;
    out.line(format_args!(
        "turnaround: from a reply to a client's next request, measured in a separate run under each elevator"
    ))?;
    out.line("")?;
    out.table(&mut table)?;
    out.line("")?;
    out.line(format_args!("Throughput and the share of every process must agree within {TOLERANCE_PERCENT} %."))?;
    Ok(if all_hold { Exit::Success } else { Exit::Different })
}
