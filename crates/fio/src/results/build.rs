//! Builds fio's results from plain figures.

use chrono::DateTime;

use super::{
    DirectionReport, IodepthBatch, IodepthLevel, JobReport, LatencyMs, LatencyNs, LatencyReport, LatencyUs, NO_ETA,
    Options, PERCENTILES, Percentiles, Report, SyncReport, histogram::Histogram,
};

const NS_PER_S: u128 = 1_000_000_000;
const NS_PER_MS: u64 = 1_000_000;

/// The figures of one direction of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionStats {
    /// Bytes moved.
    pub io_bytes: u64,
    /// Requests completed.
    pub total_ios: u64,
    /// From the first request to the last completion, in nanoseconds.
    pub runtime_ns: u64,
    /// From the creation of a request to its submission; empty for a synchronous engine.
    pub slat: LatencySummary,
    /// From submission to completion.
    pub clat: LatencySummary,
    /// From creation to completion.
    pub lat: LatencySummary,
    /// Bandwidth of each window of `bwavgtime`, in KiB a second.
    pub bw_kib_s: Samples,
    /// Requests a second of each window of `iopsavgtime`.
    pub iops: Samples,
    /// This job's share of its group's bandwidth, in percent.
    pub bw_agg_percent: f64,
}

impl DirectionStats {
    /// Bytes a second, rounded down; 0 for a time of 0.
    pub fn bytes_per_s(&self) -> u64 {
        let bytes = (u128::from(self.io_bytes) * NS_PER_S).checked_div(u128::from(self.runtime_ns)).unwrap_or(0);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// The figures under fio's names.
    pub fn report(&self) -> DirectionReport {
        let bw_bytes = self.bytes_per_s();
        let seconds = self.runtime_ns as f64 / NS_PER_S as f64;
        DirectionReport {
            io_bytes: self.io_bytes,
            io_kbytes: self.io_bytes / 1024,
            bw_bytes,
            bw: bw_bytes / 1024,
            iops: if self.runtime_ns == 0 { 0.0 } else { self.total_ios as f64 / seconds },
            // fio's clock shows at least a millisecond for an active direction.
            runtime: self.runtime_ns.div_ceil(NS_PER_MS),
            total_ios: self.total_ios,
            short_ios: 0,
            drop_ios: 0,
            slat_ns: self.slat.report(),
            clat_ns: self.clat.report(),
            lat_ns: self.lat.report(),
            bw_min: self.bw_kib_s.min,
            bw_max: self.bw_kib_s.max,
            bw_agg: self.bw_agg_percent,
            bw_mean: self.bw_kib_s.mean,
            bw_dev: self.bw_kib_s.stddev,
            bw_samples: self.bw_kib_s.n,
            iops_min: self.iops.min,
            iops_max: self.iops.max,
            iops_mean: self.iops.mean,
            iops_stddev: self.iops.stddev,
            iops_samples: self.iops.n,
        }
    }
}

/// A summary of latencies, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencySummary {
    /// The least latency.
    pub min_ns: u64,
    /// The greatest latency.
    pub max_ns: u64,
    /// The mean latency.
    pub mean_ns: f64,
    /// The standard deviation of the latencies.
    pub stddev_ns: f64,
    /// The number of latencies.
    pub n: u64,
    /// Percentiles in percent with their latencies; empty to leave them out.
    pub percentiles_ns: Vec<(f64, u64)>,
    /// Counts by bin, for `json+`; empty to leave them out.
    pub bins: Vec<(u64, u64)>,
}

impl LatencySummary {
    /// The summary of a histogram, with fio's usual percentiles and without bins.
    pub fn of(histogram: &Histogram) -> Self {
        let report = histogram.report(&PERCENTILES, false);
        LatencySummary {
            min_ns: report.min,
            max_ns: report.max,
            mean_ns: report.mean,
            stddev_ns: report.stddev,
            n: report.n,
            percentiles_ns: report.percentile.map(|percentiles| percentiles.0).unwrap_or_default(),
            bins: Vec::new(),
        }
    }

    /// The figures under fio's names.
    pub fn report(&self) -> LatencyReport {
        let listed = !self.percentiles_ns.is_empty() && self.n > 0;
        LatencyReport {
            min: self.min_ns,
            max: self.max_ns,
            mean: self.mean_ns,
            stddev: self.stddev_ns,
            n: self.n,
            percentile: listed.then(|| Percentiles(self.percentiles_ns.clone())),
            bins: (!self.bins.is_empty()).then(|| super::Bins(self.bins.iter().copied().collect())),
        }
    }
}

