//! The environment of a simulated server: virtual time, a network, disks, and actors.

use std::collections::{BTreeMap, VecDeque};

use super::disk::{Disk, DiskPlan};
use super::ids::{ActorId, DiskId, LinkId};
use super::link::{Link, LinkPlan};
use super::prng::Prng;
use super::trace::Trace;
use crate::{Endpoint, Event, FileId, Io, ListenerId, Pool, Signal};

/// Size of the buffer pool in bytes: 2 MiB. Further buffers are allocated.
const POOL_BYTES: usize = 2 << 20;

/// A participant of a simulation beside the server: a client or an operator.
pub trait Actor {
    /// Runs the actor: a time that it waited for is reached, bytes have arrived, a connection has
    /// room for more bytes, or has ended.
    fn step(&mut self, me: ActorId, sim: &mut Sim);

    /// Returns true if the actor starts nothing more by itself.
    fn is_done(&self) -> bool;
}

/// A bug injected into the engine, to prove that a simulation detects it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// No bug.
    #[default]
    None,
    /// Flushes succeed but make nothing durable.
    FlushDoesNothing,
    /// Durable writes succeed but are not durable.
    DurableWriteIsNot,
    /// Some completions are lost.
    DropsCompletions,
    /// Some concurrent reads of the same length exchange their data.
    SwapsReads,
    /// Some writes succeed without effect.
    LosesWrites,
    /// Some sent bytes are wrong.
    FlipsSentBits,
    /// Some operations use another disk.
    MixesDisks,
}

impl Sabotage {
    /// All bugs.
    pub const ALL: [Sabotage; 7] = [
        Sabotage::FlushDoesNothing,
        Sabotage::DurableWriteIsNot,
        Sabotage::DropsCompletions,
        Sabotage::SwapsReads,
        Sabotage::LosesWrites,
        Sabotage::FlipsSentBits,
        Sabotage::MixesDisks,
    ];
}

/// A scheduled event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Due {
    /// The server accepts a connection.
    Accept(LinkId),
    /// The server's attempt to connect to the service with this index ends.
    Connect { tag: u64, service: usize },
    /// Bytes or the end of the stream arrive at the server.
    Arrive(LinkId),
    /// The pending receive may complete.
    Deliver(LinkId),
    /// The pending send may continue.
    Push(LinkId),
    /// The server is notified of a reset.
    Break(LinkId),
    /// The client runs.
    Notify(LinkId),
    /// An I/O takes effect, or a part of it.
    Effect(u64),
    /// An I/O completes.
    Complete(u64),
    /// An actor runs.
    Act(ActorId),
    /// The server receives a signal.
    Signal(Signal),
    /// The power fails.
    Crash,
}

/// A file that the server has opened on a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct File {
    pub disk: DiskId,
    /// Opened with `O_DIRECT`: offsets and lengths have to be aligned.
    pub direct: bool,
}

/// A server to which the simulated server connects.
#[derive(Clone, Debug)]
pub(super) struct Service {
    pub endpoint: Endpoint,
    pub actor: ActorId,
    pub plan: LinkPlan,
    pub is_up: bool,
    /// Connections that the actor has not taken yet.
    pub accepted: Vec<LinkId>,
}

/// An I/O in flight.
#[derive(Debug)]
pub(super) struct InFlightIo {
    pub tag: u64,
    pub io: Io,
    pub result: Result<(), i32>,
    /// For a flush: the completed writes that it covers, from [`Disk::horizon`].
    pub horizon: u64,
    /// Bytes read or written so far.
    pub moved: u64,
}

/// A simulation.
pub struct Sim {
    /// The time in ns.
    pub now_ns: u64,
    /// The source of random numbers.
    pub prng: Prng,
    /// The log of events.
    pub trace: Trace,
    /// Violations of the contract between server and engine, and other errors.
    pub violations: Vec<String>,
    /// The injected bug.
    pub sabotage: Sabotage,
    /// The power has failed: all operations of the server fail.
    pub crashed: bool,
    /// The pool of buffers.
    pub pool: Pool,
    /// Scheduled events by time and serial number.
    pub(super) agenda: BTreeMap<(u64, u64), Due>,
    serial: u64,
    pub(super) links: Vec<Link>,
    /// For each connection slot of the server: its generation, and its link.
    pub(super) connections: Vec<(u32, Option<LinkId>)>,
    pub(super) listeners: Vec<bool>,
    pub(super) services: Vec<Service>,
    pub(super) files: Vec<File>,
    pub(super) disks: Vec<Disk>,
    /// Device and inode number of the real file that represents each disk.
    pub(super) disk_files: Vec<((u64, u64), DiskId)>,
    pub(super) in_flight: BTreeMap<u64, InFlightIo>,
    /// Number of I/Os so far.
    pub(super) ios: u64,
    pub(super) events: VecDeque<Event>,
    pub(super) actors: Vec<Option<Box<dyn Actor>>>,
    /// The end of the simulation was reported to the host once.
    is_end_reported: bool,
    /// The next wake-up of each actor.
    wakes_ns: Vec<Option<u64>>,
}

