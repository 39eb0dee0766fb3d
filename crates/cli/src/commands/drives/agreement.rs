//! The table of recorded service times against those of a model.

use anyhow::Result;
use hoistway_drive::fit::Agreement;

use crate::output::{self, Out};

/// What the columns RMS and demerit mean.
pub const MEANING: &str = "RMS is the error request by request; the demerit is the RMS distance between the two distributions of service times.";

/// Writes a table with two lines for each named agreement: recorded, and model. `head` is the head
/// of the names.
pub fn write(head: &str, rows: &[(&str, &Agreement)], out: &mut Out) -> Result<()> {
    let head = format!("  {head}");
    let header = [head.as_str(), "requests", "RMS", "demerit", "", "mean", "p50", "p90", "p99"];
    let mut table = output::table(&header, 1);
    let ms = |value: f64| format!("{value:.3}");
    for (name, agreement) in rows {
        let errors = &agreement.errors;
        let row = |first: [String; 4], what: &str, mean: f64, percentiles: [f64; 3]| {
            let mut row = first.to_vec();
            row.extend([what.to_owned(), ms(mean)]);
            row.extend(percentiles.map(ms));
            row
        };
        let first = [format!("  {name}"), errors.requests.to_string(), ms(errors.rms_ms), ms(errors.demerit_ms)];
        table.add_row(row(first, "recorded", errors.recorded_mean_ms, agreement.recorded_ms));
        table.add_row(row(Default::default(), "model", errors.predicted_mean_ms, agreement.predicted_ms));
    }
    Ok(out.table(&mut table)?)
}
