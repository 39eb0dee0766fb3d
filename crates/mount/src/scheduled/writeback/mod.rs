//! Write-back by the mount: what was written into memory goes to the disk as requests of whoever wrote it.
//!
//! Left to itself the kernel writes back from threads of its own, so that a disk below sees all writers as one. Here each file with data in memory is known with
//! its ranges and its last writer ([`table`]). When they are old enough, or too many, they become asynchronous writes of at most 1 MiB in the queue of the disk; when the turn
//! of one comes, `sync_file_range` has the kernel write just that range, and waits for it ([`write`]). Writers wait while too much is in memory ([`room`]).
//!
//! Each disk has a ledger of its own, with its own lock and its own thread: one that is slow, or dead, is no affair of those who use another.

mod errors;
mod ledger;
mod owners;
mod room;
mod table;
#[cfg(test)]
mod tests;
mod work;
mod write;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use hoistway_serve::config::mount::MountTerms;
use rustix::process::{Resource, getrlimit};

use super::queue::REQUEST_BYTES_MAX;
use crate::Backing;
use errors::Untold;

pub(super) use ledger::Ledger;
pub use work::Syncing;

/// How old data become unless told: 1 s.
const AGE_NS: u64 = 1_000_000_000;
/// Of the machine's memory a twentieth is written back in the background, and writers wait from a tenth on: half of what the kernel's own write-back has
/// (dirty_background_ratio, dirty_ratio), so that this one is first.
const BACKGROUND_PART: u64 = 20;
const LIMIT_PART: u64 = 10;
/// Of the descriptors that this process may have, an eighth is for files with data in memory. While they are written, each has two.
const FILES_PART: u64 = 8;

/// File system and inode.
pub(super) type File = (u64, u64);

/// What holds for all disks.
pub(super) struct WriteBack {
    background: u64,
    limit: u64,
    age_ns: u64,
    /// Disks with data in memory: they share the limit in equal parts.
    disks: AtomicU64,
    /// Files with data in memory, and how many there may be.
    files: AtomicUsize,
    files_max: AtomicUsize,
    untold: Untold,
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
            untold: Untold::default(),
            is_closed: AtomicBool::new(false),
        }
    }

    /// From how much on it is written in the background, and writers wait, in bytes.
    pub fn bounds(&self) -> (u64, u64) {
        (self.background, self.limit)
    }

    /// Nothing is written back any more.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// The part of a disk of so many bytes.
    fn part(&self, bytes: u64) -> u64 {
        bytes / self.disks.load(Ordering::Relaxed).max(1)
    }

    fn is_crowded(&self) -> bool {
        self.files.load(Ordering::Relaxed) > self.files_max.load(Ordering::Relaxed) / 2
    }

    /// Whether one more file may have data in memory. How many descriptors there are may change: it is asked anew.
    fn takes_file(&self) -> bool {
        let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / FILES_PART;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.files_max.store(most, Ordering::Relaxed);
        self.files.load(Ordering::Relaxed) < most
    }
}

fn file_of(backing: &Backing) -> File {
    (backing.device, backing.inode)
}

/// The machine's memory in bytes; 1 GiB where it does not tell.
fn memory_bytes() -> u64 {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(1 << 30, |kib| kib << 10)
}
