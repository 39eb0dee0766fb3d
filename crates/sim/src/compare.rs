//! The same jobs under several elevators.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hoistway_core::{Kind, ReserveError};
use hoistway_drive::Profile;
use hoistway_fio::logs::LogEntry;
use hoistway_fio::results::PERCENTILES;
use hoistway_fio::{Direction, Job, JobFile};
use rayon::prelude::*;

use crate::config::{HostConfig, PAGE_BYTES};
use crate::error::SimError;
use crate::groups::{self, GroupRun};
use crate::measure::{BandwidthSample, Latencies, Latency, Window, deadline_misses, jain};
use crate::record::{HeadSample, Slice};
use crate::settings::{Setting, elevator_names};
use crate::verdict;
use crate::workload::recorded::Script;
use crate::world::{self, DriveTime, Headway, Outcome, Process, WorldRequest};

/// What is to be compared.
#[derive(Clone, Debug)]
pub struct CompareRequest {
    /// The jobs.
    pub jobs: JobFile,
    /// The drive.
    pub profile: Profile,
    /// The machine.
    pub host: HostConfig,
    /// The elevators, in the order of the result; at least one.
    pub elevators: Vec<Kind>,
    /// Tunables that differ from their defaults.
    pub settings: Vec<Setting>,
    /// What all random numbers come from.
    pub seed: u64,
    /// Whether head positions and slices are kept.
    pub record: bool,
}

/// How far one of the runs has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The elevator; `None` for the single-stream reference.
    pub elevator: Option<Kind>,
    /// The virtual time, in ns.
    pub now_ns: u64,
    /// Bytes that have been moved.
    pub bytes: u64,
    /// Bytes to be moved, as far as sizes tell.
    pub bytes_total: u64,
}

/// What came out.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Comparison {
    /// The drive's name.
    pub drive: String,
    /// The seed.
    pub seed: u64,
    /// Bytes a second of the first job alone: one process, on its first file.
    pub single_stream_bytes_per_s: f64,
    /// Requests that the drives of all runs served, the reference's included.
    #[serde(skip)]
    pub simulated_requests: u64,
    /// A run for each elevator, in the order asked for.
    pub runs: Vec<Run>,
    /// What decided between them, in a sentence.
    pub decided_by: String,
    /// What of the job file was not simulated.
    pub notes: Vec<String>,
}

/// The least and the greatest of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

/// One elevator's run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Run {
    /// Its name.
    pub elevator: String,
    /// All bytes, over the time from the first start to the last end.
    pub bytes_per_s: f64,
    /// That, as a part of the single stream's.
    pub of_single_stream: f64,
    /// Each process's bytes over its own runtime.
    pub process_bytes_per_s: Spread,
    /// Jain's index over the same: 1 when all are equal.
    pub jain: f64,
    /// Completion latencies of all requests, in ns.
    pub latency_ns: Latency,
    /// The same at fio's usual percentiles, 1 to 99.99: percent, and ns.
    pub latency_percentiles_ns: Vec<(f64, u64)>,
    /// From the first start to the last end, in ns, without ramp times.
    pub runtime_ns: u64,
    /// Where the drive's time went; it adds up to the runtime.
    pub drive_ns: DriveTime,
    /// Requests that the drive served, after merging.
    pub drive_requests: u64,
    /// Bytes that the drive was asked for: what was found in the page cache is not among them.
    pub drive_bytes: u64,
    /// The most bytes of the page cache that were dirty or being written at any time.
    pub dirty_bytes_max: u64,
    /// How often the drive went from one process's requests to another's.
    pub turns: u64,
    /// Requests that the drive answered with an error.
    pub failed_requests: u64,
    /// Dirty pages that could not be written: they were lost.
    pub lost_pages: u64,
    /// Whether the elevator divides the disk among control groups; the others take all processes as of one.
    pub divides_by_groups: bool,
    /// What each control group of the job file got: parents before their children, otherwise in the order of the file.
    pub groups: Vec<GroupRun>,
    /// The processes.
    pub processes: Vec<ProcessRun>,
    /// Where the arm was, if recorded.
    pub head: Vec<HeadSample>,
    /// Slices, if recorded and the elevator has any.
    pub slices: Vec<Slice>,
}

