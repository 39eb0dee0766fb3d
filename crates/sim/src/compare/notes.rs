//! Notes of a comparison: parts of the job file that were not simulated, failed I/O, refused
//! reservations.

use hoistway_core::ReserveError;
use hoistway_fio::Job;

use super::groups;
use super::request::CompareRequest;
use crate::world::{self, WorldResult};

/// Notes on the parts of the job file that are not simulated.
pub(super) fn of_jobs(request: &CompareRequest) -> Vec<String> {
    let jobs = &request.jobs;
    let ignored = jobs.ignored.iter().map(|option| {
        format!("{}:{}: `{}` is accepted and changes nothing here", option.file, option.line, option.name)
    });
    let any = |has: fn(&hoistway_core::Info) -> bool| request.elevators.iter().any(|kind| has(kind.info()));
    let unknown = groups::notes(jobs, any(|info| info.groups), any(|info| info.reservations));
    let waiting = jobs.jobs.iter().filter(|job| !job.direct && job.effective_iodepth() > 1).map(|job| {
        format!(
            "{}:{}: job `{}`: requests through the page cache are made one at a time, iodepth={} or not",
            job.file, job.line, job.name, job.iodepth
        )
    });
    ignored.chain(unknown).chain(waiting).collect()
}

/// The note on requests that the drive failed.
pub(super) fn failures(name: &str, outcome: &WorldResult) -> Option<String> {
    let world::Failures { requests, pages_lost } = outcome.failures;
    if requests == 0 {
        return None;
    }
    let stopped = outcome.processes.iter().filter(|process| process.failed_ns.is_some()).count();
    let first =
        outcome.processes.iter().filter_map(|process| Some((process.failed_ns?, process))).min_by_key(|first| first.0);
    let first = first.map_or(String::new(), |(at_ns, process)| {
        format!(", first {} of job `{}` at {:.3} s", process.plan.pid, process.job.name, at_ns as f64 / 1e9)
    });
    let lost = if pages_lost > 0 { format!("; {pages_lost} dirty pages were lost") } else { String::new() };
    Some(format!(
        "{name}: the drive answered {requests} requests with an error; {stopped} processes stopped with EIO{first}{lost}"
    ))
}

/// Notes on reservations that an elevator refused, one per job; the processes ran without them.
pub(super) fn refusals(name: &str, outcome: &WorldResult) -> Vec<String> {
    let mut jobs: Vec<(usize, u32, ReserveError)> = Vec::new();
    for (pid, refusal) in &outcome.refused {
        let process = outcome.processes.iter().find(|process| process.plan.pid == *pid);
        let Some(job) = process.map(|process| process.plan.job) else { continue };
        match jobs.iter_mut().find(|(known, ..)| *known == job) {
            Some((_, count, _)) => *count += 1,
            None => jobs.push((job, 1, *refusal)),
        }
    }
    let note = |(index, count, refusal): (usize, u32, ReserveError)| {
        let process = outcome.processes.iter().find(|process| process.plan.job == index)?;
        let Job { file, line, name: job, .. } = &*process.job;
        let whose = if count == 1 { "a process".to_owned() } else { format!("{count} processes") };
        Some(format!(
            "{file}:{line}: job `{job}`: {name} refuses the reservation of {whose}, best effort then: {refusal}"
        ))
    };
    jobs.into_iter().filter_map(note).collect()
}
