//! The queue of one disk: it decides when each request of an issuer is dispatched.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hoistway_config::mount::{MountConfig, MountDevice};
use hoistway_core::Kind;
use hoistway_qos::medium::{DEPTH_FLASH, DEPTH_ROTATIONAL};
use hoistway_qos::{
    Begin, Completion, DEPTH_MAX, DiskQueue, DiskQueueConfig, Hints, IoError, IoId, IoRequest, JoinError,
    LogRateLimiter, Medium, MediumProperties, MediumRequest, MemberId, RequestOp, TermsError,
};
use hoistway_reactor::Process;

use super::disks::Disk;
use super::issuers::{IssuerId, IssuerTable, process_priority};
use super::rules::{Attribution, Rules};
use super::run_time_terms::RunTimeTerms;
use super::writeback::DirtyTracker;
use super::{SetUpError, cgroups};
use crate::Job;
use crate::gate::REQUEST_BYTES_MAX;

/// Interval between two liveness checks of waiting issuers, in ns: 500 ms.
const LIVENESS_NS: u64 = 500_000_000;
/// The timer is not armed.
const NEVER: u64 = u64::MAX;

/// The queue of one disk.
pub(super) struct Queue {
    /// The disk.
    pub disk: Disk,
    /// The name in the control tree.
    pub name: String,
    /// The dirty data of the disk, created at the first write.
    pub dirty_tracker: OnceLock<DirtyTracker>,
    state: Mutex<State>,
}

/// The disk queue of a mount. Each request carries its [`Attachment`] until it is dispatched.
type MountQueue = DiskQueue<Attachment, ()>;

/// The lockable state of a queue.
pub(super) struct State {
    /// Limits, reservations, elevator and accounts.
    pub device: MountQueue,
    /// The configuration with all changes since the start.
    pub config: DiskQueueConfig,
    run_time: Arc<RunTimeTerms>,
    /// The issuers of requests.
    pub issuers: IssuerTable,
    /// The member shared by issuers for which the device has no room.
    overflow_member: MemberId,
    /// The ticket of the newest request.
    ticket: u64,
    /// Requests that are not dispatched.
    waiting: u32,
    /// Completions of the device, which the mount discards: it carries out each request itself.
    completions: Vec<Completion<()>>,
    /// Time for which the timer thread is armed for this queue.
    armed_ns: u64,
    /// Time of the next liveness check, and the newest ticket at the previous one.
    liveness_ns: u64,
    liveness_ticket: u64,
}

/// The data of the mount in a request of the disk queue.
pub(super) struct Attachment {
    ticket: u64,
    issuer: IssuerId,
    counts: [u64; 2],
    /// The issuer waits for the reply, so the request is void if the issuer is killed.
    is_cancellable: bool,
    stage: Stage,
}

/// The progress of a request that is not dispatched.
enum Stage {
    /// Submitted; its job follows.
    Submitted,
    /// Its job runs at dispatch.
    Parked(Job),
    /// Withdrawn or cancelled: it takes no device time.
    Withdrawn,
    /// Its job runs outside the queue, and the completion of the job is counted there.
    Released,
}

/// A request of a queue, from its submission to [`State::complete`] or [`State::withdraw`].
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedRequest {
    /// The request's I/O in the disk queue; `None` if it is not in the queue.
    io: Option<IoId>,
    /// Distinguishes the request from an earlier one with the same id.
    ticket: u64,
    issuer: IssuerId,
    counts: [u64; 2],
}

/// The medium of a mount's queue: the mount itself carries out each dispatched request.
struct Dispatcher<'a> {
    issuers: &'a mut IssuerTable,
    waiting: &'a mut u32,
    jobs: &'a mut Vec<(QueuedRequest, Job)>,
}

