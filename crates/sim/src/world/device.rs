//! The disk with its request queue: takes bios, reports completions.

mod durable;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};

use hoistway_core::{
    Bio, BlockLayer, ContextId, DeferredWork, Flags, GroupId, Kick, Kind, Next, Op, Priority, RequestId, RequestQueue,
    Reservation, ReserveError, SubmitError, Submitted, Tunable,
};
use hoistway_custom::Host;
use hoistway_drive::{Access, Command, Completion, Drive, Jitter, Phases, Status};
use rand_pcg::Pcg64;

use crate::config::{DirectIssue, ElevatorCost, HostConfig, Plugging};
use crate::error::{Defect, SimError};
use crate::measure::DriveTime;
use crate::record::{HeadSample, Observer};
use crate::settings::group_switch;
use crate::workload::distribution::unit;
use crate::workload::stream;

use super::flush::{FlushMachine, FlushRules, ReadyStep, sequence_of};
use super::plug::Plug;
use super::slab::Slab;
use super::write_back_throttle::{Class, Settings, WriteBackThrottle};

/// The queue, the drive, and the tasks that submit bios.
pub(crate) struct Device<S: Observer> {
    queue: RequestQueue<Host<S>>,
    drive: Drive,
    /// Most requests in the drive at once.
    depth: u32,
    /// Times from the end of a request in the drive until the host knows of it.
    transport: Option<Jitter>,
    /// Completions on their way to the host, each with the time of its arrival.
    arriving: VecDeque<(u64, Completion)>,
    /// Requests in the drive, by tag.
    in_flight: Slab<InFlight>,
    flush_rules: FlushRules,
    flushes: FlushMachine,
    submitters: Vec<Submitter>,
    by_context: HashMap<ContextId, SubmitterId, BuildHasherDefault<DefaultHasher>>,
    /// Submitters whose bios the queue's storage had no room for.
    refused: VecDeque<SubmitterId>,
    /// Submitters whose backlog has been submitted completely.
    pub resumed: Vec<SubmitterId>,
    phases: Phases,
    busy_ns: u64,
    busy_since_ns: u64,
    /// Time at which the drive last completed a request.
    pub answered_ns: u64,
    pub requests: u64,
    /// Bytes that requests asked of the drive.
    pub bytes: u64,
    /// Number of times that the drive went from one process's request to another process's.
    pub turns: u64,
    last_pid: u32,
    head: Vec<HeadSample>,
    /// Reservations that the elevator refused although it takes reservations: the process id, and
    /// the reason.
    pub refused_reservations: Vec<(u32, ReserveError)>,
    /// True if the driver chooses the next request while the drive is full.
    chooses_ahead: bool,
    /// Where bios are plugged.
    plugging: Plugging,
    /// True while the bios of a task's plug are submitted: the queue runs after the last of them.
    flushing: bool,
    /// The requests that are issued as they are submitted, without an elevator.
    direct_issue: DirectIssue,
    /// Congestion of the request pool: reads, and writes.
    congested: [bool; 2],
    /// True if writes stopped being congested since the flag was last taken.
    pub congestion_ended: bool,
    /// The throttle of write-back, if the host has one.
    throttle: Option<WriteBackThrottle<RequestId>>,
    /// CPU time of the elevator's work.
    cost: ElevatorCost,
    /// True if several processors can do the elevator's work.
    shared: bool,
    /// The time from which the elevator's lock is free.
    lock_free_ns: u64,
    /// The submitter that had the elevator's lock last.
    lock_owner: Option<SubmitterId>,
    /// The random numbers of the times under the lock.
    lock_rng: Pcg64,
}

/// A command in the drive.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    origin: Origin,
    at_ns: u64,
}

/// The origin of a command in the drive.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Request(RequestId),
    Step(ReadyStep),
}

/// A submitter of bios: a task, a thread of it, or one of the priorities of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubmitterId(pub u32);

