//! The dirty data of one disk, shared between threads: the lock of the table, the throttle of
//! writers, and the waits of the write-back thread.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hoistway_core::Class;

use super::super::issuers::{IssuerId, issuer_id};
use super::super::system::{self, Fault, now_ns};
use super::table::{Chunk, ChunkId, ChunkWrite, SubmitPolicy, SyncSnapshot, SyncWaiters, Table};
use super::throttle::{DirtyThrottle, ThrottledWrite};
use super::{FileKey, WriteBackShared, file_key};
use crate::gate::REQUEST_BYTES_MAX;
use crate::{Backing, Caller, GateRequest, Job};

/// Minimum time between two searches for data that have become old, so that consecutive writes are
/// submitted together, sorted.
const SUBMIT_INTERVAL: Duration = Duration::from_millis(20);
/// Interval between two liveness checks of waiting issuers, in ns: 500 ms.
const LIVENESS_NS: u64 = 500_000_000;

/// The dirty data of one disk.
pub struct DirtyTracker {
    shared: Arc<WriteBackShared>,
    /// The limit, and the writes that wait for it.
    throttle: DirtyThrottle,
    inner: Mutex<Inner>,
    /// Wakes the write-back thread.
    wake: Condvar,
}

#[derive(Default)]
struct Inner {
    table: Table,
    /// Time until which the thread sleeps; 0 while it runs.
    sleep_until_ns: u64,
    /// Time of the next liveness check of waiting issuers; 0 if none waits.
    liveness_ns: u64,
    /// This disk's contribution to the counts shared with other disks.
    counted_files: usize,
    is_counted: bool,
}

/// The next action of the write-back thread.
pub(in super::super) enum Action {
    /// Submit these chunks to the device queue.
    Submit(Vec<Chunk>),
    /// Check whether these threads were killed.
    CheckLiveness(Vec<u32>),
}

/// The next step of the write-back thread.
pub(in super::super) enum Next {
    /// It ends.
    Closed,
    Act(Action),
    /// It sleeps for this time at most, or until it is woken.
    Sleep(Option<Duration>),
}

/// Waiting requests that may continue: syncs of a file and throttled writes.
#[must_use]
#[derive(Default)]
pub struct Released {
    pub syncs: SyncWaiters,
    pub jobs: Vec<Job>,
}

impl DirtyTracker {
    /// Creates the tracker of a disk without dirty data.
    pub fn new(shared: Arc<WriteBackShared>) -> DirtyTracker {
        let throttle = DirtyThrottle::new(shared.clone());
        DirtyTracker { shared, throttle, inner: Mutex::default(), wake: Condvar::new() }
    }

    /// Returns the number of dirty bytes written through this mount.
    #[cfg(any(test, feature = "simulated"))]
    pub fn dirty(&self) -> u64 {
        self.throttle.dirty()
    }

    /// Returns true if any writer may add `bytes`: the limit allows it and no writer waits.
    #[inline]
    pub fn has_room(&self, bytes: u64) -> bool {
        self.throttle.has_room(bytes)
    }

    /// Returns true if an issuer may exceed the limit because it owns less than its share. The
    /// class is computed only if needed.
    pub fn is_below_share(&self, caller: &Caller, bytes: u64, class: impl FnOnce() -> Class) -> bool {
        let inner = self.lock();
        let owners = &inner.table.owners;
        let (own_bytes, dirty_owners) = (owners.dirty_of(issuer_id(caller)), owners.dirty_owners());
        drop(inner);
        self.throttle.is_below_share(own_bytes, dirty_owners, bytes, class)
    }

    /// Queues a write until the limit allows it. `is_cancellable`: the write is void if the issuer
    /// is killed.
    pub fn queue_write(&self, caller: &Caller, is_cancellable: bool, bytes: u64, class: Class, job: Job) -> Released {
        self.change(|table| {
            if table.is_closed {
                return (None, vec![job]);
            }
            self.throttle.wait(ThrottledWrite { owner: issuer_id(caller), is_cancellable, bytes, class, job });
            (None, Vec::new())
        })
    }

    /// Records data written into the page cache.
    pub fn note_dirty(&self, request: &GateRequest<'_>) {
        let key = file_key(request.backing);
        self.with(|table| {
            // A file beyond the maximum number is left to the kernel's write-back.
            if !table.is_closed && (table.has(key) || self.shared.admits_file()) {
                table.note_dirty(key, request, now_ns());
            }
        });
    }

