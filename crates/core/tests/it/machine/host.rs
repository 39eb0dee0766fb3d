//! The host: a few processes, a device, a clock. It keeps the contract of the queue and otherwise
//! executes the calls of a case.

use hoistway_core::{
    Bio, Capacity, ContextId, DeferredWork, ElevatorStorage, Flags, GroupId, Kick, Kind, Next, NoSink, Op, OrderedMode,
    Owned, Priority, Request, RequestId, RequestQueue, Reservation, ReserveError, Stale, Storage, SubmitError,
    Submitted,
};

use super::bio_tracker::BioTracker;
use super::bytes::{Call, Case, Place, Value};
use super::custom::TestElevator;
use super::groups::Groups;

/// The service time of the device when the queue is run dry, in ns.
const SERVICE_NS: u64 = 1_000_000;
/// An upper bound of the idle wait before each request, in ns, with default tunables.
const WAIT_NS_MAX: u64 = 1_000_000_000;

type Hosted = Owned<NoSink, TestElevator>;
type Queue = RequestQueue<Hosted>;

pub struct Host {
    pub(super) full: Full,
    pub(super) queue: Queue,
    pub(super) capacity: Capacity,
    plugging: bool,
    drains: bool,
    depth: usize,
    /// The number of hardware queues, if the driver takes requests for each separately.
    hw_queues: Option<u16>,
    stands_still: bool,
    pub(super) now_ns: u64,
    pub(super) processes: Vec<Process>,
    pub(super) groups: Groups,
    /// The requests in the device.
    device: Vec<(RequestId, Request)>,
    pub(super) bio_tracker: BioTracker,
    next_token: u64,
    served: Vec<u64>,
    /// A tunable was set: waits can be as long as it allows.
    tuned: bool,
    /// A request was requeued, and the host has not run the queue since.
    requeued: bool,
}

/// How often a table was full.
#[derive(Clone, Copy, Debug, Default)]
pub struct Full {
    pub requests: u64,
    pub contexts: u64,
    pub groups: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Process {
    pub context: ContextId,
    pub group: GroupId,
    /// The bio for which it sleeps, and whether its resubmission failed: then it tries again after
    /// a completion.
    asleep: Option<(Bio, bool)>,
    /// The start and end of its last bio.
    last: (u64, u64),
}

/// The tables of an elevator, with or without the reservation layer.
fn elevator(kind: Kind, layered: bool, capacity: Capacity) -> ElevatorStorage<Hosted> {
    if layered { ElevatorStorage::owned_reserving(kind, capacity) } else { ElevatorStorage::owned(kind, capacity) }
}

pub(super) type CallResult = Result<(), String>;

impl Host {
    pub fn new(case: &Case) -> Host {
        let (storage, elevator) = (Storage::owned(case.capacity), elevator(case.kind, case.layered, case.capacity));
        let queue = RequestQueue::new(case.config, storage, elevator, NoSink, 0);
        let root = queue.root_group();
        let mut host = Host {
            full: Full::default(),
            queue,
            capacity: case.capacity,
            plugging: case.config.plugging,
            drains: matches!(case.config.ordered, OrderedMode::Drain { .. }),
            depth: case.depth,
            hw_queues: case.pulls_each.then_some(case.config.hw_queues),
            stands_still: case.stands_still,
            now_ns: 0,
            processes: Vec::new(),
            groups: Groups::new(root),
            device: Vec::new(),
            bio_tracker: BioTracker::default(),
            next_token: 1,
            served: Vec::new(),
            tuned: false,
            requeued: false,
        };
        let processes = if case.capacity.contexts > 100 { case.capacity.contexts / 2 } else { 3 };
        for pid in 0..case.capacity.contexts.min(processes) {
            host.create(pid, Priority::UNSET, 0).expect("free entries");
        }
        host
    }

