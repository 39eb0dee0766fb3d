//! The cost of the simulator: simulated requests a second on one core, peak memory, start-up time,
//! and the gain of further cores.
//!
//! The workload is the simplest that keeps a drive busy: random 4 KiB direct requests, 32
//! outstanding in all. It runs through the library as `hoistway compare` does, including the
//! reference; both runs have the same workload, and both are counted. Each row is measured in a
//! process of its own, so that the peak memory belongs to the row alone.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use hoistway_drive::{Drive, Profile};
use hoistway_sim::{CompareRequest, HostConfig, compare};
use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::clock::process_cpu_ns;

/// The pattern of a load's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Random reads.
    Randread,
    /// Random writes.
    Randwrite,
    /// Random reads and writes in equal parts.
    Randrw,
}

impl Pattern {
    /// Value of the option `rw` of a fio job.
    pub fn as_fio(self) -> &'static str {
        match self {
            Pattern::Randread => "randread",
            Pattern::Randwrite => "randwrite",
            Pattern::Randrw => "randrw",
        }
    }
}

/// Requests outstanding in all processes together, but at least one per process.
pub const OUTSTANDING: u32 = 32;

/// The simulated load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// The drive: the name of a built-in drive, or the path of a profile.
    pub drive: String,
    /// The pattern of the requests.
    pub pattern: Pattern,
    /// Name of the elevator.
    pub elevator: String,
    /// Number of processes.
    pub processes: u32,
    /// Number of simulated requests.
    pub requests: u64,
}

/// The measured cost of a load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadCost {
    /// The load; the number of requests is that served by the simulated drive.
    #[serde(flatten)]
    pub load: Load,
    /// Requests a second of CPU time, on one core.
    pub requests_per_s: f64,
    /// CPU time per request, in ns.
    pub ns_per_request: f64,
    /// CPU time of all requests, in ns.
    pub cpu_ns: u64,
    /// CPU time from the drive's name to a drive that takes commands, in ns.
    pub start_up_ns: u64,
    /// Peak memory of the process, in bytes; null if the operating system does not report it.
    pub peak_memory_bytes: Option<u64>,
}

/// Costs of the simulator; the document of `hoistway bench sim --json`.
#[derive(Clone, Debug, Serialize)]
pub struct SimCosts {
    /// Version of the document's form: 2.
    pub schema: u32,
    /// One entry per measured load.
    pub rows: Vec<LoadCost>,
    /// Comparison of one core with all cores.
    pub sweep: Option<Sweep>,
}

/// Wall-clock and CPU times of the same worlds on one core and on all cores.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sweep {
    /// Number of worlds.
    pub runs: u32,
    /// Number of processors.
    pub cores: usize,
    /// Wall-clock time on one core, in ns.
    pub one_core_ns: u64,
    /// Wall-clock time on all cores, in ns.
    pub all_cores_ns: u64,
    /// Ratio of the wall-clock times.
    pub speed_up: f64,
    /// CPU time on one core, in ns; less than the wall-clock time if the machine had other load.
    pub one_core_cpu_ns: u64,
    /// CPU time of all cores together, in ns; more than on one core if cores hinder each other.
    pub all_cores_cpu_ns: u64,
}

/// The default loads of an elevator: a disk that takes one command at a time, a disk that queues
/// 32, and flash during garbage collection.
pub const DEFAULT_LOADS: [(&str, Pattern); 3] =
    [("sata-7200-2006", Pattern::Randread), ("cmr-8tb", Pattern::Randread), ("ssd-nvme-tlc", Pattern::Randwrite)];

impl Load {
    /// The load with growing numbers of requests, then with growing numbers of processes.
    pub fn scaled(&self) -> Vec<Load> {
        let sizes = (5..).map(|power| 10u64.pow(power)).take_while(|requests| *requests < self.requests);
        let by_requests = sizes.chain([self.requests]).map(|requests| Load { requests, ..self.clone() });
        let by_processes = [8, 64, 512, 4096].map(|processes| Load { processes, ..self.clone() });
        by_requests.chain(by_processes).collect()
    }
}

