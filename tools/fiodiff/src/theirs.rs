//! Jobs, run by fio.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use hoistway_fio::Direction;
use hoistway_fio::results::{JobReport, Report};

use crate::case::Case;
use crate::figures::{Process, Request};
use crate::ours::REQUESTS_MAX;

/// Seconds after which fio is ended.
const SECONDS_MAX: &str = "60";
/// A job that shows how much later than asked the machine ends pauses.
const CONTROL: &str = "[control]\nioengine=null\nsize=400k\nthinktime=3000\n";
/// The runtime of that job if no pause is too long, in ms.
const CONTROL_MS: f64 = 300.0;
/// A clock that needs no calibration before each run.
const CLOCK: &str = "--clocksource=clock_gettime";

/// What fio did for a job.
#[derive(Debug)]
pub struct Theirs {
    /// The requests with the names of their files; `None` if fio has no log of them.
    pub requests: Option<Vec<(String, Request)>>,
    /// The figures of all processes.
    pub processes: Vec<Process>,
    /// By how much the machine made the pauses of a control job too long: 0 for nothing, 1 for
    /// twice as long.
    pub delay: f64,
}

/// The version of the installed fio; `None` if there is none.
pub fn version() -> Option<String> {
    let output = Command::new("fio").arg("--version").output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs jobs together, each on files of these names and sizes, which exist. The answer of a job is
/// what fio did for it, or fio's message if fio ended with an error.
///
/// # Errors
/// fio cannot be started, or its files cannot be written.
pub fn run(cases: &[(&Case, &[(String, u64)])]) -> Result<Vec<Result<Theirs, String>>> {
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    // Files in memory, if there is such a file system: the time of a sync is not compared.
    let directory = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .context("cannot create a directory for fio")?;
    let path = directory.path();
    let has_clock = cases.iter().any(|(case, _)| case.is_paced());
    let mut text = if has_clock { CONTROL.to_owned() } else { String::new() };
    for (case, files) in cases {
        for (name, bytes) in *files {
            fs::File::create(path.join(name)).and_then(|file| file.set_len(*bytes))?;
        }
        text += &case.text();
        if has_log(case) {
            let _ = writeln!(text, "write_iolog={}.log", case.name());
        }
    }
    fs::write(path.join("job.fio"), text)?;
    let arguments = [SECONDS_MAX, "fio", "--output-format=json", "--output=out", CLOCK, "job.fio"];
    let output = Command::new("timeout").args(arguments).current_dir(path).output().context("cannot run fio")?;
    let printed = fs::read_to_string(path.join("out")).unwrap_or_default();
    // Notes of fio may stand before the JSON.
    let report = printed.find("{\n").and_then(|start| Report::from_json(&printed[start..]).ok());
    let Some(report) = report.filter(|_| output.status.success()) else {
        let message = format!("{}{}", String::from_utf8_lossy(&output.stderr), printed.lines().next().unwrap_or(""));
        return Ok(cases.iter().map(|_| Err(message.clone())).collect());
    };
    Ok(cases.iter().map(|(case, _)| of_case(case, &report, path)).collect())
}

/// Returns true if fio's log of a job has each request once: clones share a log, and the engine
/// null logs requests twice if several are in flight.
fn has_log(case: &Case) -> bool {
    case.get("numjobs").is_none() && (case.get("ioengine") != Some("null") || case.get("iodepth").is_none())
}

fn of_case(case: &Case, report: &Report, path: &Path) -> Result<Theirs, String> {
    let name = case.name();
    let jobs: Vec<&JobReport> = report.jobs.iter().filter(|job| job.jobname == name).collect();
    if let Some(failed) = jobs.iter().find(|job| job.error != 0) {
        return Err(format!("error {}", failed.error));
    }
    let control = report.jobs.iter().find(|job| job.jobname == "control").map(|job| Process::of(job).runtime_ms);
    let delay = control.map_or(0.0, |ms| (ms / CONTROL_MS - 1.0).max(0.0));
    let processes: Vec<Process> = jobs.into_iter().map(Process::of).collect();
    if processes.is_empty() {
        return Err("no results".to_owned());
    }
    let log = fs::read_to_string(path.join(format!("{name}.log"))).unwrap_or_default();
    let requests = log.lines().filter_map(request).take(REQUESTS_MAX).collect();
    Ok(Theirs { requests: has_log(case).then_some(requests), processes, delay })
}

/// Parses a line of the log: time, file, action, offset, length.
fn request(line: &str) -> Option<(String, Request)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, file, action, offset, length] = fields[..] else { return None };
    let direction = match action {
        "read" => Direction::Read,
        "write" => Direction::Write,
        "trim" => Direction::Trim,
        _ => return None,
    };
    Some((file.to_owned(), Request::new(direction, 0, offset.parse().ok()?, length.parse().ok()?)))
}
