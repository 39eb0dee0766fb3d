//! The memory that a comparison needs.

use std::fmt;

use hoistway_fio::{Direction, Job, Size};
use hoistway_sim::{CompareRequest, HeadSample, SPARSE_MAX, windows_of_each};
use hoistway_units::figures::bytes;

/// Bytes of the program and of a world without processes.
const FIXED_BYTES: u64 = 96 << 20;
/// Bytes of a process in a world beside its measurements: its state, its context and its tables in
/// the elevator.
const STATE_BYTES: u64 = 3 << 10;
/// Bytes of a process in an answer beside its measurements.
const ANSWER_BYTES: u64 = 1 << 10;
/// Bytes of a bin of a latency histogram that has few, allocated ahead included, and of a histogram
/// with all bins.
const BIN_BYTES: u64 = 16;
const DENSE_BYTES: u64 = 16 << 10;
/// Bytes of a window, of which a process keeps three series: both directions, their sum, samples.
const WINDOW_BYTES: u64 = 3 * 16;

/// The shortest times between requests that one process with one request in flight, and all
/// processes together, can have on a disk and on flash memory, in ns.
const DISK_REQUEST_NS: (u64, u64) = (100_000, 100_000);
const FLASH_REQUEST_NS: (u64, u64) = (20_000, 5_000);

/// Simulated time whose requests count, if they are not known.
const RECORDED_NS_MAX: u64 = 60_000_000_000;

/// The memory that a comparison needs at most, as far as its job file determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryNeed {
    /// The number of processes of the jobs.
    pub processes: u64,
    /// The number of elevators.
    pub elevators: u64,
    /// Bytes of the processes of one run.
    pub run_bytes: u64,
    /// Bytes of the answer of one run.
    pub answer_bytes: u64,
}

impl MemoryNeed {
    /// The need of a request.
    pub fn of(request: &CompareRequest) -> MemoryNeed {
        let jobs = &request.jobs.jobs;
        let processes: u64 = jobs.iter().map(|job| u64::from(job.start.numjobs)).sum();
        let windows = windows_of_each(usize::try_from(processes).unwrap_or(usize::MAX)) as u64;
        let measured: u64 =
            jobs.iter().map(|job| u64::from(job.start.numjobs).saturating_mul(measured_bytes(job, windows))).sum();
        let recorded = if request.record { recorded_bytes(jobs, request.profile.is_rotational()) } else { 0 };
        let answer_bytes = measured.saturating_add(processes.saturating_mul(ANSWER_BYTES)).saturating_add(recorded);
        MemoryNeed {
            processes,
            elevators: request.elevators.len() as u64,
            run_bytes: measured.saturating_add(processes.saturating_mul(STATE_BYTES)),
            answer_bytes,
        }
    }

    /// Bytes if this many runs happen at the same time.
    pub fn bytes(&self, parallel: usize) -> u64 {
        let answers = self.elevators.saturating_mul(self.answer_bytes);
        FIXED_BYTES.saturating_add((parallel as u64).saturating_mul(self.run_bytes)).saturating_add(answers)
    }

    /// The number of runs, at most `most`, that can happen at the same time within this many bytes;
    /// `None` if not even one can.
    pub fn parallel_within(&self, bytes: u64, most: usize) -> Option<usize> {
        (1..=most.max(1)).rev().find(|parallel| self.bytes(*parallel) <= bytes)
    }

    /// The number of runs at a time for the available bytes: one for each processor, or fewer. A
    /// tenth of the bytes is left free.
    ///
    /// # Errors
    /// [`MemoryError`] if not even one run at a time fits.
    pub fn threads(&self, available: Option<u64>) -> Result<usize, MemoryError> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let Some(available) = available.map(|all| all / 10 * 9) else { return Ok(processors) };
        self.parallel_within(available, processors).ok_or(MemoryError { need: *self, available })
    }

    /// The number of processes that fit into this many bytes with the same elevators, one run at a
    /// time.
    pub fn processes_within(&self, bytes: u64) -> u64 {
        let each = (self.bytes(1) - FIXED_BYTES) / self.processes.max(1);
        bytes.saturating_sub(FIXED_BYTES) / each.max(1)
    }

    /// The number of elevators that fit into this many bytes with the same processes.
    pub fn elevators_within(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(FIXED_BYTES).saturating_sub(self.run_bytes) / self.answer_bytes.max(1)
    }
}

/// A comparison does not fit into the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryError {
    /// The memory that the comparison needs.
    pub need: MemoryNeed,
    /// The bytes that are available.
    pub available: u64,
}

impl std::error::Error for MemoryError {}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemoryError { need, available } = *self;
        let MemoryNeed { processes, elevators, .. } = need;
        write!(
            f,
            "{processes} processes under {elevators} elevators take {} of memory, and {} are available: {} processes fit",
            bytes(need.bytes(1)),
            bytes(available),
            need.processes_within(available)
        )?;
        match need.elevators_within(available) {
            0 => Ok(()),
            fit => write!(f, ", or {fit} of the {elevators} elevators (--elevators)"),
        }
    }
}

