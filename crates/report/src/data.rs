//! What a page is made of: plain structs that a caller fills and a page is drawn from.
//!
//! Times are nanoseconds since the run began, sectors are 512 bytes, rates are bytes a second. A process is an index into
//! [`ComparePage::processes`], so that one process has one name and one colour wherever it appears.

use serde::{Deserialize, Serialize};

use crate::ReportError;

/// The most processes that a page tells apart; more would be a page that nobody can read.
pub const PROCESSES_MAX: usize = 4096;

/// The most elevators that a page compares.
pub const ELEVATORS_MAX: usize = 48;

/// What several elevators did with the same workload on the same drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparePage {
    /// The page's heading, one line.
    pub title: String,
    /// One line under the heading; may be empty.
    pub subtitle: String,
    /// How the run was made: job file, drive, seed, version.
    pub facts: Vec<Fact>,
    /// One sentence that says what decided the comparison; may be empty.
    pub verdict: String,
    /// What a reader should know before believing the figures, one sentence or two each.
    pub notes: Vec<String>,
    /// What one sequential reader alone gets from this drive, bytes a second, 0 where it was not measured.
    pub single_stream_bytes_per_s: f64,
    /// The width of one window of [`ProcessBandwidth::bytes_per_s`], nanoseconds, more than 0.
    pub window_ns: u64,
    /// The processes' names, at most [`PROCESSES_MAX`].
    pub processes: Vec<String>,
    /// One a row of the table and one a chart, in the order in which they are shown: at least 1, at most [`ELEVATORS_MAX`].
    pub elevators: Vec<ElevatorResult>,
    /// What control groups got, parents before children; empty where the workload has none.
    #[serde(default)]
    pub groups: Vec<GroupRow>,
}

/// What a control group got under each elevator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupRow {
    /// The names on the way to it, with slashes between them.
    pub name: String,
    /// Its weight among its siblings.
    pub weight: u32,
    /// Its part of what all processes moved, 0 to 1, in the order of [`ComparePage::elevators`].
    pub shares: Vec<f64>,
}

/// A name and a value about the run, as "seed: 42".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What is told, as "job file".
    pub label: String,
    /// Its value.
    pub value: String,
}

/// What one elevator did with the workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ElevatorResult {
    /// The elevator's name, unique on the page: "cfq-v3", or "cfq-v3 slice_idle=0" where one elevator is compared with itself.
    pub name: String,
    /// What all processes together got, bytes a second.
    pub bytes_per_s: f64,
    /// `bytes_per_s` as a share of the single stream, 1.0 for all of it, or none where no single stream was measured.
    pub of_single_stream: Option<f64>,
    /// What the process that got least got, bytes a second.
    pub process_min_bytes_per_s: f64,
    /// What the process that got most got, bytes a second.
    pub process_max_bytes_per_s: f64,
    /// Jain's index of the processes' rates, 1/n for one process taking all to 1 for equal shares (Jain, Chiu & Hawe 1984).
    pub jain: f64,
    /// The requests' latencies in five figures.
    pub latency: LatencySummary,
    /// From the first request to the last completion, nanoseconds.
    pub runtime_ns: u64,
    /// Whether it divides the disk among control groups: the others take all processes as of one.
    #[serde(default)]
    pub divides_by_groups: bool,
    /// What the drive spent that time on.
    pub drive: DriveTime,
    /// Latencies at percentiles, in rising order of percentile; may be empty.
    pub percentiles: Vec<PercentileLatency>,
    /// Bandwidth over time, at most one entry a process; may be empty.
    pub bandwidth: Vec<ProcessBandwidth>,
    /// Where each process's requests lay, at most one entry a process; may be empty.
    pub head: Vec<HeadTrack>,
    /// How many requests were served in all, for a caller who hands over only a part of them in `head`; 0 means all of them.
    pub requests: u64,
    /// Each queue's turns in the order in which they began, or none where the elevator has no slices.
    pub slices: Option<Vec<Slice>>,
}

/// The latency of requests, from submission to completion, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// The mean.
    pub mean_ns: f64,
    /// The standard deviation.
    pub stddev_ns: f64,
    /// The median.
    pub p50_ns: u64,
    /// What 99 of 100 requests stayed within.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// What the drive spent its time on, nanoseconds each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveTime {
    /// Moving the arm.
    pub seek_ns: u64,
    /// Waiting for the sector to come round.
    pub rotation_ns: u64,
    /// Moving bytes under the head.
    pub transfer_ns: u64,
    /// The controller's own time, and whatever is none of the others.
    pub overhead_ns: u64,
    /// Having nothing to do, or being made to wait by an elevator that anticipates.
    pub idle_ns: u64,
}

