//! The queue of one disk: it decides when each request of an issuer is dispatched.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use hoistway_config::mount::{MountConfig, MountDevice};
use hoistway_core::Kind;
use hoistway_qos::medium::{DEPTH_FLASH, DEPTH_ROTATIONAL};
use hoistway_qos::{
    Begin, Completion, DEPTH_MAX, DiskQueue, DiskQueueConfig, Hints, IoError, IoRequest, JoinError, Medium,
    MediumProperties, MediumRequest, MemberId, RequestOp,
};
use hoistway_reactor::Process;
use slab::Slab;

use super::disks::Disk;
use super::issuers::{IssuerId, IssuerTable, process_priority};
use super::rules::{Attribution, Rules};
use super::writeback::DirtyTracker;
use super::{SetUpError, cgroups};
use crate::Job;
use crate::log_limit::LogRateLimiter;

/// Maximum size in bytes of a request in the queue, which is that of a FUSE request: 1 MiB. A
/// larger transfer is charged as one of this size.
pub(super) const REQUEST_BYTES_MAX: u64 = 1 << 20;
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

/// The lockable state of a queue.
pub(super) struct State {
    /// Limits, reservations, elevator and accounts.
    pub device: DiskQueue<(), ()>,
    /// The configuration with all changes since the start.
    pub config: DiskQueueConfig,
    /// The issuers of requests.
    pub issuers: IssuerTable,
    /// The member shared by issuers for which the device has no room.
    overflow_member: MemberId,
    operations: Slab<Operation>,
    /// Number of operations so far. It makes tickets unique.
    serial: u32,
    /// Operations that are not dispatched.
    waiting: u32,
    begun: Vec<Begun>,
    done: Vec<Completion<()>>,
    /// Time for which the timer thread is armed for this queue.
    armed_ns: u64,
    /// Time of the next liveness check, and the serial number at the previous one.
    liveness_ns: u64,
    liveness_serial: u32,
}

/// A request in the queue.
struct Operation {
    ticket: u64,
    issuer: IssuerId,
    /// The issuer waits for the reply, so the request is void if the issuer is killed.
    is_cancellable: bool,
    bytes: [u64; 2],
    stage: Stage,
}

/// The number of a dispatched request, and its ticket.
struct Begun {
    ticket: u64,
    number: u32,
}

/// The medium of a mount's queue: the mount itself does the I/O of each dispatched request.
struct Dispatched<'a>(&'a mut Vec<Begun>);

impl Medium for Dispatched<'_> {
    type Data = ();
    type Output = ();

    #[inline]
    fn begin(&mut self, request: MediumRequest<()>) -> Begin<()> {
        self.0.push(Begun { ticket: request.ticket, number: request.number });
        Begin::Pending
    }

    fn copy_piece(&mut self, (): &(), _: usize, _: usize) -> Option<()> {
        Some(())
    }
}

fn medium_properties(bytes: u64, rotational: bool) -> MediumProperties {
    MediumProperties {
        bytes,
        rotational,
        is_emulated: false,
        is_synchronous: false,
        splits_requests: false,
        default_depth: if rotational { DEPTH_ROTATIONAL } else { DEPTH_FLASH },
        depth_max: DEPTH_MAX,
    }
}

enum Stage {
    /// Waiting for dispatch, without its work.
    Waiting,
    /// Waiting for dispatch, with its work.
    Parked(Job),
    /// Dispatched. The tag completes it on the device; `None` if the device does not know it.
    Dispatched(Option<u32>),
    /// Withdrawn or cancelled.
    Withdrawn,
}

/// A request to the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceRequest {
    pub op: RequestOp,
    /// First byte on the disk, and length in bytes (at least 1).
    pub place: u64,
    pub bytes: u64,
    pub hints: Hints,
    /// Bytes read and written, added to the issuer's totals at completion.
    pub counts: [u64; 2],
}

