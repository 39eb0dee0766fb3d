//! The content of a comparison page: plain structs that the caller fills.
//!
//! Times are in ns since the start of the run, sectors have 512 bytes, rates are in bytes a second.
//! A process is an index into [`ComparePage::processes`], so it has one name and one colour on the
//! whole page.

use serde::{Deserialize, Serialize};

use crate::ReportError;

/// The largest number of processes of a readable page.
pub const PROCESSES_MAX: usize = 4096;

/// The largest number of elevators of a page.
pub const ELEVATORS_MAX: usize = 48;

/// The results of several elevators with one workload on one drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparePage {
    /// The command that made the page, such as "hoistway compare".
    #[serde(default)]
    pub command: String,
    /// The heading of the page, one line.
    pub title: String,
    /// One line under the heading; may be empty.
    pub subtitle: String,
    /// The parameters of the run: job file, drive, seed, version.
    pub facts: Vec<Fact>,
    /// One sentence with the decisive difference; may be empty.
    pub verdict: String,
    /// Limitations of the figures, one or two sentences each.
    pub notes: Vec<String>,
    /// Throughput of a single sequential reader on this drive in bytes a second; 0 if it was not
    /// measured.
    pub single_stream_bytes_per_s: f64,
    /// The width of a window of [`ProcessBandwidth::bytes_per_s`] in ns, above 0.
    pub window_ns: u64,
    /// The names of the processes, at most [`PROCESSES_MAX`].
    pub processes: Vec<String>,
    /// The elevators in the order of the page: 1 to [`ELEVATORS_MAX`].
    pub elevators: Vec<ElevatorResult>,
    /// Control groups, parents before children; empty if the workload has none.
    #[serde(default)]
    pub groups: Vec<GroupRow>,
    /// The jobs of the workload; empty if they are not shown, as for a single one.
    #[serde(default)]
    pub jobs: Vec<JobRow>,
    /// True if the drive has no arm and no platters: the page has no seek and rotation then.
    #[serde(default)]
    pub solid_state: bool,
    /// Further tables below those of elevators, jobs and groups.
    #[serde(default)]
    pub tables: Vec<NamedTable>,
}

/// A table with its own section of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedTable {
    /// The heading of the section.
    pub title: String,
    /// The meaning of the figures in one or two sentences.
    pub intro: String,
    /// The table.
    pub table: Table,
}

/// A table. The first cell of a row is its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The headings of the columns.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// The index of an emphasised row.
    pub marked: Option<usize>,
}

/// The results of a job under each elevator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobRow {
    /// The name of the job.
    pub name: String,
    /// The number of its processes.
    pub processes: usize,
    /// The results in the order of [`ComparePage::elevators`].
    pub results: Vec<JobResult>,
}

/// The results of a job under one elevator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// Throughput of all processes of the job in bytes a second.
    pub bytes_per_s: f64,
    /// Throughput of its slowest process in bytes a second.
    pub slowest_bytes_per_s: f64,
    /// The 99th percentile of the latency in ns.
    pub p99_ns: u64,
    /// The longest latency in ns.
    pub max_ns: u64,
    /// The latencies of the job's syncs; `None` if it completed none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncSummary>,
    /// True if a process or a request of the job starves.
    pub starves: bool,
}

/// The shares of a control group under each elevator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupRow {
    /// The path of the group, with slashes.
    pub name: String,
    /// The weight among its siblings.
    pub weight: u32,
    /// The share of all bytes, 0 to 1, in the order of [`ComparePage::elevators`].
    pub shares: Vec<f64>,
}

/// A name and a value, such as "seed: 42".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// The name, such as "job file".
    pub label: String,
    /// The value.
    pub value: String,
}

