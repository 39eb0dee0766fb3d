//! The scheduling gate: one queue per block device below the mount, in which every calling thread
//! is an I/O context.
//!
//! ```text
//! admit ─▶ issuer (issuers), tenant (rules), address (extents) ─▶ device queue ─▶ Now | Later
//!                                                                  ▲       │
//! park ─▶ the job waits in the queue             slot dropped ─────┘       ▼ dispatch
//!                                                          executors: io_uring, workers
//! note_dirty ─▶ write-back (writeback): requests charged to the writers ─▶ the same queue
//! ```
//!
//! Each queue has one lock. It is held for some hundred ns per submission and completion, and never
//! during a query of a file system or of `/proc`.

mod admin;
mod cgroups;
mod disks;
mod endpoints;
mod executors;
mod extents;
mod file_systems;
mod issuers;
mod maintenance;
mod queue;
mod ranges;
mod ring;
mod rules;
mod run_time_terms;
mod session_threads;
#[cfg(feature = "simulated")]
mod simulated_gate;
mod system;
mod task;
mod thread_facts;
mod timer;
mod writeback;

#[cfg(test)]
mod tests;

use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard};

use hoistway_config::mount::{MountConfig, WriteBackChoice};
use hoistway_control::LogControl;
use hoistway_machine::ProcessFiles;
use hoistway_qos::{Hints, JoinError, MemberId, QueueError, Recorder, RequestOp, TermsError};

use crate::gate::REQUEST_BYTES_MAX;
use crate::{Admission, Backing, Caller, Gate, GateRequest, Job, Operation};
use executors::Executors;
use file_systems::{FileSystem, FileSystems};
use issuers::{IssuerId, issuer_id};
use queue::{DeviceRequest, Effects, Queue, QueuedRequest, State, Work};
use rules::Rules;
use session_threads::{SessionThreads, WorkerPermit};
use system::now_ns;
use task::Task;
use timer::Timer;
use writeback::{DirtyTracker, WriteBackShared};

pub use admin::GateAdmin;
pub use disks::DiskError;
pub use endpoints::AdminEndpoints;
#[cfg(feature = "simulated")]
pub use simulated_gate::{Remains, SimulatedGate, file_near};
#[cfg(feature = "simulated")]
pub use system::{Fault, simulated};
pub use writeback::SyncGuard;

/// Bytes charged for a directory or inode access.
const METADATA_BYTES: u64 = 4096;

