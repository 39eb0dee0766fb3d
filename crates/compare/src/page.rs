//! The tables of the page, from the answer of a comparison.

use std::collections::HashMap;

use hoistway_report::{
    ComparePage, DriveTime, ElevatorResult, Fact, GroupRow, HeadTrack, JobResult, JobRow, LatencySummary,
    PROCESSES_MAX, PercentileLatency, ProcessBandwidth, Slice, SyncSummary,
};
use hoistway_sim::{Comparison, GroupRun, Latency, ProcessRun, Run, SliceKind};

use crate::{JobRun, Judgement, KERNEL_SCHEDULERS, SyncLatency, scheduler_name};

/// The name of the kernel's own requests (write-back), which belong to no process of the job file.
const KERNEL: &str = "write-back";

/// The page of a comparison; `drive` describes the drive, `host` names the simulated host, and
/// `settings` lists the tunables that differ from their defaults.
pub fn page(
    comparison: &Comparison,
    judgement: &Judgement,
    job: &str,
    drive: &str,
    host: &str,
    settings: &[String],
) -> ComparePage {
    let processes = Processes::of(&comparison.runs);
    let mut notes = comparison.notes.clone();
    if processes.left_out > 0 {
        notes
            .push(format!("{} processes beyond the first {PROCESSES_MAX} are in the table alone.", processes.left_out));
    }
    let window_ns = window_ns(&comparison.runs);
    ComparePage {
        command: "hoistway compare".to_owned(),
        title: format!("{job} on {}", comparison.drive),
        subtitle: format!("{} elevators, the same workload, the same seed", comparison.runs.len()),
        facts: facts(comparison, job, drive, host, settings),
        verdict: judgement.verdict.text(),
        notes,
        single_stream_bytes_per_s: comparison.single_stream_bytes_per_s,
        window_ns,
        elevators: comparison
            .runs
            .iter()
            .zip(&judgement.starves)
            .zip(&judgement.jobs)
            .map(|((run, starves), jobs)| ElevatorResult {
                starves: *starves,
                sync: syncs(jobs),
                ..elevator(run, &processes, window_ns)
            })
            .collect(),
        processes: processes.names,
        groups: groups(&comparison.runs),
        jobs: jobs(&judgement.jobs),
        solid_state: !comparison.rotational,
        tables: Vec::new(),
    }
}

/// The syncs of the slowest of these jobs.
fn syncs(jobs: &[JobRun]) -> Option<SyncSummary> {
    SyncLatency::of_slowest(jobs).map(|SyncLatency { p99_ns, max_ns }| SyncSummary { p99_ns, max_ns })
}

/// The rows of the jobs; none for a single job.
fn jobs(runs: &[Vec<JobRun>]) -> Vec<JobRow> {
    let named = runs.first().filter(|jobs| jobs.len() > 1).map_or(&[][..], Vec::as_slice);
    let result = |job: &JobRun| JobResult {
        bytes_per_s: job.bytes_per_s,
        slowest_bytes_per_s: job.process_bytes_per_s.min,
        p99_ns: job.latency_ns.p99,
        max_ns: job.latency_ns.max,
        sync: syncs(std::slice::from_ref(job)),
        starves: job.starved.is_some(),
    };
    let row = |(index, job): (usize, &JobRun)| JobRow {
        name: job.name.clone(),
        processes: job.processes,
        results: runs.iter().map(|jobs| jobs.get(index).map(result).unwrap_or_default()).collect(),
    };
    named.iter().enumerate().map(row).collect()
}

/// The groups of the job file, which are the same in every run.
fn groups(runs: &[Run]) -> Vec<GroupRow> {
    let named = runs.first().map_or(&[][..], |run| &run.groups);
    let row = |(place, group): (usize, &GroupRun)| GroupRow {
        name: group.name.clone(),
        weight: group.weight.into(),
        shares: runs.iter().map(|run| run.groups.get(place).map_or(0.0, |group| group.share)).collect(),
    };
    named.iter().enumerate().map(row).collect()
}

fn facts(comparison: &Comparison, job: &str, drive: &str, host: &str, settings: &[String]) -> Vec<Fact> {
    let fact = |label: &str, value: String| Fact { label: label.to_owned(), value };
    let mut facts = vec![
        fact("job file", job.to_owned()),
        fact("drive", format!("{}: {drive}", comparison.drive)),
        fact("host", host.to_owned()),
        fact("seed", comparison.seed.to_string()),
        fact("made by", concat!("hoistway ", env!("CARGO_PKG_VERSION")).to_owned()),
    ];
    if !settings.is_empty() {
        facts.push(fact("set", settings.join(", ")));
    }
    facts
}

/// The processes with their numbers on the page.
struct Processes {
    names: Vec<String>,
    /// Number of each process id that the page shows.
    of_pid: HashMap<u32, u32>,
    /// Number of the requests that belong to no process.
    kernel: Option<u32>,
    left_out: usize,
}