/// One process's run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ProcessRun {
    /// The job's name.
    pub name: String,
    /// The job's place in the job file.
    pub job: usize,
    /// The reporting group.
    pub groupid: u32,
    /// The process id.
    pub pid: u32,
    /// Its control group: the names on the way to it from the root; none is the root.
    pub cgroup: Option<String>,
    /// The priority's class: 0 none, 1 real time, 2 best effort, 3 idle.
    pub prioclass: u8,
    /// The priority's level; what counts when none is set follows nice.
    pub prio: u8,
    /// When it started, in ns of the world, its ramp time being over.
    pub start_ns: u64,
    /// When one of its requests failed, in ns of the world: it made no more, as fio does without `continue_on_error`.
    pub failed_ns: Option<u64>,
    /// How long it ran, in ns.
    pub runtime_ns: u64,
    /// CPU time, in ns.
    pub cpu_ns: u64,
    /// How often it slept.
    pub sleeps: u64,
    /// Bytes moved in both directions.
    pub bytes: u64,
    /// Bytes over runtime.
    pub bytes_per_s: f64,
    /// Rounds of a second, from its start, at whose end it had less than its job's `rate` owes it: a block is due a second after the
    /// rate lets it be asked for. `None` without `rate`.
    pub deadline_misses: Option<u64>,
    /// Completion latencies in both directions, in ns.
    pub latency_ns: Latency,
    /// Bandwidth over time, both directions: bytes and requests of each window.
    pub windows: Vec<Window>,
    /// The length of a window, in ns.
    pub window_ns: u64,
    /// Bandwidth over time as the process itself can see it: a sample at the first completion after each `window_ns`.
    /// Where processes take turns that are longer than a window, a sample spans a whole round, and windows do not.
    pub samples: Vec<BandwidthSample>,
    /// Reads.
    pub read: DirectionRun,
    /// Writes.
    pub write: DirectionRun,
    /// Syncs, in ns.
    pub sync: Latency,
    #[serde(skip)]
    pub(crate) measured: Measured,
}

/// One direction of a process's run.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct DirectionRun {
    /// Bytes moved.
    pub bytes: u64,
    /// Requests.
    pub ios: u64,
    /// From the making of a request to its submission, in ns; empty for a synchronous engine.
    pub slat_ns: Latency,
    /// From submission to completion, in ns.
    pub clat_ns: Latency,
    /// From making to completion, in ns.
    pub lat_ns: Latency,
}

/// All that was measured, for fio's JSON.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub stats: crate::world::Stats,
    pub job: std::sync::Arc<hoistway_fio::Job>,
}

/// Runs the jobs under each elevator, side by side on the machine's processors, and once the first job alone.
///
/// `progress` is called now and then from several threads; when `cancel` becomes true, all runs end soon.
///
/// # Errors
/// [`SimError`]: for what the jobs, the host or the settings ask for and cannot have; [`SimError::Cancelled`].
pub fn compare(
    request: &CompareRequest,
    progress: &(dyn Fn(Progress) + Sync),
    cancel: &AtomicBool,
) -> Result<Comparison, SimError> {
    check(request)?;
    compare_workloads(request, &first_job_alone(&request.jobs), Recorded::default(), progress, cancel)
}

/// The same without a reference, for many runs: `of_single_stream` is 0, and nothing is said of what decided.
///
/// # Errors
/// As for [`compare`].
pub fn run_each(
    request: &CompareRequest,
    progress: &(dyn Fn(Progress) + Sync),
    cancel: &AtomicBool,
) -> Result<Vec<Run>, SimError> {
    check(request)?;
    run_workloads(request, Recorded::default(), progress, cancel)
}

