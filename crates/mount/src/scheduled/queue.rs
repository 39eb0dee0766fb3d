//! One disk's queue: whoever wants something of the disk asks here, and is told when it is his turn.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use hoistway_core::Kind;
use hoistway_serve::backend::Backend;
use hoistway_serve::config::mount::{MountConfig, MountDevice};
use hoistway_serve::config::{BackendConfig, DeviceConfig};
use hoistway_serve::device::{Begun, DEPTH_MAX, Device, Done, Hints, JoinError, MemberId, Work, WorkOp};
use hoistway_serve::engine::{IoDone, Process, Virtual};
use slab::Slab;

use super::disks::Disk;
use super::people::{Key, People};
use super::rules::{Rules, Whose};
use super::writeback::Ledger;
use super::{SetUpError, cgroups};
use crate::Job;
use crate::seldom::Seldom;

/// The largest request that the kernel makes of a mount, and that a queue sees: 1 MiB. What moves more counts as this.
pub(super) const REQUEST_BYTES_MAX: u64 = 1 << 20;
/// Whoever waits for his turn is looked at after so long, and again: 500 ms.
pub(super) const LOOK_NS: u64 = 500_000_000;
/// No timer is set.
const NEVER: u64 = u64::MAX;

/// The queue of one disk.
pub(super) struct Queue {
    /// The disk.
    pub disk: Disk,
    /// Its name in the control tree.
    pub name: String,
    /// What is in memory for it, from the first write on.
    pub ledger: OnceLock<Ledger>,
    state: Mutex<State>,
}

/// What a queue is, for whoever has its lock.
pub(super) struct State {
    /// Limits, reservations, elevator and accounts.
    pub device: Device,
    /// How it was set up, and what was changed since.
    pub config: DeviceConfig,
    /// Who asks.
    pub people: People,
    /// The member for whom there was no room.
    crowd: MemberId,
    operations: Slab<Operation>,
    /// Operations so far: what tickets begin with, so that none is used twice.
    serial: u32,
    /// Operations whose turn has not come.
    waiting: u32,
    engine: Virtual,
    begun: Vec<Begun>,
    done: Vec<Done>,
    /// When the timer will look at this queue.
    armed_ns: u64,
    /// When it is to be looked whether those who wait are still alive, and who had come when that was done last.
    look_ns: u64,
    looked: u32,
}

/// Something that was asked for.
struct Operation {
    ticket: u64,
    who: Key,
    /// Somebody waits for its answer, and with him it comes to nothing.
    is_his: bool,
    bytes: [u64; 2],
    stage: Stage,
}

enum Stage {
    /// Its turn has not come.
    Waits,
    /// The same, and this is to be done then.
    Parked(Job),
    /// It is its turn. By this the device is told that it is over; `None`: the device knows nothing of it.
    Begun(Option<u64>),
    /// Nobody wants it any more.
    Withdrawn,
}

/// What is wanted of the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub op: WorkOp,
    /// The first byte on the disk, and how many: 1 or more.
    pub place: u64,
    pub bytes: u64,
    pub hints: Hints,
    /// Bytes that a person has read and written by it.
    pub counts: [u64; 2],
}

/// What came of something that was done on a queue.
#[derive(Default)]
pub(super) struct Outcome {
    /// Whose turn it is by now, of those that had given their work away.
    pub jobs: Vec<(usize, Job)>,
    /// When the timer has to look, if that is earlier than it would.
    pub wake_ns: Option<u64>,
}

