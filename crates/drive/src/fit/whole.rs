//! A whole profile from a trace of requests and their service times.

use crate::Op;
use crate::profile::{Profile, ProfileError};
use crate::recording::{Errors, Record};

use super::stats::percentile;
use super::{FitError, Prediction, base, disk, flash};

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
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What it is.
    pub what: &'static str,
    /// The figure with its unit.
    pub value: String,
    /// What it was found from.
    pub from: String,
}

/// Recorded against modelled service times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreement {
    /// Request by request, and the demerit.
    pub errors: Errors,
    /// Percentiles 50, 90 and 99 of the recorded service times, in ms.
    pub recorded_ms: [f64; 3],
    /// The same of the model's.
    pub predicted_ms: [f64; 3],
}

/// A profile made from a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedProfile {
    /// The profile.
    pub profile: Profile,
    /// Its text, which [`Profile::from_toml`] reads.
    pub toml: String,
    /// What was fitted.
    pub found: Vec<Finding>,
    /// What the trace does not tell, a sentence each.
    pub untold: Vec<String>,
    /// The first half of the requests, which the profile was fitted to.
    pub fitted_to: Agreement,
    /// The second half, which it never saw.
    pub held_out: Agreement,
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
    Base(#[from] FitError),
    /// The base's text cannot be edited.
    #[error("{file}: a table is expected at `{key}`")]
    BaseTable {
        /// The base.
        file: String,
        /// The key.
        key: String,
    },
}

/// Fits a profile to requests that were made one at a time. The first half is fitted to, the second is held out.
///
/// # Errors
/// [`FitProfileError`] when the trace is too short, too local or makes no sense, or the base does not suit it.
pub fn fit_profile(records: &[Record], options: &FitOptions) -> Result<FittedProfile, FitProfileError> {
    checked(records)?;
    let half = &records[..records.len() / 2];
    if let Some(base) = &options.base {
        return base::fit(half, records, base, options.name);
    }
    match options.kind.unwrap_or_else(|| guess(half)) {
        FitKind::Disk => disk::fit(half, records, options.name),
        FitKind::Flash => flash::fit(half, records, options.name),
    }
}

impl Agreement {
    /// How well predictions agree with what was recorded.
    pub fn of(predictions: &[Prediction]) -> Agreement {
        let percentiles = |time_ns: fn(&Prediction) -> u64| {
            let times: Vec<f64> = predictions.iter().map(|prediction| time_ns(prediction) as f64 / 1e6).collect();
            [0.5, 0.9, 0.99].map(|share| percentile(&times, share))
        };
        Agreement {
            errors: Errors::of(predictions),
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
    untold: Vec<String>,
    replayed: impl Fn(&Profile) -> Result<Vec<Prediction>, FitError>,
) -> Result<FittedProfile, FitProfileError> {
    let profile = Profile::from_toml(&toml, &format!("{name}.toml"))?;
    let predictions = replayed(&profile)?;
    let (first, second) = predictions.split_at(predictions.len() / 2);
    let (fitted_to, held_out) = (Agreement::of(first), Agreement::of(second));
    Ok(FittedProfile { profile, toml, found, untold, fitted_to, held_out })
}

/// A string as TOML has it.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}

fn checked(records: &[Record]) -> Result<(), FitProfileError> {
    if records.len() < REQUESTS_MIN {
        return Err(FitProfileError::TooFew { found: records.len() });
    }
    let untimed = records.iter().filter(|record| record.service_ns == 0).count();
    if untimed * 100 > records.len() {
        return Err(FitProfileError::NoTime { found: untimed, of: records.len() });
    }
    let end = |record: &Record| record.access.sector.saturating_add(u64::from(record.access.sectors));
    let last = records.iter().map(end).max().unwrap_or(0);
    if last > 1 << 55 {
        return Err(FitProfileError::TooLarge { sector: last - 1 });
    }
    // Times in whole microseconds may overlap by the last one's rounding.
    let overlaps = |pair: &&[Record]| pair[0].issue_ns.saturating_add(pair[0].service_ns) > pair[1].issue_ns + 2000;
    let overlapping: Vec<usize> =
        records.windows(2).enumerate().filter(|(_, pair)| overlaps(pair)).map(|(index, _)| index + 1).collect();
    match overlapping.first() {
        Some(index) if overlapping.len() * 100 > records.len() => Err(FitProfileError::Overlap { index: *index }),
        _ => Ok(()),
    }
}

/// A disk's reads take milliseconds. Where there are hardly any, its writes do.
fn guess(records: &[Record]) -> FitKind {
    let times = |op: Op| -> Vec<f64> {
        let of_kind = records.iter().filter(|record| record.access.op == op);
        of_kind.map(|record| record.service_ns as f64 / 1e6).collect()
    };
    let reads = times(Op::Read);
    let times = if reads.len() >= 50 { reads } else { times(Op::Write) };
    // Hits may be quick on a disk: the slower quarter tells.
    if percentile(&times, 0.75) > 1.0 { FitKind::Disk } else { FitKind::Flash }
}
