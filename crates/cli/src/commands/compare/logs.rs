//! The bandwidth logs that jobs ask for with `write_bw_log`.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use hoistway_fio::JobFile;
use hoistway_fio::logs::LogFormat;
use hoistway_report::ReportFile;
use hoistway_sim::Comparison;

/// The folder for the logs, checked before the run.
#[derive(Debug)]
pub struct LogFolder {
    path: PathBuf,
}

impl LogFolder {
    /// Checks the folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// If the folder cannot be created, or is not writable.
    pub fn new(path: &Path) -> Result<LogFolder> {
        if path.is_file() {
            bail!("{}: the logs cannot be written there: it is a file; name a folder", path.display());
        }
        let failed = || format!("{}: the folder for the logs cannot be made", path.display());
        std::fs::create_dir_all(path).with_context(failed)?;
        ReportFile::new(&path.join("trial_bw.log"))?;
        Ok(LogFolder { path: path.to_owned() })
    }

    /// Writes each process's log as `ELEVATOR-NAME_bw.N.log` in fio's format. Returns the number of
    /// logs.
    ///
    /// # Errors
    /// If a log cannot be written; earlier logs stay.
    pub fn write(&self, comparison: &Comparison, jobs: &JobFile, cancelled: &AtomicBool) -> Result<usize> {
        let mut count = 0;
        for run in &comparison.runs {
            for (index, process) in (1u32..).zip(&run.processes) {
                let Some(name) = process.bandwidth_log_name(index) else { continue };
                // fio's prefix may contain folders of another machine.
                let name = Path::new(&name).file_name().unwrap_or_default().to_string_lossy().into_owned();
                let format = jobs.jobs.get(process.job).map(LogFormat::of).unwrap_or_default();
                let lines: Vec<String> =
                    process.bandwidth_log().iter().map(|entry| format.line(entry) + "\n").collect();
                let path = self.path.join(format!("{}-{name}", run.elevator));
                ReportFile::new(&path)?.write(&lines.concat(), cancelled)?;
                count += 1;
            }
        }
        Ok(count)
    }
}