impl Medium for Dispatcher<'_> {
    type Data = Attachment;
    type Output = ();

    #[inline]
    fn begin(&mut self, request: MediumRequest<Attachment>) -> Begin<()> {
        let Some(Attachment { ticket, issuer, counts, stage, .. }) = request.data else { return Begin::Done(Ok(())) };
        *self.waiting = self.waiting.saturating_sub(1);
        match stage {
            // The thread that submitted it finds it dispatched.
            Stage::Submitted => Begin::Pending,
            Stage::Parked(job) => {
                self.jobs.push((QueuedRequest { io: Some(request.io), ticket, issuer, counts }, job));
                Begin::Pending
            }
            Stage::Withdrawn => {
                if let Some(issuer) = self.issuers.get_mut(issuer) {
                    issuer.in_flight = issuer.in_flight.saturating_sub(1);
                }
                Begin::Done(Ok(()))
            }
            Stage::Released => Begin::Done(Ok(())),
        }
    }

    fn copy_piece(&mut self, _: &Attachment, _: usize, _: usize) -> Option<Attachment> {
        // Requests of a mount are not split.
        None
    }
}

fn medium_properties(bytes: u64, rotational: bool) -> MediumProperties {
    MediumProperties {
        bytes,
        rotational,
        is_emulated: false,
        is_synchronous: false,
        splits_requests: false,
        io_bytes_max: u64::MAX,
        default_depth: if rotational { DEPTH_ROTATIONAL } else { DEPTH_FLASH },
        depth_max: DEPTH_MAX,
    }
}

/// A request to the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceRequest {
    pub op: RequestOp,
    /// First byte on the disk, and length in bytes (at least 1).
    pub address: u64,
    pub bytes: u64,
    pub hints: Hints,
    /// Bytes read and written, added to the issuer's totals at completion.
    pub counts: [u64; 2],
}

/// The results of an operation on a queue.
#[derive(Default)]
pub(super) struct Effects {
    /// Dispatched requests that have their jobs.
    pub jobs: Vec<(QueuedRequest, Job)>,
    /// The time for which the timer has to be armed, if earlier than before.
    pub wake_ns: Option<u64>,
}