    /// Reduces the tables to the size that the dirty files need.
    pub fn shrink(&self) {
        self.lock().table.shrink();
    }

    /// Returns true if a sync of the file has to write more than one request's worth of data.
    pub fn exceeds_request(&self, backing: &Backing) -> bool {
        self.pending_bytes(backing) > REQUEST_BYTES_MAX
    }

    /// Returns the number of bytes of a file that await write-back.
    pub fn pending_bytes(&self, backing: &Backing) -> u64 {
        self.lock().table.pending_bytes(file_key(backing))
    }

    /// Drops the dirty state of a file whose data no longer exist.
    pub fn discard(&self, file: FileKey) -> Released {
        self.change(|table| (table.discard(file), Vec::new()))
    }

    /// Has later chunks of a file use a new second description, which does not report the errors
    /// that a handle has reported.
    pub fn renew_description(&self, backing: &Backing) {
        self.with(|table| table.renew_description(file_key(backing)));
    }

    /// Begins a sync of all data of a file that are dirty now.
    pub(super) fn begin_sync(&self, backing: &Backing) -> Option<SyncSnapshot> {
        self.with(|table| table.begin_sync(file_key(backing)))
    }

    /// Ends a sync.
    pub(super) fn finish_sync(&self, snapshot: SyncSnapshot, is_durable: bool) -> Released {
        self.change(|table| (table.finish_sync(snapshot, is_durable), Vec::new()))
    }

    /// Writes back all data of a file that are dirty now, as synchronous requests of the issuer,
    /// and then runs the job. Returns the job if no data are dirty.
    pub(super) fn sync_after_writeback(
        &self,
        backing: &Backing,
        caller: Caller,
        job: Job,
    ) -> (Option<Job>, Vec<Chunk>) {
        let mut chunks = Vec::new();
        let left = self.with(|table| match table.is_closed {
            true => Some(job),
            false => table.sync_after_writeback(file_key(backing), caller, job, &mut chunks),
        });
        (left, chunks)
    }

    /// Called when a chunk is dispatched. Returns the range to write, or `None` if it is no longer
    /// dirty.
    pub(super) fn dispatch(&self, id: &ChunkId) -> Option<ChunkWrite> {
        self.with(|table| table.dispatch(id))
    }

    /// Completes a chunk; `was_written` is true if this request wrote it.
    pub(super) fn finish(&self, id: &ChunkId, was_written: bool) -> Released {
        self.change(|table| (table.finish(id, was_written), Vec::new()))
    }

    /// Returns the owners of dirty data.
    pub fn owners(&self) -> Vec<IssuerId> {
        self.lock().table.owners.ids().collect()
    }

    /// Stops write-back: the remaining data are left to the kernel. Returns the waiting jobs.
    pub fn close(&self) -> Vec<Job> {
        let jobs = self.with(|table| {
            let mut jobs = self.throttle.take_all();
            jobs.extend(table.close());
            jobs
        });
        self.wake.notify_all();
        jobs
    }

    /// Cancels the requests of a killed thread. Returns the requests that may continue, and the
    /// cancelled jobs.
    pub(super) fn cancel(&self, tid: u32) -> (Released, Vec<Job>) {
        let mut cancelled = Vec::new();
        let released = self.change(|table| {
            cancelled = self.throttle.cancel(tid);
            cancelled.extend(table.cancel(tid, now_ns()));
            (None, Vec::new())
        });
        (released, cancelled)
    }

