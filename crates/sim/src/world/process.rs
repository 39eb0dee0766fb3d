//! A simulated process: a clone of a fio job.

use std::sync::Arc;

use hoistway_drive::Jitter;
use hoistway_fio::results::build::{DepthCounts, LatencyBuckets};
use hoistway_fio::{Direction, Ioengine, Job};
use rand_pcg::Pcg64;

use crate::host::fs::tree::MetadataRead;
use crate::host::mapping::Mapping;
use crate::host::readahead::Reader;
use crate::measure::{Latencies, Sampler, Windows};
use crate::workload::plan::ProcessPlan;
use crate::workload::recorded::Player;
use crate::workload::stream;
use crate::workload::walk::Walker;
use hoistway_workload::pacing::Pacing;
use hoistway_workload::{FileSync, Generator, IoUnit, Region, Work};

use super::job_state::{Limits, Submission};
use super::task::{ProcessId, SubmitterId, TaskState};
use super::threads::{Commit, Dirtying};

/// The next step of a process when it runs. The CPU time of a step has passed before the next step
/// begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The process waits for other jobs.
    NotStarted,
    /// The process waits for its start delay, until `wake_ns`.
    Starting,
    /// The process looks for the next thing to do.
    Choose,
    /// The process pauses until `wake_ns`, then chooses.
    Think,
    /// The process takes the next step of its walk through a tree, or waits for the metadata blocks
    /// of that step.
    Walk,
    Metadata,
    /// The process works on a buffered request, page by page.
    Read,
    Write,
    /// The process starts to write a request's data through to the disk.
    WriteThrough,
    /// The CPU time of submitting a direct request has passed.
    Submit,
    /// The process waits for a synchronous direct request.
    Direct,
    /// The request's work is done.
    Finish,
    /// The process waits for the write-back of a file's data.
    Sync,
    /// The process waits for a commit of the journal.
    Commit,
    /// The sync's work is done.
    Synced,
    /// The process makes no more requests: it waits for those in flight, and syncs if the job asks
    /// for it.
    Leave,
    Done,
}

impl Stage {
    /// Returns false for a process that has not begun its job.
    pub fn has_begun(self) -> bool {
        !matches!(self, Stage::NotStarted | Stage::Starting)
    }

    /// Describes what a process in this stage waits for, as the end of a sentence.
    pub fn waits_for(self) -> &'static str {
        match self {
            Stage::NotStarted | Stage::Starting => "waits for its start",
            Stage::Choose => "waits for requests in flight, or for the time of its next one",
            Stage::Think => "waits for the end of a pause",
            Stage::Walk | Stage::Metadata => "waits for metadata",
            Stage::Read => "waits for a page to be read",
            Stage::Write => "waits to write a page",
            Stage::WriteThrough | Stage::Sync | Stage::Commit | Stage::Synced => {
                "waits for its writes to be on the disk"
            }
            Stage::Direct => "waits for a direct request",
            Stage::Submit | Stage::Finish => "waits for a processor",
            Stage::Leave => "waits for its last requests in flight",
            Stage::Done => "is over",
        }
    }
}

/// The request that a synchronous process works on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CurrentRequest {
    pub unit: IoUnit,
    pub start_ns: u64,
    /// The next page of the request, and its last page.
    pub page: u64,
    pub last_page: u64,
    /// The first page that read-ahead has not dealt with yet.
    pub planned: u64,
    /// True if the process slept for the current page.
    pub waited: bool,
}

/// An open file of a process.
#[derive(Clone, Debug)]
pub(crate) struct OpenFile {
    pub file: u32,
    pub reader: Reader,
    /// The mapped pages, if the file is mapped.
    pub mapping: Mapping,
}

/// The state of a walk through a tree of files.
#[derive(Clone, Debug)]
pub(crate) struct TreeWalk {
    pub walker: Walker,
    /// The metadata blocks of the current step.
    pub wanted: MetadataRead,
    /// Time at which the process began to look for its next read.
    pub since_ns: u64,
    /// Number of reads, over all passes.
    pub reads: u64,
}

/// The costs of the end of a request for a process.
#[derive(Debug)]
pub(crate) enum RequestEnds {
    /// CPU time.
    Work(Jitter),
    /// Turnarounds that pass side by side. Completions do not overtake one another.
    Turnarounds {
        times: Jitter,
        /// End of the latest one.
        last_ns: u64,
    },
}

impl RequestEnds {
    /// Returns the end of the turnaround of a request that completes now; `None` if it has none.
    pub fn turnaround_ns(&mut self, now_ns: u64) -> Option<u64> {
        let RequestEnds::Turnarounds { times, last_ns } = self else { return None };
        *last_ns = now_ns.saturating_add(times.draw_ns()).max(*last_ns);
        Some(*last_ns)
    }
}