impl Processes {
    /// Numbers the processes of the first run; every run has the same processes.
    fn of(runs: &[Run]) -> Processes {
        let processes = runs.first().map_or(&[][..], |run| &run.processes);
        let shown = &processes[..processes.len().min(PROCESSES_MAX - 1)];
        let levels_differ =
            processes.windows(2).any(|two| (two[0].prioclass, two[0].prio) != (two[1].prioclass, two[1].prio));
        let mut clones: HashMap<usize, u32> = HashMap::new();
        let mut names: Vec<String> = Vec::new();
        for process in shown {
            let clone = clones.entry(process.job).or_default();
            let level = if levels_differ { format!(" (priority {})", process.prio) } else { String::new() };
            names.push(format!("{}.{clone}{level}", process.name));
            *clone += 1;
        }
        let of_pid: HashMap<u32, u32> = shown.iter().map(|process| process.pid).zip(0..).collect();
        let left_out = processes.len() - shown.len();
        let foreign =
            left_out == 0 && runs.iter().flat_map(|run| &run.head).any(|sample| !of_pid.contains_key(&sample.pid));
        let kernel = foreign.then(|| {
            names.push(KERNEL.to_owned());
            shown.len() as u32
        });
        Processes { names, of_pid, kernel, left_out }
    }

    fn number(&self, pid: u32) -> Option<u32> {
        self.of_pid.get(&pid).copied().or(self.kernel)
    }
}

fn elevator(run: &Run, processes: &Processes, window_ns: u64) -> ElevatorResult {
    let Latency { mean, stddev, p50, p99, max, .. } = run.latency_ns;
    let drive = &run.drive_ns;
    ElevatorResult {
        name: run.elevator.clone(),
        is_current: is_current(&run.elevator),
        bytes_per_s: run.bytes_per_s,
        of_single_stream: Some(run.of_single_stream),
        divides_by_groups: run.divides_by_groups,
        starves: false,
        sync: None,
        process_min_bytes_per_s: run.process_bytes_per_s.min,
        process_max_bytes_per_s: run.process_bytes_per_s.max,
        jain: run.jain,
        latency: LatencySummary { mean_ns: mean, stddev_ns: stddev, p50_ns: p50, p99_ns: p99, max_ns: max },
        runtime_ns: run.runtime_ns,
        drive: DriveTime {
            seek_ns: drive.seek,
            rotation_ns: drive.rotation,
            transfer_ns: drive.transfer,
            overhead_ns: drive.overhead,
            idle_ns: drive.idle,
        },
        percentiles: percentiles(run),
        bandwidth: bandwidth(run, processes, window_ns),
        head: head(run, processes),
        requests: run.head.len() as u64,
        slices: slices(run, processes),
    }
}

/// Returns true if current kernels offer the elevator of a run, which may be named with tunables.
fn is_current(name: &str) -> bool {
    let elevator = name.split_whitespace().next();
    KERNEL_SCHEDULERS.into_iter().any(|kind| [kind.info().name, scheduler_name(kind)].map(Some).contains(&elevator))
}

fn percentiles(run: &Run) -> Vec<PercentileLatency> {
    let ends = |percent, latency_ns| std::iter::once((percent, latency_ns));
    let points = ends(0.0, run.latency_ns.min)
        .chain(run.latency_percentiles_ns.iter().copied())
        .chain(ends(100.0, run.latency_ns.max));
    points.map(|(percentile, latency_ns)| PercentileLatency { percentile, latency_ns }).collect()
}

/// Minimum number of windows of a run, if that many were recorded.
const WINDOWS_MIN: u64 = 24;

/// Rounds of slices in a window: with fewer, the number of turns in a window varies too much.
const ROUNDS: u64 = 2;

/// The window length of the page: the longest of the jobs' windows, multiplied until it has room
/// for [`ROUNDS`] slices of every process under each elevator. Shorter windows would show who has
/// the slice, and windows of about that time would alias with it.
fn window_ns(runs: &[Run]) -> u64 {
    let recorded =
        runs.iter().flat_map(|run| &run.processes).map(|process| process.window_ns).max().unwrap_or(1).max(1);
    let round_ns = runs.iter().filter_map(|run| round_ns(&run.slices)).max().unwrap_or(0);
    let longest_ns = runs.iter().map(|run| run.runtime_ns).max().unwrap_or(0);
    let most = (longest_ns / WINDOWS_MIN / recorded).max(1);
    recorded.saturating_mul(round_ns.saturating_mul(ROUNDS).div_ceil(recorded).clamp(1, most))
}