/// A submitter's context in the queue, and the bios that it could not submit yet.
#[derive(Debug)]
struct Submitter {
    context: ContextId,
    backlog: VecDeque<Bio>,
    /// The task's plug, while one of its calls submits.
    plug: Option<Plug>,
    /// The slot of the throttle of write-back that the task's next bio has.
    slot: Option<Class>,
}

impl<S: Observer> Device<S> {
    pub fn new(
        queue: RequestQueue<Host<S>>,
        drive: Drive,
        (depth, flush_rules): (u32, FlushRules),
        host: &HostConfig,
        seed: u64,
    ) -> Self {
        let transport =
            (host.transport_ns > 0).then(|| Jitter::new(0, host.transport_ns, host.transport_sigma_milli, seed));
        let has_elevator = queue.kind() != Kind::Noop || queue.config().layer != BlockLayer::V6_1;
        let direct_issue = if has_elevator { DirectIssue::Never } else { host.direct_issue };
        let throttles = host.write_back_throttling && queue.config().layer == BlockLayer::V6_1;
        let throttle = throttles.then(|| {
            let settings = Settings {
                depth,
                rotational: queue.config().rotational,
                write_back_cache: flush_rules.has_volatile_cache(),
                latency_ns: host.write_back_latency_us * 1000,
            };
            WriteBackThrottle::new(settings, queue.kind())
        });
        Device {
            cost: host.costs.elevators.of(queue.kind()),
            shared: host.cpus > 1,
            lock_free_ns: 0,
            lock_owner: None,
            lock_rng: stream(seed, 0, 9),
            queue,
            drive,
            depth,
            transport,
            arriving: VecDeque::new(),
            in_flight: Slab::new(),
            flush_rules,
            // On 6.12 a commit block under `none` waits in the queue after its flush.
            flushes: FlushMachine::new(direct_issue == DirectIssue::Always),
            submitters: Vec::new(),
            by_context: HashMap::default(),
            refused: VecDeque::new(),
            resumed: Vec::new(),
            phases: Phases::default(),
            busy_ns: 0,
            busy_since_ns: 0,
            answered_ns: 0,
            requests: 0,
            bytes: 0,
            turns: 0,
            last_pid: 0,
            head: Vec::new(),
            refused_reservations: Vec::new(),
            chooses_ahead: host.driver_chooses_ahead,
            plugging: host.plugging,
            flushing: false,
            direct_issue,
            congested: [false; 2],
            congestion_ended: false,
            throttle: throttle.flatten(),
        }
    }

    /// Adds a task; tasks are numbered in the order of these calls. Returns false if the queue has
    /// no room.
    pub fn add_submitter(&mut self, pid: u32, priority: Priority, nice: i8, group: Option<GroupId>) -> bool {
        let Ok(context) = self.queue.create_context(pid, priority, nice) else { return false };
        let moved = group.map(|group| self.queue.move_context(context, group, 0));
        if !matches!(moved, Some(Ok(_))) {
            return false;
        }
        self.by_context.insert(context, SubmitterId(self.submitters.len() as u32));
        self.submitters.push(Submitter { context, backlog: VecDeque::new(), plug: None, slot: None });
        true
    }

    /// Returns true if the elevator, with its current tunables, divides the disk among control
    /// groups.
    pub fn divides_by_groups(&self) -> bool {
        let switch = group_switch(self.queue.kind());
        let is_off =
            |(tunable, value): (&Tunable, i64)| switch.is_some_and(|known| known.name == tunable.name) && value == 0;
        self.queue.kind().info().groups && !self.queue.tunables().any(is_off)
    }

    /// Reserves bandwidth for a task if the elevator takes reservations. A refused reservation is
    /// recorded, and the task continues without it.
    pub fn reserve(&mut self, submitter: SubmitterId, reservation: Reservation, now_ns: u64) -> Result<(), Defect> {
        let context = self.context(submitter);
        match self.queue.reserve(context, reservation, now_ns) {
            Ok(kick) => self.handle_kick(kick, now_ns)?,
            Err(ReserveError::NotSupported) => {}
            Err(refusal) => {
                let pid = self.queue.context(context).map_or(0, |context| context.pid());
                self.refused_reservations.push((pid, refusal));
            }
        }
        Ok(())
    }

