//! The error of a model on the recorded elevator, and the confidence in its predictions.

use std::sync::atomic::AtomicBool;

use hoistway_core::Kind;
use hoistway_sim::{Comparison, Latencies, Latency, ProcessRun, bytes_per_s};
use hoistway_trace::dependencies::{Pattern, PatternAnalysis};
use hoistway_units::figures::magnitude;

use super::model::{Machine, Model};
use super::recording::{RecordedProcess, WhatifError};

/// Greatest relative error at which a model may predict other elevators.
pub const MISS_MAX: f64 = 0.2;
/// The minimum number of recorded requests of a process that is judged individually: with fewer,
/// figures are chance.
const JUDGED_REQUESTS_MIN: u64 = 100;
/// Errors up to the first value are good, those above the second are poor.
const MISS_GOOD: f64 = 0.05;
const MISS_POOR: f64 = 0.1;
/// Time for which bfq favours new readers at most, in ns.
const SETTLED_NS: u64 = 25_000_000_000;
/// Ratio of predicted to recorded requests of a process above which the prediction extrapolates.
const STRETCH_MAX: f64 = 3.0;
/// Share of a process's requests that a dependency rule should explain.
const EXPLAINED_MIN: f64 = 0.8;

/// Throughput and latency of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Figures {
    /// Bytes a second, from the first request to the end of the recording; to the last completion
    /// for a process that ended before.
    pub bytes_per_s: f64,
    /// Completion latencies, in ns.
    pub latency_ns: Latency,
}

/// Recorded and predicted figures of one process.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ProcessFidelity {
    /// Name of the process.
    pub name: String,
    /// Process id.
    pub pid: u32,
    /// The recorded figures.
    pub recorded: Figures,
    /// The figures of the model.
    pub predicted: Figures,
}

/// The error of a model on the recorded elevator.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Fidelity {
    /// Name of the elevator.
    pub elevator: String,
    /// The processes.
    pub processes: Vec<ProcessFidelity>,
    /// All processes together: their bytes over the length of the recording, and the latencies of
    /// all their requests.
    pub all: ProcessFidelity,
}

/// The confidence in a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// At best, the direction of a change.
    Low,
    /// The order of elevators whose figures are well apart.
    Fair,
    /// Figures, to within about the error of the model.
    High,
}

impl Level {
    /// The level as a word.
    pub fn name(self) -> &'static str {
        match self {
            Level::Low => "low",
            Level::Fair => "fair",
            Level::High => "high",
        }
    }
}

/// The confidence in a prediction, with reasons.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Confidence {
    /// The level of confidence.
    pub level: Level,
    /// The reasons, one sentence each.
    pub reasons: Vec<String>,
}

impl Model {
    /// Runs the workload under the recorded elevator and returns the error of the model.
    ///
    /// # Errors
    /// [`WhatifError::Beyond`] if the drive is too small, [`WhatifError::Sim`] if the simulation
    /// fails or is cancelled.
    pub fn fidelity(&self, recorded: Kind, machine: &Machine, cancel: &AtomicBool) -> Result<Fidelity, WhatifError> {
        let comparison = self.predict(&[recorded], machine, false, &|_| {}, cancel)?;
        Ok(Fidelity::new(self, recorded, &comparison))
    }
}

impl ProcessFidelity {
    /// Relative error of the throughput: predicted over recorded, minus 1.
    pub fn throughput_error(&self) -> f64 {
        error(self.predicted.bytes_per_s, self.recorded.bytes_per_s)
    }

    /// Relative error of the mean latency.
    pub fn mean_latency_error(&self) -> f64 {
        error(self.predicted.latency_ns.mean, self.recorded.latency_ns.mean)
    }

    /// Relative error of the 99th percentile of latency.
    pub fn p99_latency_error(&self) -> f64 {
        error(self.predicted.latency_ns.p99 as f64, self.recorded.latency_ns.p99 as f64)
    }

    /// Returns true if the process is judged individually: it has at least 100 recorded requests.
    pub fn is_judged(&self) -> bool {
        self.recorded.latency_ns.n >= JUDGED_REQUESTS_MIN
    }

    /// The greater of the absolute errors of throughput and mean latency.
    pub fn miss(&self) -> f64 {
        self.throughput_error().abs().max(self.mean_latency_error().abs())
    }
}

impl Fidelity {
    fn new(model: &Model, recorded: Kind, comparison: &Comparison) -> Fidelity {
        let recording = model.recording();
        let length_ns = recording.length_ns();
        let runs = comparison.runs.first().map_or(&[][..], |run| &run.processes);
        let (mut recorded_sum, mut predicted_sum) = (Sum::default(), Sum::default());
        let mut processes = Vec::new();
        for ((process, run), endless) in recording.processes.iter().zip(runs).zip(model.endless()) {
            let recorded = recorded_sum.add_recorded(process, recording.until_ns, endless);
            let predicted = predicted_sum.add_run(run);
            processes.push(ProcessFidelity { name: process.name.clone(), pid: process.pid, recorded, predicted });
        }
        let all = ProcessFidelity {
            name: "all".into(),
            pid: 0,
            recorded: recorded_sum.figures(length_ns),
            predicted: predicted_sum.figures(length_ns),
        };
        Fidelity { elevator: recorded.info().name.into(), processes, all }
    }

    /// The judged figures: all processes together, and each process of at least 100 recorded
    /// requests.
    pub fn judged(&self) -> impl Iterator<Item = &ProcessFidelity> {
        std::iter::once(&self.all).chain(self.processes.iter().filter(|process| process.is_judged()))
    }

    /// The greatest error of throughput or mean latency among the judged figures.
    pub fn miss(&self) -> f64 {
        self.judged().map(ProcessFidelity::miss).fold(0.0, f64::max)
    }