/// A summary of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Samples {
    /// The least sample.
    pub min: u64,
    /// The greatest sample.
    pub max: u64,
    /// The mean of the samples.
    pub mean: f64,
    /// The standard deviation of the sample; 0 below two samples.
    pub stddev: f64,
    /// The number of samples.
    pub n: u64,
}

impl Samples {
    /// Summarises samples; zeros if there are none.
    pub fn of(samples: &[u64]) -> Self {
        let n = samples.len() as f64;
        if samples.is_empty() {
            return Samples::default();
        }
        let mean = samples.iter().map(|sample| *sample as f64).sum::<f64>() / n;
        let squares: f64 = samples.iter().map(|sample| (*sample as f64 - mean).powi(2)).sum();
        Samples {
            min: samples.iter().copied().min().unwrap_or(0),
            max: samples.iter().copied().max().unwrap_or(0),
            mean,
            stddev: if samples.len() < 2 { 0.0 } else { (squares / (n - 1.0)).sqrt() },
            n: samples.len() as u64,
        }
    }
}

/// Upper bounds of the latency distributions, in their units.
const BOUNDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// Requests counted by completion latency: the `latency_ns`, `latency_us` and `latency_ms` of a
/// job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyBuckets {
    ns: [u64; 10],
    us: [u64; 10],
    ms: [u64; 12],
}

impl LatencyBuckets {
    /// Counts a latency.
    pub fn record(&mut self, latency_ns: u64) {
        let slot = |value: u64| BOUNDS.iter().position(|bound| value < *bound);
        let counter = if latency_ns < 1_000 {
            slot(latency_ns).and_then(|i| self.ns.get_mut(i))
        } else if latency_ns < 1_000_000 {
            slot(latency_ns / 1_000).and_then(|i| self.us.get_mut(i))
        } else {
            let ms = latency_ns / 1_000_000;
            self.ms.get_mut(slot(ms).unwrap_or(if ms < 2_000 { 10 } else { 11 }))
        };
        // The last bound of each unit is the unit's end, so every latency has a counter.
        debug_assert!(counter.is_some());
        if let Some(counter) = counter {
            *counter += 1;
        }
    }

    /// Adds the counts of another job, for a report by group.
    pub fn merge(&mut self, other: &LatencyBuckets) {
        add(&mut self.ns, &other.ns);
        add(&mut self.us, &other.us);
        add(&mut self.ms, &other.ms);
    }

    /// The distribution in percent.
    pub fn shares(&self) -> (LatencyNs, LatencyUs, LatencyMs) {
        let total = [self.ns.iter().sum::<u64>(), self.us.iter().sum(), self.ms.iter().sum()].iter().sum();
        let (ns, us, ms) = (percent(self.ns, total), percent(self.us, total), percent(self.ms, total));
        (LatencyNs::new(ns), LatencyUs::new(us), LatencyMs::new(ms))
    }
}

/// Requests counted by depth: the number in flight, or the number submitted or reaped together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DepthCounts {
    counts: [u64; 7],
}

impl DepthCounts {
    /// Counts a request that made the queue `depth` deep, itself included.
    pub fn record_level(&mut self, depth: u32) {
        let slot = depth.max(1).ilog2().min(6);
        self.counts[slot as usize] += 1;
    }

    /// Counts a submission or a reaping of `together` requests.
    pub fn record_batch(&mut self, together: u32) {
        let slot = [0, 4, 8, 16, 32, 64].iter().position(|most| together <= *most).unwrap_or(6);
        self.counts[slot] += 1;
    }

    /// Adds the counts of another job, for a report by group.
    pub fn merge(&mut self, other: &DepthCounts) {
        add(&mut self.counts, &other.counts);
    }

    /// The distribution in the form of `iodepth_level`.
    pub fn level(&self) -> IodepthLevel {
        IodepthLevel::new(percent(self.counts, self.counts.iter().sum()))
    }

    /// The distribution in the form of `iodepth_submit` or `iodepth_complete`.
    pub fn batch(&self) -> IodepthBatch {
        IodepthBatch::new(percent(self.counts, self.counts.iter().sum()))
    }
}

