//! The serialisable result of a replay beside the recording.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::figures::{Figures, ReplayOutcome};
use super::plan::OmittedRequests;
use super::request::RequestKind;
use super::trace::ReplayTrace;
use super::{Options, Timing};

/// The kinds of requests with their names, in the order of tables.
pub const KINDS: [(RequestKind, &str); 4] = [
    (RequestKind::Read, "reads"),
    (RequestKind::Write, "writes"),
    (RequestKind::Discard, "discards"),
    (RequestKind::Flush, "flushes"),
];

/// The result of a replay; the document of `hoistway trace replay --json`.
#[derive(Debug, Serialize)]
pub struct ReplayReport<'a> {
    /// Version of the document's form: 1.
    pub schema: u32,
    /// Name of the trace.
    pub trace: &'a str,
    /// Description of the target.
    pub target: &'a str,
    /// Device of the trace, as `MAJOR,MINOR`.
    pub device: String,
    /// `recorded`, `asap` or `dependent`.
    pub timing: &'static str,
    /// Factor of the times between requests.
    pub scale: f64,
    /// Number of requests in the plan.
    pub requests: usize,
    /// Numbers of requests of the trace that are not in the plan.
    pub left_out: OmittedRequests,
    /// Number of failed requests.
    pub failed: u64,
    /// The first error.
    pub first_error: Option<&'a str>,
    /// True if the replay was stopped before its end.
    pub interrupted: bool,
    /// Lag of the submissions behind their times, in ns; `None` without submissions.
    pub lag_ns: Option<Percentiles>,
    /// Figures of the replay.
    pub replayed: ReplayFigures<'a>,
    /// Figures of the recording.
    pub recorded: ReplayFigures<'a>,
}

/// Throughput and latencies of the replay or of the recording.
#[derive(Debug, Serialize)]
pub struct ReplayFigures<'a> {
    /// Time from the first request to the end of the last, in ns.
    pub elapsed_ns: u64,
    /// Bytes read and written a second.
    pub bytes_per_s: f64,
    /// Maximum of outstanding requests.
    pub depth_max: usize,
    /// Figures of `reads`, `writes`, `discards` and `flushes`.
    pub kinds: BTreeMap<&'static str, RequestTotals>,
    /// Figures by process.
    pub processes: Vec<ProcessTotals<'a>>,
}

/// Figures of the requests of one kind.
#[derive(Debug, Serialize)]
pub struct RequestTotals {
    /// Number of requests.
    pub requests: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Latencies in ns; `None` without completions.
    pub latency_ns: Option<Percentiles>,
}

/// Figures of the requests of one process.
#[derive(Debug, Serialize)]
pub struct ProcessTotals<'a> {
    /// Process id.
    pub pid: u32,
    /// Process name, if the trace has it.
    pub name: Option<&'a str>,
    /// Figures of the requests.
    #[serde(flatten)]
    pub totals: RequestTotals,
}

/// Mean, percentiles and maximum of durations, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p999: u64,
    /// The maximum.
    pub max: u64,
}

impl Percentiles {
    /// The percentiles of a histogram; `None` if it is empty.
    pub fn of(histogram: &Histogram<u64>) -> Option<Percentiles> {
        let at = |quantile: f64| histogram.value_at_quantile(quantile);
        (!histogram.is_empty()).then(|| Percentiles {
            mean: histogram.mean(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max(),
        })
    }
}

impl Timing {
    /// Name of the timing in options and documents: `recorded`, `asap` or `dependent`.
    pub fn name(self) -> &'static str {
        match self {
            Timing::Recorded => "recorded",
            Timing::Asap { .. } => "asap",
            Timing::Dependent => "dependent",
        }
    }
}

impl<'a> ReplayReport<'a> {
    /// Builds the report of a replay on a target.
    pub fn new(
        trace: &'a ReplayTrace,
        target: &'a str,
        options: &Options,
        outcome: &'a ReplayOutcome,
    ) -> ReplayReport<'a> {
        ReplayReport {
            schema: 1,
            trace: &trace.name,
            target,
            device: trace.device.to_string(),
            timing: options.timing.name(),
            scale: options.scale,
            requests: trace.plan.requests().len(),
            left_out: trace.plan.left_out(),
            failed: outcome.failed,
            first_error: outcome.first_error.as_deref(),
            interrupted: outcome.interrupted,
            lag_ns: Percentiles::of(&outcome.lag),
            replayed: ReplayFigures::new(&outcome.replayed, trace),
            recorded: ReplayFigures::new(trace.plan.recorded(), trace),
        }
    }
}

impl<'a> ReplayFigures<'a> {
    fn new(figures: &Figures, trace: &'a ReplayTrace) -> ReplayFigures<'a> {
        let kind = |(kind, name)| {
            let of = figures.of(kind);
            (name, RequestTotals::new(of.requests, of.bytes, &of.latency))
        };
        let processes = trace.plan.processes().iter().zip(&figures.processes);
        let process = |(&(_, pid), of): (&(_, u32), &super::ProcessFigures)| ProcessTotals {
            pid,
            name: trace.process_names.get(&pid).map(String::as_str),
            totals: RequestTotals::new(of.requests, of.bytes, &of.latency),
        };
        ReplayFigures {
            elapsed_ns: figures.elapsed_ns,
            bytes_per_s: figures.bytes_per_s(),
            depth_max: figures.depth_max,
            kinds: KINDS.into_iter().map(kind).collect(),
            processes: processes.map(process).collect(),
        }
    }
}

impl RequestTotals {
    fn new(requests: u64, bytes: u64, latency: &Histogram<u64>) -> RequestTotals {
        RequestTotals { requests, bytes, latency_ns: Percentiles::of(latency) }
    }
}