/// The results of an operation on a queue.
#[derive(Default)]
pub(super) struct Effects {
    /// Dispatched requests that have their work.
    pub jobs: Vec<(usize, Job)>,
    /// The time for which the timer has to be armed, if earlier than before.
    pub wake_ns: Option<u64>,
}

impl Queue {
    /// Creates the queue of a disk.
    ///
    /// # Errors
    /// A configuration value out of range, or tenants that do not fit.
    pub fn new(disk: Disk, config: &MountConfig, now_ns: u64) -> Result<(Queue, Vec<String>), SetUpError> {
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
            device.scheduler_mut().set_group(&group.name, parent, group.weight, &group.limits, now_ns)?;
        }
        for tenant in &config.tenants {
            warnings.extend(device.scheduler_mut().set_tenant(&tenant.name, &tenant.terms, now_ns)?);
        }
        let overflow_member = device.scheduler_mut().join(None, None, now_ns)?;
        let state = State {
            device,
            config: settings,
            issuers: IssuerTable::default(),
            overflow_member,
            operations: Slab::with_capacity(1024),
            serial: 0,
            waiting: 0,
            begun: Vec::with_capacity(64),
            done: Vec::with_capacity(64),
            armed_ns: NEVER,
            liveness_ns: 0,
            liveness_serial: 0,
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

    /// Submits a request. Returns its index and whether it was dispatched at once.
    #[inline]
    pub fn submit(
        &mut self,
        issuer: IssuerId,
        member: MemberId,
        device_request: &DeviceRequest,
        now_ns: u64,
        effects: &mut Effects,
    ) -> (usize, bool) {
        self.serial = self.serial.wrapping_add(1);
        let entry = self.operations.vacant_entry();
        let at = entry.key();
        let ticket = u64::from(self.serial) << 32 | at as u64;
        entry.insert(Operation {
            ticket,
            issuer,
            is_cancellable: false,
            bytes: device_request.counts,
            stage: Stage::Waiting,
        });
        if self.waiting == 0 && self.liveness_ns <= now_ns {
            self.liveness_ns = now_ns.saturating_add(LIVENESS_NS);
        }
        self.waiting += 1;
        if let Some(issuer) = self.issuers.get_mut(issuer) {
            issuer.in_flight += 1;
        }
        let DeviceRequest { op, place, bytes, hints, .. } = *device_request;
        let work = IoRequest { ticket, op, offset: place, length: bytes, durable: false, data: None, hints };
        self.device.submit(member, work, now_ns);
        self.run(now_ns, effects);
        let begun = self.operations.get(at).is_some_and(|operation| matches!(operation.stage, Stage::Dispatched(_)));
        (at, begun)
    }

    /// Completes a request.
    #[inline]
    pub fn complete(&mut self, at: usize, failed: bool, now_ns: u64, effects: &mut Effects) {
        let Some(operation) = self.operations.try_remove(at) else { return };
        if let Some(issuer) = self.issuers.get_mut(operation.issuer) {
            issuer.in_flight = issuer.in_flight.saturating_sub(1);
            issuer.requests += 1;
            issuer.bytes[0] += operation.bytes[0];
            issuer.bytes[1] += operation.bytes[1];
        }
        if let Stage::Dispatched(Some(tag)) = operation.stage {
            self.complete_on_device(tag, failed, now_ns);
        }
        self.run(now_ns, effects);
    }

    /// Attaches the work of a request, or returns it if the request is dispatched already.
    pub fn park(&mut self, at: usize, job: Job) -> Option<Job> {
        match self.operations.get_mut(at) {
            Some(operation) if matches!(operation.stage, Stage::Waiting) => {
                operation.stage = Stage::Parked(job);
                None
            }
            _ => Some(job),
        }
    }

    /// Attaches the work of a request for whose reply the issuer waits: it is cancelled if the
    /// issuer is killed.
    pub fn park_cancellable(&mut self, at: usize, job: Job) -> Option<Job> {
        if let Some(operation) = self.operations.get_mut(at) {
            operation.is_cancellable = true;
        }
        self.park(at, job)
    }

    /// Returns the threads that have been waiting since the previous liveness check, if one is due.
    pub fn waiters(&mut self, now_ns: u64) -> Vec<u32> {
        if self.waiting == 0 || now_ns < self.liveness_ns {
            return Vec::new();
        }
        self.liveness_ns = now_ns.saturating_add(LIVENESS_NS);
        let liveness_serial = std::mem::replace(&mut self.liveness_serial, self.serial);
        let waits = |operation: &&Operation| {
            let came = (operation.ticket >> 32) as u32;
            operation.is_cancellable
                && matches!(operation.stage, Stage::Parked(_))
                && liveness_serial.wrapping_sub(came) < u32::MAX / 2
        };
        let mut issuer: Vec<u32> = self
            .operations
            .iter()
            .map(|(_, operation)| operation)
            .filter(waits)
            .map(|operation| operation.issuer.0)
            .collect();
        issuer.sort_unstable();
        issuer.dedup();
        issuer
    }

    /// Cancels the requests of a killed thread. A cancelled request leaves the queue when it is
    /// dispatched and takes no device time.
    pub fn cancel(&mut self, tid: u32) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (_, operation) in &mut self.operations {
            if operation.issuer.0 == tid
                && operation.is_cancellable
                && matches!(operation.stage, Stage::Parked(_))
                && let Stage::Parked(job) = std::mem::replace(&mut operation.stage, Stage::Withdrawn)
            {
                jobs.push(job);
            }
        }
        jobs
    }