    /// The queue context of a task.
    pub fn context(&self, submitter: SubmitterId) -> ContextId {
        self.submitters[submitter.0 as usize].context
    }

    /// The block layer of the queue.
    pub fn layer(&self) -> BlockLayer {
        self.queue.config().layer
    }

    /// Returns true if a task has a backlog: it sleeps until the queue has room.
    #[inline]
    pub fn is_held_back(&self, submitter: SubmitterId) -> bool {
        !self.submitters[submitter.0 as usize].backlog.is_empty()
    }

    /// Submits a bio of a task. Without room in the queue, this bio and the following ones go to
    /// the task's backlog.
    pub fn submit(&mut self, submitter: SubmitterId, bio: Bio, now_ns: u64) -> Result<(), Defect> {
        if let (Plugging::Task { requests, kib }, Some(plug)) =
            (self.plugging, &mut self.submitters[submitter.0 as usize].plug)
        {
            let (count, sectors) = plug.add(bio, self.queue.config());
            if count >= requests || (kib > 0 && sectors >= kib.saturating_mul(2)) {
                let is_plugged = !plug.is_of_call;
                self.flush_plug(submitter, is_plugged, now_ns)?;
            }
            return Ok(());
        }
        let request = self.submit_now(submitter, bio, now_ns)?;
        if let (Some(id), DirectIssue::Always) = (request, self.direct_issue) {
            self.issue_directly(id, now_ns)?;
        }
        Ok(())
    }

    /// Returns the CPU time of the elevator's work for `bios` of a task from `at_ns` on, with the
    /// time in which the task spins until the lock is free.
    pub fn elevator_work(&mut self, submitter: SubmitterId, at_ns: u64, bios: u64) -> u64 {
        if self.cost.contended_ns == 0 {
            return bios * self.cost.work_ns;
        }
        let is_taken_over = self.shared && self.lock_owner.is_some_and(|owner| owner != submitter);
        let work_ns = match (is_taken_over, at_ns < self.lock_free_ns) {
            (false, _) => self.cost.work_ns,
            (true, false) => self.drawn_ns(self.cost.shared_ns),
            (true, true) => self.drawn_ns(self.cost.contended_ns),
        };
        let hold_ns = bios * work_ns;
        self.lock_owner = Some(submitter);
        self.lock_free_ns = self.lock_free_ns.max(at_ns).saturating_add(hold_ns);
        self.lock_free_ns - at_ns
    }

    /// Draws the time of the work under a lock that another processor had. It is exponential: the
    /// cache lines to fetch and the visits to the lock differ from request to request.
    fn drawn_ns(&mut self, mean_ns: u64) -> u64 {
        (-(mean_ns as f64) * (1.0 - unit(&mut self.lock_rng)).ln()) as u64
    }

    /// Starts a task's plug, if the host plugs on tasks: bios are collected until
    /// [`Self::finish_plug`].
    pub fn plug(&mut self, submitter: SubmitterId) {
        if matches!(self.plugging, Plugging::Task { .. }) {
            self.submitters[submitter.0 as usize].plug.get_or_insert_default();
        }
    }

    /// Starts a plug as [`Self::plug`] does, for a call of direct I/O, which [`Self::finish_call`]
    /// ends.
    pub fn plug_call(&mut self, submitter: SubmitterId) {
        self.plug(submitter);
        if let Some(plug) = &mut self.submitters[submitter.0 as usize].plug {
            plug.is_of_call = true;
        }
    }

    /// Submits the bios of a task's plug and removes the plug.
    pub fn finish_plug(&mut self, submitter: SubmitterId, now_ns: u64) -> Result<(), Defect> {
        self.finish_call(submitter, true, now_ns)?;
        Ok(())
    }