/// An error that prevents the setup of a gate.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// The device queue cannot be configured.
    #[error(transparent)]
    Device(#[from] QueueError),
    /// The terms of a tenant or group are invalid.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// The device has no room for a member.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A tunable cannot be set.
    #[error("tunable `{tunable}` of {elevator}: {source}")]
    Tunable {
        /// The name of the elevator.
        elevator: &'static str,
        /// The name of the tunable.
        tunable: String,
        /// The reason.
        source: hoistway_core::TunableError,
    },
    /// The configured device does not exist.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A thread could not be started.
    #[error("a thread cannot be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// The scheduling gate.
pub struct Scheduled {
    shared: Arc<Shared>,
    session_threads: SessionThreads,
}

/// State shared by the threads of a gate.
struct Shared {
    rules: Rules,
    /// The canonical path of the source, which prefixes the paths that rules match.
    source: PathBuf,
    file_systems: FileSystems,
    timer: Timer,
    executors: Executors,
    writeback: Option<Arc<WriteBackShared>>,
    /// Time at which the gate was created, in ns.
    since_ns: u64,
}

impl Scheduled {
    /// Creates the gate for `source`, whose open descriptor is `root`. The queue of its device is
    /// set up now, those of other devices when they are first used.
    ///
    /// # Errors
    /// An invalid configuration of the device, or no thread can be started.
    pub fn new(source: PathBuf, root: &Arc<Backing>, config: &MountConfig) -> Result<Scheduled, SetUpError> {
        let by_mount = config.mount.write_back == WriteBackChoice::Ours;
        let shared = Arc::new(Shared {
            rules: Rules::new(config),
            source,
            file_systems: FileSystems::new(config)?,
            timer: Timer::default(),
            executors: Executors::default(),
            writeback: by_mount.then(|| Arc::new(WriteBackShared::new(&config.mount))),
            since_ns: now_ns(),
        });
        shared.file_systems.add(root, now_ns())?;
        timer::start(&shared)?;
        if system::has_threads() {
            shared.executors.start_ring();
        }
        if let Some(writeback) = &shared.writeback {
            let (background, limit) = writeback.bounds();
            tracing::info!(
                "write-back by the mount: in the background from {} MiB of dirty memory, writers wait from {} MiB",
                background >> 20,
                limit >> 20
            );
        }
        Ok(Scheduled { shared, session_threads: SessionThreads::default() })
    }

    /// Returns the admin interface of this gate.
    pub fn admin(&self) -> GateAdmin {
        GateAdmin::new(self.shared.clone())
    }

    /// Starts sampling. The result serves the control socket and the metrics; `log` sets the log
    /// level.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start_endpoints(&self, log: Box<dyn LogControl + Send>) -> std::io::Result<AdminEndpoints> {
        let mut admin = self.admin();
        admin.set_log(log);
        AdminEndpoints::start(admin)
    }

    /// Returns the names of the devices met so far.
    pub fn device_names(&self) -> Vec<String> {
        self.shared.file_systems.queues().iter().map(|queue| queue.name.clone()).collect()
    }

    /// Returns the time in ns on the clock of the devices (`CLOCK_MONOTONIC`).
    pub fn now_ns(&self) -> u64 {
        now_ns()
    }

    /// Sets the recorder of each device met so far, or removes it where `recorder` returns `None`.
    pub fn record(&self, mut recorder: impl FnMut(&str) -> Option<Box<dyn Recorder>>) {
        for queue in self.shared.file_systems.queues() {
            queue.lock().device.scheduler_mut().set_recorder(recorder(&queue.name), None);
        }
    }

    /// Returns true if a file that a process opens needs no scheduling, so that the kernel may
    /// access it directly.
    pub fn bypasses(&self, caller: &Caller, backing: &Backing) -> bool {
        let shared = &self.shared;
        if !shared.rules.has_bypass() {
            return false;
        }
        let facts = thread_facts::read_facts(*caller, shared.rules.has_commands());
        shared.rules.allows_bypass(&facts, &mut || shared.path_of(backing))
    }

    /// Stops scheduling: waiting requests run at once, and dirty data are left to the kernel's
    /// write-back.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Describes each file system met so far in one line, for the log.
    pub fn describe_file_systems(&self) -> Vec<String> {
        self.shared.file_systems.describe()
    }
}

impl Drop for Scheduled {
    fn drop(&mut self) {
        self.close();
    }
}

/// The dispatch slot of a running request. Dropping it completes the request.
pub struct Slot<'a> {
    /// The queued request; `None` for an unscheduled one.
    queued: Option<(&'a Arc<Shared>, &'a Arc<Queue>, QueuedRequest)>,
    after: Option<AfterDispatch>,
    /// Occupies a session thread for the duration of the request.
    _permit: WorkerPermit<'a>,
}

/// Work at the end of a request.
struct AfterDispatch {
    action: AfterAction,
    backing: Arc<Backing>,
    offset: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterAction {
    /// Query the extents of the file, which may read from the disk.
    QueryExtents,
    /// Mark the cached extents stale, because the request may have moved the data.
    MarkStale,
}

/// A request that has to wait.
pub struct Ticket<'a> {
    shared: &'a Arc<Shared>,
    reason: WaitReason<'a>,
}

