//! Figures of a run that several publications measure.

use hoistway_sim::{ProcessRun, Run};

/// The processes of a job.
pub fn processes<'a>(run: &'a Run, job: &'a str) -> impl Iterator<Item = &'a ProcessRun> {
    run.processes.iter().filter(move |process| process.name == job)
}

/// Bytes that the processes of a job moved.
pub fn job_bytes(run: &Run, job: &str) -> f64 {
    processes(run, job).map(|process| process.bytes as f64).sum()
}

/// Bytes that all processes moved.
pub fn total_bytes(run: &Run) -> u64 {
    run.processes.iter().map(|process| process.bytes).sum()
}