    /// Executes a call and the work that the queue requests after it.
    pub fn call(&mut self, call: Call) -> CallResult {
        match call {
            Call::Submit { process, op, place, sectors, flags } => {
                self.submit(process.into(), op, place, sectors, flags)?;
            }
            Call::Burst { process, op, place, count } => {
                for number in 0..count {
                    let place = if number == 0 { place } else { Place::AfterLast };
                    self.submit(process.into(), op, place, 8, Flags::NONE)?;
                }
            }
            Call::Next { hw_queue } => {
                if self.device.len() < self.depth {
                    self.take_one(hw_queue)?;
                }
            }
            Call::Complete { which } => self.complete(which.into())?,
            Call::Requeue { which } => self.requeue(which.into())?,
            Call::Pass { .. } | Call::Timer if self.stands_still => {}
            Call::Pass { ns } => self.now_ns = self.now_ns.saturating_add(ns),
            Call::Timer => self.timer()?,
            Call::Create { pid, priority, nice } => self.create(pid, priority, nice)?,
            Call::Exit { process } => self.exit(process.into())?,
            Call::SetPriority { process, priority } => {
                self.with_process(process, |queue, context, now_ns| queue.set_priority(context, priority, now_ns))?;
            }
            Call::SetNice { process, nice } => {
                self.with_process(process, |queue, context, now_ns| queue.set_nice(context, nice, now_ns))?;
            }
            Call::SetPolicy { process, policy } => {
                self.with_process(process, |queue, context, now_ns| queue.set_cpu_policy(context, policy, now_ns))?;
            }
            Call::SetCpu { process, cpu } => {
                self.with_process(process, |queue, context, _| queue.set_cpu(context, cpu).map(|()| Kick::Quiet))?;
            }
            Call::Reserve { process, reservation } => self.reserve(process.into(), reservation)?,
            Call::Release { process } => {
                self.with_process(process, |queue, context, now_ns| {
                    let kick = queue.release(context, now_ns);
                    debug_assert!(queue.reservation(context).is_none(), "a released reservation still exists");
                    kick
                })?;
            }
            Call::ReserveGroup { group, reservation } => self.reserve_group(group.into(), reservation)?,
            Call::ReleaseGroup { group } => self.release_group(group.into())?,
            Call::SetTunable { index, value } => self.set_tunable(index.into(), value)?,
            Call::Switch { kind, layered } => self.switch(kind, layered)?,
            Call::Unplug => {
                let kick = self.queue.unplug_for_waiter(self.now_ns);
                self.handle_kick(kick)?;
            }
            Call::CreateGroup { parent, weights } => self.create_group(parent.into(), weights)?,
            Call::Weigh { group, weights } => self.set_group_weights(group.into(), weights)?,
            Call::RemoveGroup { group } => self.remove_group(group.into())?,
            Call::Move { process, group } => self.move_process(process.into(), group.into())?,
        }
        self.check()
    }

    /// Applies a call to a process, if there is one, and executes the requested work.
    fn with_process(
        &mut self,
        number: u16,
        what: impl FnOnce(&mut Queue, ContextId, u64) -> Result<Kick, Stale>,
    ) -> CallResult {
        let Some(process) = self.process(number.into()) else { return Ok(()) };
        let kick = what(&mut self.queue, process.context, self.now_ns);
        self.handle_kick(kick.map_err(|_| "a running process's context is stale")?)
    }

    /// Completes everything that was submitted, doing only what the queue requests.
    pub fn run_dry(&mut self) -> CallResult {
        let asleep = self.processes.iter().filter(|process| process.asleep.is_some()).count();
        let bios = self.bio_tracker.len() + asleep;
        let begin_ns = self.now_ns;
        // Each bio costs a completion, a barrier four, and each request may wait for a timer or
        // two.
        for _ in 0..bios * 10 + 50 {
            if !self.device.is_empty() {
                self.now_ns = self.now_ns.saturating_add(SERVICE_NS);
                self.complete(0)?;
            } else if self.queue.next_timer().is_some() {
                self.timer()?;
            } else if self.requeued {
                self.run()?;
                self.work()?;
            } else {
                break;
            }
            self.check()?;
        }
        if self.bio_tracker.len() > 0 || self.processes.iter().any(|process| process.asleep.is_some()) {
            return Err(format!(
                "{} bios are stuck ({} in the device, timer {:?}): no timer or completion ends the wait",
                self.bio_tracker.len(),
                self.device.len(),
                self.queue.next_timer()
            ));
        }
        let allowed_ns = (bios as u64 * 4 + 2) * (WAIT_NS_MAX + SERVICE_NS);
        if !self.tuned && self.now_ns - begin_ns > allowed_ns {
            return Err(format!("{bios} bios took {} ns to run dry", self.now_ns - begin_ns));
        }
        if self.queue.is_switching() { Err("a switch never ended".to_owned()) } else { Ok(()) }
    }

