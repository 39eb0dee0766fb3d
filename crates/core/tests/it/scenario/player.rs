//! Plays scenarios: processes, a device with a fixed service time, and a clock.
//!
//! At one instant, completions precede timers, and timers precede arrivals, which come in the order
//! of the file. After each completion, after each arrival and whenever the queue schedules a run,
//! the device takes requests until its depth is reached.

use std::collections::BTreeSet;

use hoistway_core::{
    Bio, Capacity, ClockConfig, ContextId, DeferredWork, ElevatorStorage, GroupId, Kick, Kind, Next, NoSink, Op, Owned,
    QueueConfig, RequestId, RequestQueue, ReserveError, Storage, Submitted,
};

use super::text::{Action, BioSpec, Holder, Scenario};

const MS: u64 = 1_000_000;
const CAPACITY: Capacity = Capacity { requests: 2048, contexts: 16, merged_bios: 256, groups: 16 };
/// A scenario ends after this number of requests or at this time, even with pending requests.
const ISSUES_MAX: usize = 3000;
const END_MS: u64 = 60_000;

/// A request that the device has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    pub process: usize,
    pub op: Op,
    pub sector: u64,
    pub sectors: u32,
    pub at_ms: u64,
}

/// The result of a scenario.
#[derive(Debug)]
pub struct Played {
    pub issues: Vec<Issue>,
    /// The pairs of a process that slept for a request and the ms at whose end it slept.
    pub asleep: BTreeSet<(usize, u64)>,
}

/// Plays a scenario, with one more tunable set if `with` names one.
pub fn play(scenario: &Scenario, with: Option<&(String, i64)>) -> Result<Played, String> {
    let mut player = Player::new(scenario);
    for (name, value) in scenario.settings.iter().chain(with) {
        player.queue.set_tunable(name, *value).map_err(|error| format!("{name}={value}: {error}"))?;
    }
    player.run()?;
    Ok(Played { issues: player.issues, asleep: player.asleep })
}

fn elevator(kind: Kind, reserving: bool) -> ElevatorStorage<Owned<NoSink>> {
    if reserving { ElevatorStorage::owned_reserving(kind, CAPACITY) } else { ElevatorStorage::owned(kind, CAPACITY) }
}

struct Player<'a> {
    scenario: &'a Scenario,
    queue: RequestQueue<Owned<NoSink>>,
    contexts: Vec<ContextId>,
    groups: Vec<GroupId>,
    /// The hardware queue whose turn it is.
    hw_queue: u16,
    now_ms: u64,
    /// The requests in the device, and their completion times in ms.
    device: Vec<(RequestId, u64)>,
    /// Future actions, and the next requests of streams, with their times in ms.
    pending: Vec<(u64, PendingEvent)>,
    streams: Vec<Stream>,
    sleeping: Vec<(usize, Bio)>,
    asleep: BTreeSet<(usize, u64)>,
    issues: Vec<Issue>,
    next_token: u64,
}

#[derive(Clone, Copy)]
enum PendingEvent {
    Action(usize),
    Next(usize),
}

struct Stream {
    process: usize,
    next: BioSpec,
    think_ms: u64,
    left: u64,
    step: u64,
    tokens: BTreeSet<u64>,
}