impl Queue {
    /// Sets a disk's queue up.
    ///
    /// # Errors
    /// When a value is out of its range, or the tenants do not fit.
    pub fn new(number: u32, disk: Disk, config: &MountConfig, now_ns: u64) -> Result<(Queue, Vec<String>), SetUpError> {
        let settings = settings(&disk, config);
        let rotates = told_of(&disk, config).and_then(|told| told.rotational).unwrap_or(disk.rotates);
        let mut device = Device::over(number, &settings, Backend::hosted(disk.bytes, rotates), now_ns)?;
        for (kind, tunable, value) in &config.mount.settings {
            if *kind == device.elevator() {
                device.set_tunable(tunable, *value).map_err(|source| SetUpError::Tunable {
                    elevator: kind.info().name,
                    tunable: tunable.clone(),
                    source,
                })?;
            }
        }
        let mut warnings: Vec<String> = device.elevator_warning().into_iter().collect();
        for group in &config.groups {
            let parent = group.parent.as_deref();
            device.set_group(&group.name, parent, group.weight, &group.limits, now_ns)?;
        }
        for tenant in &config.tenants {
            warnings.extend(device.set_tenant(&tenant.name, &tenant.terms, now_ns)?);
        }
        let crowd = device.join(None, None, now_ns)?;
        let state = State {
            device,
            config: settings,
            people: People::default(),
            crowd,
            operations: Slab::with_capacity(1024),
            serial: 0,
            waiting: 0,
            engine: Virtual::default(),
            begun: Vec::with_capacity(64),
            done: Vec::with_capacity(64),
            armed_ns: NEVER,
            look_ns: 0,
            looked: 0,
        };
        Ok((Queue { name: disk.name.clone(), disk, ledger: OnceLock::new(), state: Mutex::new(state) }, warnings))
    }

    /// Whether nobody has its lock.
    #[cfg(test)]
    pub fn is_free(&self) -> bool {
        self.state.try_lock().is_ok()
    }

    /// The queue, for as long as the guard lives. What a thread that panicked has left is as good as what it found: each step leaves the queue whole.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the system has to be asked of somebody before he can ask for something.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    /// Who it is.
    pub facts: bool,
    /// Its I/O priority.
    pub priority: bool,
    /// The path of what it asks for.
    pub path: bool,
}

impl Needs {
    #[inline]
    pub fn is_any(self) -> bool {
        self.facts || self.priority || self.path
    }
}

impl State {
    /// What has to be found out about who asks, without the lock. Who has its data written back later may be gone by then: what it had counts.
    #[inline]
    pub fn needs(&mut self, who: Key, is_async: bool, rules: &Rules, now_ns: u64) -> Needs {
        let facts = self.people.fresh(who, now_ns).is_none();
        match self.people.get_mut(who) {
            Some(person) => {
                let priority = person.asks(!is_async, now_ns);
                Needs { facts, priority, path: rules.has_paths() && (facts || person.whose.is_none()) }
            }
            None => Needs { facts, priority: false, path: rules.has_paths() },
        }
    }

    /// Whose an operation of somebody is.
    #[inline]
    pub fn whose(
        &mut self,
        who: Key,
        operation: crate::Operation,
        rules: &Rules,
        path: &mut dyn FnMut() -> String,
    ) -> Whose {
        let Some(person) = self.people.get_mut(who) else { return Whose::Own };
        if let Some(whose) = person.whose {
            return whose;
        }
        match rules.of_thread(&person.facts) {
            Some(of_thread) => *person.whose.insert(of_thread),
            None => rules.of_request(&person.facts, operation, path),
        }
    }

    /// The control group whose weights have to be read before somebody can ask as one of it.
    #[inline]
    pub fn lacks(&mut self, who: Key, whose: Whose) -> Option<String> {
        let person = self.people.get_mut(who).filter(|_| whose == Whose::Cgroup)?;
        let is_new = !person.is_member(whose) && self.device.terms(&person.facts.process.cgroup).is_none();
        is_new.then(|| person.facts.process.cgroup.clone())
    }

    /// The weights of somebody's control groups are these.
    pub fn weighs(&mut self, who: Key, weights: Vec<u16>) {
        if let Some(person) = self.people.get_mut(who) {
            person.weights = weights;
        }
    }

