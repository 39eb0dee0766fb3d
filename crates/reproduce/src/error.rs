//! Errors of measuring published results.

use hoistway_sim::SimError;

/// Reasons why a published result could not be run. A result that differs is not an error.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// No row or publication has this id.
    #[error("there is no published result `{id}`: there are all, and {known}")]
    UnknownId {
        /// The requested id.
        id: String,
        /// The ids of publications and of their rows.
        known: String,
    },
    /// A file of expectations is invalid.
    #[error("defect: {file}: {problem}")]
    Expectations {
        /// The file in `crates/reproduce/published`.
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
    #[error("defect: no code measures row {id}")]
    NoMeasure {
        /// The id of the row.
        id: String,
    },
    /// The measurement of a row lacks a figure.
    #[error("defect: the measurement of row {id} lacks the figure `{name}`")]
    NoFigure {
        /// The id of the row.
        id: String,
        /// The name of the figure.
        name: String,
    },
    /// A trial of an unknown is invalid, or its simulation failed.
    #[error("defect: crates/reproduce/published/{file}:{line}: row {id}, trial `{value}`: {problem}")]
    Trial {
        /// The file in `crates/reproduce/published`.
        file: &'static str,
        /// The line of the trial, from 1.
        line: usize,
        /// The id of the row.
        id: String,
        /// The value that is tried.
        value: String,
        /// The error, with the valid values.
        problem: String,
    },
    /// A simulation failed.
    #[error(transparent)]
    Run(#[from] SimError),
}

impl ReproduceError {
    /// The error for a valid command that a drive refused.
    pub(crate) fn defect(error: impl std::fmt::Display) -> ReproduceError {
        SimError::Defect { seed: 1, now_ns: 0, problem: error.to_string() }.into()
    }

    pub(crate) fn no_measure(id: &str) -> ReproduceError {
        ReproduceError::NoMeasure { id: id.to_owned() }
    }
}
