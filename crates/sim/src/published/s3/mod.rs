//! How the rows of `published/s3.toml` are measured.

mod archive;
mod films;
mod reserved;

use super::expectation::Row;
use super::lab::Lab;
use super::verdict::Measured;
use super::{PublishedError, no_measure};

/// Measures one of the rows.
pub fn measure(row: &Row, lab: &mut Lab<'_>) -> Result<Measured, PublishedError> {
    match row.id.as_str() {
        "S3-02" => films::misses(row, lab),
        "S3-03" => films::most(row, lab, films::HD),
        "S3-04" => films::most(row, lab, films::SD),
        "S3-05" => films::head(row, lab),
        "S3-06" => reserved::isolation(row, lab),
        "S3-07" => reserved::greedy(row, lab),
        "S3-08" => reserved::excess(row, lab),
        "S3-09" => reserved::unused(row, lab),
        "S3-10" => reserved::places(row, lab),
        "S3-11" => archive::orders(row, lab),
        "S3-12" => archive::algorithm(row),
        "S3-13" => archive::inodes(row),
        "S3-14" => archive::ageing(row, lab),
        "S3-15" => archive::schedulers(row, lab),
        _ => Err(no_measure(row)),
    }
}
