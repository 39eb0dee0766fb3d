//! Runs one job file under several elevators, each in a world of its own.

use std::sync::atomic::{AtomicBool, Ordering};

use hoistway_core::Kind;
use hoistway_fio::JobFile;
use rayon::prelude::*;

use super::answer::{Comparison, Run};
use super::build::{rate_of, run_of};
use super::request::{CompareRequest, Progress};
use super::{groups, notes, verdict};
use crate::error::SimError;
use crate::settings::elevator_names;
use crate::workload::recorded::RecordedWorkload;
use crate::world::{self, WorldProgress, WorldRequest, WorldResult};

/// Runs the jobs under each elevator, in parallel on the machine's processors, and the first job
/// alone as the reference.
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
    check(request)?;
    let reference = Reference { jobs: &first_job_alone(&request.jobs), workload: &RecordedWorkload::default() };
    compare_workloads(request, &RecordedWorkload::default(), reference, progress, cancel)
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
    compare_workloads(request, workload, reference, progress, cancel)
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
    let tasks: Vec<Option<Kind>> = request.elevators.iter().copied().map(Some).collect();
    let unused = Reference { jobs: &request.jobs, workload: recorded };
    let results = run_worlds(&tasks, request, recorded, unused, progress, cancel)?;
    let runs = request.elevators.iter().zip(results);
    Ok(runs.map(|(kind, result)| run_of(*kind, result, 0.0, &request.jobs)).collect())
}

/// The workload of the single-stream reference.
#[derive(Clone, Copy)]
struct Reference<'a> {
    jobs: &'a JobFile,
    /// The recorded scripts, one per job; none for jobs that fio describes.
    workload: &'a RecordedWorkload,
}

/// Compares jobs, or recorded scripts with a job each.
fn compare_workloads(
    request: &CompareRequest,
    recorded: &RecordedWorkload,
    reference: Reference<'_>,
    progress: &(dyn Fn(Progress) + Sync),
    cancel: &AtomicBool,
) -> Result<Comparison, SimError> {
    let tasks: Vec<Option<Kind>> = std::iter::once(None).chain(request.elevators.iter().copied().map(Some)).collect();
    let results = run_worlds(&tasks, request, recorded, reference, progress, cancel)?;
    let simulated_requests = results.iter().map(|result| result.requests).sum();
    let mut results = results.into_iter();
    let reference = results.next().ok_or(SimError::Cancelled)?;
    let single = rate_of(&reference);
    let reference_arm = reference.drive.arm_share(reference.end_ns - reference.start_ns);
    let mut notes = notes::of_jobs(request);
    let mut runs = Vec::with_capacity(request.elevators.len());
    for (kind, result) in request.elevators.iter().zip(results) {
        notes.extend(groups::note_of_switch(*kind, result.divides_by_groups, &request.jobs));
        notes.extend(notes::refusals(*kind, &result));
        notes.extend(notes::failures(*kind, &result));
        runs.push(run_of(*kind, result, single, &request.jobs));
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

/// Runs worlds in parallel: one per elevator, and the reference for `None`.
fn run_worlds(
    tasks: &[Option<Kind>],
    request: &CompareRequest,
    recorded: &RecordedWorkload,
    reference: Reference<'_>,
    progress: &(dyn Fn(Progress) + Sync),
    cancel: &AtomicBool,
) -> Result<Vec<WorldResult>, SimError> {
    let failed = AtomicBool::new(false);
    let results: Vec<Result<WorldResult, SimError>> = tasks
        .par_iter()
        .map(|elevator| {
            let (jobs, workload) = match elevator {
                Some(_) => (&request.jobs, recorded),
                None => (reference.jobs, reference.workload),
            };
            let world = WorldRequest {
                jobs,
                scripts: &workload.scripts,
                profile: &request.profile,
                host: &request.host,
                elevator: elevator.unwrap_or(Kind::Noop),
                settings: &request.settings,
                seed: request.seed,
                record: request.record && elevator.is_some(),
            };
            let mut report = |world: WorldProgress| {
                let WorldProgress { now_ns, bytes, bytes_total } = world;
                progress(Progress { elevator: *elevator, now_ns, bytes, bytes_total });
            };
            let stop = || cancel.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
            world::run(&world, &stop, &mut report).inspect_err(|_| failed.store(true, Ordering::Relaxed))
        })
        .collect();
    succeeded(results)
}

/// All results, or the first error; a cancellation that another error caused does not count.
fn succeeded(results: Vec<Result<WorldResult, SimError>>) -> Result<Vec<WorldResult>, SimError> {
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

/// The job file of the reference: one process of the first job, on its first file, starting at
/// once.
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