/// The results of one elevator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ElevatorResult {
    /// The name of the elevator, unique on the page: "cfq-v3", or "cfq-v3 slice_idle=0" if one
    /// elevator is compared with itself.
    pub name: String,
    /// True if current kernels offer the elevator: the page shows these first.
    #[serde(default)]
    pub is_current: bool,
    /// Throughput of all processes together in bytes a second.
    pub bytes_per_s: f64,
    /// `bytes_per_s` as a share of the single stream; `None` if that was not measured.
    pub of_single_stream: Option<f64>,
    /// Throughput of the slowest process in bytes a second.
    pub process_min_bytes_per_s: f64,
    /// Throughput of the fastest process in bytes a second.
    pub process_max_bytes_per_s: f64,
    /// Jain's fairness index of the processes' rates, from 1/n for one process alone to 1 for equal
    /// shares (Jain, Chiu & Hawe 1984); `None` if the processes did not run at the same time.
    pub jain: Option<f64>,
    /// True if a job starves: the elevator is not marked as the best in any column.
    #[serde(default)]
    pub starves: bool,
    /// The latencies in five figures.
    pub latency: LatencySummary,
    /// The latencies of the syncs of the slowest job; `None` if no sync completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncSummary>,
    /// Time from the first request to the last completion in ns.
    pub runtime_ns: u64,
    /// True if the elevator divides the disk among control groups. The others treat all processes
    /// as one group.
    #[serde(default)]
    pub divides_by_groups: bool,
    /// The parts of the drive's time.
    pub drive: DriveTime,
    /// Latencies by rising percentile; may be empty.
    pub percentiles: Vec<PercentileLatency>,
    /// Throughput over time, at most one entry for each process; may be empty.
    pub bandwidth: Vec<ProcessBandwidth>,
    /// Positions of requests, at most one entry for each process; may be empty.
    pub head: Vec<HeadTrack>,
    /// Number of requests served, for a caller that passes only a part of them in `head`; 0 for all
    /// of them.
    pub requests: u64,
    /// Slices in the order of their start; `None` for an elevator without slices.
    pub slices: Option<Vec<Slice>>,
}

/// Latencies from submission to completion in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// The mean in ns.
    pub mean_ns: f64,
    /// The standard deviation in ns.
    pub stddev_ns: f64,
    /// The median in ns.
    pub p50_ns: u64,
    /// The 99th percentile in ns.
    pub p99_ns: u64,
    /// The maximum in ns.
    pub max_ns: u64,
}

/// Latencies of syncs (`fsync`, `fdatasync`), which latencies of requests do not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncSummary {
    /// The 99th percentile in ns.
    pub p99_ns: u64,
    /// The maximum in ns.
    pub max_ns: u64,
}

/// The parts of the drive's time in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveTime {
    /// Time of seeks.
    pub seek_ns: u64,
    /// Time of rotational latency.
    pub rotation_ns: u64,
    /// Time of media transfer.
    pub transfer_ns: u64,
    /// Controller overhead, and all time not in the other parts.
    pub overhead_ns: u64,
    /// Idle time, including waits of an anticipating elevator.
    pub idle_ns: u64,
}

/// One point of the percentile chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PercentileLatency {
    /// The percentile, 0 to 100; 100 is the maximum.
    pub percentile: f64,
    /// The latency at this percentile in ns.
    pub latency_ns: u64,
}

/// Throughput of one process in successive windows of [`ComparePage::window_ns`], the first of
/// which begins at 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessBandwidth {
    /// An index into [`ComparePage::processes`].
    pub process: u32,
    /// Throughput in each window in bytes a second.
    pub bytes_per_s: Vec<f64>,
}

/// Positions and times of one process's requests: two columns of equal length by rising time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadTrack {
    /// An index into [`ComparePage::processes`].
    pub process: u32,
    /// The start of service of each request in ns.
    pub time_ns: Vec<u64>,
    /// The first sector of each request.
    pub sector: Vec<u64>,
}

/// One slice of one process's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// An index into [`ComparePage::processes`].
    pub process: u32,
    /// The start in ns.
    pub start_ns: u64,
    /// The end in ns, not before the start.
    pub end_ns: u64,
}

