//! Errors of an accuracy check.

use std::path::PathBuf;

use crate::command::AccessError;
use crate::fit::FitProfileError;
use crate::profile::ProfileError;
use crate::recording::LoadError;
use crate::replay::ReplayError;

/// Reasons for which the accuracy of the models cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum AccuracyError {
    /// A recording cannot be read.
    #[error(transparent)]
    Recording(#[from] LoadError),
    /// The table of measured latencies cannot be read.
    #[error("{}: cannot read the measured latencies", path.display())]
    Latencies {
        /// The path of the table.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The table of measured latencies lacks a value.
    #[error("real_drive_latency.tsv: no {column} of {row}")]
    NoLatency {
        /// The drive's row.
        row: String,
        /// The column, such as `p50`.
        column: String,
    },
    /// A recording does not suit its profile.
    #[error("{}: the recording does not suit the profile", path.display())]
    Replay {
        /// The path of the recording.
        path: PathBuf,
        /// The mismatch.
        source: ReplayError,
    },
    /// The crate has no profile of this name.
    #[error("there is no built-in drive `{name}`")]
    NoDrive {
        /// The missing name.
        name: &'static str,
    },
    /// A drive refused a command or never completed it.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// No profile can be fitted to a recording.
    #[error(transparent)]
    Fit(#[from] FitProfileError),
    /// A profile derived from a built-in one is invalid.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}
