//! The dirty data of one disk, shared between threads: a lock, and counters that are readable
//! without it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hoistway_core::Class;

use super::super::issuers::IssuerId;
use super::super::now_ns;
use super::super::queue::REQUEST_BYTES_MAX;
use super::table::{Chunk, ChunkId, ChunkWrite, SubmitPolicy, SyncSnapshot, SyncWaiters, Table, issuer_id};
use super::throttle::{DirtyLevel, Writer};
use super::{WriteBack, file_of};
use crate::{Backing, Caller, GateRequest, Job};

/// Minimum time between two searches for data that have become old, so that consecutive writes are
/// submitted together, sorted.
const SUBMIT_INTERVAL: Duration = Duration::from_millis(20);
/// Interval between two liveness checks of waiting issuers, in ns: 500 ms.
const LIVENESS_NS: u64 = 500_000_000;

/// The dirty data of one disk.
pub struct DirtyTracker {
    of: Arc<WriteBack>,
    inner: Mutex<Inner>,
    device_request: Condvar,
    /// Dirty bytes, including those under write-back, and whether writers wait. Readable
    /// without the lock.
    dirty: AtomicU64,
    has_waiters: AtomicBool,
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
pub(super) enum Action {
    /// Submit these chunks to the device queue.
    Begin(Vec<Chunk>),
    /// Check whether these threads were killed.
    CheckLiveness(Vec<u32>),
}

/// Waiting requests that may continue: syncs of a file and throttled writes.
#[must_use]
#[derive(Default)]
pub struct Released {
    pub syncs: SyncWaiters,
    pub jobs: Vec<Job>,
}

impl DirtyTracker {
    pub fn new(of: Arc<WriteBack>) -> DirtyTracker {
        DirtyTracker {
            of,
            inner: Mutex::default(),
            device_request: Condvar::new(),
            dirty: AtomicU64::new(0),
            has_waiters: AtomicBool::new(false),
        }
    }

    /// Returns the number of dirty bytes written through this mount.
    pub fn dirty(&self) -> u64 {
        self.dirty.load(Ordering::Relaxed)
    }

    /// Returns true if any writer may add `bytes`: the limit allows it and no writer waits.
    #[inline]
    pub fn has_room(&self, bytes: u64) -> bool {
        !self.has_waiters.load(Ordering::Relaxed) && self.level(self.dirty()).has_room(bytes)
    }

    /// Returns true if an issuer may exceed the limit because it owns less than its share. The
    /// class is computed only if needed.
    pub fn below_share(&self, caller: &Caller, bytes: u64, class: impl FnOnce() -> Class) -> bool {
        let inner = self.lock();
        let owners = &inner.table.owners;
        let (level, own_bytes, dirty_owners) =
            (self.level(inner.table.dirty()), owners.dirty_of(issuer_id(caller)), owners.dirty_owners());
        drop(inner);
        level.below_share(own_bytes, dirty_owners, bytes, class)
    }

    /// Queues a write until the limit allows it. `is_cancellable`: the write is void if the issuer
    /// is killed.
    pub fn queue_writer(&self, caller: &Caller, is_cancellable: bool, bytes: u64, class: Class, job: Job) -> Released {
        self.and_admit(|table| {
            if table.is_closed {
                return (None, vec![job]);
            }
            table.waiting.add(Writer { issuer_id: issuer_id(caller), is_cancellable, bytes }, class, job);
            (None, Vec::new())
        })
    }

    /// Records data written into the page cache.
    pub fn note_dirty(&self, request: &GateRequest<'_>) {
        let key = file_of(request.backing);
        self.with(|table| {
            // A file beyond the maximum number is left to the kernel's write-back.
            if !table.is_closed && (table.has(key) || self.of.admits_file()) {
                table.note_dirty(key, request, now_ns());
            }
        });
    }

    /// Returns true if a sync of the file has to write more than one request's worth of data.
    pub fn exceeds_request(&self, backing: &Backing) -> bool {
        self.pending_bytes(backing) > REQUEST_BYTES_MAX
    }

    /// Returns the number of bytes of a file that await write-back.
    pub fn pending_bytes(&self, backing: &Backing) -> u64 {
        self.lock().table.pending_bytes(file_of(backing))
    }

    /// Drops the dirty state of a file whose data no longer exist.
    pub fn discard(&self, backing: &Backing) -> Released {
        self.and_admit(|table| (table.discard(file_of(backing)), Vec::new()))
    }

    /// Begins a sync of all data of a file that are dirty now.
    pub(super) fn begin_sync(&self, backing: &Backing) -> Option<SyncSnapshot> {
        self.with(|table| table.begin_sync(file_of(backing)))
    }

