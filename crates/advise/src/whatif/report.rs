//! The answer of `hoistway trace whatif`: a recorded workload under other elevators.

use hoistway_sim::{Comparison, DriveTime, Latency, ProcessRun, Run};
use hoistway_trace::dependencies::{Pattern, PatternAnalysis};
use serde::Serialize;

use super::fidelity::{Confidence, Fidelity, Level, ProcessFidelity};
use crate::trace_case::{ModelBasis, TraceCase};

/// Predictions for a recorded workload. Keys of the serialised form may be added within a version;
/// none is removed or changes its meaning.
#[derive(Debug, Serialize)]
pub struct WhatifReport<'a> {
    /// The version of the serialised form: 1.
    pub schema: u32,
    /// The name of the trace.
    pub trace: &'a str,
    /// The name of the drive.
    pub drive: &'a str,
    /// The RMS error of the fitted drive on the half of the trace that it was not fitted to, in ms;
    /// `None` for a given drive.
    pub fit_error_ms: Option<f64>,
    /// The elevator of the recording; `None` if it is unknown, for a trace of submissions alone.
    pub recorded: Option<&'a str>,
    /// The length of the recording, in ns. Validated predictions have the same length, others last
    /// until the last request has completed.
    pub duration_ns: u64,
    /// True if the model was compared with the recording.
    pub validated: bool,
    /// `validated against the recording` or `not validated against the recording`.
    pub validation: &'static str,
    /// `open` or `closed`, for a trace of submissions alone: what requests are assumed to wait for.
    #[serde(rename = "loop")]
    pub loop_model: Option<&'static str>,
    /// The largest number of outstanding requests of a process in a closed loop.
    pub outstanding: Option<u32>,
    /// The assumptions of a model that was not compared with the recording, a clause each.
    pub assumptions: &'a [String],
    /// The event that the requests of each process wait for.
    pub processes: Vec<ProcessRule<'a>>,
    /// The error of the model under the elevator of the recording; `None` if it was not validated.
    pub model: Option<ModelError<'a>>,
    /// How far the predictions can be trusted.
    pub confidence: Level,
    /// The reasons for the confidence.
    pub reasons: &'a [String],
    /// Requests that were left out, and assumptions.
    pub notes: &'a [String],
    /// A prediction for each elevator; empty if the model error is above 20 %.
    pub elevators: Vec<Prediction<'a>>,
}

/// The dependency rule found for a process.
#[derive(Debug, Serialize)]
pub struct ProcessRule<'a> {
    /// The name of the process.
    pub name: &'a str,
    /// The process id.
    pub pid: u32,
    /// The number of recorded requests.
    pub requests: usize,
    /// `closed`, `batches`, `timer` or `open`.
    pub pattern: &'static str,
    /// The largest number of requests in flight; 0 if it is unknown.
    pub depth: u32,
    /// The period of a timer, in ns; `None` for other rules.
    pub period_ns: Option<u64>,
    /// Think times at 10, 50, 90 and 99 %, in ns; zeros for requests that wait for no other. For a
    /// trace of submissions alone, the gaps between submissions.
    pub think_ns: [u64; 4],
    /// The slope of pauses over latencies: 0 for requests that wait, -1 for others; `None` if
    /// unknown.
    pub slope: Option<f64>,
    /// The share of requests that follow the rule, 0 to 1; 0 for an assumed rule.
    pub explained: f64,
}

/// The error of a model.
#[derive(Debug, Serialize)]
pub struct ModelError<'a> {
    /// The largest relative error of throughput or mean latency among the judged processes.
    pub miss: f64,
    /// True if `miss` is at most 0.2.
    pub holds: bool,
    /// Recorded and predicted figures.
    #[serde(flatten)]
    pub fidelity: &'a Fidelity,
    /// Relative errors: each process in order, then all together.
    pub errors: Vec<ProcessErrors>,
}

/// Relative errors of one process: predicted over recorded, minus 1.
#[derive(Debug, Serialize)]
pub struct ProcessErrors {
    /// The error of the throughput.
    pub throughput: f64,
    /// The error of the mean latency.
    pub latency_mean: f64,
    /// The error of the 99th percentile of latency.
    pub latency_p99: f64,
    /// True if the process has enough requests to be judged alone.
    pub judged: bool,
}

