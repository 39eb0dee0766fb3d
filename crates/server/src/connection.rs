//! A client's connection: received bytes to requests for devices, completions to replies.

use std::sync::Arc;

use hoistway_blockdev::{BlockRequest, Device, DeviceId, IoOutput};
use hoistway_config::Config;
use hoistway_nbd::server::{Handshake, Parsed, Progress, Request, Session, Tls};
use hoistway_nbd::wire::{Command, Errno};
use hoistway_qos::{Hints, IoError, MemberId, RequestOp};
use hoistway_reactor::{Buffer, ConnId, Engine, Message, Peer};
use hoistway_tls::{Channel, ChannelState};
use slab::Slab;

use crate::budget::{Bounds, Charge, HolderId, Wait};
use crate::close_reason::CloseReason;
use crate::exports::{AllowedExports, ServedExport};
use crate::lists::MemoryQueue;
use crate::outgoing::Outgoing;
use crate::protocol::errno_of;
use crate::state::ServerState;
use crate::ticket::request_ticket;

/// The missing bytes of a write payload from which on the engine receives into the payload's own
/// buffer. A shorter rest arrives with the next headers and is copied.
const RECEIVE_INTO_BYTES_MIN: usize = 16 << 10;
/// The unsent handshake bytes above which nothing more is read from a client.
const HAGGLING_BYTES_MAX: usize = 64 << 10;
/// The time in ns in which a client in the handshake may send another option after a shutdown
/// began, so that it receives the error ERR_SHUTDOWN.
const HAGGLING_GRACE_NS: u64 = 1_000_000_000;
/// The time in ns in which an idle client is read after a shutdown began, for requests that its
/// socket already holds.
const IDLE_GRACE_NS: u64 = 10_000_000;
/// The capacity that the input buffer keeps while it is empty.
const INPUT_BYTES_KEPT: usize = 4 << 10;
/// The capacity that the request table keeps while it is empty.
const REQUESTS_KEPT: usize = 64;

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnId,
    /// The number of the client in the control tree and the log, which is never used twice.
    pub(crate) number: u64,
    pub(crate) peer: Peer,
    /// When the connection was accepted, in ns.
    pub(crate) since_ns: u64,
    phase: Phase,
    channel: Option<Box<Channel>>,
    /// Decrypted bytes that are not consumed: a partial header, or requests that wait.
    input: Vec<u8>,
    /// The write whose payload is being received.
    payload: Option<Payload>,
    /// The remaining payload bytes of a refused write, which are discarded.
    discard: u64,
    /// The requests that the device has not completed.
    requests: Slab<Request>,
    /// The charge of all requests whose replies have not been sent.
    used: Charge,
    /// The memory account of the client's tenant.
    holder: Option<HolderId>,
    outgoing: Outgoing,
    reception: Reception,
    /// The memory for which the next request waits.
    pub(crate) blocked: Option<Wait>,
    grace: Grace,
    closing: Closing,
    pub(crate) counts: Counts,
}

/// The counters of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The number of requests that were answered.
    pub(crate) requests: u64,
    /// The number of bytes of successful reads.
    pub(crate) read_bytes: u64,
    /// The number of bytes of successful writes.
    pub(crate) written_bytes: u64,
}

#[derive(Debug)]
enum Phase {
    Haggling(Box<Handshake>),
    Transmission(Box<Transmission>),
}

/// The result of the handshake.
#[derive(Debug)]
pub(crate) struct Transmission {
    session: Session,
    /// The export's device.
    device: DeviceId,
    member: MemberId,
    /// The name of the client's tenant; `None` if no rule names one.
    tenant: Option<Box<str>>,
    /// The offset of the export on the device, in bytes.
    offset: u64,
}

impl Transmission {
    /// Returns the name of the tenant to which the client's requests are accounted.
    pub(crate) fn tenant_name(&self) -> &str {
        self.tenant.as_deref().unwrap_or(Device::DEFAULT_TENANT)
    }
}

/// A write whose payload is being received.
#[derive(Debug)]
struct Payload {
    request: Request,
    /// The memory for the payload; `None` while the engine receives into it.
    buffer: Option<Buffer>,
    /// The number of bytes received.
    filled: usize,
    /// When the header was read, in ns.
    since_ns: u64,
}

/// Whether the engine receives for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reception {
    Idle,
    InProgress,
    /// The transport failed: nothing is received any more.
    Over,
}