impl Sim {
    /// Creates an empty simulation. `verbose` keeps the lines of the log.
    pub fn new(prng: Prng, verbose: bool) -> Sim {
        Sim {
            now_ns: 1_000_000,
            prng,
            trace: Trace::new(verbose),
            violations: Vec::new(),
            sabotage: Sabotage::None,
            crashed: false,
            pool: Pool::new(POOL_BYTES),
            agenda: BTreeMap::new(),
            serial: 0,
            links: Vec::new(),
            connections: Vec::new(),
            listeners: Vec::new(),
            services: Vec::new(),
            files: Vec::new(),
            disks: Vec::new(),
            disk_files: Vec::new(),
            in_flight: BTreeMap::new(),
            ios: 0,
            events: VecDeque::new(),
            actors: Vec::new(),
            is_end_reported: false,
            wakes_ns: Vec::new(),
        }
    }

    /// Adds a disk. The server opens it as the real file with this device and inode number.
    pub fn add_disk(&mut self, plan: DiskPlan, file: (u64, u64)) -> DiskId {
        self.disks.push(Disk::new(plan));
        let id = DiskId(self.disks.len() - 1);
        self.disk_files.push((file, id));
        id
    }

    /// Returns a disk.
    pub fn disk(&self, id: DiskId) -> &Disk {
        &self.disks[id.0]
    }

    /// Returns a disk for changes by an actor.
    pub fn disk_mut(&mut self, id: DiskId) -> &mut Disk {
        &mut self.disks[id.0]
    }

    /// Adds an actor, which first runs at `from_ns`.
    pub fn add_actor(&mut self, actor: Box<dyn Actor>, from_ns: u64) -> ActorId {
        self.actors.push(Some(actor));
        self.wakes_ns.push(None);
        self.is_end_reported = false;
        let id = ActorId(self.actors.len() - 1);
        self.wake_at(from_ns, id);
        id
    }

    /// Runs an actor at this time, unless an earlier run is scheduled.
    pub fn wake_at(&mut self, at_ns: u64, actor: ActorId) {
        let wakes_ns = &mut self.wakes_ns[actor.0];
        if wakes_ns.is_none_or(|before_ns| before_ns > at_ns) {
            *wakes_ns = Some(at_ns);
            self.due(at_ns, Due::Act(actor));
        }
    }

    /// Sends a signal to the server after a delay in ns.
    pub fn signal_in(&mut self, delay_ns: u64, signal: Signal) {
        self.due(self.now_ns + delay_ns, Due::Signal(signal));
    }

    /// Fails the power after a delay in ns.
    pub fn crash_in(&mut self, delay_ns: u64) {
        self.due(self.now_ns + delay_ns, Due::Crash);
    }

    /// Returns true if all actors are done.
    pub fn all_done(&self) -> bool {
        self.actors.iter().flatten().all(|actor| actor.is_done())
    }

    /// Returns true if no I/O is in flight.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Records a violation, which ends the simulation.
    pub fn violated(&mut self, what: String) {
        self.trace.note(self.now_ns, &[99], format_args!("VIOLATION: {what}"));
        self.violations.push(what);
    }

    pub(super) fn due(&mut self, at_ns: u64, what: Due) {
        self.serial += 1;
        self.agenda.insert((at_ns.max(self.now_ns), self.serial), what);
    }

