//! The JSON document of a comparison.

use hoistway_fio::results::Report;
use serde::Serialize;

use super::answer::{Comparison, GroupRun, ProcessRun, Run, Spread};
use crate::measure::{DriveTime, Latency};

/// The whole document. The same request gives the same document, byte for byte: the keys that fio has for the time of day
/// hold the time at which the simulated world begins, 1 January 1970.
#[derive(Serialize)]
pub struct ComparisonDocument<'a> {
    /// The version of this form: 1. Keys may be added within a version; none is taken away or changes its meaning.
    schema: u32,
    /// The job file, as it was named.
    job: &'a str,
    /// The drive's name.
    drive: &'a str,
    /// Where all random numbers began.
    seed: u64,
    /// What one process of the first job gets alone, in bytes a second.
    single_stream_bytes_per_s: f64,
    /// What decided between the elevators, in a sentence.
    decided_by: &'a str,
    /// What of the job file was not simulated.
    notes: &'a [String],
    /// A run for each elevator, in the order asked for.
    elevators: Vec<ElevatorRun<'a>>,
    /// fio's own keys, `jobs` among them, as in its `--output-format=json`: a job's `jobname` is `elevator/job`.
    #[serde(flatten)]
    fio: Report,
}

/// One elevator's run.
#[derive(Serialize)]
struct ElevatorRun<'a> {
    /// The elevator.
    name: &'a str,
    /// All bytes, over the time from the first start to the last end.
    bytes_per_s: f64,
    /// That as a part of the single stream's: 0 for nothing, 1 for all of it.
    of_single_stream: f64,
    /// The slowest process (`min`) and the fastest (`max`): bytes over its own runtime.
    process_bytes_per_s: Spread,
    /// Jain's index over the same: 1 when all are equal, 1/n when one of n has all.
    jain: f64,
    /// Completion latencies of all requests: `n` of them, and in ns `mean`, `stddev`, `min`, `p50`, `p90`, `p99`, `p999`, `max`.
    latency_ns: Latency,
    /// From the first start to the last end, in ns.
    runtime_ns: u64,
    /// Where the drive's time went, in ns: `overhead`, `seek`, `rotation`, `transfer`, `idle`; the sum is the runtime.
    drive_ns: DriveTime,
    /// Requests that the drive served, after merging.
    drive_requests: u64,
    /// How often the drive went from one process's requests to another's.
    turns: u64,
    /// Requests that the drive answered with an error, and dirty pages that could not be written and were lost.
    failed_requests: u64,
    lost_pages: u64,
    /// Whether the elevator divides the disk among control groups; the others take all processes as of one.
    divides_by_groups: bool,
    /// What each control group of the job file got: `name` (the names on the way to it, with slashes), `weight`, `bytes`, `bytes_per_s`
    /// and `share`, its part of what all processes moved while all of them ran. Empty when jobs have no `cgroup`.
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
