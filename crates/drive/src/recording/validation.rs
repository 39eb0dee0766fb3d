//! How near a drive's model comes to a recording of the drive.

use super::Record;
use crate::fit::{FitError, Prediction, fit_rotation, replay, rms_ms};
use crate::profile::Profile;

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
    pub all: Errors,
    /// Reads alone.
    pub reads: Errors,
    /// Writes alone.
    pub writes: Errors,
    /// Requests that came less than 1 ms after the one before was over.
    pub at_once: Errors,
    /// The others, before which the drive had time for itself.
    pub after_pause: Errors,
    /// The requests of each zone, by zone.
    pub zones: Vec<Errors>,
    /// The two distributions of service times, of all requests: 201 points from the shortest to the longest.
    pub curve: Vec<CurvePoint>,
    /// Every request, in the recording's order.
    pub predictions: Vec<Prediction>,
}

/// By how much predictions were wrong, in ms; all 0 for no requests.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Errors {
    /// How many requests.
    pub requests: usize,
    /// Root mean square of predicted less recorded service time, request by request.
    pub rms_ms: f64,
    /// The median of the errors' amounts.
    pub median_ms: f64,
    /// Root mean square horizontal distance between the distributions of service times, the "demerit figure" of C. Ruemmler and
    /// J. Wilkes, "An introduction to disk drive modeling" (IEEE Computer 27(3), 1994).
    pub demerit_ms: f64,
    /// Mean recorded service time.
    pub recorded_mean_ms: f64,
    /// Mean predicted service time.
    pub predicted_mean_ms: f64,
}

/// The service time that a share of the requests did not exceed.
#[derive(Debug, Clone, Copy, PartialEq)]
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
/// # Errors
/// [`FitError`] when the profile is no disk's, a request does not fit the disk, or there are fewer than 100.
pub fn validate(profile: &Profile, recording: &[Record]) -> Result<Validation, FitError> {
    let fit = fit_rotation(profile, recording)?;
    let predictions = replay(&fit.profile, recording)?;
    let zones = predictions.iter().map(|prediction| prediction.zone as usize + 1).max().unwrap_or(0);
    let errors = |keep: &dyn Fn(&Prediction) -> bool| Errors::of(predictions.iter().filter(|p| keep(p)));
    Ok(Validation {
        revolution_ns: fit.revolution_ns,
        coherence: fit.coherence,
        all: errors(&|_| true),
        reads: errors(&|prediction| prediction.op == crate::Op::Read),
        writes: errors(&|prediction| prediction.op == crate::Op::Write),
        at_once: errors(&|prediction| prediction.idle_ns < AT_ONCE_NS),
        after_pause: errors(&|prediction| prediction.idle_ns >= AT_ONCE_NS),
        zones: (0..zones).map(|zone| errors(&|prediction| prediction.zone as usize == zone)).collect(),
        curve: curve(&predictions),
        predictions,
    })
}

impl Errors {
    /// The errors of some predictions.
    pub fn of<'a>(predictions: impl IntoIterator<Item = &'a Prediction>) -> Errors {
        let predictions: Vec<Prediction> = predictions.into_iter().copied().collect();
        let mut amounts: Vec<f64> = predictions.iter().map(|prediction| prediction.error_ms().abs()).collect();
        amounts.sort_by(f64::total_cmp);
        let (recorded, predicted) = distributions(&predictions);
        let distances = recorded.iter().zip(&predicted).map(|(recorded, predicted)| (predicted - recorded).powi(2));
        Errors {
            requests: predictions.len(),
            rms_ms: rms_ms(&predictions),
            median_ms: amounts.get(amounts.len() / 2).copied().unwrap_or(0.0),
            demerit_ms: mean(distances).sqrt(),
            recorded_mean_ms: mean(recorded.iter().copied()),
            predicted_mean_ms: mean(predicted.iter().copied()),
        }
    }
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

/// Recorded and predicted service times in ms, each from the shortest to the longest.
fn distributions(predictions: &[Prediction]) -> (Vec<f64>, Vec<f64>) {
    let sorted = |time_ns: fn(&Prediction) -> u64| {
        let mut times: Vec<f64> = predictions.iter().map(|prediction| time_ns(prediction) as f64 / 1e6).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    (sorted(|prediction| prediction.recorded_ns), sorted(|prediction| prediction.predicted_ns))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}
