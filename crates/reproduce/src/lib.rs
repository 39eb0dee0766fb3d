//! Published results on I/O schedulers, measured again in the simulator.
//!
//! Each [`Row`] is one result of a publication: its figures with tolerances, the order of values,
//! or a rule, and marks of the mechanism that causes it. [`select`] finds rows, [`reproduce`]
//! simulates them and compares, [`Reproduction`] is the document of `hoistway reproduce --json`.
//!
//! # Flow of data
//!
//! Figures, tolerances and marks of mechanisms are data: `published/*.toml` with the job files in
//! `published/jobs` (`expectation.rs`). Measurements are code: one module per publication (`s1` to
//! `s7`), which gets its simulations from the runner (`runner.rs`). `verdict.rs` alone compares
//! both. While a row differs, it is measured again with each value of its unknowns
//! (`unknown.rs`), which the runner puts into the simulations.
//!
//! # Where to change ...
//!
//! | what | where |
//! |---|---|
//! | a figure, tolerance or mark of a row | the row in `published/*.toml` |
//! | the values that are tried for a property that a publication does not state | `[[row.unknown]]` after the row in `published/*.toml`; what a trial may change: `unknown.rs` (read), `runner.rs` (applied) |
//! | a new row | its TOML file, its job file in `published/jobs` and in the list of `expectation.rs`, and a branch in the `measure` function of its publication, which returns a figure for each name in the row |
//! | whether an unknown decides a row | `verdict.rs` |
//! | the comparison with a tolerance | `expectation.rs` (bounds), `verdict.rs` |
//! | the texts of the table | `text.rs` |
//! | the JSON | `report.rs` |
//! | docs/reproduced.md and its pictures | `page.rs` |
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod expectation;
mod figures;
mod page;
mod report;
mod runner;
mod s1;
mod s2;
mod s3;
mod s4;
mod s5;
mod s6;
mod s7;
mod text;
mod unknown;
mod verdict;

use std::sync::atomic::AtomicBool;

use rayon::prelude::*;

pub use error::ReproduceError;
pub use expectation::{Order, Publication, Reason, Row, RowKind, Value, publications, select};
pub use page::Page;
pub use report::{Count, Reproduction, Summary};
pub use runner::RowProgress;
pub use text::{plain, rounded};
pub use unknown::{Trial, Unknown};
pub use verdict::{Checked, Effect, Line, Plot, RowResult, TrialResult, UnknownResult, Verdict};

use runner::Runner;
use verdict::Measured;

/// Measures these rows one after the other, and returns their results in the same order. The runs
/// of a row are parallel, and so are the values of its unknowns.
///
/// `progress` is called from several threads, at the start of a row and after each run. When
/// `cancel` becomes true, the function returns soon.
///
/// # Errors
/// [`ReproduceError`] if a run failed or was cancelled, or if a row is invalid. A result that
/// differs from the published one is no error.
pub fn reproduce(
    rows: &[&'static Row],
    progress: &(dyn Fn(RowProgress) + Sync),
    cancel: &AtomicBool,
) -> Result<Vec<RowResult>, ReproduceError> {
    let mut runner = Runner::new(progress, cancel);
    let result = |(index, row): (usize, &&'static Row)| {
        runner.begin(index);
        let result = RowResult::new(row, measure(row, &mut runner)?)?;
        if result.verdict != Verdict::Differs {
            return Ok(result);
        }
        let unknowns = try_values(&result, &runner)?;
        Ok(RowResult { unknowns, ..result })
    };
    rows.iter().enumerate().map(result).collect()
}

/// Measures a row that differs with each value of its unknowns, all values in parallel.
fn try_values(result: &RowResult, runner: &Runner<'_>) -> Result<Vec<UnknownResult>, ReproduceError> {
    let row = result.row;
    let trials = row.unknowns.iter().flat_map(|unknown| unknown.trials.iter().map(move |trial| (unknown, trial)));
    let measured = |(unknown, trial): (&'static Unknown, &'static Trial)| {
        let mut runner = runner.for_trial(trial);
        let measured = measure(&row.tried(unknown, trial), &mut runner).map_err(|error| trial.wrap(&row.id, error))?;
        runner.end_trial(&row.id)?;
        Ok(TrialResult { trial, result: RowResult::new(row, measured)? })
    };
    let tried: Result<Vec<TrialResult>, ReproduceError> =
        trials.collect::<Vec<_>>().into_par_iter().map(measured).collect();
    let mut tried = tried?.into_iter();
    let of_unknown = |unknown: &'static Unknown| {
        UnknownResult::new(result, unknown, tried.by_ref().take(unknown.trials.len()).collect())
    };
    Ok(row.unknowns.iter().map(of_unknown).collect())
}

/// Measures a row. A row without figures has an empty measurement.
fn measure(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    if row.values.is_empty() && row.reasons.is_empty() {
        return Ok(Measured::default());
    }
    match row.id.split_once('-') {
        Some(("S1", _)) => s1::measure(row, runner),
        Some(("S2", _)) => s2::measure(row, runner),
        Some(("S3", _)) => s3::measure(row, runner),
        Some(("S4", _)) => s4::measure(row, runner),
        Some(("S5", _)) => s5::measure(row, runner),
        Some(("S6", _)) => s6::measure(row, runner),
        Some(("S7", _)) => s7::measure(row, runner),
        _ => Err(ReproduceError::no_measure(&row.id)),
    }
}
