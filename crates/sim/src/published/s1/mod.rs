//! How the rows of `published/s1.toml` are measured.

mod drives;
mod priorities;
mod readers;

use super::expectation::Row;
use super::lab::Lab;
use super::verdict::Measured;
use super::{PublishedError, no_measure};

/// Measures one of the rows.
pub fn measure(row: &Row, lab: &mut Lab<'_>) -> Result<Measured, PublishedError> {
    match row.id.as_str() {
        "S1-01" => drives::table(row),
        "S1-02" => drives::transfer(row),
        "S1-03" => drives::random_reads(row, 8),
        "S1-04" => drives::random_reads(row, 128),
        "S1-05" => readers::alone(row, lab),
        "S1-06" => readers::shares(row, lab),
        "S1-07" => readers::spreads(row, lab),
        "S1-08" => readers::runtimes(row, lab),
        "S1-09" => readers::longest(row, lab),
        "S1-10" => readers::means(row, lab),
        "S1-11" => readers::deviations(row, lab),
        "S1-12" => readers::flatness(row, lab),
        "S1-13" => readers::noise(row, lab),
        "S1-14" => priorities::shares(row, lab),
        "S1-15" => priorities::streams(row, lab),
        "S1-16" => priorities::five_reads(row, lab),
        "S1-17" => priorities::five_reads_under_load(row, lab),
        "S1-18" => priorities::beside_a_writer(row, lab),
        "S1-19" => priorities::defaults(row),
        "S1-20" => Ok(priorities::levels()),
        "S1-21" => priorities::real_time(row, lab),
        "S1-22" => priorities::idle_class(row, lab),
        "S1-23" => priorities::idling(row, lab),
        _ => Err(no_measure(row)),
    }
}
