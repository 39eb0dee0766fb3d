//! `hoistway serve --check JOB.fio`: the same requests on the emulated drive and in the simulator.
//!
//! The job file is written anew, one extent of the drive a process: once for the simulator, with
//! direct I/O on the whole drive, and once for fio's nbd engine, with an export a process and a
//! connection each. Under each elevator fio runs against a server of its own, and the simulator
//! runs the same; throughput and shares must agree.
//!
//! What the simulator cannot know is how long a client takes from a reply to its next request - the
//! way over the socket, waking up - so that is measured (fio's time an operation less the
//! server's), in a run of its own under the same elevator, and given to the simulator as the cost
//! of a completion: no run is compared with what was learnt from itself. Each elevator has a run of
//! its own for it, because a client that has slept for long wakes more slowly than one that is
//! served many requests in a row.

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

/// How far throughput and shares may differ, in percent.
const TOLERANCE_PERCENT: f64 = 5.0;
/// How long a job without a `runtime` of its own runs under each elevator, in seconds.
const SECONDS: u32 = 20;
/// The elevators that are checked unless others are named: one of each way of working.
const ELEVATORS: [&str; 4] = ["noop", "deadline", "cfq-v3", "bfq"];

/// What is checked.
#[derive(Debug)]
struct Check {
    jobs: JobFile,
    profile: Profile,
    /// What `--drive` said.
    drive: String,
    elevators: Vec<Under>,
    seconds: u32,
}

/// An elevator and what was set of it.
#[derive(Clone, Debug)]
pub struct Under {
    /// The elevator.
    pub elevator: Kind,
    /// Its tunables, as `--set` has them.
    pub settings: Vec<Setting>,
}