    /// Checks that the tables are as empty as at the beginning, after all requests have completed
    /// and all processes have exited.
    pub fn check_all_entries_free(&mut self) -> CallResult {
        if self.queue.next(self.now_ns) != Next::Empty || !self.queue.is_empty() {
            return Err("a queue that has run dry is not empty".to_owned());
        }
        while !self.processes.is_empty() {
            self.exit(self.processes.len() - 1)?;
        }
        // An elevator that still holds a context releases it after its timers, or when another one
        // is attached.
        for _ in 0..8 {
            if self.queue.next_timer().is_some() {
                self.timer()?;
            }
        }
        self.remove_all_groups()?;
        self.switch(Kind::Noop, false)?;
        self.remove_all_groups()?;
        self.fill_groups()?;
        self.fill_merged_bios()?;
        for number in 0..self.capacity.contexts {
            self.create(number, Priority::UNSET, 0)?;
            if self.processes.len() as u32 != number + 1 {
                return Err(format!(
                    "only {number} of {} entries for contexts are free at the end",
                    self.capacity.contexts
                ));
            }
        }
        Ok(())
    }

    /// Checks that every entry for a merged bio is free again: exactly so many bios can be merged.
    fn fill_merged_bios(&mut self) -> CallResult {
        let config = *self.queue.config();
        let room = self.capacity.merged_bios;
        if !config.merging || config.max_sectors <= room || self.capacity.requests < 2 {
            return Ok(());
        }
        let context = self.queue.create_context(1, Priority::UNSET, 0).map_err(|_| "no free entry for one process")?;
        let mut merged = 0;
        for token in 0..=room {
            let bio = Bio::new(token.into(), context, Op::Read, token.into(), 1);
            match self.queue.submit(bio, self.now_ns) {
                Ok((Submitted::Merged(_), _)) => merged += 1,
                Ok((Submitted::Queued(_), _)) if token == 0 => {}
                other => return Err(format!("bio {token} of {room} adjacent ones: {other:?}")),
            }
        }
        let Next::Request(id) = self.queue.next(self.now_ns) else { return Err("a request does not come".to_owned()) };
        let mut done = 0;
        let completed = self.queue.complete(id, self.now_ns, |_| done += 1).is_ok();
        let exited = self.queue.exit_context(context, self.now_ns).is_ok();
        if merged == room && done == room + 1 && completed && exited {
            return Ok(());
        }
        Err(format!("{merged} of {room} bios were merged at the end, {done} completed"))
    }

    pub fn into_served(self) -> Vec<u64> {
        self.served
    }

    pub(super) fn process(&self, number: usize) -> Option<Process> {
        (!self.processes.is_empty()).then(|| self.processes[number % self.processes.len()])
    }

    fn create(&mut self, pid: u32, priority: Priority, nice: i8) -> CallResult {
        if let Ok(context) = self.queue.create_context(pid, priority, nice) {
            let group = self.queue.root_group();
            self.processes.push(Process { context, group, asleep: None, last: (0, 0) });
            return Ok(());
        }
        if (self.processes.len() as u32) < self.capacity.contexts
            && self.bio_tracker.len() == 0
            && self.queue.kind() == Kind::Noop
        {
            return Err("the table of contexts is full without processes".to_owned());
        }
        self.full.contexts += 1;
        Ok(())
    }

    fn exit(&mut self, number: usize) -> CallResult {
        if self.processes.is_empty() {
            return Ok(());
        }
        let number = number % self.processes.len();
        let Process { context, group, .. } = self.processes.remove(number);
        self.groups.process_exited(context, group);
        let kick = self.queue.exit_context(context, self.now_ns).map_err(|_| "a running process's context is stale")?;
        self.handle_kick(kick)?;
        let late = Bio::new(0, context, Op::Read, 0, 8);
        if self.queue.submit(late, self.now_ns) != Err(SubmitError::NoContext)
            || self.queue.exit_context(context, self.now_ns).is_ok()
        {
            return Err("calls for an exited process succeed".to_owned());
        }
        Ok(())
    }

