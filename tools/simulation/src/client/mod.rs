//! Simulated clients: they use every command of the protocol, check every reply, and disconnect in
//! every way.

mod connection;
mod misbehaving;
mod requests;

use std::cell::Cell;
use std::rc::Rc;

use hoistway_nbd::server::Replies;

use super::history::SharedHistory;
use connection::Connection;
use hoistway_reactor::simulated::LinkPlan;
use hoistway_reactor::simulated::{Actor, ActorId, Sim};
use hoistway_reactor::simulated::{LinkId, Prng};
use hoistway_reactor::{ListenerId, Peer};
pub use misbehaving::{MisbehavingClient, Misbehavior};

/// The state that all clients of a world share.
#[derive(Debug)]
pub struct SharedState {
    /// The listener of the server; `None` while no server runs.
    pub listener: Cell<Option<ListenerId>>,
    /// True during a shutdown: the server may refuse requests and close connections.
    pub draining: Cell<bool>,
    /// The number of unfinished clients without the greedy ones.
    pub unfinished: Cell<usize>,
    /// The number of answered requests.
    pub answered: Cell<u64>,
    /// True if the power may fail directly after an acknowledgement.
    pub may_crash: bool,
}

/// The behaviour of a client.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// The name in the log.
    pub name: String,
    /// The number of the export's device.
    pub device: usize,
    /// True if the device may fail: EIO and ENOSPC are then valid replies.
    pub faulty: bool,
    /// The name of the export.
    pub export: String,
    /// True if the export is read-only.
    pub read_only: bool,
    /// The number of connections, which share a region.
    pub connections: usize,
    /// The maximum number of requests in flight of each connection.
    pub depth: usize,
    /// The number of requests of all connections.
    pub requests: u32,
    /// The form of replies that the client negotiates.
    pub replies: Replies,
    /// True if the client chooses its export by EXPORT_NAME.
    pub by_name: bool,
    /// The longest pause between a reply and the next request, in ns.
    pub think_ns_max: u64,
    /// The longest request in bytes.
    pub length_max: u64,
    /// The share of flushes beside those among all other commands, in permille.
    pub flushes_permille: u64,
    /// The share of reads among the other requests, in permille.
    pub reads_permille: u64,
    /// The share of writes among the other requests, in permille; the rest are all other commands.
    pub writes_permille: u64,
    /// The share of requests that end with an abrupt disconnect, in permille.
    pub mishaps_permille: u64,
    /// The share of replies after which the client stops reading for a time, in permille.
    pub pauses_permille: u64,
    /// The longest time without reading, in ns.
    pub pause_ns_max: u64,
    /// The share of requests that the server must refuse, in permille.
    pub wrong_permille: u64,
    /// True if the client continues until all other clients have finished.
    pub greedy: bool,
    /// The properties of its links.
    pub link: LinkPlan,
    /// The identity of the client.
    pub peer: Peer,
    /// The longest valid latency of a reply, in ns.
    pub patience_ns: u64,
}

impl ClientPlan {
    /// Sends more requests to a device behind a remote, of which few would meet a recovery: many at
    /// a time, and some flushes.
    pub(super) fn use_remote(&mut self, prng: &mut Prng) {
        self.requests = self.requests.max(prng.pick(&[60, 60, 200]));
        self.depth = self.depth.max(prng.pick(&[1, 8, 16]));
        self.flushes_permille = prng.pick(&[30, 100, 200]);
        if prng.permille(500) {
            (self.reads_permille, self.writes_permille, self.think_ns_max) = (400, 900, 0);
        }
    }
}

/// A simulated client.
pub struct Client {
    pub(super) plan: ClientPlan,
    pub(super) shared: Rc<SharedState>,
    pub(super) history: SharedHistory,
    pub(super) prng: Prng,
    pub(super) left: u32,
    connections: Vec<Connection>,
    counted: bool,
    /// The buffer of reads.
    scratch: Vec<u8>,
}

impl Client {
    /// Creates a client that has not connected.
    pub fn new(plan: ClientPlan, shared: Rc<SharedState>, history: SharedHistory, prng: Prng) -> Client {
        if !plan.greedy {
            shared.unfinished.set(shared.unfinished.get() + 1);
        }
        let connections = (0..plan.connections).map(|_| Connection::default()).collect();
        Client { left: plan.requests, plan, shared, history, prng, connections, counted: false, scratch: Vec::new() }
    }

    /// Returns true if the client sends no more requests.
    fn is_finished(&self) -> bool {
        self.left == 0 || (self.plan.greedy && self.shared.unfinished.get() == 0)
    }

    /// Adds a line to the log of the world.
    fn log(&self, sim: &mut Sim, link: Option<LinkId>, what: std::fmt::Arguments<'_>) {
        let number = link.map_or(0, |link| link.0 as u64 + 1);
        let name = &self.plan.name;
        let now_ns = sim.now_ns;
        sim.trace.note(now_ns, &[20, number], format_args!("{name} (link {}): {what}", number as i64 - 1));
    }

    /// Reports a violation.
    fn violation(&self, sim: &mut Sim, what: std::fmt::Arguments<'_>) {
        sim.violated(format!("{}: {what}", self.plan.name));
    }
}

impl Actor for Client {
    fn step(&mut self, me: ActorId, sim: &mut Sim) {
        let mut connections = std::mem::take(&mut self.connections);
        for connection in &mut connections {
            connection.step(self, me, sim);
        }
        self.connections = connections;
        if self.is_done() && !self.plan.greedy && !std::mem::replace(&mut self.counted, true) {
            self.shared.unfinished.set(self.shared.unfinished.get() - 1);
        }
    }

    fn is_done(&self) -> bool {
        self.connections.iter().all(Connection::is_finished)
    }
}