/// That for jobs of any kind.
pub(crate) fn run_workloads(
    request: &CompareRequest,
    recorded: Recorded<'_>,
    progress: &(dyn Fn(Progress) + Sync),
    cancel: &AtomicBool,
) -> Result<Vec<Run>, SimError> {
    let tasks: Vec<Option<Kind>> = request.elevators.iter().copied().map(Some).collect();
    let outcomes = outcomes(&tasks, request, &request.jobs, recorded, progress, cancel)?;
    let runs = request.elevators.iter().zip(outcomes);
    Ok(runs.map(|(kind, outcome)| Run::new(*kind, outcome, 0.0, &request.jobs)).collect())
}

/// What there is to tell of a recorded workload beside its jobs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recorded<'a> {
    /// Of each job.
    pub scripts: &'a [Arc<Script>],
    /// Of the job that is the reference.
    pub alone: &'a [Arc<Script>],
    /// See [`WorldRequest::depth_max`].
    pub depth_max: Option<u32>,
}

/// The same for jobs of any kind; `alone` is the reference.
pub(crate) fn compare_workloads(
    request: &CompareRequest,
    alone: &JobFile,
    recorded: Recorded<'_>,
    progress: &(dyn Fn(Progress) + Sync),
    cancel: &AtomicBool,
) -> Result<Comparison, SimError> {
    let tasks: Vec<Option<Kind>> = std::iter::once(None).chain(request.elevators.iter().copied().map(Some)).collect();
    let outcomes = outcomes(&tasks, request, alone, recorded, progress, cancel)?;
    let simulated_requests = outcomes.iter().map(|outcome| outcome.requests).sum();
    let mut outcomes = outcomes.into_iter();
    let reference = outcomes.next().ok_or(SimError::Cancelled)?;
    let single = bytes_per_s(&reference);
    let reference_arm = verdict::arm_share(&reference.drive, reference.end_ns - reference.start_ns);
    let mut notes = notes(request);
    let mut runs = Vec::with_capacity(request.elevators.len());
    for (kind, outcome) in request.elevators.iter().zip(outcomes) {
        notes.extend(groups::note_of_switch(*kind, outcome.divides_by_groups, &request.jobs));
        notes.extend(refusals(*kind, &outcome));
        notes.extend(failures(*kind, &outcome));
        runs.push(Run::new(*kind, outcome, single, &request.jobs));
    }
    Ok(Comparison {
        drive: request.profile.name().into(),
        seed: request.seed,
        single_stream_bytes_per_s: single,
        simulated_requests,
        decided_by: verdict::decided_by(&runs, reference_arm),
        runs,
        notes,
    })
}

/// Runs worlds side by side: one an elevator, and the reference where there is none.
fn outcomes(
    tasks: &[Option<Kind>],
    request: &CompareRequest,
    alone: &JobFile,
    recorded: Recorded<'_>,
    progress: &(dyn Fn(Progress) + Sync),
    cancel: &AtomicBool,
) -> Result<Vec<Outcome>, SimError> {
    let failed = AtomicBool::new(false);
    let results: Vec<Result<Outcome, SimError>> = tasks
        .par_iter()
        .map(|elevator| {
            let world = WorldRequest {
                jobs: if elevator.is_some() { &request.jobs } else { alone },
                scripts: if elevator.is_some() { recorded.scripts } else { recorded.alone },
                depth_max: least(recorded.depth_max, request.host.depth_max),
                profile: &request.profile,
                host: &request.host,
                elevator: elevator.unwrap_or(Kind::Noop),
                settings: &request.settings,
                seed: request.seed,
                record: request.record && elevator.is_some(),
            };
            let mut headway = |way: Headway| {
                let Headway { now_ns, bytes, bytes_total } = way;
                progress(Progress { elevator: *elevator, now_ns, bytes, bytes_total });
            };
            let stop = || cancel.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
            world::run(&world, &stop, &mut headway).inspect_err(|_| failed.store(true, Ordering::Relaxed))
        })
        .collect();
    succeeded(results)
}

