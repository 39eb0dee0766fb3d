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
//! not
//! delay the users of another.

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
use rustix::process::{Resource, getrlimit};

use super::queue::REQUEST_BYTES_MAX;
use crate::Backing;
use errors::UnreportedErrors;

pub(super) use dirty_tracker::DirtyTracker;
pub use work::SyncGuard;

/// Default age in ns at which dirty data are written back: 1 s.
const AGE_NS: u64 = 1_000_000_000;
/// Default limits as fractions of the machine's memory: background write-back from a twentieth on,
/// throttled writers from a tenth on. Both are half of the kernel's own dirty_background_ratio and
/// dirty_ratio, so that this write-back acts first.
const BACKGROUND_PART: u64 = 20;
const LIMIT_PART: u64 = 10;
/// Fraction of the process's descriptor limit available to files with dirty data. A file that is
/// open takes two descriptors while it is written.
const FILES_PART: u64 = 8;

/// Device number (`st_dev`) and inode number of a file.
pub(super) type File = (u64, u64);

/// Limits and counts shared by all disks.
pub(super) struct WriteBack {
    background: u64,
    limit: u64,
    age_ns: u64,
    /// Disks with dirty data, which share the limits in equal parts.
    disks: AtomicU64,
    /// Files with dirty data, and their maximum number.
    files: AtomicUsize,
    files_max: AtomicUsize,
    unreported: UnreportedErrors,
    is_closed: AtomicBool,
}

impl WriteBack {
    pub fn new(terms: &MountTerms) -> WriteBack {
        let memory = memory_bytes();
        let limit = terms.dirty_limit.unwrap_or(memory / LIMIT_PART).max(REQUEST_BYTES_MAX);
        let background = terms.dirty_background.unwrap_or(memory / BACKGROUND_PART).min(limit);
        WriteBack {
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

    fn is_near_file_limit(&self) -> bool {
        self.files.load(Ordering::Relaxed) > self.files_max.load(Ordering::Relaxed) / 2
    }

    /// Returns true if one more file may have dirty data. The descriptor limit may change and is
    /// read again.
    fn admits_file(&self) -> bool {
        let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / FILES_PART;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.files_max.store(most, Ordering::Relaxed);
        self.files.load(Ordering::Relaxed) < most
    }
}

fn file_of(backing: &Backing) -> File {
    (backing.device, backing.inode)
}

/// Returns the machine's memory in bytes; 1 GiB if it cannot be read.
fn memory_bytes() -> u64 {
    let clear = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = clear.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(1 << 30, |kib| kib << 10)
}
