//! Diagnostics of a job file: what is wrong, where, and how to correct it.

use std::{fmt, path::PathBuf};

use hoistway_units::printable::one_line;

/// A diagnostic with its position.
///
/// Printed in the form of compilers, `file:line:col: error: message`, with a second line for the
/// help; names and values are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file at fault: the job file, or an included file by its resolved path.
    pub file: String,
    /// Line in `file`, from 1; 0 if the diagnostic is about the whole file.
    pub line: u32,
    /// Column in characters, from 1; 0 if the diagnostic is about the whole file.
    pub column: u32,
    /// The error, with the option and its value.
    pub message: String,
    /// The correction: the nearest known name, the range, another spelling.
    pub help: Option<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: error: {}", one_line(&self.file), one_line(&self.message))?,
            line => write!(f, "{}:{line}:{}: error: {}", one_line(&self.file), self.column, one_line(&self.message))?,
        }
        match &self.help {
            Some(help) => write!(f, "\n  help: {}", one_line(help)),
            None => Ok(()),
        }
    }
}

/// All diagnostics of a job file, in the order of its text; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Reasons why [`load`](crate::load) returns no job file.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The job file could not be read, or is not UTF-8.
    #[error("cannot read the job file {}: {source}", path.display())]
    Read {
        /// The given path.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The job file is invalid.
    #[error(transparent)]
    Invalid(#[from] Diagnostics),
}
