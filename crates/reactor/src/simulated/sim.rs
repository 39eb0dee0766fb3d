//! The outside of a simulated server: virtual time, a network, disks, and those who act in it.

use std::collections::{BTreeMap, VecDeque};

use super::disk::{Disk, DiskPlan};
use super::links::Link;
use super::prng::Prng;
use super::trace::Trace;
use crate::Pool;
use crate::{Event, FileId, Io, ListenerId, Signal};

/// Memory that buffers come from, in bytes; what does not fit is memory of its own.
const POOL_BYTES: usize = 2 << 20;

/// Names a simulated connection, on the clients' side; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub usize);

/// Names one who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActorId(pub usize);

/// Names a simulated disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiskId(pub usize);

/// One who acts in a world: a client, an operator.
pub trait Actor {
    /// Something may have happened to it: a time that it waited for has come, bytes have come,
    /// there is room for more, a connection has ended.
    fn step(&mut self, me: ActorId, sim: &mut Sim);

    /// Whether it will do nothing more by itself.
    fn is_done(&self) -> bool;
}

/// Something wrong with the engine itself, to prove that a world finds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// Nothing is wrong.
    #[default]
    None,
    /// A flush is answered and makes nothing durable.
    FlushDoesNothing,
    /// A durable write is answered and is not durable.
    DurableWriteIsNot,
    /// A completion is lost, now and then.
    DropsCompletions,
    /// Two reads that end together have each other's data, now and then.
    SwapsReads,
    /// A write ends well and was not done, now and then.
    LosesWrites,
    /// A byte of what is sent is wrong, now and then.
    FlipsSentBits,
    /// A read, a write or a flush is done on another disk, now and then.
    MixesDisks,
}

impl Sabotage {
    /// All that is wrong in some way.
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

/// What is due at a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Due {
    /// A client has connected.
    Accept(LinkId),
    /// Bytes or the end come to the server.
    Arrive(LinkId),
    /// A receive that waits may be served.
    Deliver(LinkId),
    /// A send that waits may go on.
    Push(LinkId),
    /// The connection is of no use to the server any more.
    Break(LinkId),
    /// The one at the other end may look.
    Look(LinkId),
    /// An I/O takes effect.
    Effect(u64),
    /// An I/O is over.
    Over(u64),
    /// An actor's time has come.
    Act(ActorId),
    /// A signal to the server.
    Signal(Signal),
    /// The power fails.
    Crash,
}

/// A file of the server: a descriptor of a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct File {
    pub disk: DiskId,
    /// Whether offsets, lengths and memory have to be aligned.
    pub direct: bool,
}

/// An I/O under way.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub tag: u64,
    pub io: Io,
    pub result: Result<(), i32>,
    pub horizon: u64,
    /// How many of its bytes have been read or written.
    pub moved: u64,
}

/// A world's outside.
pub struct Sim {
    /// The time in ns.
    pub now_ns: u64,
    /// Chance.
    pub prng: Prng,
    /// What happened.
    pub trace: Trace,
    /// What the server did that its contract with the engine forbids, and what else is wrong.
    pub violations: Vec<String>,
    /// What is wrong on purpose.
    pub sabotage: Sabotage,
    /// Power has failed: the server sees errors only.
    pub crashed: bool,
    /// What buffers are taken from.
    pub pool: Pool,
    pub(super) agenda: BTreeMap<(u64, u64), Due>,
    serial: u64,
    pub(super) links: Vec<Link>,
    /// Generations of places of connections, and whether a place is taken.
    pub(super) places: Vec<(u32, Option<LinkId>)>,
    pub(super) listeners: Vec<bool>,
    pub(super) files: Vec<File>,
    pub(super) disks: Vec<Disk>,
    /// Which real file stands for which disk, by device and inode.
    pub(super) doors: Vec<((u64, u64), DiskId)>,
    pub(super) under_way: BTreeMap<u64, UnderWay>,
    pub(super) ios: u64,
    pub(super) events: VecDeque<Event>,
    pub(super) actors: Vec<Option<Box<dyn Actor>>>,
    /// Whoever plays the world was given the chance to end it.
    told_over: bool,
    /// When each actor is to be woken next.
    wakes_ns: Vec<Option<u64>>,
}