    /// Submits the bios of a call of direct I/O. The kernel plugs it only if it has several bios.
    pub fn finish_call(&mut self, submitter: SubmitterId, is_plugged: bool, now_ns: u64) -> Result<(), Defect> {
        self.flush_plug(submitter, is_plugged, now_ns)?;
        self.submitters[submitter.0 as usize].plug = None;
        Ok(())
    }

    /// Submits the bios of a task's plug, then runs the queue.
    fn flush_plug(&mut self, submitter: SubmitterId, is_plugged: bool, now_ns: u64) -> Result<(), Defect> {
        let Some(plug) = self.submitters[submitter.0 as usize].plug.as_mut() else { return Ok(()) };
        let bios = plug.take();
        // With room for all and none that waits, the order of arrival is that of direct issue.
        let passes = || self.in_flight.len() as usize + bios.len() > self.depth as usize || !self.queue.is_empty();
        let is_direct = match self.direct_issue {
            DirectIssue::Never => false,
            DirectIssue::Plugged => is_plugged && passes(),
            DirectIssue::Always => passes(),
        };
        let mut requests = Vec::new();
        self.flushing = true;
        for bio in bios {
            let request = self.submit_now(submitter, bio, now_ns)?;
            if is_direct {
                requests.extend(request);
            }
        }
        self.flushing = false;
        // A task that sleeps for room hands over its plug as it is: the requests wait as others do.
        if !self.is_held_back(submitter) {
            for id in requests {
                self.issue_directly(id, now_ns)?;
            }
        }
        self.run(now_ns)?;
        self.work(now_ns)?;
        Ok(())
    }

    /// Issues a queued request past all that wait, or puts it at the end of the dispatch list if
    /// the drive is full.
    fn issue_directly(&mut self, id: RequestId, now_ns: u64) -> Result<(), Defect> {
        let has_room = self.in_flight.len() < self.depth;
        if self.queue.bypass(id, has_room, now_ns)
            && has_room
            && let Next::Request(id) = self.queue.next(now_ns)
        {
            self.start(id, now_ns)?;
        }
        Ok(())
    }

    /// Returns true if the request pool of this direction is congested: from 7/8 of the pool on,
    /// until fewer than 13/16 are used. The multi-queue layer reports no congestion.
    pub fn is_congested(&self, op: Op) -> bool {
        self.congested[usize::from(op != Op::Read)]
    }

    fn watch_congestion(&mut self) {
        if self.layer() == BlockLayer::V6_1 {
            return;
        }
        for op in [Op::Read, Op::Write] {
            let (used, Some(size)) = self.queue.pool_use(op) else { return };
            let congested = &mut self.congested[usize::from(op != Op::Read)];
            if used > size - size / 8 {
                *congested = true;
            } else if *congested && used + 1 < size - size / 8 - size / 16 {
                *congested = false;
                self.congestion_ended |= op == Op::Write;
            }
        }
    }

    /// Submits a bio to the queue. Returns the request that it became, if it became one.
    fn submit_now(&mut self, submitter: SubmitterId, bio: Bio, now_ns: u64) -> Result<Option<RequestId>, Defect> {
        if self.is_held_back(submitter) {
            self.submitters[submitter.0 as usize].backlog.push_back(bio);
            return Ok(None);
        }
        if !self.takes_slot(submitter, &bio, now_ns) {
            self.submitters[submitter.0 as usize].backlog.push_back(bio);
            return Ok(None);
        }
        let answer = self.queue.submit(bio, now_ns);
        let request = match answer {
            Ok((Submitted::Queued(id), _)) => Some(id),
            _ => None,
        };
        self.submitted(submitter, bio, answer, now_ns)?;
        self.work(now_ns)?;
        Ok(request)
    }