/// The lesser of two limits, where there are any.
fn least(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    one.into_iter().chain(other).min()
}

/// All outcomes, or the first error that is not the cancelling which another one caused.
fn succeeded(results: Vec<Result<Outcome, SimError>>) -> Result<Vec<Outcome>, SimError> {
    let mut outcomes = Vec::new();
    let mut first = None;
    for result in results {
        match result {
            Ok(outcome) => outcomes.push(outcome),
            Err(error) if matches!(first, None | Some(SimError::Cancelled)) => first = Some(error),
            Err(_) => {}
        }
    }
    match first {
        None => Ok(outcomes),
        Some(error) => Err(error),
    }
}

fn check(request: &CompareRequest) -> Result<(), SimError> {
    if request.elevators.is_empty() {
        return Err(SimError::NoElevators { known: elevator_names() });
    }
    for setting in &request.settings {
        if !request.elevators.contains(&setting.elevator) {
            let compared: Vec<&str> = request.elevators.iter().map(|kind| kind.info().name).collect();
            return Err(SimError::SettingUnused {
                text: setting.text().into(),
                elevator: setting.elevator.info().name.into(),
                compared: compared.join(", "),
            });
        }
    }
    Ok(())
}

/// The reference: one process of the first job, on the first of its files, starting at once.
fn first_job_alone(jobs: &JobFile) -> JobFile {
    let first = jobs.jobs.iter().take(1).cloned().map(|mut job| {
        let files = if job.filename.is_empty() { u64::from(job.nrfiles) } else { job.filename.len() as u64 };
        if let (hoistway_fio::Size::Bytes(bytes), true) = (job.size, job.size_given) {
            job.size = hoistway_fio::Size::Bytes(bytes / files.max(1));
        }
        job.filename.truncate(1);
        job.nrfiles = 1;
        job.numjobs = 1;
        job.startdelay_ns = 0..=0;
        job.wait_for = None;
        job
    });
    JobFile { jobs: first.collect(), ..jobs.clone() }
}

fn bytes_per_s(outcome: &Outcome) -> f64 {
    let bytes: u64 = outcome.processes.iter().map(|process| process.stats.read.bytes + process.stats.write.bytes).sum();
    rate(bytes, outcome.end_ns - outcome.start_ns)
}

pub(crate) fn rate(bytes: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { bytes as f64 * 1e9 / ns as f64 }
}

/// What of the job file is not simulated.
fn notes(request: &CompareRequest) -> Vec<String> {
    let jobs = &request.jobs;
    let ignored = jobs.ignored.iter().map(|option| {
        format!("{}:{}: `{}` is accepted and changes nothing here", option.file, option.line, option.name)
    });
    let any = |has: fn(&hoistway_core::Info) -> bool| request.elevators.iter().any(|kind| has(kind.info()));
    let unknown = groups::notes(jobs, any(|info| info.groups), any(|info| info.reservations));
    let waiting = jobs.jobs.iter().filter(|job| !job.direct && job.effective_iodepth() > 1).map(|job| {
        format!(
            "{}:{}: job `{}`: requests through the page cache are made one at a time, iodepth={} or not",
            job.file, job.line, job.name, job.iodepth
        )
    });
    ignored.chain(unknown).chain(waiting).collect()
}

/// What the drive could not do.
fn failures(elevator: Kind, outcome: &Outcome) -> Option<String> {
    let world::Failures { requests, pages_lost } = outcome.failures;
    if requests == 0 {
        return None;
    }
    let name = elevator.info().name;
    let stopped = outcome.processes.iter().filter(|process| process.failed_ns.is_some()).count();
    let first =
        outcome.processes.iter().filter_map(|process| Some((process.failed_ns?, process))).min_by_key(|first| first.0);
    let first = first.map_or(String::new(), |(at_ns, process)| {
        format!(", first {} of job `{}` at {:.3} s", process.plan.pid, process.job.name, at_ns as f64 / 1e9)
    });
    let lost = if pages_lost > 0 { format!("; {pages_lost} dirty pages were lost") } else { String::new() };
    Some(format!(
        "{name}: the drive answered {requests} requests with an error; {stopped} processes stopped with EIO{first}{lost}"
    ))
}

