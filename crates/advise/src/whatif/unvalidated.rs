//! The assumptions behind predictions that are not compared with a recording.

use hoistway_core::Kind;
use hoistway_sim::Comparison;
use hoistway_units::figures::grouped;

use super::contents::TraceContents;
use super::fidelity::{Confidence, Level, note_on_new_readers};
use super::model::Model;
use super::submissions::LoopModel;

/// Ratio of the length of a run to that of the recording from which the drive falls behind the
/// recorded times.
const BEHIND_MIN: f64 = 1.05;

/// The assumptions of a model of submissions alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unvalidated {
    /// What requests wait for.
    pub loop_model: LoopModel,
    /// The elevator of the recording, if it is known; predictions do not use it.
    pub recorded_under: Option<Kind>,
    /// The assumptions, a clause each.
    pub assumptions: Vec<String>,
    /// The reason for which the model is not compared with the recording.
    pub why: String,
}

impl Unvalidated {
    /// Lists the assumptions of a model; `assumed_drive` is the name of a drive that neither the
    /// user nor the trace named.
    pub(crate) fn new(
        loop_model: LoopModel,
        recorded_under: Option<Kind>,
        model: &Model,
        contents: &TraceContents,
        assumed_drive: Option<String>,
    ) -> Unvalidated {
        let issuer = if model.has_streams() { "stream" } else { "process" };
        let mut assumptions = vec![loop_model.assumption(issuer)];
        if model.has_streams() {
            assumptions.push(
                "the trace names no processes: each sequential stream of at least 16 requests counts as a process, and \
                 all other requests as one more"
                    .to_owned(),
            );
        } else if model.recording().processes.len() == 1 {
            assumptions.push("all requests are from one process, so that elevators cannot divide the drive".to_owned());
        }
        if contents.records.submissions == 0 && contents.records.issues > 0 {
            assumptions.push(
                "the trace has no submissions (Q): requests are as the driver received them, merged and sorted by the \
                 recorded elevator"
                    .to_owned(),
            );
        }
        if let Some(drive) = assumed_drive {
            assumptions.push(format!(
                "the drive is {drive}: the trace does not name the recorded one, and {drive} is a usual disk that is \
                 large enough"
            ));
        }
        let why = match contents.completed {
            0 => "the trace has no completions".to_owned(),
            completed => format!(
                "the trace has the completions of only {} of {} requests",
                grouped(completed),
                grouped(contents.requests)
            ),
        };
        Unvalidated { loop_model, recorded_under, assumptions, why }
    }

    /// The confidence in predictions: always low, with the reasons.
    pub(crate) fn confidence(&self, model: &Model, comparison: Option<&Comparison>) -> Confidence {
        let mut reasons = vec![format!("the prediction is not validated against the recording: {}", self.why)];
        let length_ns = model.recording().length_ns();
        reasons.extend(comparison.and_then(|comparison| self.overload(length_ns, comparison)));
        reasons.extend(note_on_new_readers(length_ns));
        Confidence { level: Level::Low, reasons }
    }

    /// Describes runs that took longer than the recording.
    fn overload(&self, length_ns: u64, comparison: &Comparison) -> Option<String> {
        let behind = |ns: u64| ns as f64 > length_ns as f64 * BEHIND_MIN;
        let late: Vec<&str> =
            comparison.runs.iter().filter(|run| behind(run.runtime_ns)).map(|run| run.elevator.as_str()).collect();
        let longest_ns = comparison.runs.iter().map(|run| run.runtime_ns).max()?;
        if late.is_empty() {
            return None;
        }
        let elevators = match late.len() == comparison.runs.len() {
            true => "all elevators".to_owned(),
            false => late.join(", "),
        };
        let seconds = |ns: u64| hoistway_units::figures::figure(ns as f64 / 1e9);
        let consequence = match self.loop_model {
            LoopModel::Open => {
                "latencies are those of an overload, in which a program that waits for its requests would submit fewer"
            }
            LoopModel::Closed { .. } => "throughput is that of a drive without pauses",
        };
        Some(format!(
            "the drive falls behind the recorded times under {elevators}: the run takes up to {} s, the recording {} s; \
             {consequence}",
            seconds(longest_ns),
            seconds(length_ns)
        ))
    }
}
