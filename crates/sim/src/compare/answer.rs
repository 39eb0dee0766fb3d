//! The answer of a comparison, in types that can be serialised.

use std::sync::Arc;

use hoistway_fio::logs::LogEntry;
use hoistway_fio::{Direction, Job};

use crate::measure::{BandwidthSample, DriveTime, Latencies, Latency, Window};
use crate::record::{HeadSample, Slice};
use crate::world::Stats;

/// What came out.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Comparison {
    /// The drive's name.
    pub drive: String,
    /// The seed.
    pub seed: u64,
    /// Bytes a second of the first job alone: one process, on its first file.
    pub single_stream_bytes_per_s: f64,
    /// Requests that the drives of all runs served, the reference's included.
    #[serde(skip)]
    pub simulated_requests: u64,
    /// A run for each elevator, in the order asked for.
    pub runs: Vec<Run>,
    /// What decided between them, in a sentence.
    pub decided_by: String,
    /// What of the job file was not simulated.
    pub notes: Vec<String>,
}

/// The least and the greatest of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

/// One elevator's run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Run {
    /// Its name.
    pub elevator: String,
    /// All bytes, over the time from the first start to the last end.
    pub bytes_per_s: f64,
    /// That, as a part of the single stream's.
    pub of_single_stream: f64,
    /// Each process's bytes over its own runtime.
    pub process_bytes_per_s: Spread,
    /// Jain's index over the same: 1 when all are equal.
    pub jain: f64,
    /// Completion latencies of all requests, in ns.
    pub latency_ns: Latency,
    /// The same at fio's usual percentiles, 1 to 99.99: percent, and ns.
    pub latency_percentiles_ns: Vec<(f64, u64)>,
    /// From the first start to the last end, in ns, without ramp times.
    pub runtime_ns: u64,
    /// Where the drive's time went; it adds up to the runtime.
    pub drive_ns: DriveTime,
    /// Requests that the drive served, after merging.
    pub drive_requests: u64,
    /// Bytes that the drive was asked for: what was found in the page cache is not among them.
    pub drive_bytes: u64,
    /// The most bytes of the page cache that were dirty or being written at any time.
    pub dirty_bytes_max: u64,
    /// How often the drive went from one process's requests to another's.
    pub turns: u64,
    /// Requests that the drive answered with an error.
    pub failed_requests: u64,
    /// Dirty pages that could not be written: they were lost.
    pub lost_pages: u64,
    /// Whether the elevator divides the disk among control groups; the others take all processes as of one.
    pub divides_by_groups: bool,
    /// What each control group of the job file got: parents before their children, otherwise in the order of the file.
    pub groups: Vec<GroupRun>,
    /// The processes.
    pub processes: Vec<ProcessRun>,
    /// Where the arm was, if recorded.
    pub head: Vec<HeadSample>,
    /// Slices, if recorded and the elevator has any.
    pub slices: Vec<Slice>,
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

/// One process's run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ProcessRun {
    /// The job's name.
    pub name: String,
    /// The job's place in the job file.
    pub job: usize,
    /// The reporting group.
    pub groupid: u32,
    /// The process id.
    pub pid: u32,
    /// Its control group: the names on the way to it from the root; none is the root.
    pub cgroup: Option<String>,
    /// The priority's class: 0 none, 1 real time, 2 best effort, 3 idle.
    pub prioclass: u8,
    /// The priority's level; what counts when none is set follows nice.
    pub prio: u8,
    /// When it started, in ns of the world, its ramp time being over.
    pub start_ns: u64,
    /// When one of its requests failed, in ns of the world: it made no more, as fio does without `continue_on_error`.
    pub failed_ns: Option<u64>,
    /// How long it ran, in ns.
    pub runtime_ns: u64,
    /// CPU time, in ns.
    pub cpu_ns: u64,
    /// How often it slept.
    pub sleeps: u64,
    /// Bytes moved in both directions.
    pub bytes: u64,
    /// Bytes over runtime.
    pub bytes_per_s: f64,
    /// Rounds of a second, from its start, at whose end it had less than its job's `rate` owes it: a block is due a second after the
    /// rate lets it be asked for. `None` without `rate`.
    pub deadline_misses: Option<u64>,
    /// Completion latencies in both directions, in ns.
    pub latency_ns: Latency,
    /// Bandwidth over time, both directions: bytes and requests of each window.
    pub windows: Vec<Window>,
    /// The length of a window, in ns.
    pub window_ns: u64,
    /// Bandwidth over time as the process itself can see it: a sample at the first completion after each `window_ns`.
    /// Where processes take turns that are longer than a window, a sample spans a whole round, and windows do not.
    pub samples: Vec<BandwidthSample>,
    /// Reads.
    pub read: DirectionRun,
    /// Writes.
    pub write: DirectionRun,
    /// Syncs, in ns.
    pub sync: Latency,
    #[serde(skip)]
    pub(crate) measured: Measured,
}