    /// Withdraws a request. It leaves the queue when it is dispatched and takes no device time.
    pub fn withdraw(&mut self, at: usize, now_ns: u64, effects: &mut Effects) {
        match self.operations.get_mut(at) {
            Some(operation) if matches!(operation.stage, Stage::Waiting) => operation.stage = Stage::Withdrawn,
            _ => self.complete(at, false, now_ns, effects),
        }
    }

    /// Runs the device and collects the dispatched requests.
    #[inline]
    pub fn run(&mut self, now_ns: u64, effects: &mut Effects) {
        loop {
            self.device.run(&mut Dispatched(&mut self.begun), now_ns, &mut self.done);
            self.refused(effects);
            if self.begun.is_empty() {
                break;
            }
            let mut again = false;
            let mut begun = std::mem::take(&mut self.begun);
            for Begun { ticket, number } in begun.drain(..) {
                again |= self.dispatched(ticket, number, now_ns, effects);
            }
            self.begun = begun;
            if !again {
                break;
            }
        }
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
        for (at, operation) in &mut self.operations {
            if matches!(operation.stage, Stage::Parked(_))
                && let Stage::Parked(job) = std::mem::replace(&mut operation.stage, Stage::Dispatched(None))
            {
                effects.jobs.push((at, job));
            }
        }
    }

    /// Handles the dispatch of a request. Returns true if a request was completed by that.
    fn dispatched(&mut self, ticket: u64, number: u32, now_ns: u64, effects: &mut Effects) -> bool {
        let at = ticket as u32 as usize;
        let Some(operation) = self.operations.get_mut(at).filter(|operation| operation.ticket == ticket) else {
            // The member has left, so the request is void.
            self.complete_on_device(number, false, now_ns);
            return true;
        };
        self.waiting = self.waiting.saturating_sub(1);
        match std::mem::replace(&mut operation.stage, Stage::Dispatched(Some(number))) {
            Stage::Waiting => false,
            Stage::Parked(job) => {
                effects.jobs.push((at, job));
                false
            }
            Stage::Withdrawn => {
                let issuer = operation.issuer;
                self.operations.remove(at);
                if let Some(issuer) = self.issuers.get_mut(issuer) {
                    issuer.in_flight = issuer.in_flight.saturating_sub(1);
                }
                self.complete_on_device(number, false, now_ns);
                true
            }
            Stage::Dispatched(old) => {
                operation.stage = Stage::Dispatched(old);
                self.complete_on_device(number, false, now_ns);
                true
            }
        }
    }