    fn submit(&mut self, number: usize, op: Op, place: Place, sectors: u32, flags: Flags) -> CallResult {
        let Some(Process { context, asleep, last, .. }) = self.process(number) else { return Ok(()) };
        let sector = match place {
            Place::At(sector) => sector,
            Place::AfterLast => last.1,
            Place::AsLast => last.0,
            Place::BeforeLast => last.0.saturating_sub(sectors.into()),
        };
        let number = number % self.processes.len();
        self.processes[number].last = (sector, sector.saturating_add(sectors.into()));
        let bio = Bio { token: self.next_token, context, op, sector, sectors, flags };
        if asleep.is_some() {
            return match self.queue.submit(bio, self.now_ns) {
                Err(SubmitError::Asleep | SubmitError::BadExtent | SubmitError::NotSupported) => Ok(()),
                answer => Err(format!("a process that sleeps submits: {answer:?}")),
            };
        }
        if self.queue.resubmit(bio, self.now_ns).is_ok() {
            return Err("a process that did not sleep resubmits".to_owned());
        }
        let before = self.bio_tracker.len();
        match self.queue.submit(bio, self.now_ns) {
            Ok((submitted, kick)) => {
                self.next_token += 1;
                self.record_submission(bio, submitted)?;
                self.handle_kick(kick)?;
                if !self.plugging {
                    self.run()?;
                    self.work()?;
                }
                Ok(())
            }
            // A barrier's steps use up to three entries.
            Err(SubmitError::Full) if before + 3 < self.capacity.requests as usize => {
                Err(format!("full with {before} bios, of {}", self.capacity.requests))
            }
            Err(SubmitError::BadExtent) if sectors > 0 && sector.checked_add(sectors.into()).is_some() => {
                Err("a good extent is refused".to_owned())
            }
            Err(SubmitError::NoContext) => Err("a running process's context is refused".to_owned()),
            Err(SubmitError::Asleep | SubmitError::NotWoken) => Err("a process that is awake is refused".to_owned()),
            Err(SubmitError::Full) => {
                self.full.requests += 1;
                Ok(())
            }
            Err(SubmitError::BadExtent | SubmitError::NotSupported) => Ok(()),
        }
    }

    fn record_submission(&mut self, bio: Bio, submitted: Submitted) -> CallResult {
        let id = match submitted {
            Submitted::Asleep => {
                let sleeper = self.processes.iter_mut().find(|process| process.context == bio.context);
                sleeper.ok_or("no process sleeps")?.asleep = Some((bio, false));
                return Ok(());
            }
            Submitted::Queued(id) | Submitted::Merged(id) => id,
        };
        let submitter = self.processes.iter().find(|process| process.context == bio.context);
        self.bio_tracker.take(bio, submitter.ok_or("an unknown process submits")?.group);
        let request = self.queue.request(id).ok_or("the request of a bio that was just accepted is stale")?;
        let barrier = bio.flags.has(Flags::BARRIER);
        let covers = request.sector() <= bio.sector && bio.end() <= request.end() && request.op() == bio.op;
        if !covers || (barrier && submitted != Submitted::Queued(id)) {
            return Err(format!("{submitted:?} is {request:?}, which differs from the bio"));
        }
        Ok(())
    }

    /// Does the work that a call requests: a run of the queue, then the deferred work.
    pub(super) fn handle_kick(&mut self, kick: Kick) -> CallResult {
        if kick == Kick::Run {
            self.run()?;
        }
        self.work()
    }

    fn run(&mut self) -> CallResult {
        self.requeued = false;
        let Some(hw_queues) = self.hw_queues else {
            while self.device.len() < self.depth && self.take_one(None)? {}
            return Ok(());
        };
        // One request of each in turn, until none has any.
        let (mut hw_queue, mut dry) = (0, 0);
        while self.device.len() < self.depth && dry < hw_queues {
            dry = if self.take_one(Some(hw_queue))? { 0 } else { dry + 1 };
            hw_queue = (hw_queue + 1) % hw_queues;
        }
        Ok(())
    }

    fn work(&mut self) -> CallResult {
        for _ in 0..1000 {
            match self.queue.next_work() {
                None => return Ok(()),
                Some(DeferredWork::Run) => self.run()?,
                Some(DeferredWork::Wake(context)) => self.wake(context)?,
                Some(DeferredWork::Unplug) => {
                    return Err("next_work returned work that the queue does itself".to_owned());
                }
            }
        }
        Err("deferred work does not end".to_owned())
    }

    fn wake(&mut self, context: ContextId) -> CallResult {
        let at = self.processes.iter().position(|process| process.context == context);
        let at = at.ok_or("an unknown process is woken")?;
        let Some((bio, false)) = self.processes[at].asleep else {
            return Err("a process that does not sleep is woken".to_owned());
        };
        self.try_again(at, bio)
    }