    /// Advances the time until there is an event for the server or `until_ns` is reached.
    pub(super) fn turn(&mut self, until_ns: Option<u64>, events: &mut Vec<Event>) -> std::io::Result<()> {
        // The server's own work takes time.
        self.now_ns += self.prng.between(0, 3_000);
        loop {
            if self.crashed {
                return Err(std::io::Error::other("the power has failed"));
            }
            if let Some(what) = self.violations.first() {
                return Err(std::io::Error::other(what.clone()));
            }
            let next_ns = self.agenda.first_key_value().map(|((at_ns, _), _)| *at_ns);
            let is_due = next_ns.is_some_and(|at_ns| at_ns <= self.now_ns);
            if !self.events.is_empty() && (!is_due || self.prng.permille(200)) {
                break;
            }
            let Some(at_ns) = next_ns else {
                let Some(until_ns) = until_ns else {
                    // The simulation has ended. The host may start something more, once.
                    if self.all_done() && !std::mem::replace(&mut self.is_end_reported, true) {
                        break;
                    }
                    self.violated("the server waits for ever: no event is scheduled".to_owned());
                    return Err(std::io::Error::other("no event is scheduled"));
                };
                self.now_ns = self.now_ns.max(until_ns);
                break;
            };
            if until_ns.is_some_and(|until_ns| until_ns.max(self.now_ns) < at_ns) {
                self.now_ns = self.now_ns.max(until_ns.unwrap_or(0));
                break;
            }
            self.now_ns = self.now_ns.max(at_ns);
            if let Some((_, what)) = self.agenda.pop_first() {
                self.handle(what);
            }
        }
        events.extend(self.events.drain(..));
        Ok(())
    }

    fn handle(&mut self, event: Due) {
        match event {
            Due::Accept(link) => self.accept(link),
            Due::Connect { tag, service } => self.connected(tag, service),
            Due::Arrive(link) => self.arrive(link),
            Due::Deliver(link) => self.deliver(link),
            Due::Push(link) => self.push(link),
            Due::Break(link) => self.report_reset(link),
            Due::Notify(link) => self.notify(link),
            Due::Effect(io) => self.effect(io),
            Due::Complete(io) => self.complete(io),
            Due::Act(actor) => self.woken(actor),
            Due::Signal(signal) => {
                self.trace.note(self.now_ns, &[1], format_args!("signal {signal:?}"));
                self.events.push_back(Event::Signal(signal));
            }
            Due::Crash => self.crash(),
        }
    }

    /// Fails the power and ends the server.
    fn crash(&mut self) {
        self.crashed = true;
        self.fail_power();
        self.restart();
    }

    /// Fails the power: disks lose data that is not durable.
    pub fn fail_power(&mut self) {
        self.trace.note(self.now_ns, &[2], format_args!("the power fails"));
        for disk in &mut self.disks {
            disk.crash(&mut self.prng);
        }
    }

    /// Returns true if a connection ended with the server or its machine, not by a close.
    pub fn was_cut(&self, link: LinkId) -> bool {
        self.links[link.0].was_cut
    }

    /// Restarts the server's side: its connections are cut, its files closed, its I/O is dropped.
    pub fn restart(&mut self) {
        self.is_end_reported = false;
        self.agenda.retain(|_, due| matches!(due, Due::Act(_)));
        self.in_flight.clear();
        self.files.clear();
        self.events.clear();
        self.listeners.clear();
        for link in 0..self.links.len() {
            self.cut(LinkId(link));
        }
    }

    /// Runs an actor, unless an earlier wake-up has replaced this one.
    fn woken(&mut self, id: ActorId) {
        if self.wakes_ns[id.0].is_some_and(|at_ns| at_ns <= self.now_ns) {
            self.wakes_ns[id.0] = None;
            self.act(id);
        }
    }

    pub(super) fn act(&mut self, id: ActorId) {
        if let Some(mut actor) = self.actors[id.0].take() {
            actor.step(id, self);
            self.actors[id.0] = Some(actor);
        }
    }

    pub(super) fn file(&self, id: FileId) -> Option<File> {
        self.files.get(id.0 as usize).copied()
    }

    /// Adds an open listener of the server.
    pub fn add_listener(&mut self) -> ListenerId {
        self.listeners.push(true);
        ListenerId(self.listeners.len() as u32 - 1)
    }

    pub(super) fn close_listener(&mut self, listener: ListenerId) {
        if let Some(open) = self.listeners.get_mut(listener.0 as usize) {
            *open = false;
        }
    }

    pub(super) fn is_open(&self, listener: ListenerId) -> bool {
        self.listeners.get(listener.0 as usize).copied().unwrap_or(false)
    }
}
