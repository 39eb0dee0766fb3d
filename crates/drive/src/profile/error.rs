//! Errors of reading a profile.

use std::path::PathBuf;

/// Reasons for which a profile cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The operating system cannot read the file.
    #[error("{}: cannot read the profile: {source}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The text is not TOML, a key is missing or unknown, or a value has the wrong type.
    #[error("{file}:{line}:{column}: {message}")]
    Toml {
        /// The file name as given.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The error and the correct form.
        message: String,
    },
    /// A value is out of range or contradicts another one.
    #[error("{file}:{line}:{column}: `{key}` is {value}: {expected}")]
    Value {
        /// The file name as given.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The key, with its table: `zone.first_cylinder`.
        key: String,
        /// The invalid value.
        value: String,
        /// The valid values.
        expected: String,
    },
}
