//! The JSON document of `hoistway compare --json`.

use hoistway_fio::results::Report;
use hoistway_sim::{Comparison, DriveTime, GroupRun, Latency, ProcessRun, Run, Spread};
use serde::Serialize;

use super::Workload;

/// The whole document. The same request gives the same document, byte for byte: the keys that fio has for the time of day
/// hold the time at which the simulated world begins, 1 January 1970.
#[derive(Serialize)]
pub struct Document<'a> {
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
    elevators: Vec<Elevator<'a>>,
    /// fio's own keys, `jobs` among them, as in its `--output-format=json`: a job's `jobname` is `elevator/job`.
    #[serde(flatten)]
    fio: Report,
}

/// One elevator's run.
#[derive(Serialize)]
struct Elevator<'a> {
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

impl<'a> Document<'a> {
    /// The document of one comparison.
    pub fn new(comparison: &'a Comparison, workload: &'a Workload) -> Document<'a> {
        let maker = concat!("hoistway-", env!("CARGO_PKG_VERSION"));
        Document {
            schema: 1,
            job: &workload.job,
            drive: &comparison.drive,
            seed: comparison.seed,
            single_stream_bytes_per_s: comparison.single_stream_bytes_per_s,
            decided_by: &comparison.decided_by,
            notes: &comparison.notes,
            elevators: comparison.runs.iter().map(Elevator::new).collect(),
            fio: Report { hoistway: None, ..comparison.fio_report(maker, 0, &workload.global_options) },
        }
    }
}

impl<'a> Elevator<'a> {
    fn new(run: &'a Run) -> Elevator<'a> {
        Elevator {
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
