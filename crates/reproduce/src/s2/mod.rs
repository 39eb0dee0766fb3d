//! Measurements of the rows of `published/s2.toml`.

mod budgets;
mod many;
mod posted;

use crate::error::ReproduceError;
use crate::expectation::Row;
use crate::runner::Runner;
use crate::verdict::Measured;

/// Measures a row of the publication.
pub fn measure(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    match row.id.as_str() {
        "S2-01" | "S2-04" => many::cfq(row, runner),
        "S2-02" | "S2-05" => many::cfq_without_idling(row, runner),
        "S2-03" | "S2-06" => many::bfq(row, runner),
        "S2-07" => budgets::two_files(row, runner),
        "S2-08" => budgets::small_reads(row, 8),
        "S2-09" => budgets::a_budget_of_sectors(row, runner),
        "S2-10" => budgets::zones(row, runner),
        "S2-11" => budgets::aggregates(row, runner),
        "S2-12" => budgets::light_reader(row, runner),
        "S2-13" => budgets::stream_with_seeky_reader(row, runner),
        "S2-14" => budgets::weights(row, runner),
        "S2-15" => many::throughput_ratio(row, runner),
        _ => Err(ReproduceError::no_measure(&row.id)),
    }
}
