//! Published results of the field, run in the simulator.
//!
//! The published figures, tolerances and marks of mechanisms are data:
//! `crates/sim/published/*.toml` with its job files (`expectation.rs`). The measurements are code:
//! one file per publication, which asks the runner (`runner.rs`) for runs. `verdict.rs` alone
//! compares both.
//!
//! To add a row: add it to its TOML file, add its job file to `published/jobs` and to the list in
//! `expectation.rs`, and add a branch to the `measure` function of its publication that returns a
//! figure for each name in the row.

mod error;
mod expectation;
mod report;
mod runner;
mod s1;
mod s2;
mod s3;
mod s4;
mod s5;
mod text;
mod verdict;

use std::sync::atomic::AtomicBool;

pub use error::PublishedError;
pub use expectation::{Order, Publication, Reason, Row, RowKind, Value, publications, select};
pub use report::{Count, Reproduction, Summary};
pub use runner::RowProgress;
pub use text::{plain, rounded};
pub use verdict::{Checked, Line, Plot, RowResult, Verdict};

use crate::error::SimError;
use runner::Runner;
use verdict::Measured;

/// Measures these rows one after the other; the runs of a row are parallel.
///
/// `progress` is called from several threads from time to time. When `cancel` becomes true, the
/// function returns soon.
///
/// # Errors
/// [`PublishedError`] if a run failed or was cancelled, or if a row is invalid.
pub fn reproduce(
    rows: &[&'static Row],
    progress: &(dyn Fn(RowProgress) + Sync),
    cancel: &AtomicBool,
) -> Result<Vec<RowResult>, PublishedError> {
    let mut runner = Runner::new(progress, cancel);
    let outcome = |(index, row): (usize, &&'static Row)| {
        runner.begin(index);
        RowResult::judge(row, measure(row, &mut runner)?)
    };
    rows.iter().enumerate().map(outcome).collect()
}

/// Measures a row; nothing for a row without figures.
fn measure(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, PublishedError> {
    if row.values.is_empty() && row.reasons.is_empty() {
        return Ok(Measured::default());
    }
    match row.id.split_once('-') {
        Some(("S1", _)) => s1::measure(row, runner),
        Some(("S2", _)) => s2::measure(row, runner),
        Some(("S3", _)) => s3::measure(row, runner),
        Some(("S4", _)) => s4::measure(row, runner),
        Some(("S5", _)) => s5::measure(row, runner),
        _ => Err(no_measure(row)),
    }
}

/// The error for a valid command that a drive refused.
fn defect(error: impl std::fmt::Display) -> PublishedError {
    SimError::Defect { seed: 1, now_ns: 0, problem: error.to_string() }.into()
}

fn no_measure(row: &Row) -> PublishedError {
    PublishedError::NoMeasure { id: row.id.clone() }
}