    /// Handles replies of the device. Completed requests are gone already; a request that is still
    /// here was refused by the device and is carried out unscheduled, so that no data become
    /// inaccessible.
    #[inline]
    fn refused(&mut self, effects: &mut Effects) {
        for done in self.done.drain(..) {
            let at = done.ticket as u32 as usize;
            let Some(operation) = self.operations.get_mut(at).filter(|operation| operation.ticket == done.ticket)
            else {
                continue;
            };
            if !matches!(operation.stage, Stage::Dispatched(_)) {
                static REFUSED: LogRateLimiter = LogRateLimiter::new();
                if let Some(left_out) = REFUSED.allow(super::now_ns()) {
                    tracing::error!(
                        ?done.result,
                        left_out,
                        "a request was refused by its queue, and is done out of turn"
                    );
                }
                self.waiting = self.waiting.saturating_sub(1);
                if let Stage::Parked(job) = std::mem::replace(&mut operation.stage, Stage::Dispatched(None)) {
                    effects.jobs.push((at, job));
                }
            }
        }
    }

    fn complete_on_device(&mut self, number: u32, failed: bool, now_ns: u64) {
        let result = if failed { Err(IoError::Io) } else { Ok(()) };
        self.device.end_io(number, result, now_ns);
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
        let State { issuers, device, overflow_member, .. } = self;
        let Some(issuer) = issuers.get_mut(issuer) else { return *overflow_member };
        let weights = std::mem::take(&mut issuer.weights);
        let join = |process: &Process| {
            let joined = match attribution {
                Attribution::Own => device.scheduler_mut().join(None, Some(process_priority(process)), now_ns),
                Attribution::Tenant(place) => {
                    let tenant = rules.tenants.get(place as usize).map(|tenant| tenant.name.as_str());
                    device.scheduler_mut().join(tenant, Some(process_priority(process)), now_ns)
                }
                Attribution::Cgroup => cgroups::join(device, process, &weights, now_ns),
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

/// Logs that an issuer could not become a member of its own.
fn log_join_failure(error: &JoinError, now_ns: u64) {
    static CROWD: LogRateLimiter = LogRateLimiter::new();
    static OTHERS: LogRateLimiter = LogRateLimiter::new();
    let kind = if matches!(error, JoinError::Full(_)) { &CROWD } else { &OTHERS };
    match (error, kind.allow(now_ns)) {
        (_, None) => {}
        (JoinError::Full(most), Some(left_out)) => tracing::warn!(
            most,
            left_out,
            "so many threads use the device: more share one context until others have gone"
        ),
        (error, Some(left_out)) => tracing::error!(left_out, "{error}"),
    }
}

/// Returns the configuration of a disk.
fn device_config_of<'a>(disk: &Disk, config: &'a MountConfig) -> Option<&'a MountDevice> {
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_the_device_refuses_is_carried_out_unscheduled() {
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
        let (queue, _) = Queue::new(disk, &config, 0).expect("it can be set up");
        let mut state = queue.lock();
        let hints = Hints { is_async: false, is_metadata: false };
        let device_request = DeviceRequest { op: RequestOp::Read, place: 0, bytes: 4096, hints, counts: [0; 2] };
        let member = state.overflow_member;
        let mut effects = Effects::default();
        assert!(state.submit((1, 0), member, &device_request, 0, &mut effects).1, "it is alone");
        let (at, is_now) =
            state.submit((1, 0), member, &DeviceRequest { place: 1 << 20, ..device_request }, 0, &mut effects);
        assert!(!is_now && state.park(at, Job::Call(Box::new(|| ()))).is_none());
        let ticket = state.operations[at].ticket;
        let refusal = RequestOp::Read.check_range(1, 1, 0).expect_err("that lies behind the end");
        state.done.push(Completion { ticket, result: Err(refusal) });
        state.run(0, &mut effects);
        assert!(matches!(effects.jobs[..], [(done, _)] if done == at), "its job is there to be done");
        assert_eq!(state.waiting, 0);
    }
}
