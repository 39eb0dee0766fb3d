//! The event loop that feeds a scenario to a request queue in virtual time.
//!
//! Events are ordered by time, then by kind (completion, arrival, exit, priority change, move to
//! another group, timer), then by number. Timers of one time keep the order in which they were
//! armed. The queue's deferred work is done after each event, at the same virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hoistway_core::{
    Bio, Capacity, ClockConfig, ContextId, DeferredWork, ElevatorStorage, GroupId, Kick, Next, Owned, QueueConfig,
    RequestId, RequestQueue, Storage, Submitted,
};

use super::decision::{Decision, List};
pub use super::log::ReplayedDecision;
use super::log::{Log, LogEvent, Recorder};
use super::scenario::{Scenario, Start};

/// Uptime of the recording machines at time 0, in ns.
const UPTIME_NS: u64 = 10_000_000_000;
/// The largest merged request in sectors, with and without plugging.
const MAX_SECTORS_PLUGGING: u32 = 1024;
const MAX_SECTORS: u32 = 2560;
/// Limit of consecutive timers, and of pieces of deferred work after one event, beyond which the
/// elevator is in an endless loop.
const CIRCLING: u32 = 100_000;

/// The decisions of hoistway's elevator.
#[derive(Debug)]
pub struct Replay {
    lists: [Vec<ReplayedDecision>; List::ALL.len()],
    log: Log,
    stopped: Option<String>,
}

impl Replay {
    /// The decisions of one list, in the order in which they were taken.
    pub fn list(&self, list: List) -> &[ReplayedDecision] {
        &self.lists[list as usize]
    }

    /// Reason for an early end of the replay: the elevator decided something without a recorded
    /// answer, such as the dispatch of a request that the kernel merged away and whose service time
    /// is unknown.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// The last `count` events before a decision, as text.
    pub fn events_before(&self, made: &ReplayedDecision, count: usize) -> Vec<String> {
        self.log.before(made.log, count)
    }

    /// The last `count` events up to and including a time in ns, as text.
    pub fn events_until(&self, at_ns: u64, count: usize) -> Vec<String> {
        self.log.before(self.log.until(at_ns), count)
    }
}

/// Replays a scenario.
pub fn replay_scenario(scenario: &Scenario) -> Replay {
    let mut world = World::new(scenario);
    world.start();
    let stopped = world.run().err();
    let recorder = std::mem::take(world.queue.sink_mut());
    let (lists, log) = recorder.into_parts();
    Replay { lists, log, stopped }
}

/// The reason why a replay cannot continue.
type StopReason = String;

/// An event: its time, its kind, its number.
type Due = (u64, Kind, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Completion,
    Arrival,
    Exit,
    Priority,
    Move,
}

/// An event that follows a completion.
#[derive(Clone, Copy)]
struct Dependent {
    kind: Kind,
    number: u32,
    think_ns: u64,
}

#[derive(Default)]
struct Process {
    /// The bio that the process sleeps with.
    asleep: Option<u32>,
    /// The process's bios that became due while it slept.
    held: VecDeque<u32>,
}