/// The grace time of an idle connection during a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grace {
    /// The server is in service, or the client has requests in progress.
    None,
    /// The server reads for a short time and refuses all requests.
    Running,
    /// The grace time has passed.
    Over,
}

/// How far the end of a connection has progressed.
#[derive(Debug)]
enum Closing {
    /// The connection is open.
    Open,
    /// The client sent a disconnect request, or the server shuts down: requests in progress are
    /// completed and answered, then the connection is closed.
    Finishing,
    /// As `Finishing`, but the client no longer receives: replies are dropped.
    FinishingSilently,
    /// The connection is closed for this reason when all output is sent.
    Flushing(CloseReason),
    /// The connection is to be closed now.
    Closed(CloseReason),
}

impl Connection {
    /// Creates the connection of an accepted client.
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
            reception: Reception::Idle,
            blocked: None,
            grace: Grace::None,
            closing: Closing::Open,
            counts: Counts::default(),
        }
    }

    /// Sends the greeting and starts the handshake timeout.
    pub(crate) fn start<E: Engine>(&mut self, state: &mut ServerState<E>) {
        state.senders.schedule(self.id);
        state.set_handshake_deadline(self.id);
    }

    /// Returns the memory, the membership and the deadline of a removed connection, and logs why
    /// the connection ended.
    pub(crate) fn release_resources<E: Engine>(&mut self, state: &mut ServerState<E>) {
        state.deadlines.clear(self.id);
        state.budget.release(self.holder, std::mem::take(&mut self.used));
        if let Some(holder) = self.holder.take()
            && state.budget.leave(holder)
        {
            state.memory_waiters.forget(holder);
        }
        if let Phase::Transmission(transmission) = &self.phase {
            state.leave(transmission.device, transmission.member);
            state.client_counts.remove(&transmission.session.export.name, transmission.tenant_name());
        }
        if let Some(reason) = self.close_reason() {
            self.log_end(reason);
        }
    }

    /// Returns the result of the handshake; `None` before its end.
    pub(crate) fn transmission(&self) -> Option<&Transmission> {
        match &self.phase {
            Phase::Haggling(_) => None,
            Phase::Transmission(transmission) => Some(transmission),
        }
    }

    /// Returns the name of the client's tenant, if a rule names one.
    pub(crate) fn tenant(&self) -> Option<&str> {
        self.transmission().and_then(|transmission| transmission.tenant.as_deref())
    }

    /// Starts no more requests; closes the connection when the requests in progress are answered. A
    /// write whose payload is incomplete is not in progress.
    pub(crate) fn finish(&mut self) {
        if matches!(self.closing, Closing::Open) {
            self.closing = Closing::Finishing;
            self.payload = None;
        }
    }

    /// Returns true if a configuration still admits the client to its export. Clients in the
    /// handshake are checked at its end.
    pub(crate) fn is_admitted(&mut self, config: &Config, exports: &[ServedExport]) -> bool {
        let names = self.channel.as_mut().map(|channel| channel.client_names()).unwrap_or_default();
        let Phase::Transmission(transmission) = &self.phase else { return true };
        let allowed = AllowedExports::new(config, exports, &self.peer, names);
        allowed.admit(&transmission.session.export.name).is_some()
    }

    /// Returns the name of the client's export; `None` in the handshake.
    pub(crate) fn export(&self) -> Option<&str> {
        self.transmission().map(|transmission| transmission.session.export.name.as_str())
    }

    /// Returns the first name in the client's certificate.
    pub(crate) fn certificate(&self) -> Option<&str> {
        self.channel.as_ref()?.known_names().first().map(String::as_str)
    }

    /// Returns the number of requests that the device has not completed.
    pub(crate) fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// Returns true if the client holds memory without progress: it does not send the payload of a
    /// write, or does not receive its replies.
    pub(crate) fn is_stalled(&self, bounds: &Bounds, now_ns: u64) -> bool {
        let payload = self.payload.as_ref().map(|payload| (payload.since_ns, payload.request.length));
        let transfers = [payload, self.outgoing.sending()].into_iter().flatten();
        transfers.into_iter().any(|(since_ns, bytes)| bounds.is_stalled(since_ns, bytes, now_ns))
    }

    /// Returns why the connection is to be closed now; `None` if it stays.
    pub(crate) fn close_reason(&self) -> Option<&CloseReason> {
        match &self.closing {
            Closing::Closed(reason) => Some(reason),
            _ => None,
        }
    }

    /// Handles the end of the connection's deadline.
    pub(crate) fn expire(&mut self) {
        match (&self.closing, self.grace, &self.phase) {
            (Closing::Flushing(_), ..) => self.close(CloseReason::ReplyTimeout),
            (_, Grace::None, _) => self.close(CloseReason::HandshakeTimeout),
            (_, _, Phase::Haggling(_)) => self.close(CloseReason::Shutdown),
            (_, _, Phase::Transmission(_)) => self.grace = Grace::Over,
        }
    }

    /// Marks the connection to be closed as soon as possible.
    pub(crate) fn close(&mut self, reason: CloseReason) {
        self.closing = Closing::Closed(reason);
    }

    /// Handles received bytes; an empty slice is the end of the stream.
    pub(crate) fn receive_bytes<E: Engine>(&mut self, bytes: &[u8], state: &mut ServerState<E>) {
        self.reception = Reception::Idle;
        if bytes.is_empty() {
            return self.end_of_stream();
        }
        if let Some(channel) = &mut self.channel {
            let received = channel.receive(bytes, &mut self.input);
            if channel.has_records() {
                state.senders.schedule(self.id);
            }
            self.consume_input(state);
            match received {
                Ok(ChannelState::Open) => {}
                Ok(ChannelState::Closed) => self.end_of_stream(),
                // The TLS alert is sent first.
                Err(error) => self.close_after_sending(CloseReason::Tls(error), state),
            }
        } else if self.input.is_empty() {
            let used = self.consume(bytes, state);
            if used < bytes.len() && !self.is_closed() {
                self.input.extend_from_slice(&bytes[used..]);
            }
        } else {
            self.input.extend_from_slice(bytes);
            self.consume_input(state);
        }
    }

    /// Handles the end of a receive into the payload's own buffer.
    pub(crate) fn payload_filled<E: Engine>(&mut self, buffer: Buffer, filled: usize, state: &mut ServerState<E>) {
        self.reception = Reception::Idle;
        let Some(payload) = &mut self.payload else { return };
        if (filled as u64) < payload.request.length {
            return self.end_of_stream();
        }
        payload.buffer = Some(buffer);
        payload.filled = filled;
        self.submit_write(state);
    }

    /// Retries the requests that waited for memory.
    pub(crate) fn resume<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if self.blocked.take().is_some() {
            self.consume_input(state);
        }
    }

    /// Returns the queue for the memory for which the next request waits, if it waits for others.
    pub(crate) fn queue(&self) -> Option<MemoryQueue> {
        MemoryQueue::of(self.blocked?, self.holder)
    }

    /// Enters the queue for the memory for which the next request waits, if any.
    pub(crate) fn enqueue_if_blocked<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if let Some(queue) = self.queue() {
            state.memory_waiters.add(self.id, queue);
        }
    }

    /// Handles the end of a send.
    pub(crate) fn message_sent<E: Engine>(&mut self, state: &mut ServerState<E>) {
        let charge = self.outgoing.sent();
        self.release(charge, state);
        // Output that was added during the send.
        if self.outgoing.pending() > 0 || self.channel.as_ref().is_some_and(|channel| channel.has_records()) {
            state.senders.schedule(self.id);
        }
        if self.blocked == Some(Wait::Own) {
            self.resume(state);
        }
    }

    /// Handles a failed send or receive.
    pub(crate) fn transport_failed(&mut self) {
        self.reception = Reception::Over;
        self.closing = match std::mem::replace(&mut self.closing, Closing::Open) {
            // A client may close its socket after a disconnect request; its requests are completed
            // all the same.
            Closing::Finishing | Closing::FinishingSilently if !self.requests.is_empty() => Closing::FinishingSilently,
            Closing::Finishing | Closing::FinishingSilently => Closing::Closed(CloseReason::Disconnected),
            Closing::Flushing(reason) | Closing::Closed(reason) => Closing::Closed(reason),
            Closing::Open => Closing::Closed(CloseReason::Broken),
        };
    }

    /// Shuts the connection down: completes requests in progress, and refuses all others. Requests
    /// that have already arrived are answered, and a client in the handshake gets a grace time to
    /// receive the error.
    fn drain<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if !matches!(self.closing, Closing::Open) {
            return;
        }
        if let Phase::Haggling(handshake) = &mut self.phase {
            if self.grace == Grace::None {
                self.grace = Grace::Running;
                handshake.shut_down();
                state.set_deadline_in(self.id, HAGGLING_GRACE_NS);
            }
            return;
        }
        if matches!(self.blocked, Some(Wait::Tenant | Wait::Others)) {
            // A refused request needs no memory.
            self.resume(state);
        }
        let is_idle = self.requests.is_empty() && self.payload.is_none() && self.discard == 0 && self.blocked.is_none();
        match self.grace {
            Grace::None if is_idle => {
                self.grace = Grace::Running;
                state.set_deadline_in(self.id, IDLE_GRACE_NS);
            }
            Grace::Over if is_idle => self.finish(),
            _ => {}
        }
    }

    /// Handles the completion of a request.
    pub(crate) fn complete<E: Engine>(
        &mut self,
        key: usize,
        result: Result<IoOutput, IoError>,
        state: &mut ServerState<E>,
    ) {
        let Some(request) = self.requests.try_remove(key) else { return };
        let charge = charge_of(&request);
        if matches!(self.closing, Closing::FinishingSilently) {
            self.release(charge, state);
        } else {
            self.outgoing.supply(&mut state.spare);
            self.reply(&request, result.map_err(errno_of));
            self.reply_added(charge, state);
        }
    }

    /// Returns the message to be sent now; `None` without output or during a send.
    pub(crate) fn next_message<E: Engine>(&mut self, state: &mut ServerState<E>) -> Option<Message> {
        if matches!(self.closing, Closing::FinishingSilently) {
            return None;
        }
        self.outgoing.next(self.channel.as_deref_mut(), &mut state.spare, state.now_ns)
    }

    /// Advances the connection after an event: receives more bytes, or advances its end.
    pub(crate) fn advance<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if self.requests.is_empty() && self.requests.capacity() > REQUESTS_KEPT {
            self.requests = Slab::new();
        }
        if state.drain.has_begun() {
            self.drain(state);
        }
        match self.closing {
            Closing::Finishing if self.requests.is_empty() && self.payload.is_none() => {
                self.close_after_sending(CloseReason::Disconnected, state);
            }
            Closing::FinishingSilently if self.requests.is_empty() => self.close(CloseReason::Disconnected),
            _ => {}
        }
        match &self.closing {
            Closing::Flushing(_) if self.outgoing.is_empty() && !state.senders.contains(self.id) => {
                self.finish_flushing()
            }
            Closing::Open => self.receive(state),
            _ => {}
        }
    }

    /// Starts a receive, unless one is in progress or the next request waits for memory.
    fn receive<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if self.reception != Reception::Idle || self.blocked.is_some() {
            return;
        }
        self.reception = Reception::InProgress;
        if self.channel.is_none()
            && let Some(payload) = &mut self.payload
            && payload.request.length as usize - payload.filled >= RECEIVE_INTO_BYTES_MIN
            && let Some(buffer) = payload.buffer.take()
        {
            let end = payload.request.length as usize;
            return state.engine.receive_into(self.id, buffer, payload.filled, end);
        }
        state.engine.receive(self.id);
    }

    /// Logs the end of the connection: ordinary ends at level debug, ends that the server or an
    /// administrator decided at info, faults of the client as warnings.
    fn log_end(&self, reason: &CloseReason) {
        let (client, from) = (self.number, &self.peer.address);
        match reason {
            CloseReason::Disconnected | CloseReason::EndOfStream | CloseReason::Broken | CloseReason::Shutdown => {
                tracing::debug!(client, %from, requests = self.counts.requests, "disconnected: {reason}");
            }
            CloseReason::HandshakeTimeout
            | CloseReason::ReplyTimeout
            | CloseReason::ExportWithdrawn
            | CloseReason::ByOperator => tracing::info!(client, %from, "closed: {reason}"),
            _ => tracing::warn!(client, %from, "closed: {reason}"),
        }
    }

    fn is_closed(&self) -> bool {
        matches!(self.closing, Closing::Closed(_))
    }

    /// Handles the end of the client's stream.
    fn end_of_stream(&mut self) {
        if matches!(self.closing, Closing::Open) {
            self.close(CloseReason::EndOfStream);
        }
    }

    /// Closes the connection when all output is sent, or when the client does not receive the
    /// output before the deadline.
    fn close_after_sending<E: Engine>(&mut self, reason: CloseReason, state: &mut ServerState<E>) {
        if self.is_closed() {
            return;
        }
        if let Some(channel) = &mut self.channel {
            channel.close();
            state.senders.schedule(self.id);
        }
        tracing::debug!(client = self.number, %reason, "closing");
        self.closing = Closing::Flushing(reason);
        if state.deadlines.get(self.id).is_none() || self.grace != Grace::None {
            state.set_handshake_deadline(self.id);
        }
    }

    /// Closes a connection whose last output was sent.
    fn finish_flushing(&mut self) {
        if let Closing::Flushing(reason) = std::mem::replace(&mut self.closing, Closing::Open) {
            self.close(reason);
        }
    }

    fn consume_input<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if self.input.is_empty() {
            return;
        }
        let mut input = std::mem::take(&mut self.input);
        let used = self.consume(&input, state);
        debug_assert!(self.input.is_empty(), "bytes were added to the input while it was consumed");
        input.drain(..used);
        if !input.is_empty() || input.capacity() <= INPUT_BYTES_KEPT {
            self.input = input;
        }
    }

    /// Consumes bytes and returns their number. The rest is a partial header, or has to wait.
    fn consume<E: Engine>(&mut self, bytes: &[u8], state: &mut ServerState<E>) -> usize {
        let (mut at, pending_before) = (0, self.outgoing.pending());
        while at < bytes.len() && self.blocked.is_none() && matches!(self.closing, Closing::Open) {
            let used = match &self.phase {
                Phase::Haggling(_) => self.haggle(&bytes[at..], state),
                Phase::Transmission(_) => self.transmit(&bytes[at..], state),
            };
            if used == 0 {
                break;
            }
            at += used;
        }
        // A client in the handshake has received the error of the shutdown.
        let is_in_grace = self.grace == Grace::Running && matches!(self.phase, Phase::Haggling(_));
        if is_in_grace && self.blocked.is_none() && self.outgoing.pending() > pending_before {
            self.finish();
        }
        at
    }

    /// Consumes bytes of the handshake and returns their number.
    fn haggle<E: Engine>(&mut self, bytes: &[u8], state: &mut ServerState<E>) -> usize {
        if self.outgoing.pending() > HAGGLING_BYTES_MAX {
            self.blocked = Some(Wait::Own);
            return 0;
        }
        let Phase::Haggling(handshake) = &mut self.phase else { return 0 };
        let names = self.channel.as_mut().map(|channel| channel.client_names()).unwrap_or_default();
        let allowed = AllowedExports::new(&state.config, &state.exports, &self.peer, names);
        let pending_before = self.outgoing.pending();
        let (used, progress) = handshake.receive(bytes, &allowed, self.outgoing.head());
        if self.outgoing.pending() > pending_before {
            state.senders.schedule(self.id);
        }
        match progress {
            Progress::More => {}
            Progress::StartTls => self.start_tls(bytes.len() - used, state),
            Progress::Ready(session) => self.join(*session, state),
            Progress::Aborted => self.close_after_sending(CloseReason::Disconnected, state),
            Progress::Violated(violation) => self.close_after_sending(CloseReason::Violation(violation), state),
        }
        used
    }

    /// Starts TLS. `plain` bytes followed the STARTTLS option, which is only valid for zero bytes.
    fn start_tls<E: Engine>(&mut self, plain: usize, state: &mut ServerState<E>) {
        if plain > 0 {
            return self.close(CloseReason::Injected(plain));
        }
        let Some(config) = &state.tls else { return self.close(CloseReason::NoCertificate) };
        match Channel::new(Arc::clone(config)) {
            Ok(channel) => self.channel = Some(Box::new(channel)),
            Err(error) => return self.close(CloseReason::Tls(error)),
        }
        self.outgoing.encrypt_from_here();
        if let Phase::Haggling(handshake) = &mut self.phase {
            handshake.encrypted();
        }
    }

    /// Ends the handshake: the connection becomes a member of its tenant on the export's device.
    fn join<E: Engine>(&mut self, session: Session, state: &mut ServerState<E>) {
        let names = self.channel.as_mut().map(|channel| channel.client_names()).unwrap_or_default();
        let allowed = AllowedExports::new(&state.config, &state.exports, &self.peer, names);
        let Some((served, tenant)) = allowed.admit(&session.export.name) else {
            return self.close(CloseReason::ExportWithdrawn);
        };
        let (device, offset) = (served.device, served.offset);
        let tenant: Option<Box<str>> = tenant.map(Into::into);
        match state.join(device, tenant.as_deref(), &self.peer) {
            Ok(member) => {
                let (client, export) = (self.number, session.export.name.as_str());
                tracing::debug!(client, export, tenant = tenant.as_deref(), "joined");
                self.holder = tenant.as_deref().map(|tenant| state.budget.join(tenant));
                let transmission = Box::new(Transmission { session, device, member, tenant, offset });
                state.client_counts.add(&transmission.session.export.name, transmission.tenant_name());
                self.phase = Phase::Transmission(transmission);
                state.deadlines.clear(self.id);
            }
            Err(reason) => self.close(reason),
        }
    }

    /// Consumes bytes of the transmission phase, a payload or a header, and returns their number.
    fn transmit<E: Engine>(&mut self, bytes: &[u8], state: &mut ServerState<E>) -> usize {
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
                self.submit_write(state);
            }
            return used;
        }
        let Phase::Transmission(transmission) = &self.phase else { return 0 };
        match transmission.session.parse(bytes) {
            Parsed::Need(_) => 0,
            Parsed::Violated(violation) => {
                self.close(CloseReason::Violation(violation));
                0
            }
            Parsed::Request(mut request, header) => {
                if state.drain.has_begun() && request.refused.is_none() && request.command != Command::Disconnect {
                    request.refused = Some((Errno::Shutdown, "the server is shutting down"));
                }
                let charge = charge_of(&request);
                let ahead = state.memory_waiters.ahead_of(self.id, self.holder);
                if let Err(wait) = state.budget.admit(self.used, self.holder, charge.bytes, ahead) {
                    self.blocked = Some(wait);
                    self.enqueue_if_blocked(state);
                    return 0;
                }
                self.used.add(charge);
                state.budget.charge(self.holder, charge);
                self.begin(request, state);
                header
            }
        }
    }

    /// Starts an admitted request.
    fn begin<E: Engine>(&mut self, request: Request, state: &mut ServerState<E>) {
        if request.command == Command::Disconnect {
            let charge = charge_of(&request);
            self.release(charge, state);
            self.closing = Closing::Finishing;
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

    /// Submits the write whose payload is complete.
    fn submit_write<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if let Some(Payload { request, buffer, .. }) = self.payload.take() {
            self.submit(request, buffer, state);
        }
    }

    /// Submits a request to the device.
    fn submit<E: Engine>(&mut self, request: Request, data: Option<Buffer>, state: &mut ServerState<E>) {
        let Phase::Transmission(transmission) = &self.phase else { return };
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
        if request.flags.fast_zero && !state.zero_is_fast(transmission.device, !request.flags.no_hole) {
            return self.refuse(&request, Errno::NotSup, "zeroes would have to be written", state);
        }
        let (device, member, offset) = (transmission.device, transmission.member, transmission.offset);
        let key = self.requests.insert(request);
        let work = BlockRequest {
            ticket: request_ticket(self.id, key),
            op,
            offset: offset + request.offset,
            length: request.length,
            durable: request.flags.fua,
            data,
            hints: Hints::default(),
        };
        state.submit(device, member, work);
    }

    /// Accounts for a reply that was added to the outgoing message.
    fn reply_added<E: Engine>(&mut self, charge: Charge, state: &mut ServerState<E>) {
        self.counts.requests += 1;
        state.reply_history.count(self.id, state.now_ns);
        self.outgoing.reply_added(charge);
        state.senders.schedule(self.id);
    }

    /// Returns the memory of requests to the budget.
    fn release<E: Engine>(&mut self, charge: Charge, state: &mut ServerState<E>) {
        self.used.sub(charge);
        state.budget.release(self.holder, charge);
    }

    /// Replies with an error.
    fn refuse<E: Engine>(&mut self, request: &Request, errno: Errno, text: &str, state: &mut ServerState<E>) {
        if let Phase::Transmission(transmission) = &self.phase {
            transmission.session.error(request, errno, text, self.outgoing.head());
        }
        self.reply_added(charge_of(request), state);
    }
}

mod reply;

/// Returns the memory that a request holds until its reply is sent: the data that it writes or
/// reads.
fn charge_of(request: &Request) -> Charge {
    match request.command {
        Command::Read | Command::Write if request.refused.is_none() => Charge::of(request.length),
        _ => Charge::of(0),
    }
}
