//! The machine that scenarios are played on: processes, a device that takes the same time for every
//! request, a clock.
//!
//! At one instant completions come first, then timers, then arrivals in the order of the file.
//! After each completion and each arrival the device is offered all that it has room for; so it is
//! at once when the queue asks for it.

use std::collections::BTreeSet;

use hoistway_core::{
    Bio, Capacity, ClockConfig, ContextId, DeferredWork, ElevatorStorage, GroupId, Kick, Kind, Next, NoSink, Op, Owned,
    QueueConfig, RequestId, RequestQueue, ReserveError, Storage, Submitted,
};

use super::text::{Holder, Piece, Scenario, What};

const MS: u64 = 1_000_000;
const CAPACITY: Capacity = Capacity { requests: 2048, contexts: 16, merged_bios: 256, groups: 16 };
/// Scenarios end after so many requests or at this time, whatever still goes on.
const ISSUES_MAX: usize = 3000;
const END_MS: u64 = 60_000;

/// A request that the device got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    pub process: usize,
    pub op: Op,
    pub sector: u64,
    pub sectors: u32,
    pub at_ms: u64,
}

/// What came of a scenario.
#[derive(Debug)]
pub struct Outcome {
    pub issues: Vec<Issue>,
    /// Which processes slept at the end of which ms.
    pub asleep: BTreeSet<(usize, u64)>,
}

/// Plays a scenario with one more tunable set.
pub fn play(scenario: &Scenario, with: Option<&(String, i64)>) -> Result<Outcome, String> {
    let mut world = World::new(scenario);
    for (name, value) in scenario.settings.iter().chain(with) {
        world.queue.set_tunable(name, *value).map_err(|error| format!("{name}={value}: {error}"))?;
    }
    world.run()?;
    Ok(Outcome { issues: world.issues, asleep: world.asleep })
}

fn elevator(kind: Kind, reserving: bool) -> ElevatorStorage<Owned<NoSink>> {
    if reserving { ElevatorStorage::owned_reserving(kind, CAPACITY) } else { ElevatorStorage::owned(kind, CAPACITY) }
}

struct World<'a> {
    scenario: &'a Scenario,
    queue: RequestQueue<Owned<NoSink>>,
    contexts: Vec<ContextId>,
    groups: Vec<GroupId>,
    /// The hardware queue whose turn it is.
    hw_queue: u16,
    now_ms: u64,
    /// What the device has, and until when.
    device: Vec<(RequestId, u64)>,
    /// Acts that are still to come, with streams' next requests among them.
    coming: Vec<(u64, Coming)>,
    streams: Vec<Stream>,
    sleeping: Vec<(usize, Bio)>,
    asleep: BTreeSet<(usize, u64)>,
    issues: Vec<Issue>,
    next_token: u64,
}

#[derive(Clone, Copy)]
enum Coming {
    Act(usize),
    Next(usize),
}

struct Stream {
    process: usize,
    next: Piece,
    think_ms: u64,
    left: u64,
    step: u64,
    tokens: BTreeSet<u64>,
}

impl<'a> World<'a> {
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
        World {
            scenario,
            contexts,
            groups,
            hw_queue: 0,
            queue,
            now_ms: 0,
            device: Vec::new(),
            coming: scenario.acts.iter().enumerate().map(|(index, act)| (act.at_ms, Coming::Act(index))).collect(),
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
                self.obey(kick)?;
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
        let coming = self.coming.iter().map(|(at_ms, _)| *at_ms);
        timer.into_iter().chain(device).chain(coming).min()
    }

    fn completions(&mut self) -> Result<(), String> {
        while let Some(at) = self.device.iter().position(|(_, done_ms)| *done_ms <= self.now_ms) {
            let (id, _) = self.device.remove(at);
            let mut tokens = Vec::new();
            let kick = self.queue.complete(id, self.now_ms * MS, |token| tokens.push(token)).map_err(|_| "stale")?;
            for (index, stream) in self.streams.iter_mut().enumerate() {
                for token in &tokens {
                    if stream.tokens.remove(token) && stream.left > 0 {
                        self.coming.push((self.now_ms + stream.think_ms, Coming::Next(index)));
                    }
                }
            }
            self.obey(kick)?;
            self.poll()?;
            self.work()?;
        }
        Ok(())
    }

    fn arrivals(&mut self) -> Result<(), String> {
        while let Some(at) = self.coming.iter().position(|(at_ms, _)| *at_ms <= self.now_ms) {
            match self.coming.remove(at).1 {
                Coming::Act(index) => {
                    let act = &self.scenario.acts[index];
                    self.act(&act.what)?;
                    if act.goes_on {
                        continue;
                    }
                }
                Coming::Next(stream) => self.next_of(stream)?,
            }
            if !self.scenario.plugging {
                self.poll()?;
            }
            self.work()?;
        }
        Ok(())
    }