/// One direction of a process's run.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct DirectionRun {
    /// Bytes moved.
    pub bytes: u64,
    /// Requests.
    pub ios: u64,
    /// From the making of a request to its submission, in ns; empty for a synchronous engine.
    pub slat_ns: Latency,
    /// From submission to completion, in ns.
    pub clat_ns: Latency,
    /// From making to completion, in ns.
    pub lat_ns: Latency,
}

/// All that was measured, for fio's JSON.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub stats: Stats,
    pub job: Arc<Job>,
}

impl Run {
    /// Completion latencies in both directions of all processes of which `counts` is true.
    pub fn latencies_of(&self, counts: impl Fn(&ProcessRun) -> bool) -> Latencies {
        let mut latencies = Latencies::default();
        for process in self.processes.iter().filter(|process| counts(process)) {
            latencies.merge(&process.measured.stats.read.clat);
            latencies.merge(&process.measured.stats.write.clat);
        }
        latencies
    }

    /// Syncs of all processes of which `counts` is true.
    pub fn syncs_of(&self, counts: impl Fn(&ProcessRun) -> bool) -> Latencies {
        let mut latencies = Latencies::default();
        let processes = self.processes.iter().filter(|process| counts(process));
        processes.for_each(|process| latencies.merge(&process.measured.stats.sync));
        latencies
    }

    /// The share of the run that the drive spent on seeking and waiting for the platter, 0 to 1.
    pub fn arm_share(&self) -> f64 {
        self.drive_ns.arm_share(self.runtime_ns)
    }
}

impl ProcessRun {
    /// The name of the process's bandwidth log, if its job asks for one; `index` counts all processes from 1.
    pub fn bandwidth_log_name(&self, index: u32) -> Option<String> {
        let prefix = self.measured.job.write_bw_log.as_ref()?;
        Some(hoistway_fio::logs::LogKind::Bandwidth.file_name(prefix, index))
    }

    /// The lines of its bandwidth log: averages over `log_avg_msec`, or where that is 0 over `bwavgtime`.
    pub fn bandwidth_log(&self) -> Vec<LogEntry> {
        let stats = &self.measured.stats;
        let mut entries = Vec::new();
        for (direction, stats) in [(Direction::Read, &stats.read), (Direction::Write, &stats.write)] {
            let windows = stats.log.as_ref().unwrap_or(&stats.windows);
            let window_ms = windows.window_ns() / 1_000_000;
            let rates = windows.bytes_per_s(self.runtime_ns);
            let used = if stats.ios == 0 { 0 } else { rates.len() };
            entries.extend((1u64..).zip(rates).take(used).map(|(window, bytes_per_s)| LogEntry {
                time_ms: window * window_ms,
                value: bytes_per_s / 1024,
                direction,
                bs: 0,
                offset: 0,
                prioclass: self.prioclass,
                prio: if self.prioclass == 0 { 0 } else { self.prio },
            }));
        }
        entries.sort_by_key(|entry| (entry.time_ms, entry.direction));
        entries
    }
}
