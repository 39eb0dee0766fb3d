//! How the rows of `published/s2.toml` are measured.

mod budgets;
mod many;

use super::expectation::Row;
use super::runner::{Experiment, Runner};
use super::verdict::Measured;
use super::{PublishedError, no_measure};

/// Measures one of the rows.
pub fn measure(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
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
        "S2-13" => budgets::beside_a_seeky_one(row, runner),
        "S2-14" => budgets::weights(row, runner),
        "S2-15" => many::alike(row, runner),
        _ => Err(no_measure(row)),
    }
}

/// The elevator as it was posted in April 2008: budgets of 4096 sectors at most, no bound on their
/// time, and so no process that is slow (`slow_fixed` with an endless bound): both came later.
fn as_posted(experiment: Experiment) -> Experiment {
    experiment.with("max_budget=4096").with("timeout_sync=100000000").with("slow_fixed=1")
}