struct World<'a> {
    scenario: &'a Scenario,
    queue: RequestQueue<Owned<Recorder>>,
    contexts: Vec<ContextId>,
    /// The root, and the scenario's groups in their order.
    groups: Vec<GroupId>,
    processes: Vec<Process>,
    events: BinaryHeap<Reverse<Due>>,
    dependents: Vec<Vec<Dependent>>,
    /// Requests in the device, by id.
    device: Vec<Option<RequestId>>,
    /// Due time of each bio, and start of its submission.
    arrived_ns: Vec<u64>,
    began_ns: Vec<u64>,
    done: Vec<u64>,
    now_ns: u64,
    plugging: bool,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let count = |len: usize| u32::try_from(len).unwrap_or(u32::MAX).max(1);
        let capacity = Capacity {
            requests: count(scenario.requests.len()),
            contexts: count(scenario.processes.len()),
            merged_bios: count(scenario.requests.len()),
            groups: count(scenario.groups.len().saturating_add(1)),
        };
        let mut queue = RequestQueue::new(
            config(scenario),
            Storage::owned(capacity),
            ElevatorStorage::owned(scenario.kind, capacity),
            Recorder::default(),
            0,
        );
        for (name, value) in &scenario.tunables {
            let stored = queue.set_tunable(name, *value);
            debug_assert!(stored.is_ok(), "tunables were checked when the scenario was read");
        }
        let groups = make_groups(&mut queue, scenario);
        let mut contexts = Vec::with_capacity(scenario.processes.len());
        for process in &scenario.processes {
            let Ok(context) = queue.create_context(process.pid, process.priority, 0) else { break };
            if process.group.0 > 0 {
                let moved = queue.move_context(context, groups[process.group.0], 0);
                debug_assert!(moved.is_ok(), "neither a new context nor a new group is stale");
            }
            contexts.push(context);
        }
        let requests = scenario.requests.len();
        World {
            scenario,
            queue,
            contexts,
            groups,
            processes: scenario.processes.iter().map(|_| Process::default()).collect(),
            events: BinaryHeap::with_capacity(requests),
            dependents: vec![Vec::new(); requests],
            device: vec![None; requests],
            arrived_ns: vec![0; requests],
            began_ns: vec![0; requests],
            done: Vec::new(),
            now_ns: 0,
            plugging: scenario.pool.is_some(),
        }
    }

    /// Schedules all events that do not follow a completion, and lists those that do.
    fn start(&mut self) {
        let scenario = self.scenario;
        for (number, request) in (0u32..).zip(&scenario.requests) {
            match request.start {
                Start::At { ns } => self.events.push(Reverse((ns, Kind::Arrival, number))),
                Start::After { request, think_ns } => {
                    self.dependents[request].push(Dependent { kind: Kind::Arrival, number, think_ns });
                }
            }
        }
        for (number, exit) in (0u32..).zip(&scenario.exits) {
            self.dependents[exit.after].push(Dependent { kind: Kind::Exit, number, think_ns: exit.think_ns });
        }
        for (number, change) in (0u32..).zip(&scenario.priority_changes) {
            self.events.push(Reverse((change.at_ns, Kind::Priority, number)));
        }
        for (number, change) in (0u32..).zip(&scenario.moves) {
            self.events.push(Reverse((change.at_ns, Kind::Move, number)));
        }
    }

    fn run(&mut self) -> Result<(), StopReason> {
        let mut timers = 0;
        loop {
            let event = self.events.peek().map(|event| event.0);
            let timer_ns = self.queue.next_timer();
            match (event, timer_ns) {
                (Some((at_ns, kind, number)), timer_ns) if timer_ns.is_none_or(|timer_ns| at_ns <= timer_ns) => {
                    timers = 0;
                    self.events.pop();
                    self.now_ns = at_ns;
                    self.handle(kind, number as usize)?;
                }
                (_, Some(timer_ns)) => {
                    timers += 1;
                    if timers > CIRCLING {
                        return Err(format!("{CIRCLING} timers fired with nothing between them"));
                    }
                    self.now_ns = self.now_ns.max(timer_ns);
                    self.note(LogEvent::Timer);
                    let kick = self.queue.timer(self.now_ns);
                    self.run_if(kick)?;
                }
                _ => return Ok(()),
            }
            self.work()?;
        }
    }

    fn handle(&mut self, kind: Kind, number: usize) -> Result<(), StopReason> {
        match kind {
            Kind::Completion => self.complete(number),
            Kind::Arrival => self.arrive(number),
            Kind::Exit => {
                let process = self.scenario.exits[number].process;
                self.note(LogEvent::Exit { pid: self.scenario.processes[process].pid });
                let kick = self.queue.exit_context(self.contexts[process], self.now_ns);
                self.run_if(kick.unwrap_or(Kick::Quiet))
            }
            Kind::Priority => {
                let change = &self.scenario.priority_changes[number];
                let pid = self.scenario.processes[change.process].pid;
                self.note(LogEvent::Priority { pid, priority: change.priority });
                let kick = self.queue.set_priority(self.contexts[change.process], change.priority, self.now_ns);
                self.run_if(kick.unwrap_or(Kick::Quiet))
            }
            Kind::Move => {
                let change = &self.scenario.moves[number];
                let pid = self.scenario.processes[change.process].pid;
                self.note(LogEvent::Move { pid, group: self.scenario.group_id(change.group) });
                let group = self.groups[change.group.0];
                // A process that has exited stays in its group.
                let kick = self.queue.move_context(self.contexts[change.process], group, self.now_ns);
                self.run_if(kick.unwrap_or(Kick::Quiet))
            }
        }
    }

    fn complete(&mut self, number: usize) -> Result<(), StopReason> {
        let Some(id) = self.device[number].take() else {
            return Err(format!("request {number} is not in the device"));
        };
        let mut done = std::mem::take(&mut self.done);
        let kick = self.queue.complete(id, self.now_ns, |token| done.push(token));
        let kick = kick.map_err(|_| format!("the queue does not know request {number} when it completes"))?;
        // The order of the bios of one request is not a decision: its own bio comes first, the
        // others by id.
        if let Some((_, merged)) = done.split_first_mut() {
            merged.sort_unstable();
        }
        for token in done.drain(..) {
            let decision = Decision::Complete { id: token as u32, at_ns: self.now_ns };
            self.queue.sink_mut().decide(List::Complete, decision);
            for dependent in &self.dependents[token as usize] {
                let at_ns = self.now_ns.saturating_add(dependent.think_ns);
                self.events.push(Reverse((at_ns, dependent.kind, dependent.number)));
            }
        }
        self.done = done;
        // Without plugging, the recordings attempt a dispatch after each completion.
        if self.plugging { self.run_if(kick) } else { self.attempt() }
    }

    fn arrive(&mut self, number: usize) -> Result<(), StopReason> {
        self.arrived_ns[number] = self.now_ns;
        let process = self.scenario.requests[number].process;
        if self.processes[process].asleep.is_some() {
            self.processes[process].held.push_back(number as u32);
            return Ok(());
        }
        self.submit(number)
    }

    /// Submits a bio for the first time.
    fn submit(&mut self, number: usize) -> Result<(), StopReason> {
        self.began_ns[number] = self.now_ns;
        let answer = self.queue.submit(self.bio(number), self.now_ns);
        let (submitted, kick) = answer.map_err(|error| format!("bio {number} was not taken: {error:?}"))?;
        self.submitted(number, submitted);
        self.run_if(kick)?;
        match submitted {
            Submitted::Queued(_) if !self.plugging => self.attempt(),
            _ => Ok(()),
        }
    }

    fn submitted(&mut self, number: usize, submitted: Submitted) {
        let process = &mut self.processes[self.scenario.requests[number].process];
        if submitted == Submitted::Asleep {
            process.asleep = Some(number as u32);
            return;
        }
        process.asleep = None;
        let (began_ns, done_ns) = (self.began_ns[number], self.now_ns);
        if done_ns != self.arrived_ns[number] {
            let late = Decision::Late { id: number as u32, began_ns, done_ns };
            self.queue.sink_mut().decide(List::Late, late);
        }
    }

    /// Continues a process that slept for a request, until it sleeps again or its backlog is empty.
    fn wake(&mut self, context: ContextId) -> Result<(), StopReason> {
        let process = self.contexts.iter().position(|known| *known == context);
        let Some(process) = process else { return Err("an unknown process is woken".to_owned()) };
        let Some(number) = self.processes[process].asleep else { return Ok(()) };
        self.note(LogEvent::Woken { pid: self.scenario.processes[process].pid });
        let number = number as usize;
        let answer = self.queue.resubmit(self.bio(number), self.now_ns);
        let (submitted, kick) = answer.map_err(|error| format!("bio {number} was not taken: {error:?}"))?;
        self.submitted(number, submitted);
        self.run_if(kick)?;
        while self.processes[process].asleep.is_none() {
            let Some(held) = self.processes[process].held.pop_front() else { break };
            self.submit(held as usize)?;
        }
        Ok(())
    }

    /// Does the queue's deferred work.
    fn work(&mut self) -> Result<(), StopReason> {
        for _ in 0..CIRCLING {
            match self.queue.next_work() {
                None => return Ok(()),
                Some(DeferredWork::Wake(context)) => self.wake(context)?,
                Some(_) => self.attempt()?,
            }
        }
        Err(format!("{CIRCLING} pieces of work came from one event"))
    }

    fn run_if(&mut self, kick: Kick) -> Result<(), StopReason> {
        if kick == Kick::Run { self.attempt() } else { Ok(()) }
    }

    /// Dispatches requests until the device is full.
    fn attempt(&mut self) -> Result<(), StopReason> {
        while self.queue.in_flight() < self.scenario.depth {
            let Next::Request(id) = self.queue.next(self.now_ns) else { return Ok(()) };
            let Some(request) = self.queue.request(id) else {
                return Err("the queue does not know the request that it gave".to_owned());
            };
            let token = request.token();
            let number = token as usize;
            self.queue.sink_mut().dispatched(token as u32, self.now_ns);
            self.device[number] = Some(id);
            let Some(service_ns) = self.scenario.requests[number].service_ns else {
                return Err(format!("request {number} went to the driver, which it did not in the recording"));
            };
            let at_ns = self.now_ns.saturating_add(service_ns);
            self.events.push(Reverse((at_ns, Kind::Completion, token as u32)));
        }
        Ok(())
    }

    fn bio(&self, number: usize) -> Bio {
        let planned = &self.scenario.requests[number];
        let context = self.contexts[planned.process];
        let bio = Bio::new(number as u64, context, planned.op, planned.sector, planned.sectors);
        Bio { flags: planned.flags, ..bio }
    }

    fn note(&mut self, what: LogEvent) {
        let now_ns = self.now_ns;
        self.queue.sink_mut().log_event(now_ns, what);
    }
}

