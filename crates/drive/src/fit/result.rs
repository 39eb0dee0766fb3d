//! The results and errors of fitting a profile.

use crate::profile::{Profile, ProfileError};
use crate::replay::{Prediction, PredictionErrors, ReplayError};

use serde::Serialize;

use super::stats::percentile;

/// The fewest requests that a profile is fitted to: half of them are held out.
pub const REQUESTS_MIN: usize = 400;

/// What kind of drive made the trace.
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
    /// The profile's text.
    pub toml: &'a str,
    /// What errors call it.
    pub file_name: &'a str,
}

/// What to fit.
#[derive(Debug, Clone, Copy)]
pub struct FitOptions<'a> {
    /// The name of the new profile.
    pub name: &'a str,
    /// The kind of drive; `None`: a disk when a quarter of the reads takes over a millisecond, flash otherwise.
    pub kind: Option<FitKind>,
    /// Keeps this profile's geometry and fits rotation, overheads, settling and the height of the seek curve alone. It must be a
    /// disk's.
    pub base: Option<Base<'a>>,
}

/// A figure that was fitted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What it is.
    pub what: &'static str,
    /// The figure with its unit.
    pub value: String,
    /// What it was found from.
    pub from: String,
}

/// Recorded against modelled service times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Agreement {
    /// Request by request, and the demerit.
    #[serde(flatten)]
    pub errors: PredictionErrors,
    /// Percentiles 50, 90 and 99 of the recorded service times, in ms.
    pub recorded_ms: [f64; 3],
    /// The same of the model's.
    pub predicted_ms: [f64; 3],
}

/// A profile made from a trace.
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

/// Why no profile could be fitted.
#[derive(Debug, thiserror::Error)]
pub enum FitProfileError {
    /// Too few requests.
    #[error("the trace has {found} requests: at least {REQUESTS_MIN} are needed, half of which are held out")]
    TooFew {
        /// Requests in the trace.
        found: usize,
    },
    /// Hardly any read goes elsewhere.
    #[error(
        "{found} reads of the trace's first half begin away from what was asked before: at least {needed} are needed to tell seeks from waits"
    )]
    TooLocal {
        /// Reads that do.
        found: usize,
        /// Reads that should.
        needed: usize,
    },
    /// No drive is so quick.
    #[error(
        "{found} of the trace's {of} requests took no time at all: the times are those from issue to completion, in us"
    )]
    NoTime {
        /// Requests with a service time of 0.
        found: usize,
        /// All requests.
        of: usize,
    },
    /// Service times without any spread.
    #[error("reads from equally far away differ by {ms:.3} ms: a disk's differ by up to a revolution, 3 to 20 ms")]
    NoSpread {
        /// By how much they differ.
        ms: f64,
    },
    /// Requests that were issued before the one before was over.
    #[error(
        "request {index} of the trace was issued before the one before it was over: the fit needs requests one at a time"
    )]
    Overlap {
        /// The first such request, from 0.
        index: usize,
    },
    /// More sectors than tracks of the length found can hold.
    #[error("the trace reaches up to sector {sector}: no disk is so large")]
    TooLarge {
        /// The last sector.
        sector: u64,
    },
    /// The base, or the profile made, is none.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The base does not fit the trace.
    #[error(transparent)]
    Base(#[from] ReplayError),
    /// The base's text cannot be edited.
    #[error("{file}: a table is expected at `{key}`")]
    BaseTable {
        /// The base.
        file: String,
        /// The key.
        key: String,
    },
}

impl Agreement {
    /// How well predictions agree with what was recorded.
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

/// The result, its text read back.
pub(super) fn finish(
    toml: String,
    name: &str,
    found: Vec<Finding>,
    undetermined: Vec<String>,
    replayed: impl Fn(&Profile) -> Result<Vec<Prediction>, ReplayError>,
) -> Result<FittedProfile, FitProfileError> {
    let profile = Profile::from_toml(&toml, &format!("{name}.toml"))?;
    let predictions = replayed(&profile)?;
    let (first, second) = predictions.split_at(predictions.len() / 2);
    let (fitted_to, held_out) = (Agreement::of(first), Agreement::of(second));
    let name = profile.name().to_string();
    Ok(FittedProfile { schema: 1, name, found, undetermined, fitted_to, held_out, toml, profile })
}

/// A string as TOML has it.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}
