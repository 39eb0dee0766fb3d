//! Submission of write-back to the device queues.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;

use hoistway_core::Class;
use rustc_hash::FxHashSet;

use super::super::file_systems::FileSystem;
use super::super::issuers::IssuerId;
use super::super::queue::{Queue, Work};
use super::super::rules::Attribution;
use super::super::system::{self, Fault};
use super::super::task::Task;
use super::super::{FirstRequest, Shared, thread_facts};
use super::dirty_tracker::{Action, DirtyTracker, Released};
use super::table::{Chunk, ChunkId, SyncSnapshot};
use super::{FileKey, file_key};
use crate::passthrough::drop_cap_sys_resource;
use crate::{Backing, Caller, GateRequest, Job, Operation};

/// A sync of a file in progress. Dropping it reports a failure.
pub struct SyncGuard<'a> {
    sync: Option<(&'a Arc<Shared>, &'a DirtyTracker, SyncSnapshot)>,
}

impl SyncGuard<'_> {
    /// Reports success.
    pub(in super::super) fn succeed(mut self) {
        if let Some((shared, dirty_tracker, snapshot)) = self.sync.take() {
            shared.release(dirty_tracker.finish_sync(snapshot, true));
        }
    }
}

impl Drop for SyncGuard<'_> {
    fn drop(&mut self) {
        if let Some((shared, dirty_tracker, snapshot)) = self.sync.take() {
            shared.release(dirty_tracker.finish_sync(snapshot, false));
        }
    }
}

impl Shared {
    /// Returns the dirty tracker of a file's disk, creating it at first use; `None` if the kernel
    /// writes back.
    pub(in super::super) fn dirty_tracker<'a>(
        self: &'a Arc<Self>,
        backing: &Backing,
    ) -> Option<(&'a Arc<Queue>, &'a DirtyTracker)> {
        let writeback = self.writeback.as_ref()?;
        let FileSystem { queue, .. } = self.file_systems.of(backing)?;
        let dirty_tracker = queue.dirty_tracker.get_or_init(|| {
            let dirty_tracker = DirtyTracker::new(writeback.clone());
            if writeback.is_closed.load(Ordering::Acquire) {
                let _ = dirty_tracker.close();
            } else if let Err(error) = start(self, queue) {
                tracing::error!("no write-back thread for {}, the kernel writes back instead: {error}", queue.name);
                let _ = dirty_tracker.close();
            }
            dirty_tracker
        });
        Some((queue, dirty_tracker))
    }

    /// Calls `act` with each existing dirty tracker.
    pub(in super::super) fn with_dirty_trackers(&self, mut act: impl FnMut(&DirtyTracker)) {
        for queue in self.file_systems.queues() {
            if let Some(dirty_tracker) = queue.dirty_tracker.get() {
                act(dirty_tracker);
            }
        }
    }

    /// Returns the owners of dirty data on any disk.
    pub(in super::super) fn owners(&self) -> FxHashSet<IssuerId> {
        let mut owners = FxHashSet::default();
        self.with_dirty_trackers(|dirty_tracker| owners.extend(dirty_tracker.owners()));
        owners
    }

    /// Returns the I/O class of a write. For write-back by the kernel the command line is not read,
    /// because the issuer may hold the lock that reading it requires until the data are written.
    pub(in super::super) fn class_of(&self, caller: Caller, is_cancellable: bool, backing: &Backing) -> Class {
        let facts = thread_facts::read_facts(caller, is_cancellable && self.rules.has_commands());
        let attribution = self.rules.attribute_request(&facts, Operation::BufferedWrite, &mut || self.path_of(backing));
        let tenant_priority = match attribution {
            Attribution::Tenant(index) => self.rules.tenants.get(index as usize).map(|tenant| tenant.terms.priority),
            Attribution::Own | Attribution::Cgroup => None,
        };
        match tenant_priority.filter(|priority| priority.is_set()) {
            Some(priority) => priority.class(),
            // The encoding of ioprio_get(2).
            None => match facts.process.ioprio >> 13 {
                1 => Class::RealTime,
                3 => Class::Idle,
                _ => Class::BestEffort,
            },
        }
    }

    /// Continues released requests.
    pub(in super::super) fn release(self: &Arc<Self>, released: Released) {
        let Released { syncs, jobs } = released;
        self.executors.submit(jobs.into_iter().map(Task::unscheduled));
        if let Some((backing, syncs)) = syncs {
            for (caller, job) in syncs {
                self.sync_now(&backing, caller, job);
            }
        }
    }

    /// Begins a sync of a file.
    pub(in super::super) fn begin_sync(self: &Arc<Self>, backing: &Backing) -> SyncGuard<'_> {
        let sync = self
            .dirty_tracker(backing)
            .and_then(|(_, dirty_tracker)| Some((self, dirty_tracker, dirty_tracker.begin_sync(backing)?)));
        SyncGuard { sync }
    }

    /// Queues a sync of a file behind the write-back of its dirty data.
    pub(in super::super) fn sync_after_writeback(self: &Arc<Self>, backing: &Arc<Backing>, caller: Caller, job: Job) {
        let (job, chunks) = match self.dirty_tracker(backing) {
            Some((_, dirty_tracker)) => dirty_tracker.sync_after_writeback(backing, caller, job),
            None => (Some(job), Vec::new()),
        };
        for chunk in chunks {
            self.write_back(chunk);
        }
        if let Some(job) = job {
            self.sync_now(backing, caller, job);
        }
    }

    fn sync_now(self: &Arc<Self>, backing: &Arc<Backing>, caller: Caller, job: Job) {
        self.submit_job(&GateRequest { caller, operation: Operation::Sync, backing, offset: 0, length: 0 }, false, job);
    }

    /// Submits a chunk to the queue of its disk.
    fn write_back(self: &Arc<Self>, chunk: Chunk) {
        let Chunk { id, backing, caller, start, end } = chunk;
        let request = GateRequest {
            caller,
            operation: Operation::BufferedWrite,
            backing: &backing,
            offset: start,
            length: end - start,
        };
        let Some((queue, _)) = self.dirty_tracker(&backing) else { return };
        // The job holds no reference to the file, so that a file removed meanwhile is closed at
        // once.
        let (shared, queue) = (self.clone(), queue.clone());
        let job = Job::Call(Box::new(move || shared.write_now(&queue, &id)));
        self.submit_job(&request, id.owner.is_some(), job);
    }

    /// Submits the first request to a file system, once its disk is known.
    pub(in super::super) fn submit_first(self: &Arc<Self>, request: &FirstRequest, job: Job) {
        let FirstRequest { caller, operation, ref backing, offset, length } = *request;
        match operation {
            Operation::BufferedWrite | Operation::KernelWriteback => Task::unscheduled(job).run(),
            _ => self.submit_job(&GateRequest { caller, operation, backing, offset, length }, false, job),
        }
    }

    /// Submits a request and runs the job when it is dispatched.
    fn submit_job(self: &Arc<Self>, request: &GateRequest<'_>, is_async: bool, job: Job) {
        let Some(system) = self.file_systems.of(request.backing) else {
            return self.executors.submit([Task::unscheduled(job)]);
        };
        // The writer does not wait for write-back.
        let is_cancellable = !matches!(request.operation, Operation::BufferedWrite | Operation::KernelWriteback);
        self.submit_with_job(system, request, is_async, Work { job, is_cancellable });
    }

    /// Writes a dispatched chunk, unless its data were written meanwhile.
    fn write_now(self: &Arc<Self>, queue: &Queue, id: &ChunkId) {
        let Some(dirty_tracker) = queue.dirty_tracker.get() else { return };
        let chunk_write = dirty_tracker.dispatch(id);
        if let Some(chunk_write) = &chunk_write
            && let Err(error) = chunk_write.write()
            && let Some(writeback) = &self.writeback
            // For an unlinked file only existing handles can report the error, and the kernel
            // reports it to them.
            && system::links(&chunk_write.backing).is_some_and(|links| links > 0)
            && !is_swallowed(&error)
            && writeback.unreported.record(
                file_with_error(id.file),
                chunk_write.backing.generation,
                error.raw_os_error().unwrap_or(libc::EIO),
            )
        {
            tracing::warn!(
                device = queue.name,
                inode = id.file.1,
                offset = chunk_write.start,
                bytes = chunk_write.end - chunk_write.start,
                "write-back failed ({error}); the next fsync reports the error"
            );
        }
        self.release(dirty_tracker.finish(id, chunk_write.is_some()));
    }

    /// Returns the unreported write-back error of a file that is being opened. A new file has none.
    pub(in super::super) fn pending_writeback_error(&self, backing: &Backing, is_new: bool) -> Option<i32> {
        let unreported = &self.writeback.as_ref()?.unreported;
        if is_new {
            unreported.clear(file_key(backing));
        }
        unreported.get(file_key(backing), backing.generation)
    }

    /// Marks the write-back error of a file as reported.
    pub(in super::super) fn clear_writeback_error(&self, file: FileKey) {
        if let Some(writeback) = &self.writeback {
            writeback.unreported.clear(file);
        }
    }
}

