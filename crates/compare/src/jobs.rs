//! The results of each job, and the jobs that starve.

use hoistway_sim::{Comparison, Latency, ProcessRun, Run, Spread, bytes_per_s};

/// A process starves below this part of its fair share.
const STARVED: f64 = 0.1;
/// The same for a process that asks for less than others, by its priority or its group's weight.
const STARVED_IF_MODEST: f64 = 0.01;
/// A request that waits so long, in ns, and [`WAIT_FACTOR`] times as long as half of the requests
/// of its job, starves.
const WAIT_NS: u64 = 10_000_000_000;
/// See [`WAIT_NS`].
const WAIT_FACTOR: u64 = 100;

/// The results of one job under one elevator.
#[derive(Clone, Debug, serde::Serialize)]
pub struct JobRun {
    /// The name of the job.
    pub name: String,
    /// The index of the job in the job file.
    pub job: usize,
    /// The number of its processes.
    pub processes: usize,
    /// Bytes a second of all its processes, from their first start to their last end.
    pub bytes_per_s: f64,
    /// The slowest and the fastest of its processes, in bytes over the process's own runtime.
    pub process_bytes_per_s: Spread,
    /// Completion latencies of its requests, in ns.
    pub latency_ns: Latency,
    /// Latencies of its syncs, in ns; empty without syncs.
    pub sync_ns: Latency,
    /// The fair share of one process in bytes a second: the rate of the job alone, at most that of
    /// the drive under the best elevator, over the number of processes that run at the same time.
    /// `None` if the job did not run alone.
    pub fair_bytes_per_s: Option<f64>,
    /// How the job starves; `None` if it does not.
    pub starved: Option<Starvation>,
}

impl JobRun {
    /// The results of the jobs of one run, in the order of the job file, without fair shares: a job
    /// starves only by the wait of a request.
    pub fn of_run(run: &Run) -> Vec<JobRun> {
        of_run(run, &[], 0.0)
    }
}

/// Latencies of syncs of the slowest job of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncLatency {
    /// The greatest 99th percentile of a job, in ns.
    pub p99_ns: u64,
    /// The longest sync of a job, in ns.
    pub max_ns: u64,
}

impl SyncLatency {
    /// The latencies of the slowest of these jobs; `None` if none completed a sync.
    pub fn of_slowest(jobs: &[JobRun]) -> Option<SyncLatency> {
        let syncs = || jobs.iter().map(|job| &job.sync_ns).filter(|sync| sync.n > 0);
        let p99_ns = syncs().map(|sync| sync.p99).max()?;
        Some(SyncLatency { p99_ns, max_ns: syncs().map(|sync| sync.max).max()? })
    }
}

/// How a job starves.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Starvation {
    /// The number of processes of the job that get less than a tenth of their fair share (a
    /// hundredth, for processes of a lower priority or weight than another).
    pub processes: usize,
    /// The rate of the slowest process, in bytes a second.
    pub bytes_per_s: f64,
    /// The longest wait of a request in ns, if that is 10 s or more and a hundred times the median.
    pub wait_ns: Option<u64>,
}

/// The results of every job under each elevator, in the order of the runs.
pub fn job_runs(comparison: &Comparison) -> Vec<Vec<JobRun>> {
    let best = comparison.runs.iter().map(|run| run.bytes_per_s).fold(0.0, f64::max);
    comparison.runs.iter().map(|run| of_run(run, &comparison.alone_bytes_per_s, best)).collect()
}

/// For each run, true if one of its jobs starves.
pub fn starves(jobs: &[Vec<JobRun>]) -> Vec<bool> {
    jobs.iter().map(|jobs| jobs.iter().any(|job| job.starved.is_some())).collect()
}

/// Returns true if a job completed a sync under some elevator.
pub fn syncs(jobs: &[Vec<JobRun>]) -> bool {
    jobs.iter().flatten().any(|job| job.sync_ns.n > 0)
}

/// A job that starves under some elevator with some seed.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct StarvedJob {
    /// The name of the job.
    pub name: String,
    /// The index of the job in the job file.
    pub job: usize,
    /// Its fair share in bytes a second, [`JobRun::fair_bytes_per_s`], with the first seed.
    pub fair_bytes_per_s: Option<f64>,
    /// How it starves under each elevator, in the order of the runs; `None` under one under which
    /// it does not.
    pub elevators: Vec<Option<SeededStarvation>>,
}