    /// Asks for something. Answers the operation's place, and whether it is its turn already.
    #[inline]
    pub fn ask(
        &mut self,
        who: Key,
        member: MemberId,
        wanted: &Wanted,
        now_ns: u64,
        outcome: &mut Outcome,
    ) -> (usize, bool) {
        self.serial = self.serial.wrapping_add(1);
        let entry = self.operations.vacant_entry();
        let at = entry.key();
        let ticket = u64::from(self.serial) << 32 | at as u64;
        entry.insert(Operation { ticket, who, is_his: false, bytes: wanted.counts, stage: Stage::Waits });
        if self.waiting == 0 && self.look_ns <= now_ns {
            self.look_ns = now_ns.saturating_add(LOOK_NS);
        }
        self.waiting += 1;
        if let Some(person) = self.people.get_mut(who) {
            person.open += 1;
        }
        let Wanted { op, place, bytes, hints, .. } = *wanted;
        let work = Work { ticket, op, offset: place, length: bytes, durable: false, data: None, hints };
        self.device.submit(member, work, now_ns);
        self.run(now_ns, outcome);
        let begun = self.operations.get(at).is_some_and(|operation| matches!(operation.stage, Stage::Begun(_)));
        (at, begun)
    }

    /// An operation is over.
    #[inline]
    pub fn end(&mut self, at: usize, failed: bool, now_ns: u64, outcome: &mut Outcome) {
        let Some(operation) = self.operations.try_remove(at) else { return };
        if let Some(person) = self.people.get_mut(operation.who) {
            person.open = person.open.saturating_sub(1);
            person.requests += 1;
            person.bytes[0] += operation.bytes[0];
            person.bytes[1] += operation.bytes[1];
        }
        if let Stage::Begun(Some(tag)) = operation.stage {
            self.over(tag, failed, now_ns);
        }
        self.run(now_ns, outcome);
    }

    /// What is to be done when it is an operation's turn; given back if that is now.
    pub fn park(&mut self, at: usize, job: Job) -> Option<Job> {
        match self.operations.get_mut(at) {
            Some(operation) if matches!(operation.stage, Stage::Waits) => {
                operation.stage = Stage::Parked(job);
                None
            }
            _ => Some(job),
        }
    }

    /// The same for who waits for the answer: if he is killed before, it is not done.
    pub fn park_his(&mut self, at: usize, job: Job) -> Option<Job> {
        if let Some(operation) = self.operations.get_mut(at) {
            operation.is_his = true;
        }
        self.park(at, job)
    }

    /// Who has waited for his turn since the last look; `None` if it is not time for one.
    pub fn waiters(&mut self, now_ns: u64) -> Option<Vec<u32>> {
        if now_ns < self.look_ns {
            return None;
        }
        self.look_ns = now_ns.saturating_add(LOOK_NS);
        let looked = std::mem::replace(&mut self.looked, self.serial);
        let waits = |operation: &&Operation| {
            let came = (operation.ticket >> 32) as u32;
            operation.is_his && matches!(operation.stage, Stage::Parked(_)) && looked.wrapping_sub(came) < u32::MAX / 2
        };
        let mut who: Vec<u32> = self
            .operations
            .iter()
            .map(|(_, operation)| operation)
            .filter(waits)
            .map(|operation| operation.who.0)
            .collect();
        who.sort_unstable();
        who.dedup();
        Some(who)
    }

