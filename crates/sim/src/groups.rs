//! Control groups: the tree that jobs ask for, and what each group got.

use hoistway_core::{GroupWeights, Kind, Reservation, Tunable};
use hoistway_fio::{Job, JobFile};

use crate::compare::ProcessRun;
use crate::error::SimError;

/// The tunables with which groups are switched on, in elevators that have them as an option: 1 is on.
const SWITCHES: [&str; 2] = ["groups", "key_type"];

/// The tunable with which an elevator's groups are switched on (1) and off (0); `None` if it has no groups, or has them always.
pub fn group_switch(elevator: Kind) -> Option<&'static Tunable> {
    let info = elevator.info();
    info.tunables.iter().find(|tunable| info.groups && SWITCHES.contains(&tunable.name))
}

/// A group of the job file, parents before their children.
#[derive(Clone, Debug)]
pub(crate) struct GroupPlan {
    /// The parent: 0 is the root, n is number n - 1 of the list.
    pub parent: usize,
    pub weights: GroupWeights,
}

/// The groups of a job file, and the place of each job's: 0 for the root.
pub(crate) fn plan(jobs: &JobFile) -> (Vec<GroupPlan>, Vec<usize>) {
    let groups = jobs.cgroups();
    let place = |path: &str| groups.iter().position(|group| group.path == path).map_or(0, |at| at + 1);
    let plans = groups.iter().map(|group| GroupPlan {
        parent: group.path.rsplit_once('/').map_or(0, |(parent, _)| place(parent)),
        weights: GroupWeights { weight: weight(group.weight), ..GroupWeights::default() },
    });
    let of_jobs = jobs.jobs.iter().map(|job| job.cgroup.as_deref().map_or(0, place)).collect();
    (plans.collect(), of_jobs)
}

/// The weight that a group has: what jobs say, or what the kernel gives.
fn weight(told: Option<u32>) -> u16 {
    let told = told.and_then(|weight| u16::try_from(weight).ok());
    told.unwrap_or(GroupWeights::DEFAULT).clamp(GroupWeights::MIN, GroupWeights::MAX)
}

/// What each clone of a job reserves.
pub(crate) fn reservation(job: &Job, request_bytes: u64) -> Result<Option<Reservation>, SimError> {
    let Some(bytes_per_second) = job.hoistway_reserve else { return Ok(None) };
    if bytes_per_second > Reservation::RATE_MAX {
        return Err(SimError::Job {
            file: job.file.clone(),
            line: job.line,
            job: job.name.clone(),
            problem: format!("hoistway_reserve is {bytes_per_second} bytes a second"),
            remedy: format!("at most {} can be reserved", Reservation::RATE_MAX),
        });
    }
    // What goes through the page cache comes in requests that read-ahead makes.
    let request_bytes = if job.direct { request_bytes } else { Reservation::REQUEST_DEFAULT };
    let request_bytes = request_bytes.clamp(512, Reservation::REQUEST_MAX);
    Ok(Some(Reservation { request_bytes, ..Reservation::of(bytes_per_second) }))
}

/// What became of reservations and groups that an elevator does not have; one note a job.
pub(crate) fn notes(jobs: &JobFile, divides: bool, reserves: bool) -> Vec<String> {
    let note = |job: &Job, what: &str| format!("{}:{}: job `{}`: {what}", job.file, job.line, job.name);
    let grouped = jobs.jobs.iter().filter(|job| job.cgroup.is_some() && !divides);
    let reserving = jobs.jobs.iter().filter(|job| job.hoistway_reserve.is_some() && !reserves);
    grouped
        .map(|job| note(job, "none of these elevators has control groups: cgroup changes nothing"))
        .chain(
            reserving
                .map(|job| note(job, "none of these elevators takes reservations: hoistway_reserve changes nothing")),
        )
        .collect()
}

/// How to switch groups on, where jobs have some and the elevator could.
pub(crate) fn note_of_switch(elevator: Kind, divides: bool, jobs: &JobFile) -> Option<String> {
    let switch = group_switch(elevator).filter(|_| !divides && jobs.jobs.iter().any(|job| job.cgroup.is_some()))?;
    let name = elevator.info().name;
    Some(format!("{name} divides the disk among groups when it is told to: --set {name}.{}=1", switch.name))
}

/// What a control group got in a run, its child groups included.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct GroupRun {
    /// The names on the way to it from the root.
    pub name: String,
    /// Its weight among its siblings, 1 to 1000.
    pub weight: u16,
    /// Bytes moved by its processes.
    pub bytes: u64,
    /// Those, over the time from the first of its processes' starts to the last of their ends.
    pub bytes_per_s: f64,
    /// Its part of what all processes moved, groups or not, while all of them ran: from the last start to the first end. Where that
    /// is no time to speak of, of the whole run. 0 to 1.
    pub share: f64,
}

/// What the groups of a job file got.
pub(crate) fn group_runs(jobs: &JobFile, processes: &[ProcessRun]) -> Vec<GroupRun> {
    let groups = jobs.cgroups();
    if groups.is_empty() {
        return Vec::new();
    }
    let (from_ns, until_ns) = contended(processes);
    let all: f64 = processes.iter().map(|process| bytes_between(process, from_ns, until_ns)).sum();
    groups
        .into_iter()
        .map(|group| {
            let below = format!("{}/", group.path);
            let is_in = |process: &&ProcessRun| {
                process.cgroup.as_ref().is_some_and(|path| *path == group.path || path.starts_with(&below))
            };
            let members = || processes.iter().filter(is_in);
            let bytes = members().map(|process| process.bytes).sum();
            let start_ns = members().map(|process| process.start_ns).min().unwrap_or(0);
            let end_ns = members().map(end_ns).max().unwrap_or(0);
            let moved: f64 = members().map(|process| bytes_between(process, from_ns, until_ns)).sum();
            GroupRun {
                weight: weight(group.weight),
                bytes,
                bytes_per_s: crate::compare::rate(bytes, end_ns.saturating_sub(start_ns)),
                share: if all > 0.0 { moved / all } else { 0.0 },
                name: group.path,
            }
        })
        .collect()
}

fn end_ns(process: &ProcessRun) -> u64 {
    process.start_ns.saturating_add(process.runtime_ns)
}

/// The time in which all processes ran, or all time: windows of bytes are too coarse for less than one of them.
fn contended(processes: &[ProcessRun]) -> (u64, u64) {
    let from_ns = processes.iter().map(|process| process.start_ns).max().unwrap_or(0);
    let until_ns = processes.iter().map(end_ns).min().unwrap_or(0);
    let window_ns = processes.iter().map(|process| process.window_ns).max().unwrap_or(0);
    if until_ns >= from_ns.saturating_add(window_ns) { (from_ns, until_ns) } else { (0, u64::MAX) }
}

/// The bytes that a process moved in this time; of a window that lies in it in part, that part.
fn bytes_between(process: &ProcessRun, from_ns: u64, until_ns: u64) -> f64 {
    let windows = process.windows.iter().zip(0u64..);
    let parts = windows.map(|(window, index)| {
        let begin_ns = process.start_ns.saturating_add(index.saturating_mul(process.window_ns));
        let end_ns = begin_ns.saturating_add(process.window_ns);
        let within_ns = end_ns.min(until_ns).saturating_sub(begin_ns.max(from_ns));
        window.bytes as f64 * within_ns as f64 / process.window_ns.max(1) as f64
    });
    parts.sum()
}
