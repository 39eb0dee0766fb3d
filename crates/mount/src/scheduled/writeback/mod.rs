//! Write-back by the mount: dirty data reach the disk as scheduled requests of the process that
//! wrote them.
//!
//! The kernel writes back from its own threads, so that the elevator of a disk sees all writers as
//! one. Here each file with dirty data is recorded with its dirty ranges and its last writer
//! ([`table`]). Data that are old enough, or above the background limit, become asynchronous writes
//! of at most 1 MiB in the device queue. When such a write is dispatched,
//! sync_file_range(2) has the kernel write exactly that range, and waits for it ([`write`]).
//! Writers wait while dirty memory is above its limit ([`throttle`]).
//!
//! Each disk has a tracker with a lock and a thread of its own, so that a slow or dead disk does
//! not delay the users of another.

mod dirty_tracker;
mod errors;
mod owners;
mod table;
#[cfg(test)]
mod tests;
mod throttle;
mod work;
mod write;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use hoistway_config::mount::MountTerms;
use hoistway_machine::{Root, memory_bytes};

use super::system;
use crate::Backing;
use crate::gate::REQUEST_BYTES_MAX;
use errors::UnreportedErrors;

pub(super) use dirty_tracker::DirtyTracker;
#[cfg(feature = "simulated")]
pub(super) use dirty_tracker::Next;
pub use work::SyncGuard;

/// Default age in ns at which dirty data are written back: 1 s.
const AGE_NS: u64 = 1_000_000_000;
/// Default limits as fractions of the machine's memory: background write-back from a twentieth on,
/// throttled writers from a tenth on. Both are half of the kernel's own dirty_background_ratio and
/// dirty_ratio, so that this write-back acts first.
const BACKGROUND_PART: u64 = 20;
const LIMIT_PART: u64 = 10;
/// Assumed memory of the machine in bytes if it cannot be read: 1 GiB.
const MEMORY_BYTES: u64 = 1 << 30;
/// Fraction of the process's descriptor limit available to files with dirty data. A file takes
/// two descriptors while it is written.
const FILES_PART: u64 = 8;

/// Device number (`st_dev`) and inode number of a file.
pub(super) type FileKey = (u64, u64);

/// Limits and counts shared by all disks.
pub(super) struct WriteBackShared {
    /// Dirty bytes of all disks above which data are written back regardless of age.
    background: u64,
    /// Dirty bytes of all disks above which writers wait.
    limit: u64,
    /// Age in ns at which data are written back.
    age_ns: u64,
    /// Disks with dirty data, which share the limits in equal parts.
    disks: AtomicU64,
    /// Files with dirty data, and their maximum number.
    files: AtomicUsize,
    files_max: AtomicUsize,
    /// Write-back errors that no handle has reported.
    unreported: UnreportedErrors,
    /// Write-back has stopped.
    is_closed: AtomicBool,
}

impl WriteBackShared {
    /// Creates the limits of a configuration. Values that are not configured follow from the memory
    /// of the machine.
    pub fn new(terms: &MountTerms) -> WriteBackShared {
        let memory = memory_bytes(&Root::machine()).unwrap_or(MEMORY_BYTES);
        let limit = terms.dirty_limit.unwrap_or(memory / LIMIT_PART).max(REQUEST_BYTES_MAX);
        let background = terms.dirty_background.unwrap_or(memory / BACKGROUND_PART).min(limit);
        WriteBackShared {
            background,
            limit,
            age_ns: terms.dirty_age_ns.unwrap_or(AGE_NS),
            disks: AtomicU64::new(0),
            files: AtomicUsize::new(0),
            files_max: AtomicUsize::new(usize::MAX),
            unreported: UnreportedErrors::default(),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Returns the background limit and the throttling limit in bytes.
    pub fn bounds(&self) -> (u64, u64) {
        (self.background, self.limit)
    }

    /// Stops write-back.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Returns one disk's part of a limit.
    fn disk_share(&self, bytes: u64) -> u64 {
        bytes / self.disks.load(Ordering::Relaxed).max(1)
    }

    /// Returns true if a file has dirty data.
    pub fn has_files(&self) -> bool {
        self.files.load(Ordering::Relaxed) > 0
    }

    /// Returns true if more than half of the maximum number of files have dirty data.
    fn is_near_file_limit(&self) -> bool {
        self.files.load(Ordering::Relaxed) > self.files_max.load(Ordering::Relaxed) / 2
    }

    /// Returns true if one more file may have dirty data. The descriptor limit may change and is
    /// read again.
    fn admits_file(&self) -> bool {
        let most = system::descriptors_max() / FILES_PART;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.files_max.store(most, Ordering::Relaxed);
        self.files.load(Ordering::Relaxed) < most
    }
}

/// Returns the key of an open file.
fn file_key(backing: &Backing) -> FileKey {
    (backing.device, backing.inode)
}
