//! Comparison of the emulated drive with the simulator, as `hoistway serve --check` runs it.
//!
//! The job file is rewritten with an extent of the drive for each process, in two forms: one for
//! the simulator, with direct I/O on the whole drive, and one for fio's nbd engine, with an export
//! and a connection for each process. Under each elevator fio runs against its own server, and the
//! simulator runs the same jobs. Throughput and shares must agree.
//!
//! The simulator does not model the turnaround of a client: the time from a reply to its next
//! request, for the socket and for waking up. The check measures the turnaround (fio's time per
//! operation less the server's) of each process in a separate run and passes it to the simulator.
//! So no run is compared with figures of its own. With several requests in flight, turnarounds pass
//! side by side. Each elevator has a separate run, because a client that has slept for long wakes
//! more slowly than a busy client.

mod real;
mod rewrite;

use std::io;
use std::path::PathBuf;

use hoistway_core::Kind;
use hoistway_drive::{Profile, SECTOR_BYTES, describe};
use hoistway_fio::JobFile;
use hoistway_sim::{CompareRequest, Comparison, CpuCosts, Flushes, HostConfig, Plugging, Run, Setting, group_switch};
use serde::Serialize;

use crate::BenchError;
use real::MeasuredProcess;
use rewrite::{Rewritten, Times};

/// Greatest difference of throughput and shares of jobs without syncs, in percent.
pub const TOLERANCE_PERCENT: f64 = 5.0;
/// Greatest difference of throughput and shares if a job syncs, in percent. Processes share
/// flushes, and how often depends on the turnaround of each request.
pub const SYNC_TOLERANCE_PERCENT: f64 = 20.0;
/// Default run time of a job without `runtime` under each elevator, in seconds.
pub const DEFAULT_SECONDS: u32 = 20;
/// The default elevators: one of each kind.
pub const DEFAULT_ELEVATORS: [Kind; 4] = [Kind::Noop, Kind::Deadline, Kind::CfqV3, Kind::Bfq];

/// Spread of the turnaround: the standard deviation of its logarithm in thousandths. It was 310 to
/// 420 in a recording of the server (`--record`) while fio ran a log and two random readers.
///
/// Without a spread, processes that sync every write begin their writes at the same time, and share
/// each flush.
const TURNAROUND_SIGMA_MILLI: u32 = 350;

/// The parameters of a check.
#[derive(Debug)]
pub struct EmulationCheck {
    /// The job file.
    pub jobs: JobFile,
    /// The profile of the drive.
    pub profile: Profile,
    /// The drive as the server loads it: a name or the path of a profile.
    pub drive: String,
    /// Elevators to check.
    pub elevators: Vec<ElevatorSetup>,
    /// Run time of a job without `runtime`, in seconds.
    pub seconds: u32,
    /// The program `hoistway`, which runs the server.
    pub program: PathBuf,
}

/// An elevator with its tunables.
#[derive(Clone, Debug)]
pub struct ElevatorSetup {
    /// The elevator.
    pub elevator: Kind,
    /// Values of tunables that differ from the defaults.
    pub settings: Vec<Setting>,
}

/// Result of a check.
#[derive(Clone, Debug, Serialize)]
pub struct EmulationReport {
    /// The drive.
    pub drive: String,
    /// Run time of a job without `runtime`, in seconds.
    pub seconds: u32,
    /// Greatest difference of throughput and shares, in percent.
    pub tolerance_percent: f64,
    /// True if a job syncs.
    pub syncs: bool,
    /// One entry per elevator.
    pub elevators: Vec<ElevatorAgreement>,
}

/// Predicted and measured figures under one elevator.
#[derive(Clone, Debug, Serialize)]
pub struct ElevatorAgreement {
    /// Name of the elevator.
    pub elevator: &'static str,
    /// Mean time from a reply to the next request of each process, in ns.
    pub turnarounds_ns: Vec<f64>,
    /// Throughput of all processes in the simulator.
    pub predicted_bytes_per_s: f64,
    /// Throughput of all processes on the emulated drive.
    pub measured_bytes_per_s: f64,
    /// The share that differs most from the prediction.
    pub share: Option<ShareDifference>,
}

/// Difference of the share of a process from the prediction.
#[derive(Clone, Debug, Serialize)]
pub struct ShareDifference {
    /// Name of the process.
    pub process: String,
    /// Measured over predicted share less 1, in percent.
    pub percent: f64,
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

impl EmulationReport {
    /// Returns true if all figures under all elevators agree within the tolerance.
    pub fn agrees(&self) -> bool {
        self.elevators.iter().all(|elevator| elevator.agrees(self.tolerance_percent))
    }
}

impl ElevatorAgreement {
    /// Measured over predicted throughput less 1, in percent.
    pub fn throughput_percent(&self) -> f64 {
        (self.measured_bytes_per_s / self.predicted_bytes_per_s - 1.0) * 100.0
    }

