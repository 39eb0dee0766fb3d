//! One run of a program: its time, and the most memory that it had.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hoistway_workspace::programs;

use super::Bench;
use crate::processor;

/// The processors that all runs have.
pub const PROCESSORS: &str = "0,1";
/// Time between two looks at the memory of a program.
const LOOK: Duration = Duration::from_millis(10);

/// A job, a drive and an elevator that make a point.
pub struct Kind {
    pub name: &'static str,
    pub job: &'static str,
    pub drive: &'static str,
    pub elevator: &'static str,
}

/// A point of few requests, which shows the cost of everything around the simulation.
pub const SMALL: Kind = Kind {
    name: "small",
    job: "[reader]\nrw=randread\nbs=4k\nsize=64m\nnumber_ios=10\n",
    drive: "null",
    elevator: "noop",
};
/// Eight competing readers on a disk.
pub const TYPICAL: Kind = Kind {
    name: "typical",
    job: "[reader]\nrw=read\nbs=64k\nsize=16m\nnumjobs=8\n",
    drive: "sata-7200-2006",
    elevator: "cfq",
};

/// The outcome of a run.
pub struct Measured {
    pub seconds: f64,
    /// The greatest resident memory, in bytes.
    pub memory: u64,
}

/// Runs a program on [`PROCESSORS`] to its end.
pub fn run(program: &Path, arguments: &[&str]) -> Result<Measured> {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", PROCESSORS]).arg(program).args(arguments);
    let begun = Instant::now();
    // taskset becomes the program.
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("cannot start taskset")?;
    let status = format!("/proc/{}/status", child.id());
    let mut memory = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        memory = memory.max(fs::read_to_string(&status).ok().and_then(|text| peak(&text)).unwrap_or(0));
        thread::sleep(LOOK);
    };
    let seconds = begun.elapsed().as_secs_f64();
    let output = child.wait_with_output()?;
    ensure!(ended.success(), "{}: {ended}: {}", program.display(), String::from_utf8_lossy(&output.stderr));
    Ok(Measured { seconds, memory })
}

/// The greatest resident memory in the text of /proc/PID/status, in bytes.
fn peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

impl Kind {
    /// Writes the job and a sweep over seeds from 1; `rest` follows. Returns the sweep file.
    pub fn sweep(&self, bench: &Bench, points: u64, rest: &str) -> Result<PathBuf> {
        self.job(bench)?;
        let file = bench.folder.join(format!("{}.toml", self.name));
        let Kind { name, drive, elevator, .. } = self;
        let text = format!(
            "jobs = [\"{name}.fio\"]\ndrives = [\"{drive}\"]\nelevators = [\"{elevator}\"]\nseeds = \"1-{points}\"\n{rest}"
        );
        fs::write(&file, text)?;
        Ok(file)
    }

    /// Writes the job file.
    pub fn job(&self, bench: &Bench) -> Result<PathBuf> {
        let file = bench.folder.join(format!("{}.fio", self.name));
        fs::write(&file, self.job)?;
        Ok(file)
    }
}

/// An empty folder for results.
pub fn empty(bench: &Bench) -> Result<PathBuf> {
    let folder = bench.folder.join("results");
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(folder),
    }
}

/// Runs `hoistway sweep` on two threads into a folder.
pub fn sweep(bench: &Bench, file: &Path, results: &Path) -> Result<Measured> {
    let [file, results] = [file, results].map(|path| path.display().to_string());
    run(&bench.hoistway, &["sweep", &file, "--output", &results, "--threads", "2"])
}

/// The number of batches of a sweep, as the program plans it.
pub fn batches(bench: &Bench, file: &Path) -> Result<f64> {
    let mut command = Command::new(&bench.hoistway);
    let printed = programs::output(command.arg("sweep").arg(file).args(["--points", "--json"]))?;
    let document: serde_json::Value = serde_json::from_str(&printed)?;
    document["files"].as_f64().context("no number of files")
}

/// The processor, the kernel and the load of the machine, as a sentence of the page.
pub fn machine() -> String {
    processor::machine(&format!(" of which {} are used", PROCESSORS.split(',').count()))
}

/// The median of some figures.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_the_memory_is_read() {
        assert_eq!(peak("Name:\thoistway\nVmHWM:\t    2048 kB\nVmRSS:\t 1024 kB\n"), Some(2 << 20));
        assert_eq!(peak("Name:\tzombie\n"), None);
    }

    #[test]
    fn a_program_that_fails_is_an_error() {
        let error = run(Path::new("false"), &[]).map(|found| found.seconds).unwrap_err().to_string();
        assert!(error.starts_with("false: exit status: 1"), "{error}");
    }
}