/// The syncs of a process.
#[derive(Debug)]
pub(crate) struct SyncState {
    /// The sync that is made next, after the batch of chosen requests is submitted.
    pub due: Option<FileSync>,
    /// True if a sync is made at the end of the job.
    pub at_end: bool,
    /// The start of the sync under way, why it is made, and what it waits for.
    pub start_ns: u64,
    pub reason: SyncReason,
    pub(super) commit: Commit,
}

/// A simulated process and its measurements.
#[derive(Debug)]
pub(crate) struct Process {
    pub plan: ProcessPlan,
    pub job: Arc<Job>,
    pub stage: Stage,
    pub task: TaskState,
    pub ends: RequestEnds,
    pub generator: Generator,
    pub pacing: Pacing,
    pub rate_rng: Pcg64,
    pub files: Vec<OpenFile>,
    pub walk: Option<TreeWalk>,
    /// The recorded requests of the process, if the workload was recorded; they replace the job's.
    pub player: Option<Player>,
    pub current: CurrentRequest,
    /// A chosen request whose time has not come.
    pub chosen: Option<IoUnit>,
    pub in_flight: u32,
    /// Direct requests that are complete but not reaped.
    pub completed: Vec<u32>,
    pub depth: u32,
    pub submission: Submission,
    pub limits: Limits,
    pub think_after: u32,
    /// Time at which the next pause ends; a wake-up for another time is stale.
    pub wake_ns: u64,
    pub sync: SyncState,
    pub start_ns: u64,
    pub measured_from_ns: u64,
    pub deadline_ns: u64,
    pub end_ns: u64,
    pub dirtying: Dirtying,
    /// Time of the first failed request, after which the process makes no more.
    pub failed_ns: Option<u64>,
    pub stats: Stats,
}

/// The measurements of a process.
#[derive(Clone, Debug)]
pub(crate) struct Stats {
    pub read: DirectionStats,
    pub write: DirectionStats,
    pub trim: DirectionStats,
    pub sync: Latencies,
    pub cpu_ns: u64,
    pub sleeps: u64,
    pub buckets: LatencyBuckets,
    /// Requests in flight at each submission; numbers of requests submitted, and reaped, in one
    /// call.
    pub level: DepthCounts,
    pub submit: DepthCounts,
    pub complete: DepthCounts,
    pub samples: Sampler,
}

/// The measurements of one direction.
#[derive(Clone, Debug)]
pub(crate) struct DirectionStats {
    pub bytes: u64,
    pub ios: u64,
    pub slat: Latencies,
    pub clat: Latencies,
    /// Total latencies; kept for asynchronous engines only, as others have no submission latency.
    pub lat: Latencies,
    pub windows: Windows,
    pub log: Option<Windows>,
    pub iops: Option<Windows>,
}

impl Process {
    /// Creates a process that keeps at most `windows` bandwidth windows and samples.
    pub fn new(
        plan: ProcessPlan,
        submitter: SubmitterId,
        job: Arc<Job>,
        reader: &Reader,
        windows: usize,
        ends: RequestEnds,
    ) -> Process {
        let regions: Vec<Region> = plan.files.iter().map(|(_, region)| *region).collect();
        let open =
            |(file, _): &(u32, Region)| OpenFile { file: *file, reader: reader.clone(), mapping: Mapping::default() };
        let unit = IoUnit::new(Direction::Read, 0, 0, 0);
        let depth = if job.cache.direct { job.submission.effective_iodepth() } else { 1 };
        let limits = Limits::new(&job, depth);
        Process {
            stage: Stage::NotStarted,
            task: TaskState::new(submitter),
            ends,
            generator: Generator::new(job.clone(), &regions, plan.io_bytes, plan.seed, plan.number),
            pacing: Pacing::new(&job),
            rate_rng: stream(plan.seed, plan.number, 6),
            files: plan.files.iter().map(open).collect(),
            walk: None,
            player: None,
            current: CurrentRequest { unit, start_ns: 0, page: 0, last_page: 0, planned: 0, waited: false },
            chosen: None,
            in_flight: 0,
            completed: Vec::new(),
            depth: limits.search.as_ref().map_or(depth, |search| search.depth),
            submission: Submission::default(),
            limits,
            think_after: job.pauses.thinktime_blocks,
            wake_ns: 0,
            sync: SyncState {
                due: None,
                at_end: job.syncs.end_fsync && job.requests.rw.writes(),
                start_ns: 0,
                reason: SyncReason::End,
                commit: Commit::Nothing,
            },
            start_ns: 0,
            measured_from_ns: 0,
            deadline_ns: u64::MAX,
            end_ns: 0,
            dirtying: Dirtying::default(),
            failed_ns: None,
            stats: Stats::new(&job, windows),
            plan,
            job,
        }
    }