    /// Takes away what somebody waits for who will not take the answer. It leaves the queue when its turn comes, and takes no time of the disk.
    pub fn give_up(&mut self, tid: u32) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (_, operation) in &mut self.operations {
            if operation.who.0 == tid
                && operation.is_his
                && matches!(operation.stage, Stage::Parked(_))
                && let Stage::Parked(job) = std::mem::replace(&mut operation.stage, Stage::Withdrawn)
            {
                jobs.push(job);
            }
        }
        jobs
    }

    /// Nobody wants an operation any more. It leaves the queue when its turn comes, and takes no time of the disk.
    pub fn withdraw(&mut self, at: usize, now_ns: u64, outcome: &mut Outcome) {
        match self.operations.get_mut(at) {
            Some(operation) if matches!(operation.stage, Stage::Waits) => operation.stage = Stage::Withdrawn,
            _ => self.end(at, false, now_ns, outcome),
        }
    }

    /// Gives the device what it takes, and finds out whose turn it is.
    #[inline]
    pub fn run(&mut self, now_ns: u64, outcome: &mut Outcome) {
        loop {
            self.device.run(&mut self.engine, now_ns, &mut self.done);
            self.refused(outcome);
            self.device.take_begun(&mut self.begun);
            if self.begun.is_empty() {
                break;
            }
            let mut again = false;
            let mut begun = std::mem::take(&mut self.begun);
            for Begun { ticket, tag } in begun.drain(..) {
                again |= self.begins(ticket, tag, now_ns, outcome);
            }
            self.begun = begun;
            if !again {
                break;
            }
        }
        self.arm(outcome);
    }

    /// The timer has come to this queue.
    pub fn wake(&mut self, now_ns: u64, outcome: &mut Outcome) {
        if self.armed_ns <= now_ns {
            self.armed_ns = NEVER;
            self.run(now_ns, outcome);
        } else if self.armed_ns != NEVER {
            outcome.wake_ns = Some(self.armed_ns);
        }
    }

    /// Jobs of all that wait: nothing is scheduled any more.
    pub fn close(&mut self, outcome: &mut Outcome) {
        for (at, operation) in &mut self.operations {
            if matches!(operation.stage, Stage::Parked(_))
                && let Stage::Parked(job) = std::mem::replace(&mut operation.stage, Stage::Begun(None))
            {
                outcome.jobs.push((at, job));
            }
        }
    }

    /// It is an operation's turn. Answers whether something ended by that.
    fn begins(&mut self, ticket: u64, tag: u64, now_ns: u64, outcome: &mut Outcome) -> bool {
        let at = ticket as u32 as usize;
        let Some(operation) = self.operations.get_mut(at).filter(|operation| operation.ticket == ticket) else {
            // Its member left, and what it had asked for is of no use.
            self.over(tag, false, now_ns);
            return true;
        };
        self.waiting = self.waiting.saturating_sub(1);
        match std::mem::replace(&mut operation.stage, Stage::Begun(Some(tag))) {
            Stage::Waits => false,
            Stage::Parked(job) => {
                outcome.jobs.push((at, job));
                false
            }
            Stage::Withdrawn => {
                let who = operation.who;
                self.operations.remove(at);
                if let Some(person) = self.people.get_mut(who) {
                    person.open = person.open.saturating_sub(1);
                }
                self.over(tag, false, now_ns);
                true
            }
            Stage::Begun(old) => {
                operation.stage = Stage::Begun(old);
                self.over(tag, false, now_ns);
                true
            }
        }
    }

    /// Takes up what the device has answered. Of what is over nothing is there any more; what is still there the device has refused: it is done all the
    /// same, as nobody is kept from his data by a queue.
    #[inline]
    fn refused(&mut self, outcome: &mut Outcome) {
        for done in self.done.drain(..) {
            let at = done.ticket as u32 as usize;
            let Some(operation) = self.operations.get_mut(at).filter(|operation| operation.ticket == done.ticket)
            else {
                continue;
            };
            if !matches!(operation.stage, Stage::Begun(_)) {
                static REFUSED: Seldom = Seldom::new();
                if let Some(left_out) = REFUSED.line(super::now_ns()) {
                    tracing::error!(
                        ?done.result,
                        left_out,
                        "a request was refused by its queue, and is done out of turn"
                    );
                }
                self.waiting = self.waiting.saturating_sub(1);
                if let Stage::Parked(job) = std::mem::replace(&mut operation.stage, Stage::Begun(None)) {
                    outcome.jobs.push((at, job));
                }
            }
        }
    }

    fn over(&mut self, tag: u64, failed: bool, now_ns: u64) {
        let result = if failed { Err(libc::EIO) } else { Ok(()) };
        self.device.io_done(&mut self.engine, tag, IoDone { result, buffer: None, extents: Vec::new() }, now_ns);
    }

    /// Notes when this queue has to be looked at, if somebody waits.
    #[inline]
    fn arm(&mut self, outcome: &mut Outcome) {
        if self.waiting == 0 {
            return;
        }
        let wake_ns = self.device.next_wake_ns().map_or(self.look_ns, |wake_ns| wake_ns.min(self.look_ns));
        if wake_ns < self.armed_ns {
            self.armed_ns = wake_ns;
            outcome.wake_ns = Some(wake_ns);
        }
    }

    /// The member of the device as which somebody asks for something that is `whose`.
    pub fn member(&mut self, who: Key, whose: Whose, rules: &Rules, now_ns: u64) -> MemberId {
        let State { people, device, crowd, .. } = self;
        let Some(person) = people.get_mut(who) else { return *crowd };
        let weights = std::mem::take(&mut person.weights);
        let join = |process: &Process| {
            let joined = match whose {
                Whose::Own => device.join(None, Some(process), now_ns),
                Whose::Tenant(place) => {
                    let tenant = rules.tenants.get(place as usize).map(|tenant| tenant.name.as_str());
                    device.join(tenant, Some(process), now_ns)
                }
                Whose::Cgroup => cgroups::join(device, process, &weights, now_ns),
            };
            match joined {
                Ok(member) => Some(member),
                Err(error) => {
                    not_taken_in(&error, now_ns);
                    None
                }
            }
        };
        person.member(whose, join).unwrap_or(*crowd)
    }
}

