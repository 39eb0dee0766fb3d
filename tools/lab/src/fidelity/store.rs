//! The figures of runs in guests, kept in files so that a series can be continued.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::figures::Figure;

/// A run in a guest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What the figures depend on; a run with another text is made again.
    pub inputs: String,
    /// The release of the kernel.
    pub release: String,
    /// The memory that programs and the page cache had.
    pub available_mib: u64,
    /// The figures of the sections.
    pub figures: Vec<Figure>,
}

/// The place of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The name of the kernel.
    pub kernel: String,
    /// The name of the drive.
    pub drive: String,
    /// The name of the job.
    pub job: String,
    /// The scheduler.
    pub scheduler: String,
}

impl Place {
    /// The file of a run below a directory. Runs are numbered from 1.
    fn file(&self, directory: &Path, number: usize) -> PathBuf {
        let name = match number {
            ..=1 => format!("{}.json", self.scheduler),
            _ => format!("{}.{number}.json", self.scheduler),
        };
        directory.join(&self.kernel).join(&self.drive).join(&self.job).join(name)
    }

    /// Reads the runs with the same inputs, up to the first number without one.
    pub fn runs(&self, directory: &Path, inputs: &str) -> Vec<Run> {
        let read = |number: usize| {
            let run: Run = serde_json::from_slice(&fs::read(self.file(directory, number)).ok()?).ok()?;
            (run.inputs == inputs).then_some(run)
        };
        (1..).map_while(read).collect()
    }

    /// Writes the run with a number.
    pub fn write(&self, directory: &Path, number: usize, run: &Run) -> Result<()> {
        let file = self.file(directory, number);
        let parent = file.parent().unwrap_or(directory);
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        fs::write(&file, serde_json::to_vec_pretty(run)?).with_context(|| format!("cannot write {}", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_again_unless_their_inputs_changed() {
        let directory = std::env::temp_dir().join(format!("hoistway-fidelity-{}", std::process::id()));
        let place = Place {
            kernel: "6.1".to_owned(),
            drive: "d".to_owned(),
            job: "j".to_owned(),
            scheduler: "none".to_owned(),
        };
        let run = |inputs: &str, available_mib: u64| Run {
            inputs: inputs.to_owned(),
            release: "6.1.0".to_owned(),
            available_mib,
            figures: Vec::new(),
        };
        for (number, run) in [(1, run("a", 900)), (2, run("a", 901)), (3, run("b", 902))] {
            place.write(&directory, number, &run).expect("the directory can be written");
        }
        assert_eq!(place.runs(&directory, "a"), [run("a", 900), run("a", 901)]);
        assert_eq!(place.runs(&directory, "b"), []);
        fs::remove_dir_all(&directory).expect("it was made above");
    }
}