    /// Starts the process after its start conditions and its delay.
    pub fn start(&mut self, now_ns: u64) {
        self.start_ns = now_ns;
        self.measured_from_ns = now_ns.saturating_add(self.job.start.ramp_time_ns);
        self.deadline_ns = match self.job.end.runtime_ns {
            Some(runtime_ns) => self.measured_from_ns.saturating_add(runtime_ns),
            None => u64::MAX,
        };
        self.limits.thought_ns = now_ns;
        self.stage = Stage::Choose;
    }

    /// The part of its work that the process has done, 0 to 1: of its bytes, or of its runtime.
    pub fn done(&self, now_ns: u64) -> f64 {
        match self.stage {
            Stage::NotStarted | Stage::Starting => return 0.0,
            Stage::Done => return 1.0,
            _ => {}
        }
        let of = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let by_time = match self.deadline_ns {
            u64::MAX => 0.0,
            deadline_ns => of(now_ns.saturating_sub(self.start_ns), deadline_ns.saturating_sub(self.start_ns)),
        };
        let bytes = self.stats.bytes();
        let by_bytes = match self.job.end.time_based {
            true => 0.0,
            false => of(bytes, self.plan.io_bytes.saturating_mul(u64::from(self.job.amount.loops))),
        };
        by_time.max(by_bytes).min(1.0)
    }

    /// Charges the CPU time of the end of a request.
    pub fn pay_completion(&mut self) {
        if let RequestEnds::Work(times) = &mut self.ends {
            self.task.debt_ns += times.draw_ns();
        }
    }

    /// Records a failed request. Without `continue_on_error`, a job ends with its first error,
    /// after the requests in flight.
    pub fn fail(&mut self, now_ns: u64) {
        self.failed_ns.get_or_insert(now_ns);
        self.sync.at_end = false;
    }

    /// Returns true if a request has failed or the process was ended, and the process has not begun
    /// to leave.
    pub fn has_to_leave(&self) -> bool {
        let at_its_end = matches!(self.stage, Stage::Sync | Stage::Submit | Stage::Leave | Stage::Done);
        (self.failed_ns.is_some() || self.limits.ends) && !at_its_end && self.stage.has_begun()
    }

    /// Returns true if the process submits further requests while others are in flight.
    pub fn is_async(&self) -> bool {
        is_async(&self.job)
    }

    /// Returns true if the process goes on with further requests while a sync is in flight.
    pub fn queues_syncs(&self) -> bool {
        self.is_async() && (self.job.submission.ioengine.queues_syncs() || self.job.submission.is_offloaded())
    }

    /// Number of requests that are submitted together.
    pub fn batch_size(&self) -> u32 {
        match self.job.submission.batching.submit {
            _ if !self.is_async() => 1,
            0 => self.depth,
            batch => batch.min(self.depth),
        }
    }

    /// Number of completed requests that are needed before they are reaped.
    pub fn reap_min(&self) -> u32 {
        let is_full = self.in_flight >= self.depth || self.submission.drains;
        if is_full { self.job.submission.batching.complete_min.min(self.in_flight).max(1) } else { 1 }
    }

    /// Returns true if the process submits a further request before it reaps completed ones, as fio
    /// does until its queue is full.
    pub fn has_room(&self) -> bool {
        let requests = self.in_flight + self.submission.batch.len() as u32;
        self.is_async() && self.player.is_none() && requests < self.depth && !self.submission.drains
    }

    /// Number of requests in flight down to which a full queue drains.
    pub fn low(&self) -> u32 {
        match self.job.submission.batching.low {
            0 => self.depth,
            low => low.min(self.depth),
        }
    }

    /// Returns true if the job's next pause is due.
    pub fn has_to_think(&self, now_ns: u64) -> bool {
        let iotime_ns = self.job.pauses.thinktime_iotime_ns;
        let is_due = match iotime_ns {
            0 => self.think_after == 0,
            _ => now_ns.saturating_sub(self.limits.thought_ns) >= iotime_ns,
        };
        self.job.pauses.thinktime_ns > 0 && is_due
    }

    /// CPU time of a system call; 0 for a mapped file, which is read without one.
    pub fn call_ns(&self, system_call_ns: u64) -> u64 {
        if self.job.submission.ioengine == Ioengine::Mmap { 0 } else { system_call_ns }
    }

    /// The maximum number of completed requests that one call reaps.
    pub fn reap_max(&self) -> usize {
        let batching = self.job.submission.batching;
        match batching.complete_max {
            0 => usize::MAX,
            max => max.max(batching.complete_min) as usize,
        }
    }

    /// Records a sync between requests that ended now. As in fio, the other syncs are not reported.
    pub fn record_sync(&mut self, start_ns: u64, now_ns: u64) {
        if now_ns >= self.measured_from_ns {
            self.stats.sync.record(now_ns - start_ns);
        }
    }