/// The figures of one job, or of a group with `group_reporting`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobStats {
    /// The job's name.
    pub jobname: String,
    /// The reporting group.
    pub groupid: u32,
    /// Error number; 0 for none.
    pub error: i32,
    /// From the start of the run to the end of the job, in nanoseconds.
    pub elapsed_ns: u64,
    /// The options of the job's section, flags without a value among them
    /// ([`Job::options`](crate::Job::options)).
    pub options: Vec<(String, String)>,
    /// The figures of reads.
    pub read: DirectionStats,
    /// The figures of writes.
    pub write: DirectionStats,
    /// The figures of trims.
    pub trim: DirectionStats,
    /// The figures of all directions together, if they are reported.
    pub mixed: Option<DirectionStats>,
    /// True if only [`JobStats::mixed`] is reported.
    pub only_mixed: bool,
    /// Latencies of syncs.
    pub sync: LatencySummary,
    /// The time that the job ran, in nanoseconds.
    pub runtime_ns: u64,
    /// Processor time in user mode, in percent.
    pub usr_cpu_percent: f64,
    /// Processor time in the kernel, in percent.
    pub sys_cpu_percent: f64,
    /// Context switches.
    pub context_switches: u64,
    /// Completion latencies of all requests.
    pub buckets: LatencyBuckets,
    /// Depths of the queue.
    pub level: DepthCounts,
    /// Requests submitted together.
    pub submit: DepthCounts,
    /// Requests reaped together.
    pub complete: DepthCounts,
    /// The job's `iodepth`.
    pub iodepth: u32,
    /// Values that fio has no name for.
    pub hoistway: Option<serde_json::Value>,
}

impl JobStats {
    /// The figures under fio's names.
    pub fn report(&self) -> JobReport {
        let (latency_ns, latency_us, latency_ms) = self.buckets.shares();
        let separate = |direction: &DirectionStats| (!self.only_mixed).then(|| direction.report());
        let sync = SyncReport { total_ios: self.sync.n, lat_ns: self.sync.report() };
        JobReport {
            jobname: self.jobname.clone(),
            groupid: self.groupid,
            error: self.error,
            eta: NO_ETA,
            elapsed: self.elapsed_ns.div_ceil(NS_PER_MS * 1_000),
            job_options: (!self.options.is_empty()).then(|| Options::printed(&self.options)),
            read: separate(&self.read),
            write: separate(&self.write),
            trim: separate(&self.trim),
            sync: (!self.only_mixed).then_some(sync),
            mixed: self.mixed.as_ref().map(DirectionStats::report),
            job_runtime: self.runtime_ns.div_ceil(NS_PER_MS),
            usr_cpu: self.usr_cpu_percent,
            sys_cpu: self.sys_cpu_percent,
            ctx: self.context_switches,
            majf: 0,
            minf: 0,
            iodepth_level: self.level.level(),
            iodepth_submit: self.submit.batch(),
            iodepth_complete: self.complete.batch(),
            latency_ns,
            latency_us,
            latency_ms,
            latency_depth: self.iodepth,
            latency_target: 0,
            latency_percentile: 100.0,
            latency_window: 0,
            hoistway: self.hoistway.clone(),
        }
    }
}

/// The report of a run. `fio_version` names the program; `timestamp_ms` is the time of day in
/// milliseconds since 1970, UTC.
pub fn report(
    fio_version: &str,
    timestamp_ms: u64,
    global_options: &[(String, String)],
    jobs: impl IntoIterator<Item = JobStats>,
) -> Report {
    Report {
        fio_version: fio_version.into(),
        timestamp: timestamp_ms / 1_000,
        timestamp_ms,
        time: date(timestamp_ms / 1_000),
        global_options: (!global_options.is_empty()).then(|| Options::printed(global_options)),
        jobs: jobs.into_iter().map(|job| job.report()).collect(),
        disk_util: None,
        hoistway: None,
    }
}

/// A time in UTC in the format of C's `ctime`.
fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.unwrap_or_default().format("%a %b %d %H:%M:%S %Y").to_string()
}

fn percent<const N: usize>(counts: [u64; N], total: u64) -> [f64; N] {
    counts.map(|count| if total == 0 { 0.0 } else { count as f64 * 100.0 / total as f64 })
}

fn add<const N: usize>(onto: &mut [u64; N], counts: &[u64; N]) {
    for (onto, count) in onto.iter_mut().zip(counts) {
        *onto += count;
    }
}
