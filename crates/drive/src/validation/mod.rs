//! The accuracy of a model against a recording of the same drive.

mod report;

use crate::command::Op;
use crate::fit::fit_rotation;
use crate::profile::Profile;
use crate::recording::Record;
use crate::replay::{Prediction, PredictionErrors, ReplayError, distributions, replay};

pub use report::{KindAgreement, RecordedRotation, ValidationError, ValidationReport};

/// The longest idle time in ns after which a request counts as following at once.
const AT_ONCE_NS: u64 = 1_000_000;
/// Number of points of the distributions: one for every half percent.
const POINTS: usize = 201;

/// The errors of a model against a recording, request by request and by distributions.
#[derive(Debug, Clone, PartialEq)]
pub struct Validation {
    /// Time of a revolution in ns, fitted to the recording.
    pub revolution_ns: f64,
    /// Agreement of the recorded completions with the angles of the sectors: 1 for perfect
    /// agreement, about 0 for chance.
    pub coherence: f64,
    /// The errors of all requests.
    pub all: PredictionErrors,
    /// The errors of reads.
    pub reads: PredictionErrors,
    /// The errors of writes.
    pub writes: PredictionErrors,
    /// The errors of requests within 1 ms after the previous completion.
    pub at_once: PredictionErrors,
    /// The errors of the other requests, before which the drive could do background work.
    pub after_pause: PredictionErrors,
    /// The errors of the requests of each zone.
    pub zones: Vec<PredictionErrors>,
    /// The two distributions of service times: 201 points from the shortest to the longest.
    pub curve: Vec<CurvePoint>,
    /// The predictions in the order of the recording.
    pub predictions: Vec<Prediction>,
}

/// A point of two distributions: the service time that a share of the requests does not exceed.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct CurvePoint {
    /// The share, 0 to 1.
    pub share: f64,
    /// Recorded service time in ms.
    pub recorded_ms: f64,
    /// Service time of the model in ms.
    pub predicted_ms: f64,
}

/// Replays a recording with the model of `profile` and measures the errors.
///
/// Use [`Profile::without_buffer`] for a recording that was made with the buffer off. The
/// revolution and the angle at the start, which no profile can state, are fitted first.
///
/// # Errors
/// [`ReplayError`] if the profile is not that of a disk, a request is invalid for it, or there are
/// fewer than 100 requests.
pub fn validate(profile: &Profile, recording: &[Record]) -> Result<Validation, ReplayError> {
    let fit = fit_rotation(profile, recording)?;
    let predictions = replay(&fit.profile, recording)?;
    let zones = predictions.iter().map(|prediction| prediction.zone as usize + 1).max().unwrap_or(0);
    let errors = |keep: &dyn Fn(&Prediction) -> bool| PredictionErrors::of(predictions.iter().filter(|p| keep(p)));
    Ok(Validation {
        revolution_ns: fit.revolution_ns,
        coherence: fit.coherence,
        all: errors(&|_| true),
        reads: errors(&|prediction| prediction.op == Op::Read),
        writes: errors(&|prediction| prediction.op == Op::Write),
        at_once: errors(&|prediction| prediction.idle_ns < AT_ONCE_NS),
        after_pause: errors(&|prediction| prediction.idle_ns >= AT_ONCE_NS),
        zones: (0..zones).map(|zone| errors(&|prediction| prediction.zone as usize == zone)).collect(),
        curve: curve(&predictions),
        predictions,
    })
}

fn curve(predictions: &[Prediction]) -> Vec<CurvePoint> {
    let (recorded, predicted) = distributions(predictions);
    let last = predictions.len().saturating_sub(1);
    let at = |times: &[f64], share: f64| times.get((share * last as f64).round() as usize).copied().unwrap_or(0.0);
    let point = |index: usize| {
        let share = index as f64 / (POINTS - 1) as f64;
        CurvePoint { share, recorded_ms: at(&recorded, share), predicted_ms: at(&predicted, share) }
    };
    (0..POINTS).map(point).collect()
}
