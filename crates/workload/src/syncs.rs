//! The syncs between the requests of a job: `fsync` and `fdatasync`.

use hoistway_fio::{Direction, Job};

use crate::request::IoUnit;

/// A sync of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSync {
    /// The file's index.
    pub file: usize,
    /// True for `fdatasync`.
    pub data_only: bool,
}

/// What a process does to a file through its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A read, a write or a trim.
    Request,
    /// `fsync` or `fdatasync` between requests.
    Sync,
}

/// Tells when a sync is due, as in fio 3.33: before a request, if the number of writes so far is a
/// multiple of the option and what completed last was no sync. So a job that reads and writes also
/// syncs between reads. An engine that queues syncs gets one after the other until the first
/// completes.
#[derive(Clone, Debug)]
pub(crate) struct Syncs {
    fsync: u64,
    fdatasync: u64,
    writes: u64,
    /// True if what completed last was a sync.
    is_synced: bool,
}

impl Syncs {
    pub fn new(job: &Job) -> Syncs {
        Syncs {
            fsync: u64::from(job.syncs.fsync),
            fdatasync: u64::from(job.syncs.fdatasync),
            writes: 0,
            is_synced: false,
        }
    }

    /// Counts a request.
    pub fn made(&mut self, unit: &IoUnit) {
        self.writes += u64::from(unit.direction == Direction::Write);
    }

    /// Records that a sync, or a request, completed.
    pub fn completed(&mut self, work: Work) {
        self.is_synced = work == Work::Sync;
    }

    /// A pass that ends at the end of its files syncs, and so does the next one before its first
    /// request.
    pub fn begin_pass(&mut self) {
        self.is_synced = false;
    }

    /// Returns true if an fdatasync is due, false for an fsync; `None` if no sync is due.
    pub fn due(&self) -> Option<bool> {
        let is_due = |every: u64| every > 0 && self.writes.is_multiple_of(every);
        if self.writes == 0 || self.is_synced || !(is_due(self.fsync) || is_due(self.fdatasync)) {
            return None;
        }
        Some(!is_due(self.fsync))
    }
}
