//! Replaying a recording with a model: predictions, request by request, and their errors.

use crate::command::{AccessError, Op, check_range};
use crate::disk::Media;
use crate::drive::Drive;
use crate::profile::{DiskProfile, Profile};
use crate::recording::Record;

/// A replayed request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// The operation.
    pub op: Op,
    /// The zone of the first sector.
    pub zone: u32,
    /// Service time of the model in ns.
    pub predicted_ns: u64,
    /// Recorded service time in ns.
    pub recorded_ns: u64,
    /// Idle time of the drive before the request in ns.
    pub idle_ns: u64,
}

impl Prediction {
    /// The predicted minus the recorded service time in ms.
    pub fn error_ms(&self) -> f64 {
        (self.predicted_ns as f64 - self.recorded_ns as f64) / 1e6
    }
}

/// Reasons for which a recording cannot be replayed with a profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The profile is not that of a disk.
    #[error("profile `{name}` has no platter: the profile of a disk is needed")]
    NoPlatter {
        /// The name of the profile.
        name: String,
    },
    /// A request is invalid for the disk.
    #[error("request {index} of the recording: {source}")]
    Access {
        /// The index of the request, from 0.
        index: usize,
        /// The error of the request.
        source: AccessError,
    },
    /// The recording has too few requests to fit.
    #[error("the recording has {found} requests: at least 100 are needed")]
    TooShort {
        /// Number of requests.
        found: usize,
    },
}

/// Errors of predictions in ms; all 0 without requests.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct PredictionErrors {
    /// Number of requests.
    pub requests: usize,
    /// Root mean square of predicted minus recorded service time.
    pub rms_ms: f64,
    /// Median of the absolute errors.
    #[serde(skip)]
    pub median_ms: f64,
    /// The demerit: the RMS horizontal distance between the distributions of service times (C.
    /// Ruemmler and J. Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3),
    /// 1994).
    pub demerit_ms: f64,
    /// Mean recorded service time.
    pub recorded_mean_ms: f64,
    /// Mean predicted service time.
    pub predicted_mean_ms: f64,
}

/// Predicts the service time of every recorded request at its recorded time. Each starts at the arm
/// position after the one before.
///
/// # Errors
/// [`ReplayError`] if the profile is not that of a disk or a request is invalid for it.
pub fn replay(profile: &Profile, recording: &[Record]) -> Result<Vec<Prediction>, ReplayError> {
    let disk = disk_of(profile)?;
    check_recording(disk, recording)?;
    let mut model = Media::new(disk);
    let mut free_ns = 0;
    let predict = |record: &Record| {
        model.resume_at(free_ns);
        let idle_ns = record.issue_ns.saturating_sub(free_ns);
        free_ns = record.issue_ns.saturating_add(record.service_ns);
        let service = model.start(record.issue_ns, &record.access, false);
        let zone = model.locate(record.access.sector).zone;
        Prediction {
            op: record.access.op,
            zone,
            predicted_ns: service.phases.total_ns(),
            recorded_ns: record.service_ns,
            idle_ns,
        }
    };
    Ok(recording.iter().map(predict).collect())
}

/// Predicts the service time of every request with the model of any drive, at its recorded time or
/// after the completion of the one before in the model.
///
/// # Errors
/// [`ReplayError::Access`] if a request is invalid for the drive.
pub fn replay_on_drive(profile: &Profile, records: &[Record]) -> Result<Vec<Prediction>, ReplayError> {
    let mut drive = Drive::new(profile);
    let (mut free_ns, mut recorded_free_ns) = (0u64, 0u64);
    let mut predictions = Vec::with_capacity(records.len());
    for (index, record) in records.iter().enumerate() {
        let now_ns = record.issue_ns.max(free_ns);
        let served = drive.serve(now_ns, record.access).map_err(|source| ReplayError::Access { index, source })?;
        free_ns = served.service.finish_ns;
        let idle_ns = record.issue_ns.saturating_sub(recorded_free_ns);
        recorded_free_ns = record.issue_ns.saturating_add(record.service_ns);
        predictions.push(Prediction {
            op: record.access.op,
            zone: 0,
            predicted_ns: free_ns - now_ns,
            recorded_ns: record.service_ns,
            idle_ns,
        });
    }
    Ok(predictions)
}

/// Root mean square error in ms; 0 without predictions.
pub fn rms_ms<'a>(predictions: impl IntoIterator<Item = &'a Prediction>) -> f64 {
    let (mut sum, mut count) = (0.0, 0u32);
    for prediction in predictions {
        sum += prediction.error_ms().powi(2);
        count += 1;
    }
    if count == 0 { 0.0 } else { (sum / f64::from(count)).sqrt() }
}

pub(crate) fn disk_of(profile: &Profile) -> Result<&DiskProfile, ReplayError> {
    profile.disk().ok_or_else(|| ReplayError::NoPlatter { name: profile.name().to_string() })
}

pub(crate) fn check_recording(disk: &DiskProfile, recording: &[Record]) -> Result<(), ReplayError> {
    for (index, record) in recording.iter().enumerate() {
        check_range(&record.access.into(), disk.capacity_sectors)
            .map_err(|source| ReplayError::Access { index, source })?;
    }
    Ok(())
}

impl PredictionErrors {
    /// The errors of `predictions`.
    pub fn of<'a>(predictions: impl IntoIterator<Item = &'a Prediction>) -> PredictionErrors {
        let predictions: Vec<Prediction> = predictions.into_iter().copied().collect();
        let mut amounts: Vec<f64> = predictions.iter().map(|prediction| prediction.error_ms().abs()).collect();
        amounts.sort_by(f64::total_cmp);
        let (recorded, predicted) = distributions(&predictions);
        let distances = recorded.iter().zip(&predicted).map(|(recorded, predicted)| (predicted - recorded).powi(2));
        PredictionErrors {
            requests: predictions.len(),
            rms_ms: rms_ms(&predictions),
            median_ms: amounts.get(amounts.len() / 2).copied().unwrap_or(0.0),
            demerit_ms: mean(distances).sqrt(),
            recorded_mean_ms: mean(recorded.iter().copied()),
            predicted_mean_ms: mean(predicted.iter().copied()),
        }
    }
}

/// Recorded and predicted service times in ms, each in rising order.
pub(crate) fn distributions(predictions: &[Prediction]) -> (Vec<f64>, Vec<f64>) {
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
