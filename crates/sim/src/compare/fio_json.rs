//! A comparison in fio's JSON format, for tools that read it.

use hoistway_fio::UnifiedReporting;
use hoistway_fio::results::build::{self, JobStats, LatencySummary, Samples};
use hoistway_fio::results::{PERCENTILES, Report};
use serde_json::json;

use super::answer::{Comparison, ProcessRun, Run};
use crate::measure::{Latencies, Windows};
use crate::world::{DirectionStats, Stats};

impl Comparison {
    /// The comparison in the form of `fio --output-format=json`: one job per elevator and process
    /// (or reporting group, if `group_reporting` is set), named `elevator/job`. The key `hoistway`
    /// holds all values that fio has no name for.
    ///
    /// `version` is the value of `fio version`; `timestamp_ms` is the time of day in milliseconds
    /// since 1970, UTC.
    pub fn fio_report(&self, version: &str, timestamp_ms: u64, global_options: &[(String, String)]) -> Report {
        let jobs = self.runs.iter().flat_map(fio_jobs);
        let mut report = build::report(version, timestamp_ms, global_options, jobs);
        let runs: Vec<_> = self.runs.iter().map(summary).collect();
        report.hoistway = Some(json!({
            "drive": self.drive,
            "seed": self.seed,
            "single_stream_bytes_per_s": self.single_stream_bytes_per_s,
            "notes": self.notes,
            "runs": runs,
        }));
        report
    }
}

fn summary(run: &Run) -> serde_json::Value {
    json!({
        "elevator": run.elevator,
        "bytes_per_s": run.bytes_per_s,
        "of_single_stream": run.of_single_stream,
        "process_bytes_per_s": run.process_bytes_per_s,
        "jain": run.jain,
        "latency_ns": run.latency_ns,
        "runtime_ns": run.runtime_ns,
        "drive_ns": run.drive_ns,
        "drive_requests": run.drive_requests,
        "drive_bytes": run.drive_bytes,
        "turns": run.turns,
        "failed_requests": run.failed_requests,
        "lost_pages": run.lost_pages,
    })
}

/// Linux's error number for a failed I/O.
const EIO: i32 = 5;

/// The jobs of one run: one per process, or one per reporting group.
fn fio_jobs(run: &Run) -> Vec<JobStats> {
    let mut groups: Vec<Vec<&ProcessRun>> = Vec::new();
    for process in &run.processes {
        let joins = |group: &&mut Vec<&ProcessRun>| {
            let first = group[0];
            first.measured.job.reporting.group_reporting
                && process.measured.job.reporting.group_reporting
                && first.groupid == process.groupid
        };
        match groups.iter_mut().find(joins) {
            Some(group) => group.push(process),
            None => groups.push(vec![process]),
        }
    }
    groups.iter().map(|group| job_stats(run, group)).collect()
}

fn job_stats(run: &Run, group: &[&ProcessRun]) -> JobStats {
    let first = group[0];
    let job = &first.measured.job;
    let runtime_ns = group.iter().map(|process| process.runtime_ns).max().unwrap_or(0);
    let cpu_ns: u64 = group.iter().map(|process| process.cpu_ns).sum();
    let ran_ns: u64 = group.iter().map(|process| process.runtime_ns).sum();
    let mut stats = JobStats {
        jobname: format!("{}/{}", run.elevator, first.name),
        groupid: first.groupid,
        error: if group.iter().any(|process| process.failed_ns.is_some()) { EIO } else { 0 },
        elapsed_ns: group.iter().map(|process| process.start_ns + process.runtime_ns).max().unwrap_or(0),
        options: job.options.clone(),
        read: direction(run, group, runtime_ns, &[READ]),
        write: direction(run, group, runtime_ns, &[WRITE]),
        trim: direction(run, group, runtime_ns, &[TRIM]),
        mixed: (job.reporting.unified != UnifiedReporting::Separate)
            .then(|| direction(run, group, runtime_ns, &[READ, WRITE, TRIM])),
        only_mixed: job.reporting.unified == UnifiedReporting::Mixed,
        sync: latency(group.iter().map(|process| &process.measured.stats.sync)),
        runtime_ns,
        // All simulated CPU time is the kernel's, except for thinktime_spin.
        sys_cpu_percent: if ran_ns == 0 { 0.0 } else { cpu_ns as f64 * 100.0 / ran_ns as f64 },
        context_switches: group.iter().map(|process| process.sleeps).sum(),
        iodepth: job.submission.iodepth,
        ..JobStats::default()
    };
    let pids: Vec<u32> = group.iter().map(|process| process.pid).collect();
    stats.hoistway =
        Some(json!({ "elevator": run.elevator, "pids": pids, "prioclass": first.prioclass, "prio": first.prio }));
    for process in group {
        stats.buckets.merge(&process.measured.stats.buckets);
        stats.level.merge(&process.measured.stats.level);
        stats.submit.merge(&process.measured.stats.submit);
        stats.complete.merge(&process.measured.stats.complete);
    }
    stats
}

