//! The answer of a comparison, in serialisable types.

use std::sync::Arc;

use hoistway_fio::logs::LogEntry;
use hoistway_fio::{Direction, Job};
use hoistway_units::sort;

use crate::measure::{BandwidthSample, DriveTime, Latencies, Latency, Window};
use crate::record::{HeadSample, Slice};
use crate::world::Stats;

/// The result of a comparison.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Comparison {
    /// Name of the drive's profile.
    pub drive: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// True if the drive is a disk: it has an arm and rotates.
    pub rotational: bool,
    /// Bytes a second of the reference: one process of the first job, alone on its first file.
    pub single_stream_bytes_per_s: f64,
    /// Bytes a second of one process of each job, alone on its first file for at most
    /// [`ALONE_NS`](super::ALONE_NS) (the first job: to its end), in the order of the job file.
    /// `None` beyond the first [`ALONE_MAX`](super::ALONE_MAX) jobs, and for a job that cannot run
    /// alone. Empty for a recorded workload.
    pub alone_bytes_per_s: Vec<Option<f64>>,
    /// Requests that the drives of all runs served, including the reference run.
    #[serde(skip)]
    pub simulated_requests: u64,
    /// True if the comparison was stopped: its runs are partial, or elevators are missing.
    pub is_partial: bool,
    /// One run per elevator, in the order of the request.
    pub runs: Vec<Run>,
    /// Notes on parts of the job file that were not simulated, and on failures.
    pub notes: Vec<String>,
}

/// A minimum and a maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

/// The run of one elevator.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Run {
    /// Name of the elevator.
    pub elevator: String,
    /// True if the run was stopped before its end.
    pub is_partial: bool,
    /// Bytes a second of all processes, from the first start to the last end.
    pub bytes_per_s: f64,
    /// Bandwidth as a share of the single stream's.
    pub of_single_stream: f64,
    /// The slowest and the fastest process, in bytes over the process's own runtime.
    pub process_bytes_per_s: Spread,
    /// Jain's index of fairness over the processes: 1 when all are equal. `None` if processes ran
    /// one after another, because those do not share the disk.
    pub jain: Option<f64>,
    /// Completion latencies of all requests, in ns.
    pub latency_ns: Latency,
    /// Completion latencies at fio's usual percentiles, 1 to 99.99: percent, and ns.
    pub latency_percentiles_ns: Vec<(f64, u64)>,
    /// From the first start to the last end, in ns, without ramp times.
    pub runtime_ns: u64,
    /// Phases of the drive's time; their sum is the runtime.
    pub drive_ns: DriveTime,
    /// Requests that the drive served, after merging.
    pub drive_requests: u64,
    /// Bytes that requests moved between host and drive; hits in the page cache do not count.
    pub drive_bytes: u64,
    /// The highest number of dirty bytes in the page cache, including bytes under write-back.
    pub dirty_bytes_max: u64,
    /// Number of times that the drive went from one process's request to another process's.
    pub turns: u64,
    /// Requests that the drive completed with an error.
    pub failed_requests: u64,
    /// Dirty pages that could not be written and were lost.
    pub lost_pages: u64,
    /// True if the elevator divides the disk among control groups; other elevators treat all
    /// processes as one group.
    pub divides_by_groups: bool,
    /// Results of the control groups: parents before their children, otherwise in the order of the
    /// file.
    pub groups: Vec<GroupRun>,
    /// Results of the processes.
    pub processes: Vec<ProcessRun>,
    /// Head positions, if recorded.
    pub head: Vec<HeadSample>,
    /// Slices, if recorded and if the elevator has slices.
    pub slices: Vec<Slice>,
}

/// The result of a control group, including its child groups.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct GroupRun {
    /// Path of the group from the root.
    pub name: String,
    /// Weight of the group among its siblings, 1 to 1000.
    pub weight: u16,
    /// Bytes moved by the group's processes.
    pub bytes: u64,
    /// Bytes a second, from the first start to the last end of the group's processes.
    pub bytes_per_s: f64,
    /// The group's share of all bytes, 0 to 1, while all processes ran: from the last start to the
    /// first end. If that time is shorter than a window, the share of the whole run.
    pub share: f64,
}

