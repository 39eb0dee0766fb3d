//! Instructions per request, counted by valgrind. They do not depend on the machine's load.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use hoistway_workspace::{cargo, programs};

/// The numbers of requests of the two runs whose difference is counted: the start of the program
/// and the first requests do not count.
const REQUESTS: [u64; 2] = [20_000, 40_000];
/// Executed requests per requested one: a tenth warms up.
const WITH_WARM_UP: f64 = 1.1;

/// Returns the instructions per request of an elevator with a number of processes, or `None` if
/// valgrind is not installed.
pub fn count(hoistway: &Path, elevator: &str, processes: u32) -> Result<Option<f64>> {
    if programs::find("valgrind").is_none() {
        return Ok(None);
    }
    let [fewer, more] = REQUESTS;
    let difference = run(hoistway, elevator, processes, more)? - run(hoistway, elevator, processes, fewer)?;
    Ok(Some(difference / ((more - fewer) as f64 * WITH_WARM_UP)))
}

/// Instructions of a whole run.
fn run(hoistway: &Path, elevator: &str, processes: u32, requests: u64) -> Result<f64> {
    let file = cargo::target_directory()?.join("bench-elevators.cachegrind");
    let mut command = Command::new("valgrind");
    // The cache is not simulated; naming one avoids a warning about those of the machine.
    command.args(["--quiet", "--tool=cachegrind", "--cache-sim=no", "--LL=8388608,16,64"]);
    command.arg(format!("--cachegrind-out-file={}", file.display())).arg(hoistway);
    command.args(["bench", "elevators", "--json", "--runs", "1", "--elevators", elevator]);
    command.args(["--processes", &processes.to_string(), "--requests", &requests.to_string()]);
    programs::run(command.stdout(Stdio::null()))?;
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let summary = text.lines().find_map(|line| line.strip_prefix("summary:")).context("no summary of cachegrind")?;
    summary.split_whitespace().next().and_then(|count| count.parse().ok()).context("cachegrind's count of instructions")
}