/// The reason for waiting.
enum WaitReason<'a> {
    /// The device queue has not dispatched the request yet.
    Queue { queue: &'a Arc<Queue>, queued: QueuedRequest, after: Option<AfterDispatch> },
    /// Dirty memory is at its limit; `bytes` are to be added.
    DirtyMemory {
        dirty_tracker: &'a DirtyTracker,
        backing: Arc<Backing>,
        caller: Caller,
        /// The issuer itself waits, so the write is void if the issuer is killed.
        is_cancellable: bool,
        bytes: u64,
    },
    /// No session thread is free.
    Thread,
    /// A thread is needed that may block to identify the file system.
    FirstRequest(FirstRequest),
    /// The dirty data of the file have to be written back first.
    Sync { backing: Arc<Backing>, caller: Caller },
    /// The ticket was passed to [`Gate::park`].
    Parked,
}

/// The first request to a file system.
struct FirstRequest {
    caller: Caller,
    operation: Operation,
    backing: Arc<Backing>,
    offset: u64,
    length: u64,
}

impl Gate for Scheduled {
    type Slot<'a> = Slot<'a>;
    type Ticket<'a> = Ticket<'a>;
    type SyncGuard<'a> = SyncGuard<'a>;

    fn set_session_threads(&self, threads: usize) {
        self.session_threads.set(threads);
    }

    fn admit(&self, request: &GateRequest<'_>) -> Admission<Slot<'_>, Ticket<'_>> {
        let shared = &self.shared;
        let unscheduled = || match self.session_threads.try_occupy() {
            Some(permit) => Admission::Now(Slot { queued: None, after: None, _permit: permit }),
            None => Admission::Later(Ticket { shared, reason: WaitReason::Thread }),
        };
        if !shared.file_systems.is_known(request.backing) {
            // The file system is identified on the calling thread, which occupies a worker permit.
            match self.session_threads.try_occupy() {
                Some(_permit) => shared.file_systems.of(request.backing),
                None => {
                    return Admission::Later(Ticket {
                        shared,
                        reason: WaitReason::FirstRequest(FirstRequest::of(request)),
                    });
                }
            };
        }
        let dirty_tracker = match request.operation {
            Operation::BufferedWrite | Operation::KernelWriteback | Operation::Sync => {
                shared.dirty_tracker(request.backing).map(|(_, dirty_tracker)| dirty_tracker)
            }
            _ => None,
        };
        let reason = match (request.operation, dirty_tracker) {
            (Operation::BufferedWrite | Operation::KernelWriteback, Some(dirty_tracker))
                if !dirty_tracker.has_room(request.length) =>
            {
                let is_cancellable = request.operation == Operation::BufferedWrite;
                let class = || shared.class_of(request.caller, is_cancellable, request.backing);
                if dirty_tracker.is_below_share(&request.caller, request.length, class) {
                    return unscheduled();
                }
                WaitReason::DirtyMemory {
                    dirty_tracker,
                    backing: request.backing.clone(),
                    caller: request.caller,
                    is_cancellable,
                    bytes: request.length,
                }
            }
            (Operation::BufferedWrite | Operation::KernelWriteback, _) => return unscheduled(),
            (Operation::Sync, Some(dirty_tracker)) if dirty_tracker.exceeds_request(request.backing) => {
                WaitReason::Sync { backing: request.backing.clone(), caller: request.caller }
            }
            _ => {
                let Some(system) = shared.file_systems.of(request.backing) else { return unscheduled() };
                let now_ns = now_ns();
                let (device_request, must_query) =
                    shared.device_request(system, request, false, Some(&self.session_threads), now_ns);
                let action = match request.operation {
                    _ if must_query => Some(AfterAction::QueryExtents),
                    Operation::Write | Operation::MetadataWrite => Some(AfterAction::MarkStale),
                    _ => None,
                };
                let (backing, offset) = (request.backing, request.offset);
                let after = action.map(|action| AfterDispatch { action, backing: backing.clone(), offset });
                let queue = &system.queue;
                let (queued, is_dispatched) = shared.submit_to(queue, request, &device_request, false, now_ns);
                match is_dispatched.then(|| self.session_threads.try_occupy()).flatten() {
                    Some(permit) => {
                        return Admission::Now(Slot { queued: Some((shared, queue, queued)), after, _permit: permit });
                    }
                    // If it was dispatched meanwhile, an executor runs it at once.
                    None => WaitReason::Queue { queue, queued, after },
                }
            }
        };
        Admission::Later(Ticket { shared, reason })
    }

