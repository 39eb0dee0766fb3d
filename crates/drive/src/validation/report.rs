//! A model against a recording, by kind of request.

use serde::Serialize;

use super::validate;
use crate::command::Op;
use crate::fit::Agreement;
use crate::profile::Profile;
use crate::recording::{Record, first_overlap};
use crate::replay::{Prediction, ReplayError, replay_on_drive};

/// The minimum coherence at which the clock of the recording shows the angle of the platter.
const COHERENT: f64 = 0.3;
/// The minimum number of requests of a kind whose percentile 99 is more than its slowest request.
const REQUESTS_FEW: usize = 100;
/// The ratio of the medians of recorded and predicted writes from which on one of the two has a
/// write cache and the other has none.
const CACHE_RATIO: f64 = 4.0;

/// The accuracy of a drive model against a recording. Its serialised form is the JSON document of
/// `hoistway drives --validate --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ValidationReport {
    /// The version of the JSON form: 1.
    pub schema: u32,
    /// The name of the profile.
    pub drive: String,
    /// The rotation that was fitted to the recording; `None` for a drive without a platter.
    pub rotation: Option<RecordedRotation>,
    /// The agreement of all requests and of each kind, without kinds that the recording lacks.
    pub kinds: Vec<KindAgreement>,
    /// Reasons for which the figures say less than they seem to, one sentence each.
    pub warnings: Vec<String>,
}

/// The rotation of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RecordedRotation {
    /// Time of a revolution in ns.
    pub revolution_ns: f64,
    /// Agreement of the completions with the angles of the sectors: 1 for perfect agreement, about
    /// 0 for chance.
    pub coherence: f64,
}

/// The agreement of one kind of requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct KindAgreement {
    /// The kind of the requests.
    pub kind: &'static str,
    /// Errors, and percentiles 50, 90 and 99.
    #[serde(flatten)]
    pub agreement: Agreement,
    /// The demerit over the mean recorded service time, the figure of Ruemmler & Wilkes.
    pub relative_demerit: f64,
}

/// Reasons for which a model cannot be compared with a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValidationError {
    /// Requests were issued before the previous one had completed.
    #[error(
        "request {index} of the recording was issued before the previous one completed: service times of requests one at a time are needed"
    )]
    Overlap {
        /// The index of the first such request, from 0.
        index: usize,
    },
    /// The recording cannot be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

impl ValidationReport {
    /// Replays a recording with the model of `profile`, each request at its recorded time, and
    /// measures the errors.
    ///
    /// The revolution of a disk and its angle at the start, which no profile can state, are fitted
    /// first; all other figures are those of the profile. Use [`Profile::without_buffer`] for a
    /// recording that was made with the buffer off.
    ///
    /// # Errors
    /// [`ValidationError`] if requests overlap, a request is invalid for the drive, or there are
    /// fewer than 100 requests.
    pub fn measure(profile: &Profile, recording: &[Record]) -> Result<ValidationReport, ValidationError> {
        if let Some(index) = first_overlap(recording) {
            return Err(ValidationError::Overlap { index });
        }
        let (rotation, predictions) = if profile.is_disk() {
            let validation = validate(profile, recording)?;
            let rotation =
                RecordedRotation { revolution_ns: validation.revolution_ns, coherence: validation.coherence };
            (Some(rotation), validation.predictions)
        } else {
            if recording.len() < 100 {
                return Err(ReplayError::TooShort { found: recording.len() }.into());
            }
            (None, replay_on_drive(profile, recording)?)
        };
        let kinds = kinds(recording, &predictions);
        let warnings = warnings(rotation, &kinds);
        Ok(ValidationReport { schema: 1, drive: profile.name().to_owned(), rotation, kinds, warnings })
    }

    /// The agreement of the requests of a kind; `None` if the recording has none.
    pub fn kind(&self, kind: &str) -> Option<&KindAgreement> {
        self.kinds.iter().find(|row| row.kind == kind)
    }
}

/// A request as a kind sees it: its prediction, and true if it follows the one before without a
/// gap.
type Sighting<'a> = (&'a Prediction, bool);

fn kinds(recording: &[Record], predictions: &[Prediction]) -> Vec<KindAgreement> {
    let mut end = None;
    let mut follows = |record: &Record| {
        let follows = end == Some(record.access.sector);
        end = Some(record.access.end());
        follows
    };
    let sightings: Vec<Sighting<'_>> =
        recording.iter().zip(predictions).map(|(record, prediction)| (prediction, follows(record))).collect();
    type Keep = fn(Sighting<'_>) -> bool;
    let rules: [(&'static str, Keep); 7] = [
        ("all", |_| true),
        ("reads", |(request, _)| request.op == Op::Read),
        ("writes", |(request, _)| request.op == Op::Write),
        ("sequential", |(_, follows)| follows),
        ("elsewhere", |(_, follows)| !follows),
        ("at once", |(request, _)| request.idle_ns < super::AT_ONCE_NS),
        ("after a pause", |(request, _)| request.idle_ns >= super::AT_ONCE_NS),
    ];
    let of = |(kind, keep): (&'static str, Keep)| {
        let kept: Vec<Prediction> = sightings.iter().filter(|sighting| keep(**sighting)).map(|(p, _)| **p).collect();
        let agreement = Agreement::of(&kept);
        let mean_ms = agreement.errors.recorded_mean_ms;
        let relative_demerit = if mean_ms > 0.0 { agreement.errors.demerit_ms / mean_ms } else { 0.0 };
        (!kept.is_empty()).then_some(KindAgreement { kind, agreement, relative_demerit })
    };
    rules.into_iter().filter_map(of).collect()
}

fn warnings(rotation: Option<RecordedRotation>, kinds: &[KindAgreement]) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(RecordedRotation { coherence, .. }) = rotation.filter(|rotation| rotation.coherence < COHERENT) {
        warnings.push(format!(
            "the recorded times do not show the angle of the platter (coherence {coherence:.2}, at least {COHERENT} is needed): \
             the RMS error includes a random rotational latency, and only the demerit and the percentiles measure the model"
        ));
    }
    for row in kinds.iter().filter(|row| row.agreement.errors.requests < REQUESTS_FEW) {
        let requests = row.agreement.errors.requests;
        warnings.push(format!("requests of the kind `{}`: only {requests}; their figures may be chance", row.kind));
    }
    let writes = kinds.iter().find(|row| row.kind == "writes").map(|row| row.agreement);
    if let Some(Agreement { recorded_ms: [recorded, ..], predicted_ms: [model, ..], .. }) = writes {
        let (less, more) = (recorded.min(model), recorded.max(model));
        if more > CACHE_RATIO * less {
            let with = if recorded < model {
                "the drive had a write cache that the model does not have"
            } else {
                "the write cache of the model was off in the recording, or writes were forced to the media"
            };
            warnings.push(format!("the median write took {recorded:.3} ms, and {model:.3} ms in the model: {with}"));
        }
    }
    warnings
}
