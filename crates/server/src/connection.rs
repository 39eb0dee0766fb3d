//! A connection: bytes in, requests to devices, replies out.

use std::sync::Arc;

use hoistway_nbd::server::{Handshake, Parsed, Progress, Request, Session, Tls, Violation};
use hoistway_nbd::wire::{Command, Errno};
use slab::Slab;

use crate::protocol::errno_of;
use hoistway_qos::IoError;

use crate::budget::{Bounds, Charge, HolderId, Wait};
use crate::exports::{Served, View};
use crate::outgoing::Outgoing;
use crate::state::ServerState;
use crate::tls::{Channel, InputEvent};
use hoistway_blockdev::{BlockRequest, Device, IoOutput};
use hoistway_config::Config;
use hoistway_qos::{Hints, JoinError, MemberId, RequestOp};
use hoistway_reactor::Buffer;
use hoistway_reactor::{ConnId, Engine, Peer};

/// A payload of which so much is missing is received into its own memory; less is copied from where
/// the next requests come along with it.
const RECEIVE_INTO_BYTES_MIN: usize = 16 << 10;
/// A client in the handshake that does not take so many bytes of answers is not listened to.
const HAGGLING_BYTES_MAX: usize = 64 << 10;
/// How long a client in the handshake has to ask for something when the server leaves, in ns: a
/// second, to be told that it leaves.
const HAGGLING_NS_LEFT: u64 = 1_000_000_000;
/// How long an idle client is listened to when the server leaves, in ns: 10 ms, for requests that
/// lie in its socket already.
const IDLE_NS_LEFT: u64 = 10_000_000;
/// What is kept of memory for input when there is none.
const INPUT_BYTES_KEPT: usize = 4 << 10;
/// What is kept of the table of requests when there are none.
const REQUESTS_KEPT: usize = 64;

/// A client.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnId,
    /// A number for people, never used twice.
    pub(crate) number: u64,
    pub(crate) peer: Peer,
    /// When it came.
    pub(crate) since_ns: u64,
    phase: Phase,
    channel: Option<Box<Channel>>,
    /// Plain bytes that have not been used yet: the beginning of a header, or requests that have to
    /// wait.
    input: Vec<u8>,
    /// A write whose data are on their way in.
    payload: Option<Payload>,
    /// Bytes that are to be thrown away: the data of a refused write.
    discard: u64,
    /// Requests that a device has.
    requests: Slab<Request>,
    /// What all requests take up whose replies have not left.
    used: Charge,
    /// Its tenant's account of memory.
    holder: Option<HolderId>,
    outgoing: Outgoing,
    /// A receive is under way.
    receiving: bool,
    /// The next request has to wait.
    pub(crate) blocked: Option<Wait>,
    /// It stands in a line for memory, the server's or its tenant's.
    pub(crate) queued: bool,
    /// It stands among those that have something to say.
    pub(crate) dirty: bool,
    /// When it is closed if it has not come further by then.
    pub(crate) deadline_ns: Option<u64>,
    /// It goes because the server leaves.
    farewell: Farewell,
    ending: Ending,
    pub(crate) counts: Counts,
}

/// What a client has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Requests that were answered.
    pub(crate) requests: u64,
    /// Bytes that it read.
    pub(crate) read_bytes: u64,
    /// Bytes that it wrote.
    pub(crate) written_bytes: u64,
}

#[derive(Debug)]
enum Phase {
    Haggling(Box<Handshake>),
    Serving(Box<Serving>),
}

/// What was agreed on.
#[derive(Debug)]
pub(crate) struct Serving {
    session: Session,
    pub(crate) device: usize,
    pub(crate) member: MemberId,
    /// The tenant's name; none stands for itself.
    pub(crate) tenant: Option<Box<str>>,
    offset: u64,
}

impl Serving {
    /// The tenant under whose name it is counted.
    pub(crate) fn tenant_name(&self) -> &str {
        self.tenant.as_deref().unwrap_or(Device::DEFAULT_TENANT)
    }
}

