//! A client's connection: handshake, requests, replies, and one of many ends.

use std::collections::BTreeMap;

use hoistway_nbd::client::{Collector, Completion, Goal, Handshake, HandshakeOptions, Progress, TlsMode};
use hoistway_nbd::server::Replies;

use super::Client;
use super::requests::PendingRequest;
use hoistway_reactor::simulated::LinkState;
use hoistway_reactor::simulated::{ActorId, LinkId, Sim};

/// The maximum number of bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// A connection, which is opened again after each end.
#[derive(Default)]
pub(super) struct Connection {
    pub link: Option<LinkId>,
    pub stage: Stage,
    /// The bytes to be sent.
    pub out: Vec<u8>,
    /// The requests without a reply, by cookie.
    pub pending: BTreeMap<u64, PendingRequest>,
    /// The time of the next request, in ns.
    pub next_request_ns: u64,
    /// The end of a pause without reads, in ns.
    read_pause_until_ns: u64,
    /// The time in ns from which the latency of replies counts: the end of the last pause.
    waiting_since_ns: u64,
    /// True if the server may close the connection.
    may_close: bool,
}

/// The stage of a connection.
#[derive(Default)]
pub(super) enum Stage {
    /// Not connected.
    #[default]
    Disconnected,
    /// In the handshake.
    Handshake(Box<Handshake>),
    /// In transmission.
    Transmission(Box<Collector>),
    /// The client waits until the server closes the connection.
    Closing,
    /// The client does not connect again.
    Finished,
}

/// An abrupt end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mishap {
    /// A reset by the client.
    Reset,
    /// The client vanishes without a packet.
    Vanished,
    /// The client ends its sending side at any byte, and reads on.
    HalfClosed,
    /// The client sends a disconnect request with requests in flight.
    Disconnect,
}

impl Connection {
    pub fn is_finished(&self) -> bool {
        matches!(self.stage, Stage::Finished)
    }

    pub fn step(&mut self, client: &mut Client, me: ActorId, sim: &mut Sim) {
        if let Stage::Disconnected = self.stage {
            self.connect(client, me, sim);
        }
        let Some(link) = self.link else { return };
        if sim.now_ns < self.read_pause_until_ns {
            sim.wake_at(self.read_pause_until_ns, me);
        } else {
            self.receive(client, link, sim);
        }
        self.check_latency(client, sim);
        if let Stage::Transmission(_) = self.stage {
            self.send_requests(client, me, sim);
        }
        self.flush_output(link, sim);
        self.disconnect_if_finished(client, link, sim);
        match sim.state(link) {
            LinkState::Open => {}
            LinkState::Ended | LinkState::Reset => self.closed(client, me, sim),
        }
        if self.link.is_some() {
            sim.wake_at(sim.now_ns + 1_000_000_000, me);
        }
    }