    /// Returns false if a task has to sleep until the throttle of write-back has a slot for its
    /// bio.
    #[inline]
    fn takes_slot(&mut self, submitter: SubmitterId, bio: &Bio, now_ns: u64) -> bool {
        let Some(throttle) = &mut self.throttle else { return true };
        let (Some(class), slot) = (Class::of(bio), &mut self.submitters[submitter.0 as usize].slot) else {
            return true;
        };
        if slot.is_none() && throttle.admit(submitter, class, now_ns) {
            *slot = Some(class);
        }
        slot.is_some()
    }

    /// Passes the slot of a task's bio on to the request that it became, or returns the slot of a
    /// bio that was merged.
    fn pass_slot(&mut self, submitter: SubmitterId, bio: &Bio, outcome: Submitted) {
        let Some(throttle) = &mut self.throttle else { return };
        if Class::of(bio).is_some()
            && let Some(class) = self.submitters[submitter.0 as usize].slot.take()
        {
            let request = if let Submitted::Queued(id) = outcome { Some(id) } else { None };
            throttle.begun(class, request);
        }
    }

    /// Submits the bios of tasks that have got a slot.
    fn resume(&mut self, woken: Vec<(SubmitterId, Class)>, now_ns: u64) -> Result<(), Defect> {
        for (submitter, class) in woken {
            self.submitters[submitter.0 as usize].slot = Some(class);
            self.retry(submitter, false, now_ns)?;
        }
        Ok(())
    }

    /// Records that a writer sleeps in dirty throttling.
    pub fn dirty_sleep(&mut self, now_ns: u64) {
        if let Some(throttle) = &mut self.throttle {
            throttle.dirty_sleep(now_ns);
        }
    }

    /// Unplugs the queue for a task that is about to sleep until its bios complete.
    pub fn unplug(&mut self, now_ns: u64) -> Result<(), Defect> {
        let kick = self.queue.unplug_for_waiter(now_ns);
        self.handle_kick(kick, now_ns)?;
        Ok(())
    }

    /// Time at which [`Self::drive_event`] is due.
    #[inline]
    pub fn next_drive_event(&self) -> Option<u64> {
        let arrival = self.arriving.front().map(|(arrival, _)| *arrival);
        match (self.drive.next_event_ns(), arrival) {
            (Some(event), Some(arrival)) => Some(event.min(arrival)),
            (event, arrival) => event.or(arrival),
        }
    }

    /// Handles an event of the drive. If a request completed, the tokens of its bios are added to
    /// `tokens`, and the request's status is returned; all of its bios share the status.
    pub fn drive_event(&mut self, now_ns: u64, tokens: &mut Vec<u64>) -> Result<Option<Status>, Defect> {
        let completion = match self.arriving.front() {
            Some((arrival, _)) if *arrival <= now_ns => match self.arriving.pop_front() {
                Some((_, completion)) => completion,
                None => return Ok(None),
            },
            _ => {
                let Some(mut completion) = self.drive.poll(now_ns) else { return Ok(None) };
                if let Some(transport) = &mut self.transport {
                    // Completions do not overtake one another.
                    let earliest_ns = self.arriving.back().map_or(now_ns, |(arrival, _)| *arrival);
                    let arrival_ns = (now_ns + transport.draw_ns()).max(earliest_ns);
                    completion.service.phases.overhead_ns += arrival_ns - now_ns;
                    self.arriving.push_back((arrival_ns, completion));
                    return Ok(None);
                }
                completion
            }
        };
        let started = self.in_flight.remove(completion.tag);
        self.completed(&started, &completion, now_ns);
        let failed = completion.status != Status::Done;
        match started.origin {
            Origin::Request(id) => self.complete((id, failed), started.at_ns, now_ns, tokens)?,
            Origin::Step(step) => {
                match step {
                    ReadyStep::Flush => self.flushes.end_flush(failed, tokens),
                    ReadyStep::Data(sequence) => self.flushes.end_data(sequence, failed, tokens),
                }
                self.take_steps(now_ns)?;
            }
        }
        Ok(Some(completion.status))
    }