/// How a job starves under one elevator over several seeds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct SeededStarvation {
    /// The number of seeds with which the job starves.
    pub seeds: usize,
    /// The worst of them: the most starving processes, the least rate, the longest wait.
    #[serde(flatten)]
    pub worst: Starvation,
}

/// The jobs that starve, in the order of the job file; `seeds` has the results of [`job_runs`] for
/// each seed.
pub fn starved_jobs(seeds: &[&[Vec<JobRun>]]) -> Vec<StarvedJob> {
    let Some(jobs) = seeds.first().and_then(|runs| runs.first()) else { return Vec::new() };
    let starvation = |run: usize, job: usize| {
        let starved = seeds.iter().filter_map(|runs| runs.get(run)?.get(job)?.starved);
        starved.fold(None, |all: Option<SeededStarvation>, one| {
            Some(all.map_or(SeededStarvation { seeds: 1, worst: one }, |all| SeededStarvation {
                seeds: all.seeds + 1,
                worst: all.worst.worse(&one),
            }))
        })
    };
    let runs = seeds.first().map_or(0, |runs| runs.len());
    let all = jobs.iter().enumerate().map(|(index, job)| StarvedJob {
        name: job.name.clone(),
        job: job.job,
        fair_bytes_per_s: job.fair_bytes_per_s,
        elevators: (0..runs).map(|run| starvation(run, index)).collect(),
    });
    all.filter(|job| job.elevators.iter().any(Option::is_some)).collect()
}

impl Starvation {
    /// The worse of two starvations of a job in each figure.
    fn worse(&self, other: &Starvation) -> Starvation {
        Starvation {
            processes: self.processes.max(other.processes),
            bytes_per_s: self.bytes_per_s.min(other.bytes_per_s),
            wait_ns: self.wait_ns.max(other.wait_ns),
        }
    }
}

fn of_run(run: &Run, alone: &[Option<f64>], best: f64) -> Vec<JobRun> {
    let concurrency = Concurrency::of(run);
    let mut jobs: Vec<usize> = run.processes.iter().map(|process| process.job).collect();
    jobs.dedup();
    let of_job = |job: usize| {
        let members: Vec<usize> = (0..run.processes.len()).filter(|index| run.processes[*index].job == job).collect();
        let alone = alone.get(job).copied().flatten().map(|alone| alone.min(best));
        job_run(run, job, &members, alone, &concurrency)
    };
    jobs.into_iter().map(of_job).collect()
}

fn job_run(run: &Run, job: usize, members: &[usize], alone: Option<f64>, concurrency: &Concurrency) -> JobRun {
    let processes = || members.iter().map(|index| &run.processes[*index]);
    let bytes = processes().map(|process| process.bytes).sum();
    let start_ns = processes().map(|process| process.start_ns).min().unwrap_or(0);
    let end_ns = processes().map(|process| process.start_ns + process.runtime_ns).max().unwrap_or(0);
    let rates = || processes().filter(|process| process.runtime_ns > 0).map(|process| process.bytes_per_s);
    let latency_ns = run.latencies_of(|process| process.job == job).summary();
    let fair = |index: usize| alone.map(|alone| alone / concurrency.processes_beside(index) as f64);
    let starved = members.iter().filter(|index| {
        let process = &run.processes[**index];
        let part = if concurrency.is_modest[**index] { STARVED_IF_MODEST } else { STARVED };
        let has_run = process.runtime_ns > 0 && process.failed_ns.is_none();
        has_run && fair(**index).is_some_and(|fair| process.bytes_per_s < part * fair)
    });
    let wait_ns =
        Some(latency_ns.max).filter(|max| *max >= WAIT_NS && *max >= latency_ns.p50.saturating_mul(WAIT_FACTOR));
    let (starved, min) = (starved.count(), rates().fold(f64::INFINITY, f64::min));
    let min = if min.is_finite() { min } else { 0.0 };
    JobRun {
        name: processes().next().map_or_else(String::new, |process| process.name.clone()),
        job,
        processes: members.len(),
        bytes_per_s: bytes_per_s(bytes, end_ns.saturating_sub(start_ns)),
        process_bytes_per_s: Spread { min, max: rates().fold(0.0, f64::max) },
        latency_ns,
        sync_ns: run.syncs_of(|process| process.job == job).summary(),
        fair_bytes_per_s: members.first().and_then(|index| fair(*index)),
        starved: (starved > 0 || wait_ns.is_some()).then_some(Starvation {
            processes: starved,
            bytes_per_s: min,
            wait_ns,
        }),
    }
}

