//! Notes of a comparison: parts of the job file that were not simulated, failed I/O, refused
//! reservations.

use hoistway_core::ReserveError;
use hoistway_fio::Job;

use super::groups;
use super::request::CompareRequest;
use crate::world::{self, Ending, WorldResult};

/// Notes on the parts of the job file that are not simulated.
pub(super) fn of_jobs(request: &CompareRequest) -> Vec<String> {
    let jobs = &request.jobs;
    let any = |has: fn(&hoistway_core::Info) -> bool| request.elevators.iter().any(|kind| has(kind.info()));
    let unknown = groups::notes(jobs, any(|info| info.groups), any(|info| info.reservations));
    let waiting =
        jobs.jobs.iter().filter(|job| !job.cache.direct && job.submission.effective_iodepth() > 1).map(|job| {
            format!(
                "{}:{}: job `{}`: requests through the page cache are made one at a time, iodepth={} or not",
                job.file, job.line, job.name, job.submission.iodepth
            )
        });
    jobs.notes().into_iter().chain(unknown).chain(waiting).collect()
}

/// Notes on jobs that a check ended, one per job: a rate that is too low or steady, a latency, a
/// queue depth.
pub(super) fn endings(name: &str, outcome: &WorldResult) -> Vec<String> {
    let mut seen: Vec<(usize, Ending)> = Vec::new();
    for process in &outcome.processes {
        let Some(ending) = process.limits.ending else { continue };
        if !seen.contains(&(process.plan.job, ending)) {
            seen.push((process.plan.job, ending));
        }
    }
    let note = |(index, ending): (usize, Ending)| {
        let process = outcome.processes.iter().find(|process| process.plan.job == index)?;
        let Job { file, line, name: job, latency_target, .. } = &*process.job;
        let seconds = (process.end_ns.saturating_sub(process.start_ns)) as f64 / 1e9;
        let text = match ending {
            Ending::TooSlow => format!("ended after {seconds:.1} s: slower than rate_min or rate_iops_min"),
            Ending::TooLate => format!("ended after {seconds:.1} s: a request took longer than max_latency"),
            Ending::Steady => format!("ended after {seconds:.1} s: its rate is steady"),
            Ending::Depth(0) => format!("no queue depth has a latency within {} us", latency_target.target_ns / 1000),
            Ending::Depth(depth) => format!("a queue depth of {depth} is within the latency_target"),
        };
        Some(format!("{file}:{line}: job `{job}` under {name}: {text}"))
    };
    seen.into_iter().filter_map(note).collect()
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