    /// The rule that a custom elevator has broken, as the error of a run with this seed.
    #[inline]
    pub fn violation(&self, seed: u64) -> Option<SimError> {
        let violation = self.queue.violation()?;
        Some(SimError::Violation {
            elevator: self.queue.kind().info().name,
            seed,
            violation: Box::new(*violation),
            failure: self.queue.failure().map(str::to_owned),
        })
    }

    /// Number of commands that the drive will never complete; `None` if the drive still has an
    /// event to come.
    pub fn unanswered(&self) -> Option<u32> {
        let commands = self.in_flight.len();
        (commands > 0 && self.next_drive_event().is_none()).then_some(commands)
    }

    /// Describes where requests are, as the end of a sentence.
    pub fn describe_requests(&self) -> String {
        let kept =
            if self.queue.is_empty() { "no request waits in the elevator" } else { "requests wait in the elevator" };
        format!("{kept}, {} are in the drive", self.in_flight.len())
    }

    fn completed(&mut self, started: &InFlight, completion: &Completion, now_ns: u64) {
        add(&mut self.phases, &completion.service.phases);
        self.requests += 1;
        self.answered_ns = now_ns;
        if self.in_flight.is_empty() {
            self.busy_ns += now_ns - self.busy_since_ns;
        }
        debug_assert_eq!(completion.service.phases.total_ns(), now_ns - started.at_ns, "the phases are the whole time");
    }

    fn complete(
        &mut self,
        (id, failed): (RequestId, bool),
        issued_ns: u64,
        now_ns: u64,
        tokens: &mut Vec<u64>,
    ) -> Result<(), Defect> {
        if self.flushes.has_queued_data() {
            // A flush after these data is the next command, before requests of the queue.
            let sequences: Vec<u32> = self.queue.tokens(id).filter_map(sequence_of).collect();
            for sequence in sequences {
                self.flushes.end_queued_data(sequence, failed, tokens);
            }
        }
        let op = self.queue.request(id).map(|request| request.op());
        let done = |token: u64| {
            if sequence_of(token).is_none() {
                tokens.push(token);
            }
        };
        match self.queue.complete(id, now_ns, done) {
            Ok(kick) => self.handle_kick(kick, now_ns)?,
            Err(stale) => return Err(Defect(format!("a completion was refused: {stale:?}").into())),
        }
        if self.flushes.is_ready() {
            // The queue has no reason to run for them.
            self.run(now_ns)?;
        }
        self.watch_congestion();
        if let (Some(throttle), Some(op)) = (&mut self.throttle, op) {
            let is_there = |id| self.queue.request(id).is_some();
            let woken = throttle.completed((id, op), now_ns - issued_ns, now_ns, is_there);
            self.resume(woken, now_ns)?;
        }
        while let Some(submitter) = self.refused.pop_front() {
            if !self.retry(submitter, false, now_ns)? {
                break;
            }
        }
        self.work(now_ns)?;
        Ok(())
    }

    /// Time at which [`Self::timer`] is due.
    #[inline]
    pub fn next_timer(&self) -> Option<u64> {
        let throttle_ns = self.throttle.as_ref().and_then(WriteBackThrottle::next_timer);
        match (self.queue.next_timer(), throttle_ns) {
            (Some(queue_ns), Some(throttle_ns)) => Some(queue_ns.min(throttle_ns)),
            (queue_ns, throttle_ns) => queue_ns.or(throttle_ns),
        }
    }

    /// Runs the timers that are due.
    pub fn timer(&mut self, now_ns: u64) -> Result<(), Defect> {
        if let Some(throttle) = &mut self.throttle {
            let woken = throttle.timer(now_ns);
            self.resume(woken, now_ns)?;
        }
        if self.queue.next_timer().is_some_and(|due_ns| due_ns <= now_ns) {
            let kick = self.queue.timer(now_ns);
            self.handle_kick(kick, now_ns)?;
        }
        Ok(())
    }