/// The result of a process.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ProcessRun {
    /// The job's name.
    pub name: String,
    /// Index of the job in the job file.
    pub job: usize,
    /// The reporting group.
    pub groupid: u32,
    /// The process id.
    pub pid: u32,
    /// Path of the process's control group; `None` for the root.
    pub cgroup: Option<String>,
    /// I/O priority class: 0 none, 1 real time, 2 best effort, 3 idle.
    pub prioclass: u8,
    /// I/O priority level; without a set priority, the level that follows from the nice value.
    pub prio: u8,
    /// Start of the measured time, after the ramp time, in ns since the start of the world.
    pub start_ns: u64,
    /// Time of the process's first failed request, in ns since the start of the world; it made no
    /// further requests, as fio does without `continue_on_error`.
    pub failed_ns: Option<u64>,
    /// Length of the measured time, in ns.
    pub runtime_ns: u64,
    /// CPU time, in ns.
    pub cpu_ns: u64,
    /// Number of times that the process slept.
    pub sleeps: u64,
    /// Bytes moved in both directions.
    pub bytes: u64,
    /// Bytes over runtime.
    pub bytes_per_s: f64,
    /// Rounds of a second at whose end the process had less data than its job's `rate` called for:
    /// a block is due a second after the rate allows its request. `None` without `rate`.
    pub deadline_misses: Option<u64>,
    /// Completion latencies in both directions, in ns.
    pub latency_ns: Latency,
    /// Bandwidth over time, both directions: bytes and requests of each window.
    pub windows: Vec<Window>,
    /// The length of a window, in ns.
    pub window_ns: u64,
    /// Bandwidth over time as the process can measure it: a sample at the first completion after
    /// each `window_ns`. If processes take turns that are longer than a window, a sample spans a
    /// whole round, unlike a window.
    pub samples: Vec<BandwidthSample>,
    /// Results of reads.
    pub read: DirectionRun,
    /// Results of writes.
    pub write: DirectionRun,
    /// Latencies of syncs, in ns.
    pub sync: Latency,
    #[serde(skip)]
    pub(crate) measured: Measured,
}

/// The result of one direction of a process.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct DirectionRun {
    /// Bytes moved.
    pub bytes: u64,
    /// Number of requests.
    pub ios: u64,
    /// From the creation of a request to its submission, in ns; empty for a synchronous engine.
    pub slat_ns: Latency,
    /// From submission to completion, in ns.
    pub clat_ns: Latency,
    /// From creation to completion, in ns.
    pub lat_ns: Latency,
}

/// All measurements, for fio's JSON.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub stats: Stats,
    pub job: Arc<Job>,
}

impl Run {
    /// The phase of each process, in the order of the processes: processes of different phases
    /// never ran at the same time. Phases count from 0, in the order of time.
    pub fn phases(&self) -> Vec<usize> {
        phases(&self.processes)
    }

    /// Completion latencies in both directions of all processes for which `counts` returns true.
    pub fn latencies_of(&self, counts: impl Fn(&ProcessRun) -> bool) -> Latencies {
        let mut latencies = Latencies::default();
        self.processes
            .iter()
            .filter(|process| counts(process))
            .for_each(|process| process.add_latencies(&mut latencies));
        latencies
    }

    /// Latencies of syncs of all processes for which `counts` returns true.
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

/// The phases of [`Run::phases`].
pub(super) fn phases(processes: &[ProcessRun]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..processes.len()).collect();
    sort::by_key(&mut order, |index| processes[*index].start_ns);
    let mut of_process = vec![0; processes.len()];
    let (mut phase, mut end_ns) = (0, 0);
    for (position, index) in order.into_iter().enumerate() {
        let process = &processes[index];
        phase += usize::from(position > 0 && process.start_ns >= end_ns);
        end_ns = end_ns.max(process.start_ns.saturating_add(process.runtime_ns));
        of_process[index] = phase;
    }
    of_process
}

impl ProcessRun {
    /// Adds the completion latencies in both directions.
    pub fn add_latencies(&self, latencies: &mut Latencies) {
        latencies.merge(&self.measured.stats.read.clat);
        latencies.merge(&self.measured.stats.write.clat);
    }

    /// File name of the process's bandwidth log, if its job asks for one; `index` counts all
    /// processes from 1.
    pub fn bandwidth_log_name(&self, index: u32) -> Option<String> {
        let prefix = self.measured.job.log.write_bw_log.as_ref()?;
        Some(hoistway_fio::logs::LogKind::Bandwidth.file_name(prefix, index))
    }

    /// The lines of the process's bandwidth log: averages over `log_avg_msec`, or over `bwavgtime`
    /// if that is 0.
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