    /// Ends a sync.
    pub(super) fn finish_sync(&self, snapshot: SyncSnapshot, is_durable: bool) -> Released {
        self.and_admit(|table| (table.finish_sync(snapshot, is_durable), Vec::new()))
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
            false => table.sync_after_writeback(file_of(backing), caller, job, &mut chunks),
        });
        (left, chunks)
    }

    /// Called when a chunk is dispatched. Returns the range to write, or `None` if it is no longer
    /// dirty.
    pub(super) fn dispatch(&self, place: &ChunkId) -> Option<ChunkWrite> {
        self.with(|table| table.dispatch(place))
    }

    /// Completes a chunk; `was_written` is true if this request wrote it.
    pub(super) fn finish(&self, place: &ChunkId, was_written: bool) -> Released {
        self.and_admit(|table| (table.finish(place, was_written), Vec::new()))
    }

    /// Returns the owners of dirty data.
    pub fn owners(&self) -> Vec<IssuerId> {
        self.lock().table.owners.keys().collect()
    }

    /// Stops write-back: the remaining data are left to the kernel. Returns the waiting jobs.
    pub fn close(&self) -> Vec<Job> {
        let jobs = self.with(Table::close);
        self.device_request.notify_all();
        jobs
    }

    /// Cancels the requests of a killed thread. Returns the requests that may continue, and the
    /// cancelled jobs.
    pub(super) fn cancel(&self, tid: u32) -> (Released, Vec<Job>) {
        let mut given_up = Vec::new();
        let and_admit = self.and_admit(|table| {
            given_up = table.cancel(tid, now_ns());
            (None, Vec::new())
        });
        (and_admit, given_up)
    }

    /// Blocks until there is an action for the write-back thread; `None` after
    /// [`DirtyTracker::close`].
    pub(super) fn next(&self) -> Option<Action> {
        let mut inner = self.lock();
        loop {
            inner.sleep_until_ns = 0;
            if inner.table.is_closed {
                return None;
            }
            let policy = self.policy();
            if let Some(waiters) = inner.liveness_check(policy.now_ns) {
                return Some(Action::CheckLiveness(waiters));
            }
            let mut chunks = Vec::new();
            let due_ns = inner.table.submit_due(&policy, &mut chunks);
            if !chunks.is_empty() {
                self.publish(&mut inner);
                return Some(Action::Begin(chunks));
            }
            let liveness_ns = Some(inner.liveness_ns).filter(|liveness_ns| *liveness_ns > 0);
            let until_ns = due_ns.into_iter().chain(liveness_ns).min();
            inner.sleep_until_ns = until_ns.unwrap_or(u64::MAX);
            inner = match until_ns {
                None => self.device_request.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(until_ns) => {
                    let wait = Duration::from_nanos(until_ns.saturating_sub(policy.now_ns)).max(SUBMIT_INTERVAL);
                    self.device_request.wait_timeout(inner, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Changes the table and admits the waiting writers for which the limit then allows it.
    fn and_admit(&self, act: impl FnOnce(&mut Table) -> (SyncWaiters, Vec<Job>)) -> Released {
        self.with(|table| {
            let (syncs, mut jobs) = act(table);
            if !table.waiting.is_empty() {
                let level = self.level(table.dirty());
                jobs.extend(table.waiting.admit(level, &table.owners));
            }
            Released { syncs, jobs }
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Table) -> T) -> T {
        let mut inner = self.lock();
        let done = act(&mut inner.table);
        self.publish(&mut inner);
        done
    }

    /// Updates the counters that are readable without the lock, and wakes the thread if its next
    /// action is due earlier than planned.
    fn publish(&self, inner: &mut Inner) {
        let Inner { table, sleep_until_ns, counted_files, is_counted, .. } = inner;
        let of = &self.of;
        self.dirty.store(table.dirty(), Ordering::Relaxed);
        self.has_waiters.store(!table.waiting.is_empty(), Ordering::Relaxed);
        let (files, is_dirty) = (table.files(), table.dirty() > 0);
        // A decrease wraps around.
        of.files.fetch_add(files.wrapping_sub(*counted_files), Ordering::Relaxed);
        of.disks.fetch_add(u64::from(is_dirty).wrapping_sub(u64::from(*is_counted)), Ordering::Relaxed);
        (*counted_files, *is_counted) = (files, is_dirty);
        if *sleep_until_ns == 0 {
            return;
        }
        let policy = self.policy();
        let liveness_ns = table.has_waiters().then_some(policy.now_ns.saturating_add(LIVENESS_NS));
        let next_ns = table.due_ns(&policy).into_iter().chain(liveness_ns).min();
        if let Some(next_ns) = next_ns.filter(|next_ns| next_ns < sleep_until_ns) {
            *sleep_until_ns = next_ns;
            self.device_request.notify_one();
        }
    }

    fn level(&self, dirty: u64) -> DirtyLevel {
        DirtyLevel { dirty, limit: self.of.disk_share(self.of.limit) }
    }

    fn policy(&self) -> SubmitPolicy {
        let of = &self.of;
        SubmitPolicy {
            now_ns: now_ns(),
            age_ns: of.age_ns,
            background: of.disk_share(of.background),
            is_near_file_limit: of.is_near_file_limit(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Returns the waiting thread IDs if a liveness check is due.
    fn liveness_check(&mut self, now_ns: u64) -> Option<Vec<u32>> {
        let (before_ns, pending_bytes) = (self.liveness_ns, self.table.has_waiters());
        if pending_bytes && before_ns > now_ns {
            return None;
        }
        self.liveness_ns = if pending_bytes { now_ns.saturating_add(LIVENESS_NS) } else { 0 };
        (pending_bytes && before_ns > 0).then(|| self.table.waiters())
    }
}
