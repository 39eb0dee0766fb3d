//! A job, run by hoistway: its requests from the workload, and its figures from a simulation in
//! virtual time on a drive of negligible cost.

use std::sync::atomic::AtomicBool;

use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_fio::Job;
use hoistway_sim::{CompareRequest, HostConfig, PlannedRequests, compare};
use hoistway_workload::{Region, Work};

use crate::case::Case;
use crate::figures::{Process, Request};

/// Requests after which a sequence is cut.
pub const REQUESTS_MAX: usize = 20_000;
/// Bytes of the drive.
const CAPACITY_BYTES: u64 = 1 << 40;

/// What hoistway did for a job.
#[derive(Debug)]
pub struct Ours {
    /// The job, as it was parsed.
    pub job: Job,
    /// Names and sizes of the files.
    pub files: Vec<(String, u64)>,
    /// The names of the files of the first process, and the part that it works on.
    pub regions: Vec<(String, Region)>,
    /// The requests of the first process, without a clock.
    pub requests: Vec<Request>,
    /// The figures of all processes.
    pub processes: Vec<Process>,
}

/// Runs a job.
///
/// # Errors
/// The message with which hoistway refuses the job.
pub fn run(case: &Case) -> Result<Ours, String> {
    let none = |path: &str, _: &str| Err(std::io::Error::other(path.to_owned()));
    let jobs = hoistway_fio::parse(&case.text(), "job.fio", &|_| None, &none).map_err(|faults| faults.to_string())?;
    let mut planned = PlannedRequests::new(&jobs, CAPACITY_BYTES, case.seed).map_err(|error| error.to_string())?;
    let job = jobs.jobs[0].clone();
    let first = planned.processes.swap_remove(0);
    let regions = first.files.iter().map(|(file, region)| (planned.files[*file].0.clone(), *region)).collect();
    let mut generator = first.generator;
    let mut requests = Vec::new();
    while requests.len() < REQUESTS_MAX {
        // A sync takes the turn of a file.
        if generator.next_sync().is_some() {
            generator.completed(Work::Sync);
        }
        match generator.next() {
            Some(unit) => {
                requests.push(Request::new(unit.direction, unit.file, unit.offset, unit.bytes));
                generator.completed(Work::Request);
            }
            None if generator.begin_verification() || generator.next_pass().is_some() => {}
            None => break,
        }
    }
    let request = CompareRequest {
        jobs,
        profile: Profile::builtin("null").ok_or("there is no null drive")?,
        host: HostConfig::default(),
        elevators: vec![Kind::Noop],
        settings: Vec::new(),
        seed: case.seed,
        record: false,
    };
    let comparison = compare(&request, &|_| {}, &AtomicBool::new(false)).map_err(|error| error.to_string())?;
    let report = comparison.fio_report("hoistway", 0, &[]);
    let processes = report.jobs.iter().map(Process::of).collect();
    Ok(Ours { job, files: planned.files, regions, requests, processes })
}
