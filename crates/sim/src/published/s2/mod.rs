//! How the rows of `published/s2.toml` are measured.

use crate::published::expectation::Row;
use crate::published::lab::Lab;
use crate::published::verdict::Measured;
use crate::published::{PublishedError, no_measure};

/// Measures one of the rows.
pub fn measure(row: &Row, _lab: &mut Lab<'_>) -> Result<Measured, PublishedError> {
    // An arm a row.
    Err(no_measure(row))
}