/// The processes that ran at the same time, and those that ask for less than another.
struct Concurrency {
    /// The phase of each process.
    phases: Vec<usize>,
    /// The number of processes of each phase.
    processes: Vec<usize>,
    /// For each process, true if one of its phase has a higher priority or weight.
    is_modest: Vec<bool>,
}

impl Concurrency {
    fn of(run: &Run) -> Concurrency {
        let phases = run.phases();
        let count = phases.iter().max().map_or(0, |last| last + 1);
        let mut processes = vec![0; count];
        // The least is the most urgent.
        let mut first = vec![(u8::MAX, u8::MAX); count];
        let mut heaviest = vec![0; count];
        for (process, phase) in run.processes.iter().zip(&phases) {
            processes[*phase] += 1;
            first[*phase] = first[*phase].min(rank(process));
            heaviest[*phase] = heaviest[*phase].max(weight(run, process));
        }
        let is_modest = run.processes.iter().zip(&phases);
        let is_modest = is_modest
            .map(|(process, phase)| rank(process) > first[*phase] || weight(run, process) < heaviest[*phase])
            .collect();
        Concurrency { phases, processes, is_modest }
    }

    fn processes_beside(&self, index: usize) -> usize {
        self.processes[self.phases[index]].max(1)
    }
}

/// The class and level of a process; the least is the most urgent.
fn rank(process: &ProcessRun) -> (u8, u8) {
    let class = match process.prioclass {
        0 => 2,
        class => class,
    };
    (class, process.prio)
}

/// The weight of the process's group; that of the root is 100.
fn weight(run: &Run, process: &ProcessRun) -> u16 {
    let group = process.cgroup.as_ref().and_then(|path| run.groups.iter().find(|group| group.name == *path));
    group.map_or(100, |group| group.weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, starved: Option<Starvation>) -> JobRun {
        JobRun {
            name: name.into(),
            job: 0,
            processes: 1,
            bytes_per_s: 0.0,
            process_bytes_per_s: Spread { min: 0.0, max: 0.0 },
            latency_ns: Latency::default(),
            sync_ns: Latency::default(),
            fair_bytes_per_s: Some(20.0),
            starved,
        }
    }

    #[test]
    fn the_slowest_syncs_are_those_of_any_job_that_syncs() {
        let sync = |n, p99, max| JobRun { sync_ns: Latency { n, p99, max, ..Latency::default() }, ..job("a", None) };
        let jobs = [sync(0, 90, 90), sync(5, 7, 20), sync(9, 8, 12)];
        assert_eq!(SyncLatency::of_slowest(&jobs), Some(SyncLatency { p99_ns: 8, max_ns: 20 }));
        assert_eq!(SyncLatency::of_slowest(&jobs[..1]), None);
        assert!(syncs(&[vec![], jobs.to_vec()]) && !syncs(&[jobs[..1].to_vec()]));
    }

    #[test]
    fn a_job_that_starves_only_with_the_second_seed_counts() {
        let starved = |rate: f64, wait_ns| Some(Starvation { processes: 1, bytes_per_s: rate, wait_ns });
        let first = [vec![job("a", None), job("b", None)], vec![job("a", None), job("b", starved(3.0, None))]];
        let second =
            [vec![job("a", None), job("b", starved(2.0, None))], vec![job("a", None), job("b", starved(1.0, Some(7)))]];
        let found = starved_jobs(&[&first, &second]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].fair_bytes_per_s), ("b", Some(20.0)));
        let once = SeededStarvation { seeds: 1, worst: starved(2.0, None).unwrap() };
        let twice = SeededStarvation { seeds: 2, worst: starved(1.0, Some(7)).unwrap() };
        assert_eq!(found[0].elevators, [Some(once), Some(twice)]);
    }
}