/// Selects the figures of a direction.
type DirectionOf = fn(&Stats) -> &DirectionStats;

const READ: DirectionOf = |stats| &stats.read;
const WRITE: DirectionOf = |stats| &stats.write;
const TRIM: DirectionOf = |stats| &stats.trim;

/// The figures of some directions together.
fn direction(run: &Run, group: &[&ProcessRun], runtime_ns: u64, of: &[DirectionOf]) -> build::DirectionStats {
    let each = || group.iter().flat_map(|process| of.iter().map(move |of| (process, of(&process.measured.stats))));
    let all = || each().map(|(_, stats)| stats);
    let io_bytes: u64 = all().map(|stats| stats.bytes).sum();
    let total_ios: u64 = all().map(|stats| stats.ios).sum();
    let of_group = |process: &&ProcessRun| process.groupid == group[0].groupid;
    let bytes = |process: &ProcessRun| of.iter().map(|of| of(&process.measured.stats).bytes).sum::<u64>();
    let group_bytes: u64 = run.processes.iter().filter(of_group).map(bytes).sum();
    let lat = latency(all().map(|stats| if stats.lat.count() > 0 { &stats.lat } else { &stats.clat }));
    let samples = |windows: fn(&DirectionStats) -> &Windows, rates: fn(&Windows, u64) -> Vec<u64>| {
        if total_ios == 0 {
            return Samples::default();
        }
        // Long runs may have doubled the windows of some processes.
        let longest_ns = all().map(|stats| windows(stats).window_ns()).max().unwrap_or(0);
        Samples::of(&added(
            each().map(|(process, stats)| rates(&windows(stats).widened(longest_ns), process.runtime_ns)),
        ))
    };
    build::DirectionStats {
        io_bytes,
        total_ios,
        runtime_ns: if total_ios == 0 { 0 } else { runtime_ns },
        slat: latency(all().map(|stats| &stats.slat)),
        clat: latency(all().map(|stats| &stats.clat)),
        lat,
        bw_kib_s: samples(
            |stats| &stats.windows,
            |windows, ns| windows.bytes_per_s(ns).iter().map(|bytes| bytes / 1024).collect(),
        ),
        iops: samples(iops_windows, Windows::ios_per_s),
        bw_agg_percent: if group_bytes == 0 { 0.0 } else { io_bytes as f64 * 100.0 / group_bytes as f64 },
    }
}

fn iops_windows(stats: &DirectionStats) -> &Windows {
    stats.iops.as_ref().unwrap_or(&stats.windows)
}

/// The sum over processes, window by window.
fn added(all: impl Iterator<Item = Vec<u64>>) -> Vec<u64> {
    let mut sums: Vec<u64> = Vec::new();
    for rates in all {
        if rates.len() > sums.len() {
            sums.resize(rates.len(), 0);
        }
        for (sum, rate) in sums.iter_mut().zip(rates) {
            *sum += rate;
        }
    }
    sums
}

fn latency<'a>(all: impl Iterator<Item = &'a Latencies>) -> LatencySummary {
    let mut latencies = Latencies::default();
    for more in all {
        latencies.merge(more);
    }
    if latencies.count() == 0 {
        return LatencySummary::default();
    }
    LatencySummary {
        min_ns: latencies.min_ns(),
        max_ns: latencies.max_ns(),
        mean_ns: latencies.mean_ns(),
        stddev_ns: latencies.stddev_ns(),
        n: latencies.count(),
        percentiles_ns: PERCENTILES.iter().map(|percent| (*percent, latencies.percentile_ns(*percent))).collect(),
        bins: Vec::new(),
    }
}