    /// Ends a task.
    pub fn exit(&mut self, submitter: SubmitterId, now_ns: u64) -> Result<(), Defect> {
        match self.queue.exit_context(self.context(submitter), now_ns) {
            Ok(kick) => self.handle_kick(kick, now_ns),
            Err(stale) => Err(Defect(format!("the exit of submitter {} was refused: {stale:?}", submitter.0).into())),
        }
    }

    /// Divides the time from `from_ns` to `now_ns` among the phases of service. No request starts
    /// before `from_ns`; the phases of a request in flight at the end count in the proportions of
    /// the earlier requests.
    pub fn time(&self, from_ns: u64, now_ns: u64) -> DriveTime {
        let phases = self.phases;
        let under_way = if self.in_flight.is_empty() { 0 } else { now_ns - self.busy_since_ns };
        let busy_ns = self.busy_ns + under_way;
        let total_ns = phases.service_ns().max(1);
        // A drive with several requests at once spends their times in parallel.
        let share = |phase_ns: u64| match total_ns > busy_ns {
            true => (u128::from(phase_ns) * u128::from(busy_ns) / u128::from(total_ns)) as u64,
            false => phase_ns,
        };
        let time = DriveTime {
            overhead: share(phases.overhead_ns),
            seek: share(phases.seek_ns),
            rotation: share(phases.rotation_ns),
            transfer: share(phases.transfer_ns),
            idle: 0,
        };
        let accounted = time.overhead + time.seek + time.rotation + time.transfer;
        DriveTime { idle: now_ns.saturating_sub(from_ns).saturating_sub(accounted), ..time }
    }

    /// Chooses what is recorded.
    pub fn watch(&mut self, watch: crate::record::Watch) {
        self.queue.sink_mut().watch(watch);
    }

    /// Takes the recording out of the queue.
    pub fn recording(&mut self, now_ns: u64) -> crate::record::Recording {
        let observer = self.queue.sink_mut();
        let (slices, steps) = (observer.slices(now_ns), observer.steps());
        crate::record::Recording { head: std::mem::take(&mut self.head), slices, steps }
    }

    fn submitted(
        &mut self,
        submitter: SubmitterId,
        bio: Bio,
        answer: Result<(Submitted, Kick), SubmitError>,
        now_ns: u64,
    ) -> Result<bool, Defect> {
        let taken = match answer {
            Ok((Submitted::Asleep, kick)) => {
                self.run_if_kicked(kick, now_ns)?;
                false
            }
            Ok((outcome, kick)) => {
                self.pass_slot(submitter, &bio, outcome);
                self.run_if_kicked(kick, now_ns)?;
                self.watch_congestion();
                if !self.queue.config().plugging && !self.flushing {
                    // Without plugging, no other event would run an empty queue.
                    self.run(now_ns)?;
                }
                true
            }
            Err(SubmitError::Full) => {
                self.refused.push_back(submitter);
                false
            }
            Err(error) => {
                let Bio { sector, sectors, .. } = bio;
                let problem = format!("a bio of {sectors} sectors at sector {sector} was refused: {error:?}");
                return Err(Defect(problem.into()));
            }
        };
        if !taken {
            self.submitters[submitter.0 as usize].backlog.push_front(bio);
        }
        Ok(taken)
    }

    /// Submits a task's backlog as far as the queue has room. Returns true if the backlog is empty.
    fn retry(&mut self, submitter: SubmitterId, mut woken: bool, now_ns: u64) -> Result<bool, Defect> {
        while let Some(bio) = self.submitters[submitter.0 as usize].backlog.pop_front() {
            if !woken && !self.takes_slot(submitter, &bio, now_ns) {
                self.submitters[submitter.0 as usize].backlog.push_front(bio);
                return Ok(false);
            }
            let answer = if woken { self.queue.resubmit(bio, now_ns) } else { self.queue.submit(bio, now_ns) };
            woken = false;
            if !self.submitted(submitter, bio, answer, now_ns)? {
                return Ok(false);
            }
        }
        self.resumed.push(submitter);
        Ok(true)
    }