    fn park(&self, mut ticket: Ticket<'_>, job: Job) {
        let shared = &self.shared;
        match std::mem::replace(&mut ticket.reason, WaitReason::Parked) {
            WaitReason::Queue { queue, queued, after } => {
                let job = match after {
                    Some(after) => shared.append_work(after, job),
                    None => job,
                };
                // A separate statement, so that the lock is released before the job runs.
                let returned = queue.lock().park(&queued, Work { job, is_cancellable: true });
                if let Some(job) = returned {
                    shared.executors.submit([Task::new(shared, queue, queued, job)]);
                }
            }
            WaitReason::Thread => shared.executors.submit([Task::unscheduled(job)]),
            WaitReason::FirstRequest(first) => {
                let of_thread = shared.clone();
                shared
                    .executors
                    .submit([Task::unscheduled(Job::Call(Box::new(move || of_thread.submit_first(&first, job))))]);
            }
            WaitReason::DirtyMemory { dirty_tracker, backing, caller, is_cancellable, bytes } => {
                let class = shared.class_of(caller, is_cancellable, &backing);
                shared.release(dirty_tracker.queue_write(&caller, is_cancellable, bytes, class, job));
            }
            WaitReason::Sync { backing, caller } => shared.sync_after_writeback(&backing, caller, job),
            WaitReason::Parked => {}
        }
    }

    fn spawn(&self, work: Box<dyn FnOnce() + Send>) {
        self.shared.executors.submit([Task::unscheduled(Job::Call(work))]);
    }

    fn note_dirty(&self, request: &GateRequest<'_>) {
        let shared = &self.shared;
        if let Some(system) = shared.file_systems.of(request.backing) {
            system.extent_cache.mark_stale(request.backing.inode);
        }
        if let Some((_, dirty_tracker)) = shared.dirty_tracker(request.backing) {
            dirty_tracker.note_dirty(request);
        }
    }

    fn has_dirty_files(&self) -> bool {
        self.shared.writeback.as_ref().is_some_and(|writeback| writeback.has_files())
    }

    fn discard_dirty(&self, device: u64, inode: u64) {
        self.shared.with_dirty_trackers(|dirty_tracker| {
            self.shared.release(dirty_tracker.discard((device, inode)));
        });
    }

    fn begin_sync(&self, backing: &Arc<Backing>) -> SyncGuard<'_> {
        self.shared.begin_sync(backing)
    }

    fn finish_sync(&self, guard: SyncGuard<'_>) {
        guard.succeed();
    }

    fn pending_writeback_error(&self, backing: &Arc<Backing>, is_new: bool) -> Option<i32> {
        self.shared.pending_writeback_error(backing, is_new)
    }

    fn clear_writeback_error(&self, backing: &Arc<Backing>) {
        if let Some((_, dirty_tracker)) = self.shared.dirty_tracker(backing) {
            dirty_tracker.renew_description(backing);
        }
        self.shared.clear_writeback_error((backing.device, backing.inode));
    }

    fn forget_inode(&self, device: u64, inode: u64) {
        self.shared.clear_writeback_error((device, inode));
    }

    fn release_memory(&self) {
        self.shared.file_systems.release_memory();
        self.shared.with_dirty_trackers(DirtyTracker::shrink);
        self.shared.executors.release_memory();
    }
}

