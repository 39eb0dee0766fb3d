//! What is open.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use fuser::BackingId;
use rustc_hash::FxHashMap;
use rustix::fs::Statx;
use rustix::io::Errno;
use slab::Slab;

use super::nodes::lock;
use crate::backing::Backing;
use crate::gate::Asker;

const SHARDS: usize = 16;

/// For how long a time of change does not tell one change from the next: the coarsest clock of file systems ticks a hundred times a second.
const TICK_NS: i64 = 10_000_000;

/// Things that the kernel names by a number that we give: open files, open directories.
#[derive(Debug)]
pub(super) struct Open<T> {
    shards: Vec<RwLock<Slab<Arc<T>>>>,
}

impl<T> Open<T> {
    pub(super) fn new() -> Open<T> {
        Open { shards: (0..SHARDS).map(|_| RwLock::new(Slab::new())).collect() }
    }

    /// Takes one in; `near` spreads them.
    pub(super) fn insert(&self, thing: Arc<T>, near: u64) -> u64 {
        let shard = near as usize % SHARDS;
        let index = self.shards[shard].write().unwrap_or_else(PoisonError::into_inner).insert(thing);
        (index * SHARDS + shard) as u64
    }

    pub(super) fn get(&self, number: u64) -> Result<Arc<T>, Errno> {
        let (index, shard) = (number as usize / SHARDS, number as usize % SHARDS);
        let things = self.shards[shard].read().unwrap_or_else(PoisonError::into_inner);
        things.get(index).cloned().ok_or(Errno::BADF)
    }

    pub(super) fn remove(&self, number: u64) -> Option<Arc<T>> {
        let (index, shard) = (number as usize / SHARDS, number as usize % SHARDS);
        self.shards[shard].write().unwrap_or_else(PoisonError::into_inner).try_remove(index)
    }
}

/// A file that was opened once.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) backing: Arc<Backing>,
    /// What all its openings share.
    pub(super) shared: Arc<Shared>,
    /// It was opened `O_DIRECT`.
    pub(super) direct: bool,
    /// Something was written.
    pub(super) wrote: AtomicBool,
    /// The error of write-back that the next sync has to tell, as `errno` has it; 0: none.
    pub(super) owed: AtomicI32,
    /// Its operations go from the kernel to the file below.
    pub(super) bypass: Option<Arc<BackingId>>,
    /// The same file without `O_DIRECT`, for pages that a mapping wrote: the last of them ends where the file does.
    pub(super) buffered: OnceLock<Arc<Backing>>,
}

/// What all openings of a file share, for as long as the kernel knows the file.
#[derive(Debug, Default)]
pub(super) struct Shared(Mutex<State>);

/// Its state.
#[derive(Debug, Default)]
pub(super) struct State {
    /// How often it is open now, and of that, how often past us.
    pub(super) opened: u32,
    pub(super) bypassed: u32,
    pub(super) bypass: Weak<BackingId>,
    /// Something was written by one that was closed since it was opened first.
    pub(super) wrote: bool,
    /// Its last name was taken away here, as far as could be told.
    pub(super) removed: bool,
    /// Who opened it for writing last: in whose name the kernel writes back what it has gathered.
    pub(super) writer: Option<Asker>,
    /// A descriptor of it, while it is open.
    pub(super) known: Weak<Backing>,
    /// What it looked like when its last data went through us.
    stamp: Option<Stamp>,
}

/// What changes when a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    size: u64,
    modified: (i64, u32),
    changed: (i64, u32),
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

impl State {
    /// Whether pages of the file that the kernel keeps are still those of the file, as it looks now. From now on they are.
    pub(super) fn keeps_pages(&mut self, now: &Statx) -> bool {
        let kept = self.stamp == Some(stamp_of(now));
        self.remember(now);
        kept
    }

    /// The kernel's pages are those of the file as it looks now.
    pub(super) fn remember(&mut self, now: &Statx) {
        let stamp = stamp_of(now);
        // A file that has changed within the tick that its time of change counts may change again without that being seen.
        self.stamp = (since_ns(stamp.changed) > TICK_NS).then_some(stamp);
    }
}

fn stamp_of(found: &Statx) -> Stamp {
    Stamp {
        size: found.stx_size,
        modified: (found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec),
        changed: (found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec),
    }
}

fn since_ns((seconds, nanoseconds): (i64, u32)) -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    now.tv_sec
        .saturating_sub(seconds)
        .saturating_mul(1_000_000_000)
        .saturating_add(now.tv_nsec - i64::from(nanoseconds))
}

/// What openings share, by the number of the file.
#[derive(Debug, Default)]
pub(super) struct Files(Mutex<FxHashMap<u64, Arc<Shared>>>);

impl Files {
    /// Of a file that is opened.
    pub(super) fn of(&self, number: u64) -> Arc<Shared> {
        lock(&self.0).entry(number).or_default().clone()
    }

    /// Of a file that may have been opened.
    pub(super) fn get(&self, number: u64) -> Option<Arc<Shared>> {
        lock(&self.0).get(&number).cloned()
    }

    /// A descriptor of a file that is open: its attributes are in memory.
    pub(super) fn descriptor(&self, number: u64) -> Option<Arc<Backing>> {
        self.get(number).and_then(|shared| shared.state().known.upgrade())
    }

    /// The kernel has forgotten the file.
    pub(super) fn forget(&self, number: u64) {
        lock(&self.0).remove(&number);
    }

    /// Whether no file was opened that the kernel still knows.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }
}

impl OpenFile {
    /// Notes that data went into it.
    pub(super) fn note_written(&self) {
        if !self.wrote.load(Ordering::Relaxed) {
            self.wrote.store(true, Ordering::Relaxed);
        }
    }
}