/// Bytes of the recorded head positions of one run of these jobs: one for each request. The number
/// of requests of a job that ends with its runtime is not known: as many as the drive can complete
/// in that time count, of a time beyond [`RECORDED_NS_MAX`] those of its beginning. A longer run is
/// often ended by Ctrl-C, and few drives are that fast.
fn recorded_bytes(jobs: &[Job], is_rotational: bool) -> u64 {
    let (alone_ns, together_ns) = if is_rotational { DISK_REQUEST_NS } else { FLASH_REQUEST_NS };
    let of_job = |job: &Job| {
        let fastest = |runtime_ns: u64| (runtime_ns / alone_ns).saturating_mul(u64::from(job.submission.iodepth));
        let each = job.end.runtime_ns.map_or(u64::MAX, fastest).min(requests(job));
        each.saturating_mul(u64::from(job.start.numjobs))
    };
    let all = jobs.iter().map(of_job).fold(0, u64::saturating_add);
    let is_counted = jobs.iter().all(|job| requests(job) < u64::MAX / 2);
    let most = if is_counted { u64::MAX } else { RECORDED_NS_MAX / together_ns };
    all.min(most).saturating_mul(size_of::<HeadSample>() as u64)
}

/// Bytes of the measurements of a process that keeps this many windows.
fn measured_bytes(job: &Job, windows: u64) -> u64 {
    let each_direction = if job.cache.direct && !job.submission.ioengine.is_synchronous() { 3 } else { 1 };
    let directions = u64::from(job.requests.rw.reads()) + u64::from(job.requests.rw.writes());
    let histogram = (requests(job).min(SPARSE_MAX as u64).next_power_of_two() * BIN_BYTES).min(DENSE_BYTES);
    let of_runtime = |runtime_ns: u64| runtime_ns / job.reporting.bwavgtime_ms.saturating_mul(1_000_000).max(1) + 1;
    // A run may take long without a runtime.
    let windows = job.end.runtime_ns.map_or(windows, |runtime_ns| windows.min(of_runtime(runtime_ns)));
    directions * each_direction * histogram + windows.next_power_of_two() * WINDOW_BYTES
}

/// The number of requests of a process, as far as known.
fn requests(job: &Job) -> u64 {
    if job.end.time_based {
        return u64::MAX / 2;
    }
    let block = job.min_bs(Direction::Read).min(job.min_bs(Direction::Write)).max(1);
    let of_size = match job.amount.io_size.or(job.region.size) {
        Some(Size::Bytes(bytes)) => bytes / block,
        _ => u64::MAX / 2,
    };
    of_size.min(job.amount.number_ios.unwrap_or(u64::MAX)).clamp(1, u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEED: MemoryNeed =
        MemoryNeed { processes: 1000, elevators: 4, run_bytes: 200 << 20, answer_bytes: 100 << 20 };

    #[test]
    fn recorded_head_positions_need_memory_for_each_request() {
        let jobs = |text: &str| {
            hoistway_fio::parse(text, "a.fio", &|_| None, &|_, _| unreachable!("no includes")).expect("jobs").jobs
        };
        let sample = size_of::<HeadSample>() as u64;
        // Two processes of 1 MiB in blocks of 4 KiB, and one of 10 requests.
        let counted = jobs("[a]\nsize=1m\nbs=4k\nnumjobs=2\n[b]\nsize=1m\nnumber_ios=10\n");
        assert_eq!(recorded_bytes(&counted, true), (2 * 256 + 10) * sample);
        // Requests of at least 100 us on a disk and 20 us on flash, of one minute at most.
        let timed = |runtime: &str| jobs(&format!("[a]\nsize=1m\ntime_based\nruntime={runtime}\nnumjobs=4\n"));
        assert_eq!(recorded_bytes(&timed("10"), true), 400_000 * sample);
        assert_eq!(recorded_bytes(&timed("10"), false), 2_000_000 * sample);
        assert_eq!(recorded_bytes(&timed("10d"), true), 600_000 * sample);
        assert_eq!(recorded_bytes(&jobs("[a]\nrw=read\nfilename=/dev/sda\n"), true), 600_000 * sample);
    }

    #[test]
    fn fewer_runs_at_a_time_need_less() {
        assert_eq!(NEED.bytes(2), (96 + 2 * 200 + 4 * 100) << 20);
        assert_eq!(NEED.parallel_within(900 << 20, 8), Some(2));
        assert_eq!(NEED.parallel_within(700 << 20, 8), Some(1));
        assert_eq!(NEED.parallel_within(600 << 20, 8), None);
    }

    #[test]
    fn what_would_fit_fits() {
        let bytes = 600 << 20;
        let fits = |need: MemoryNeed| need.parallel_within(bytes, 1) == Some(1);
        let part = |processes: u64| MemoryNeed {
            processes,
            run_bytes: NEED.run_bytes * processes / 1000,
            answer_bytes: NEED.answer_bytes * processes / 1000,
            ..NEED
        };
        assert!(fits(part(NEED.processes_within(bytes))));
        assert!(fits(MemoryNeed { elevators: NEED.elevators_within(bytes), ..NEED }));
        assert_eq!(NEED.elevators_within(bytes), 3);
    }

    #[test]
    fn too_many_processes_for_the_memory_are_refused_with_what_would_fit() {
        let need = MemoryNeed { processes: 65_536, elevators: 4, run_bytes: 3 << 30, answer_bytes: 1 << 30 };
        assert_eq!(need.threads(None), need.threads(Some(1 << 50)));
        assert_eq!(need.threads(Some(9 << 30)), Ok(1));
        let refusal = need.threads(Some(5 << 30)).expect_err("too little").to_string();
        assert!(refusal.starts_with("65536 processes under 4 elevators take 7.62 GB of memory"), "{refusal}");
        assert!(refusal.contains(" processes fit, or 1 of the 4 elevators"), "{refusal}");
        let refusal = need.threads(Some(1 << 30)).expect_err("too little").to_string();
        assert!(refusal.ends_with(" processes fit"), "{refusal}");
    }
}
