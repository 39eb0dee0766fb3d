//! Profiles fitted to the recordings and nothing else.

use anyhow::Result;
use hoistway_drive::fit::{FitOptions, fit_profile};
use rayon::prelude::*;

use super::recorded::Recordings;
use super::{Judged, judged, reached};

/// A fit from scratch may be so many times as far off as the measured profile.
const RATIO: f64 = 2.0;

/// A line a recorded drive.
pub fn part(recordings: &Recordings) -> Result<String> {
    let rows: Vec<Result<Judged>> = recordings
        .demerits()
        .map(|(name, records, measured_ms)| {
            let fitted = fit_profile(records, &FitOptions { name, kind: None, base: None })?;
            let held = fitted.held_out;
            let good = held.errors.demerit_ms <= RATIO * measured_ms;
            let pair = |at: usize| format!("{:.1} / {:.1}", held.recorded_ms[at], held.predicted_ms[at]);
            let revolution = fitted.found.first().map_or("", |found| found.value.as_str()).to_owned();
            let ms = |value: f64| format!("{value:.3}");
            let cells = vec![
                format!("`{name}`"),
                revolution,
                pair(0),
                pair(1),
                pair(2),
                ms(held.errors.demerit_ms),
                ms(measured_ms),
                reached(good),
            ];
            Ok((cells, good))
        })
        .collect();
    let header = [
        "drive",
        "revolution found",
        "p50 recorded / model, ms",
        "p90, ms",
        "p99, ms",
        "demerit, held out, ms",
        "measured profile's, ms",
        "within twice that",
    ];
    Ok(format!(
        "`hoistway drives --fit` makes a profile from sectors, sizes and service times alone. It is fitted to the first half of each recording; \
         the figures are those of the second half.\n\n{}",
        judged(&header, rows)?
    ))
}