/// Reservations that an elevator refused, a note a job: their processes ran without.
fn refusals(elevator: Kind, outcome: &Outcome) -> Vec<String> {
    let name = elevator.info().name;
    let mut jobs: Vec<(usize, u32, ReserveError)> = Vec::new();
    for (pid, refusal) in &outcome.refused {
        let process = outcome.processes.iter().find(|process| process.plan.pid == *pid);
        let Some(job) = process.map(|process| process.plan.job) else { continue };
        match jobs.iter_mut().find(|(known, ..)| *known == job) {
            Some((_, count, _)) => *count += 1,
            None => jobs.push((job, 1, *refusal)),
        }
    }
    let told = |(index, count, refusal): (usize, u32, ReserveError)| {
        let process = outcome.processes.iter().find(|process| process.plan.job == index)?;
        let Job { file, line, name: job, .. } = &*process.job;
        let whose = if count == 1 { "a process".to_owned() } else { format!("{count} processes") };
        Some(format!(
            "{file}:{line}: job `{job}`: {name} refuses the reservation of {whose}, best effort then: {refusal}"
        ))
    };
    jobs.into_iter().filter_map(told).collect()
}

impl Run {
    fn new(elevator: Kind, outcome: Outcome, single: f64, jobs: &JobFile) -> Run {
        let bytes_per_s = bytes_per_s(&outcome);
        let processes: Vec<ProcessRun> = outcome.processes.into_iter().map(ProcessRun::new).collect();
        let rates: Vec<f64> = processes.iter().map(|process| process.bytes_per_s).collect();
        let mut latencies = Latencies::default();
        for process in &processes {
            latencies.merge(&process.measured.stats.read.clat);
            latencies.merge(&process.measured.stats.write.clat);
        }
        Run {
            elevator: elevator.info().name.into(),
            bytes_per_s,
            of_single_stream: if single > 0.0 { bytes_per_s / single } else { 0.0 },
            process_bytes_per_s: Spread {
                min: rates.iter().copied().fold(f64::INFINITY, f64::min),
                max: rates.iter().copied().fold(0.0, f64::max),
            },
            jain: jain(&rates),
            latency_ns: latencies.summary(),
            latency_percentiles_ns: PERCENTILES.map(|percent| (percent, latencies.percentile_ns(percent))).into(),
            runtime_ns: outcome.end_ns - outcome.start_ns,
            drive_ns: outcome.drive,
            drive_requests: outcome.requests,
            drive_bytes: outcome.bytes,
            dirty_bytes_max: outcome.dirty_pages_max * PAGE_BYTES,
            turns: outcome.turns,
            failed_requests: outcome.failures.requests,
            lost_pages: outcome.failures.pages_lost,
            divides_by_groups: outcome.divides_by_groups,
            groups: groups::group_runs(jobs, &processes),
            processes,
            head: outcome.recording.head,
            slices: outcome.recording.slices,
        }
    }
}

impl Run {
    /// Completion latencies in both directions of all processes of which `counts` is true.
    pub fn latencies_of(&self, counts: impl Fn(&ProcessRun) -> bool) -> Latencies {
        let mut latencies = Latencies::default();
        for process in self.processes.iter().filter(|process| counts(process)) {
            latencies.merge(&process.measured.stats.read.clat);
            latencies.merge(&process.measured.stats.write.clat);
        }
        latencies
    }

    /// Syncs of all processes of which `counts` is true.
    pub fn syncs_of(&self, counts: impl Fn(&ProcessRun) -> bool) -> Latencies {
        let mut latencies = Latencies::default();
        let processes = self.processes.iter().filter(|process| counts(process));
        processes.for_each(|process| latencies.merge(&process.measured.stats.sync));
        latencies
    }

