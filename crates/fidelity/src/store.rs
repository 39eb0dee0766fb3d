//! The figures of runs in guests, kept in files so that a series can be continued.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::figures::Figure;

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
    /// The file of the run below a directory.
    fn file(&self, directory: &Path) -> PathBuf {
        directory.join(&self.kernel).join(&self.drive).join(&self.job).join(format!("{}.json", self.scheduler))
    }

    /// Reads the run if there is one with the same inputs.
    pub fn read(&self, directory: &Path, inputs: &str) -> Option<Run> {
        let run: Run = serde_json::from_slice(&fs::read(self.file(directory)).ok()?).ok()?;
        (run.inputs == inputs).then_some(run)
    }

    /// Writes the run.
    pub fn write(&self, directory: &Path, run: &Run) -> Result<()> {
        let file = self.file(directory);
        let parent = file.parent().unwrap_or(directory);
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        fs::write(&file, serde_json::to_vec_pretty(run)?).with_context(|| format!("cannot write {}", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_again_unless_its_inputs_changed() {
        let directory = std::env::temp_dir().join(format!("hoistway-fidelity-{}", std::process::id()));
        let place = Place {
            kernel: "6.1".to_owned(),
            drive: "d".to_owned(),
            job: "j".to_owned(),
            scheduler: "none".to_owned(),
        };
        let run = Run { inputs: "a".to_owned(), release: "6.1.0".to_owned(), available_mib: 900, figures: Vec::new() };
        place.write(&directory, &run).expect("the directory can be written");
        assert_eq!(place.read(&directory, "a"), Some(run));
        assert_eq!(place.read(&directory, "b"), None);
        fs::remove_dir_all(&directory).expect("it was made above");
    }
}
