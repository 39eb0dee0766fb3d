//! The limit of dirty memory and the writers that wait for it.
//!
//! Below the limit every writer continues. Above it an owner of more than its share waits until
//! data
//! are on the disk; an owner of less continues, because otherwise an owner whose writes are never
//! dispatched would block all others. The amount above the limit depends on the I/O class: the idle
//! class has the smallest, because its writes may stay queued forever.

use std::collections::VecDeque;

use hoistway_core::Class;
use rustc_hash::FxHashMap;

use super::super::issuers::IssuerId;
use super::owners::Owners;
use crate::Job;

/// Minimum share of an owner in bytes, however many owners there are, up to a sixteenth of the
/// limit.
const FLOOR_BYTES: u64 = 4 << 20;
/// Minimum base in bytes for the allowance above the limit, so that a small limit admits a few of
/// the largest writes.
const BEYOND_BYTES: u64 = 8 << 20;

/// A write that waits for dirty memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writer {
    /// The owner of the data.
    pub issuer_id: IssuerId,
    /// The issuer waits for the reply, so the write is void if the issuer is killed. Otherwise only
    /// the kernel waits.
    pub is_cancellable: bool,
    /// Length in bytes.
    pub bytes: u64,
}

/// Dirty bytes of a disk and their limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirtyLevel {
    pub dirty: u64,
    pub limit: u64,
}

/// The waiting writers in order of arrival.
#[derive(Default)]
pub(super) struct WriterQueue(VecDeque<(Writer, Class, Job)>);

impl DirtyLevel {
    /// Returns true if `bytes` more stay within the limit. A write of any size is admitted while
    /// nothing is dirty.
    pub fn has_room(self, bytes: u64) -> bool {
        self.dirty == 0 || self.dirty.saturating_add(bytes) <= self.limit
    }

    /// Returns true if an owner of `own` dirty bytes, one of `owing` owners, may exceed the limit.
    /// The class is computed only if needed.
    pub fn below_share(self, own_bytes: u64, dirty_owners: usize, bytes: u64, class: impl FnOnce() -> Class) -> bool {
        let count = dirty_owners as u64 + u64::from(own_bytes == 0);
        let disk_share = (self.limit / count.max(1)).max(FLOOR_BYTES.min(self.limit / 16));
        if own_bytes > 0 && own_bytes.saturating_add(bytes) > disk_share {
            return false;
        }
        let beyond = self.limit.max(BEYOND_BYTES);
        let then = self.dirty.saturating_add(bytes);
        let within = |most: u64| then <= self.limit.saturating_add(most);
        within(beyond / 4)
            || within(match class() {
                Class::Idle => beyond / 4,
                Class::RealTime => beyond,
                Class::None | Class::BestEffort => beyond / 4 * 3,
            })
    }
}

impl WriterQueue {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, writer: Writer, class: Class, job: Job) {
        self.0.push_back((writer, class, job));
    }

    /// Removes and returns the jobs that the limit now admits.
    pub fn admit(&mut self, level: DirtyLevel, owners: &Owners) -> Vec<Job> {
        let mut level = level;
        let mut come: FxHashMap<IssuerId, u64> = FxHashMap::default();
        let (mut jobs, mut left) = (Vec::new(), VecDeque::new());
        for (writer, class, job) in self.0.drain(..) {
            let Writer { issuer_id, bytes, .. } = writer;
            let brought = come.entry(issuer_id).or_default();
            let own_bytes = owners.dirty_of(issuer_id) + *brought;
            // The remaining room is reserved for the first waiting writer.
            let is_first = left.is_empty() && level.has_room(bytes);
            if is_first || level.below_share(own_bytes, owners.dirty_owners(), bytes, || class) {
                level.dirty += bytes;
                *brought += bytes;
                jobs.push(job);
            } else {
                left.push_back((writer, class, job));
            }
        }
        self.0 = left;
        jobs
    }

    /// Returns the IDs of the threads that wait for their replies.
    pub fn waiting_threads(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().filter(|(writer, ..)| writer.is_cancellable).map(|(writer, ..)| writer.issuer_id.0)
    }

    /// Cancels the writes for which a thread waits.
    pub fn cancel(&mut self, tid: u32) -> Vec<Job> {
        let is_cancellable = |(writer, ..): &(Writer, Class, Job)| writer.is_cancellable && writer.issuer_id.0 == tid;
        let (cancelled, others): (Vec<_>, Vec<_>) = self.0.drain(..).partition(is_cancellable);
        self.0 = others.into();
        cancelled.into_iter().map(|(_, _, job)| job).collect()
    }

    /// Removes and returns all jobs.
    pub fn take(&mut self) -> Vec<Job> {
        self.0.drain(..).map(|(_, _, job)| job).collect()
    }
}