    /// The share of the run that the drive spent on seeking and waiting for the platter, 0 to 1.
    pub fn arm_share(&self) -> f64 {
        verdict::arm_share(&self.drive_ns, self.runtime_ns)
    }
}

impl ProcessRun {
    fn new(process: Process) -> ProcessRun {
        let Process { plan, job, mut stats, measured_from_ns, end_ns, failed_ns, .. } = process;
        let runtime_ns = end_ns.saturating_sub(measured_from_ns);
        let bytes = stats.read.bytes + stats.write.bytes;
        let mut latencies = stats.read.clat.clone();
        latencies.merge(&stats.write.clat);
        let direction = |stats: &crate::world::DirectionStats| DirectionRun {
            bytes: stats.bytes,
            ios: stats.ios,
            slat_ns: stats.slat.summary(),
            clat_ns: stats.clat.summary(),
            lat_ns: if stats.lat.count() > 0 { stats.lat.summary() } else { stats.clat.summary() },
        };
        let effective = plan.priority.effective(plan.nice);
        let misses = |direction, stats: &crate::world::DirectionStats| {
            let does = if direction == Direction::Read { job.rw.reads() } else { job.rw.writes() };
            let rate = job.rate.get(direction).filter(|_| does)?;
            deadline_misses(&stats.windows, runtime_ns, rate, job.min_bs(direction))
        };
        let of_both = [misses(Direction::Read, &stats.read), misses(Direction::Write, &stats.write)];
        let windows = stats.read.windows.sum(&stats.write.windows);
        ProcessRun {
            name: job.name.clone(),
            job: plan.job,
            groupid: job.groupid,
            pid: plan.pid,
            cgroup: job.cgroup.clone(),
            prioclass: plan.priority.class() as u8,
            prio: effective.level(),
            start_ns: measured_from_ns,
            failed_ns,
            runtime_ns,
            cpu_ns: stats.cpu_ns,
            sleeps: stats.sleeps,
            bytes,
            bytes_per_s: rate(bytes, runtime_ns),
            deadline_misses: of_both.into_iter().flatten().reduce(|read, write| read + write),
            latency_ns: latencies.summary(),
            window_ns: windows.window_ns(),
            windows: windows.into_all(),
            samples: std::mem::take(&mut stats.samples.taken),
            read: direction(&stats.read),
            write: direction(&stats.write),
            sync: stats.sync.summary(),
            measured: Measured { stats, job },
        }
    }

    /// The name of the process's bandwidth log, if its job asks for one; `index` counts all processes from 1.
    pub fn bandwidth_log_name(&self, index: u32) -> Option<String> {
        let prefix = self.measured.job.write_bw_log.as_ref()?;
        Some(hoistway_fio::logs::LogKind::Bandwidth.file_name(prefix, index))
    }

    /// The lines of its bandwidth log: averages over `log_avg_msec`, or where that is 0 over `bwavgtime`.
    pub fn bandwidth_log(&self) -> Vec<LogEntry> {
        let stats = &self.measured.stats;
        let mut entries = Vec::new();
        for (direction, stats) in [(Direction::Read, &stats.read), (Direction::Write, &stats.write)] {
            let windows = stats.log.as_ref().unwrap_or(&stats.windows);
            let window_ms = windows.window_ns() / 1_000_000;
            let rates = windows.bytes_per_s(self.runtime_ns);
            let used = if stats.ios == 0 { 0 } else { rates.len() };
            entries.extend((1u64..).zip(rates).take(used).map(|(window, bytes_per_s)| LogEntry {
                time_ms: window * window_ms,
                value: bytes_per_s / 1024,
                direction,
                bs: 0,
                offset: 0,
                prioclass: self.prioclass,
                prio: if self.prioclass == 0 { 0 } else { self.prio },
            }));
        }
        entries.sort_by_key(|entry| (entry.time_ms, entry.direction));
        entries
    }
}
