//! By how much a model misses what was recorded, and what its predictions are worth.

use hoistway_core::Kind;
use hoistway_trace::dependencies::{Pattern, PatternAnalysis};

use super::{Model, RecordedProcess};
use crate::compare::{Comparison, ProcessRun};
use crate::measure::{Latencies, Latency};

/// A model that misses the recording by more than this, as a part of what was recorded, tells nothing about other elevators.
pub const MISS_MAX: f64 = 0.2;
/// Processes of fewer recorded requests are not judged one by one: their figures are chance.
const JUDGED_REQUESTS_MIN: u64 = 100;
/// A miss below this is good, one above the second figure is poor.
const MISS_GOOD: f64 = 0.05;
const MISS_POOR: f64 = 0.1;
/// bfq favours new readers for up to so long.
const SETTLED_NS: u64 = 25_000_000_000;
/// A prediction that makes more than so many times the recorded requests of a process goes on behind what is known of it.
const STRETCH_MAX: f64 = 3.0;
/// Rules that explain less than this share of a process's requests are doubtful.
const EXPLAINED_MIN: f64 = 0.8;

/// What a process got.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Figures {
    /// Bytes a second, from its first request to the end of the recording; of one that ended before, to its last completion.
    pub bytes_per_s: f64,
    /// From submission to completion, in ns.
    pub latency_ns: Latency,
}

/// Recorded and predicted, of one process.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ProcessFidelity {
    /// What it is called.
    pub name: String,
    /// Its id.
    pub pid: u32,
    /// What was recorded.
    pub recorded: Figures,
    /// What the model says.
    pub predicted: Figures,
}

/// The error of a model, on the elevator that was recorded.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Fidelity {
    /// The elevator.
    pub elevator: String,
    /// The processes.
    pub processes: Vec<ProcessFidelity>,
    /// All of them together: their bytes over the time of the recording, all their requests' latencies.
    pub all: ProcessFidelity,
}

/// How much a prediction is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The direction, perhaps.
    Low,
    /// The order of elevators that are well apart.
    Fair,
    /// Figures to within about the error of the model.
    High,
}

/// The same with its reasons.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Confidence {
    /// How much.
    pub level: Level,
    /// What it is so for, a sentence each.
    pub reasons: Vec<String>,
}

impl ProcessFidelity {
    /// Predicted over recorded throughput, less 1.
    pub fn throughput_error(&self) -> f64 {
        error(self.predicted.bytes_per_s, self.recorded.bytes_per_s)
    }

    /// The same of the mean latency.
    pub fn mean_latency_error(&self) -> f64 {
        error(self.predicted.latency_ns.mean, self.recorded.latency_ns.mean)
    }

    /// The same of the 99th percentile of latency.
    pub fn p99_latency_error(&self) -> f64 {
        error(self.predicted.latency_ns.p99 as f64, self.recorded.latency_ns.p99 as f64)
    }

    /// Whether it counts by itself: it has at least 100 recorded requests.
    pub fn is_judged(&self) -> bool {
        self.recorded.latency_ns.n >= JUDGED_REQUESTS_MIN
    }

    /// The greater of the errors of throughput and mean latency.
    pub fn miss(&self) -> f64 {
        self.throughput_error().abs().max(self.mean_latency_error().abs())
    }
}

impl Fidelity {
    pub(super) fn of(model: &Model, recorded: Kind, comparison: &Comparison) -> Fidelity {
        let recording = model.recording();
        let length_ns = recording.until_ns.saturating_sub(recording.from_ns);
        let runs = comparison.runs.first().map_or(&[][..], |run| &run.processes);
        let (mut was, mut is) = (Sum::default(), Sum::default());
        let mut processes = Vec::new();
        for ((process, run), endless) in recording.processes.iter().zip(runs).zip(model.endless()) {
            let recorded = was.add_recorded(process, recording.until_ns, endless);
            let predicted = is.add_run(run);
            processes.push(ProcessFidelity { name: process.name.clone(), pid: process.pid, recorded, predicted });
        }
        let all = ProcessFidelity {
            name: "all".into(),
            pid: 0,
            recorded: was.figures(length_ns),
            predicted: is.figures(length_ns),
        };
        Fidelity { elevator: recorded.info().name.into(), processes, all }
    }

    /// What is judged: all together, and each process of at least 100 recorded requests.
    pub fn judged(&self) -> impl Iterator<Item = &ProcessFidelity> {
        std::iter::once(&self.all).chain(self.processes.iter().filter(|process| process.is_judged()))
    }

    /// The greatest error of throughput or mean latency among what is judged.
    pub fn miss(&self) -> f64 {
        self.judged().map(ProcessFidelity::miss).fold(0.0, f64::max)
    }

    /// Whether the model is good enough to predict anything.
    pub fn holds(&self) -> bool {
        self.miss() <= MISS_MAX
    }

