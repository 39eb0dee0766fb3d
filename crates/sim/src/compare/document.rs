//! The JSON document of a comparison.

use hoistway_fio::results::Report;
use serde::Serialize;

use super::answer::{Comparison, GroupRun, ProcessRun, Run, Spread};
use crate::measure::{DriveTime, Latency};

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
    /// Seed of all random numbers.
    seed: u64,
    /// Bandwidth of one process of the first job alone, in bytes a second.
    single_stream_bytes_per_s: f64,
    /// The decisive difference between the elevators, in a sentence.
    decided_by: &'a str,
    /// Notes on parts of the job file that were not simulated.
    notes: &'a [String],
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
    /// all.
    jain: f64,
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
    /// The processes, in the order of the job file.
    processes: &'a [ProcessRun],
}

impl Comparison {
    /// The comparison as one JSON document: the answer of `hoistway compare --json`, whose keys
    /// docs/compare-json.md lists.
    ///
    /// `job` is the name of the job file; `global_options` are the options of its global sections,
    /// [`JobFile::global_options`](hoistway_fio::JobFile::global_options).
    pub fn document<'a>(&'a self, job: &'a str, global_options: &[(String, String)]) -> ComparisonDocument<'a> {
        let maker = concat!("hoistway-", env!("CARGO_PKG_VERSION"));
        ComparisonDocument {
            schema: 1,
            job,
            drive: &self.drive,
            seed: self.seed,
            single_stream_bytes_per_s: self.single_stream_bytes_per_s,
            decided_by: &self.decided_by,
            notes: &self.notes,
            elevators: self.runs.iter().map(ElevatorRun::new).collect(),
            fio: Report { hoistway: None, ..self.fio_report(maker, 0, global_options) },
        }
    }
}

impl<'a> ElevatorRun<'a> {
    fn new(run: &'a Run) -> ElevatorRun<'a> {
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
            groups: &run.groups,
            processes: &run.processes,
        }
    }
}
