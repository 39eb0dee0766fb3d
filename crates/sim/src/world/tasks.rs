//! The state of the kernel's threads (flusher, journal), and of a process that makes pages dirty.

use crate::host::files::{File, is_device};
use crate::host::journal::{JournalConfig, Log, Transaction};
use crate::workload::plan::Plan;

/// Where the flusher is.
#[derive(Debug)]
pub(super) struct Flusher {
    /// It waits and is in no queue of the host.
    pub(super) blocked: bool,
    pub(super) debt_ns: u64,
    /// It waits for an uncongested queue until then.
    pub(super) until_ns: u64,
    /// The file it is at, and the chunk of the cache that comes next there.
    pub(super) file: u32,
    pub(super) chunk: u32,
    /// Pages that became dirty at or before this time are old.
    pub(super) old_until_ns: Option<u64>,
    pub(super) ticking: bool,
}

impl Default for Flusher {
    fn default() -> Self {
        Flusher { blocked: true, debt_ns: 0, until_ns: 0, file: 0, chunk: 0, old_until_ns: None, ticking: false }
    }
}

/// The journal of the world's file system.
#[derive(Debug)]
pub(super) struct Journal {
    pub(super) config: JournalConfig,
    /// The thread waits and is in no queue of the host.
    pub(super) blocked: bool,
    pub(super) debt_ns: u64,
    pub(super) step: CommitStep,
    /// What changes now, what is being committed, and the last that was.
    pub(super) running: Transaction,
    pub(super) committing: Transaction,
    pub(super) committed: u64,
    /// Somebody waits for what is running, or its time is over.
    pub(super) wanted: bool,
    /// Bios of the thread that are not over.
    pub(super) pending: u32,
    /// One of them failed: who waits for the transaction gets an error.
    pub(super) failed: bool,
    pub(super) log: Log,
    /// The disk as a file, for metadata in its place.
    pub(super) disk: u32,
    /// Tasks that wait for a commit.
    pub(super) waiters: Vec<u32>,
    /// Of each file, how many bytes it has had so far; what lies beyond makes it grow.
    pub(super) lengths: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitStep {
    Idle,
    Data,
    Log,
    Commit,
}

/// What a process waits for when it syncs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Commit {
    #[default]
    Nothing,
    Transaction(u64),
    /// The drive's cache, when there was nothing to commit.
    Flush,
}

impl Journal {
    /// The journal of these files. One that some job reads was there before; the others are made by their writers.
    pub fn new(
        config: JournalConfig,
        plan: &Plan,
        reads: impl Fn(usize) -> bool,
        disk: u32,
        files: &[File],
    ) -> Journal {
        let disk_blocks = files.get(disk as usize).map_or(0, File::pages);
        let mut lengths: Vec<u64> =
            plan.files.iter().map(|file| if is_device(&file.name) { u64::MAX } else { 0 }).collect();
        for process in plan.processes.iter().filter(|process| reads(process.job)) {
            for (file, _) in &process.files {
                lengths[*file as usize] = lengths[*file as usize].max(plan.files[*file as usize].bytes);
            }
        }
        Journal {
            config,
            blocked: true,
            debt_ns: 0,
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
            lengths,
        }
    }
}

/// After how many pages a new process is looked at first: 128 KiB.
const FIRST_LOOK_PAGES: u32 = 32;

/// What the kernel remembers of a process that makes pages dirty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dirtying {
    /// Pages since it was looked at last.
    pub(super) pages: u32,
    /// It is looked at after so many (write-back with pauses).
    pub(super) look_after: u32,
    /// When its last pause should have ended; thinking since then counts as paused.
    pub(super) paused_ns: u64,
    /// It waits until then.
    pub(super) until_ns: u64,
    /// It writes back itself, and has written so many pages.
    pub(super) writing: Option<u64>,
}

impl Default for Dirtying {
    fn default() -> Self {
        Dirtying { pages: 0, look_after: FIRST_LOOK_PAGES, paused_ns: 0, until_ns: 0, writing: None }
    }
}

impl Dirtying {
    /// A page has become dirty.
    pub fn count(&mut self) {
        self.pages += 1;
    }
}
