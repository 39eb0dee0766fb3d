//! The requests of a job file without a host: for comparisons with fio's own requests.

use std::sync::Arc;

use hoistway_fio::JobFile;
use hoistway_workload::{Generator, Region};

use super::plan::WorkloadPlan;
use crate::error::SimError;

/// The files of a job file, and the processes that work on them.
#[derive(Debug)]
pub struct PlannedRequests {
    /// Name and size in bytes of each file; the files exist before the jobs start.
    pub files: Vec<(String, u64)>,
    /// One process for each clone of each job, in the order of the job file.
    pub processes: Vec<PlannedProcess>,
}

/// A process of a job file.
#[derive(Debug)]
pub struct PlannedProcess {
    /// Index of the job in the job file.
    pub job: usize,
    /// The process's files by their index in [`PlannedRequests::files`], and the part of each that
    /// it works on. [`hoistway_workload::IoUnit::file`] is an index of this list.
    pub files: Vec<(usize, Region)>,
    /// The generator of the process's requests, as a simulation creates it.
    pub generator: Generator,
}

impl PlannedRequests {
    /// Plans the processes of these jobs on a drive of `capacity_bytes` bytes.
    ///
    /// # Errors
    /// The errors of a simulation for jobs that cannot run.
    pub fn new(jobs: &JobFile, capacity_bytes: u64, seed: u64) -> Result<PlannedRequests, SimError> {
        let plan = WorkloadPlan::new(jobs, capacity_bytes, seed)?;
        let files = plan.files.into_iter().map(|file| (file.name, file.bytes)).collect();
        let processes = plan.processes.into_iter().map(|process| {
            let regions: Vec<Region> = process.files.iter().map(|(_, region)| *region).collect();
            let job = Arc::new(jobs.jobs[process.job].clone());
            PlannedProcess {
                job: process.job,
                generator: Generator::new(job, &regions, process.io_bytes, process.seed, process.number),
                files: process.files.iter().map(|(file, region)| (*file as usize, *region)).collect(),
            }
        });
        Ok(PlannedRequests { processes: processes.collect(), files })
    }
}
