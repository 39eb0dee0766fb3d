//! Profiles fitted to recordings without any other knowledge of the drive.

use rayon::prelude::*;
use serde::Serialize;

use super::error::AccuracyError;
use super::recorded::{Recording, Recordings};
use crate::fit::{Agreement, FitOptions, fit_profile};

/// The largest ratio of the demerit of a fitted profile to that of the measured profile.
const RATIO: f64 = 2.0;

/// A profile fitted to the first half of a recording, checked with the second half.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitCheck {
    /// The name of the profile that was measured with the same drive.
    pub drive: &'static str,
    /// The fitted revolution with its unit.
    pub revolution: String,
    /// The second half of the recording against the fitted model.
    pub held_out: Agreement,
    /// The demerit of the measured profile over the whole recording, in ms.
    pub measured_demerit_ms: f64,
    /// True if the demerit of the fitted profile is at most twice that of the measured one.
    pub reached: bool,
}

/// One check for each recording.
pub(super) fn checks(recordings: &Recordings) -> Result<Vec<FitCheck>, AccuracyError> {
    let check = |recording: &Recording| {
        let drive = recording.profile_name();
        let measured_demerit_ms = recording.validation.all.demerit_ms;
        let fitted = fit_profile(&recording.records, &FitOptions { name: drive, kind: None, base: None })?;
        let revolution = fitted.found.first().map_or("", |found| found.value.as_str()).to_owned();
        let held_out = fitted.held_out;
        let reached = held_out.errors.demerit_ms <= RATIO * measured_demerit_ms;
        Ok(FitCheck { drive, revolution, held_out, measured_demerit_ms, reached })
    };
    recordings.replayed.par_iter().map(check).collect()
}
