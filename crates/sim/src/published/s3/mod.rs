//! How the rows of `published/s3.toml` are measured.

mod archive;
mod films;
mod reserved;

use super::expectation::Row;
use super::runner::Runner;
use super::verdict::Measured;
use super::{PublishedError, no_measure};

/// Measures one of the rows.
pub fn measure(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    match row.id.as_str() {
        "S3-02" => films::misses(row, runner),
        "S3-03" => films::most(row, runner, films::HD),
        "S3-04" => films::most(row, runner, films::SD),
        "S3-05" => films::head(row, runner),
        "S3-06" => reserved::isolation(row, runner),
        "S3-07" => reserved::greedy(row, runner),
        "S3-08" => reserved::excess(row, runner),
        "S3-09" => reserved::unused(row, runner),
        "S3-10" => reserved::places(row, runner),
        "S3-11" => archive::orders(row, runner),
        "S3-12" => archive::algorithm(row),
        "S3-13" => archive::inodes(row),
        "S3-14" => archive::ageing(row, runner),
        "S3-15" => archive::schedulers(row, runner),
        _ => Err(no_measure(row)),
    }
}
