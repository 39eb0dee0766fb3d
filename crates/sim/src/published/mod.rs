//! Published results of the field, run.
//!
//! What was published, with its tolerances and the marks of its mechanisms, is data: `crates/sim/published/*.toml` and the job files
//! beside them (`expectation.rs`). How a figure is measured is code: a file a publication, which asks the runner (`runner.rs`) for runs. Whether
//! both agree is decided in one place (`verdict.rs`).
//!
//! To add a row: write it into its file, its job file into `published/jobs` (and the list in `expectation.rs`), and an arm
//! into the `measure` of its publication, which gives a figure for each name that the row has.

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

/// Runs these rows, one after the other, each with its runs side by side.
///
/// `progress` is called now and then from several threads; when `cancel` becomes true, it ends soon.
///
/// # Errors
/// [`PublishedError`]: a run failed, was cancelled, or a row is not what it has to be.
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

/// What the row's measure finds; nothing for a row that names no figure.
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

/// A drive has refused a command that lies within it.
fn defect(error: impl std::fmt::Display) -> PublishedError {
    SimError::Defect { seed: 1, now_ns: 0, problem: error.to_string() }.into()
}

fn no_measure(row: &Row) -> PublishedError {
    PublishedError::NoMeasure { id: row.id.clone() }
}