    fn act(&mut self, what: &What) -> Result<(), String> {
        match what {
            What::Submit { process, bios } => bios.iter().try_for_each(|&piece| self.submit(*process, piece).map(drop)),
            What::Stream { process, first, think_ms, count, outstanding, step } => {
                let (process, next, think_ms, left, step) = (*process, *first, *think_ms, *count, *step);
                self.streams.push(Stream { process, next, think_ms, left, step, tokens: BTreeSet::new() });
                (0..*outstanding).try_for_each(|_| self.next_of(self.streams.len() - 1))
            }
            What::Exit { process } => {
                let kick =
                    self.queue.exit_context(self.contexts[*process], self.now_ms * MS).map_err(|_| "exited twice")?;
                self.obey(kick)
            }
            What::SetPriority { process, priority } => {
                let kick = self.queue.set_priority(self.contexts[*process], *priority, self.now_ms * MS);
                self.obey(kick.map_err(|_| "set the priority of one who is gone")?)
            }
            What::SetPolicy { process, policy } => {
                let kick = self.queue.set_cpu_policy(self.contexts[*process], *policy, self.now_ms * MS);
                self.obey(kick.map_err(|_| "set the policy of one who is gone")?)
            }
            What::SetCpu { process, cpu } => self
                .queue
                .set_cpu(self.contexts[*process], *cpu)
                .map_err(|_| "set the CPU of one who is gone".to_owned()),
            What::Move { process, group } => {
                let kick = self.queue.move_context(self.contexts[*process], self.groups[*group], self.now_ms * MS);
                self.obey(kick.map_err(|_| "moved one who is gone")?)
            }
            What::Weigh { group, weights } => {
                let kick = self.queue.set_group_weights(self.groups[*group], *weights, self.now_ms * MS);
                self.obey(kick.map_err(|error| error.to_string())?)
            }
            What::Reserve { holder, reservation, refused } => {
                let now_ns = self.now_ms * MS;
                let answer = match *holder {
                    Holder::Process(process) => self.queue.reserve(self.contexts[process], *reservation, now_ns),
                    Holder::Group(group) => self.queue.reserve_group(self.groups[group], *reservation, now_ns),
                };
                match (answer, refused) {
                    (Ok(kick), None) => self.obey(kick),
                    (Err(ReserveError::NoCapacity { headroom_bytes_per_second }), Some(headroom))
                        if headroom_bytes_per_second == *headroom =>
                    {
                        Ok(())
                    }
                    (answer, refused) => Err(format!("{answer:?}, and not {refused:?}")),
                }
            }
            What::Release { holder } => {
                let now_ns = self.now_ms * MS;
                let kick = match *holder {
                    Holder::Process(process) => self.queue.release(self.contexts[process], now_ns),
                    Holder::Group(group) => self.queue.release_group(self.groups[group], now_ns),
                };
                self.obey(kick.map_err(|_| "released by one who is gone")?)
            }
            What::Requeue => {
                let (id, _) = self.device.pop().ok_or("the device has nothing to give back")?;
                let kick = self.queue.requeue(id, self.now_ms * MS).map_err(|_| "stale")?;
                self.obey(kick)
            }
            What::Set { name, value } => {
                self.queue.set_tunable(name, *value).map_err(|error| format!("{name}={value}: {error}"))
            }
            What::Switch { kind, reserving } => {
                let kick = self.queue.switch(elevator(*kind, *reserving), self.now_ms * MS);
                self.obey(kick)
            }
        }
    }

    fn next_of(&mut self, index: usize) -> Result<(), String> {
        let stream = &mut self.streams[index];
        if stream.left == 0 {
            return Ok(());
        }
        stream.left -= 1;
        let (process, piece) = (stream.process, stream.next);
        stream.next.sector += stream.step;
        let token = self.submit(process, piece)?;
        self.streams[index].tokens.insert(token);
        Ok(())
    }

    fn submit(&mut self, process: usize, piece: Piece) -> Result<u64, String> {
        let Piece { op, sector, sectors, flags } = piece;
        let bio = Bio { token: self.next_token, context: self.contexts[process], op, sector, sectors, flags };
        self.next_token += 1;
        let (submitted, kick) = self.queue.submit(bio, self.now_ms * MS).map_err(|error| format!("{error:?}"))?;
        if submitted == Submitted::Asleep {
            self.sleeping.push((process, bio));
        }
        self.obey(kick)?;
        Ok(bio.token)
    }

    /// A run that is asked for happens at once; what was deferred comes after the event.
    fn obey(&mut self, kick: Kick) -> Result<(), String> {
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
            self.obey(kick)?;
        }
        Ok(())
    }

    /// The next request of any hardware queue, each having its turn.
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
                    return Err(format!("{sectors} sectors do not take whole ms"));
                }
                service_ms = scaled / bandwidth;
            }
            self.device.push((id, self.now_ms + service_ms));
        }
        Ok(())
    }
}
