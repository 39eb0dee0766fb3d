//! A job of fio on a disk of the virtual machine. Its results are a file for the host.

use std::process::{Command, Stdio};

use super::fio::{self, PROGRAM};
use super::{Context, Failure, Verdict};
use crate::device::Queue;
use crate::plan::JobSetup;
use crate::protocol::Counts;
use crate::{Outcome, system, transfer, wait};

const JOB: &str = "/tmp/job.fio";
const RESULTS: &str = "/tmp/results.json";

/// Runs the job under an elevator. `${DISK}` in the job file is the path of the disk.
pub fn run(context: &mut Context, setup: &JobSetup) -> Verdict {
    fio::require()?;
    for module in ["sd_mod", "virtio_scsi"] {
        context.modules.insert(module, "")?;
    }
    let disk = wait_for_disk(&setup.serial)?;
    // One request at a time: the order in which they reach the disk is that of the elevator.
    system::write(format!("/sys/block/{disk}/device/queue_depth"), "1")?;
    let queue = Queue::new(&disk);
    queue.select(&setup.elevator)?;
    system::drop_caches()?;
    std::fs::write(JOB, &setup.job).map_err(|error| format!("{JOB}: {error}"))?;
    let mut command = Command::new(PROGRAM);
    command.args(["--output-format=json", &format!("--output={RESULTS}"), JOB]).env("DISK", format!("/dev/{disk}"));
    command.stdin(Stdio::null()).current_dir("/tmp");
    let output = command.output().map_err(|error| format!("cannot start {PROGRAM}: {error}"))?;
    let results = std::fs::read(RESULTS).unwrap_or_default();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let results = String::from_utf8_lossy(&results).into_owned();
        return Err(Failure::Failed(format!("fio: {}: {} {results}", output.status, errors.trim())));
    }
    queue.select("none")?;
    transfer::send(&setup.results, &results)?;
    Ok(Counts::from([("results_bytes".to_owned(), results.len() as u64)]))
}

/// Waits until the disk with a serial number appears. Returns its name.
fn wait_for_disk(serial: &str) -> Outcome<String> {
    let mut found = None;
    wait::wait_until(&format!("the disk {serial} does not appear"), || {
        found = system::disk_with_serial(serial)?;
        Ok(found.is_some())
    })?;
    found.ok_or_else(|| format!("there is no disk {serial}"))
}