/// Creates the scenario's groups, and gives the root group the weight of the recorded kernel.
fn make_groups(queue: &mut RequestQueue<Owned<Recorder>>, scenario: &Scenario) -> Vec<GroupId> {
    let root = queue.root_group();
    let mut groups = Vec::with_capacity(scenario.groups.len().saturating_add(1));
    groups.push(root);
    if let Some(weights) = scenario.target.root_weights {
        let weighed = queue.set_group_weights(root, weights, 0);
        debug_assert!(weighed.is_ok(), "a target's weights are within their range");
    }
    for group in &scenario.groups {
        let made = queue.create_group(groups[group.parent.0], group.weights, 0);
        debug_assert!(made.is_ok(), "groups were checked when the scenario was read");
        groups.push(made.unwrap_or(root));
    }
    groups
}

fn config(scenario: &Scenario) -> QueueConfig {
    let plugging = scenario.pool.is_some();
    QueueConfig {
        layer: scenario.target.layer,
        clock: ClockConfig { hz: scenario.hz, uptime_ns: UPTIME_NS },
        plugging,
        merging: scenario.merging,
        nr_requests: scenario.pool,
        max_sectors: if plugging { MAX_SECTORS_PLUGGING } else { MAX_SECTORS },
        refusal_ends_merging: plugging,
        rotational: scenario.rotational,
        ..QueueConfig::default()
    }
}
