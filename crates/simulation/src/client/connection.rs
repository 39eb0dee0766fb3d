//! A client's connection: it comes, asks, is answered, and goes in one of many ways.

use std::collections::BTreeMap;

use hoistway_nbd::client::{Collector, Completion, Goal, Handshake, HandshakeOptions, Progress, TlsMode};
use hoistway_nbd::server::Replies;

use super::Client;
use super::requests::Asked;
use hoistway_reactor::simulated::LinkState;
use hoistway_reactor::simulated::{ActorId, LinkId, Sim};

/// The most bytes that a client reads at once.
const READ_BYTES: usize = 64 << 10;

/// A connection, over and over again.
#[derive(Default)]
pub(super) struct Connection {
    pub link: Option<LinkId>,
    pub stage: Stage,
    /// What is to be sent.
    pub out: Vec<u8>,
    /// What was asked and not answered, by cookie.
    pub asked: BTreeMap<u64, Asked>,
    /// It will ask again at this time.
    pub next_ask_ns: u64,
    /// It does not read until then.
    deaf_until_ns: u64,
    /// When it was last not deaf: patience counts from then.
    patient_from_ns: u64,
    /// It has behaved so that the server may close the connection.
    may_close: bool,
}

/// How far a connection is.
#[derive(Default)]
pub(super) enum Stage {
    /// There is none, or not any more.
    #[default]
    Away,
    /// In the handshake.
    Greeting(Box<Handshake>),
    /// In transmission.
    Talking(Box<Collector>),
    /// It waits for the server to close.
    Leaving,
    /// For ever.
    Gone,
}

/// How a connection ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mishap {
    /// A reset.
    Reset,
    /// Not a word more.
    Forsaken,
    /// The client sends no more, in the middle of anything; it reads what still comes.
    Shut,
    /// The client says goodbye with requests under way.
    Goodbye,
}

impl Connection {
    pub fn is_gone(&self) -> bool {
        matches!(self.stage, Stage::Gone)
    }

    pub fn step(&mut self, client: &mut Client, me: ActorId, sim: &mut Sim) {
        if let Stage::Away = self.stage {
            self.come(client, me, sim);
        }
        let Some(link) = self.link else { return };
        if sim.now_ns < self.deaf_until_ns {
            sim.wake_at(self.deaf_until_ns, me);
        } else {
            self.hear(client, link, sim);
        }
        self.check_patience(client, sim);
        if let Stage::Talking(_) = self.stage {
            self.ask(client, me, sim);
        }
        self.speak(link, sim);
        self.leave_if_done(client, link, sim);
        match sim.state(link) {
            LinkState::Open => {}
            LinkState::Ended | LinkState::Reset => self.closed(client, me, sim),
        }
        if self.link.is_some() {
            sim.wake_at(sim.now_ns + 1_000_000_000, me);
        }
    }

    fn come(&mut self, client: &mut Client, me: ActorId, sim: &mut Sim) {
        if client.has_enough() || client.common.draining.get() {
            self.stage = Stage::Gone;
            return;
        }
        let Some(listener) = client.common.listener.get() else {
            return sim.wake_at(sim.now_ns + 5_000_000, me);
        };
        let Some(link) = sim.connect(listener, me, client.plan.peer.clone(), client.plan.link) else {
            return sim.wake_at(sim.now_ns + 5_000_000, me);
        };
        let contexts = if client.plan.replies == Replies::Simple { Vec::new() } else { vec!["base:allocation".into()] };
        let wants = HandshakeOptions {
            export: client.plan.export.clone(),
            tls: TlsMode::Never,
            replies: client.plan.replies,
            contexts,
            goal: if client.plan.by_name { Goal::EnterByName } else { Goal::Enter },
        };
        client.say(sim, Some(link), format_args!("connects to {:?}, {:?}", client.plan.export, client.plan.replies));
        *self = Connection {
            link: Some(link),
            stage: Stage::Greeting(Box::new(Handshake::new(wants))),
            patient_from_ns: sim.now_ns,
            next_ask_ns: sim.now_ns,
            ..Connection::default()
        };
    }