/// Somebody could not be taken in as one of his own.
fn not_taken_in(error: &JoinError, now_ns: u64) {
    static CROWD: Seldom = Seldom::new();
    static OTHERS: Seldom = Seldom::new();
    let kind = if matches!(error, JoinError::Full(_)) { &CROWD } else { &OTHERS };
    match (error, kind.line(now_ns)) {
        (_, None) => {}
        (JoinError::Full(most), Some(left_out)) => tracing::warn!(
            most,
            left_out,
            "so many threads use the device: more share one context until others have gone"
        ),
        (error, Some(left_out)) => tracing::error!(left_out, "{error}"),
    }
}

/// What was said of a disk.
fn told_of<'a>(disk: &Disk, config: &'a MountConfig) -> Option<&'a MountDevice> {
    config.devices.iter().find(|device| {
        device.name == disk.name || super::disks::named(&device.name).is_ok_and(|named| named.number == disk.number)
    })
}

/// How a disk's queue is set up.
fn settings(disk: &Disk, config: &MountConfig) -> DeviceConfig {
    let told = told_of(disk, config);
    let elevator: Option<Kind> = told.and_then(|told| told.elevator).or(config.mount.elevator);
    DeviceConfig {
        name: disk.name.clone(),
        backend: BackendConfig::File { path: disk.node.clone(), direct: None, read_only: false },
        drive: None,
        elevator,
        depth: told.and_then(|told| told.depth).or(config.mount.depth).map(|depth| depth.min(DEPTH_MAX)),
        tunables: told.map(|told| told.tunables.clone()).unwrap_or_default(),
        merge: told.is_none_or(|told| told.merge),
        request_bytes_max: REQUEST_BYTES_MAX as u32,
        bandwidth: told.and_then(|told| told.bandwidth),
        position_ns: told.and_then(|told| told.position_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_its_queue_refuses_is_done_all_the_same() {
        let disk = Disk {
            name: "test".into(),
            number: 1,
            bytes: 1 << 30,
            rotates: false,
            node: "test".into(),
            has_places: false,
        };
        let mount = hoistway_serve::config::mount::MountTerms { depth: Some(1), ..Default::default() };
        let config = MountConfig { mount, ..MountConfig::default() };
        let (queue, _) = Queue::new(0, disk, &config, 0).expect("it can be set up");
        let mut state = queue.lock();
        let hints = Hints { is_async: false, is_metadata: false };
        let wanted = Wanted { op: WorkOp::Read, place: 0, bytes: 4096, hints, counts: [0; 2] };
        let member = state.crowd;
        let mut outcome = Outcome::default();
        assert!(state.ask((1, 0), member, &wanted, 0, &mut outcome).1, "it is alone");
        let (at, is_now) = state.ask((1, 0), member, &Wanted { place: 1 << 20, ..wanted }, 0, &mut outcome);
        assert!(!is_now && state.park(at, Job::Call(Box::new(|| ()))).is_none());
        let ticket = state.operations[at].ticket;
        let refusal = WorkOp::Read.check_range(1, 1, 0).expect_err("that lies behind the end");
        state.done.push(Done { ticket, result: Err(refusal) });
        state.run(0, &mut outcome);
        assert!(matches!(outcome.jobs[..], [(done, _)] if done == at), "its job is there to be done");
        assert_eq!(state.waiting, 0);
    }
}