impl ComparePage {
    /// Checks that every index names a process, every rate is a number, and columns have equal
    /// lengths.
    ///
    /// # Errors
    /// The first violation, with the elevator, the invalid value and the valid ones.
    pub fn check(&self) -> Result<(), ReportError> {
        if self.elevators.is_empty() || self.elevators.len() > ELEVATORS_MAX {
            return Err(ReportError::ElevatorCount { count: self.elevators.len(), max: ELEVATORS_MAX });
        }
        if self.processes.len() > PROCESSES_MAX {
            return Err(ReportError::ProcessCount { count: self.processes.len(), max: PROCESSES_MAX });
        }
        if self.window_ns == 0 {
            return Err(ReportError::Window);
        }
        rate("the page", "single_stream_bytes_per_s", self.single_stream_bytes_per_s)?;
        for (i, elevator) in self.elevators.iter().enumerate() {
            if self.elevators[..i].iter().any(|e| e.name == elevator.name) {
                return Err(ReportError::DuplicateElevator { elevator: elevator.name.clone() });
            }
            elevator.check(self.processes.len())?;
        }
        for group in &self.groups {
            let (shares, elevators) = (group.shares.len(), self.elevators.len());
            if shares != elevators {
                return Err(ReportError::GroupShares { group: group.name.clone(), shares, elevators });
            }
            group.shares.iter().try_for_each(|&share| rate(&group.name, "shares", share))?;
        }
        Ok(())
    }

    /// The processes that appear on the page, as `used[process]`.
    pub(crate) fn processes_used(&self) -> Vec<bool> {
        let mut used = vec![false; self.processes.len()];
        let mut mark = |process: u32| {
            if let Some(slot) = used.get_mut(process as usize) {
                *slot = true;
            }
        };
        for elevator in &self.elevators {
            elevator.bandwidth.iter().for_each(|b| mark(b.process));
            elevator.head.iter().for_each(|h| mark(h.process));
            elevator.slices.iter().flatten().for_each(|s| mark(s.process));
        }
        used
    }
}

impl ElevatorResult {
    /// Returns true if throughput, all latency percentiles and the syncs equal those of another
    /// elevator.
    pub(crate) fn has_same_results(&self, other: &ElevatorResult) -> bool {
        self.bytes_per_s == other.bytes_per_s
            && self.latency == other.latency
            && self.percentiles == other.percentiles
            && self.sync == other.sync
    }

    fn check(&self, processes: usize) -> Result<(), ReportError> {
        let name = self.name.as_str();
        rate(name, "bytes_per_s", self.bytes_per_s)?;
        rate(name, "of_single_stream", self.of_single_stream.unwrap_or(0.0))?;
        rate(name, "process_min_bytes_per_s", self.process_min_bytes_per_s)?;
        rate(name, "process_max_bytes_per_s", self.process_max_bytes_per_s)?;
        rate(name, "jain", self.jain.unwrap_or(0.0))?;
        rate(name, "latency.mean_ns", self.latency.mean_ns)?;
        rate(name, "latency.stddev_ns", self.latency.stddev_ns)?;
        self.check_percentiles()?;
        self.check_tracks(processes)?;
        for (index, slice) in self.slices.iter().flatten().enumerate() {
            process(name, "slices", slice.process, processes)?;
            if slice.end_ns < slice.start_ns {
                let Slice { start_ns, end_ns, .. } = *slice;
                return Err(ReportError::SliceEndsFirst { elevator: name.to_owned(), index, start_ns, end_ns });
            }
        }
        Ok(())
    }

    fn check_percentiles(&self) -> Result<(), ReportError> {
        let mut before = 0.0;
        for point in &self.percentiles {
            let p = point.percentile;
            if !(p >= before && p <= 100.0) {
                return Err(ReportError::Percentile { elevator: self.name.clone(), percentile: p, before });
            }
            before = p;
        }
        Ok(())
    }

    fn check_tracks(&self, processes: usize) -> Result<(), ReportError> {
        let name = self.name.as_str();
        let mut seen = vec![false; processes];
        for series in &self.bandwidth {
            process(name, "bandwidth", series.process, processes)?;
            once(name, "bandwidth", series.process, &mut seen)?;
            for &value in &series.bytes_per_s {
                rate(name, "bandwidth", value)?;
            }
        }
        seen.fill(false);
        for track in &self.head {
            process(name, "head", track.process, processes)?;
            once(name, "head", track.process, &mut seen)?;
            let (times, sectors) = (track.time_ns.len(), track.sector.len());
            if times != sectors {
                let elevator = name.to_owned();
                return Err(ReportError::HeadColumns { elevator, process: track.process, times, sectors });
            }
            if let Some(index) = track.time_ns.windows(2).position(|w| w[1] < w[0]) {
                let elevator = name.to_owned();
                return Err(ReportError::HeadOrder { elevator, process: track.process, index: index + 1 });
            }
        }
        Ok(())
    }
}

