//! Published results, measured again.

use std::sync::atomic::Ordering;

use hoistway_reproduce::{ReproduceError, Reproduction, RowProgress, reproduce as measure, select};
use hoistway_sim::SimError;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::error::{failed, wrong_argument};
use crate::json::to_python;
use crate::work::{self, STEPS};

/// Measures rows and returns the document of `hoistway reproduce --json`.
#[pyfunction]
pub fn reproduce(py: Python<'_>, ids: Vec<String>, progress: bool) -> PyResult<Bound<'_, PyAny>> {
    let rows = select(&ids).map_err(|error| match error {
        error @ ReproduceError::UnknownId { .. } => wrong_argument(error),
        error => failed(error),
    })?;
    let results = work::run(py, "reproducing", progress, |control| {
        control.steps.store(STEPS * rows.len() as u64, Ordering::Relaxed);
        let report = |step: RowProgress| {
            let of_row = STEPS * step.done as u64 / step.of.max(1) as u64;
            control.done.fetch_max(STEPS * step.row as u64 + of_row.min(STEPS), Ordering::Relaxed);
        };
        measure(&rows, &report, &control.cancel)
    })?;
    let results = results.map_err(|error| match error {
        ReproduceError::Run(SimError::Cancelled) => PyKeyboardInterrupt::new_err(()),
        error => failed(error),
    })?;
    to_python(py, &Reproduction::new(&results))
}