impl<'a> Player<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let config = QueueConfig {
            layer: scenario.layer,
            clock: ClockConfig { hz: 1000, uptime_ns: scenario.uptime_ms * MS },
            plugging: scenario.plugging,
            merging: scenario.merging,
            nr_requests: scenario.pool,
            max_sectors: scenario.max_sectors,
            ordered: scenario.ordered,
            hw_queues: scenario.hw_queues,
            rotational: scenario.rotational,
            ..QueueConfig::default()
        };
        let (storage, elevator) = (Storage::owned(CAPACITY), elevator(scenario.kind, scenario.reserving));
        let mut queue = RequestQueue::new(config, storage, elevator, NoSink, 0);
        let mut groups = vec![queue.root_group()];
        for group in &scenario.groups[1..] {
            groups.push(queue.create_group(groups[group.parent], group.weights, 0).expect("few groups"));
        }
        let create = |process: &super::text::Process| {
            let pid = process.thread_of as u32;
            let context = queue.create_context(pid, process.priority, process.nice).expect("few processes");
            let moved = queue.move_context(context, groups[process.group], 0);
            assert!(moved.is_ok(), "a new process can be moved");
            context
        };
        let contexts: Vec<ContextId> = scenario.processes.iter().map(create).collect();
        Player {
            scenario,
            contexts,
            groups,
            hw_queue: 0,
            queue,
            now_ms: 0,
            device: Vec::new(),
            pending: scenario
                .actions
                .iter()
                .enumerate()
                .map(|(index, action)| (action.at_ms, PendingEvent::Action(index)))
                .collect(),
            streams: Vec::new(),
            sleeping: Vec::new(),
            asleep: BTreeSet::new(),
            issues: Vec::new(),
            next_token: 0,
        }
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(next_ms) = self.next_event() {
            if next_ms > END_MS || self.issues.len() > ISSUES_MAX {
                break;
            }
            for ms in self.now_ms..next_ms {
                self.asleep.extend(self.sleeping.iter().map(|(process, _)| (*process, ms)));
            }
            self.now_ms = next_ms;
            self.completions()?;
            while self.queue.next_timer().is_some_and(|at_ns| at_ns <= self.now_ms * MS) {
                let kick = self.queue.timer(self.now_ms * MS);
                self.handle_kick(kick)?;
                self.work()?;
            }
            self.arrivals()?;
        }
        self.asleep.extend(self.sleeping.iter().map(|(process, _)| (*process, self.now_ms)));
        Ok(())
    }

    fn next_event(&self) -> Option<u64> {
        let timer = self.queue.next_timer().map(|at_ns| at_ns.div_ceil(MS).max(self.now_ms));
        let device = self.device.iter().map(|(_, done_ms)| *done_ms);
        let pending = self.pending.iter().map(|(at_ms, _)| *at_ms);
        timer.into_iter().chain(device).chain(pending).min()
    }

    fn completions(&mut self) -> Result<(), String> {
        while let Some(at) = self.device.iter().position(|(_, done_ms)| *done_ms <= self.now_ms) {
            let (id, _) = self.device.remove(at);
            let mut tokens = Vec::new();
            let kick = self.queue.complete(id, self.now_ms * MS, |token| tokens.push(token)).map_err(|_| "stale")?;
            for (index, stream) in self.streams.iter_mut().enumerate() {
                for token in &tokens {
                    if stream.tokens.remove(token) && stream.left > 0 {
                        self.pending.push((self.now_ms + stream.think_ms, PendingEvent::Next(index)));
                    }
                }
            }
            self.handle_kick(kick)?;
            self.poll()?;
            self.work()?;
        }
        Ok(())
    }

    fn arrivals(&mut self) -> Result<(), String> {
        while let Some(at) = self.pending.iter().position(|(at_ms, _)| *at_ms <= self.now_ms) {
            match self.pending.remove(at).1 {
                PendingEvent::Action(index) => {
                    let action = &self.scenario.actions[index];
                    self.apply(&action.action)?;
                    if action.is_joined_to_next {
                        continue;
                    }
                }
                PendingEvent::Next(stream) => self.submit_next(stream)?,
            }
            if !self.scenario.plugging {
                self.poll()?;
            }
            self.work()?;
        }
        Ok(())
    }

    fn apply(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Submit { process, bios } => bios.iter().try_for_each(|&bio| self.submit(*process, bio).map(drop)),
            Action::Stream { process, first, think_ms, count, outstanding, step } => {
                let (process, next, think_ms, left, step) = (*process, *first, *think_ms, *count, *step);
                self.streams.push(Stream { process, next, think_ms, left, step, tokens: BTreeSet::new() });
                (0..*outstanding).try_for_each(|_| self.submit_next(self.streams.len() - 1))
            }
            Action::Exit { process } => {
                let kick =
                    self.queue.exit_context(self.contexts[*process], self.now_ms * MS).map_err(|_| "exited twice")?;
                self.handle_kick(kick)
            }
            Action::SetPriority { process, priority } => {
                let kick = self.queue.set_priority(self.contexts[*process], *priority, self.now_ms * MS);
                self.handle_kick(kick.map_err(|_| "set the priority of an exited process")?)
            }
            Action::SetPolicy { process, policy } => {
                let kick = self.queue.set_cpu_policy(self.contexts[*process], *policy, self.now_ms * MS);
                self.handle_kick(kick.map_err(|_| "set the policy of an exited process")?)
            }
            Action::SetCpu { process, cpu } => self
                .queue
                .set_cpu(self.contexts[*process], *cpu)
                .map_err(|_| "set the CPU of an exited process".to_owned()),
            Action::Move { process, group } => {
                let kick = self.queue.move_context(self.contexts[*process], self.groups[*group], self.now_ms * MS);
                self.handle_kick(kick.map_err(|_| "moved an exited process")?)
            }
            Action::Weigh { group, weights } => {
                let kick = self.queue.set_group_weights(self.groups[*group], *weights, self.now_ms * MS);
                self.handle_kick(kick.map_err(|error| error.to_string())?)
            }
            Action::Reserve { holder, reservation, refused } => {
                let now_ns = self.now_ms * MS;
                let answer = match *holder {
                    Holder::Process(process) => self.queue.reserve(self.contexts[process], *reservation, now_ns),
                    Holder::Group(group) => self.queue.reserve_group(self.groups[group], *reservation, now_ns),
                };
                match (answer, refused) {
                    (Ok(kick), None) => self.handle_kick(kick),
                    (Err(ReserveError::NoCapacity { headroom_bytes_per_second }), Some(headroom))
                        if headroom_bytes_per_second == *headroom =>
                    {
                        Ok(())
                    }
                    (answer, refused) => Err(format!("{answer:?} instead of {refused:?}")),
                }
            }
            Action::Release { holder } => {
                let now_ns = self.now_ms * MS;
                let kick = match *holder {
                    Holder::Process(process) => self.queue.release(self.contexts[process], now_ns),
                    Holder::Group(group) => self.queue.release_group(self.groups[group], now_ns),
                };
                self.handle_kick(kick.map_err(|_| "released the reservation of an exited process")?)
            }
            Action::Requeue => {
                let (id, _) = self.device.pop().ok_or("the device has no request to return")?;
                let kick = self.queue.requeue(id, self.now_ms * MS).map_err(|_| "stale")?;
                self.handle_kick(kick)
            }
            Action::Set { name, value } => {
                self.queue.set_tunable(name, *value).map_err(|error| format!("{name}={value}: {error}"))
            }
            Action::Switch { kind, reserving } => {
                let kick = self.queue.switch(elevator(*kind, *reserving), self.now_ms * MS);
                self.handle_kick(kick)
            }
        }
    }

    fn submit_next(&mut self, index: usize) -> Result<(), String> {
        let stream = &mut self.streams[index];
        if stream.left == 0 {
            return Ok(());
        }
        stream.left -= 1;
        let (process, bio_spec) = (stream.process, stream.next);
        stream.next.sector += stream.step;
        let token = self.submit(process, bio_spec)?;
        self.streams[index].tokens.insert(token);
        Ok(())
    }

    fn submit(&mut self, process: usize, bio_spec: BioSpec) -> Result<u64, String> {
        let BioSpec { op, sector, sectors, flags } = bio_spec;
        let bio = Bio { token: self.next_token, context: self.contexts[process], op, sector, sectors, flags };
        self.next_token += 1;
        let (submitted, kick) = self.queue.submit(bio, self.now_ms * MS).map_err(|error| format!("{error:?}"))?;
        if submitted == Submitted::Asleep {
            self.sleeping.push((process, bio));
        }
        self.handle_kick(kick)?;
        Ok(bio.token)
    }

    /// Runs the queue at once if a call requested it. Deferred work follows after the event.
    fn handle_kick(&mut self, kick: Kick) -> Result<(), String> {
        if kick == Kick::Run { self.poll() } else { Ok(()) }
    }

    fn work(&mut self) -> Result<(), String> {
        while let Some(work) = self.queue.next_work() {
            let DeferredWork::Wake(context) = work else {
                self.poll()?;
                continue;
            };
            let at = self.sleeping.iter().position(|(process, _)| self.contexts[*process] == context);
            let (process, bio) = self.sleeping.remove(at.ok_or("no process sleeps")?);
            let (submitted, kick) = self.queue.resubmit(bio, self.now_ms * MS).map_err(|error| format!("{error:?}"))?;
            if submitted == Submitted::Asleep {
                self.sleeping.push((process, bio));
            }
            self.handle_kick(kick)?;
        }
        Ok(())
    }

    /// The next request of the hardware queues, in rotation.
    fn next(&mut self) -> Option<RequestId> {
        for _ in 0..self.scenario.hw_queues {
            let hw_queue = self.hw_queue;
            self.hw_queue = (hw_queue + 1) % self.scenario.hw_queues;
            if let Next::Request(id) = self.queue.next_for(hw_queue, self.now_ms * MS) {
                return Some(id);
            }
        }
        None
    }

    fn poll(&mut self) -> Result<(), String> {
        while self.device.len() < self.scenario.depth {
            let Some(id) = self.next() else { break };
            let request = self.queue.request(id).ok_or("an issued request is stale")?;
            let process = self.queue.context_of(id).map_or(usize::MAX, |context| context.pid() as usize);
            let (op, sector, sectors) = (request.op(), request.sector(), request.sectors());
            self.issues.push(Issue { process, op, sector, sectors, at_ms: self.now_ms });
            let writes = self.scenario.write_service_ms.filter(|_| op == Op::Write);
            let mut service_ms = writes.unwrap_or(self.scenario.service_ms);
            if let Some(bandwidth) = self.scenario.bandwidth {
                let scaled = u64::from(sectors) * 512 * 1000;
                if scaled % bandwidth != 0 {
                    return Err(format!("{sectors} sectors do not take a whole number of ms"));
                }
                service_ms = scaled / bandwidth;
            }
            self.device.push((id, self.now_ms + service_ms));
        }
        if self.scenario.ahead {
            self.queue.choose_next(self.now_ms * MS);
        }
        Ok(())
    }
}
