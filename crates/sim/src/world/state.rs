//! The state of a world.

use std::collections::{BTreeSet, VecDeque};

use hoistway_core::Kind;

use super::device::Device;
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

pub(crate) struct World<S: Observer> {
    pub(super) host: HostConfig,
    pub(super) elevator: Kind,
    pub(super) seed: u64,
    pub(super) now_ns: u64,
    pub(super) events: Events,
    pub(super) cpus: Cpus,
    pub(super) device: Device<S>,
    pub(super) cache: PageCache,
    pub(super) files: Vec<File>,
    /// Tasks that wait for a page, by file.
    pub(super) page_waiters: Vec<Vec<(u32, u64)>>,
    /// Tasks that wait until nothing of any file is being written any more.
    pub(super) sync_waiters: Vec<u32>,
    /// Writers that wait until fewer pages are dirty.
    pub(super) throttled: Vec<u32>,
    /// Tasks that wait until the queue takes writes again.
    pub(super) congestion_waiters: Vec<u32>,
    pub(super) balance: Balance,
    pub(super) processes: Vec<Process>,
    pub(super) flusher: Flusher,
    pub(super) journal: Option<Journal>,
    /// Tasks that go on at this instant.
    pub(super) ready: VecDeque<u32>,
    pub(super) direct: Slab<DirectIo>,
    pub(super) page_ios: Slab<PageIo>,
    pub(super) tokens: Vec<u64>,
    pub(super) failures: Failures,
    /// Files of which pages were lost that no sync has told of.
    pub(super) files_with_errors: BTreeSet<u32>,
    pub(super) runs: Vec<(u64, u64)>,
    /// Processes of each job that have not ended.
    pub(super) unfinished_by_job: Vec<u32>,
    pub(super) unfinished: usize,
    pub(super) idle_events: u32,
    pub(super) steps_at_once: u32,
}

/// A bio between disk and page cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageIo {
    pub(super) file: u32,
    pub(super) first: u64,
    pub(super) pages: u64,
}

/// What a bio's token says: what kind of I/O it belongs to, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Direct(u32),
    PageRead(u32),
    PageWrite(u32),
    /// Of the journal's thread.
    Logged,
    /// A flush that a process waits for.
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

/// Whether a step led to another one, or to a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    Block,
}