impl FirstRequest {
    fn of(request: &GateRequest<'_>) -> FirstRequest {
        let GateRequest { caller, operation, backing, offset, length } = *request;
        FirstRequest { caller, operation, backing: backing.clone(), offset, length }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if let Some((shared, queue, queued)) = self.queued {
            if let Some(after) = self.after.take() {
                shared.after(&after);
            }
            shared.complete(queue, &queued, false);
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if let WaitReason::Queue { queue, queued, .. } = self.reason {
            let mut effects = Effects::default();
            queue.lock().withdraw(&queued, now_ns(), &mut effects);
            self.shared.apply(queue, effects);
        }
    }
}

impl Shared {
    /// Submits a request together with its job to the queue of its device.
    fn submit_with_job(self: &Arc<Self>, system: &FileSystem, request: &GateRequest<'_>, is_async: bool, work: Work) {
        let now_ns = now_ns();
        let (device_request, _) = self.device_request(system, request, is_async, None, now_ns);
        let mut effects = Effects::default();
        let (mut state, issuer, member) = self.enter(&system.queue, request, is_async, now_ns);
        state.submit_job(issuer, member, &device_request, work, now_ns, &mut effects);
        drop(state);
        self.apply(&system.queue, effects);
    }

    /// Submits a request whose job follows. The flag is true if it was dispatched at once.
    fn submit_to(
        self: &Arc<Self>,
        queue: &Arc<Queue>,
        request: &GateRequest<'_>,
        device_request: &DeviceRequest,
        is_async: bool,
        now_ns: u64,
    ) -> (QueuedRequest, bool) {
        let mut effects = Effects::default();
        let (mut state, issuer, member) = self.enter(queue, request, is_async, now_ns);
        let submitted = state.submit(issuer, member, device_request, now_ns, &mut effects);
        drop(state);
        self.apply(queue, effects);
        submitted
    }

    /// Locks a queue and finds the issuer and the member of a request. The lock is released only to
    /// read facts about the issuer that are missing or out of date.
    #[inline]
    fn enter<'a>(
        &self,
        queue: &'a Queue,
        request: &GateRequest<'_>,
        is_async: bool,
        now_ns: u64,
    ) -> (MutexGuard<'a, State>, IssuerId, MemberId) {
        let issuer_id = issuer_id(&request.caller);
        let mut state = queue.lock();
        let needs = state.needs(issuer_id, is_async, &self.rules, now_ns);
        let mut path = None;
        if needs.is_any() {
            // System queries may block, so the lock is released.
            drop(state);
            let facts = needs.facts.then(|| thread_facts::read_facts(request.caller, self.rules.has_commands()));
            let ioprio = needs.priority.then(|| thread_facts::io_priority(request.caller.tid));
            path = needs.path.then(|| self.path_of(request.backing));
            state = queue.lock();
            let State { issuers, device, .. } = &mut *state;
            if let Some(facts) = facts {
                issuers.store_facts(issuer_id, facts, device, now_ns);
            }
            if let (Some(ioprio), Some(issuer)) = (ioprio, issuers.get_mut(issuer_id)) {
                issuer.set_priority(ioprio, device.scheduler_mut(), now_ns);
            }
        }
        let attribution =
            state.attribution(issuer_id, request.operation, &self.rules, &mut || path.take().unwrap_or_default());
        if let Some(cgroup) = state.missing_weights(issuer_id, attribution) {
            drop(state);
            let weights = cgroups::weights(&cgroup);
            state = queue.lock();
            state.set_weights(issuer_id, weights);
        }
        let member = state.member(issuer_id, attribution, &self.rules, now_ns);
        (state, issuer_id, member)
    }

