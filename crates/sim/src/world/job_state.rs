//! State of a process that options of its job need: batches, threads that submit, shares, and
//! checks that end the job.

use hoistway_fio::Job;
use hoistway_units::sort;
use hoistway_workload::IoUnit;
use hoistway_workload::endings::{DepthSearch, RateFloor};
use hoistway_workload::shares::{Share, Shares};

use super::devices::DriveId;
use super::task::{ProcessId, SubmitterId};

/// The maximum number of threads that submit the requests of one process.
const WORKERS_MAX: u32 = 4096;

/// How a process submits its direct requests.
#[derive(Debug, Default)]
pub(crate) struct Submission {
    /// Chosen requests that are submitted together with later ones.
    pub batch: Vec<IoUnit>,
    /// The request whose submission the process works on, and the time at which it began.
    pub next: Option<(IoUnit, u64)>,
    /// The drive and the number of bios whose elevator's work is not paid for. Its time is known
    /// when the process gets a processor.
    pub elevator: Option<(DriveId, u64)>,
    /// True while a full queue drains to `iodepth_low`.
    pub drains: bool,
    /// The trim that the process waits for while other requests are in flight.
    pub trim: Option<u32>,
    /// The submitters with other priorities than the process.
    pub priorities: Vec<((u8, u8), SubmitterId)>,
    /// The submitters that are the idle threads of the process.
    pub workers: Vec<SubmitterId>,
    /// All further submitters that belong to the process.
    pub submitters: Vec<SubmitterId>,
}

/// Checks on the requests of a process.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// The share among the jobs with the same `flow_id`.
    pub share: Option<Share>,
    pub floor: Option<RateFloor>,
    pub search: Option<DepthSearch>,
    /// Index of the check for a steady rate.
    pub steady: Option<usize>,
    /// True if completed requests have to be looked at.
    pub watches: bool,
    /// True if the process makes no more requests.
    pub ends: bool,
    pub ending: Option<Ending>,
    /// Time at which the last pause ended.
    pub thought_ns: u64,
    /// True if the cached pages of the files are dropped before the next request.
    pub drops_cache: bool,
}

/// What a check found, for the notes of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// A rate was below `rate_min` or `rate_iops_min`.
    TooSlow,
    /// A request took longer than `max_latency`.
    TooLate,
    /// The rate was steady.
    Steady,
    /// The largest queue depth within `latency_target`; 0 if there is none.
    Depth(u32),
}

/// The jobs with one `flow_id`.
#[derive(Debug, Default)]
pub(crate) struct FlowGroup {
    pub shares: Shares,
    /// Processes that wait until others have made requests.
    pub waiting: Vec<ProcessId>,
}

impl Limits {
    pub fn new(job: &Job, depth: u32) -> Limits {
        let search = DepthSearch::new(job, depth);
        let has_limit = hoistway_fio::Direction::ALL.into_iter().any(|way| *job.end.max_latency_ns.get(way) > 0);
        Limits { floor: RateFloor::new(job), watches: has_limit || search.is_some(), search, ..Limits::default() }
    }
}

/// Number of threads that submit the requests of a process; 0 if the process does.
pub(crate) fn worker_count(job: &Job) -> u32 {
    if job.submission.is_offloaded() && job.cache.direct { job.submission.iodepth.min(WORKERS_MAX) } else { 0 }
}

/// The priorities that single requests of a job have, each once.
pub(crate) fn request_priorities(job: &Job) -> Vec<(u8, u8)> {
    let mut all = job.priority.cmdprio.read.all();
    all.extend(job.priority.cmdprio.write.all());
    sort::by_key(&mut all, |(class, level)| u64::from(*class) << 8 | u64::from(*level));
    all.dedup();
    all
}
