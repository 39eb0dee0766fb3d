//! Runs one job file under several elevators, each in a world of its own.

use std::sync::atomic::{AtomicBool, Ordering};

use hoistway_core::Kind;
use hoistway_fio::JobFile;

use super::answer::{Comparison, Run};
use super::build::{rate_of, run_of};
use super::request::{CompareRequest, Progress};
use super::{groups, notes, parallel};
use crate::error::SimError;
use crate::settings::elevator_names;
use crate::workload::recorded::RecordedWorkload;
use crate::world::{self, Stop, WorldProgress, WorldRequest, WorldResult};

/// The maximum number of jobs that also run alone, as references.
pub const ALONE_MAX: usize = 32;
/// Longest run of a job alone, in ns of virtual time; the first job runs to its end.
pub const ALONE_NS: u64 = 10_000_000_000;

/// Runs the jobs under each elevator, in parallel on the machine's processors, and each job alone
/// as a reference.
///
/// `progress` is called from several threads from time to time. When `cancel` becomes true, all
/// runs end soon.
///
/// # Errors
/// [`SimError`] if the jobs, the host or the settings ask for something impossible;
/// [`SimError::Cancelled`].
pub fn compare(
    request: &CompareRequest,
    progress: &(dyn Fn(Progress) + Sync),
    cancel: &AtomicBool,
) -> Result<Comparison, SimError> {
    compare_jobs(request, progress, Cancel { flag: cancel, stop: Stop::Cancel })
}

/// Compares jobs, each of which also runs alone.
fn compare_jobs(
    request: &CompareRequest,
    progress: &(dyn Fn(Progress) + Sync),
    cancel: Cancel<'_>,
) -> Result<Comparison, SimError> {
    check(request)?;
    let recorded = RecordedWorkload::default();
    let alone: Vec<JobFile> =
        (0..request.jobs.jobs.len().min(ALONE_MAX)).map(|job| alone(&request.jobs, job)).collect();
    let references: Vec<_> = alone.iter().map(|jobs| Reference { jobs, workload: &recorded }).collect();
    compare_workloads(request, &recorded, &references, progress, cancel)
}

/// Like [`compare`], but when `cancel` becomes true, the answer has the results so far: runs that
/// have begun end at that time, and elevators whose runs have no result are left out.
///
/// # Errors
/// The errors of [`compare`]; [`SimError::Cancelled`] only if no run has a result.
pub fn compare_until(
    request: &CompareRequest,
    progress: &(dyn Fn(Progress) + Sync),
    cancel: &AtomicBool,
) -> Result<Comparison, SimError> {
    compare_jobs(request, progress, Cancel { flag: cancel, stop: Stop::Keep })
}

/// Runs the jobs under each elevator without the reference, for series of many runs:
/// `of_single_stream` is 0 and there is no verdict.
///
/// # Errors
/// The errors of [`compare`].
pub fn run_each(
    request: &CompareRequest,
    progress: &(dyn Fn(Progress) + Sync),
    cancel: &AtomicBool,
) -> Result<Vec<Run>, SimError> {
    check(request)?;
    run_workloads(request, &RecordedWorkload::default(), progress, cancel)
}

/// Runs a recorded workload under each elevator, in parallel, and its process with the most bytes
/// alone as the reference.
///
/// `request.jobs` has one job per script, as [`RecordedWorkload::jobs`] makes them: the jobs give
/// name, priority and runtime of a process, the scripts its requests. Settings of elevators that
/// are not compared are refused by [`compare`] only.
///
/// # Errors
/// The errors of [`compare`].
pub fn compare_recorded(
    request: &CompareRequest,
    workload: &RecordedWorkload,
    progress: &(dyn Fn(Progress) + Sync),
    cancel: &AtomicBool,
) -> Result<Comparison, SimError> {
    let busiest = workload.busiest();
    let reference = Reference { jobs: &busiest.jobs(), workload: &busiest };
    compare_workloads(request, workload, &[reference], progress, Cancel { flag: cancel, stop: Stop::Cancel })
}

/// Runs a recorded workload under each elevator without the reference, for series of many runs:
/// `of_single_stream` is 0. The input is that of [`compare_recorded`].
///
/// # Errors
/// The errors of [`compare`].
pub fn run_each_recorded(
    request: &CompareRequest,
    workload: &RecordedWorkload,
    cancel: &AtomicBool,
) -> Result<Vec<Run>, SimError> {
    run_workloads(request, workload, &|_| {}, cancel)
}