    fn try_again(&mut self, at: usize, bio: Bio) -> CallResult {
        match self.queue.resubmit(bio, self.now_ns) {
            Ok((submitted, kick)) => {
                self.processes[at].asleep = None;
                self.record_submission(bio, submitted)?;
                if kick == Kick::Run || !self.plugging {
                    self.run()?;
                }
                Ok(())
            }
            Err(SubmitError::Full) => {
                self.processes[at].asleep = Some((bio, true));
                Ok(())
            }
            Err(error) => Err(format!("a sleeper's bio is refused: {error:?}")),
        }
    }

    /// Takes the next request, if there is one, and checks the result.
    fn take_one(&mut self, hw_queue: Option<u16>) -> Result<bool, String> {
        let next = match hw_queue {
            Some(hw_queue) => self.queue.next_for(hw_queue, self.now_ns),
            None => self.queue.next(self.now_ns),
        };
        let id = match next {
            Next::Request(id) => id,
            Next::Empty => return self.check_nothing_is_queued().map(|()| false),
            Next::Wait => return self.is_event_due().map(|()| false),
        };
        let request = *self.queue.request(id).ok_or("a request is issued and stale")?;
        if self.device.iter().any(|(other, _)| *other == id) {
            return Err(format!("{request:?} is dispatched twice"));
        }
        let barrier = self
            .bio_tracker
            .is_barrier(request.token())
            .ok_or("an issued request has a bio that is unknown or completed")?;
        if !barrier && request.sectors() == 0 {
            return Err(format!("{request:?} has no sectors"));
        }
        let is_first_step = barrier && !self.device.iter().any(|(_, other)| other.token() == request.token());
        if self.drains && (!barrier || is_first_step) {
            self.bio_tracker.check_order(request.token())?;
        }
        self.device.push((id, request));
        self.served.push(request.sector().rotate_left(1) ^ request.token());
        Ok(true)
    }

    /// Checks that all pending bios are in the device: bios by their sectors, barriers by one of
    /// their steps.
    fn check_nothing_is_queued(&self) -> CallResult {
        let barrier = |request: &Request| self.bio_tracker.is_barrier(request.token()) == Some(true);
        let in_device: u128 = self
            .device
            .iter()
            .filter(|(_, request)| !barrier(request))
            .map(|(_, request)| u128::from(request.sectors()))
            .sum();
        if in_device != self.bio_tracker.plain_sectors() {
            return Err(format!(
                "{} sectors are pending, {in_device} are in the device, and the queue is empty",
                self.bio_tracker.plain_sectors()
            ));
        }
        let lost =
            self.bio_tracker.barriers().find(|token| !self.device.iter().any(|(_, request)| request.token() == *token));
        lost.map_or(Ok(()), |token| Err(format!("the queue is empty, and no step of barrier {token} is in the device")))
    }

    fn is_event_due(&self) -> CallResult {
        if self.bio_tracker.len() == 0 {
            return Err("the queue waits without requests".to_owned());
        }
        // Deferred work also ends a wait; it is done before anything else, and an endless wait
        // shows as stuck bios.
        Ok(())
    }

    fn complete(&mut self, which: usize) -> CallResult {
        if self.device.is_empty() {
            return Ok(());
        }
        let (id, issued) = self.device.remove(which % self.device.len());
        let request = *self.queue.request(id).ok_or("a request in the device is stale")?;
        if (request.sector(), request.end(), request.op()) != (issued.sector(), issued.end(), issued.op()) {
            return Err(format!("{issued:?} has changed in the device to {request:?}"));
        }
        let mut tokens = Vec::new();
        let kick = self.queue.complete(id, self.now_ns, |token| tokens.push(token));
        let kick = kick.map_err(|_| "a request in the device cannot be completed")?;
        match self.bio_tracker.is_barrier(request.token()) {
            Some(true) => self.bio_tracker.complete_step(request.token(), &tokens)?,
            Some(false) if BioTracker::is_flush(&request) => return Err("a flush for no barrier".to_owned()),
            _ => self.bio_tracker.complete(&request, &tokens)?,
        }
        self.expect_stale(id)?;
        self.handle_kick(kick)?;
        for at in 0..self.processes.len() {
            if let Some((bio, true)) = self.processes[at].asleep {
                self.try_again(at, bio)?;
                self.work()?;
            }
        }
        Ok(())
    }

