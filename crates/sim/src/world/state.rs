//! The state of a world.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hoistway_core::Kind;
use hoistway_workload::endings::SteadyRate;

use super::device::Device;
use super::job_state::FlowGroup;
use super::process::{DirectIo, Process};
use super::request::Failures;
use super::slab::Slab;
use super::tasks::{Flusher, Journal};
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
    pub(super) device: Device<S>,
    /// The drives after the first.
    pub(super) further_devices: Vec<Device<S>>,
    /// True if the CPU time of submitting a direct request passes before the elevator gets it.
    pub(super) works_first: bool,
    /// The task that runs at this instant and still has its processor.
    pub(super) on_cpu: Option<u32>,
    pub(super) cache: PageCache,
    pub(super) files: Vec<File>,
    /// Tasks that wait for a page, by file: the task and the page.
    pub(super) page_waiters: Vec<Vec<(u32, u64)>>,
    /// Tasks that wait for the end of a file's write-back.
    pub(super) sync_waiters: Vec<u32>,
    /// Writers that wait until fewer pages are dirty.
    pub(super) throttled: Vec<u32>,
    /// Tasks that wait until the queue is no longer congested for writes.
    pub(super) congestion_waiters: Vec<u32>,
    pub(super) balance: Balance,
    pub(super) processes: Vec<Process>,
    pub(super) flusher: Flusher,
    pub(super) journal: Option<Journal>,
    /// Tasks that run at this instant.
    pub(super) ready: VecDeque<u32>,
    pub(super) direct: Slab<DirectIo>,
    pub(super) page_ios: Slab<PageIo>,
    pub(super) tokens: Vec<u64>,
    pub(super) failures: Failures,
    /// Files that lost pages, until a sync reports the error.
    pub(super) files_with_errors: BTreeSet<u32>,
    pub(super) runs: Vec<(u64, u64)>,
    /// The jobs that share their requests, by `flow_id`.
    pub(super) flows: BTreeMap<u32, FlowGroup>,
    /// The checks for a steady rate, each with the start of its first process.
    pub(super) steady: Vec<(SteadyRate, Option<u64>)>,
    /// The processes of the device's submitters behind those of all tasks.
    pub(super) owners: Vec<u32>,
    /// Number of each job's processes that have not ended.
    pub(super) unfinished_by_job: Vec<u32>,
    pub(super) unfinished: usize,
    /// The activity of the recorded processes.
    pub(super) activity: Activity,
    pub(super) idle_events: u32,
    pub(super) steps_at_once: u32,
}

impl<S: Observer> World<S> {
    /// The drive with this index and its queue.
    #[inline]
    pub(super) fn device_mut(&mut self, drive: u32) -> &mut Device<S> {
        match (drive as usize).checked_sub(1) {
            Some(further) => &mut self.further_devices[further],
            None => &mut self.device,
        }
    }

    /// Returns true if a queue has no room for a bio of a task, which sleeps until it has.
    #[inline]
    pub(super) fn is_held_back(&self, task: u32) -> bool {
        self.device.is_held_back(task) || self.further_devices.iter().any(|device| device.is_held_back(task))
    }
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
    Flushed(u32),
}

impl Token {
    pub(super) fn encode(self) -> u64 {
        let (kind, slot) = match self {
            Token::Direct(slot) => (0, slot),
            Token::PageRead(slot) => (1, slot),
            Token::PageWrite(slot) => (2, slot),
            Token::Logged => (3, 0),
            Token::Flushed(task) => (4, task),
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
            _ => Token::Flushed(slot),
        }
    }
}

/// True if a task continues with another step or sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    Block,
}
