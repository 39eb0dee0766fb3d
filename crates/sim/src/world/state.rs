//! The state of a world.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hoistway_core::Kind;
use hoistway_workload::endings::SteadyRate;

use super::devices::Devices;
use super::job_state::FlowGroup;
use super::process::DirectIo;
use super::processes::Processes;
use super::request::Failures;
use super::slab::Slab;
use super::task::{ProcessId, SubmitterId, Task, TaskState};
use super::threads::{Flusher, Journal};
use crate::config::HostConfig;
use crate::events::Events;
use crate::host::cpu::Cpus;
use crate::host::dirty::Balance;
use crate::host::files::File;
use crate::host::page_cache::PageCache;
use crate::record::Observer;
use crate::workload::turnaround::Activity;

pub(crate) struct World<S: Observer> {
    pub(super) host: HostConfig,
    pub(super) elevator: Kind,
    pub(super) seed: u64,
    pub(super) now_ns: u64,
    pub(super) events: Events,
    pub(super) cpus: Cpus,
    pub(super) devices: Devices<S>,
    /// True if the CPU time of submitting a direct request passes before the elevator gets it.
    pub(super) works_first: bool,
    /// The task that runs at this instant and still has its processor.
    pub(super) on_cpu: Option<Task>,
    pub(super) cache: PageCache,
    pub(super) files: Vec<File>,
    pub(super) waiting: Waiting,
    pub(super) balance: Balance,
    pub(super) processes: Processes,
    pub(super) flusher: Flusher,
    pub(super) journal: Option<Journal>,
    /// Tasks that run at this instant.
    pub(super) ready: VecDeque<Task>,
    pub(super) direct: Slab<DirectIo>,
    pub(super) page_ios: Slab<PageIo>,
    pub(super) scratch: Scratch,
    pub(super) failures: Failures,
    /// Files that lost pages, until a sync reports the error.
    pub(super) files_with_errors: BTreeSet<u32>,
    /// The jobs that share their requests, by `flow_id`.
    pub(super) flows: BTreeMap<u32, FlowGroup>,
    /// The checks for a steady rate, each with the start of its first process.
    pub(super) steady: Vec<(SteadyRate, Option<u64>)>,
    /// The task of each submitter.
    pub(super) tasks: Vec<Task>,
    pub(super) unfinished: Unfinished,
    /// The activity of the recorded processes.
    pub(super) activity: Activity,
    pub(super) watchdog: Watchdog,
}

impl<S: Observer> World<S> {
    /// The state of a task. A world without a journal has no such task, and the flusher's stands
    /// for it.
    #[inline]
    pub(super) fn task_mut(&mut self, task: Task) -> &mut TaskState {
        match (task, &mut self.journal) {
            (Task::Process(id), _) => &mut self.processes[id].task,
            (Task::Journal, Some(journal)) => &mut journal.task,
            (Task::Flusher | Task::Journal, _) => &mut self.flusher.task,
        }
    }

    /// The submitter that a task is.
    #[inline]
    pub(super) fn submitter_of(&mut self, task: Task) -> SubmitterId {
        self.task_mut(task).submitter
    }

    /// The task that a submitter belongs to.
    pub(super) fn task_of(&self, submitter: SubmitterId) -> Task {
        self.tasks.get(submitter.0 as usize).copied().unwrap_or(Task::Flusher)
    }
}

/// The tasks that sleep until something of the page cache changes.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Processes that wait for a page, by file: the process and the page.
    pub(super) pages: Vec<Vec<(ProcessId, u64)>>,
    /// Tasks that wait for the end of a file's write-back.
    pub(super) syncs: Vec<Task>,
    /// Writers that wait until fewer pages are dirty.
    pub(super) throttled: Vec<ProcessId>,
    /// Tasks that wait until the queue is no longer congested for writes.
    pub(super) congestion: Vec<Task>,
}

/// The processes that have not ended.
#[derive(Debug)]
pub(super) struct Unfinished {
    pub(super) all: usize,
    /// Their number for each job.
    pub(super) by_job: Vec<u32>,
}

/// The counters that show that a simulation is stuck.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    /// Events since the last one that let a task or a request go on.
    pub(super) idle_events: u32,
    /// Steps of tasks at this instant.
    pub(super) steps_at_once: u32,
}

/// Buffers whose memory is used again.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Tokens of completed bios.
    pub(super) tokens: Vec<u64>,
    /// Runs of pages: the first page and the number of pages.
    pub(super) runs: Vec<(u64, u64)>,
}

/// A bio that moves pages between the disk and the page cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageIo {
    pub(super) file: u32,
    pub(super) first: u64,
    pub(super) pages: u64,
}

/// The kind of I/O that a bio belongs to, with its number; encoded in the bio's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Direct(u32),
    PageRead(u32),
    PageWrite(u32),
    /// A bio of the journal's thread.
    Logged,
    /// A cache flush that a process waits for.
    Flushed(ProcessId),
}

impl Token {
    pub(super) fn encode(self) -> u64 {
        let (kind, slot) = match self {
            Token::Direct(slot) => (0, slot),
            Token::PageRead(slot) => (1, slot),
            Token::PageWrite(slot) => (2, slot),
            Token::Logged => (3, 0),
            Token::Flushed(process) => (4, process.0),
        };
        kind << 32 | u64::from(slot)
    }

    pub(super) fn decode(token: u64) -> Token {
        let slot = token as u32;
        match token >> 32 {
            0 => Token::Direct(slot),
            1 => Token::PageRead(slot),
            2 => Token::PageWrite(slot),
            3 => Token::Logged,
            _ => Token::Flushed(ProcessId(slot)),
        }
    }
}

/// True if a task continues with another step or sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    Block,
}