/// Returns true if a simulated world requests that an error is not recorded.
fn is_swallowed(error: &std::io::Error) -> bool {
    system::has_fault(Fault::ErrorNotRecorded)
        || error.raw_os_error() == Some(libc::ENOSPC) && system::has_fault(Fault::SpaceErrorNotRecorded)
}

/// Returns the file for which the error of a chunk is recorded.
fn file_with_error((device, inode): FileKey) -> FileKey {
    if system::has_fault(Fault::ErrorOfOtherFile) { (device, inode + 1) } else { (device, inode) }
}

/// Starts the write-back thread of a disk.
///
/// # Errors
/// The thread cannot be started.
fn start(shared: &Arc<Shared>, queue: &Arc<Queue>) -> std::io::Result<()> {
    if !system::has_threads() {
        return Ok(());
    }
    let (shared, queue) = (Arc::downgrade(shared), Arc::downgrade(queue));
    thread::Builder::new().name("hoistway-back".into()).spawn(move || run(&shared, &queue)).map(|_| ())
}

fn run(shared: &Weak<Shared>, queue: &Weak<Queue>) {
    drop_cap_sys_resource();
    while let (Some(shared), Some(queue)) = (shared.upgrade(), queue.upgrade()) {
        // The thread that started this one is about to store the tracker.
        let dirty_tracker = queue.dirty_tracker.wait();
        match dirty_tracker.next() {
            None => return,
            Some(action) => shared.act(&queue, dirty_tracker, action),
        }
    }
}

impl Shared {
    /// Carries out an action of a write-back thread.
    pub(in super::super) fn act(self: &Arc<Self>, queue: &Queue, dirty_tracker: &DirtyTracker, action: Action) {
        match action {
            Action::Submit(chunks) => chunks.into_iter().for_each(|chunk| self.write_back(chunk)),
            Action::CheckLiveness(waiting_threads) => {
                for tid in waiting_threads.into_iter().filter(|tid| thread_facts::is_killed(*tid)) {
                    let (released, jobs) = dirty_tracker.cancel(tid);
                    tracing::debug!(
                        device = queue.name,
                        tid,
                        jobs = jobs.len(),
                        "killed while waiting for dirty memory"
                    );
                    self.executors.submit(jobs.into_iter().map(Task::cancelled));
                    self.release(released);
                }
            }
        }
    }
}
