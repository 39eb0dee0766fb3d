//! What is wrong with a job file, said so that it can be mended.

use std::{fmt, path::PathBuf};

/// One fault of a job file, with its place.
///
/// Printed as compilers print theirs, `file:line:col: error: message`, with a second line for the help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file at fault: the job file, or the included file as it was resolved.
    pub file: String,
    /// Line in `file`, from 1; 0 when the file as a whole is at fault.
    pub line: u32,
    /// Column in characters, from 1; 0 when the file as a whole is at fault.
    pub column: u32,
    /// What is wrong, with the option and its value.
    pub message: String,
    /// What would be right: the nearest known name, the range, another spelling.
    pub help: Option<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: error: {}", self.file, self.message)?,
            line => write!(f, "{}:{}:{}: error: {}", self.file, line, self.column, self.message)?,
        }
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

/// Every fault of a job file, in the order of its text; never empty.
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

/// Why [`load`](crate::load) gave no job file.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The job file could not be read, or is not UTF-8.
    #[error("cannot read the job file {}: {source}", path.display())]
    Read {
        /// The path that was asked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The job file was read and is wrong.
    #[error(transparent)]
    Invalid(#[from] Diagnostics),
}
