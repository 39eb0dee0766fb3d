//! Errors of reading and checking a configuration.

use std::path::PathBuf;

use hoistway_units::printable;

use crate::draft::{Location, Problem};

/// An error of reading or checking a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot read the configuration: {cause}", printable::one_line(path.display()))]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system call.
        cause: std::io::Error,
    },
    /// The configuration has problems.
    #[error("{}", lines(problems))]
    Wrong {
        /// All problems, in the order in which they were found.
        problems: Vec<Problem>,
    },
}

impl ConfigError {
    /// Returns true if every problem is on the command line and none in a file.
    pub fn concerns_arguments_only(&self) -> bool {
        match self {
            ConfigError::Read { .. } => false,
            ConfigError::Wrong { problems } => {
                problems.iter().all(|problem| matches!(problem.location, Location::Argument(_)))
            }
        }
    }
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}
