//! A server whose outside is simulated, and clients that a test plays by hand.

use std::cell::RefCell;
use std::rc::Rc;

use hoistway_nbd::client::{Collector, Completion, Goal, Handshake, HandshakeOptions, Progress, RequestSpec, TlsMode};
use hoistway_nbd::server::Replies;
use hoistway_nbd::wire::{Command, CommandFlags};

use crate::{Bounds, Purpose, ReloadError, Server, Settings, Turn};
use hoistway_config::{Config, Draft, HostEnvironment};
use hoistway_reactor::simulated::{Actor, ActorId, LinkId, LinkPlan, Prng, Sim, SimEngine, State};
use hoistway_reactor::{Address, ListenerId, Peer, Process};

/// A millisecond in ns: how often the server is looked at.
pub const MS: u64 = 1_000_000;
/// The longest that anything is waited for, in ns of the world's time.
const PATIENCE_NS: u64 = 600_000_000_000;
/// Connections that hold 256 KiB each way and delay nothing.
const LINK: LinkPlan = LinkPlan { latency_ns_max: 0, capacity: 256 << 10, piece_max: 64 << 10 };

/// Somebody who does nothing by himself: the test acts.
struct Puppet;

impl Actor for Puppet {
    fn step(&mut self, _: ActorId, _: &mut Sim) {}

    fn is_done(&self) -> bool {
        true
    }
}

/// A configuration that is right.
pub fn config(text: &str) -> Config {
    Draft::from_toml(text, "test.toml").check(&HostEnvironment).expect("a good configuration").config
}

/// A client's process, by its user.
pub fn user(uid: u32) -> Peer {
    Peer { address: Address::Unix, process: Some(Process { uid, pid: 7, ..Process::default() }) }
}

/// A server and its outside.
pub struct World {
    pub server: Server<SimEngine>,
    pub sim: Rc<RefCell<Sim>>,
    actor: ActorId,
    listeners: [ListenerId; 3],
    /// How the server has left, if it has.
    pub ended: Option<bool>,
}

/// A client that has chosen an export.
pub struct Client {
    pub link: LinkId,
    pub nbd: Collector,
    pub answers: Vec<Completion>,
}

impl World {
    pub fn of(text: &str) -> World {
        World::with(text, Bounds::default())
    }

    pub fn with(text: &str, bounds: Bounds) -> World {
        let mut sim = Sim::new(Prng::new(1), false);
        let actor = sim.add_actor(Box::new(Puppet), 0);
        let listeners = [sim.add_listener(), sim.add_listener(), sim.add_listener()];
        let sim = Rc::new(RefCell::new(sim));
        let settings = Settings { bounds, ..Settings::default() };
        let mut server = Server::new(SimEngine::new(sim.clone()), &config(text), settings).expect("a server");
        for (listener, purpose) in listeners.into_iter().zip([Purpose::Nbd, Purpose::Control, Purpose::Metrics]) {
            server.attach(listener, purpose);
        }
        server.set_alarm(MS);
        World { server, sim, actor, listeners, ended: None }
    }

    pub fn reload(&mut self, text: &str) -> Result<(), ReloadError> {
        self.server.reload(config(text), None)
    }

    pub fn now_ns(&self) -> u64 {
        self.sim.borrow().now_ns
    }

    /// Lets so much time pass, or less if the server leaves.
    pub fn pass(&mut self, ns: u64) {
        let until_ns = self.now_ns() + ns;
        while self.now_ns() < until_ns && self.ended.is_none() {
            if let Turn::Ended { clean } = self.server.turn().expect("the world is in order") {
                self.ended = Some(clean);
            }
        }
    }

    /// Lets time pass until something is so.
    #[track_caller]
    pub fn until(&mut self, mut is_so: impl FnMut(&mut World) -> bool) {
        let end_ns = self.now_ns() + PATIENCE_NS;
        while !is_so(self) {
            assert!(self.now_ns() < end_ns && self.ended.is_none(), "it never comes");
            self.pass(MS);
        }
    }

    /// Somebody connects.
    pub fn connect(&mut self, purpose: Purpose, peer: Peer) -> LinkId {
        let listener = self.listeners[purpose as usize];
        self.sim.borrow_mut().connect(listener, self.actor, peer, LINK).expect("it is listened to")
    }

    /// Writes all of it.
    #[track_caller]
    pub fn write(&mut self, link: LinkId, mut bytes: &[u8]) {
        let end_ns = self.now_ns() + PATIENCE_NS;
        while !bytes.is_empty() {
            let count = self.sim.borrow_mut().write(link, bytes);
            bytes = &bytes[count..];
            assert!(self.now_ns() < end_ns, "the server takes no more");
            if count == 0 {
                self.pass(MS);
            }
        }
    }

    /// What has come by now.
    pub fn read(&mut self, link: LinkId) -> Vec<u8> {
        let mut bytes = vec![0; LINK.capacity];
        let count = self.sim.borrow_mut().read(link, &mut bytes);
        bytes.truncate(count);
        bytes
    }

    /// Whether the server has not closed the connection, as far as the client has read.
    pub fn is_open(&self, link: LinkId) -> bool {
        self.sim.borrow().state(link) == State::Open
    }

    /// A client that has chosen an export, or none if it is not let in.
    pub fn enter(&mut self, export: &str, peer: Peer) -> Option<Client> {
        let link = self.connect(Purpose::Nbd, peer);
        let mut handshake = Handshake::new(HandshakeOptions {
            export: export.into(),
            tls: TlsMode::Never,
            replies: Replies::Structured,
            contexts: Vec::new(),
            goal: Goal::Enter,
        });
        let end_ns = self.now_ns() + PATIENCE_NS;
        let mut pending = Vec::new();
        while self.now_ns() < end_ns && self.is_open(link) {
            self.pass(MS);
            pending.extend(self.read(link));
            let mut out = Vec::new();
            let (used, progress) = handshake.receive(&pending, &mut out).ok()?;
            pending.drain(..used);
            self.write(link, &out);
            if let Progress::Ready(session) = progress {
                return Some(Client { link, nbd: Collector::new(*session), answers: Vec::new() });
            }
        }
        None
    }

    /// A request, as bytes.
    pub fn request(client: &mut Client, command: Command, offset: u64, length: u64, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let flags = CommandFlags::default();
        client.nbd.request(&RequestSpec { command, flags, offset, length }, data, &mut out).expect("it may be asked");
        out
    }

    /// Takes what the server has answered.
    pub fn hear(&mut self, client: &mut Client) {
        let bytes = self.read(client.link);
        client.nbd.receive(&bytes, &mut client.answers).expect("the server speaks NBD");
    }

    /// Asks and waits for so many answers.
    #[track_caller]
    pub fn await_answers(&mut self, client: &mut Client, count: usize) {
        self.until(|world| {
            world.hear(client);
            client.answers.len() >= count
        });
    }
}