fn rate(of: &str, field: &'static str, value: f64) -> Result<(), ReportError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(ReportError::NotANumber { of: of.to_owned(), field, value })
}

fn process(elevator: &str, field: &'static str, process: u32, processes: usize) -> Result<(), ReportError> {
    if (process as usize) < processes {
        return Ok(());
    }
    Err(ReportError::UnknownProcess { elevator: elevator.to_owned(), field, process, processes })
}

fn once(elevator: &str, field: &'static str, process: u32, seen: &mut [bool]) -> Result<(), ReportError> {
    match seen.get_mut(process as usize) {
        Some(slot) if !*slot => {
            *slot = true;
            Ok(())
        }
        _ => Err(ReportError::ProcessTwice { elevator: elevator.to_owned(), field, process }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> ComparePage {
        let elevator = ElevatorResult {
            name: "cfq".into(),
            percentiles: vec![PercentileLatency { percentile: 50.0, latency_ns: 1 }],
            bandwidth: vec![ProcessBandwidth { process: 0, bytes_per_s: vec![1.0] }],
            head: vec![HeadTrack { process: 1, time_ns: vec![3, 3, 4], sector: vec![9, 8, 7] }],
            slices: Some(vec![Slice { process: 1, start_ns: 5, end_ns: 5 }]),
            ..ElevatorResult::default()
        };
        ComparePage {
            window_ns: 1,
            processes: vec!["a".into(), "b".into()],
            elevators: vec![elevator],
            ..ComparePage::default()
        }
    }

    /// The error of a page with one invalid value.
    fn error_of(invalidate: impl FnOnce(&mut ComparePage)) -> String {
        let mut page = page();
        invalidate(&mut page);
        page.check().expect_err("the page is invalid").to_string()
    }

    #[test]
    fn a_valid_page_passes() {
        page().check().unwrap();
    }

    #[test]
    fn errors_have_the_value_and_the_allowed_values() {
        assert_eq!(error_of(|p| p.elevators.clear()), "the page has 0 elevators: it needs 1 to 48");
        assert_eq!(
            error_of(|p| p.elevators[0].jain = Some(f64::NAN)),
            "jain of cfq is NaN: it must be a finite number, 0 or more"
        );
        assert_eq!(
            error_of(|p| p.elevators[0].bandwidth[0].bytes_per_s[0] = -1.0),
            "bandwidth of cfq is -1: it must be a finite number, 0 or more"
        );
        assert_eq!(
            error_of(|p| p.elevators[0].head[0].process = 2),
            "head of cfq has process 2: the page has 2 processes, counted from 0"
        );
        assert_eq!(
            error_of(|p| p.elevators[0].head[0].sector.truncate(1)),
            "head of cfq, process 1: 3 times but 1 sectors: the columns must have equal lengths"
        );
        assert_eq!(
            error_of(|p| p.elevators[0].head[0].time_ns[2] = 0),
            "head of cfq, process 1: time 2 is earlier than the previous one: times must rise"
        );
    }

    #[test]
    fn entries_that_contradict_each_other_are_refused() {
        assert!(error_of(|p| p.window_ns = 0).contains("window_ns is 0"));
        assert!(error_of(|p| p.elevators.push(p.elevators[0].clone())).contains("'cfq' appears twice"));
        assert!(error_of(|p| p.elevators[0].slices.as_mut().unwrap()[0].end_ns = 4).contains("from 5 ns to 4 ns"));
        assert!(error_of(|p| p.elevators[0].percentiles[0].percentile = 100.5).contains("100.5"));
        let twice = |p: &mut ComparePage| p.elevators[0].bandwidth.push(ProcessBandwidth::default());
        assert!(error_of(twice).contains("two entries for process 0"));
    }
}
