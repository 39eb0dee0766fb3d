//! Errors of reading a profile.

use std::path::PathBuf;

/// Why a profile could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file could not be read.
    #[error("{}: cannot read the profile: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is not TOML, lacks a key, has one too many, or a value is of the wrong type.
    #[error("{file}:{line}:{column}: {message}")]
    Toml {
        /// The file's name, as given.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong and what would be right.
        message: String,
    },
    /// A value cannot be.
    #[error("{file}:{line}:{column}: `{key}` is {value}: {expected}")]
    Value {
        /// The file's name, as given.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The key, with its table: `zone.first_cylinder`.
        key: String,
        /// The value that was found.
        value: String,
        /// What would be right.
        expected: String,
    },
}