    /// Returns true if throughput and shares agree within the tolerance, in percent.
    pub fn agrees(&self, tolerance_percent: f64) -> bool {
        let holds = |percent: f64| percent.abs() <= tolerance_percent;
        holds(self.throughput_percent()) && self.share.as_ref().is_none_or(|share| holds(share.percent))
    }
}

/// Runs the jobs on the emulated drive with fio, and with `simulate` in the simulator.
///
/// # Errors
/// [`BenchError::UnsupportedJob`] for a job that a server cannot run, errors of fio and of the
/// server, and those of `simulate`.
pub fn check<E: From<BenchError>>(
    check: &EmulationCheck,
    simulate: impl Fn(&CompareRequest) -> Result<Comparison, E>,
) -> Result<EmulationReport, E> {
    let capacity_bytes = describe(&check.profile).capacity_sectors * SECTOR_BYTES;
    let mut elevators = Vec::new();
    for setup in &check.elevators {
        let times = Times { ramp_seconds: 0, seconds: check.seconds.min(DEFAULT_SECONDS) };
        let short = rewrite::rewrite(&check.jobs, capacity_bytes, times)?;
        let turnarounds_ns = real::turnarounds_ns(&short, check, setup)?;
        let times = Times { ramp_seconds: setup.ramp_seconds(), seconds: check.seconds };
        let rewritten = rewrite::rewrite(&check.jobs, capacity_bytes, times)?;
        let measured = real::measure(&rewritten, check, setup)?;
        let comparison = simulate(&request(check, &rewritten, setup, &turnarounds_ns)?)?;
        let empty = || BenchError::Incomplete("the simulator ran nothing".to_owned());
        let predicted = comparison.runs.into_iter().next().ok_or_else(empty)?;
        elevators.push(agreement(setup.elevator, turnarounds_ns, &predicted, &measured)?);
    }
    Ok(report(check, elevators))
}

fn report(check: &EmulationCheck, elevators: Vec<ElevatorAgreement>) -> EmulationReport {
    let syncs = check.jobs.jobs.iter().any(rewrite::syncs);
    let tolerance_percent = if syncs { SYNC_TOLERANCE_PERCENT } else { TOLERANCE_PERCENT };
    EmulationReport { drive: check.drive.clone(), seconds: check.seconds, tolerance_percent, syncs, elevators }
}

fn agreement(
    elevator: Kind,
    turnarounds_ns: Vec<f64>,
    predicted: &Run,
    measured: &[MeasuredProcess],
) -> Result<ElevatorAgreement, BenchError> {
    let elevator = elevator.info().name;
    let predicted_bytes_per_s: f64 = predicted.processes.iter().map(|process| process.bytes_per_s).sum();
    let measured_bytes_per_s: f64 = measured.iter().map(|process| process.bytes_per_s).sum();
    if predicted.processes.len() != measured.len() || predicted_bytes_per_s <= 0.0 || measured_bytes_per_s <= 0.0 {
        return Err(BenchError::Incomplete(format!("under {elevator} the runs have nothing to compare")));
    }
    let differences = predicted.processes.iter().zip(measured).map(|(predicted, measured)| {
        let expected = predicted.bytes_per_s / predicted_bytes_per_s;
        let percent = (measured.bytes_per_s / measured_bytes_per_s / expected - 1.0) * 100.0;
        ShareDifference { process: measured.name.clone(), percent }
    });
    // The first of equal differences.
    let share = differences.reduce(|most, next| if next.percent.abs() > most.percent.abs() { next } else { most });
    Ok(ElevatorAgreement { elevator, turnarounds_ns, predicted_bytes_per_s, measured_bytes_per_s, share })
}

/// The simulation of the jobs without page cache and plugs, with a processor for each client and
/// with the measured turnarounds.
fn request(
    check: &EmulationCheck,
    rewritten: &Rewritten,
    setup: &ElevatorSetup,
    turnarounds_ns: &[f64],
) -> Result<CompareRequest, BenchError> {
    let includes = |path: &str, _: &str| Err(io::Error::new(io::ErrorKind::NotFound, path.to_owned()));
    let jobs = hoistway_fio::parse(&rewritten.simulated, "the simulated job", &|_| None, &includes)?;
    let sigma = f64::from(TURNAROUND_SIGMA_MILLI) / 1000.0;
    // The median of a lognormal distribution with this mean.
    let median_ns = |mean_ns: &f64| (mean_ns.max(0.0) * (-sigma * sigma / 2.0).exp()) as u64;
    let mut host = HostConfig {
        cpus: u32::try_from(rewritten.processes.len()).unwrap_or(u32::MAX).clamp(1, 4096),
        plugging: Plugging::None,
        costs: CpuCosts { completion_sigma_milli: TURNAROUND_SIGMA_MILLI, ..CpuCosts::NONE },
        turnarounds_ns: turnarounds_ns.iter().map(median_ns).collect(),
        spindle_tolerance_ppm: 0,
        ..HostConfig::default()
    };
    // Flushes bypass the server's queue, share the next flush, and reach every drive.
    host.flushes = Flushes::Sequences;
    host.write_back_cache = Some(true);
    host.queue.clock = hoistway_qos::CLOCK;
    host.queue.nr_requests = None;
    Ok(CompareRequest {
        jobs,
        profile: check.profile.clone(),
        host,
        elevators: vec![setup.elevator],
        settings: group_settings(setup.elevator).into_iter().chain(setup.settings.iter().cloned()).collect(),
        seed: 1,
        record: false,
    })
}

/// Settings that enable the groups of an elevator, as a server does.
fn group_settings(elevator: Kind) -> Vec<Setting> {
    let switch = group_switch(elevator).map(|tunable| format!("{}.{}=1", elevator.info().name, tunable.name));
    switch.and_then(|text| Setting::parse(&text).ok()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// A check of jobs under an elevator, 10 s on the SSD.
    fn check_of(jobs: &str, elevator: Kind, settings: &[&str]) -> EmulationCheck {
        let includes = |_: &str, _: &str| unreachable!("nothing is included");
        let jobs = hoistway_fio::parse(jobs, "job.fio", &|_| None, &includes).expect("a job file");
        let settings = settings.iter().map(|text| Setting::parse(text).expect("a setting")).collect();
        EmulationCheck {
            jobs,
            profile: Profile::choose("ssd-sata-consumer").expect("a built-in drive"),
            drive: "ssd-sata-consumer".to_owned(),
            elevators: vec![ElevatorSetup { elevator, settings }],
            seconds: 10,
            program: PathBuf::new(),
        }
    }

    /// The predicted throughput of jobs, in bytes a second.
    fn predicted(jobs: &str, elevator: Kind, settings: &[&str], turnarounds_ns: &[f64]) -> f64 {
        let check = check_of(jobs, elevator, settings);
        let capacity_bytes = describe(&check.profile).capacity_sectors * SECTOR_BYTES;
        let times = Times { ramp_seconds: 2, seconds: check.seconds };
        let rewritten = rewrite::rewrite(&check.jobs, capacity_bytes, times).expect("a server can run it");
        let request = request(&check, &rewritten, &check.elevators[0], turnarounds_ns).expect("jobs");
        let runs = hoistway_sim::run_each(&request, &|_| (), &AtomicBool::new(false)).expect("it runs");
        runs[0].processes.iter().map(|process| process.bytes_per_s).sum()
    }

    /// `hoistway serve --check` served 1.52 MB/s with these turnarounds. Clients in step would
    /// share each flush and get 4.25.
    #[test]
    fn clients_that_sync_do_not_fall_into_step() {
        let logs = "[log]\nrw=write\nbs=4k\nsize=64m\nnumjobs=4\nfdatasync=1\n";
        let of_logs = predicted(logs, Kind::Bfq, &["bfq.low_latency=0"], &[190_000.0; 4]);
        assert!((of_logs / 1.52e6 - 1.0).abs() < 0.2, "{of_logs}");
    }

    #[test]
    fn a_check_of_jobs_that_sync_allows_a_difference_of_20_percent() {
        let row = |measured_bytes_per_s, share| ElevatorAgreement {
            elevator: "noop",
            turnarounds_ns: Vec::new(),
            predicted_bytes_per_s: 100.0,
            measured_bytes_per_s,
            share: Some(ShareDifference { process: "log".to_owned(), percent: share }),
        };
        let agrees = |options: &str, measured, share| {
            let jobs = format!("[other]\nrw=read\nsize=1m\n[log]\nrw=write\nsize=1m\n{options}\n");
            report(&check_of(&jobs, Kind::Noop, &[]), vec![row(measured, share)]).agrees()
        };
        for options in ["fsync=4", "fdatasync=1", "sync=dsync"] {
            assert!(agrees(options, 119.0, -19.0), "{options}");
            assert!(!agrees(options, 121.0, 0.0) && !agrees(options, 100.0, 21.0), "{options}");
        }
        // Syncs at the end are left out of both runs, and readers have nothing to sync.
        for options in ["", "end_fsync=1", "rw=randread\nfsync=1"] {
            assert!(agrees(options, 104.0, -4.0), "{options}");
            assert!(!agrees(options, 106.0, 0.0) && !agrees(options, 100.0, 6.0), "{options}");
        }
    }
}
