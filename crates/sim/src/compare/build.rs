//! Makes the answer of a comparison from the measurements of simulated worlds.

use hoistway_fio::results::PERCENTILES;
use hoistway_fio::{Direction, JobFile};

use super::answer::{DirectionRun, Measured, ProcessRun, Run, Spread, phases};
use super::groups::group_runs;
use crate::host::page::PAGE_BYTES;
use crate::measure::{self, Latencies, deadline_misses, jain};
use crate::world::{DirectionStats, Process, WorldResult};

/// Bytes a second of all processes of a world, from the first start to the last end.
pub(super) fn rate_of(outcome: &WorldResult) -> f64 {
    let bytes: u64 = outcome.processes.iter().map(|process| process.stats.bytes()).sum();
    measure::bytes_per_s(bytes, outcome.end_ns - outcome.start_ns)
}

/// The answer for one elevator, without the share of the single stream.
pub(super) fn run_of(elevator: &str, outcome: WorldResult, jobs: &JobFile) -> Run {
    let bytes_per_s = rate_of(&outcome);
    let processes: Vec<ProcessRun> = outcome.processes.into_iter().map(process_run_of).collect();
    let rates: Vec<f64> = processes.iter().map(|process| process.bytes_per_s).collect();
    let mut latencies = Latencies::default();
    for process in &processes {
        latencies.merge(&process.measured.stats.read.clat);
        latencies.merge(&process.measured.stats.write.clat);
        latencies.merge(&process.measured.stats.trim.clat);
    }
    Run {
        elevator: elevator.into(),
        is_partial: outcome.is_partial,
        bytes_per_s,
        of_single_stream: 0.0,
        process_bytes_per_s: Spread {
            min: rates.iter().copied().fold(f64::INFINITY, f64::min),
            max: rates.iter().copied().fold(0.0, f64::max),
        },
        jain: phases(&processes).iter().all(|phase| *phase == 0).then(|| jain(&rates)),
        latency_ns: latencies.summary(),
        latency_percentiles_ns: PERCENTILES.map(|percent| (percent, latencies.percentile_ns(percent))).into(),
        runtime_ns: outcome.end_ns - outcome.start_ns,
        drive_ns: outcome.drive,
        drive_requests: outcome.requests,
        drive_bytes: outcome.bytes,
        dirty_bytes_max: outcome.dirty_pages_max * PAGE_BYTES,
        turns: outcome.turns,
        failed_requests: outcome.failures.requests,
        lost_pages: outcome.failures.pages_lost,
        divides_by_groups: outcome.divides_by_groups,
        groups: group_runs(jobs, &processes),
        processes,
        head: outcome.recording.head,
        slices: outcome.recording.slices,
    }
}

fn process_run_of(process: Process) -> ProcessRun {
    let Process { plan, job, mut stats, measured_from_ns, end_ns, failed_ns, .. } = process;
    let runtime_ns = end_ns.saturating_sub(measured_from_ns);
    let bytes = stats.bytes();
    let mut latencies = stats.read.clat.clone();
    latencies.merge(&stats.write.clat);
    latencies.merge(&stats.trim.clat);
    let direction = |stats: &DirectionStats| DirectionRun {
        bytes: stats.bytes,
        ios: stats.ios,
        slat_ns: stats.slat.summary(),
        clat_ns: stats.clat.summary(),
        lat_ns: if stats.lat.count() > 0 { stats.lat.summary() } else { stats.clat.summary() },
    };
    let effective = plan.priority.effective(plan.nice);
    let misses = |direction, stats: &DirectionStats| {
        let rate = job.rates.rate.get(direction).filter(|_| job.requests.rw.uses(direction))?;
        deadline_misses(&stats.windows, runtime_ns, rate, job.min_bs(direction))
    };
    let of_both = [misses(Direction::Read, &stats.read), misses(Direction::Write, &stats.write)];
    let windows = stats.read.windows.sum(&stats.write.windows).sum(&stats.trim.windows);
    ProcessRun {
        name: job.name.clone(),
        job: plan.job,
        groupid: job.groupid,
        pid: plan.pid,
        cgroup: job.cgroup.path.clone(),
        prioclass: plan.priority.class() as u8,
        prio: effective.level(),
        start_ns: measured_from_ns,
        failed_ns,
        runtime_ns,
        cpu_ns: stats.cpu_ns,
        sleeps: stats.sleeps,
        bytes,
        bytes_per_s: measure::bytes_per_s(bytes, runtime_ns),
        deadline_misses: of_both.into_iter().flatten().reduce(|read, write| read + write),
        latency_ns: latencies.summary(),
        window_ns: windows.window_ns(),
        windows: windows.into_all(),
        samples: std::mem::take(&mut stats.samples.taken),
        read: direction(&stats.read),
        write: direction(&stats.write),
        sync: stats.sync.summary(),
        measured: Measured { stats, job },
    }
}
