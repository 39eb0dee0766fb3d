//! The limit of dirty memory of one disk, and the writes that wait for it.
//!
//! Below the limit every write continues. Above it an owner of more than its share waits until data
//! are on the disk; an owner of less continues, because otherwise an owner whose writes are never
//! dispatched would block all others. The amount above the limit depends on the I/O class: the idle
//! class has the smallest, because its writes may stay queued forever.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hoistway_core::Class;
use rustc_hash::FxHashMap;

use super::super::issuers::IssuerId;
use super::WriteBackShared;
use super::owners::Owners;
use crate::Job;

/// Minimum share of an owner in bytes, however many owners there are, up to a sixteenth of the
/// limit: 4 MiB.
const SHARE_BYTES_MIN: u64 = 4 << 20;
/// Minimum base in bytes for the allowance above the limit, so that a small limit admits a few of
/// the largest writes: 8 MiB.
const ALLOWANCE_BYTES_MIN: u64 = 8 << 20;

/// The throttle of one disk: dirty bytes, their limit, and the queue of waiting writes.
///
/// [`has_room`](DirtyThrottle::has_room) and [`dirty`](DirtyThrottle::dirty) take no lock. All
/// changes happen under the lock of the disk's dirty tracker.
pub(super) struct DirtyThrottle {
    /// The limit of all disks, of which this disk has a part.
    shared: Arc<WriteBackShared>,
    /// Dirty bytes of the disk, including those under write-back.
    dirty: AtomicU64,
    /// True if the queue is not empty.
    has_waiters: AtomicBool,
    /// The waiting writes in order of arrival.
    queue: Mutex<VecDeque<ThrottledWrite>>,
}

/// A write that waits for dirty memory.
pub(super) struct ThrottledWrite {
    /// The owner of the data.
    pub owner: IssuerId,
    /// The issuer waits for the reply, so the write is void if the issuer is killed. Otherwise only
    /// the kernel waits.
    pub is_cancellable: bool,
    /// Length in bytes.
    pub bytes: u64,
    /// The I/O class of the owner.
    pub class: Class,
    /// Carries out the write.
    pub job: Job,
}

impl DirtyThrottle {
    /// Creates the throttle of a disk without dirty data.
    pub fn new(shared: Arc<WriteBackShared>) -> DirtyThrottle {
        DirtyThrottle { shared, dirty: AtomicU64::new(0), has_waiters: AtomicBool::new(false), queue: Mutex::default() }
    }

    /// Returns the number of dirty bytes.
    pub fn dirty(&self) -> u64 {
        self.dirty.load(Ordering::Relaxed)
    }

    /// Sets the number of dirty bytes. [`DirtyThrottle::release`] then returns the writes that this
    /// allows.
    pub fn set_dirty(&self, bytes: u64) {
        self.dirty.store(bytes, Ordering::Relaxed);
    }

    /// Returns true if any writer may add `bytes`: the limit allows them and no write waits.
    #[inline]
    pub fn has_room(&self, bytes: u64) -> bool {
        !self.has_waiters() && fits(self.dirty(), self.limit(), bytes)
    }

    /// Returns true if an owner of `own_bytes` dirty bytes, one of `owners` owners, may exceed the
    /// limit by a write of `bytes`. The class is computed only if needed.
    pub fn is_below_share(&self, own_bytes: u64, owners: usize, bytes: u64, class: impl FnOnce() -> Class) -> bool {
        is_below_share(self.dirty(), self.limit(), own_bytes, owners, bytes, class)
    }

    /// Appends a write to the queue.
    pub fn wait(&self, write: ThrottledWrite) {
        self.change(|queue| queue.push_back(write));
    }

    /// Removes the writes that the limit now allows from the queue, and returns their jobs.
    pub fn release(&self, owners: &Owners) -> Vec<Job> {
        if !self.has_waiters() {
            return Vec::new();
        }
        let (mut dirty, limit) = (self.dirty(), self.limit());
        let mut released_bytes: FxHashMap<IssuerId, u64> = FxHashMap::default();
        self.change(|queue| {
            let (mut jobs, mut left) = (Vec::new(), VecDeque::new());
            for write in queue.drain(..) {
                let released = released_bytes.entry(write.owner).or_default();
                let own_bytes = owners.dirty_of(write.owner) + *released;
                // The remaining room is reserved for the first waiting write.
                let is_first = left.is_empty() && fits(dirty, limit, write.bytes);
                let class = || write.class;
                if is_first || is_below_share(dirty, limit, own_bytes, owners.dirty_owners(), write.bytes, class) {
                    dirty += write.bytes;
                    *released += write.bytes;
                    jobs.push(write.job);
                } else {
                    left.push_back(write);
                }
            }
            *queue = left;
            jobs
        })
    }

    /// Returns true if a write waits.
    #[inline]
    pub fn has_waiters(&self) -> bool {
        self.has_waiters.load(Ordering::Relaxed)
    }

    /// Returns the IDs of the threads that wait for their replies.
    pub fn waiting_threads(&self) -> Vec<u32> {
        self.lock().iter().filter(|write| write.is_cancellable).map(|write| write.owner.0).collect()
    }

    /// Removes the writes for whose replies a thread waits, and returns their jobs.
    pub fn cancel(&self, tid: u32) -> Vec<Job> {
        self.change(|queue| {
            let is_cancelled = |write: &ThrottledWrite| write.is_cancellable && write.owner.0 == tid;
            let (cancelled, left): (Vec<_>, Vec<_>) = queue.drain(..).partition(is_cancelled);
            *queue = left.into();
            cancelled.into_iter().map(|write| write.job).collect()
        })
    }

    /// Empties the queue and returns all jobs.
    pub fn take_all(&self) -> Vec<Job> {
        self.change(|queue| queue.drain(..).map(|write| write.job).collect())
    }

    /// Returns the disk's part of the limit, in bytes.
    fn limit(&self) -> u64 {
        self.shared.disk_share(self.shared.limit)
    }

    fn change<T>(&self, change: impl FnOnce(&mut VecDeque<ThrottledWrite>) -> T) -> T {
        let mut queue = self.lock();
        let result = change(&mut queue);
        self.has_waiters.store(!queue.is_empty(), Ordering::Relaxed);
        result
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<ThrottledWrite>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if `bytes` more stay within the limit. A write of any size is admitted while
/// nothing is dirty.
fn fits(dirty: u64, limit: u64, bytes: u64) -> bool {
    dirty == 0 || dirty.saturating_add(bytes) <= limit
}

/// Returns true if an owner may exceed the limit, as [`DirtyThrottle::is_below_share`] describes.
fn is_below_share(
    dirty: u64,
    limit: u64,
    own_bytes: u64,
    owners: usize,
    bytes: u64,
    class: impl FnOnce() -> Class,
) -> bool {
    let owners = owners as u64 + u64::from(own_bytes == 0);
    let share = (limit / owners.max(1)).max(SHARE_BYTES_MIN.min(limit / 16));
    if own_bytes > 0 && own_bytes.saturating_add(bytes) > share {
        return false;
    }
    let allowance = limit.max(ALLOWANCE_BYTES_MIN);
    let is_within = |allowance: u64| dirty.saturating_add(bytes) <= limit.saturating_add(allowance);
    is_within(allowance / 4)
        || is_within(match class() {
            Class::Idle => allowance / 4,
            Class::RealTime => allowance,
            Class::None | Class::BestEffort => allowance / 4 * 3,
        })
}
