//! The JSON document of a comparison.

use hoistway_fio::results::Report;
use hoistway_sim::{Comparison, DriveTime, GroupRun, Latency, ProcessRun, Run, Spread};
use serde::Serialize;

use super::{CompareDefaults, CompareSetup, Compared, JobRun, Judgement, SeededComparison, Verdict};

/// Facts about a comparison that its results do not contain.
#[derive(Clone, Copy, Debug)]
pub struct DocumentContext<'a> {
    /// Name of the job file as given.
    pub job: &'a str,
    /// The options of the job file's global sections,
    /// [`JobFile::global_options`](hoistway_fio::JobFile::global_options).
    pub global_options: &'a [(String, String)],
    /// The host: "Linux 6.1", "each elevator in its own kernel".
    pub host: &'a str,
    /// The choice of the drive, if the user named none.
    pub defaults: Option<&'a CompareDefaults>,
    /// The figures over several seeds.
    pub seeds: Option<&'a SeededComparison>,
    /// True if the comparison was interrupted.
    pub is_partial: bool,
}

impl<'a> DocumentContext<'a> {
    /// The facts about a comparison and the request that it ran.
    pub fn new(setup: &'a CompareSetup, compared: &'a Compared) -> DocumentContext<'a> {
        DocumentContext {
            job: &setup.job,
            global_options: &setup.request.jobs.global_options,
            host: &setup.host,
            defaults: setup.has_default_drive.then_some(&setup.defaults),
            seeds: compared.seeds.as_ref(),
            is_partial: compared.is_partial,
        }
    }
}

/// The JSON document. The same request gives the same document, byte for byte: fio's keys for the
/// time of day hold the start of the simulated world, 1 January 1970.
#[derive(Serialize)]
pub struct ComparisonDocument<'a> {
    /// Version of the document's format: 1. Within a version, keys may be added; no key is removed
    /// or changes its meaning.
    schema: u32,
    /// Name of the job file as given.
    job: &'a str,
    /// The drive's name.
    drive: &'a str,
    /// Why the drive is this one: `drive`, `device` and `why`; null if the user named it.
    drive_choice: Option<&'a CompareDefaults>,
    /// True if the drive is a disk. `seek` and `rotation` are 0 on other drives.
    rotational: bool,
    /// The host: its kernel, or its file.
    host: &'a str,
    /// Seed of all random numbers.
    seed: u64,
    /// True if the comparison was interrupted: runs or seeds are missing or incomplete.
    partial: bool,
    /// Bandwidth of one process of the first job alone, in bytes a second.
    single_stream_bytes_per_s: f64,
    /// Bandwidth of one process of each job alone, in bytes a second, in the order of the job file;
    /// null for a job that did not run alone.
    alone_bytes_per_s: &'a [Option<f64>],
    /// The verdict as one text.
    decided_by: String,
    /// The verdict: `outcome` and `mechanism`.
    verdict: &'a Verdict,
    /// Notes on parts of the job file that were not simulated.
    notes: &'a [String],
    /// The results over several seeds; null for one seed. The verdict is of all seeds, the other
    /// results are of the first.
    over_seeds: Option<&'a SeededComparison>,
    /// One run per elevator, in the order of the request.
    elevators: Vec<ElevatorRun<'a>>,
    /// fio's own keys, `jobs` among them, as in its `--output-format=json`: a job's `jobname` is
    /// `elevator/job`.
    #[serde(flatten)]
    fio: Report,
}

/// The run of one elevator.
#[derive(Serialize)]
struct ElevatorRun<'a> {
    /// Name of the elevator.
    name: &'a str,
    /// Bytes a second of all processes, from the first start to the last end.
    bytes_per_s: f64,
    /// Bandwidth as a share of the single stream's.
    of_single_stream: f64,
    /// The slowest process (`min`) and the fastest (`max`): bytes over its own runtime.
    process_bytes_per_s: Spread,
    /// Jain's index of fairness over the processes: 1 when all are equal, 1/n when one of n has
    /// all; null if processes ran one after another.
    jain: Option<f64>,
    /// Completion latencies of all requests: `n` of them, and in ns `mean`, `stddev`, `min`, `p50`,
    /// `p90`, `p99`, `p999`, `max`.
    latency_ns: Latency,
    /// From the first start to the last end, in ns.
    runtime_ns: u64,
    /// Phases of the drive's time in ns: `overhead`, `seek`, `rotation`, `transfer`, `idle`; the
    /// sum is the runtime.
    drive_ns: DriveTime,
    /// Requests that the drive served, after merging.
    drive_requests: u64,
    /// Number of times that the drive went from one process's request to another process's.
    turns: u64,
    /// Requests that the drive completed with an error, and dirty pages that were lost.
    failed_requests: u64,
    lost_pages: u64,
    /// True if the elevator divides the disk among control groups; other elevators treat all
    /// processes as one group.
    divides_by_groups: bool,
    /// Results of the control groups: `name` (the path of the group), `weight`, `bytes`,
    /// `bytes_per_s` and `share`. Empty if no job has a `cgroup`.
    groups: &'a [GroupRun],
    /// True if the run was interrupted.
    partial: bool,
    /// True if a job starves.
    starves: bool,
    /// The jobs, in the order of the job file.
    jobs: &'a [JobRun],
    /// The processes, in the order of the job file.
    processes: &'a [ProcessRun],
}

impl<'a> ComparisonDocument<'a> {
    /// The comparison as one JSON document: the answer of `hoistway compare --json`, whose keys
    /// docs/compare-json.md lists.
    pub fn new(comparison: &'a Comparison, judgement: &'a Judgement, context: &DocumentContext<'a>) -> Self {
        let maker = concat!("hoistway-", env!("CARGO_PKG_VERSION"));
        let runs = comparison.runs.iter().zip(&judgement.jobs).zip(&judgement.starves);
        ComparisonDocument {
            schema: 1,
            job: context.job,
            drive: &comparison.drive,
            drive_choice: context.defaults,
            rotational: comparison.rotational,
            host: context.host,
            seed: comparison.seed,
            partial: context.is_partial,
            single_stream_bytes_per_s: comparison.single_stream_bytes_per_s,
            alone_bytes_per_s: &comparison.alone_bytes_per_s,
            decided_by: judgement.verdict.text(),
            verdict: &judgement.verdict,
            notes: &comparison.notes,
            over_seeds: context.seeds,
            elevators: runs.map(|((run, jobs), starves)| ElevatorRun::new(run, jobs, *starves)).collect(),
            fio: Report { hoistway: None, ..comparison.fio_report(maker, 0, context.global_options) },
        }
    }
}

impl<'a> ElevatorRun<'a> {
    fn new(run: &'a Run, jobs: &'a [JobRun], starves: bool) -> ElevatorRun<'a> {
        ElevatorRun {
            name: &run.elevator,
            bytes_per_s: run.bytes_per_s,
            of_single_stream: run.of_single_stream,
            process_bytes_per_s: run.process_bytes_per_s,
            jain: run.jain,
            latency_ns: run.latency_ns,
            runtime_ns: run.runtime_ns,
            drive_ns: run.drive_ns,
            drive_requests: run.drive_requests,
            turns: run.turns,
            failed_requests: run.failed_requests,
            lost_pages: run.lost_pages,
            divides_by_groups: run.divides_by_groups,
            partial: run.is_partial,
            starves,
            jobs,
            groups: &run.groups,
            processes: &run.processes,
        }
    }
}
