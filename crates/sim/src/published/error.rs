//! Why a published result could not be run.

use crate::error::SimError;

/// Why a published result could not be run; that it does not come out is no error.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// No row goes by this name.
    #[error("no published result goes by `{id}`: there are all, and {known}")]
    UnknownId {
        /// What was asked for.
        id: String,
        /// Seeds and ids that there are.
        known: String,
    },
    /// A file of expectations is not what it has to be.
    #[error("defect: {file}: {problem}")]
    Expectations {
        /// The file in `crates/sim/published`.
        file: &'static str,
        /// What is wrong, and where.
        problem: String,
    },
    /// A row names a job file that is not there.
    #[error("defect: no job file `{name}` is built in")]
    NoJob {
        /// Its name.
        name: String,
    },
    /// A row's job file does not parse.
    #[error("defect: row {id}: {problem}")]
    Job {
        /// The row.
        id: String,
        /// What is wrong with it, and where.
        problem: String,
    },
    /// A row names a drive or a kernel that is not there.
    #[error("defect: row {id}: no {what} `{name}`")]
    NoInput {
        /// The row.
        id: String,
        /// A drive, a kernel.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A row has no measure.
    #[error("defect: nothing measures row {id}")]
    NoMeasure {
        /// The row.
        id: String,
    },
    /// A measure has left a figure out that its row names.
    #[error("defect: the measure of row {id} gives no `{name}`")]
    NoFigure {
        /// The row.
        id: String,
        /// The figure's name.
        name: String,
    },
    /// A run failed.
    #[error(transparent)]
    Run(#[from] SimError),
}
