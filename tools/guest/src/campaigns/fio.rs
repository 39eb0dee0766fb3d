//! fio with verification by checksums.

use std::process::{Command, Stdio};

use super::{Context, Failure, Verdict};
use crate::plan;
use crate::protocol::Counts;

/// The program in the initial RAM disk.
pub const PROGRAM: &str = "/usr/bin/fio";

/// Skips the campaign if the initial RAM disk does not have the program.
pub fn require() -> Result<(), Failure> {
    if std::path::Path::new(PROGRAM).exists() {
        return Ok(());
    }
    Err(Failure::Skipped(format!("the initial RAM disk has no {PROGRAM}")))
}

/// Runs fio, which writes at random and verifies what it wrote.
pub fn run(context: &mut Context, device: &plan::Device, elevator: &str, seconds: u64) -> Verdict {
    require()?;
    let device = context.device(device, elevator)?;
    let mut command = Command::new(PROGRAM);
    command.args(["--name=verify", "--rw=randrw", "--bsrange=4k-64k", "--direct=1", "--ioengine=libaio"]);
    command.args(["--iodepth=16", "--numjobs=4", "--size=8m", "--offset_increment=8m", "--verify=crc32c"]);
    command.args(["--verify_backlog=64", "--verify_fatal=1", "--time_based=1", "--output-format=json", "--thread=1"]);
    command.arg(format!("--filename={}", device.path().display())).arg(format!("--runtime={seconds}"));
    command.stdin(Stdio::null()).current_dir("/tmp");
    let output = command.output().map_err(|error| format!("cannot start {PROGRAM}: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Failed(format!("fio: {}: {} {}", output.status, errors.trim(), printed.trim())));
    }
    let json = printed.get(printed.find('{').unwrap_or(0)..).unwrap_or_default();
    let document: serde_json::Value =
        serde_json::from_str(json).map_err(|error| format!("the output of fio: {error}: {printed}"))?;
    let mut counts = Counts::new();
    for job in document.get("jobs").and_then(|jobs| jobs.as_array()).into_iter().flatten() {
        for (direction, name) in [("read", "reads"), ("write", "writes")] {
            let requests = job.get(direction).and_then(|part| part.get("total_ios")).and_then(|ios| ios.as_u64());
            *counts.entry(name.to_owned()).or_default() += requests.unwrap_or(0);
        }
    }
    if counts.values().sum::<u64>() == 0 {
        return Err(Failure::Failed(format!("fio completed no request: {printed}")));
    }
    Ok(counts)
}
