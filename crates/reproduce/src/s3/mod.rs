//! Measurements of the rows of `published/s3.toml`.

mod archive;
mod films;
mod reserved;

use crate::error::ReproduceError;
use crate::expectation::Row;
use crate::runner::Runner;
use crate::verdict::Measured;

/// Measures a row of the publication.
pub fn measure(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    match row.id.as_str() {
        "S3-02" => films::misses(row, runner),
        "S3-03" => films::most(row, runner, films::HD),
        "S3-04" => films::most(row, runner, films::SD),
        "S3-05" => films::head(row, runner),
        "S3-06" => reserved::isolation(row, runner),
        "S3-07" => reserved::greedy(row, runner),
        "S3-08" => reserved::excess(row, runner),
        "S3-09" => reserved::unused(row, runner),
        "S3-10" => reserved::positions(row, runner),
        "S3-11" => archive::orders(row, runner),
        "S3-12" => archive::algorithm(row),
        "S3-13" => archive::inodes(row),
        "S3-14" => archive::ageing(row, runner),
        "S3-15" => archive::schedulers(row, runner),
        _ => Err(ReproduceError::no_measure(&row.id)),
    }
}
