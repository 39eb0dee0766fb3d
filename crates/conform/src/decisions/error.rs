//! Errors in decision files.

use std::io;
use std::path::PathBuf;

use crate::kernel_recording::RecordingError;

/// Reason why a decision file was not replayed to its end.
#[derive(Debug, thiserror::Error)]
pub enum DecisionError {
    /// The file could not be opened or read.
    #[error("{}: cannot be read: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file is named `.gz` but does not start with a gzip header.
    #[error("{}: named .gz, but not gzip data; uncompressed decisions are named .jsonl", file.display())]
    NotGzip {
        /// The file.
        file: PathBuf,
    },
    /// The compressed data is damaged.
    #[error("{}:{line}: the gzip data is damaged: {error}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Line at which decompression failed, from 1.
        line: usize,
        /// The error of the decompressor.
        error: io::Error,
    },
    /// The file is cut off.
    #[error("{}:{line}: the file ends in the middle of a scenario", file.display())]
    CutOff {
        /// The file.
        file: PathBuf,
        /// The incomplete line, from 1.
        line: usize,
    },
    /// A line is longer than the limit.
    #[error("{}:{line}: the line is longer than {limit} bytes; a scenario is one line of JSON", file.display())]
    LongLine {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The longest accepted line, in bytes.
        limit: u64,
    },
    /// The file contains no scenario.
    #[error("{}: holds no scenario; a decision file has one a line, as JSON", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// A line is not a valid scenario.
    #[error("{}:{line}: {error}", file.display())]
    Scenario {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The error in the scenario.
        error: ScenarioError,
    },
    /// A recording of the kernel module is invalid.
    #[error("{}: {error}", file.display())]
    Recording {
        /// The file.
        file: PathBuf,
        /// The error in the recording.
        error: RecordingError,
    },
}

/// Errors in a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The line is not JSON, or its fields are not those of a scenario.
    #[error("no scenario: {message} (column {column})")]
    Json {
        /// The message of the parser, with the name of the field.
        message: String,
        /// Column in bytes, from 1.
        column: usize,
        /// True if the JSON is valid so far and ends too early.
        ends_early: bool,
    },
    /// The `source` is not a known kernel and scheduler.
    #[error("unknown source \"{name}\"; known are: {known}")]
    UnknownSource {
        /// The source in the file.
        name: String,
        /// The known sources.
        known: String,
    },
    /// A field has an invalid value.
    #[error("{field} is {value}; {right}")]
    Value {
        /// Path of the field: `requests[3].pid`.
        field: String,
        /// The invalid value.
        value: String,
        /// A description of valid values.
        right: String,
    },
}

impl ScenarioError {
    /// Creates the error for an invalid value.
    pub(crate) fn value(field: impl Into<String>, value: impl ToString, right: impl Into<String>) -> Self {
        ScenarioError::Value { field: field.into(), value: value.to_string(), right: right.into() }
    }
}
