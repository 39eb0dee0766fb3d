//! Checks of the table `[faults]`.

use std::ops::Range;

use toml::Spanned;

use super::super::raw::RawFaults;
use super::{Check, Checked};
use crate::faults::{Faults, FaultsError, FaultsField, Hang};

impl Check<'_> {
    /// The faults of the table; no faults without a table.
    pub(super) fn faults(&self, raw: Option<&Spanned<RawFaults>>, capacity_sectors: u64) -> Checked<Faults> {
        let Some(table) = raw else { return Ok(Faults::default()) };
        let raw = table.as_ref();
        let ranges = |sectors: &[Spanned<(u64, u32)>]| sectors.iter().map(|range| *range.as_ref()).collect();
        let share = |share: &Option<Spanned<f64>>| share.as_ref().map_or(0.0, |share| *share.as_ref());
        let mut hangs = Vec::with_capacity(raw.hangs.len());
        for hang in &raw.hangs {
            let Some(for_ms) = hang.as_ref().for_ms else {
                let value = format!("without a duration at {} ms", hang.as_ref().at_ms);
                let expected = "a hang has a duration: `for_ms = 2000`, or `for_ms = inf` for ever";
                return Err(self.value(hang.span(), "faults.hangs", value, expected));
            };
            hangs.push(Hang { at_ms: hang.as_ref().at_ms, for_ms });
        }
        let faults = Faults {
            bad_sectors: ranges(&raw.bad_sectors),
            slow_sectors: ranges(&raw.slow_sectors),
            bad_share: share(&raw.bad_share),
            slow_share: share(&raw.slow_share),
            seed: raw.seed.unwrap_or(1),
            retries: raw.retries.as_ref().map_or(Faults::RETRIES, |retries| *retries.as_ref()),
            spare_sectors: raw.spare_sectors.unwrap_or(Faults::SPARE_SECTORS),
            hangs,
        };
        match faults.problem(capacity_sectors) {
            Some((field, FaultsError::Value { key, value, expected })) => {
                let span = span_of(raw, field).unwrap_or(table.span());
                Err(self.value(span, &format!("faults.{key}"), value, &expected))
            }
            _ => Ok(faults),
        }
    }
}

fn span_of(raw: &RawFaults, field: FaultsField) -> Option<Range<usize>> {
    match field {
        FaultsField::BadSectors(index) => raw.bad_sectors.get(index).map(Spanned::span),
        FaultsField::SlowSectors(index) => raw.slow_sectors.get(index).map(Spanned::span),
        FaultsField::BadShare => raw.bad_share.as_ref().map(Spanned::span),
        FaultsField::SlowShare => raw.slow_share.as_ref().map(Spanned::span),
        FaultsField::Retries => raw.retries.as_ref().map(Spanned::span),
        FaultsField::Hang(index) => raw.hangs.get(index).map(Spanned::span),
    }
}