    fn expect_stale(&mut self, id: RequestId) -> CallResult {
        let known = self.queue.request(id).is_some() || self.queue.context_of(id).is_some();
        let twice = self.queue.complete(id, self.now_ns, |_| {}).is_ok() || self.queue.requeue(id, self.now_ns).is_ok();
        if known || twice { Err("the handle of a completed request is not stale".to_owned()) } else { Ok(()) }
    }

    fn requeue(&mut self, which: usize) -> CallResult {
        if self.device.is_empty() {
            return Ok(());
        }
        let (id, _) = self.device.remove(which % self.device.len());
        let kick = self.queue.requeue(id, self.now_ns).map_err(|_| "a request in the device cannot be requeued")?;
        self.requeued = true;
        self.handle_kick(kick)
    }

    fn timer(&mut self) -> CallResult {
        let Some(at_ns) = self.queue.next_timer() else { return Ok(()) };
        self.now_ns = self.now_ns.max(at_ns);
        let kick = self.queue.timer(self.now_ns);
        self.handle_kick(kick)
    }

    fn reserve(&mut self, number: usize, wanted: Reservation) -> CallResult {
        let Some(Process { context, .. }) = self.process(number) else { return Ok(()) };
        let answer = self.queue.reserve(context, wanted, self.now_ns);
        let now = self.queue.reservation(context);
        self.reserved(wanted, answer, now)
    }

    /// The expected result of a reservation, and the resulting summary.
    pub(super) fn reserved(
        &mut self,
        wanted: Reservation,
        answer: Result<Kick, ReserveError>,
        now: Option<Reservation>,
    ) -> CallResult {
        let reserves = self.queue.is_reserving();
        match answer {
            Ok(kick) => {
                let now = now.ok_or("the granted reservation does not exist")?;
                if !reserves || now.bytes_per_second != wanted.bytes_per_second {
                    return Err(format!("{wanted:?} was granted, and now there is {now:?}"));
                }
                self.handle_kick(kick)
            }
            Err(ReserveError::NotSupported) if !reserves => Ok(()),
            Err(ReserveError::BadRate | ReserveError::NoCapacity { .. }) if reserves => Ok(()),
            Err(error) => Err(format!("{wanted:?} is refused: {error:?}")),
        }
    }

    fn set_tunable(&mut self, index: usize, value: Value) -> CallResult {
        let tunables: Vec<_> = self.queue.tunables().map(|(row, _)| row).collect();
        if tunables.is_empty() {
            return Ok(());
        }
        let row = tunables[index % tunables.len()];
        let value = match value {
            Value::Of(value) => value,
            Value::Least => row.min,
            Value::Greatest => row.max,
            Value::Above(more) => row.min.saturating_add_unsigned(more).min(row.max),
        };
        let stored = self.queue.set_tunable(row.name, value).is_ok();
        self.tuned |= stored;
        let now = self.queue.tunables().find(|(tunable, _)| tunable.name == row.name).map(|(_, value)| value);
        if stored != (row.min..=row.max).contains(&value) || (stored && now != Some(value)) {
            return Err(format!(
                "{} is {now:?} after {value} was stored ({stored}); range {}..={}",
                row.name, row.min, row.max
            ));
        }
        Ok(())
    }

    fn switch(&mut self, kind: Kind, layered: bool) -> CallResult {
        let kick = self.queue.switch(elevator(kind, layered, self.capacity), self.now_ns);
        self.handle_kick(kick)?;
        drop(self.queue.take_retired_storage());
        Ok(())
    }

    /// Checks the invariants between calls.
    fn check(&mut self) -> CallResult {
        if self.queue.in_flight() as usize != self.device.len() {
            return Err(format!("{} in flight, {} in the device", self.queue.in_flight(), self.device.len()));
        }
        self.check_groups()?;
        if self.queue.is_empty() {
            return self.check_nothing_is_queued();
        }
        // All requested work is done: queued requests wait for the device, for a timer, or for the
        // host, which requeued a request and has not run the queue since. (An elevator that waits
        // for an arrival also arms a timer.)
        if self.device.is_empty() && self.queue.next_timer().is_none() && !self.requeued {
            return Err("requests are queued, and no timer or completion ends the wait".to_owned());
        }
        Ok(())
    }
}
