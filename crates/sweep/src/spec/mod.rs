//! The specification of a sweep: what varies, and over which values.

mod read;
mod seeds;
mod sources;

use std::path::Path;

use hoistway_compare::Shortening;
use hoistway_core::Kind;
use hoistway_fio::JobSource;

use crate::key::Key;
use crate::value::Value;

/// A sweep: the jobs, drives, hosts, elevators and seeds, and the values of keys.
///
/// Without [`Sample`] the points are all combinations. A dimension counts only where it applies: a
/// tunable for its elevator, an option for job files with its section.
#[derive(Clone, Debug)]
pub struct SweepSpec {
    /// The name of the file.
    pub file: String,
    /// The specification with the texts of all files that it names, as TOML: it can be read on
    /// another machine.
    pub self_contained: String,
    /// The job files, at least one.
    pub jobs: Vec<SweepJob>,
    /// The drives, at least one.
    pub drives: Vec<SweepDrive>,
    /// The hosts, at least one.
    pub hosts: Vec<SweepHost>,
    /// The elevators, at least one.
    pub elevators: Vec<Kind>,
    /// The seeds, at least one.
    pub seeds: Vec<u64>,
    /// The dimensions that `vary` and `points` describe, in the order of the file.
    pub dimensions: Vec<Dimension>,
    /// Random choices instead of all combinations.
    pub sample: Option<Sample>,
    /// How jobs are shortened.
    pub shortening: Shortening,
    /// The number of points whose results share a file; `None` for the default.
    pub points_per_file: Option<usize>,
}

/// A job file of a sweep.
#[derive(Clone, Debug)]
pub struct SweepJob {
    /// Its name in the column `job`.
    pub name: String,
    /// Its sections and options.
    pub source: JobSource,
}

/// A drive of a sweep.
#[derive(Clone, Debug)]
pub struct SweepDrive {
    /// Its name in the column `drive`.
    pub name: String,
    /// Its profile.
    pub profile: toml::Table,
    /// The dimensions that its own keys have, applied before those of the sweep.
    pub dimensions: Vec<Dimension>,
}

/// A host of a sweep.
#[derive(Clone, Debug)]
pub struct SweepHost {
    /// Its name in the column `host`.
    pub name: String,
    /// Its host file.
    pub settings: toml::Table,
}

/// Values of one key, or rows of values of several keys that are set together.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// The keys.
    pub keys: Vec<Key>,
    /// The values.
    pub values: Values,
    /// The line in the file of the sweep, from 1; errors name it.
    pub line: u32,
}

/// The values of a dimension.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Rows, at least one: a value for each key, or `None` to leave it as it is.
    Rows(Vec<Vec<Option<Value>>>),
    /// Random numbers of one key, for a [`Sample`].
    Range(Range),
}

/// A range of numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The smallest number.
    pub min: f64,
    /// The greatest number.
    pub max: f64,
    /// True for whole numbers.
    pub whole: bool,
    /// True if the logarithms of the numbers are distributed evenly; both ends are above 0 then.
    pub logarithmic: bool,
}

/// A number of random choices; each runs with every seed of the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The number of choices.
    pub count: u64,
    /// The seed of the choices.
    pub seed: u64,
}

/// Reasons why a specification cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// The file cannot be read.
    #[error("{file}: cannot read the sweep: {source}")]
    Read {
        /// The name of the file.
        file: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The text is not TOML, or has an unknown key or an invalid value.
    #[error("{file}:{line}:{column}: {problem}")]
    Wrong {
        /// The name of the file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The column, in characters from 1.
        column: usize,
        /// The key, its value, and the valid values.
        problem: String,
    },
}

impl SweepSpec {
    /// Reads a sweep file, and the job, drive and host files that it names, which are relative to
    /// the directory of the sweep file.
    ///
    /// # Errors
    /// [`SpecError::Read`] if the sweep file cannot be read, [`SpecError::Wrong`] as for
    /// [`SweepSpec::from_toml`].
    pub fn load(path: &Path) -> Result<SweepSpec, SpecError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| SpecError::Read { file: file.clone(), source })?;
        SweepSpec::from_toml(&text, &file, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads the text of a sweep file. `file` is its name in errors, and `directory` the directory
    /// to which the names of other files are relative.
    ///
    /// # Errors
    /// [`SpecError::Wrong`] with the position, the value and the valid ones.
    pub fn from_toml(text: &str, file: &str, directory: &Path) -> Result<SweepSpec, SpecError> {
        read::spec(text, file, directory)
    }
}
