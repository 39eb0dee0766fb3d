//! Open files and the state shared by all handles of a file.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use fuser::BackingId;
use rustix::fs::Statx;
use rustix::io::Errno;
use slab::Slab;

use super::held_descriptor::HeldDescriptor;
use super::locks::lock;
use crate::backing::Backing;
use crate::gate::Caller;

/// Number of locks of a handle table.
const SHARDS: usize = 16;

/// Granularity of file system timestamps in ns: the coarsest clock ticks a hundred times a second.
const TICK_NS: i64 = 10_000_000;

/// Objects that the kernel names by a handle number: open files and open directories.
#[derive(Debug)]
pub(super) struct HandleTable<T> {
    shards: Vec<RwLock<Slab<Arc<T>>>>,
}

impl<T> HandleTable<T> {
    pub(super) fn new() -> HandleTable<T> {
        HandleTable { shards: (0..SHARDS).map(|_| RwLock::new(Slab::new())).collect() }
    }

    /// Adds an object; `near` selects the shard.
    pub(super) fn insert(&self, object: Arc<T>, near: u64) -> u64 {
        let shard = near as usize % SHARDS;
        let index = self.shards[shard].write().unwrap_or_else(PoisonError::into_inner).insert(object);
        (index * SHARDS + shard) as u64
    }

    pub(super) fn get(&self, number: u64) -> Result<Arc<T>, Errno> {
        let (index, shard) = (number as usize / SHARDS, number as usize % SHARDS);
        let objects = self.shards[shard].read().unwrap_or_else(PoisonError::into_inner);
        objects.get(index).cloned().ok_or(Errno::BADF)
    }

    pub(super) fn remove(&self, number: u64) -> Option<Arc<T>> {
        let (index, shard) = (number as usize / SHARDS, number as usize % SHARDS);
        self.shards[shard].write().unwrap_or_else(PoisonError::into_inner).try_remove(index)
    }

    /// Reduces the tables to the size that the objects need.
    pub(super) fn shrink(&self) {
        for shard in &self.shards {
            shard.write().unwrap_or_else(PoisonError::into_inner).shrink_to_fit();
        }
    }
}

/// An open file handle.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) backing: Arc<Backing>,
    /// The node number of the file.
    pub(super) number: u64,
    /// State shared by all handles of the file.
    pub(super) shared: Arc<SharedFile>,
    /// The file was opened for writing.
    pub(super) writes: bool,
    /// The file is append-only (`chattr +a`): each write to `backing` goes to the end of the file.
    pub(super) is_append_only: bool,
    /// The file was opened with `O_DIRECT`.
    pub(super) direct: bool,
    /// Data were written through this handle.
    pub(super) has_written: AtomicBool,
    /// The write-back error (`errno`) that the next fsync reports; 0 for none.
    pub(super) pending_error: AtomicI32,
    /// The FUSE passthrough registration, if the kernel reads and writes the file below directly.
    pub(super) bypass: Option<Arc<BackingId>>,
    /// The same file without `O_DIRECT`, for pages written through a mapping: the last page ends at
    /// the end of the file.
    pub(super) buffered: OnceLock<Arc<Backing>>,
}

/// State shared by all handles of a file, for as long as the kernel knows the inode. It belongs to
/// a node, so that a later file with the same inode number has a state of its own.
#[derive(Debug, Default)]
pub(super) struct SharedFile(Mutex<FileState>);

/// The lockable part of [`SharedFile`].
#[derive(Debug, Default)]
pub(super) struct FileState {
    /// Number of open handles.
    pub(super) opened: u32,
    /// Number of open handles for writing.
    pub(super) writers: u32,
    /// The kernel's write-back cache holds a size that the file below did not reach, because a
    /// write of cached data has failed.
    pub(super) has_lost_writes: bool,
    /// Number of open handles that bypass this process.
    pub(super) bypassed: u32,
    /// The FUSE passthrough registration of the open handles.
    pub(super) bypass: Weak<BackingId>,
    /// A handle that wrote was closed since the file was first opened.
    pub(super) has_written: bool,
    /// The last name was removed through this mount, as far as known.
    pub(super) is_unlinked: bool,
    /// The last process that opened the file for writing; the kernel's write-back is charged to it.
    pub(super) writer: Option<Caller>,
    /// A descriptor of the file while it is open.
    pub(super) descriptor: Weak<Backing>,
    /// Holds the inode once its last name was removed through this mount.
    pub(super) removed: Option<Removed>,
    /// Size and timestamps after the last change through this mount.
    reference: Option<ChangeStamp>,
}

/// An inode without a name that the kernel still knows.
#[derive(Debug)]
pub(super) struct Removed {
    pub(super) held: HeldDescriptor,
    /// The process that removed the last name; the blocks are freed on its account.
    pub(super) remover: Caller,
}

/// Size and timestamps, which change with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChangeStamp {
    size: u64,
    modified: (i64, u32),
    changed: (i64, u32),
}

impl SharedFile {
    pub(super) fn state(&self) -> MutexGuard<'_, FileState> {
        lock(&self.0)
    }
}

impl FileState {
    /// Returns true if the next open of the file depends on this state.
    pub(super) fn is_useful(&self) -> bool {
        self.opened > 0 || self.reference.is_some() || self.removed.is_some() || self.descriptor.strong_count() > 0
    }

    /// Returns a descriptor of the file, whatever it was opened for.
    pub(super) fn any_descriptor(&self) -> Option<Arc<Backing>> {
        self.descriptor.upgrade().or_else(|| self.removed.as_ref().map(|removed| removed.held.backing.clone()))
    }

    /// Returns true if the kernel's cached pages are still valid for a file with attributes `now`,
    /// and makes `now` the reference.
    pub(super) fn keeps_pages(&mut self, now: &Statx) -> bool {
        let kept = self.reference == Some(change_stamp(now));
        self.remember(now);
        kept
    }

    /// Makes `now` the reference for [`FileState::keeps_pages`].
    pub(super) fn remember(&mut self, now: &Statx) {
        let reference = change_stamp(now);
        // A file that changed within the last timestamp tick may change again with the same
        // timestamp.
        self.reference = (since_ns(reference.changed) > TICK_NS).then_some(reference);
    }
}

fn change_stamp(found: &Statx) -> ChangeStamp {
    ChangeStamp {
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

impl OpenFile {
    /// Records that data were written through this handle.
    pub(super) fn note_written(&self) {
        if !self.has_written.load(Ordering::Relaxed) {
            self.has_written.store(true, Ordering::Relaxed);
        }
    }
}