/// Runs jobs or recorded scripts under each elevator, without a reference.
fn run_workloads(
    request: &CompareRequest,
    recorded: &RecordedWorkload,
    progress: &(dyn Fn(Progress) + Sync),
    cancel: &AtomicBool,
) -> Result<Vec<Run>, SimError> {
    let cancel = Cancel { flag: cancel, stop: Stop::Cancel };
    let (_, results) = run_worlds(request, recorded, &[], progress, cancel)?;
    Ok(results.into_iter().filter_map(|result| result.run.map(|run| *run)).collect())
}

/// The flag that stops runs, and how they stop.
#[derive(Clone, Copy, Debug)]
struct Cancel<'a> {
    flag: &'a AtomicBool,
    stop: Stop,
}

/// The workload of a reference.
#[derive(Clone, Copy, Debug)]
struct Reference<'a> {
    jobs: &'a JobFile,
    /// The recorded scripts, one per job; none for jobs that fio describes.
    workload: &'a RecordedWorkload,
}

/// Compares jobs, or recorded scripts with a job each.
fn compare_workloads(
    request: &CompareRequest,
    recorded: &RecordedWorkload,
    references: &[Reference<'_>],
    progress: &(dyn Fn(Progress) + Sync),
    cancel: Cancel<'_>,
) -> Result<Comparison, SimError> {
    let (alone, results) = run_worlds(request, recorded, references, progress, cancel)?;
    let simulated_requests = alone.iter().flatten().chain(&results).map(|result| result.requests).sum();
    let is_partial = alone.iter().flatten().chain(&results).any(|result| result.is_partial);
    let rates: Vec<Option<f64>> = alone.iter().map(|result| result.as_ref().and_then(|result| result.rate)).collect();
    let single = rates.first().copied().flatten().unwrap_or(0.0);
    let mut notes = notes::of_jobs(request);
    let mut runs = Vec::with_capacity(request.elevators.len());
    for result in results {
        notes.extend(result.notes);
        runs.extend(result.run.map(|run| Run { of_single_stream: part(run.bytes_per_s, single), ..*run }));
    }
    if runs.is_empty() {
        return Err(SimError::Cancelled);
    }
    let of_jobs = |rates: Vec<Option<f64>>| (0..request.jobs.jobs.len()).map(|job| rates.get(job).copied()?).collect();
    Ok(Comparison {
        drive: request.profile.name().into(),
        seed: request.seed,
        rotational: request.profile.is_rotational(),
        single_stream_bytes_per_s: single,
        alone_bytes_per_s: if recorded.scripts.is_empty() { of_jobs(rates) } else { Vec::new() },
        simulated_requests,
        is_partial,
        runs,
        notes,
    })
}

fn part(rate: f64, single: f64) -> f64 {
    if single > 0.0 { rate / single } else { 0.0 }
}

/// The part of a world's result that a comparison keeps.
struct Finished {
    /// Bytes a second of all processes; `None` if the world was stopped before it moved any data.
    rate: Option<f64>,
    requests: u64,
    is_partial: bool,
    /// The answer for an elevator, without the share of the single stream; `None` for a reference.
    run: Option<Box<Run>>,
    notes: Vec<String>,
}

impl Finished {
    /// Reduces a world to its answer at once, because a world with thousands of processes is large.
    fn new(
        world: WorldResult,
        elevator: Option<Kind>,
        request: &CompareRequest,
        recorded: &RecordedWorkload,
    ) -> Finished {
        let (requests, is_partial) = (world.requests, world.is_partial);
        let rate = Some(rate_of(&world)).filter(|rate| !is_partial || *rate > 0.0);
        let (mut run, mut notes) = (None, Vec::new());
        if let Some(kind) = elevator {
            let name = name_of(kind, request, recorded);
            if rate.is_some() {
                notes.extend(groups::note_of_switch(kind, world.divides_by_groups, &request.jobs));
                notes.extend(notes::refusals(name, &world));
                notes.extend(notes::failures(name, &world));
                notes.extend(notes::endings(name, &world));
                run = Some(Box::new(run_of(name, world, &request.jobs)));
            } else {
                notes.push(format!("{name} is left out: it was stopped before it moved any data"));
            }
        }
        Finished { rate, requests, is_partial, run, notes }
    }
}

/// The name of an elevator in the answer: that of the host's kernel. Predictions from recordings
/// use the elevator's own name, as the recordings do.
fn name_of(kind: Kind, request: &CompareRequest, recorded: &RecordedWorkload) -> &'static str {
    match request.host.kernel {
        Some(kernel) if recorded.scripts.is_empty() => kernel.elevator_name(kind),
        _ => kind.info().name,
    }
}

