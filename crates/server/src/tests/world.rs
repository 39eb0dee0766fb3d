//! A server on the simulated engine, and clients whose steps a test decides.

use std::cell::RefCell;
use std::rc::Rc;

use hoistway_nbd::client::{Collector, Completion, Goal, Handshake, HandshakeOptions, Progress, RequestSpec, TlsMode};
use hoistway_nbd::server::Replies;
use hoistway_nbd::wire::{Command, CommandFlags};

use crate::{Bounds, Purpose, ReloadError, Server, Settings, Turn};
use hoistway_config::{Config, Draft, HostEnvironment};
use hoistway_reactor::simulated::{Actor, ActorId, LinkId, LinkPlan, LinkState, Prng, Sim, SimEngine};
use hoistway_reactor::{Address, ListenerId, Peer, Process};

/// A millisecond in ns, the step of [`World::pass`].
pub const MS: u64 = 1_000_000;
/// The timeout of all waits, in ns of virtual time.
const TIMEOUT_NS: u64 = 600_000_000_000;
/// Links without latency that hold 256 KiB in each direction.
const LINK: LinkPlan = LinkPlan { latency_ns_max: 0, capacity: 256 << 10, piece_max: 64 << 10 };

/// An actor without steps: the test itself acts.
struct PassiveActor;

impl Actor for PassiveActor {
    fn step(&mut self, _: ActorId, _: &mut Sim) {}

    fn is_done(&self) -> bool {
        true
    }
}

/// Parses a valid configuration.
pub fn config(text: &str) -> Config {
    Draft::from_toml(text, "test.toml").check(&HostEnvironment).expect("a good configuration").config
}

/// Returns the peer of a process of this user.
pub fn user(uid: u32) -> Peer {
    Peer { address: Address::Unix, process: Some(Process { uid, pid: 7, ..Process::default() }) }
}

/// A server and its simulated environment.
pub struct World {
    pub server: Server<SimEngine>,
    pub sim: Rc<RefCell<Sim>>,
    actor: ActorId,
    listeners: [ListenerId; 3],
    /// True after a clean shutdown, false after another one; `None` before its end.
    pub ended: Option<bool>,
}

/// A client after the handshake.
pub struct Client {
    pub link: LinkId,
    pub nbd: Collector,
    pub replies: Vec<Completion>,
}

impl World {
    pub fn of(text: &str) -> World {
        World::with(text, Bounds::default())
    }

    pub fn with(text: &str, bounds: Bounds) -> World {
        let mut sim = Sim::new(Prng::new(1), false);
        let actor = sim.add_actor(Box::new(PassiveActor), 0);
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

    /// Advances the virtual time, at most until the shutdown ends.
    pub fn pass(&mut self, ns: u64) {
        let until_ns = self.now_ns() + ns;
        while self.now_ns() < until_ns && self.ended.is_none() {
            if let Turn::Ended { clean } = self.server.turn().expect("an intact engine") {
                self.ended = Some(clean);
            }
        }
    }

    /// Advances the virtual time until a condition holds.
    #[track_caller]
    pub fn until(&mut self, mut condition: impl FnMut(&mut World) -> bool) {
        let end_ns = self.now_ns() + TIMEOUT_NS;
        while !condition(self) {
            assert!(self.now_ns() < end_ns && self.ended.is_none(), "the condition never holds");
            self.pass(MS);
        }
    }

    /// Connects to a listener.
    pub fn connect(&mut self, purpose: Purpose, peer: Peer) -> LinkId {
        let listener = self.listeners[purpose as usize];
        self.sim.borrow_mut().connect(listener, self.actor, peer, LINK).expect("a listener")
    }

    /// Writes all bytes to a link.
    #[track_caller]
    pub fn write(&mut self, link: LinkId, mut bytes: &[u8]) {
        let end_ns = self.now_ns() + TIMEOUT_NS;
        while !bytes.is_empty() {
            let count = self.sim.borrow_mut().write(link, bytes);
            bytes = &bytes[count..];
            assert!(self.now_ns() < end_ns, "the server receives nothing");
            if count == 0 {
                self.pass(MS);
            }
        }
    }

    /// Reads all bytes that have arrived.
    pub fn read(&mut self, link: LinkId) -> Vec<u8> {
        let mut bytes = vec![0; LINK.capacity];
        let count = self.sim.borrow_mut().read(link, &mut bytes);
        bytes.truncate(count);
        bytes
    }

    /// Returns true if the client has not read the end of the connection.
    pub fn is_open(&self, link: LinkId) -> bool {
        self.sim.borrow().state(link) == LinkState::Open
    }

    /// Connects and chooses an export; `None` if the server does not admit the client.
    pub fn join(&mut self, export: &str, peer: Peer) -> Option<Client> {
        let link = self.connect(Purpose::Nbd, peer);
        let mut handshake = Handshake::new(HandshakeOptions {
            export: export.into(),
            tls: TlsMode::Never,
            replies: Replies::Structured,
            contexts: Vec::new(),
            goal: Goal::Enter,
        });
        let end_ns = self.now_ns() + TIMEOUT_NS;
        let mut pending = Vec::new();
        while self.now_ns() < end_ns && self.is_open(link) {
            self.pass(MS);
            pending.extend(self.read(link));
            let mut out = Vec::new();
            let (used, progress) = handshake.receive(&pending, &mut out).ok()?;
            pending.drain(..used);
            self.write(link, &out);
            if let Progress::Ready(session) = progress {
                return Some(Client { link, nbd: Collector::new(*session), replies: Vec::new() });
            }
        }
        None
    }

    /// Encodes a request.
    pub fn request(client: &mut Client, command: Command, offset: u64, length: u64, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let flags = CommandFlags::default();
        client.nbd.request(&RequestSpec { command, flags, offset, length }, data, &mut out).expect("a valid request");
        out
    }

    /// Receives the replies that have arrived.
    pub fn receive(&mut self, client: &mut Client) {
        let bytes = self.read(client.link);
        client.nbd.receive(&bytes, &mut client.replies).expect("valid replies");
    }

    /// Waits until a client has this number of replies.
    #[track_caller]
    pub fn await_replies(&mut self, client: &mut Client, count: usize) {
        self.until(|world| {
            world.receive(client);
            client.replies.len() >= count
        });
    }
}
