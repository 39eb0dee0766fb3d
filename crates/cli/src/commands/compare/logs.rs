//! The bandwidth logs that jobs ask for with `write_bw_log`.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use hoistway_fio::JobFile;
use hoistway_fio::logs::LogFormat;
use hoistway_sim::Comparison;

use super::whole_file::WholeFile;

/// The folder that logs go to, looked at beforehand.
#[derive(Debug)]
pub struct LogFolder {
    path: PathBuf,
}

impl LogFolder {
    /// Takes the folder, which is made if it is not there.
    ///
    /// # Errors
    /// When it cannot be made, or no file can be made in it.
    pub fn new(path: &Path) -> Result<LogFolder> {
        if path.is_file() {
            bail!("{}: the logs cannot be written there: it is a file; name a folder", path.display());
        }
        let failed = || format!("{}: the folder for the logs cannot be made", path.display());
        std::fs::create_dir_all(path).with_context(failed)?;
        WholeFile::new(&path.join("trial_bw.log"))?;
        Ok(LogFolder { path: path.to_owned() })
    }

    /// Writes each process's log as `ELEVATOR-NAME_bw.N.log`, in fio's form; answers how many there were.
    ///
    /// # Errors
    /// When one cannot be written; those before it stay.
    pub fn write(&self, comparison: &Comparison, jobs: &JobFile, cancelled: &AtomicBool) -> Result<usize> {
        let mut count = 0;
        for run in &comparison.runs {
            for (index, process) in (1u32..).zip(&run.processes) {
                let Some(name) = process.bandwidth_log_name(index) else { continue };
                // fio's prefix may name folders of the machine that the job was written for.
                let name = Path::new(&name).file_name().unwrap_or_default().to_string_lossy().into_owned();
                let format = jobs.jobs.get(process.job).map(LogFormat::of).unwrap_or_default();
                let lines: Vec<String> =
                    process.bandwidth_log().iter().map(|entry| format.line(entry) + "\n").collect();
                let path = self.path.join(format!("{}-{name}", run.elevator));
                WholeFile::new(&path)?.write(&lines.concat(), cancelled)?;
                count += 1;
            }
        }
        Ok(count)
    }
}