/// The time in ns between the starts of two successive slices of a process: nine tenths of the time
/// of all processes are in rounds of at most this length. `None` without a process with two slices.
fn round_ns(slices: &[hoistway_sim::Slice]) -> Option<u64> {
    let mut last_start: HashMap<u32, u64> = HashMap::new();
    let mut between: Vec<u64> = Vec::new();
    let mut served = None;
    for slice in slices.iter().filter(|slice| slice.kind == SliceKind::Service) {
        // A slice that continues after idling belongs to the turn that it continues.
        if served.replace(slice.pid) != Some(slice.pid)
            && let Some(before) = last_start.insert(slice.pid, slice.start_ns)
        {
            between.push(slice.start_ns.saturating_sub(before));
        }
    }
    between.sort_unstable();
    let bound = between.iter().map(|ns| u128::from(*ns)).sum::<u128>() * 9 / 10;
    let mut covered = 0;
    between.into_iter().find(|ns| {
        covered += u128::from(*ns);
        covered >= bound
    })
}

fn bandwidth(run: &Run, processes: &Processes, window_ns: u64) -> Vec<ProcessBandwidth> {
    let series = run.processes.iter().filter_map(|process| {
        let number = processes.of_pid.get(&process.pid).copied()?;
        Some(ProcessBandwidth { process: number, bytes_per_s: rates(process, window_ns) })
    });
    series.collect()
}

/// A process's rate in the page's windows, which start with the world; the process's own windows
/// start with the process.
fn rates(process: &ProcessRun, window_ns: u64) -> Vec<f64> {
    let end_ns = process.start_ns.saturating_add(process.runtime_ns);
    let mut bytes = vec![0u64; usize::try_from(end_ns.div_ceil(window_ns)).unwrap_or(0)];
    let mut at_ns = process.start_ns;
    for window in &process.windows {
        let index = usize::try_from(at_ns / window_ns).unwrap_or(usize::MAX);
        // Requests that complete exactly at the end belong to the last window.
        let last = bytes.len().saturating_sub(1);
        if let Some(sum) = bytes.get_mut(index.min(last)) {
            *sum += window.bytes;
        }
        at_ns = at_ns.saturating_add(process.window_ns);
    }
    let count = bytes.len();
    let mut rates: Vec<f64> = bytes.iter().map(|bytes| *bytes as f64 * 1e9 / window_ns as f64).collect();
    // The end cuts the last window short: less than a quarter is dropped, more is scaled up to a
    // whole window.
    let last_ns = end_ns % window_ns;
    if count > 1 && last_ns > 0 {
        match rates.last_mut() {
            Some(rate) if last_ns >= window_ns / 4 => *rate *= window_ns as f64 / last_ns as f64,
            _ => rates.truncate(count - 1),
        }
    }
    rates
}

fn head(run: &Run, processes: &Processes) -> Vec<HeadTrack> {
    let mut tracks: Vec<HeadTrack> =
        (0..processes.names.len() as u32).map(|process| HeadTrack { process, ..HeadTrack::default() }).collect();
    for sample in &run.head {
        let Some(track) = processes.number(sample.pid).and_then(|number| tracks.get_mut(number as usize)) else {
            continue;
        };
        track.time_ns.push(sample.at_ns);
        track.sector.push(sample.sector);
    }
    tracks.retain(|track| !track.time_ns.is_empty());
    tracks
}

/// The slices of queues, if the elevator has slices; idle periods within them are not drawn.
fn slices(run: &Run, processes: &Processes) -> Option<Vec<Slice>> {
    let turns = run.slices.iter().filter(|slice| slice.kind == SliceKind::Service);
    let mut slices: Vec<Slice> = turns
        .filter_map(|slice| {
            let process = processes.number(slice.pid)?;
            Some(Slice { process, start_ns: slice.start_ns, end_ns: slice.end_ns })
        })
        .collect();
    slices.sort_by_key(|slice| slice.start_ns);
    (!slices.is_empty()).then_some(slices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_the_time_until_a_process_is_served_again() {
        let slice = |pid, start_ns, kind| hoistway_sim::Slice { pid, start_ns, end_ns: start_ns + 80, kind };
        let rounds: Vec<_> = (0..30).map(|turn| slice(turn % 3, u64::from(turn) * 100, SliceKind::Service)).collect();
        assert_eq!(round_ns(&rounds), Some(300));
        // Many short rounds at the start do not shorten the windows of the long ones.
        let many = (0..30).map(|turn| slice(turn % 3, u64::from(turn), SliceKind::Service));
        let late = rounds.iter().map(|slice| hoistway_sim::Slice { start_ns: slice.start_ns + 100, ..*slice });
        assert_eq!(round_ns(&many.chain(late).collect::<Vec<_>>()), Some(300));
        let continued = [0, 100, 200, 300].map(|start_ns| slice(1, start_ns, SliceKind::Service));
        assert_eq!(round_ns(&continued), None, "one turn, continued");
        assert_eq!(round_ns(&[]), None);
    }

    #[test]
    fn elevators_of_current_kernels_are_known_with_their_tunables() {
        assert!(
            is_current("bfq")
                && is_current("bfq slice_idle=0")
                && is_current("none")
                && is_current("noop")
                && !is_current("bfq-v0")
                && !is_current("")
        );
    }
}