    fn connect(&mut self, client: &mut Client, me: ActorId, sim: &mut Sim) {
        if client.is_finished() || client.shared.draining.get() {
            self.stage = Stage::Finished;
            return;
        }
        let Some(listener) = client.shared.listener.get() else {
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
        client.log(sim, Some(link), format_args!("connects to {:?}, {:?}", client.plan.export, client.plan.replies));
        *self = Connection {
            link: Some(link),
            stage: Stage::Handshake(Box::new(Handshake::new(wants))),
            waiting_since_ns: sim.now_ns,
            next_request_ns: sim.now_ns,
            ..Connection::default()
        };
    }

    /// Reads the bytes that have arrived.
    fn receive(&mut self, client: &mut Client, link: LinkId, sim: &mut Sim) {
        loop {
            let mut bytes = std::mem::take(&mut client.scratch);
            bytes.resize(READ_BYTES, 0);
            let count = sim.read(link, &mut bytes);
            let valid = count > 0 && self.handle_bytes(client, &bytes[..count], sim);
            client.scratch = bytes;
            if !valid {
                return;
            }
            if client.prng.permille(client.plan.pauses_permille) {
                self.read_pause_until_ns = sim.now_ns + client.prng.magnitude(client.plan.pause_ns_max);
                self.waiting_since_ns = self.read_pause_until_ns;
                client.log(
                    sim,
                    Some(link),
                    format_args!("does not read until {} ms", self.read_pause_until_ns as f64 / 1e6),
                );
                return;
            }
        }
    }

    /// Handles bytes of the server. Returns false if they are invalid.
    fn handle_bytes(&mut self, client: &mut Client, mut bytes: &[u8], sim: &mut Sim) -> bool {
        if let Stage::Handshake(handshake) = &mut self.stage {
            match handshake.receive(bytes, &mut self.out) {
                Ok((_, Progress::More)) => return true,
                Ok((used, Progress::Ready(session))) => {
                    bytes = &bytes[used..];
                    self.waiting_since_ns = sim.now_ns;
                    self.stage = Stage::Transmission(Box::new(Collector::new(*session)));
                }
                Err(_) if client.shared.draining.get() => {
                    self.may_close = true;
                    return false;
                }
                other => {
                    client.violation(sim, format_args!("the handshake ended with {other:?}"));
                    return false;
                }
            }
        }
        let Stage::Transmission(collector) = &mut self.stage else { return true };
        let mut completions = Vec::new();
        if let Err(broken) = collector.receive(bytes, &mut completions) {
            client.violation(sim, format_args!("{broken}"));
            return false;
        }
        for completion in completions {
            self.handle_completion(client, completion, sim);
        }
        true
    }

    fn handle_completion(&mut self, client: &mut Client, completion: Completion, sim: &mut Sim) {
        let Some(request) = self.pending.remove(&completion.cookie) else { return };
        let numbers = [21, completion.cookie];
        let outcome = completion.result.as_ref().map(|_| ()).map_err(|(errno, text)| format!("{errno} {text}"));
        let name = &client.plan.name;
        let took_ms = (sim.now_ns - request.since_ns) as f64 / 1e6;
        let what = format_args!("{name}: {request} answered after {took_ms:.3} ms: {outcome:?}");
        sim.trace.note(sim.now_ns, &numbers, what);
        client.shared.answered.set(client.shared.answered.get() + 1);
        let is_durable = outcome.is_ok() && request.makes_durable();
        client.check_completion(&request, completion, sim);
        self.next_request_ns = sim.now_ns + client.prng.between(0, client.plan.think_ns_max);
        if is_durable && client.shared.may_crash && client.prng.permille(15) {
            sim.crash_in(0);
        }
    }

    /// Sends requests up to the queue depth.
    fn send_requests(&mut self, client: &mut Client, me: ActorId, sim: &mut Sim) {
        if client.is_finished() || self.pending.len() >= client.plan.depth {
            return;
        }
        if sim.now_ns < self.next_request_ns {
            return sim.wake_at(self.next_request_ns, me);
        }
        while self.pending.len() < client.plan.depth && !client.is_finished() && self.out.len() < READ_BYTES {
            let Stage::Transmission(collector) = &mut self.stage else { return };
            let (cookie, request) = client.request(collector, &mut self.out, sim);
            client.left = client.left.saturating_sub(1);
            let name = &client.plan.name;
            sim.trace.note(sim.now_ns, &[22, cookie], format_args!("{name}: asks {request}, cookie {cookie}"));
            self.pending.insert(cookie, request);
            if client.prng.permille(client.plan.mishaps_permille) {
                return self.mishap(client, me, sim);
            }
            if client.plan.think_ns_max > 0 && client.prng.permille(500) {
                self.next_request_ns = sim.now_ns + client.prng.between(0, client.plan.think_ns_max);
                return sim.wake_at(self.next_request_ns, me);
            }
        }
    }

    fn flush_output(&mut self, link: LinkId, sim: &mut Sim) {
        let count = sim.write(link, &self.out);
        self.out.drain(..count);
    }

    fn mishap(&mut self, client: &mut Client, me: ActorId, sim: &mut Sim) {
        let Some(link) = self.link else { return };
        let mishap = client.prng.pick(&[Mishap::Reset, Mishap::Vanished, Mishap::HalfClosed, Mishap::Disconnect]);
        client.log(sim, Some(link), format_args!("mishap: {mishap:?} with {} in flight", self.pending.len()));
        if mishap != Mishap::Disconnect {
            let part = client.prng.between(0, self.out.len() as u64) as usize;
            sim.write(link, &self.out[..part]);
            self.out.clear();
        }
        self.may_close = true;
        match mishap {
            Mishap::Reset => sim.reset(link),
            Mishap::Vanished => {
                sim.abandon(link);
                self.closed(client, me, sim);
            }
            Mishap::HalfClosed => {
                sim.shut(link);
                self.start_closing(link, sim);
            }
            Mishap::Disconnect => {
                if let Stage::Transmission(collector) = &mut self.stage {
                    collector.session.disconnect(&mut self.out);
                }
                self.start_closing(link, sim);
            }
        }
    }

    /// Waits for the end of the connection only. Requests in flight may or may not take effect.
    fn start_closing(&mut self, link: LinkId, sim: &mut Sim) {
        self.waiting_since_ns = sim.now_ns;
        self.may_close = true;
        self.pending.clear();
        self.stage = Stage::Closing;
        self.flush_output(link, sim);
    }

    fn disconnect_if_finished(&mut self, client: &mut Client, link: LinkId, sim: &mut Sim) {
        let over = client.is_finished() && self.pending.is_empty() && self.out.is_empty();
        if let Stage::Transmission(collector) = &mut self.stage
            && over
        {
            client.log(sim, Some(link), format_args!("sends a disconnect request"));
            collector.session.disconnect(&mut self.out);
            self.start_closing(link, sim);
        }
    }

    /// Handles the end of the connection.
    fn closed(&mut self, client: &mut Client, me: ActorId, sim: &mut Sim) {
        let Some(link) = self.link.take() else { return };
        let excused = self.may_close || client.shared.draining.get() || client.shared.listener.get().is_none();
        if !excused && !sim.was_cut(link) {
            let state = sim.state(link);
            client.violation(sim, format_args!("link {}: the server closed it ({state:?}) without a reason", link.0));
        }
        client.log(sim, Some(link), format_args!("is closed, {} unanswered", self.pending.len()));
        self.pending.clear();
        self.out.clear();
        self.stage = Stage::Disconnected;
        sim.wake_at(sim.now_ns + client.prng.magnitude(20_000_000), me);
    }

    /// Checks the latency of the oldest request.
    fn check_latency(&mut self, client: &mut Client, sim: &mut Sim) {
        if sim.now_ns < self.waiting_since_ns.saturating_add(client.plan.patience_ns) {
            return;
        }
        let oldest = self.pending.values().min_by_key(|request| request.since_ns);
        let since_ns = match (&self.stage, oldest) {
            (Stage::Transmission(_), Some(request)) => request.since_ns.max(self.waiting_since_ns),
            (Stage::Transmission(_) | Stage::Disconnected | Stage::Finished, _) => return,
            (Stage::Handshake(_) | Stage::Closing, _) => self.waiting_since_ns,
        };
        if sim.now_ns >= since_ns.saturating_add(client.plan.patience_ns) {
            let seconds = (sim.now_ns - since_ns) as f64 / 1e9;
            let what = match oldest {
                Some(request) => format!("{request} is not answered"),
                None => "the server does not answer".to_owned(),
            };
            client.violation(sim, format_args!("{what} after {seconds:.1} s"));
        }
    }
}
