//! Fitting a profile to a recording.

mod arm;
mod base;
mod buffer;
mod disk;
mod flash;
mod layout;
mod requests;
mod result;
mod rotation;
mod stats;
mod tracks;

use crate::command::Op;
use crate::recording::Record;
pub use result::{Agreement, Base, Finding, FitKind, FitOptions, FitProfileError, FittedProfile, REQUESTS_MIN};
pub use rotation::{RotationFit, fit_rotation};
use stats::percentile;

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