    /// Builds the device request of an operation. The flag is true if the extents have to be
    /// queried after dispatch. Asynchronous requests come from threads that may wait for the disk,
    /// and query at once. A session thread queries before dispatch only while another thread is
    /// free.
    fn device_request(
        &self,
        system: &FileSystem,
        request: &GateRequest<'_>,
        is_async: bool,
        session_threads: Option<&SessionThreads>,
        now_ns: u64,
    ) -> (DeviceRequest, bool) {
        let (extents, inode) = (&system.extent_cache, request.backing.inode);
        let bytes = request.length.clamp(512, REQUEST_BYTES_MAX);
        let metadata = |op| {
            let address = extents.address_of_inode(inode, METADATA_BYTES);
            let hints = Hints { is_async: false, is_metadata: true };
            (DeviceRequest { op, address, bytes: METADATA_BYTES, hints, counts: [0; 2] }, false)
        };
        let data = |op, bytes, counts| {
            let (address, must_query) = match is_async {
                true => (extents.address_of_data(request.backing, request.offset, bytes, now_ns), false),
                false => {
                    let occupy_thread =
                        || session_threads.map_or(Some(None), |session_threads| session_threads.try_occupy().map(Some));
                    extents.address_of_data_now(request.backing, (request.offset, bytes), occupy_thread, now_ns)
                }
            };
            (DeviceRequest { op, address, bytes, hints: Hints { is_async, is_metadata: false }, counts }, must_query)
        };
        match request.operation {
            Operation::Read => data(RequestOp::Read, bytes, [request.length, 0]),
            Operation::Write | Operation::BufferedWrite | Operation::KernelWriteback => {
                if !is_async {
                    system.extent_cache.mark_stale(inode);
                }
                data(RequestOp::Write, bytes, [0, request.length])
            }
            Operation::Sync => {
                let dirty = system
                    .queue
                    .dirty_tracker
                    .get()
                    .map_or(0, |dirty_tracker| dirty_tracker.pending_bytes(request.backing));
                let bytes = dirty.clamp(METADATA_BYTES, REQUEST_BYTES_MAX);
                data(RequestOp::Write, bytes, [0, dirty])
            }
            Operation::MetadataRead => metadata(RequestOp::Read),
            Operation::MetadataWrite => {
                system.extent_cache.mark_stale(inode);
                metadata(RequestOp::Write)
            }
        }
    }

    /// Appends the work of `after` to a job. The extents are most often in memory by then.
    fn append_work(self: &Arc<Self>, after: AfterDispatch, job: Job) -> Job {
        let shared = self.clone();
        match job {
            Job::Write { file, offset, data, flags, done } if after.action == AfterAction::MarkStale => {
                let done = Box::new(move |written| {
                    shared.after(&after);
                    done(written);
                });
                Job::Write { file, offset, data, flags, done }
            }
            job => Job::Call(Box::new(move || {
                Task::unscheduled(job).run();
                shared.after(&after);
            })),
        }
    }

    fn after(&self, after: &AfterDispatch) {
        let Some(system) = self.file_systems.of(&after.backing) else { return };
        match after.action {
            AfterAction::QueryExtents => system.extent_cache.query(&after.backing, after.offset, now_ns()),
            AfterAction::MarkStale => system.extent_cache.mark_stale(after.backing.inode),
        }
    }

    /// Completes a request.
    fn complete(self: &Arc<Self>, queue: &Arc<Queue>, queued: &QueuedRequest, failed: bool) {
        let mut effects = Effects::default();
        queue.lock().complete(queued, failed, now_ns(), &mut effects);
        self.apply(queue, effects);
    }

    /// Arms the timer and passes dispatched jobs to the executors.
    #[inline]
    fn apply(self: &Arc<Self>, queue: &Arc<Queue>, effects: Effects) {
        let Effects { jobs, wake_ns } = effects;
        if let Some(wake_ns) = wake_ns {
            self.timer.set(wake_ns);
        }
        if !jobs.is_empty() {
            self.executors.submit(jobs.into_iter().map(|(queued, job)| Task::new(self, queue, queued, job)));
        }
    }

    /// Returns the current path of a file relative to the source; empty if the file has none.
    fn path_of(&self, backing: &Backing) -> String {
        let path = backing.with_descriptor(|fd| ProcessFiles::own().open_file(fd.as_raw_fd()));
        let path = path.flatten().unwrap_or_default();
        path.strip_prefix(&self.source).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn close(self: &Arc<Self>) {
        if let Some(writeback) = &self.writeback {
            writeback.close();
        }
        let mut jobs = Vec::new();
        self.with_dirty_trackers(|dirty_tracker| jobs.extend(dirty_tracker.close()));
        self.executors.submit(jobs.into_iter().map(Task::unscheduled));
        for queue in self.file_systems.queues() {
            let mut effects = Effects::default();
            queue.lock().close(&mut effects);
            self.apply(&queue, effects);
        }
        self.timer.close();
        self.executors.close();
    }
}