impl Queue {
    /// Creates the queue of a disk. Terms that were set at run time take precedence over those of
    /// the configuration. Returns warnings.
    ///
    /// # Errors
    /// A configuration value out of range, or tenants that do not fit.
    pub fn new(
        disk: Disk,
        config: &MountConfig,
        run_time: &Arc<RunTimeTerms>,
        now_ns: u64,
    ) -> Result<(Queue, Vec<String>), SetUpError> {
        let settings = settings(&disk, config);
        let rotates = device_config_of(&disk, config).and_then(|device| device.rotational).unwrap_or(disk.rotates);
        let mut device = DiskQueue::new(&settings, medium_properties(disk.bytes, rotates), now_ns)?;
        for (kind, tunable, value) in &config.mount.settings {
            if *kind == device.scheduler().elevator() {
                device.scheduler_mut().set_tunable(tunable, *value).map_err(|source| SetUpError::Tunable {
                    elevator: kind.info().name,
                    tunable: tunable.clone(),
                    source,
                })?;
            }
        }
        let mut warnings: Vec<String> = device.scheduler().elevator_warning().into_iter().collect();
        for group in &config.groups {
            let parent = group.parent.as_deref();
            let weight = run_time.group_weight(&group.name).unwrap_or(group.weight);
            device.scheduler_mut().set_group(&group.name, parent, weight, &group.limits, now_ns)?;
        }
        for tenant in &config.tenants {
            let changed = run_time.terms(&tenant.name);
            let terms = changed.as_ref().unwrap_or(&tenant.terms);
            match device.scheduler_mut().set_tenant(&tenant.name, terms, now_ns) {
                Ok(more) => warnings.extend(more),
                // The other terms are set. A change at run time does not exclude a disk that cannot
                // reserve the bandwidth.
                Err(error @ TermsError::Reserve { .. }) if changed.is_some() => {
                    warnings.push(format!("device {}: tenant {}: {error}", disk.name, tenant.name));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let overflow_member = device.scheduler_mut().join(None, None, now_ns)?;
        let state = State {
            device,
            config: settings,
            run_time: run_time.clone(),
            issuers: IssuerTable::default(),
            overflow_member,
            ticket: 0,
            waiting: 0,
            completions: Vec::with_capacity(64),
            armed_ns: NEVER,
            liveness_ns: 0,
            liveness_ticket: 0,
        };
        Ok((
            Queue { name: disk.name.clone(), disk, dirty_tracker: OnceLock::new(), state: Mutex::new(state) },
            warnings,
        ))
    }

    /// Returns true if the lock is free.
    #[cfg(test)]
    pub fn is_free(&self) -> bool {
        self.state.try_lock().is_ok()
    }

    /// Locks the queue. A panic of another thread leaves it consistent, because every change is a
    /// single step.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The job of a request.
pub(super) struct Work {
    pub job: Job,
    /// The issuer waits for the reply, so the request is void if the issuer is killed.
    pub is_cancellable: bool,
}

/// Facts about an issuer that have to be read before its request can be submitted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    /// IDs, name, control group and command line.
    pub facts: bool,
    /// The I/O priority.
    pub priority: bool,
    /// The path of the file.
    pub path: bool,
}

impl Needs {
    #[inline]
    pub fn is_any(self) -> bool {
        self.facts || self.priority || self.path
    }
}

impl State {
    /// Returns the facts to be read for a request, which happens without the lock. The writer of
    /// data under write-back may have exited; its last known facts apply.
    #[inline]
    pub fn needs(&mut self, issuer: IssuerId, is_async: bool, rules: &Rules, now_ns: u64) -> Needs {
        let facts = self.issuers.fresh(issuer, now_ns).is_none();
        match self.issuers.get_mut(issuer) {
            Some(issuer) => {
                let priority = issuer.note_request(!is_async, now_ns);
                Needs { facts, priority, path: rules.has_paths() && (facts || issuer.attribution.is_none()) }
            }
            None => Needs { facts, priority: false, path: rules.has_paths() },
        }
    }

    /// Returns the attribution of a request.
    #[inline]
    pub fn attribution(
        &mut self,
        issuer: IssuerId,
        operation: crate::Operation,
        rules: &Rules,
        path: &mut dyn FnMut() -> String,
    ) -> Attribution {
        let Some(issuer) = self.issuers.get_mut(issuer) else { return Attribution::Own };
        if let Some(attribution) = issuer.attribution {
            return attribution;
        }
        match rules.attribute_thread(&issuer.facts) {
            Some(of_thread) => *issuer.attribution.insert(of_thread),
            None => rules.attribute_request(&issuer.facts, operation, path),
        }
    }

    /// Returns the control group whose weights have to be read before an issuer can become a member
    /// of it.
    #[inline]
    pub fn missing_weights(&mut self, issuer: IssuerId, attribution: Attribution) -> Option<String> {
        let issuer = self.issuers.get_mut(issuer).filter(|_| attribution == Attribution::Cgroup)?;
        let is_new =
            !issuer.is_member(attribution) && self.device.scheduler().terms(&issuer.facts.process.cgroup).is_none();
        is_new.then(|| issuer.facts.process.cgroup.clone())
    }

    /// Stores the weights of an issuer's control groups.
    pub fn set_weights(&mut self, issuer: IssuerId, weights: Vec<u16>) {
        if let Some(issuer) = self.issuers.get_mut(issuer) {
            issuer.weights = weights;
        }
    }

    /// Submits a request whose job follows by [`State::park`]. The flag is true if the request was
    /// dispatched at once.
    #[inline]
    pub fn submit(
        &mut self,
        issuer: IssuerId,
        member: MemberId,
        device_request: &DeviceRequest,
        now_ns: u64,
        effects: &mut Effects,
    ) -> (QueuedRequest, bool) {
        let request = self.enqueue(issuer, member, device_request, now_ns);
        self.run(now_ns, effects);
        let is_dispatched = request.io.is_none_or(|io| self.device.waiting_data_mut(io).is_none());
        (request, is_dispatched)
    }

    /// Submits a request together with its job.
    pub fn submit_job(
        &mut self,
        issuer: IssuerId,
        member: MemberId,
        device_request: &DeviceRequest,
        work: Work,
        now_ns: u64,
        effects: &mut Effects,
    ) {
        let request = self.enqueue(issuer, member, device_request, now_ns);
        // The queue refused the request: it is carried out unscheduled.
        effects.jobs.extend(self.park(&request, work).map(|job| (request, job)));
        self.run(now_ns, effects);
    }

    #[inline]
    fn enqueue(
        &mut self,
        issuer: IssuerId,
        member: MemberId,
        device_request: &DeviceRequest,
        now_ns: u64,
    ) -> QueuedRequest {
        let DeviceRequest { op, address, bytes, hints, counts } = *device_request;
        self.ticket += 1;
        let ticket = self.ticket;
        let attachment = Attachment { ticket, issuer, counts, is_cancellable: false, stage: Stage::Submitted };
        let request =
            IoRequest { ticket, op, offset: address, length: bytes, durable: false, data: Some(attachment), hints };
        let io = self.device.submit(member, request, now_ns);
        if io.is_some() {
            if self.waiting == 0 && self.liveness_ns <= now_ns {
                self.liveness_ns = now_ns.saturating_add(LIVENESS_NS);
            }
            self.waiting += 1;
        } else {
            log_refusal(device_request, now_ns);
        }
        if let Some(issuer) = self.issuers.get_mut(issuer) {
            issuer.in_flight += 1;
        }
        QueuedRequest { io, ticket, issuer, counts }
    }

    /// Returns the attachment of a request that is not dispatched.
    #[inline]
    fn waiting_mut(&mut self, request: &QueuedRequest) -> Option<&mut Attachment> {
        self.device.waiting_data_mut(request.io?).filter(|waiting| waiting.ticket == request.ticket)
    }

    /// Completes a dispatched request.
    #[inline]
    pub fn complete(&mut self, request: &QueuedRequest, failed: bool, now_ns: u64, effects: &mut Effects) {
        if let Some(issuer) = self.issuers.get_mut(request.issuer) {
            issuer.in_flight = issuer.in_flight.saturating_sub(1);
            issuer.requests += 1;
            if !failed {
                issuer.bytes[0] += request.counts[0];
                issuer.bytes[1] += request.counts[1];
            }
        }
        if let Some(io) = request.io
            && self.device.ticket_of(io) == Some(request.ticket)
        {
            let result = if failed { Err(IoError::Io) } else { Ok(()) };
            self.device.end_io(io, result, now_ns);
        }
        self.run(now_ns, effects);
    }

    /// Attaches the job of a request, or returns it if the request is dispatched already.
    pub fn park(&mut self, request: &QueuedRequest, work: Work) -> Option<Job> {
        match self.waiting_mut(request) {
            Some(waiting) if matches!(waiting.stage, Stage::Submitted) => {
                waiting.is_cancellable = work.is_cancellable;
                waiting.stage = Stage::Parked(work.job);
                None
            }
            _ => Some(work.job),
        }
    }

    /// Returns the threads that have been waiting since the previous liveness check, if one is due.
    pub fn waiters(&mut self, now_ns: u64) -> Vec<u32> {
        if self.waiting == 0 || now_ns < self.liveness_ns {
            return Vec::new();
        }
        self.liveness_ns = now_ns.saturating_add(LIVENESS_NS);
        let newest = std::mem::replace(&mut self.liveness_ticket, self.ticket);
        let waiting = self.device.all_waiting_data_mut().map(|(_, waiting)| waiting);
        let waiting = waiting.filter(|waiting| waiting.is_parked_cancellable() && waiting.ticket <= newest);
        let mut threads: Vec<u32> = waiting.map(|waiting| waiting.issuer.0).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// Cancels the requests of a killed thread, and returns their jobs.
    pub fn cancel(&mut self, tid: u32) -> Vec<Job> {
        let waiting = self.device.all_waiting_data_mut().map(|(_, waiting)| waiting);
        let cancelled = waiting.filter(|waiting| waiting.issuer.0 == tid && waiting.is_parked_cancellable());
        cancelled.filter_map(|waiting| waiting.take_job(Stage::Withdrawn)).collect()
    }

    /// Withdraws a request without a job, which is complete with it. It leaves the queue when it is
    /// dispatched.
    pub fn withdraw(&mut self, request: &QueuedRequest, now_ns: u64, effects: &mut Effects) {
        match self.waiting_mut(request) {
            Some(waiting) => waiting.stage = Stage::Withdrawn,
            None => self.complete(request, false, now_ns, effects),
        }
    }

    /// Runs the device and collects the jobs of dispatched requests.
    #[inline]
    pub fn run(&mut self, now_ns: u64, effects: &mut Effects) {
        let State { device, issuers, waiting, completions, .. } = self;
        device.run(&mut Dispatcher { issuers, waiting, jobs: &mut effects.jobs }, now_ns, completions);
        completions.clear();
        self.arm_timer(effects);
    }

    /// Handles a timer event.
    pub fn wake(&mut self, now_ns: u64, effects: &mut Effects) {
        if self.armed_ns <= now_ns {
            self.armed_ns = NEVER;
            self.run(now_ns, effects);
        } else if self.armed_ns != NEVER {
            effects.wake_ns = Some(self.armed_ns);
        }
    }

    /// Releases all waiting jobs: scheduling has ended.
    pub fn close(&mut self, effects: &mut Effects) {
        for (_, waiting) in self.device.all_waiting_data_mut() {
            if let Some(job) = waiting.take_job(Stage::Released) {
                let Attachment { ticket, issuer, counts, .. } = *waiting;
                effects.jobs.push((QueuedRequest { io: None, ticket, issuer, counts }, job));
            }
        }
    }

    /// Arms the timer if requests wait.
    #[inline]
    fn arm_timer(&mut self, effects: &mut Effects) {
        if self.waiting == 0 {
            return;
        }
        let wake_ns = self.device.next_wake_ns(None).map_or(self.liveness_ns, |wake_ns| wake_ns.min(self.liveness_ns));
        if wake_ns < self.armed_ns {
            self.armed_ns = wake_ns;
            effects.wake_ns = Some(wake_ns);
        }
    }

    /// Returns the device member of an issuer for an attribution.
    pub fn member(&mut self, issuer: IssuerId, attribution: Attribution, rules: &Rules, now_ns: u64) -> MemberId {
        let State { issuers, device, overflow_member, run_time, .. } = self;
        let Some(issuer) = issuers.get_mut(issuer) else { return *overflow_member };
        let weights = std::mem::take(&mut issuer.weights);
        let join = |process: &Process| {
            let joined = match attribution {
                Attribution::Own => device.scheduler_mut().join(None, Some(process_priority(process)), now_ns),
                Attribution::Tenant(place) => {
                    let tenant = rules.tenants.get(place as usize).map(|tenant| tenant.name.as_str());
                    device.scheduler_mut().join(tenant, Some(process_priority(process)), now_ns)
                }
                Attribution::Cgroup => cgroups::join(device.scheduler_mut(), process, &weights, run_time, now_ns),
            };
            match joined {
                Ok(member) => Some(member),
                Err(error) => {
                    log_join_failure(&error, now_ns);
                    None
                }
            }
        };
        issuer.member(attribution, join).unwrap_or(*overflow_member)
    }
}

impl Attachment {
    fn is_parked_cancellable(&self) -> bool {
        self.is_cancellable && matches!(self.stage, Stage::Parked(_))
    }

    /// Takes the job of a parked request, whose stage is `stage` from then on.
    fn take_job(&mut self, stage: Stage) -> Option<Job> {
        if !matches!(self.stage, Stage::Parked(_)) {
            return None;
        }
        match std::mem::replace(&mut self.stage, stage) {
            Stage::Parked(job) => Some(job),
            _ => None,
        }
    }
}

/// Logs that the queue refused a request, for example beyond the end of the disk.
#[cold]
fn log_refusal(request: &DeviceRequest, now_ns: u64) {
    static REFUSED: LogRateLimiter = LogRateLimiter::new();
    if let Some(left_out) = REFUSED.allow(now_ns) {
        tracing::error!(?request, left_out, "the queue refused a request, which is carried out unscheduled");
    }
}

/// Logs that an issuer could not become a member of its own.
fn log_join_failure(error: &JoinError, now_ns: u64) {
    static FULL: LogRateLimiter = LogRateLimiter::new();
    static OTHERS: LogRateLimiter = LogRateLimiter::new();
    let kind = if matches!(error, JoinError::Full(_)) { &FULL } else { &OTHERS };
    match (error, kind.allow(now_ns)) {
        (_, None) => {}
        (JoinError::Full(most), Some(left_out)) => tracing::warn!(
            most,
            left_out,
            "the device has reached its maximum of clients: further threads share one context"
        ),
        (error, Some(left_out)) => tracing::error!(left_out, "{error}"),
    }
}

/// Returns the configuration of a disk.
pub(super) fn device_config_of<'a>(disk: &Disk, config: &'a MountConfig) -> Option<&'a MountDevice> {
    config.devices.iter().find(|device| {
        device.name == disk.name
            || super::disks::find_by_name(&device.name).is_ok_and(|named| named.number == disk.number)
    })
}

/// Returns the device settings of a disk.
fn settings(disk: &Disk, config: &MountConfig) -> DiskQueueConfig {
    let device = device_config_of(disk, config);
    let elevator: Option<Kind> = device.and_then(|device| device.elevator).or(config.mount.elevator);
    DiskQueueConfig {
        name: disk.name.clone(),
        elevator,
        depth: device.and_then(|device| device.depth).or(config.mount.depth).map(|depth| depth.min(DEPTH_MAX)),
        tunables: device.map(|device| device.tunables.clone()).unwrap_or_default(),
        merge: device.is_none_or(|device| device.merge),
        request_bytes_max: REQUEST_BYTES_MAX as u32,
        bandwidth: device.and_then(|device| device.bandwidth),
        position_ns: device.and_then(|device| device.position_ns),
        log_slow_ns: device.and_then(|device| device.log_slow_ns).unwrap_or(DiskQueueConfig::LOG_SLOW_NS_DEFAULT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates the queue of a disk of 1 GiB with depth 1.
    fn queue() -> Queue {
        let disk = Disk {
            name: "test".into(),
            number: 1,
            bytes: 1 << 30,
            rotates: false,
            node: "test".into(),
            maps_extents: false,
        };
        let mount = hoistway_config::mount::MountTerms { depth: Some(1), ..Default::default() };
        let config = MountConfig { mount, ..MountConfig::default() };
        Queue::new(disk, &config, &Arc::default(), 0).expect("a valid configuration").0
    }

    fn read_at(address: u64) -> DeviceRequest {
        let hints = Hints { is_async: false, is_metadata: false };
        DeviceRequest { op: RequestOp::Read, address, bytes: 4096, hints, counts: [0; 2] }
    }

    fn work() -> Work {
        Work { job: Job::Call(Box::new(|| ())), is_cancellable: true }
    }

    #[test]
    fn a_refused_request_is_carried_out_unscheduled() {
        let queue = queue();
        let mut state = queue.lock();
        let (member, mut effects) = (state.overflow_member, Effects::default());
        let (beyond_end, is_dispatched) = state.submit((1, 0), member, &read_at(1 << 30), 0, &mut effects);
        assert!(is_dispatched && state.park(&beyond_end, work()).is_some());
        state.complete(&beyond_end, false, 0, &mut effects);
        state.submit_job((1, 0), member, &read_at(1 << 30), work(), 0, &mut effects);
        assert!(matches!(effects.jobs[..], [(QueuedRequest { io: None, .. }, _)]));
        assert_eq!((state.waiting, state.device.is_idle()), (0, true));
    }

    #[test]
    fn a_stale_request_does_not_affect_the_request_that_reuses_its_id() {
        let queue = queue();
        let mut state = queue.lock();
        let (member, mut effects) = (state.overflow_member, Effects::default());
        let (first, is_dispatched) = state.submit((1, 0), member, &read_at(0), 0, &mut effects);
        assert!(is_dispatched, "the device is idle");
        state.complete(&first, false, 0, &mut effects);
        let (second, is_dispatched) = state.submit((1, 0), member, &read_at(0), 0, &mut effects);
        assert!(is_dispatched && second.io == first.io, "the id is reused");
        state.complete(&first, false, 0, &mut effects);
        assert_eq!(state.device.scheduler().in_flight(), 1, "the second request is still in the device");
        let (third, is_dispatched) = state.submit((1, 0), member, &read_at(4096), 0, &mut effects);
        let stale = QueuedRequest { io: third.io, ..first };
        assert!(!is_dispatched && state.park(&stale, work()).is_some());
        state.withdraw(&stale, 0, &mut effects);
        assert!(state.park(&third, work()).is_none(), "the third request still waits for its job");
        state.complete(&second, false, 0, &mut effects);
        assert!(matches!(effects.jobs[..], [(request, _)] if request.ticket == third.ticket));
        state.complete(&third, false, 0, &mut effects);
        assert_eq!((state.waiting, state.device.is_idle()), (0, true));
    }

    #[test]
    fn cancelled_and_withdrawn_requests_take_no_device_time() {
        let queue = queue();
        let mut state = queue.lock();
        let (member, mut effects) = (state.overflow_member, Effects::default());
        let (first, _) = state.submit((1, 0), member, &read_at(0), 0, &mut effects);
        state.submit_job((2, 0), member, &read_at(1 << 20), work(), 0, &mut effects);
        let (withdrawn, _) = state.submit((3, 0), member, &read_at(2 << 20), 0, &mut effects);
        state.submit_job((4, 0), member, &read_at(3 << 20), work(), 0, &mut effects);
        assert_eq!((state.cancel(2).len(), state.cancel(3).len(), state.waiting), (1, 0, 3));
        state.withdraw(&withdrawn, 0, &mut effects);
        assert!(effects.jobs.is_empty());
        state.complete(&first, false, 0, &mut effects);
        let (last, _) = effects.jobs.pop().expect("the last request is dispatched");
        assert_eq!((last.issuer, effects.jobs.len(), state.waiting), ((4, 0), 0, 0));
        state.complete(&last, false, 0, &mut effects);
        assert!(state.device.is_idle());
    }

    #[test]
    fn a_closed_queue_releases_its_jobs_and_drains() {
        let queue = queue();
        let mut state = queue.lock();
        let (member, mut effects) = (state.overflow_member, Effects::default());
        let (first, _) = state.submit((1, 0), member, &read_at(0), 0, &mut effects);
        state.submit_job((1, 0), member, &read_at(1 << 20), work(), 0, &mut effects);
        state.close(&mut effects);
        let (released, _) = effects.jobs.pop().expect("its job is released");
        state.complete(&released, false, 0, &mut effects);
        state.complete(&first, false, 0, &mut effects);
        assert_eq!((effects.jobs.len(), state.waiting, state.device.is_idle()), (0, 0, true));
    }
}
