//! Measurements of the rows of `published/s7.toml`.
//!
//! The names of the figures are those of drives, with `p99, ` in front for the latency of syncs.

use crate::error::ReproduceError;
use crate::expectation::Row;
use crate::runner::{Experiment, Runner};
use crate::verdict::Measured;

/// Measures a row of the publication: synced writes a second, or the 99th percentile of the latency
/// of syncs in ms.
pub fn measure(row: &Row, runner: &mut Runner<'_>) -> Result<Measured, ReproduceError> {
    let elevator = row.elevators.first().ok_or_else(|| ReproduceError::no_measure(&row.id))?;
    let experiment = |name: &String| {
        let drive = name.strip_prefix("p99, ").unwrap_or(name).to_owned();
        Ok(Experiment { drive, alone: false, ..Experiment::of(row, elevator)? })
    };
    let names: Vec<String> = row.values.iter().map(|value| value.name.clone()).collect();
    let experiments: Vec<Experiment> = names.iter().map(experiment).collect::<Result<_, ReproduceError>>()?;
    let mut measured = Measured::default();
    for (name, comparison) in names.into_iter().zip(runner.compared(&experiments)?) {
        for process in comparison.runs.iter().flat_map(|run| &run.processes) {
            let figure = match name.starts_with("p99, ") {
                true => process.sync.p99 as f64 / 1e6,
                false => process.write.ios as f64 * 1e9 / process.runtime_ns.max(1) as f64,
            };
            measured = measured.with(name.clone(), figure);
        }
    }
    Ok(measured)
}