    fn handle_kick(&mut self, kick: Kick, now_ns: u64) -> Result<(), Defect> {
        self.run_if_kicked(kick, now_ns)?;
        self.work(now_ns)?;
        Ok(())
    }

    /// Does the queue's deferred work.
    fn work(&mut self, now_ns: u64) -> Result<(), Defect> {
        while let Some(work) = self.queue.next_work() {
            match work {
                DeferredWork::Run => self.run(now_ns)?,
                DeferredWork::Unplug => {}
                DeferredWork::Wake(context) => {
                    if let Some(submitter) = self.by_context.get(&context).copied() {
                        self.retry(submitter, true, now_ns)?;
                    }
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn run_if_kicked(&mut self, kick: Kick, now_ns: u64) -> Result<(), Defect> {
        if kick == Kick::Run {
            self.run(now_ns)?;
        }
        Ok(())
    }

    /// Dispatches requests until the drive is full or the elevator has none to dispatch.
    fn run(&mut self, now_ns: u64) -> Result<(), Defect> {
        while self.in_flight.len() < self.depth {
            if let Some(step) = self.flushes.next_step() {
                self.start_step(step, now_ns)?;
                continue;
            }
            let Next::Request(id) = self.queue.next(now_ns) else { return Ok(()) };
            self.start(id, now_ns)?;
        }
        if self.chooses_ahead {
            self.queue.choose_next(now_ns);
        }
        Ok(())
    }

    fn start(&mut self, id: RequestId, now_ns: u64) -> Result<(), Defect> {
        let Some(request) = self.queue.request(id) else {
            return Err(Defect(format!("request {id:?} is not there").into()));
        };
        let (op, sector, sectors) = (request.op(), request.sector(), request.sectors());
        let command = command_of(op, sector, sectors, request.flags());
        if let Some(throttle) = &mut self.throttle {
            throttle.issued(id, op, now_ns);
        }
        self.start_command(Origin::Request(id), &command, now_ns)?;
        if !matches!(op, Op::Flush | Op::Discard) {
            let pid = self.queue.context_of(id).map_or(0, |context| context.pid());
            self.count_transfer(pid, sector, sectors, now_ns);
        }
        Ok(())
    }

    #[inline]
    fn start_command(&mut self, origin: Origin, command: &Command, now_ns: u64) -> Result<(), Defect> {
        if self.in_flight.is_empty() {
            self.busy_since_ns = now_ns;
        }
        let tag = self.in_flight.insert(InFlight { origin, at_ns: now_ns });
        if let Err(error) = self.drive.submit(now_ns, tag, command) {
            return Err(Defect(format!("the drive refused {command:?}: {error}").into()));
        }
        Ok(())
    }

    /// Counts a transfer that was started for a process.
    #[inline]
    fn count_transfer(&mut self, pid: u32, sector: u64, sectors: u32, now_ns: u64) {
        self.bytes += u64::from(sectors) * 512;
        if pid != self.last_pid {
            self.last_pid = pid;
            self.turns += 1;
        }
        if S::ENABLED && self.queue.sink().is_on() {
            self.head.push(HeadSample { at_ns: now_ns, sector, pid });
        }
    }
}

fn add(sum: &mut Phases, more: &Phases) {
    sum.overhead_ns += more.overhead_ns;
    sum.seek_ns += more.seek_ns;
    sum.rotation_ns += more.rotation_ns;
    sum.transfer_ns += more.transfer_ns;
}

/// The drive command for a request.
fn command_of(op: Op, sector: u64, sectors: u32, flags: Flags) -> Command {
    let fua = flags.has(Flags::FUA);
    match op {
        Op::Read => Command::Transfer { access: Access { op: hoistway_drive::Op::Read, sector, sectors }, fua },
        Op::Write => Command::Transfer { access: Access { op: hoistway_drive::Op::Write, sector, sectors }, fua },
        Op::Flush => Command::Flush,
        Op::Discard => Command::Discard { sector, sectors },
    }
}