#[derive(Debug)]
struct Payload {
    request: Request,
    /// None while the engine fills it.
    buffer: Option<Buffer>,
    filled: usize,
    /// When it was begun with.
    since_ns: u64,
}

/// How far a connection is with what the server's leaving makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Farewell {
    /// The server stays, or the client has something under way.
    No,
    /// It is listened to for a moment; what it asks for is refused.
    Listening,
    /// The moment has passed.
    Over,
}

/// How far a connection is on its way out.
#[derive(Debug)]
enum Ending {
    /// It is not.
    No,
    /// The client has said goodbye, or the server leaves: what is under way is finished and
    /// answered, then the connection is closed.
    Leaving,
    /// As before, but nobody hears the answers any more.
    Deaf,
    /// It is closed when what is queued has been sent.
    Closing,
    /// It is to be closed now.
    Over(Reason),
}

/// Why a connection is closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Reason {
    #[error("the client has left")]
    Left,
    #[error("the client has gone without a word")]
    Gone,
    #[error("the connection broke")]
    Broken,
    #[error("{0}")]
    Violation(#[from] Violation),
    #[error("{0} bytes came in plain text after STARTTLS: somebody meddles with the connection")]
    Injected(usize),
    #[error("TLS failed: {0}")]
    Tls(rustls::Error),
    #[error("STARTTLS was asked for, and there is no certificate")]
    NoCertificate,
    #[error("the client did not choose an export in time")]
    Slow,
    #[error("the client did not take its last replies in time")]
    Unheard,
    #[error("the client stalled while others waited for memory")]
    Stalled,
    #[error("it cannot be taken in: {0}")]
    Join(JoinError),
    #[error("the server is leaving")]
    Shutdown,
    #[error("its export is not served any more")]
    Withdrawn,
    #[error("it was told to go")]
    Told,
}

impl Connection {
    /// Somebody has come.
    pub(crate) fn new<E: Engine>(id: ConnId, number: u64, peer: Peer, state: &mut ServerState<E>) -> Connection {
        let mut outgoing = Outgoing::default();
        let tls = match &state.tls {
            None => Tls::Off,
            Some(_) if state.tls_required => Tls::Required,
            Some(_) => Tls::Offered,
        };
        let handshake = Handshake::new(tls, state.limits, outgoing.head());
        let now_ns = state.now_ns;
        Connection {
            id,
            number,
            peer,
            since_ns: now_ns,
            phase: Phase::Haggling(Box::new(handshake)),
            channel: None,
            input: Vec::new(),
            payload: None,
            discard: 0,
            requests: Slab::new(),
            used: Charge::default(),
            holder: None,
            outgoing,
            receiving: false,
            blocked: None,
            queued: false,
            dirty: false,
            deadline_ns: None,
            farewell: Farewell::No,
            ending: Ending::No,
            counts: Counts::default(),
        }
    }

    /// Sends the greeting. The client has until the handshake's time has passed to choose an
    /// export.
    pub(crate) fn greet<E: Engine>(&mut self, state: &mut ServerState<E>) {
        state.dirty(self.id, &mut self.dirty);
        state.set_deadline(self.id, &mut self.deadline_ns);
    }

    /// It is gone: everything that it had goes back.
    pub(crate) fn farewell<E: Engine>(&mut self, state: &mut ServerState<E>) {
        state.clear_deadline(self.id, &mut self.deadline_ns);
        state.budget.give_back(self.holder, std::mem::take(&mut self.used));
        if let Some(holder) = self.holder.take()
            && state.budget.leave(holder)
        {
            state.waiting_within.remove(&holder);
        }
        if let Phase::Serving(serving) = &self.phase {
            state.leave(serving.device, serving.member);
            state.clients.go(&serving.session.export.name, serving.tenant_name());
        }
        if let Some(reason) = self.over() {
            self.log_end(reason);
        }
    }

    /// What was agreed on; none in the handshake.
    pub(crate) fn serving(&self) -> Option<&Serving> {
        match &self.phase {
            Phase::Haggling(_) => None,
            Phase::Serving(serving) => Some(serving),
        }
    }

