//! `hoistway serve --check JOB.fio`: compares the emulated drive with the simulator.

use std::path::Path;

use anyhow::{Error, Result};
use hoistway_advise::device_facts::device_defaults;
use hoistway_bench::BenchError;
use hoistway_bench::emulation::{
    self, DEFAULT_ELEVATORS, DEFAULT_SECONDS, ElevatorSetup, EmulationCheck, EmulationReport,
};
use hoistway_compare::named_elevators;
use hoistway_drive::Profile;
use hoistway_machine::Root;

use crate::cli::ServeArgs;
use crate::commands::compare;
use crate::failure::{Exit, UsageError};
use crate::output::{self, Out};
use crate::program;

/// Checks each elevator and prints a table. Returns [`Exit::Different`] if a figure exceeds the
/// tolerance.
pub fn run(job: &Path, args: &ServeArgs, out: &mut Out) -> Result<Exit> {
    let check = check_of(job, args)?;
    let report = emulation::check(&check, |request| Ok(compare::simulate(request)?.0)).map_err(usage_error)?;
    print(&report, out)?;
    Ok(if report.agrees() { Exit::Success } else { Exit::Different })
}

/// Jobs that a server cannot run are errors of the command line.
fn usage_error(error: Error) -> Error {
    match error.downcast_ref() {
        Some(BenchError::UnsupportedJob(text)) => UsageError(text.clone()).into(),
        _ => error,
    }
}

fn check_of(job: &Path, args: &ServeArgs) -> Result<EmulationCheck> {
    let jobs = hoistway_fio::load(job)?;
    let default_drive = || device_defaults(&Root::machine(), &jobs).drive.to_owned();
    let drive = args.drive.clone().unwrap_or_else(default_drive);
    let default_elevators = || args.elevator.map_or_else(|| DEFAULT_ELEVATORS.to_vec(), |elevator| vec![elevator]);
    let elevators = named_elevators(&args.check_elevators, default_elevators)
        .map_err(|error| UsageError(format!("--check-elevators {error}")))?;
    if let Some(unused) = args.settings.iter().find(|setting| !elevators.contains(&setting.elevator)) {
        let name = unused.elevator.info().name;
        return Err(UsageError(format!("--set {name}.{}: {name} is not checked", unused.tunable)).into());
    }
    let settings_of = |elevator| args.settings.iter().filter(move |setting| setting.elevator == elevator).cloned();
    let setup = |elevator| ElevatorSetup { elevator, settings: settings_of(elevator).collect() };
    Ok(EmulationCheck {
        jobs,
        profile: Profile::choose(&drive)?,
        drive,
        elevators: elevators.into_iter().map(setup).collect(),
        seconds: args.check_seconds.unwrap_or(DEFAULT_SECONDS),
        program: program::file()?,
    })
}

fn print(report: &EmulationReport, out: &mut Out) -> Result<()> {
    let header = ["elevator", "turnarounds us", "share farthest off", "predicted MB/s", "served MB/s", "off by", ""];
    let mut table = output::table(&header, 1);
    for row in &report.elevators {
        let share = row.share.as_ref().map(|share| format!("{}: {:+.1} %", share.process, share.percent));
        table.add_row([
            row.elevator.to_owned(),
            range_us(&row.turnarounds_ns),
            share.unwrap_or_default(),
            format!("{:.2}", row.predicted_bytes_per_s / 1e6),
            format!("{:.2}", row.measured_bytes_per_s / 1e6),
            format!("{:+.1} %", row.throughput_percent()),
            if row.agrees(report.tolerance_percent) { "agrees" } else { "differs" }.to_owned(),
        ]);
    }
    out.line(format_args!("{} in real time, and simulated: {} s under each elevator", report.drive, report.seconds))?;
    out.line("turnarounds: from a reply to a client's next request, measured in a separate run under each elevator;")?;
    out.line("the least and the greatest mean of a process")?;
    out.line("")?;
    out.table(&mut table)?;
    out.line("")?;
    let tolerance = report.tolerance_percent;
    let reason = if report.syncs { "because a job syncs" } else { "because no job syncs" };
    out.line(format_args!("Throughput and the share of every process must agree within {tolerance} %, {reason}."))?;
    Ok(())
}

/// The smallest and the largest of times, in us.
fn range_us(times_ns: &[f64]) -> String {
    let us = |time_ns: Option<f64>| format!("{:.0}", time_ns.unwrap_or(0.0) / 1e3);
    let (least, greatest) =
        (us(times_ns.iter().copied().reduce(f64::min)), us(times_ns.iter().copied().reduce(f64::max)));
    if least == greatest { least } else { format!("{least}-{greatest}") }
}