    /// What predictions of this model are worth; `comparison`, if it is there, is of the other elevators.
    pub fn confidence(&self, model: &Model, comparison: Option<&Comparison>) -> Confidence {
        let mut level = Level::High;
        let mut reasons = Vec::new();
        let mut tell = |at_most: Level, reason: String| {
            level = level.min(at_most);
            reasons.push(reason);
        };
        let miss = self.miss();
        let of_miss = match miss {
            miss if miss <= MISS_GOOD => Level::High,
            miss if miss <= MISS_POOR => Level::Fair,
            _ => Level::Low,
        };
        tell(
            of_miss,
            format!(
                "the model misses the recording under {} by {:.1} % at most (throughput and mean latency)",
                self.elevator,
                miss * 100.0
            ),
        );
        let recording = model.recording();
        let length_ns = recording.until_ns.saturating_sub(recording.from_ns);
        if length_ns < SETTLED_NS {
            tell(
                Level::Fair,
                format!(
                    "the recording is {:.1} s long: bfq favours new readers for 3 to 25 s, and what it does then is all that is predicted of it",
                    length_ns as f64 / 1e9
                ),
            );
        }
        let all: usize = recording.processes.iter().map(|process| process.asked.len()).sum();
        for (process, finding) in model.findings() {
            let share = process.asked.len() as f64 / all.max(1) as f64;
            if share < 0.01 {
                continue;
            }
            let who = format!("{} ({})", process.name, process.pid);
            if let Some(doubt) = doubt(&who, finding) {
                tell(Level::Fair, doubt);
            }
        }
        for (name, pid, times) in comparison.into_iter().flat_map(|comparison| stretched(model, comparison)) {
            tell(
                Level::Fair,
                format!(
                    "{name} ({pid}) is predicted up to {times:.0} times the requests that were recorded of it: it is taken to go on as it began"
                ),
            );
        }
        Confidence { level, reasons }
    }
}

/// What is doubtful of the rule that was found for a process.
fn doubt(who: &str, finding: &PatternAnalysis) -> Option<String> {
    match finding.pattern {
        Pattern::Open => Some(format!(
            "{who} asks at times without a rule: the recorded times are kept, whatever another elevator makes of them"
        )),
        _ if finding.explained < EXPLAINED_MIN => {
            Some(format!("the rule found for {who} explains {:.0} % of its requests", finding.explained * 100.0))
        }
        _ if finding.slope.is_none() => {
            Some(format!("{who} has too few requests, or latencies that differ too little, to tell what it waits for"))
        }
        _ => None,
    }
}

/// Processes that make many more requests than were recorded, and how many times as many, under the elevator that serves them best.
fn stretched(model: &Model, comparison: &Comparison) -> Vec<(String, u32, f64)> {
    let most = |place: usize, process: &RecordedProcess| {
        let made = |run: &ProcessRun| run.read.ios + run.write.ios;
        let most = comparison.runs.iter().filter_map(|run| run.processes.get(place)).map(made).max().unwrap_or(0);
        most as f64 / process.asked.len().max(1) as f64
    };
    let processes = model.recording().processes.iter().enumerate();
    processes
        .map(|(place, process)| (process.name.clone(), process.pid, most(place, process)))
        .filter(|(_, _, times)| *times > STRETCH_MAX)
        .collect()
}

/// Predicted over recorded, less 1; of nothing, nothing is right and all else is wrong.
fn error(predicted: f64, recorded: f64) -> f64 {
    match (predicted > 0.0, recorded > 0.0) {
        (_, true) => predicted / recorded - 1.0,
        (true, false) => f64::INFINITY,
        (false, false) => 0.0,
    }
}

/// What processes got together.
#[derive(Default)]
struct Sum {
    bytes: u64,
    latencies: Latencies,
}

impl Sum {
    fn add_recorded(&mut self, process: &RecordedProcess, until_ns: u64, endless: bool) -> Figures {
        let over = || process.asked.iter().filter(|asked| asked.completed_ns <= until_ns);
        let mut latencies = Latencies::default();
        over().for_each(|asked| latencies.record(asked.completed_ns.saturating_sub(asked.queued_ns)));
        // As the simulator has it, whole sectors.
        let bytes = over().map(|asked| u64::from(asked.bytes.div_ceil(512)) * 512).sum();
        let from_ns = process.asked.first().map_or(until_ns, |first| first.queued_ns);
        let last_ns = over().map(|asked| asked.completed_ns).max().unwrap_or(until_ns);
        let length_ns = (if endless { until_ns } else { last_ns }).saturating_sub(from_ns);
        self.bytes += bytes;
        self.latencies.merge(&latencies);
        Figures { bytes_per_s: crate::measure::bytes_per_s(bytes, length_ns), latency_ns: latencies.summary() }
    }

    fn add_run(&mut self, run: &ProcessRun) -> Figures {
        self.bytes += run.bytes;
        self.latencies.merge(&run.measured.stats.read.clat);
        self.latencies.merge(&run.measured.stats.write.clat);
        Figures { bytes_per_s: run.bytes_per_s, latency_ns: run.latency_ns }
    }

    fn figures(&self, length_ns: u64) -> Figures {
        Figures {
            bytes_per_s: crate::measure::bytes_per_s(self.bytes, length_ns),
            latency_ns: self.latencies.summary(),
        }
    }
}