/// Measures a load in a child process, so that the peak memory belongs to the load alone. `command`
/// must print the JSON of [`measure`] for this load on standard output.
///
/// # Errors
/// If the process cannot be started or fails; its error output goes to that of this process.
pub fn measure_in_child(load: &Load, mut command: Command) -> Result<LoadCost, BenchError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output =
        command.stderr(Stdio::inherit()).output().map_err(BenchError::io(format!("{program} cannot be started")))?;
    if !output.status.success() {
        let what = format!("the measurement of `{}` failed", load.drive);
        return Err(BenchError::Child { what, status: output.status });
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Measures a load in this process, in one thread.
///
/// # Errors
/// Those of the simulator and of the drive's profile, and a failure to start a thread.
pub fn measure(load: &Load) -> Result<LoadCost, BenchError> {
    let before_ns = process_cpu_ns();
    drop(Drive::new(&profile(&load.drive)?));
    let start_up_ns = process_cpu_ns() - before_ns;
    let request = request(load, 1)?;
    let before_ns = process_cpu_ns();
    let comparison = on_threads(1)?.install(|| compare(&request, &|_| (), &AtomicBool::new(false)))?;
    let cpu_ns = process_cpu_ns() - before_ns;
    let served = comparison.simulated_requests;
    Ok(LoadCost {
        load: Load { requests: served, ..load.clone() },
        requests_per_s: served as f64 * 1e9 / cpu_ns.max(1) as f64,
        ns_per_request: cpu_ns as f64 / served.max(1) as f64,
        cpu_ns,
        start_up_ns,
        peak_memory_bytes: peak_memory_bytes(),
    })
}

/// Runs `runs` worlds with different seeds on one core and on all cores; each has `load.requests`
/// requests.
///
/// # Errors
/// The errors of [`measure`].
pub fn sweep(load: &Load, runs: u32) -> Result<Sweep, BenchError> {
    let requests = (1..=u64::from(runs)).map(|seed| request(load, seed)).collect::<Result<Vec<_>, BenchError>>()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (one_core_ns, one_core_cpu_ns) = wall_and_cpu_ns(&requests, 1)?;
    let (all_cores_ns, all_cores_cpu_ns) = wall_and_cpu_ns(&requests, cores)?;
    let speed_up = one_core_ns as f64 / all_cores_ns.max(1) as f64;
    Ok(Sweep { runs, cores, one_core_ns, all_cores_ns, speed_up, one_core_cpu_ns, all_cores_cpu_ns })
}

fn wall_and_cpu_ns(requests: &[CompareRequest], threads: usize) -> Result<(u64, u64), BenchError> {
    use rayon::prelude::*;
    let pool = on_threads(threads)?;
    let (begun, before_ns) = (Instant::now(), process_cpu_ns());
    pool.install(|| {
        requests.par_iter().try_for_each(|request| compare(request, &|_| (), &AtomicBool::new(false)).map(drop))
    })?;
    Ok((begun.elapsed().as_nanos() as u64, process_cpu_ns() - before_ns))
}

fn on_threads(threads: usize) -> Result<rayon::ThreadPool, BenchError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| BenchError::io("threads cannot be started")(std::io::Error::other(error)))
}

/// The jobs that make `load.requests` requests in the two runs; the reference runs the part of one
/// process.
fn request(load: &Load, seed: u64) -> Result<CompareRequest, BenchError> {
    let profile = profile(&load.drive)?;
    let each = load.requests.div_ceil(u64::from(load.processes) + 1).max(1);
    let depth = (OUTSTANDING / load.processes).max(1);
    let (rw, numjobs) = (load.pattern.as_fio(), load.processes);
    let job = format!(
        "[random]\nfilename=/dev/sda\nrw={rw}\nbs=4k\ndirect=1\nioengine=libaio\niodepth={depth}\nnorandommap\nnumjobs={numjobs}\n\
         number_ios={each}\n"
    );
    let no_includes = |path: &str, _: &str| Err(std::io::Error::other(path.to_owned()));
    let Some(elevator) = hoistway_custom::find(&load.elevator) else {
        return Err(BenchError::UnknownElevator(load.elevator.clone()));
    };
    Ok(CompareRequest {
        jobs: hoistway_fio::parse(&job, "bench.fio", &|_| None, &no_includes)?,
        profile,
        host: HostConfig::default(),
        elevators: vec![elevator],
        settings: Vec::new(),
        seed,
        record: false,
    })
}

/// Loads a built-in drive, or the profile in a file.
fn profile(drive: &str) -> Result<Profile, BenchError> {
    match Profile::builtin(drive) {
        Some(profile) => Ok(profile),
        None => Ok(Profile::load(Path::new(drive))?),
    }
}

/// Peak memory from `VmHWM` of /proc/self/status, which is in KiB.
fn peak_memory_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
