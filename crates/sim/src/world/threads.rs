//! The state of the kernel threads (flusher, journal), and of a process that makes pages dirty.

use hoistway_core::BlockLayer;
use hoistway_drive::Jitter;

use super::task::{ProcessId, SubmitterId, TaskState};
use crate::host::files::is_device;
use crate::host::journal::{JournalConfig, Log, Transaction};
use crate::workload::plan::WorkloadPlan;

/// The state of the flusher.
#[derive(Debug)]
pub(super) struct Flusher {
    pub(super) task: TaskState,
    /// Time until which the flusher waits for an uncongested queue, in ns.
    pub(super) until_ns: u64,
    /// The current file, and the next chunk of that file in the page cache.
    pub(super) file: u32,
    pub(super) chunk: u32,
    /// Pages that became dirty at or before this time are old.
    pub(super) old_until_ns: Option<u64>,
    pub(super) ticking: bool,
}

impl Flusher {
    pub fn new(submitter: SubmitterId) -> Flusher {
        let task = TaskState::new(submitter);
        Flusher { task, until_ns: 0, file: 0, chunk: 0, old_until_ns: None, ticking: false }
    }
}

/// The journal of the world's file system.
#[derive(Debug)]
pub(super) struct Journal {
    pub(super) config: JournalConfig,
    pub(super) task: TaskState,
    /// CPU times of the ends of commits.
    pub(super) completion: Jitter,
    pub(super) step: CommitStep,
    /// The running transaction, the one being committed, and the number of the last committed one.
    pub(super) running: Transaction,
    pub(super) committing: Transaction,
    pub(super) committed: u64,
    /// True if a task waits for the running transaction, or its interval is over.
    pub(super) wanted: bool,
    /// Bios of the thread that are not complete.
    pub(super) pending: u32,
    /// True if one of the bios failed: the tasks that wait for the transaction get an error.
    pub(super) failed: bool,
    pub(super) log: Log,
    /// The file that stands for the disk, for metadata in its final place.
    pub(super) disk: u32,
    /// Processes that wait for a commit.
    pub(super) waiters: Vec<ProcessId>,
    /// Direct requests that wait for a commit, each with the number of its transaction.
    pub(super) requests: Vec<(u64, u32)>,
    /// When new blocks enter the running transaction.
    pub(super) allocation: Allocation,
    /// Length of each file.
    pub(super) lengths: Vec<FileLength>,
}

/// When the new blocks of a growing file enter a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allocation {
    /// When the process writes.
    AtWrite,
    /// When the data have reached the drive (ext4 from 5.6 on): the blocks are allocated as
    /// unwritten before, and marked as written afterwards in a transaction of their own.
    AtCompletion,
}

/// The length of a file, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileLength {
    /// True for the disk, which is not on the file system.
    is_device: bool,
    /// Length with the data that are in the page cache only.
    pub(super) written: u64,
    /// Length up to the last block that has entered a transaction.
    allocated: u64,
}

impl FileLength {
    /// The lengths of the files of a plan. The files of the jobs for which `exist` is true have
    /// written data already; the others are created by their writers.
    pub fn of_plan(plan: &WorkloadPlan, exist: impl Fn(usize) -> bool) -> Vec<FileLength> {
        let new = |name: &str| FileLength { is_device: is_device(name), ..FileLength::default() };
        let mut lengths: Vec<FileLength> = plan.files.iter().map(|file| new(&file.name)).collect();
        for process in plan.processes.iter().filter(|process| exist(process.job)) {
            for (file, _) in &process.files {
                let (length, bytes) = (&mut lengths[*file as usize], plan.files[*file as usize].bytes);
                (length.written, length.allocated) = (bytes, bytes);
            }
        }
        lengths
    }

    /// Allocates all that was written. Returns true if the file grew.
    pub(super) fn grow(&mut self) -> bool {
        self.grow_to(u64::MAX)
    }

    /// Allocates what was written up to a byte. Returns true if the file grew.
    pub(super) fn grow_to(&mut self, end: u64) -> bool {
        let grows = end.min(self.written) > self.allocated;
        self.allocated = self.allocated.max(end.min(self.written));
        grows
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitStep {
    Idle,
    Data,
    Log,
    Commit,
}

/// What a process waits for during a sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Commit {
    #[default]
    Nothing,
    Transaction(u64),
    /// A flush of the drive's cache: there is nothing to commit, or no journal.
    Flush,
}

impl Journal {
    /// Creates the journal of files with these lengths, on the file that stands for the disk.
    pub fn new(
        submitter: SubmitterId,
        config: JournalConfig,
        completion: Jitter,
        layer: BlockLayer,
        lengths: Vec<FileLength>,
        disk: u32,
        disk_blocks: u64,
    ) -> Journal {
        let allocation = match (config.all_data, layer) {
            (false, BlockLayer::V6_1) => Allocation::AtCompletion,
            _ => Allocation::AtWrite,
        };
        Journal {
            config,
            task: TaskState::new(submitter),
            completion,
            step: CommitStep::Idle,
            running: Transaction { id: 1, ..Transaction::default() },
            committing: Transaction::default(),
            committed: 0,
            wanted: false,
            pending: 0,
            failed: false,
            log: Log::new(disk_blocks),
            disk,
            waiters: Vec::new(),
            requests: Vec::new(),
            allocation,
            lengths,
        }
    }

    /// Returns true if a file is on the journal's file system. The disk itself is not.
    pub fn covers(&self, file: u32) -> bool {
        self.lengths.get(file as usize).is_some_and(|length| !length.is_device)
    }
}

/// Pages after which a new process is checked for the first time: 128 KiB.
const FIRST_LOOK_PAGES: u32 = 32;

/// The throttling state of a process that makes pages dirty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dirtying {
    /// Pages made dirty since the last check.
    pub(super) pages: u32,
    /// Pages after which the process is checked (write-back with pauses).
    pub(super) look_after: u32,
    /// Time at which the last pause should have ended; thinking since then counts as paused.
    pub(super) paused_ns: u64,
    /// Time until which the process waits, in ns.
    pub(super) until_ns: u64,
    /// Pages that the process has written back itself, while it does so.
    pub(super) writing: Option<u64>,
}

impl Default for Dirtying {
    fn default() -> Self {
        Dirtying { pages: 0, look_after: FIRST_LOOK_PAGES, paused_ns: 0, until_ns: 0, writing: None }
    }
}

impl Dirtying {
    /// Counts a page that became dirty.
    pub fn count(&mut self) {
        self.pages += 1;
    }
}
