//! How near a drive's model comes to a recording of the drive.

use crate::command::Op;
use crate::fit::fit_rotation;
use crate::profile::Profile;
use crate::recording::Record;
use crate::replay::{Prediction, PredictionErrors, ReplayError, distributions, replay};

/// A request counts as following at once when the drive had been idle for less than this, in ns.
const AT_ONCE_NS: u64 = 1_000_000;
/// How many points the curves of service times have: every half percent.
const POINTS: usize = 201;

/// A model against a recording, request by request and as distributions of service times.
#[derive(Debug, Clone, PartialEq)]
pub struct Validation {
    /// The time of a revolution in ns, fitted to the recording.
    pub revolution_ns: f64,
    /// How well recorded completions agree with the sectors' angles: 1 for always the same, about 0 for by chance.
    pub coherence: f64,
    /// All requests.
    pub all: PredictionErrors,
    /// Reads alone.
    pub reads: PredictionErrors,
    /// Writes alone.
    pub writes: PredictionErrors,
    /// Requests that came less than 1 ms after the one before was over.
    pub at_once: PredictionErrors,
    /// The others, before which the drive had time for itself.
    pub after_pause: PredictionErrors,
    /// The requests of each zone, by zone.
    pub zones: Vec<PredictionErrors>,
    /// The two distributions of service times, of all requests: 201 points from the shortest to the longest.
    pub curve: Vec<CurvePoint>,
    /// Every request, in the recording's order.
    pub predictions: Vec<Prediction>,
}

/// The service time that a share of the requests did not exceed.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct CurvePoint {
    /// The share, 0 to 1.
    pub share: f64,
    /// The drive's.
    pub recorded_ms: f64,
    /// The model's.
    pub predicted_ms: f64,
}

/// Replays a recording with the drive of `profile`, its buffer as the profile has it ([`Profile::without_buffer`] for a recording
/// that was made without), and measures what is wrong. Only the time of a revolution and the platter's angle at the start, which no
/// parameter file can know, are fitted first.
///
/// # PredictionErrors
/// [`ReplayError`] when the profile is no disk's, a request does not fit the disk, or there are fewer than 100.
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