impl Sim {
    /// An empty world.
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
            places: Vec::new(),
            listeners: Vec::new(),
            files: Vec::new(),
            disks: Vec::new(),
            doors: Vec::new(),
            under_way: BTreeMap::new(),
            ios: 0,
            events: VecDeque::new(),
            actors: Vec::new(),
            told_over: false,
            wakes_ns: Vec::new(),
        }
    }

    /// Adds a disk, which the server opens through a real file of that device and inode number.
    pub fn add_disk(&mut self, plan: DiskPlan, door: (u64, u64)) -> DiskId {
        self.disks.push(Disk::new(plan));
        let id = DiskId(self.disks.len() - 1);
        self.doors.push((door, id));
        id
    }

    /// A disk.
    pub fn disk(&self, id: DiskId) -> &Disk {
        &self.disks[id.0]
    }

    /// Adds one who acts, from this time on.
    pub fn add_actor(&mut self, actor: Box<dyn Actor>, from_ns: u64) -> ActorId {
        self.actors.push(Some(actor));
        self.wakes_ns.push(None);
        self.told_over = false;
        let id = ActorId(self.actors.len() - 1);
        self.wake_at(from_ns, id);
        id
    }

    /// Wakes an actor at this time, or earlier if it is to be woken earlier anyway.
    pub fn wake_at(&mut self, at_ns: u64, actor: ActorId) {
        let wakes_ns = &mut self.wakes_ns[actor.0];
        if wakes_ns.is_none_or(|before_ns| before_ns > at_ns) {
            *wakes_ns = Some(at_ns);
            self.due(at_ns, Due::Act(actor));
        }
    }

    /// Sends the server a signal after some ns.
    pub fn signal_in(&mut self, delay_ns: u64, signal: Signal) {
        self.due(self.now_ns + delay_ns, Due::Signal(signal));
    }

    /// The power fails after some ns.
    pub fn crash_in(&mut self, delay_ns: u64) {
        self.due(self.now_ns + delay_ns, Due::Crash);
    }

    /// Whether all who act are done.
    pub fn all_done(&self) -> bool {
        self.actors.iter().flatten().all(|actor| actor.is_done())
    }

    /// Whether no I/O is under way.
    pub fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Something is wrong.
    pub fn violated(&mut self, what: String) {
        self.trace.note(self.now_ns, &[99], format_args!("VIOLATION: {what}"));
        self.violations.push(what);
    }

    pub(super) fn due(&mut self, at_ns: u64, what: Due) {
        self.serial += 1;
        self.agenda.insert((at_ns.max(self.now_ns), self.serial), what);
    }

    /// Lets the time pass until something has happened for the server, or `until_ns` has come.
    pub(super) fn turn(&mut self, until_ns: Option<u64>, events: &mut Vec<Event>) -> std::io::Result<()> {
        // The server's own work takes time as well.
        self.now_ns += self.prng.between(0, 3_000);
        loop {
            if self.crashed {
                return Err(std::io::Error::other("the power has failed"));
            }
            if let Some(what) = self.violations.first() {
                return Err(std::io::Error::other(what.clone()));
            }
            let next_ns = self.agenda.first_key_value().map(|((at_ns, _), _)| *at_ns);
            let due = next_ns.is_some_and(|at_ns| at_ns <= self.now_ns);
            if !self.events.is_empty() && (!due || self.prng.permille(200)) {
                break;
            }
            let Some(at_ns) = next_ns else {
                let Some(until_ns) = until_ns else {
                    // The world is over, and whoever plays it may say what comes next: once.
                    if self.all_done() && !std::mem::replace(&mut self.told_over, true) {
                        break;
                    }
                    self.violated("the server waits for ever, and nothing will happen".to_owned());
                    return Err(std::io::Error::other("nothing will ever happen"));
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
                self.happen(what);
            }
        }
        events.extend(self.events.drain(..));
        Ok(())
    }

    fn happen(&mut self, what: Due) {
        match what {
            Due::Accept(link) => self.accept(link),
            Due::Arrive(link) => self.arrive(link),
            Due::Deliver(link) => self.deliver(link),
            Due::Push(link) => self.push(link),
            Due::Break(link) => self.break_off(link),
            Due::Look(link) => self.look(link),
            Due::Effect(io) => self.effect(io),
            Due::Over(io) => self.over(io),
            Due::Act(actor) => self.woken(actor),
            Due::Signal(signal) => {
                self.trace.note(self.now_ns, &[1], format_args!("signal {signal:?}"));
                self.events.push_back(Event::Signal(signal));
            }
            Due::Crash => self.crash(),
        }
    }

    /// The power fails.
    fn crash(&mut self) {
        self.crashed = true;
        self.fail_power();
        self.restart();
    }

    /// Disks lose what is not durable.
    pub fn fail_power(&mut self) {
        self.trace.note(self.now_ns, &[2], format_args!("the power fails"));
        for disk in &mut self.disks {
            disk.crash(&mut self.prng);
        }
    }

    /// A connection was cut because the server was gone, not by the server.
    pub fn was_cut(&self, link: LinkId) -> bool {
        self.links[link.0].was_cut
    }

    /// The server's side begins anew: its connections are cut, its files closed, its I/O is gone.
    pub fn restart(&mut self) {
        self.told_over = false;
        self.agenda.retain(|_, due| matches!(due, Due::Act(_)));
        self.under_way.clear();
        self.files.clear();
        self.events.clear();
        self.listeners.clear();
        for link in 0..self.links.len() {
            self.cut(LinkId(link));
        }
    }

    /// A wake that was overtaken by an earlier one is for nothing.
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

    /// A listener of the server, open.
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
