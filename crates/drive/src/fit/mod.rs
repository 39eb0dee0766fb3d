//! Fits profiles to recordings of requests and service times.

mod arm;
mod base;
mod buffer;
mod disk;
mod evidence;
mod flash;
mod layout;
mod requests;
mod result;
mod rotation;
mod stats;
mod tracks;

use crate::command::Op;
use crate::recording::{Record, first_overlap};
pub use result::{Agreement, Base, Finding, FitKind, FitOptions, FitProfileError, FittedProfile, REQUESTS_MIN};
pub use rotation::{RotationFit, fit_rotation};
use stats::percentile;

/// Fits a profile to requests that were issued one at a time.
///
/// The profile is fitted to the first half of the records and checked with the second half.
///
/// # Errors
/// [`FitProfileError`] if the trace is too short, too local or inconsistent, or if the base does
/// not suit it.
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
    first_overlap(records).map_or(Ok(()), |index| Err(FitProfileError::Overlap { index }))
}

/// The kind of drive. Reads of a disk take milliseconds, or its writes if there are few reads.
fn guess(records: &[Record]) -> FitKind {
    let times = |op: Op| -> Vec<f64> {
        let of_kind = records.iter().filter(|record| record.access.op == op);
        of_kind.map(|record| record.service_ns as f64 / 1e6).collect()
    };
    let reads = times(Op::Read);
    let times = if reads.len() >= 50 { reads } else { times(Op::Write) };
    // Hits are fast on a disk too, so the slowest quarter decides.
    if percentile(&times, 0.75) > 1.0 { FitKind::Disk } else { FitKind::Flash }
}