/// The prediction for one elevator.
#[derive(Debug, Serialize)]
pub struct Prediction<'a> {
    /// The name of the elevator.
    pub name: &'a str,
    /// The total throughput from the first start to the last end, in bytes a second.
    pub bytes_per_s: f64,
    /// The time from the first start to the last end, in ns.
    pub runtime_ns: u64,
    /// Jain's fairness index of the throughputs of the processes, 1/n to 1.
    pub jain: Option<f64>,
    /// The latencies of all requests, in ns.
    pub latency_ns: Latency,
    /// The drive's time by activity, in ns.
    pub drive_ns: DriveTime,
    /// The processes, in the order of [`WhatifReport::processes`].
    pub processes: Vec<ProcessPrediction<'a>>,
}

/// The prediction for one process.
#[derive(Debug, Serialize)]
pub struct ProcessPrediction<'a> {
    /// The name of the process.
    pub name: &'a str,
    /// The process id.
    pub pid: u32,
    /// The number of requests.
    pub requests: u64,
    /// The throughput, in bytes a second.
    pub bytes_per_s: f64,
    /// The latencies, in ns.
    pub latency_ns: Latency,
}

impl<'a> WhatifReport<'a> {
    /// The report of a case; without a comparison there are no predictions.
    pub fn new(
        case: &'a TraceCase,
        comparison: Option<&'a Comparison>,
        confidence: &'a Confidence,
    ) -> WhatifReport<'a> {
        let rules = case
            .model
            .findings()
            .map(|(process, finding)| ProcessRule::new(&process.name, process.pid, process.requests.len(), finding));
        let (model, unvalidated) = match &case.basis {
            ModelBasis::Validated { fidelity, .. } => (Some(ModelError::new(fidelity)), None),
            ModelBasis::Unvalidated(of) => (None, Some(of)),
        };
        WhatifReport {
            schema: 1,
            trace: &case.name,
            drive: case.machine.profile.name(),
            fit_error_ms: case.fitted.as_ref().map(|fitted| fitted.held_out.errors.rms_ms),
            recorded: case.recorded_under().map(|kind| kind.info().name),
            duration_ns: case.duration_ns(),
            validated: unvalidated.is_none(),
            validation: validation(unvalidated.is_none()),
            loop_model: unvalidated.map(|of| of.loop_model.name()),
            outstanding: unvalidated.and_then(|of| of.loop_model.outstanding()),
            assumptions: unvalidated.map_or(&[], |of| &of.assumptions),
            processes: rules.collect(),
            model,
            confidence: confidence.level,
            reasons: &confidence.reasons,
            notes: &case.notes,
            elevators: comparison
                .map_or(Vec::new(), |comparison| comparison.runs.iter().map(Prediction::new).collect()),
        }
    }
}

/// The mark of predictions in all forms of output.
pub fn validation(is_validated: bool) -> &'static str {
    if is_validated { "validated against the recording" } else { "not validated against the recording" }
}

impl<'a> ModelError<'a> {
    fn new(fidelity: &'a Fidelity) -> ModelError<'a> {
        ModelError {
            miss: fidelity.miss(),
            holds: fidelity.holds(),
            fidelity,
            errors: fidelity.processes.iter().chain([&fidelity.all]).map(ProcessErrors::new).collect(),
        }
    }
}

impl ProcessErrors {
    fn new(process: &ProcessFidelity) -> ProcessErrors {
        ProcessErrors {
            throughput: process.throughput_error(),
            latency_mean: process.mean_latency_error(),
            latency_p99: process.p99_latency_error(),
            judged: process.is_judged(),
        }
    }
}

impl<'a> ProcessRule<'a> {
    fn new(name: &'a str, pid: u32, requests: usize, finding: &PatternAnalysis) -> ProcessRule<'a> {
        let (pattern, period_ns) = match finding.pattern {
            Pattern::Closed { .. } => ("closed", None),
            Pattern::Batches { .. } => ("batches", None),
            Pattern::Timer { period_ns, .. } => ("timer", Some(period_ns)),
            Pattern::Open => ("open", None),
        };
        let PatternAnalysis { depth, think_ns, slope, explained, .. } = *finding;
        ProcessRule { name, pid, requests, pattern, depth, period_ns, think_ns, slope, explained }
    }
}

impl<'a> Prediction<'a> {
    fn new(run: &'a Run) -> Prediction<'a> {
        let process = |process: &'a ProcessRun| ProcessPrediction {
            name: &process.name,
            pid: process.pid,
            requests: process.read.ios + process.write.ios,
            bytes_per_s: process.bytes_per_s,
            latency_ns: process.latency_ns,
        };
        Prediction {
            name: &run.elevator,
            bytes_per_s: run.bytes_per_s,
            runtime_ns: run.runtime_ns,
            jain: run.jain,
            latency_ns: run.latency_ns,
            drive_ns: run.drive_ns,
            processes: run.processes.iter().map(process).collect(),
        }
    }
}
