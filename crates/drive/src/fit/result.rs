//! The results and errors of fitting a profile.

use crate::profile::{Profile, ProfileError};
use crate::replay::{Prediction, PredictionErrors, ReplayError};

use serde::Serialize;

use super::evidence;
use super::stats::percentile;

/// The minimum number of requests for a fit. Half of them are held out.
pub const REQUESTS_MIN: usize = 400;

/// The kind of drive that made a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FitKind {
    /// A disk.
    Disk,
    /// A flash drive.
    Flash,
}

/// A profile whose geometry is kept.
#[derive(Debug, Clone, Copy)]
pub struct Base<'a> {
    /// The text of the profile.
    pub toml: &'a str,
    /// The file name that errors quote.
    pub file_name: &'a str,
}

/// The options of a fit.
#[derive(Debug, Clone, Copy)]
pub struct FitOptions<'a> {
    /// The name of the new profile.
    pub name: &'a str,
    /// The kind of drive. With `None` it is a disk if a quarter of the reads takes over 1 ms, and
    /// flash otherwise.
    pub kind: Option<FitKind>,
    /// The disk whose geometry is kept. Only rotation, overheads, settling and the height of the
    /// seek curve are fitted.
    pub base: Option<Base<'a>>,
}

/// A fitted parameter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The name of the parameter.
    pub what: &'static str,
    /// The value with its unit.
    pub value: String,
    /// The data that determined it.
    pub from: String,
}

/// Recorded service times against those of a model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Agreement {
    /// Errors request by request, and the demerit.
    #[serde(flatten)]
    pub errors: PredictionErrors,
    /// Percentiles 50, 90 and 99 of the recorded service times, in ms.
    pub recorded_ms: [f64; 3],
    /// Percentiles 50, 90 and 99 of the service times of the model, in ms.
    pub predicted_ms: [f64; 3],
}

/// A profile fitted to a trace.
///
/// Its serialised form is the JSON document of `hoistway drives --fit --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FittedProfile {
    /// The version of the JSON form: 1.
    pub schema: u32,
    /// The name of the profile.
    pub name: String,
    /// The fitted figures.
    pub found: Vec<Finding>,
    /// Parameters that the trace does not determine, one sentence each.
    #[serde(rename = "untold")]
    pub undetermined: Vec<String>,
    /// Parts of the profile whose evidence in the trace is thin, one sentence each.
    pub warnings: Vec<String>,
    /// The model against the first half of the requests, to which the profile was fitted.
    pub fitted_to: Agreement,
    /// The model against the second half of the requests, which the fit did not use.
    pub held_out: Agreement,
    /// The text of the profile, as [`Profile::from_toml`] reads it.
    pub toml: String,
    /// The checked profile.
    #[serde(skip)]
    pub profile: Profile,
}

/// Reasons for which no profile can be fitted.
#[derive(Debug, thiserror::Error)]
pub enum FitProfileError {
    /// The trace has too few requests with a service time.
    #[error(
        "{found} requests have a service time (from issue to completion): at least {REQUESTS_MIN} are needed, half of which are held out"
    )]
    TooFew {
        /// Number of requests.
        found: usize,
    },
    /// Nearly all reads are near previous requests.
    #[error(
        "{found} reads of the first half of the trace are far from previous requests: at least {needed} are needed to separate seeks from rotational latency"
    )]
    TooLocal {
        /// Number of distant reads.
        found: usize,
        /// Number of distant reads that are needed.
        needed: usize,
    },
    /// Many requests have a service time of 0.
    #[error(
        "{found} of the trace's {of} requests have a service time of 0: the times must be those from issue to completion, in us"
    )]
    NoTime {
        /// Number of requests with a service time of 0.
        found: usize,
        /// Number of requests.
        of: usize,
    },
    /// The service times have no spread.
    #[error("reads at equal distance differ by {ms:.3} ms: on a disk they differ by up to a revolution, 3 to 20 ms")]
    NoSpread {
        /// Spread in ms.
        ms: f64,
    },
    /// Requests were issued before the previous one had completed.
    #[error(
        "request {index} of the trace was issued before the previous one completed: the fit needs requests one at a time"
    )]
    Overlap {
        /// The index of the first such request, from 0.
        index: usize,
    },
    /// The sectors do not fit on tracks of the length found.
    #[error("the trace reaches up to sector {sector}: no disk is so large")]
    TooLarge {
        /// The last sector.
        sector: u64,
    },
    /// The base, or the fitted profile, is invalid.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The base does not suit the trace.
    #[error(transparent)]
    Base(#[from] ReplayError),
    /// The text of the base cannot be edited.
    #[error("{file}: a table is expected at `{key}`")]
    BaseTable {
        /// The file name of the base.
        file: String,
        /// The key.
        key: String,
    },
}

impl Agreement {
    /// The agreement of `predictions` with the recorded times.
    pub fn of(predictions: &[Prediction]) -> Agreement {
        let percentiles = |time_ns: fn(&Prediction) -> u64| {
            let times: Vec<f64> = predictions.iter().map(|prediction| time_ns(prediction) as f64 / 1e6).collect();
            [0.5, 0.9, 0.99].map(|share| percentile(&times, share))
        };
        Agreement {
            errors: PredictionErrors::of(predictions),
            recorded_ms: percentiles(|prediction| prediction.recorded_ns),
            predicted_ms: percentiles(|prediction| prediction.predicted_ns),
        }
    }
}

/// The known limits of a fit.
pub(super) struct Notes {
    /// Parameters that the trace does not determine.
    pub(super) undetermined: Vec<String>,
    /// Parameters with thin evidence.
    pub(super) warnings: Vec<String>,
}

/// Parses the fitted profile and measures its errors.
pub(super) fn finish(
    toml: String,
    name: &str,
    found: Vec<Finding>,
    notes: Notes,
    replayed: impl Fn(&Profile) -> Result<Vec<Prediction>, ReplayError>,
) -> Result<FittedProfile, FitProfileError> {
    let profile = Profile::from_toml(&toml, &format!("{name}.toml"))?;
    let predictions = replayed(&profile)?;
    let (first, second) = predictions.split_at(predictions.len() / 2);
    let (fitted_to, held_out) = (Agreement::of(first), Agreement::of(second));
    let name = profile.name().to_string();
    let Notes { undetermined, mut warnings } = notes;
    warnings.extend(evidence::of_halves(fitted_to.errors.demerit_ms, held_out.errors.demerit_ms));
    Ok(FittedProfile { schema: 1, name, found, undetermined, warnings, fitted_to, held_out, toml, profile })
}

/// A string as a TOML literal.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}