/// The results of references, `None` for one that failed, and those of the elevators.
type References = Vec<Option<Finished>>;

/// Runs worlds in parallel: one for each reference and one for each elevator. Only the first
/// reference has to succeed.
fn run_worlds(
    request: &CompareRequest,
    recorded: &RecordedWorkload,
    references: &[Reference<'_>],
    progress: &(dyn Fn(Progress) + Sync),
    cancel: Cancel<'_>,
) -> Result<(References, Vec<Finished>), SimError> {
    let failed = AtomicBool::new(false);
    let runs = references.len() + request.elevators.len();
    let mut results: Vec<Result<Finished, SimError>> = parallel::map(runs, |run| {
        let reference = references.get(run);
        let elevator = run.checked_sub(references.len()).map(|index| request.elevators[index]);
        let world = WorldRequest {
            jobs: reference.map_or(&request.jobs, |reference| reference.jobs),
            scripts: &reference.map_or(recorded, |reference| reference.workload).scripts,
            profile: &request.profile,
            host: &request.host,
            elevator: elevator.unwrap_or(Kind::Noop),
            settings: &request.settings,
            seed: request.seed,
            record: request.record && elevator.is_some(),
        };
        let mut report = |world: WorldProgress| {
            let WorldProgress { now_ns, done } = world;
            progress(Progress { elevator, run, runs, now_ns, done });
        };
        let stop = || match (failed.load(Ordering::Relaxed), cancel.flag.load(Ordering::Relaxed)) {
            (true, _) => Some(Stop::Cancel),
            (false, true) => Some(cancel.stop),
            (false, false) => None,
        };
        let may_fail = run > 0 && reference.is_some();
        let result = world::run(&world, &stop, &mut report);
        let result = result.map(|result| Finished::new(result, elevator, request, recorded));
        result.inspect_err(|_| failed.store(!may_fail || failed.load(Ordering::Relaxed), Ordering::Relaxed))
    });
    let under = results.split_off(references.len());
    let mut alone = Vec::new();
    for (index, result) in results.into_iter().enumerate() {
        match result {
            Err(error) if index == 0 && !matches!(error, SimError::Cancelled) => return Err(error),
            result => alone.push(result.ok()),
        }
    }
    Ok((alone, succeeded(under)?))
}

/// All results, or the first error; a cancellation that another error caused does not count.
fn succeeded(results: Vec<Result<Finished, SimError>>) -> Result<Vec<Finished>, SimError> {
    let mut worlds = Vec::new();
    let mut first = None;
    for result in results {
        match result {
            Ok(world) => worlds.push(world),
            Err(error) if matches!(first, None | Some(SimError::Cancelled)) => first = Some(error),
            Err(_) => {}
        }
    }
    match first {
        None => Ok(worlds),
        Some(error) => Err(error),
    }
}

pub(super) fn check(request: &CompareRequest) -> Result<(), SimError> {
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

/// The job file of a reference: one process of a job, on its first file, starting at once.
fn alone(jobs: &JobFile, index: usize) -> JobFile {
    let job = jobs.jobs.get(index).cloned().map(|mut job| {
        let files = job.files.count();
        if let Some(hoistway_fio::Size::Bytes(bytes)) = &mut job.region.size {
            *bytes /= files.max(1);
        }
        job.files.filename.truncate(1);
        job.files.nrfiles = 1;
        job.start.numjobs = 1;
        job.start.startdelay_ns = 0..=0;
        job.start.wait_for = None;
        if index > 0 {
            job.end.runtime_ns = Some(job.end.runtime_ns.map_or(ALONE_NS, |runtime_ns| runtime_ns.min(ALONE_NS)));
        }
        job
    });
    JobFile { jobs: job.into_iter().collect(), ..jobs.clone() }
}