impl Under {
    /// What is left out of the measurement at the beginning, in seconds: fio keeps a `startdelay`
    /// to a tenth of a second or so, and who is alone on the drive meanwhile gets as much as all
    /// together do later. bfq besides takes new readers for interactive ones and raises their
    /// weights, for 3 to 25 s: how long hangs on the peak rate that it guesses, and so on very
    /// little.
    fn ramp_seconds(&self) -> u32 {
        let is_plain = self.settings.iter().any(|setting| setting.tunable == "low_latency" && setting.value == 0);
        if self.elevator == Kind::Bfq && !is_plain { 26 } else { 2 }
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
            elevators.into_iter().map(|elevator| Under { elevator, settings: settings_of(elevator).collect() });
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

/// One elevator: what was predicted and what came out.
#[derive(Debug)]
struct Outcome {
    elevator: &'static str,
    /// From a reply to the next request of a client.
    turnaround_ns: f64,
    predicted_bytes_per_s: f64,
    measured_bytes_per_s: f64,
    /// The process whose share is farthest from the prediction, and by how many percent of it.
    share_off: Option<(String, f64)>,
}

/// Checks under each elevator and prints a table. [`Exit::Different`] when anything is out of the
/// tolerance.
pub fn run(job: &Path, args: &ServeArgs, out: &mut Out) -> Result<Exit> {
    let check = &Check::new(job, args)?;
    let capacity_bytes = describe(&check.profile).capacity_sectors * SECTOR_BYTES;
    let rewritten_for = |under: &Under| {
        let times = Times { ramp_seconds: under.ramp_seconds(), seconds: check.seconds };
        rewrite::rewrite(&check.jobs, capacity_bytes, times)
    };
    let mut outcomes = Vec::new();
    for under in &check.elevators {
        let times = Times { ramp_seconds: 0, seconds: check.seconds.min(SECONDS) };
        let short = rewrite::rewrite(&check.jobs, capacity_bytes, times)?;
        let turnaround_ns = real::turnaround_ns(&short, &check.drive, under)?;
        let rewritten = rewritten_for(under)?;
        let measured = real::measure(&rewritten, &check.drive, under)?;
        let predicted = predict(check, &rewritten, under, turnaround_ns)?;
        outcomes.push(Outcome { turnaround_ns, ..compare_one(under, &predicted, &measured)? });
    }
    print(check, &outcomes, out)
}

fn compare_one(under: &Under, predicted: &Run, measured: &[Measured]) -> Result<Outcome> {
    let elevator = under.elevator;
    let sum = |figures: &mut dyn Iterator<Item = f64>| figures.sum::<f64>();
    let predicted_bytes_per_s = sum(&mut predicted.processes.iter().map(|process| process.bytes_per_s));
    let measured_bytes_per_s = sum(&mut measured.iter().map(|one| one.bytes_per_s));
    if predicted.processes.len() != measured.len() || predicted_bytes_per_s <= 0.0 || measured_bytes_per_s <= 0.0 {
        bail!("under {} the runs have nothing to compare", elevator.info().name);
    }
    let mut share_off: Option<(String, f64)> = None;
    for (process, one) in predicted.processes.iter().zip(measured) {
        let share = |bytes_per_s: f64, all: f64| bytes_per_s / all;
        let wanted = share(process.bytes_per_s, predicted_bytes_per_s);
        let off = (share(one.bytes_per_s, measured_bytes_per_s) / wanted - 1.0) * 100.0;
        if share_off.as_ref().is_none_or(|(_, most)| off.abs() > most.abs()) {
            share_off = Some((one.name.clone(), off));
        }
    }
    let elevator = elevator.info().name;
    Ok(Outcome { elevator, turnaround_ns: 0.0, predicted_bytes_per_s, measured_bytes_per_s, share_off })
}

/// The simulator's answer: no page cache, no plugs, processors enough, and a client that takes so
/// long between a reply and its next request.
fn predict(check: &Check, rewritten: &Rewritten, under: &Under, turnaround_ns: f64) -> Result<Run> {
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
        elevators: vec![under.elevator],
        settings: groups_on(under.elevator).into_iter().chain(under.settings.iter().cloned()).collect(),
        seed: 1,
        record: false,
    };
    let (comparison, _) = compare::simulate(&request)?;
    comparison.runs.into_iter().next().context("the simulator ran nothing")
}

/// Elevators that have groups as an option divide by them on a server.
fn groups_on(elevator: Kind) -> Vec<Setting> {
    let switch = group_switch(elevator).map(|tunable| format!("{}.{}=1", elevator.info().name, tunable.name));
    switch.and_then(|text| setting::parse(&text).ok()).into_iter().collect()
}

fn print(check: &Check, outcomes: &[Outcome], out: &mut Out) -> Result<Exit> {
    let header = ["elevator", "turnaround us", "share farthest off", "predicted MB/s", "served MB/s", "off by", ""];
    let mut table = output::table(&header, 1);
    let mut all_hold = true;
    for outcome in outcomes {
        let off = (outcome.measured_bytes_per_s / outcome.predicted_bytes_per_s - 1.0) * 100.0;
        let share = outcome.share_off.as_ref();
        let holds = off.abs() <= TOLERANCE_PERCENT && share.is_none_or(|(_, off)| off.abs() <= TOLERANCE_PERCENT);
        all_hold &= holds;
        table.add_row([
            outcome.elevator.to_owned(),
            format!("{:.0}", outcome.turnaround_ns / 1e3),
            share.map_or_else(String::new, |(name, off)| format!("{name}: {off:+.1} %")),
            format!("{:.2}", outcome.predicted_bytes_per_s / 1e6),
            format!("{:.2}", outcome.measured_bytes_per_s / 1e6),
            format!("{off:+.1} %"),
            if holds { "agrees" } else { "differs" }.to_owned(),
        ]);
    }
    out.line(format_args!("{} in real time, and simulated: {} s under each elevator", check.drive, check.seconds))?;
    out.line(format_args!(
        "turnaround: from a reply to a client's next request, measured in a run of its own under each elevator"
    ))?;
    out.line("")?;
    out.table(&mut table)?;
    out.line("")?;
    out.line(format_args!("Throughput and every process's share have to agree within {TOLERANCE_PERCENT} %."))?;
    Ok(if all_hold { Exit::Success } else { Exit::Different })
}
