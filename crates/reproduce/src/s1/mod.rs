//! Measurements of the rows of `published/s1.toml`.

mod drives;
mod priorities;
mod readers;

use crate::error::ReproduceError;
use crate::expectation::Row;
use crate::runner::Runner;
use crate::verdict::Measured;

/// Measures a row of the publication.
pub fn measure(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    match row.id.as_str() {
        "S1-01" => drives::table(row),
        "S1-02" => drives::transfer(row),
        "S1-03" => drives::random_reads(row, 8),
        "S1-04" => drives::random_reads(row, 128),
        "S1-05" => readers::single_stream(row, runner),
        "S1-06" => readers::shares(row, runner),
        "S1-07" => readers::spreads(row, runner),
        "S1-08" => readers::runtimes(row, runner),
        "S1-09" => readers::longest(row, runner),
        "S1-10" => readers::means(row, runner),
        "S1-11" => readers::deviations(row, runner),
        "S1-12" => readers::flatness(row, runner),
        "S1-13" => readers::noise(row, runner),
        "S1-14" => priorities::shares(row, runner),
        "S1-15" => priorities::streams(row, runner),
        "S1-16" => priorities::five_reads(row, runner),
        "S1-17" => priorities::five_reads_under_load(row, runner),
        "S1-18" => priorities::reader_with_writer(row, runner),
        "S1-19" => priorities::defaults(row),
        "S1-20" => Ok(priorities::levels()),
        "S1-21" => priorities::real_time(row, runner),
        "S1-22" => priorities::idle_class(row, runner),
        "S1-23" => priorities::idling(row, runner),
        _ => Err(ReproduceError::no_measure(&row.id)),
    }
}
