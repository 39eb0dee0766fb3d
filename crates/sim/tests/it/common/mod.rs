//! Small worlds for tests: a job file in a string, a drive, one elevator.

#![allow(dead_code)]

use std::sync::atomic::AtomicBool;

use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_sim::{CompareRequest, Comparison, HostConfig, Run, SimError, compare};

/// A request for these jobs on the drive of 2006, under these elevators.
pub fn request(jobs: &str, elevators: &[Kind]) -> CompareRequest {
    let jobs = hoistway_fio::parse(jobs, "test.fio", &|_| None, &|_, _| unreachable!("nothing is included"));
    CompareRequest {
        jobs: jobs.expect("a valid job file"),
        profile: Profile::builtin("sata-7200-2006").expect("a built-in profile"),
        host: HostConfig::default(),
        elevators: elevators.to_vec(),
        settings: Vec::new(),
        seed: 1,
        record: false,
    }
}

/// Runs a comparison without progress reports.
pub fn run(request: &CompareRequest) -> Result<Comparison, SimError> {
    compare(request, &|_| {}, &AtomicBool::new(false))
}

/// The run of these jobs under noop.
pub fn noop(jobs: &str) -> Run {
    with_host(jobs, HostConfig::default())
}

/// The run of these jobs under noop, on this host.
pub fn with_host(jobs: &str, host: HostConfig) -> Run {
    let request = CompareRequest { host, ..request(jobs, &[Kind::Noop]) };
    run(&request).expect("a run").runs.remove(0)
}

/// A run's runtime in seconds.
pub fn seconds(run: &Run) -> f64 {
    run.runtime_ns as f64 / 1e9
}

/// Bytes moved by all processes.
pub fn bytes(run: &Run) -> u64 {
    run.processes.iter().map(|process| process.bytes).sum()
}
