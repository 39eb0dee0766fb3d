//! Control groups in a comparison: the result of each group, and notes.

use hoistway_core::Kind;
use hoistway_fio::{Job, JobFile};

use super::answer::{GroupRun, ProcessRun};
use crate::measure::bytes_per_s;
use crate::settings::group_switch;
use crate::workload::groups::weight;

/// Notes on reservations and groups that no compared elevator supports, one per job.
pub(super) fn notes(jobs: &JobFile, divides: bool, reserves: bool) -> Vec<String> {
    let note = |job: &Job, what: &str| format!("{}:{}: job `{}`: {what}", job.file, job.line, job.name);
    let grouped = jobs.jobs.iter().filter(|job| job.cgroup.path.is_some() && !divides);
    let reserving = jobs.jobs.iter().filter(|job| job.hoistway.reserve.is_some() && !reserves);
    grouped
        .map(|job| note(job, "none of these elevators has control groups: cgroup changes nothing"))
        .chain(
            reserving
                .map(|job| note(job, "none of these elevators takes reservations: hoistway_reserve changes nothing")),
        )
        .collect()
}

/// The note on a tunable that would switch control groups on, if jobs use groups and the elevator
/// supports them.
pub(super) fn note_of_switch(elevator: Kind, divides: bool, jobs: &JobFile) -> Option<String> {
    let switch =
        group_switch(elevator).filter(|_| !divides && jobs.jobs.iter().any(|job| job.cgroup.path.is_some()))?;
    let name = elevator.info().name;
    Some(format!("{name} divides the disk among groups with --set {name}.{}=1", switch.name))
}

/// Computes the results of the job file's groups.
pub(super) fn group_runs(jobs: &JobFile, processes: &[ProcessRun]) -> Vec<GroupRun> {
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
                bytes_per_s: bytes_per_s(bytes, end_ns.saturating_sub(start_ns)),
                share: if all > 0.0 { moved / all } else { 0.0 },
                name: group.path,
            }
        })
        .collect()
}

fn end_ns(process: &ProcessRun) -> u64 {
    process.start_ns.saturating_add(process.runtime_ns)
}

/// The time in which all processes ran; all time if that is shorter than a window, the resolution
/// of byte counts.
fn contended(processes: &[ProcessRun]) -> (u64, u64) {
    let from_ns = processes.iter().map(|process| process.start_ns).max().unwrap_or(0);
    let until_ns = processes.iter().map(end_ns).min().unwrap_or(0);
    let window_ns = processes.iter().map(|process| process.window_ns).max().unwrap_or(0);
    if until_ns >= from_ns.saturating_add(window_ns) { (from_ns, until_ns) } else { (0, u64::MAX) }
}

/// Bytes that a process moved in this time; a window that overlaps in part counts in proportion.
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
