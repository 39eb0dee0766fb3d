//! What can be wrong with a decision file.

use std::io;
use std::path::PathBuf;

/// Why a decision file was not replayed to its end.
#[derive(Debug, thiserror::Error)]
pub enum DecisionError {
    /// The file could not be opened or read.
    #[error("{}: cannot be read: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It is called `.gz`, but does not begin as gzip data does.
    #[error("{}: named .gz, but not gzip data; uncompressed decisions are named .jsonl", file.display())]
    NotGzip {
        /// The file.
        file: PathBuf,
    },
    /// Its compressed data is damaged.
    #[error("{}:{line}: the gzip data is damaged: {error}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The line, from 1, that could not be unpacked to its end.
        line: usize,
        /// What is wrong with it.
        error: io::Error,
    },
    /// It was cut off.
    #[error("{}:{line}: the file ends in the middle of a scenario", file.display())]
    CutOff {
        /// The file.
        file: PathBuf,
        /// The line, from 1, that is not whole.
        line: usize,
    },
    /// A line is longer than any scenario is.
    #[error("{}:{line}: the line is longer than {limit} bytes; a scenario is one line of JSON", file.display())]
    LongLine {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The longest line that is taken, in bytes.
        limit: u64,
    },
    /// There is nothing in it.
    #[error("{}: holds no scenario; a decision file has one a line, as JSON", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// A line is no scenario, or none that can be replayed.
    #[error("{}:{line}: {error}", file.display())]
    Scenario {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        error: ScenarioError,
    },
}

/// What is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// It is no JSON, or its fields are not those of a scenario.
    #[error("no scenario: {message} (column {column})")]
    Json {
        /// What the parser says; names the field.
        message: String,
        /// Where, in bytes from the line's beginning, from 1.
        column: usize,
        /// Whether it is whole as far as it goes, and ends too early.
        ends_early: bool,
    },
    /// Its `source` is no kernel and scheduler whose decisions are known.
    #[error("unknown source \"{name}\"; known are: {known}")]
    UnknownSource {
        /// The source as it stands in the file.
        name: String,
        /// All that would be right.
        known: String,
    },
    /// A field has a value that it cannot have.
    #[error("{field} is {value}; {right}")]
    Value {
        /// Which field, as a path: `requests[3].pid`.
        field: String,
        /// Its value.
        value: String,
        /// What would be right.
        right: String,
    },
}

impl ScenarioError {
    /// A value that cannot be.
    pub(crate) fn value(field: impl Into<String>, value: impl ToString, right: impl Into<String>) -> Self {
        ScenarioError::Value { field: field.into(), value: value.to_string(), right: right.into() }
    }
}