    /// Reads what has come.
    fn hear(&mut self, client: &mut Client, link: LinkId, sim: &mut Sim) {
        loop {
            let mut bytes = std::mem::take(&mut client.scratch);
            bytes.resize(READ_BYTES, 0);
            let count = sim.read(link, &mut bytes);
            let sound = count > 0 && self.take(client, &bytes[..count], sim);
            client.scratch = bytes;
            if !sound {
                return;
            }
            if client.prng.permille(client.plan.pauses_permille) {
                self.deaf_until_ns = sim.now_ns + client.prng.magnitude(client.plan.pause_ns_max);
                self.patient_from_ns = self.deaf_until_ns;
                client.say(sim, Some(link), format_args!("is deaf until {} ms", self.deaf_until_ns as f64 / 1e6));
                return;
            }
        }
    }

    /// Takes bytes of the server; `false`: they made no sense.
    fn take(&mut self, client: &mut Client, mut bytes: &[u8], sim: &mut Sim) -> bool {
        if let Stage::Greeting(handshake) = &mut self.stage {
            match handshake.receive(bytes, &mut self.out) {
                Ok((_, Progress::More)) => return true,
                Ok((used, Progress::Ready(session))) => {
                    bytes = &bytes[used..];
                    self.patient_from_ns = sim.now_ns;
                    self.stage = Stage::Talking(Box::new(Collector::new(*session)));
                }
                Err(_) if client.common.draining.get() => {
                    self.may_close = true;
                    return false;
                }
                other => {
                    client.wrong(sim, format_args!("the handshake ended with {other:?}"));
                    return false;
                }
            }
        }
        let Stage::Talking(collector) = &mut self.stage else { return true };
        let mut completions = Vec::new();
        if let Err(broken) = collector.receive(bytes, &mut completions) {
            client.wrong(sim, format_args!("{broken}"));
            return false;
        }
        for completion in completions {
            self.answered(client, completion, sim);
        }
        true
    }

    fn answered(&mut self, client: &mut Client, completion: Completion, sim: &mut Sim) {
        let Some(asked) = self.asked.remove(&completion.cookie) else { return };
        let numbers = [21, completion.cookie];
        let outcome = completion.result.as_ref().map(|_| ()).map_err(|(errno, text)| format!("{errno} {text}"));
        let name = &client.plan.name;
        let took_ms = (sim.now_ns - asked.since_ns) as f64 / 1e6;
        let what = format_args!("{name}: {asked} answered after {took_ms:.3} ms: {outcome:?}");
        sim.trace.note(sim.now_ns, &numbers, what);
        client.common.answered.set(client.common.answered.get() + 1);
        let is_durable = outcome.is_ok() && asked.makes_durable();
        client.settle(&asked, completion, sim);
        self.next_ask_ns = sim.now_ns + client.prng.between(0, client.plan.think_ns_max);
        if is_durable && client.common.may_crash && client.prng.permille(15) {
            sim.crash_in(0);
        }
    }

    /// Asks for more, as long as it may.
    fn ask(&mut self, client: &mut Client, me: ActorId, sim: &mut Sim) {
        if client.has_enough() || self.asked.len() >= client.plan.depth {
            return;
        }
        if sim.now_ns < self.next_ask_ns {
            return sim.wake_at(self.next_ask_ns, me);
        }
        while self.asked.len() < client.plan.depth && !client.has_enough() && self.out.len() < READ_BYTES {
            let Stage::Talking(collector) = &mut self.stage else { return };
            let (cookie, asked) = client.request(collector, &mut self.out, sim);
            client.left = client.left.saturating_sub(1);
            let name = &client.plan.name;
            sim.trace.note(sim.now_ns, &[22, cookie], format_args!("{name}: asks {asked}, cookie {cookie}"));
            self.asked.insert(cookie, asked);
            if client.prng.permille(client.plan.mishaps_permille) {
                return self.mishap(client, me, sim);
            }
            if client.plan.think_ns_max > 0 && client.prng.permille(500) {
                self.next_ask_ns = sim.now_ns + client.prng.between(0, client.plan.think_ns_max);
                return sim.wake_at(self.next_ask_ns, me);
            }
        }
    }