    /// The tenant that it is.
    pub(crate) fn tenant(&self) -> Option<&str> {
        self.serving().and_then(|serving| serving.tenant.as_deref())
    }

    /// Finishes what is under way, then closes: nothing new begins. A request of which a part is
    /// missing has not begun.
    pub(crate) fn leave(&mut self) {
        if matches!(self.ending, Ending::No) {
            self.ending = Ending::Leaving;
            self.payload = None;
        }
    }

    /// Whether it would still be let in where it is; in the handshake that is asked later.
    pub(crate) fn may_stay(&mut self, config: &Config, exports: &[Served]) -> bool {
        let names = self.channel.as_mut().map(|channel| channel.client_names()).unwrap_or_default();
        let Phase::Serving(serving) = &self.phase else { return true };
        View::new(config, exports, &self.peer, names).admit(&serving.session.export.name).is_some()
    }

    /// The export that it chose.
    pub(crate) fn export(&self) -> Option<&str> {
        self.serving().map(|serving| serving.session.export.name.as_str())
    }

    /// The first name in its certificate.
    pub(crate) fn certificate(&self) -> Option<&str> {
        self.channel.as_ref()?.known_names().first().map(String::as_str)
    }

    /// Requests that a device has.
    pub(crate) fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// Whether the client is what memory waits for: with the payload of a write that it does not go
    /// on sending, or with replies that it does not take.
    pub(crate) fn is_stalled(&self, bounds: &Bounds, now_ns: u64) -> bool {
        let payload = self.payload.as_ref().map(|payload| (payload.since_ns, payload.request.length));
        let under_way = [payload, self.outgoing.sending()].into_iter().flatten();
        under_way.into_iter().any(|(since_ns, bytes)| bounds.is_stalled(since_ns, bytes, now_ns))
    }

    /// Why it is to be closed now, if it is.
    pub(crate) fn over(&self) -> Option<&Reason> {
        match &self.ending {
            Ending::Over(reason) => Some(reason),
            _ => None,
        }
    }

    /// Its time has passed.
    pub(crate) fn expire(&mut self) {
        self.deadline_ns = None;
        match (&self.ending, self.farewell, &self.phase) {
            (Ending::Closing, ..) => self.end(Reason::Unheard),
            (_, Farewell::No, _) => self.end(Reason::Slow),
            (_, _, Phase::Haggling(_)) => self.end(Reason::Shutdown),
            (_, _, Phase::Serving(_)) => self.farewell = Farewell::Over,
        }
    }

    /// Closes it as soon as possible.
    pub(crate) fn end(&mut self, reason: Reason) {
        self.ending = Ending::Over(reason);
    }

    /// Bytes came.
    pub(crate) fn received<E: Engine>(&mut self, bytes: &[u8], state: &mut ServerState<E>) {
        self.receiving = false;
        if bytes.is_empty() {
            return self.hung_up();
        }
        if let Some(channel) = &mut self.channel {
            let heard = channel.receive(bytes, &mut self.input);
            if channel.has_records() {
                state.dirty(self.id, &mut self.dirty);
            }
            self.digest_input(state);
            match heard {
                Ok(InputEvent::Open) => {}
                Ok(InputEvent::Closed) => self.hung_up(),
                // The alert that says so goes out first.
                Err(error) => self.close_after_sending(Reason::Tls(error), state),
            }
        } else if self.input.is_empty() {
            let used = self.digest(bytes, state);
            if used < bytes.len() && !self.is_over() {
                self.input.extend_from_slice(&bytes[used..]);
            }
        } else {
            self.input.extend_from_slice(bytes);
            self.digest_input(state);
        }
    }

    /// The memory of a payload was filled.
    pub(crate) fn filled<E: Engine>(&mut self, buffer: Buffer, filled: usize, state: &mut ServerState<E>) {
        self.receiving = false;
        let Some(payload) = &mut self.payload else { return };
        if (filled as u64) < payload.request.length {
            return self.hung_up();
        }
        payload.buffer = Some(buffer);
        payload.filled = filled;
        self.payload_complete(state);
    }

