//! Errors of reading and checking a configuration.

use std::path::PathBuf;

use crate::draft::{Place, Problem};

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot read the configuration: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// What it says is wrong.
    #[error("{}", lines(problems))]
    Wrong {
        /// Everything, in the order in which it was found.
        problems: Vec<Problem>,
    },
}

impl ConfigError {
    /// Whether the command line alone is at fault, and no file.
    pub fn is_of_arguments(&self) -> bool {
        match self {
            ConfigError::Read { .. } => false,
            ConfigError::Wrong { problems } => {
                problems.iter().all(|problem| matches!(problem.place, Place::Argument(_)))
            }
        }
    }
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}
