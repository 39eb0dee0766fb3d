//! Many processes at the same time, each with a slice of the device that it writes and verifies.
//! They have different I/O classes and change them; some are killed during their I/O.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Context, Failure, Verdict};
use crate::protocol::Counts;
use crate::{Outcome, plan};

/// The load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The number of processes.
    pub processes: u64,
    /// The writes and reads of each.
    pub operations: u64,
    /// True if every third process is killed.
    pub kill: bool,
    /// True if every write is made stable: half of the processes by O_DSYNC, half by fdatasync.
    pub stable: bool,
}

/// The arguments of a worker process.
pub fn worker(device: &Path, number: u64, load: Load, seed: u64) -> Command {
    let mut command = Command::new("/init");
    command.arg("worker").arg(device);
    let mode = match (load.stable, number % 2) {
        (false, _) => "direct",
        (true, 0) => "stable",
        (true, _) => "flush",
    };
    command.args([number.to_string(), load.operations.to_string(), seed.to_string(), mode.to_owned()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Starts the processes and waits for them.
pub fn run(context: &mut Context, device: &plan::Device, elevator: &str, load: Load) -> Verdict {
    let device = context.device(device, elevator)?;
    let begun = Instant::now();
    let mut children = Vec::new();
    for number in 0..load.processes {
        let spawned = worker(&device.path(), number, load, context.prng.number()).spawn();
        children.push((number, spawned.map_err(|error| format!("cannot start process {number}: {error}"))?));
    }
    let started_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    if load.kill {
        for (_, child) in children.iter_mut().filter(|(number, _)| number % 3 == 0) {
            thread::sleep(Duration::from_millis(context.prng.below(10)));
            // A process that has ended before is not killed.
            let _ = child.kill();
        }
    }
    let killed = wait(children, load.kill)?;
    if load.kill && killed == 0 {
        return Err(Failure::Failed("no process ran long enough to be killed".to_owned()));
    }
    let counts = [
        ("processes", load.processes),
        ("operations", load.processes * load.operations),
        ("killed", killed),
        ("started_ms", started_ms),
    ];
    Ok(Counts::from(counts.map(|(name, figure)| (name.to_owned(), figure))))
}

/// Waits for worker processes. Fails with the messages of those that failed; the signal of a killed
/// one is no failure. Returns the number of killed ones.
pub fn wait(children: Vec<(u64, Child)>, killed: bool) -> Outcome<u64> {
    let (mut messages, mut by_signal) = (Vec::new(), 0);
    for (number, child) in children {
        let output = child.wait_with_output().map_err(|error| format!("process {number}: {error}"))?;
        if killed && number % 3 == 0 && output.status.code().is_none() {
            by_signal += 1;
        } else if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            messages.push(format!("process {number}: {}: {text}", output.status));
        }
    }
    messages.truncate(12);
    if messages.is_empty() { Ok(by_signal) } else { Err(messages.join("\n")) }
}