    /// Goes on with requests that had to wait.
    pub(crate) fn unblock<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if self.blocked.take().is_some() {
            self.digest_input(state);
        }
    }

    /// Stands in line for the memory that it waits for, if it does.
    pub(crate) fn line_up<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if let Some(wait) = self.blocked {
            state.queue(self.id, wait, self.holder, &mut self.queued);
        }
    }

    /// The message has been sent.
    pub(crate) fn sent<E: Engine>(&mut self, state: &mut ServerState<E>) {
        let charge = self.outgoing.sent();
        self.give_back(charge, state);
        // What was to be said meanwhile has waited for this one to be out of the way.
        if self.outgoing.waiting() > 0 || self.channel.as_ref().is_some_and(|channel| channel.has_records()) {
            state.dirty(self.id, &mut self.dirty);
        }
        if self.blocked == Some(Wait::Own) {
            self.unblock(state);
        }
    }

    /// The connection is of no use any more.
    pub(crate) fn broke(&mut self) {
        // Nothing is received any more.
        self.receiving = true;
        self.ending = match self.ending {
            // A client that has said goodbye may leave before it is answered; what it asked for is
            // done all the same.
            Ending::Leaving | Ending::Deaf if !self.requests.is_empty() => Ending::Deaf,
            Ending::Leaving | Ending::Deaf | Ending::Closing => Ending::Over(Reason::Left),
            _ => Ending::Over(Reason::Broken),
        };
    }

    /// The server leaves: what is under way is finished, nothing new begins. Whoever has sent
    /// something that is here already is answered first, and whoever is in the handshake has a
    /// moment to ask and be told.
    fn drain<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if !matches!(self.ending, Ending::No) {
            return;
        }
        if let Phase::Haggling(handshake) = &mut self.phase {
            if self.farewell == Farewell::No {
                self.farewell = Farewell::Listening;
                handshake.shut_down();
                state.set_deadline_in(self.id, &mut self.deadline_ns, HAGGLING_NS_LEFT);
            }
            return;
        }
        if matches!(self.blocked, Some(Wait::Tenant | Wait::Others)) {
            // What is refused takes no memory to wait for.
            self.unblock(state);
        }
        let is_idle = self.requests.is_empty() && self.payload.is_none() && self.discard == 0 && self.blocked.is_none();
        match self.farewell {
            Farewell::No if is_idle => {
                self.farewell = Farewell::Listening;
                state.set_deadline_in(self.id, &mut self.deadline_ns, IDLE_NS_LEFT);
            }
            Farewell::Over if is_idle => self.leave(),
            _ => {}
        }
    }

    /// Something that a device had is done.
    pub(crate) fn done<E: Engine>(
        &mut self,
        key: usize,
        result: Result<IoOutput, IoError>,
        state: &mut ServerState<E>,
    ) {
        let Some(request) = self.requests.try_remove(key) else { return };
        let charge = charge_of(&request);
        if matches!(self.ending, Ending::Deaf) {
            self.give_back(charge, state);
        } else {
            self.outgoing.supply(&mut state.spare);
            self.reply(&request, result.map_err(errno_of));
            self.answered(charge, state);
        }
    }

    /// What is to be sent now, if there is something and nothing is on its way.
    pub(crate) fn next_message<E: Engine>(&mut self, state: &mut ServerState<E>) -> Option<hoistway_reactor::Message> {
        if matches!(self.ending, Ending::Deaf) {
            return None;
        }
        self.outgoing.next(self.channel.as_deref_mut(), &mut state.spare, state.now_ns)
    }

    /// After anything has happened: receives if it may, and sees whether the connection is over.
    pub(crate) fn settle<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if self.requests.is_empty() && self.requests.capacity() > REQUESTS_KEPT {
            self.requests = Slab::new();
        }
        if state.draining {
            self.drain(state);
        }
        match self.ending {
            Ending::Leaving if self.requests.is_empty() && self.payload.is_none() => {
                self.close_after_sending(Reason::Left, state);
            }
            Ending::Deaf if self.requests.is_empty() => self.end(Reason::Left),
            _ => {}
        }
        match self.ending {
            Ending::Closing if self.outgoing.is_done() && !self.dirty => self.end(Reason::Left),
            Ending::No => self.receive(state),
            _ => {}
        }
    }

    /// Asks the engine for more bytes, unless it has been asked or they would have nowhere to go.
    fn receive<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if self.receiving || self.blocked.is_some() {
            return;
        }
        self.receiving = true;
        if self.channel.is_none()
            && let Some(payload) = &mut self.payload
            && payload.request.length as usize - payload.filled >= RECEIVE_INTO_BYTES_MIN
            && let Some(buffer) = payload.buffer.take()
        {
            let to = payload.request.length as usize;
            return state.engine.receive_into(self.id, buffer, payload.filled, to);
        }
        state.engine.receive(self.id);
    }

    /// Ordinary ends are of interest to whoever looks for something; what a client did wrong is to
    /// be seen.
    fn log_end(&self, reason: &Reason) {
        let (client, from) = (self.number, &self.peer.address);
        match reason {
            Reason::Left | Reason::Gone | Reason::Broken | Reason::Shutdown => {
                tracing::debug!(client, %from, requests = self.counts.requests, "disconnected: {reason}");
            }
            Reason::Slow | Reason::Unheard | Reason::Withdrawn | Reason::Told => {
                tracing::info!(client, %from, "closed: {reason}")
            }
            _ => tracing::warn!(client, %from, "closed: {reason}"),
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.ending, Ending::Over(_))
    }

    /// The client sends no more.
    fn hung_up(&mut self) {
        if matches!(self.ending, Ending::No) {
            self.end(Reason::Gone);
        }
    }

    /// Sends what there is to be sent, then closes. A client that does not take it in time is
    /// closed all the same.
    fn close_after_sending<E: Engine>(&mut self, reason: Reason, state: &mut ServerState<E>) {
        if self.is_over() {
            return;
        }
        if let Some(channel) = &mut self.channel {
            channel.close();
            state.dirty(self.id, &mut self.dirty);
        }
        tracing::debug!(client = self.number, %reason, "closing");
        self.ending = Ending::Closing;
        if self.deadline_ns.is_none() || self.farewell != Farewell::No {
            state.set_deadline(self.id, &mut self.deadline_ns);
        }
    }

    fn digest_input<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if self.input.is_empty() {
            return;
        }
        let mut input = std::mem::take(&mut self.input);
        let used = self.digest(&input, state);
        debug_assert!(self.input.is_empty(), "input came while input was used");
        input.drain(..used);
        if !input.is_empty() || input.capacity() <= INPUT_BYTES_KEPT {
            self.input = input;
        }
    }

    /// Uses bytes; answers how many. What is left is the beginning of something, or has to wait.
    fn digest<E: Engine>(&mut self, bytes: &[u8], state: &mut ServerState<E>) -> usize {
        let (mut at, had) = (0, self.outgoing.waiting());
        while at < bytes.len() && self.blocked.is_none() && matches!(self.ending, Ending::No) {
            let used = match &self.phase {
                Phase::Haggling(_) => self.haggle(&bytes[at..], state),
                Phase::Serving(_) => self.take_in(&bytes[at..], state),
            };
            if used == 0 {
                break;
            }
            at += used;
        }
        let is_told = self.farewell == Farewell::Listening && matches!(self.phase, Phase::Haggling(_));
        if is_told && self.blocked.is_none() && self.outgoing.waiting() > had {
            self.leave();
        }
        at
    }

    /// Uses bytes of the handshake.
    fn haggle<E: Engine>(&mut self, bytes: &[u8], state: &mut ServerState<E>) -> usize {
        if self.outgoing.waiting() > HAGGLING_BYTES_MAX {
            self.blocked = Some(Wait::Own);
            return 0;
        }
        let Phase::Haggling(handshake) = &mut self.phase else { return 0 };
        let names = self.channel.as_mut().map(|channel| channel.client_names()).unwrap_or_default();
        let view = View::new(&state.config, &state.exports, &self.peer, names);
        let had = self.outgoing.waiting();
        let (used, progress) = handshake.receive(bytes, &view, self.outgoing.head());
        if self.outgoing.waiting() > had {
            state.dirty(self.id, &mut self.dirty);
        }
        match progress {
            Progress::More => {}
            Progress::StartTls => self.start_tls(bytes.len() - used, state),
            Progress::Ready(session) => self.join(*session, state),
            Progress::Aborted => self.close_after_sending(Reason::Left, state),
            Progress::Violated(violation) => self.close_after_sending(Reason::Violation(violation), state),
        }
        used
    }

    fn start_tls<E: Engine>(&mut self, left: usize, state: &mut ServerState<E>) {
        if left > 0 {
            return self.end(Reason::Injected(left));
        }
        let Some(config) = &state.tls else { return self.end(Reason::NoCertificate) };
        match Channel::new(Arc::clone(config)) {
            Ok(channel) => self.channel = Some(Box::new(channel)),
            Err(error) => return self.end(Reason::Tls(error)),
        }
        self.outgoing.encrypt_from_here();
        if let Phase::Haggling(handshake) = &mut self.phase {
            handshake.encrypted();
        }
    }

    /// The export is chosen: the connection becomes a member of the tenant's group on the export's
    /// device.
    fn join<E: Engine>(&mut self, session: Session, state: &mut ServerState<E>) {
        let names = self.channel.as_mut().map(|channel| channel.client_names()).unwrap_or_default();
        let view = View::new(&state.config, &state.exports, &self.peer, names);
        let Some((served, tenant)) = view.admit(&session.export.name) else { return self.end(Reason::Withdrawn) };
        let (device, offset) = (served.device, served.offset);
        let tenant: Option<Box<str>> = tenant.map(Into::into);
        match state.join(device, tenant.as_deref(), &self.peer) {
            Ok(member) => {
                let (client, export) = (self.number, session.export.name.as_str());
                tracing::debug!(client, export, tenant = tenant.as_deref(), "joined");
                self.holder = tenant.as_deref().map(|tenant| state.budget.join(tenant));
                let serving = Box::new(Serving { session, device, member, tenant, offset });
                state.clients.come(&serving.session.export.name, serving.tenant_name());
                self.phase = Phase::Serving(serving);
                state.clear_deadline(self.id, &mut self.deadline_ns);
            }
            Err(reason) => self.end(reason),
        }
    }

    /// Uses bytes of the transmission: a payload, or a header.
    fn take_in<E: Engine>(&mut self, bytes: &[u8], state: &mut ServerState<E>) -> usize {
        if self.discard > 0 {
            let used = self.discard.min(bytes.len() as u64);
            self.discard -= used;
            return used as usize;
        }
        if let Some(Payload { request, buffer: Some(buffer), filled, .. }) = &mut self.payload {
            let used = bytes.len().min(request.length as usize - *filled);
            buffer[*filled..*filled + used].copy_from_slice(&bytes[..used]);
            *filled += used;
            if *filled == request.length as usize {
                self.payload_complete(state);
            }
            return used;
        }
        let Phase::Serving(serving) = &self.phase else { return 0 };
        match serving.session.parse(bytes) {
            Parsed::Need(_) => 0,
            Parsed::Violated(violation) => {
                self.end(Reason::Violation(violation));
                0
            }
            Parsed::Request(mut request, header) => {
                if state.draining && request.refused.is_none() && request.command != Command::Disconnect {
                    request.refused = Some((Errno::Shutdown, "the server is leaving"));
                }
                let charge = charge_of(&request);
                let others = state.others_wait(self.id, self.holder);
                if let Err(wait) = state.budget.admit(self.used, self.holder, charge.bytes, others) {
                    self.blocked = Some(wait);
                    self.line_up(state);
                    return 0;
                }
                self.used.add(charge);
                state.budget.take(self.holder, charge);
                self.begin(request, state);
                header
            }
        }
    }

    /// Begins a request.
    fn begin<E: Engine>(&mut self, request: Request, state: &mut ServerState<E>) {
        if request.command == Command::Disconnect {
            let charge = charge_of(&request);
            self.give_back(charge, state);
            self.ending = Ending::Leaving;
        } else if let Some((errno, text)) = request.refused {
            self.discard = u64::from(request.payload_bytes);
            self.refuse(&request, errno, text, state);
        } else if request.command == Command::Write {
            let buffer = state.engine.buffer(request.length as usize);
            self.payload = Some(Payload { request, buffer: Some(buffer), filled: 0, since_ns: state.now_ns });
        } else {
            self.submit(request, None, state);
        }
    }

    fn payload_complete<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if let Some(Payload { request, buffer, .. }) = self.payload.take() {
            self.counts.written_bytes += request.length;
            self.submit(request, buffer, state);
        }
    }

    /// Gives a request to the device.
    fn submit<E: Engine>(&mut self, request: Request, data: Option<Buffer>, state: &mut ServerState<E>) {
        let Phase::Serving(serving) = &self.phase else { return };
        let op = match request.command {
            Command::Read => RequestOp::Read,
            Command::Write => RequestOp::Write,
            Command::Flush => RequestOp::Flush,
            Command::Trim => RequestOp::Trim,
            Command::Cache => RequestOp::Cache,
            Command::BlockStatus => RequestOp::Status,
            Command::WriteZeroes => RequestOp::Zero { punch: !request.flags.no_hole },
            Command::Disconnect | Command::Other(_) => return,
        };
        if request.flags.fast_zero && !state.zero_is_fast(serving.device, !request.flags.no_hole) {
            return self.refuse(&request, Errno::NotSup, "zeroes would have to be written", state);
        }
        let (device, member, offset) = (serving.device, serving.member, serving.offset);
        let key = self.requests.insert(request);
        let work = BlockRequest {
            ticket: ticket(self.id, key),
            op,
            offset: offset + request.offset,
            length: request.length,
            durable: request.flags.fua,
            data,
            hints: Hints::default(),
        };
        state.submit(device, member, work);
    }

    /// An answer is in the outgoing message.
    fn answered<E: Engine>(&mut self, charge: Charge, state: &mut ServerState<E>) {
        self.counts.requests += 1;
        state.answered.count(self.id, state.now_ns);
        self.outgoing.answered(charge);
        state.dirty(self.id, &mut self.dirty);
    }

    fn give_back<E: Engine>(&mut self, charge: Charge, state: &mut ServerState<E>) {
        self.used.sub(charge);
        state.budget.give_back(self.holder, charge);
    }

    /// Answers with an error.
    fn refuse<E: Engine>(&mut self, request: &Request, errno: Errno, text: &str, state: &mut ServerState<E>) {
        if let Phase::Serving(serving) = &self.phase {
            serving.session.error(request, errno, text, self.outgoing.head());
        }
        self.answered(charge_of(request), state);
    }
}

mod reply;

/// What a request takes up until its reply has left: the data that it brings or asks for.
fn charge_of(request: &Request) -> Charge {
    match request.command {
        Command::Read | Command::Write if request.refused.is_none() => Charge::of(request.length),
        _ => Charge::of(0),
    }
}

/// The device's name for a request: the connection's place, 16 bits of its generation, and the
/// place among its requests.
fn ticket(id: ConnId, key: usize) -> u64 {
    u64::from(id.slot) << 32 | u64::from(id.generation & 0xffff) << 16 | (key as u64 & 0xffff)
}

/// What a ticket says: the connection's place, 16 bits of its generation, the place among its
/// requests.
pub(crate) fn of_ticket(ticket: u64) -> (u32, u32, usize) {
    ((ticket >> 32) as u32, (ticket >> 16 & 0xffff) as u32, (ticket & 0xffff) as usize)
}
