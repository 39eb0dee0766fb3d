//! What the simulator costs: simulated requests a second on one core, and peak memory.
//!
//! The workload is the simplest that keeps a drive busy: random 4 KiB direct reads, 32 outstanding, under noop. It goes the
//! way that `hoistway compare` goes, reference run included; both runs are of the same workload and both are counted.

use std::fs;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_sim::{CompareRequest, HostConfig, compare};

use super::elevators::cpu_ns;
use crate::drive_choice;

/// What came out.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Requests that the simulated drive served.
    pub requests: u64,
    /// CPU time that they took, in ns.
    pub cpu_ns: u64,
    /// The most memory that the process has had, in bytes, where the system tells.
    pub peak_memory_bytes: Option<u64>,
}

/// Simulates `requests` requests, one run after the other in one thread.
///
/// # Errors
/// Those of the simulator, and when no thread can be started.
pub fn measure(requests: u64) -> Result<Measured> {
    let each = requests.div_ceil(2);
    let job = format!(
        "[random-readers]\nrw=randread\nbs=4k\nsize=64g\ndirect=1\nioengine=libaio\niodepth=32\nnorandommap\nnumber_ios={each}\n"
    );
    let nothing_to_include = |path: &str, _: &str| Err(std::io::Error::other(path.to_owned()));
    let request = CompareRequest {
        jobs: hoistway_fio::parse(&job, "bench.fio", &|_| None, &nothing_to_include)?,
        profile: Profile::builtin(drive_choice::DEFAULT).context("the default drive is built in")?,
        host: HostConfig::default(),
        elevators: vec![Kind::Noop],
        settings: Vec::new(),
        seed: 1,
        record: false,
    };
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let before_ns = cpu_ns();
    let comparison = one_thread.install(|| compare(&request, &|_| (), &AtomicBool::new(false)))?;
    let cpu_ns = cpu_ns() - before_ns;
    let served: u64 = comparison.runs.iter().map(|run| run.drive_requests).sum();
    Ok(Measured { requests: served * 2, cpu_ns, peak_memory_bytes: peak_memory_bytes() })
}

/// `VmHWM` of /proc/self/status, which is in KiB.
fn peak_memory_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
