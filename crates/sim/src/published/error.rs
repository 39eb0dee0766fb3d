//! Errors of the published results.

use crate::error::SimError;

/// Reasons why a published result could not be run. A result that differs is not an error.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// No row has this id.
    #[error("no published result goes by `{id}`: there are all, and {known}")]
    UnknownId {
        /// The requested id.
        id: String,
        /// The known seeds and ids.
        known: String,
    },
    /// A file of expectations is invalid.
    #[error("defect: {file}: {problem}")]
    Expectations {
        /// The file in `crates/sim/published`.
        file: &'static str,
        /// The error, with its position.
        problem: String,
    },
    /// A row names an unknown job file.
    #[error("defect: no job file `{name}` is built in")]
    NoJob {
        /// The name of the job file.
        name: String,
    },
    /// The job file of a row is invalid.
    #[error("defect: row {id}: {problem}")]
    Job {
        /// The id of the row.
        id: String,
        /// The error, with its position.
        problem: String,
    },
    /// A row names an unknown drive or kernel.
    #[error("defect: row {id}: no {what} `{name}`")]
    NoInput {
        /// The id of the row.
        id: String,
        /// The kind of input: a drive, a kernel.
        what: &'static str,
        /// The unknown name.
        name: String,
    },
    /// No code measures the row.
    #[error("defect: nothing measures row {id}")]
    NoMeasure {
        /// The id of the row.
        id: String,
    },
    /// The measurement of a row lacks a figure.
    #[error("defect: the measure of row {id} gives no `{name}`")]
    NoFigure {
        /// The id of the row.
        id: String,
        /// The name of the figure.
        name: String,
    },
    /// A simulation failed.
    #[error(transparent)]
    Run(#[from] SimError),
}