/// One point of the percentile chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PercentileLatency {
    /// The percentile, 0 to 100; 100 is the longest latency of all.
    pub percentile: f64,
    /// The latency that this share of the requests stayed within, nanoseconds.
    pub latency_ns: u64,
}

/// One process's bandwidth in successive windows of [`ComparePage::window_ns`], the first of which begins at 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessBandwidth {
    /// An index into [`ComparePage::processes`].
    pub process: u32,
    /// Bytes a second in each window.
    pub bytes_per_s: Vec<f64>,
}

/// Where one process's requests lay and when they were served: two columns of the same length, in rising order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadTrack {
    /// An index into [`ComparePage::processes`].
    pub process: u32,
    /// When the drive began each request, nanoseconds.
    pub time_ns: Vec<u64>,
    /// The first sector of each request.
    pub sector: Vec<u64>,
}

/// One turn of one process's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// An index into [`ComparePage::processes`].
    pub process: u32,
    /// When the turn began, nanoseconds.
    pub start_ns: u64,
    /// When it ended, nanoseconds, not before it began.
    pub end_ns: u64,
}

impl ComparePage {
    /// Whether a page can be drawn from this: every index names a process, every rate is a number, columns are of equal length.
    ///
    /// # Errors
    /// The first thing found wrong, with the elevator, the value and what would be right.
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

    /// The processes whose requests, bandwidth or slices appear anywhere on the page, as `used[process]`.
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
    fn check(&self, processes: usize) -> Result<(), ReportError> {
        let name = self.name.as_str();
        rate(name, "bytes_per_s", self.bytes_per_s)?;
        rate(name, "of_single_stream", self.of_single_stream.unwrap_or(0.0))?;
        rate(name, "process_min_bytes_per_s", self.process_min_bytes_per_s)?;
        rate(name, "process_max_bytes_per_s", self.process_max_bytes_per_s)?;
        rate(name, "jain", self.jain)?;
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

    /// What is said of a page that was spoilt in one place.
    fn said(spoil: impl FnOnce(&mut ComparePage)) -> String {
        let mut page = page();
        spoil(&mut page);
        page.check().expect_err("the page was spoilt").to_string()
    }

    #[test]
    fn a_sound_page_passes() {
        page().check().unwrap();
    }

    #[test]
    fn what_is_wrong_is_named_with_its_value_and_what_would_be_right() {
        assert_eq!(said(|p| p.elevators.clear()), "the page has 0 elevators: it needs 1 to 48");
        assert_eq!(
            said(|p| p.elevators[0].jain = f64::NAN),
            "jain of cfq is NaN: it must be a finite number, 0 or more"
        );
        assert_eq!(
            said(|p| p.elevators[0].bandwidth[0].bytes_per_s[0] = -1.0),
            "bandwidth of cfq is -1: it must be a finite number, 0 or more"
        );
        assert_eq!(
            said(|p| p.elevators[0].head[0].process = 2),
            "head of cfq names process 2: the page has 2 processes, counted from 0"
        );
        assert_eq!(
            said(|p| p.elevators[0].head[0].sector.truncate(1)),
            "head of cfq, process 1: 3 times but 1 sectors, they must be as many"
        );
        assert_eq!(
            said(|p| p.elevators[0].head[0].time_ns[2] = 0),
            "head of cfq, process 1: time 2 is earlier than the one before it, they must rise"
        );
    }

    #[test]
    fn entries_that_contradict_each_other_are_refused() {
        assert!(said(|p| p.window_ns = 0).contains("window_ns is 0"));
        assert!(said(|p| p.elevators.push(p.elevators[0].clone())).contains("'cfq' appears twice"));
        assert!(said(|p| p.elevators[0].slices.as_mut().unwrap()[0].end_ns = 4).contains("from 5 ns to 4 ns"));
        assert!(said(|p| p.elevators[0].percentiles[0].percentile = 100.5).contains("100.5"));
        let twice = |p: &mut ComparePage| p.elevators[0].bandwidth.push(ProcessBandwidth::default());
        assert!(said(twice).contains("two entries for process 0"));
    }
}
