//! The control groups and the reservations that the jobs of a job file ask for.

use hoistway_core::{GroupWeights, Reservation};
use hoistway_fio::{Job, JobFile};

use crate::error::SimError;

/// A control group of the job file.
#[derive(Clone, Debug)]
pub(crate) struct PlannedGroup {
    /// Index of the parent: 0 is the root, n is entry n - 1 of the list.
    pub parent: usize,
    pub weights: GroupWeights,
}

/// The groups of a job file, parents before their children, and the index of each job's group (0
/// for the root).
pub(crate) fn plan(jobs: &JobFile) -> (Vec<PlannedGroup>, Vec<usize>) {
    let groups = jobs.cgroups();
    let index_of = |path: &str| groups.iter().position(|group| group.path == path).map_or(0, |at| at + 1);
    let plans = groups.iter().map(|group| PlannedGroup {
        parent: group.path.rsplit_once('/').map_or(0, |(parent, _)| index_of(parent)),
        weights: GroupWeights { weight: weight(group.weight), ..GroupWeights::default() },
    });
    let of_jobs = jobs.jobs.iter().map(|job| job.cgroup.path.as_deref().map_or(0, index_of)).collect();
    (plans.collect(), of_jobs)
}

/// The weight of a group: the job file's, or the kernel's default.
pub(crate) fn weight(given: Option<u32>) -> u16 {
    let given = given.and_then(|weight| u16::try_from(weight).ok());
    given.unwrap_or(GroupWeights::DEFAULT).clamp(GroupWeights::MIN, GroupWeights::MAX)
}

/// The reservation of each clone of a job.
pub(crate) fn reservation(job: &Job, request_bytes: u64) -> Result<Option<Reservation>, SimError> {
    let Some(bytes_per_second) = job.hoistway.reserve else { return Ok(None) };
    if bytes_per_second > Reservation::RATE_MAX {
        return Err(SimError::Job {
            file: job.file.clone(),
            line: job.line,
            job: job.name.clone(),
            problem: format!("hoistway_reserve is {bytes_per_second} bytes a second"),
            remedy: format!("at most {} can be reserved", Reservation::RATE_MAX),
        });
    }
    // Requests through the page cache have the size that read-ahead gives them.
    let request_bytes = if job.cache.direct { request_bytes } else { Reservation::REQUEST_DEFAULT };
    let request_bytes = request_bytes.clamp(512, Reservation::REQUEST_MAX);
    Ok(Some(Reservation { request_bytes, ..Reservation::of(bytes_per_second) }))
}
