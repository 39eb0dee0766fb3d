//! Misbehaving clients: garbage, silence, requests whose replies are never read.

use hoistway_nbd::client::{Goal, Handshake, HandshakeOptions, Progress, RequestSpec, TlsMode};
use hoistway_nbd::server::Replies;
use hoistway_nbd::wire::{Command, CommandFlags};
use std::rc::Rc;

use super::SharedState;
use hoistway_reactor::Peer;
use hoistway_reactor::simulated::Prng;
use hoistway_reactor::simulated::{Actor, ActorId, LinkId, Sim};
use hoistway_reactor::simulated::{LinkPlan, LinkState};

/// The misbehaviour of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehavior {
    /// The client connects and sends nothing.
    Silent,
    /// The client sends random bytes.
    Garbage,
    /// The client completes the handshake, then sends random bytes.
    LateGarbage,
    /// The client completes the handshake, then sends valid requests with some flipped bits.
    Flips,
    /// The client requests data as long as its link accepts bytes, and reads nothing.
    NeverReads,
}

/// A misbehaving client, until it resets its connection.
pub struct MisbehavingClient {
    plan: Misbehavior,
    export: String,
    shared: Rc<SharedState>,
    prng: Prng,
    link_plan: LinkPlan,
    peer: Peer,
    link: Option<LinkId>,
    handshake: Option<Handshake>,
    session: Option<Box<hoistway_nbd::client::Session>>,
    out: Vec<u8>,
    leaves_ns: u64,
    over: bool,
}

impl MisbehavingClient {
    /// Creates a client that stays until `leaves_ns` and uses an export whose data are not checked.
    pub fn new(
        plan: Misbehavior,
        export: String,
        shared: Rc<SharedState>,
        prng: Prng,
        link: LinkPlan,
        leaves_ns: u64,
        peer: Peer,
    ) -> MisbehavingClient {
        let (link_plan, link) = (link, None);
        let (handshake, session, out) = (None, None, Vec::new());
        MisbehavingClient {
            plan,
            export,
            shared,
            prng,
            link_plan,
            peer,
            link,
            handshake,
            session,
            out,
            leaves_ns,
            over: false,
        }
    }

    fn connect(&mut self, me: ActorId, sim: &mut Sim) {
        let Some(listener) = self.shared.listener.get() else { return };
        self.link = sim.connect(listener, me, self.peer.clone(), self.link_plan);
        let replies = self.prng.pick(&[Replies::Simple, Replies::Structured, Replies::Extended]);
        let wants = HandshakeOptions {
            export: self.export.clone(),
            tls: TlsMode::Never,
            replies,
            contexts: Vec::new(),
            goal: Goal::Enter,
        };
        self.handshake = Some(Handshake::new(wants));
        let number = self.link.map_or(0, |link| link.0);
        let what = format_args!("misbehaving client (link {number}): {:?}", self.plan);
        sim.trace.note(sim.now_ns, &[23, number as u64], what);
    }

    fn receive(&mut self, link: LinkId, sim: &mut Sim) {
        let mut bytes = [0; 4096];
        loop {
            let count = if self.session.is_some() && self.plan == Misbehavior::NeverReads {
                0
            } else {
                sim.read(link, &mut bytes)
            };
            if count == 0 {
                return;
            }
            let Some(handshake) = &mut self.handshake else { continue };
            match handshake.receive(&bytes[..count], &mut self.out) {
                Ok((_, Progress::Ready(session))) => {
                    self.session = Some(session);
                    self.handshake = None;
                }
                Ok((_, Progress::More)) => {}
                Ok(_) | Err(_) => self.handshake = None,
            }
        }
    }

    fn send(&mut self, sim: &mut Sim, link: LinkId) {
        let room = sim.room(link);
        if self.out.is_empty() && room > 0 {
            match (self.plan, &mut self.session) {
                (Misbehavior::Garbage, _) | (Misbehavior::LateGarbage, Some(_)) => {
                    let count = self.prng.magnitude(2000) as usize;
                    self.out = (0..count).map(|_| self.prng.any() as u8).collect();
                }
                (Misbehavior::Flips, Some(session)) => {
                    let command = self.prng.pick(&[Command::Read, Command::Write, Command::Trim, Command::Flush]);
                    let length = self.prng.magnitude(3000);
                    session.request_unchecked(command, 0, self.prng.magnitude(5000), length, &mut self.out);
                    if command == Command::Write {
                        self.out.resize(self.out.len() + length as usize, 7);
                    }
                    if self.prng.permille(300) {
                        let at = self.prng.index(self.out.len());
                        self.out[at] ^= 1 << self.prng.between(0, 7);
                    }
                }
                (Misbehavior::NeverReads, Some(session)) => {
                    let (flags, offset) = (CommandFlags::default(), self.prng.between(0, 100));
                    let length = session.info.size.saturating_sub(offset).clamp(1, 60_000);
                    let _ =
                        session.request(&RequestSpec { command: Command::Read, flags, offset, length }, &mut self.out);
                }
                _ => {}
            }
        }
        let is_quiet =
            self.plan == Misbehavior::Silent || (self.plan == Misbehavior::Garbage && self.session.is_some());
        if !is_quiet {
            let count = sim.write(link, &self.out);
            self.out.drain(..count);
        }
    }
}

impl Actor for MisbehavingClient {
    fn step(&mut self, me: ActorId, sim: &mut Sim) {
        if self.over {
            return;
        }
        if sim.now_ns >= self.leaves_ns {
            self.over = true;
            if let Some(link) = self.link {
                sim.reset(link);
            }
            return;
        }
        sim.wake_at(self.leaves_ns, me);
        let Some(link) = self.link else {
            self.connect(me, sim);
            return sim.wake_at(sim.now_ns + 10_000_000, me);
        };
        self.receive(link, sim);
        if self.prng.permille(700) {
            self.send(sim, link);
        }
        match sim.state(link) {
            LinkState::Open if self.plan != Misbehavior::Silent && sim.room(link) > 0 => {
                let pause_ns = self.prng.magnitude(20_000_000);
                sim.wake_at(sim.now_ns + pause_ns, me);
            }
            LinkState::Open => {}
            LinkState::Ended | LinkState::Reset => {
                self.over = true;
                sim.reset(link);
            }
        }
    }

    fn is_done(&self) -> bool {
        self.over
    }
}