    fn speak(&mut self, link: LinkId, sim: &mut Sim) {
        let count = sim.write(link, &self.out);
        self.out.drain(..count);
    }

    fn mishap(&mut self, client: &mut Client, me: ActorId, sim: &mut Sim) {
        let Some(link) = self.link else { return };
        let mishap = client.prng.pick(&[Mishap::Reset, Mishap::Forsaken, Mishap::Shut, Mishap::Goodbye]);
        client.say(sim, Some(link), format_args!("mishap: {mishap:?} with {} under way", self.asked.len()));
        if mishap != Mishap::Goodbye {
            let part = client.prng.between(0, self.out.len() as u64) as usize;
            sim.write(link, &self.out[..part]);
            self.out.clear();
        }
        self.may_close = true;
        match mishap {
            Mishap::Reset => sim.reset(link),
            Mishap::Forsaken => {
                sim.abandon(link);
                self.closed(client, me, sim);
            }
            Mishap::Shut => {
                sim.shut(link);
                self.leave(link, sim);
            }
            Mishap::Goodbye => {
                if let Stage::Talking(collector) = &mut self.stage {
                    collector.session.disconnect(&mut self.out);
                }
                self.leave(link, sim);
            }
        }
    }

    /// From now on it only waits for the end; what is under way may or may not happen.
    fn leave(&mut self, link: LinkId, sim: &mut Sim) {
        self.patient_from_ns = sim.now_ns;
        self.may_close = true;
        self.asked.clear();
        self.stage = Stage::Leaving;
        self.speak(link, sim);
    }

    fn leave_if_done(&mut self, client: &mut Client, link: LinkId, sim: &mut Sim) {
        let over = client.has_enough() && self.asked.is_empty() && self.out.is_empty();
        if let Stage::Talking(collector) = &mut self.stage
            && over
        {
            client.say(sim, Some(link), format_args!("says goodbye"));
            collector.session.disconnect(&mut self.out);
            self.leave(link, sim);
        }
    }

    /// The connection is no more.
    fn closed(&mut self, client: &mut Client, me: ActorId, sim: &mut Sim) {
        let Some(link) = self.link.take() else { return };
        let excused = self.may_close || client.common.draining.get() || client.common.listener.get().is_none();
        if !excused && !sim.was_cut(link) {
            let state = sim.state(link);
            client.wrong(sim, format_args!("link {}: the server closed it ({state:?}), and nothing was wrong", link.0));
        }
        client.say(sim, Some(link), format_args!("is closed, {} unanswered", self.asked.len()));
        self.asked.clear();
        self.out.clear();
        self.stage = Stage::Away;
        sim.wake_at(sim.now_ns + client.prng.magnitude(20_000_000), me);
    }

    /// Nobody waits longer than it can take.
    fn check_patience(&mut self, client: &mut Client, sim: &mut Sim) {
        if sim.now_ns < self.patient_from_ns.saturating_add(client.plan.patience_ns) {
            return;
        }
        let oldest = self.asked.values().min_by_key(|asked| asked.since_ns);
        let since_ns = match (&self.stage, oldest) {
            (Stage::Talking(_), Some(asked)) => asked.since_ns.max(self.patient_from_ns),
            (Stage::Talking(_) | Stage::Away | Stage::Gone, _) => return,
            (Stage::Greeting(_) | Stage::Leaving, _) => self.patient_from_ns,
        };
        if sim.now_ns >= since_ns.saturating_add(client.plan.patience_ns) {
            let seconds = (sim.now_ns - since_ns) as f64 / 1e9;
            let what = match oldest {
                Some(asked) => format!("{asked} is not answered"),
                None => "the server does not answer".to_owned(),
            };
            client.wrong(sim, format_args!("{what} after {seconds:.1} s"));
        }
    }
}
