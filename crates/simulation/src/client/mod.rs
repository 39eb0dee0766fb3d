//! Simulated clients: they ask for everything that the protocol has, know what the answers may be,
//! and are as unpleasant as clients are.

mod connection;
mod requests;
mod rude;

use std::cell::Cell;
use std::rc::Rc;

use hoistway_nbd::server::Replies;

use super::history::SharedHistory;
use connection::Connection;
use hoistway_reactor::simulated::LinkPlan;
use hoistway_reactor::simulated::{Actor, ActorId, Sim};
use hoistway_reactor::simulated::{LinkId, Prng};
use hoistway_reactor::{ListenerId, Peer};
pub use rude::{Rude, RudePlan};

/// What all clients of a world know.
#[derive(Debug)]
pub struct Common {
    /// Where they connect; none while there is no server.
    pub listener: Cell<Option<ListenerId>>,
    /// The server is leaving: it may refuse and close.
    pub draining: Cell<bool>,
    /// Clients that are not done, the greedy ones not counted.
    pub unfinished: Cell<usize>,
    /// Requests that were answered.
    pub answered: Cell<u64>,
    /// The power may fail at once after an acknowledgement.
    pub may_crash: bool,
}

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// A name for the log.
    pub name: String,
    /// The device that its export lies on, by number.
    pub device: usize,
    /// That may fail: EIO and ENOSPC are to be expected.
    pub faulty: bool,
    /// Its export.
    pub export: String,
    /// It must not write there.
    pub read_only: bool,
    /// Its connections, which share a region.
    pub connections: usize,
    /// Requests that each has under way at most.
    pub depth: usize,
    /// Requests in all.
    pub requests: u32,
    /// The form of replies that it asks for.
    pub replies: Replies,
    /// It enters with EXPORT_NAME.
    pub by_name: bool,
    /// The longest pause between an answer and the next request, in ns.
    pub think_ns_max: u64,
    /// The longest request in bytes.
    pub length_max: u64,
    /// How many of a thousand requests read, and how many of the others write; the rest is
    /// anything.
    pub reads_permille: u64,
    /// See there.
    pub writes_permille: u64,
    /// How many of a thousand requests end in a mishap of the connection.
    pub mishaps_permille: u64,
    /// After how many of a thousand answers it stops reading for a while, and for how long at most,
    /// in ns.
    pub pauses_permille: u64,
    /// See there.
    pub pause_ns_max: u64,
    /// How many of a thousand requests are such as the server must refuse.
    pub wrong_permille: u64,
    /// It goes on for as long as others are there.
    pub greedy: bool,
    /// What its connections are like.
    pub link: LinkPlan,
    /// Who it is.
    pub peer: Peer,
    /// The longest that it may have to wait for an answer, in ns.
    pub patience_ns: u64,
}

/// A client.
pub struct Client {
    pub(super) plan: ClientPlan,
    pub(super) common: Rc<Common>,
    pub(super) history: SharedHistory,
    pub(super) prng: Prng,
    pub(super) left: u32,
    connections: Vec<Connection>,
    counted: bool,
    /// What is read into.
    scratch: Vec<u8>,
}

impl Client {
    /// A client that has not connected yet.
    pub fn new(plan: ClientPlan, common: Rc<Common>, history: SharedHistory, prng: Prng) -> Client {
        if !plan.greedy {
            common.unfinished.set(common.unfinished.get() + 1);
        }
        let connections = (0..plan.connections).map(|_| Connection::default()).collect();
        Client { left: plan.requests, plan, common, history, prng, connections, counted: false, scratch: Vec::new() }
    }

    /// Whether there is no reason to ask for more.
    fn has_enough(&self) -> bool {
        self.left == 0 || (self.plan.greedy && self.common.unfinished.get() == 0)
    }

    fn say(&self, sim: &mut Sim, link: Option<LinkId>, what: std::fmt::Arguments<'_>) {
        let number = link.map_or(0, |link| link.0 as u64 + 1);
        let name = &self.plan.name;
        let now_ns = sim.now_ns;
        sim.trace.note(now_ns, &[20, number], format_args!("{name} (link {}): {what}", number as i64 - 1));
    }

    fn wrong(&self, sim: &mut Sim, what: std::fmt::Arguments<'_>) {
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
            self.common.unfinished.set(self.common.unfinished.get() - 1);
        }
    }

    fn is_done(&self) -> bool {
        self.connections.iter().all(Connection::is_gone)
    }
}
