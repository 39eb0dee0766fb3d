//! Clients that only do harm: garbage, silence, requests whose answers nobody reads.

use hoistway_nbd::client::{Goal, Handshake, HandshakeOptions, Progress, RequestSpec, TlsMode};
use hoistway_nbd::server::Replies;
use hoistway_nbd::wire::{Command, CommandFlags};
use std::rc::Rc;

use super::Common;
use hoistway_reactor::Peer;
use hoistway_reactor::simulated::Prng;
use hoistway_reactor::simulated::{Actor, ActorId, LinkId, Sim};
use hoistway_reactor::simulated::{LinkPlan, LinkState};

/// What a client does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RudePlan {
    /// It connects and says nothing.
    Silent,
    /// It sends bytes that mean nothing.
    Garbage,
    /// It shakes hands, and then sends bytes that mean nothing.
    LateGarbage,
    /// It shakes hands, and then sends sound requests with wrong bits here and there.
    Flips,
    /// It asks for data for as long as it can, and reads nothing.
    NeverReads,
}

/// A client that does harm, until it leaves without a word.
pub struct Rude {
    plan: RudePlan,
    export: String,
    common: Rc<Common>,
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

impl Rude {
    /// One that stays until a time of its own, in ns, and asks for this export, where it can spoil
    /// nothing.
    pub fn new(
        plan: RudePlan,
        export: String,
        common: Rc<Common>,
        prng: Prng,
        link: LinkPlan,
        leaves_ns: u64,
        peer: Peer,
    ) -> Rude {
        let (link_plan, link) = (link, None);
        let (handshake, session, out) = (None, None, Vec::new());
        Rude { plan, export, common, prng, link_plan, peer, link, handshake, session, out, leaves_ns, over: false }
    }

    fn come(&mut self, me: ActorId, sim: &mut Sim) {
        let Some(listener) = self.common.listener.get() else { return };
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
        let what = format_args!("rude client (link {number}): {:?}", self.plan);
        sim.trace.note(sim.now_ns, &[23, number as u64], what);
    }

    fn hear(&mut self, link: LinkId, sim: &mut Sim) {
        let mut bytes = [0; 4096];
        loop {
            let count = if self.session.is_some() && self.plan == RudePlan::NeverReads {
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

    fn speak(&mut self, sim: &mut Sim, link: LinkId) {
        let room = sim.room(link);
        if self.out.is_empty() && room > 0 {
            match (self.plan, &mut self.session) {
                (RudePlan::Garbage, _) | (RudePlan::LateGarbage, Some(_)) => {
                    let count = self.prng.magnitude(2000) as usize;
                    self.out = (0..count).map(|_| self.prng.any() as u8).collect();
                }
                (RudePlan::Flips, Some(session)) => {
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
                (RudePlan::NeverReads, Some(session)) => {
                    let (flags, offset) = (CommandFlags::default(), self.prng.between(0, 100));
                    let length = session.info.size.saturating_sub(offset).clamp(1, 60_000);
                    let _ =
                        session.request(&RequestSpec { command: Command::Read, flags, offset, length }, &mut self.out);
                }
                _ => {}
            }
        }
        let is_quiet = self.plan == RudePlan::Silent || (self.plan == RudePlan::Garbage && self.session.is_some());
        if !is_quiet {
            let count = sim.write(link, &self.out);
            self.out.drain(..count);
        }
    }
}

impl Actor for Rude {
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
            self.come(me, sim);
            return sim.wake_at(sim.now_ns + 10_000_000, me);
        };
        self.hear(link, sim);
        if self.prng.permille(700) {
            self.speak(sim, link);
        }
        match sim.state(link) {
            LinkState::Open if self.plan != RudePlan::Silent && sim.room(link) > 0 => {
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