    /// Returns true if the model is accurate enough for predictions.
    pub fn holds(&self) -> bool {
        self.miss() <= MISS_MAX
    }

    /// The confidence in the model's predictions; `comparison` is the prediction for other
    /// elevators, if there is one.
    pub fn confidence(&self, model: &Model, comparison: Option<&Comparison>) -> Confidence {
        let mut level = Level::High;
        let mut reasons = Vec::new();
        let mut limit = |at_most: Level, reason: String| {
            level = level.min(at_most);
            reasons.push(reason);
        };
        let miss = self.miss();
        let of_miss = match miss {
            miss if miss <= MISS_GOOD => Level::High,
            miss if miss <= MISS_POOR => Level::Fair,
            _ => Level::Low,
        };
        limit(
            of_miss,
            format!(
                "the model misses the recording under {} by {} at most (throughput and mean latency)",
                self.elevator,
                magnitude(miss)
            ),
        );
        let recording = model.recording();
        if let Some(reason) = note_on_new_readers(recording.length_ns()) {
            limit(Level::Fair, reason);
        }
        let all: usize = recording.processes.iter().map(|process| process.requests.len()).sum();
        for (process, finding) in model.findings() {
            let share = process.requests.len() as f64 / all.max(1) as f64;
            if share < 0.01 {
                continue;
            }
            let name = format!("{} ({})", process.name, process.pid);
            if let Some(doubt) = doubt(&name, finding) {
                limit(Level::Fair, doubt);
            }
        }
        for (name, pid, times) in comparison.into_iter().flat_map(|comparison| stretched(model, comparison)) {
            limit(
                Level::Fair,
                format!(
                    "{name} ({pid}) has up to {times:.0} times its recorded requests in the prediction: the model assumes that it continues in the same way"
                ),
            );
        }
        Confidence { level, reasons }
    }
}

/// The reason for which predictions of bfq from a recording of this length say little about a
/// longer run.
pub(super) fn note_on_new_readers(length_ns: u64) -> Option<String> {
    (length_ns < SETTLED_NS).then(|| {
        format!(
            "the recording is {:.1} s long: bfq favours new readers for 3 to 25 s, so the prediction of bfq covers little but that time",
            length_ns as f64 / 1e9
        )
    })
}

/// Describes a doubt about the dependency rule of a process.
fn doubt(name: &str, finding: &PatternAnalysis) -> Option<String> {
    match finding.pattern {
        Pattern::Open => Some(format!(
            "{name} sends requests at times without a rule: the model keeps the recorded times under every elevator"
        )),
        _ if finding.explained < EXPLAINED_MIN => {
            Some(format!("the rule found for {name} explains {:.0} % of its requests", finding.explained * 100.0))
        }
        _ if finding.slope.is_none() => Some(format!(
            "{name} has too few requests, or too similar latencies, to find the event that its requests wait for"
        )),
        _ => None,
    }
}

/// Processes with many more predicted than recorded requests, with the ratio under the elevator
/// that serves them best.
fn stretched(model: &Model, comparison: &Comparison) -> Vec<(String, u32, f64)> {
    let most = |index: usize, process: &RecordedProcess| {
        let made = |run: &ProcessRun| run.read.ios + run.write.ios;
        let most = comparison.runs.iter().filter_map(|run| run.processes.get(index)).map(made).max().unwrap_or(0);
        most as f64 / process.requests.len().max(1) as f64
    };
    let processes = model.recording().processes.iter().enumerate();
    processes
        .map(|(index, process)| (process.name.clone(), process.pid, most(index, process)))
        .filter(|(_, _, times)| *times > STRETCH_MAX)
        .collect()
}

/// Relative error: predicted over recorded, minus 1. If nothing was recorded, the error is 0 for a
/// prediction of nothing, otherwise infinite.
fn error(predicted: f64, recorded: f64) -> f64 {
    match (predicted > 0.0, recorded > 0.0) {
        (_, true) => predicted / recorded - 1.0,
        (true, false) => f64::INFINITY,
        (false, false) => 0.0,
    }
}

/// Sums over processes.
#[derive(Default)]
struct Sum {
    bytes: u64,
    latencies: Latencies,
}

impl Sum {
    fn add_recorded(&mut self, process: &RecordedProcess, until_ns: u64, endless: bool) -> Figures {
        let completed = || process.requests.iter().filter(|request| request.completed_ns <= until_ns);
        let mut latencies = Latencies::default();
        completed().for_each(|request| latencies.record(request.completed_ns.saturating_sub(request.queued_ns)));
        // In whole sectors, as in the simulator.
        let bytes = completed().map(|request| u64::from(request.bytes.div_ceil(512)) * 512).sum();
        let from_ns = process.requests.first().map_or(until_ns, |first| first.queued_ns);
        let last_ns = completed().map(|request| request.completed_ns).max().unwrap_or(until_ns);
        let length_ns = (if endless { until_ns } else { last_ns }).saturating_sub(from_ns);
        self.bytes += bytes;
        self.latencies.merge(&latencies);
        Figures { bytes_per_s: bytes_per_s(bytes, length_ns), latency_ns: latencies.summary() }
    }

    fn add_run(&mut self, run: &ProcessRun) -> Figures {
        self.bytes += run.bytes;
        run.add_latencies(&mut self.latencies);
        Figures { bytes_per_s: run.bytes_per_s, latency_ns: run.latency_ns }
    }

    fn figures(&self, length_ns: u64) -> Figures {
        Figures { bytes_per_s: bytes_per_s(self.bytes, length_ns), latency_ns: self.latencies.summary() }
    }
}