    /// Records a request that completed now.
    pub fn record(&mut self, unit: &IoUnit, start_ns: u64, issued_ns: u64, now_ns: u64) {
        // Requests that were in flight at the end of a recording are not counted.
        let is_late = self.player.is_some() && now_ns > self.deadline_ns;
        if now_ns < self.measured_from_ns || is_late {
            return;
        }
        let is_async = self.is_async();
        let since_start_ns = now_ns - self.measured_from_ns;
        let stats = self.stats.of(unit.direction);
        stats.bytes += unit.bytes;
        stats.ios += 1;
        let clat_ns = if is_async {
            stats.slat.record(issued_ns.saturating_sub(start_ns));
            stats.lat.record(now_ns - start_ns);
            now_ns.saturating_sub(issued_ns)
        } else {
            now_ns - start_ns
        };
        stats.clat.record(clat_ns);
        stats.windows.record(since_start_ns, unit.bytes);
        for windows in [&mut stats.log, &mut stats.iops].into_iter().flatten() {
            windows.record(since_start_ns, unit.bytes);
        }
        self.stats.buckets.record(clat_ns);
        self.stats.samples.record(since_start_ns, unit.bytes);
    }
}

/// Returns true if a process of this job submits further requests while others are in flight.
pub(crate) fn is_async(job: &Job) -> bool {
    job.cache.direct && (!job.submission.ioengine.is_synchronous() || job.submission.is_offloaded())
}

impl Stats {
    fn new(job: &Job, windows: usize) -> Stats {
        let direction = DirectionStats::new(job, windows);
        Stats {
            read: direction.clone(),
            write: direction.clone(),
            trim: direction,
            sync: Latencies::default(),
            cpu_ns: 0,
            sleeps: 0,
            buckets: LatencyBuckets::default(),
            level: DepthCounts::default(),
            submit: DepthCounts::default(),
            complete: DepthCounts::default(),
            samples: Sampler::new(windows, job.reporting.bwavgtime_ms.saturating_mul(1_000_000)),
        }
    }

    /// Bytes read, written and trimmed.
    pub fn bytes(&self) -> u64 {
        self.read.bytes + self.write.bytes + self.trim.bytes
    }

    pub fn of(&mut self, direction: Direction) -> &mut DirectionStats {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Trim => &mut self.trim,
        }
    }
}

impl DirectionStats {
    fn new(job: &Job, windows: usize) -> DirectionStats {
        let of_ms = |ms: u64| Windows::of_at_most(windows, ms.saturating_mul(1_000_000));
        let other = |ms: u64| (ms > 0 && ms != job.reporting.bwavgtime_ms).then(|| of_ms(ms));
        DirectionStats {
            bytes: 0,
            ios: 0,
            slat: Latencies::default(),
            clat: Latencies::default(),
            lat: Latencies::default(),
            windows: of_ms(job.reporting.bwavgtime_ms),
            log: other(job.log.log_avg_msec),
            iops: other(job.reporting.iopsavgtime_ms),
        }
    }
}

/// Why a process syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncReason {
    /// `fsync` or `fdatasync` between requests.
    Due(FileSync),
    /// What was written is read from the disk and verified.
    Verification,
    /// The write was synchronous.
    Write,
    /// `end_fsync` or `fsync_on_close`.
    End,
}

impl SyncReason {
    /// The stage after the sync.
    pub(crate) fn then(self) -> Stage {
        match self {
            SyncReason::Due(_) | SyncReason::Verification => Stage::Choose,
            SyncReason::Write => Stage::Finish,
            SyncReason::End => Stage::Leave,
        }
    }
}

/// What a direct request waits for after its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterData {
    Nothing,
    /// A commit of the journal, or a flush of the drive's cache.
    Commit,
}

/// A direct request, or a sync, in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectIo {
    pub work: Work,
    pub process: ProcessId,
    pub submitter: SubmitterId,
    pub unit: IoUnit,
    pub start_ns: u64,
    pub issued_ns: u64,
    /// Bios that are not complete.
    pub pending: u32,
    pub after: AfterData,
    /// True if one of the bios failed.
    pub failed: bool,
}

impl DirectIo {
    /// Work of a process that begins at `start_ns`. It holds a count of its own until all of its
    /// bios are submitted.
    pub fn new(
        work: Work,
        (process, submitter): (ProcessId, SubmitterId),
        unit: IoUnit,
        start_ns: u64,
        issued_ns: u64,
    ) -> DirectIo {
        let after = AfterData::Nothing;
        DirectIo { work, process, submitter, unit, start_ns, issued_ns, pending: 1, after, failed: false }
    }
}