    /// Blocks until there is an action for the write-back thread; `None` after
    /// [`DirtyTracker::close`].
    pub(super) fn next(&self) -> Option<Action> {
        let mut inner = self.lock();
        loop {
            inner = match self.poll_locked(&mut inner) {
                Next::Closed => return None,
                Next::Act(action) => return Some(action),
                Next::Sleep(None) => self.wake.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Next::Sleep(Some(wait)) => {
                    self.wake.wait_timeout(inner, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Returns what the write-back thread has to do next.
    #[cfg(feature = "simulated")]
    pub(in super::super) fn poll(&self) -> Next {
        self.poll_locked(&mut self.lock())
    }

    /// Returns the time until which the write-back thread sleeps. A change of the table makes it
    /// earlier.
    #[cfg(feature = "simulated")]
    pub(in super::super) fn sleep_until_ns(&self) -> u64 {
        self.lock().sleep_until_ns
    }

    fn poll_locked(&self, inner: &mut Inner) -> Next {
        inner.sleep_until_ns = 0;
        if inner.table.is_closed {
            return Next::Closed;
        }
        let policy = self.policy();
        if let Some(threads) = self.due_liveness_check(inner, policy.now_ns) {
            return Next::Act(Action::CheckLiveness(threads));
        }
        let mut chunks = Vec::new();
        let due_ns = inner.table.submit_due(&policy, &mut chunks);
        if !chunks.is_empty() {
            self.publish(inner);
            return Next::Act(Action::Submit(chunks));
        }
        let liveness_ns = Some(inner.liveness_ns).filter(|liveness_ns| *liveness_ns > 0);
        let until_ns = due_ns.into_iter().chain(liveness_ns).min();
        inner.sleep_until_ns = until_ns.unwrap_or(u64::MAX);
        Next::Sleep(
            until_ns.map(|until_ns| Duration::from_nanos(until_ns.saturating_sub(policy.now_ns)).max(SUBMIT_INTERVAL)),
        )
    }

    /// Changes the table, and releases the throttled writes that the limit then allows.
    fn change(&self, act: impl FnOnce(&mut Table) -> (SyncWaiters, Vec<Job>)) -> Released {
        self.with(|table| {
            let (syncs, mut jobs) = act(table);
            self.throttle.set_dirty(table.dirty());
            jobs.extend(self.throttle.release(&table.owners));
            if system::has_fault(Fault::ThrottledWriteDropped) {
                drop_forever(jobs.pop());
            }
            Released { syncs, jobs }
        })
    }

    /// Changes the table without a release of throttled writes.
    fn with<T>(&self, act: impl FnOnce(&mut Table) -> T) -> T {
        let mut inner = self.lock();
        let result = act(&mut inner.table);
        self.publish(&mut inner);
        result
    }

    /// Updates the counters that are readable without the lock, and wakes the thread if its next
    /// action is due earlier than planned.
    fn publish(&self, inner: &mut Inner) {
        let Inner { table, sleep_until_ns, counted_files, is_counted, .. } = inner;
        let shared = &self.shared;
        self.throttle.set_dirty(table.dirty());
        let (files, is_dirty) = (table.files(), table.dirty() > 0);
        // A decrease wraps around.
        shared.files.fetch_add(files.wrapping_sub(*counted_files), Ordering::Relaxed);
        shared.disks.fetch_add(u64::from(is_dirty).wrapping_sub(u64::from(*is_counted)), Ordering::Relaxed);
        (*counted_files, *is_counted) = (files, is_dirty);
        if *sleep_until_ns == 0 {
            return;
        }
        let policy = self.policy();
        let liveness_ns = self.has_waiters(table).then_some(policy.now_ns.saturating_add(LIVENESS_NS));
        let next_ns = table.due_ns(&policy).into_iter().chain(liveness_ns).min();
        if let Some(next_ns) = next_ns.filter(|next_ns| next_ns < sleep_until_ns) {
            *sleep_until_ns = next_ns;
            self.wake.notify_one();
        }
    }

    /// Returns true if a throttled write or a sync waits.
    fn has_waiters(&self, table: &Table) -> bool {
        self.throttle.has_waiters() || table.has_waiting_syncs()
    }

    /// Returns the IDs of the waiting threads if a liveness check is due.
    fn due_liveness_check(&self, inner: &mut Inner, now_ns: u64) -> Option<Vec<u32>> {
        let (due_ns, has_waiters) = (inner.liveness_ns, self.has_waiters(&inner.table));
        if has_waiters && due_ns > now_ns {
            return None;
        }
        inner.liveness_ns = if has_waiters { now_ns.saturating_add(LIVENESS_NS) } else { 0 };
        (has_waiters && due_ns > 0).then(|| {
            let mut threads = inner.table.syncing_threads();
            threads.extend(self.throttle.waiting_threads());
            threads.sort_unstable();
            threads.dedup();
            threads
        })
    }

    fn policy(&self) -> SubmitPolicy {
        let shared = &self.shared;
        SubmitPolicy {
            now_ns: now_ns(),
            age_ns: shared.age_ns,
            background: shared.disk_share(shared.background),
            is_near_file_limit: shared.is_near_file_limit(),
            has_throttled_writes: self.throttle.has_waiters(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops a job without its reply.
fn drop_forever(job: Option<Job>) {
    std::mem::forget(job);
}
