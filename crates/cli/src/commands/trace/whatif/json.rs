//! The JSON document of `hoistway trace whatif --json`.

use hoistway_sim::whatif::{Confidence, Fidelity, Level, ProcessFidelity};
use hoistway_sim::{Comparison, DriveTime, Latency, ProcessRun, Run};
use hoistway_trace::dependencies::{Pattern, PatternAnalysis};
use serde::Serialize;

use super::Case;

/// The whole document.
#[derive(Serialize)]
pub struct Document<'a> {
    /// The version of this form: 1. Keys may be added within a version; none is taken away or changes its meaning.
    schema: u32,
    /// The trace, as it was named.
    trace: &'a str,
    /// The drive's name.
    drive: &'a str,
    /// The RMS error of the fitted drive on the half of the trace that it was not fitted to, in ms; `null`: the drive was named.
    fit_error_ms: Option<f64>,
    /// The elevator that was recorded.
    recorded: &'a str,
    /// How long the recording is, in ns: predictions are as long.
    duration_ns: u64,
    /// What each process waits for.
    processes: Vec<Process<'a>>,
    /// Recorded and predicted under the recorded elevator.
    model: Model<'a>,
    /// What predictions are worth.
    confidence: Level,
    /// Why.
    reasons: &'a [String],
    /// What was left out or assumed.
    notes: &'a [String],
    /// A prediction for each elevator; empty when the model misses the recording by more than 20 %.
    elevators: Vec<Elevator<'a>>,
}

#[derive(Serialize)]
struct Process<'a> {
    name: &'a str,
    pid: u32,
    /// Requests that were recorded.
    requests: usize,
    /// `closed`, `batches`, `timer` or `open`.
    pattern: &'static str,
    /// The most requests under way.
    depth: u32,
    /// Of timers.
    period_ns: Option<u64>,
    /// Think times at 10, 50, 90 and 99 %, of those that wait.
    think_ns: [u64; 4],
    /// The slope of pauses on latencies: 0 for those that wait, -1 for others; `null` where it cannot be told.
    slope: Option<f64>,
    /// The share of requests that follow the rule.
    explained: f64,
}

#[derive(Serialize)]
struct Model<'a> {
    /// The greatest error of throughput or mean latency among what is judged, as a part of what was recorded.
    miss: f64,
    /// Whether that is at most 0.2.
    holds: bool,
    #[serde(flatten)]
    fidelity: &'a Fidelity,
    /// Predicted over recorded less 1, for each process in their order and all together at the end.
    errors: Vec<Errors>,
}

#[derive(Serialize)]
struct Errors {
    throughput: f64,
    latency_mean: f64,
    latency_p99: f64,
    judged: bool,
}

/// One elevator's prediction.
#[derive(Serialize)]
struct Elevator<'a> {
    name: &'a str,
    /// All bytes, over the time from the first start to the last end.
    bytes_per_s: f64,
    /// Jain's index of the processes' throughputs.
    jain: f64,
    /// Latencies of all requests, in ns.
    latency_ns: Latency,
    /// Where the drive's time went, in ns.
    drive_ns: DriveTime,
    /// In the order of `processes` above.
    processes: Vec<Predicted<'a>>,
}

#[derive(Serialize)]
struct Predicted<'a> {
    name: &'a str,
    pid: u32,
    requests: u64,
    bytes_per_s: f64,
    latency_ns: Latency,
}

impl<'a> Document<'a> {
    /// The document; without a comparison that of a refusal.
    pub fn new(case: &'a Case, comparison: Option<&'a Comparison>, confidence: &'a Confidence) -> Document<'a> {
        let recording = case.model.recording();
        let judged = |process: &ProcessFidelity| process.is_judged();
        let errors = |process: &ProcessFidelity| Errors {
            throughput: process.throughput_error(),
            latency_mean: process.mean_latency_error(),
            latency_p99: process.p99_latency_error(),
            judged: judged(process),
        };
        let fidelity = &case.fidelity;
        Document {
            schema: 1,
            trace: &case.trace,
            drive: case.machine.profile.name(),
            fit_error_ms: case.fitted.as_ref().map(|fitted| fitted.held_out.errors.rms_ms),
            recorded: case.recorded.info().name,
            duration_ns: recording.until_ns.saturating_sub(recording.from_ns),
            processes: case
                .model
                .findings()
                .map(|(process, finding)| Process::new(&process.name, process.pid, process.asked.len(), finding))
                .collect(),
            model: Model {
                miss: fidelity.miss(),
                holds: fidelity.holds(),
                fidelity,
                errors: fidelity.processes.iter().chain([&fidelity.all]).map(errors).collect(),
            },
            confidence: confidence.level,
            reasons: &confidence.reasons,
            notes: &case.notes,
            elevators: comparison.map_or(Vec::new(), |comparison| comparison.runs.iter().map(Elevator::new).collect()),
        }
    }
}

impl<'a> Process<'a> {
    fn new(name: &'a str, pid: u32, requests: usize, finding: &PatternAnalysis) -> Process<'a> {
        let (pattern, period_ns) = match finding.pattern {
            Pattern::Closed { .. } => ("closed", None),
            Pattern::Batches { .. } => ("batches", None),
            Pattern::Timer { period_ns, .. } => ("timer", Some(period_ns)),
            Pattern::Open => ("open", None),
        };
        let PatternAnalysis { depth, think_ns, slope, explained, .. } = *finding;
        Process { name, pid, requests, pattern, depth, period_ns, think_ns, slope, explained }
    }
}

impl<'a> Elevator<'a> {
    fn new(run: &'a Run) -> Elevator<'a> {
        let process = |process: &'a ProcessRun| Predicted {
            name: &process.name,
            pid: process.pid,
            requests: process.read.ios + process.write.ios,
            bytes_per_s: process.bytes_per_s,
            latency_ns: process.latency_ns,
        };
        Elevator {
            name: &run.elevator,
            bytes_per_s: run.bytes_per_s,
            jain: run.jain,
            latency_ns: run.latency_ns,
            drive_ns: run.drive_ns,
            processes: run.processes.iter().map(process).collect(),
        }
    }
}
