//! A client's connection: received bytes to requests for devices, completions to replies.
//!
//! ```text
//! Handshake ── an export is chosen ──▶ Transmission ──▶ Ending ──▶ removed
//!     └──────────────────────────────────────────────────▲
//! ```
//!
//! [`Phase`] has what exists in one phase only. Socket, TLS and output are common to all.

mod handshake;
mod reply;
mod transmission;

use hoistway_config::Config;
use hoistway_nbd::server::Tls;
use hoistway_reactor::{ConnId, Engine, Message, Peer};
use hoistway_tls::{Channel, ChannelState};

use self::handshake::Handshake;
pub(crate) use self::transmission::Client;
use self::transmission::{Grace, Input, Transmission};
use crate::budget::{Bounds, Wait};
use crate::close_reason::CloseReason;
use crate::exports::{AllowedExports, ServedExport};
use crate::lists::MemoryQueue;
use crate::outgoing::Outgoing;
use crate::state::ServerState;

/// The time in ns in which a client in the handshake may send another option after a shutdown
/// began, so that it receives the error ERR_SHUTDOWN.
const HANDSHAKE_GRACE_NS: u64 = 1_000_000_000;
/// The time in ns in which an idle client is read after a shutdown began, for requests that its
/// socket already holds.
const IDLE_GRACE_NS: u64 = 10_000_000;
/// The capacity that the input buffer keeps while it is empty.
const INPUT_BYTES_KEPT: usize = 4 << 10;

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnId,
    /// The number of the client in the control tree and the log, which is never used twice.
    pub(crate) number: u64,
    pub(crate) peer: Peer,
    /// When the connection was accepted, in ns.
    pub(crate) since_ns: u64,
    channel: Option<Box<Channel>>,
    /// Decrypted bytes that are not consumed: a partial header, or requests that wait.
    input: Vec<u8>,
    outgoing: Outgoing,
    reception: Reception,
    phase: Phase,
}

/// The phase of a connection, and what exists in it only.
#[derive(Debug)]
enum Phase {
    /// The client has not chosen an export.
    Handshake(Box<Handshake>),
    /// The client sends requests.
    Transmission(Box<Transmission>),
    /// No more bytes of the client are processed.
    Ending(Box<Ending>),
}

/// The end of a connection.
#[derive(Debug)]
struct Ending {
    /// The client, if it had chosen an export: its requests in progress, memory and membership.
    client: Option<Client>,
    reason: CloseReason,
    step: EndStep,
}

/// The remaining work before a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndStep {
    /// The requests in progress are completed and answered.
    Finishing,
    /// As `Finishing`, but the client no longer receives: replies are dropped.
    FinishingSilently,
    /// All output is sent.
    Flushing,
    /// Nothing: the connection is to be closed now.
    Closed,
}

/// Whether the engine receives for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reception {
    Idle,
    InProgress,
    /// The transport failed: nothing is received any more.
    Over,
}

impl Connection {
    /// Creates the connection of an accepted client, sends the greeting, and starts the handshake
    /// timeout.
    pub(crate) fn accept<E: Engine>(id: ConnId, number: u64, peer: Peer, state: &mut ServerState<E>) -> Connection {
        let mut outgoing = Outgoing::default();
        let tls = match &state.tls {
            None => Tls::Off,
            Some(_) if state.tls_required => Tls::Required,
            Some(_) => Tls::Offered,
        };
        let nbd = hoistway_nbd::server::Handshake::new(tls, state.limits, outgoing.head());
        state.senders.schedule(id);
        state.set_handshake_deadline(id);
        Connection {
            id,
            number,
            peer,
            since_ns: state.now_ns,
            channel: None,
            input: Vec::new(),
            outgoing,
            reception: Reception::Idle,
            phase: Phase::Handshake(Box::new(Handshake::new(nbd))),
        }
    }

    /// Returns the memory, the membership and the deadline of a removed connection, and logs why
    /// the connection ended.
    pub(crate) fn release_resources<E: Engine>(self, state: &mut ServerState<E>) {
        state.deadlines.clear(self.id);
        let Connection { number, peer, phase: Phase::Ending(ending), .. } = self else { return };
        let requests = ending.client.map_or(0, |client| client.leave(state).requests);
        log_end(number, &peer, requests, &ending.reason);
    }

    /// Returns the client of an export; `None` before it has chosen one.
    pub(crate) fn client(&self) -> Option<&Client> {
        match &self.phase {
            Phase::Handshake(_) => None,
            Phase::Transmission(transmission) => Some(&transmission.client),
            Phase::Ending(ending) => ending.client.as_ref(),
        }
    }

    /// Starts no more requests; closes the connection when the requests in progress are answered. A
    /// write whose payload is incomplete is not in progress.
    pub(crate) fn finish(&mut self) {
        if !matches!(self.phase, Phase::Ending(_)) {
            self.end(EndStep::Finishing, CloseReason::Disconnected);
        }
    }

    /// Returns true if a configuration still admits the client to its export. Clients in the
    /// handshake are checked at its end.
    pub(crate) fn is_admitted(&mut self, config: &Config, exports: &[ServedExport]) -> bool {
        let Phase::Transmission(transmission) = &self.phase else { return true };
        let names = self.channel.as_mut().map(|channel| channel.client_names()).unwrap_or_default();
        let allowed = AllowedExports::new(config, exports, &self.peer, names);
        allowed.admit(transmission.client.export()).is_some()
    }

    /// Returns the first name in the client's certificate.
    pub(crate) fn certificate(&self) -> Option<&str> {
        self.channel.as_ref()?.known_names().first().map(String::as_str)
    }

    /// Returns true if the client holds memory without progress: it does not send the payload of a
    /// write, or does not receive its replies.
    pub(crate) fn is_stalled(&self, bounds: &Bounds, now_ns: u64) -> bool {
        let payload = match &self.phase {
            Phase::Transmission(transmission) => transmission.receiving(),
            Phase::Handshake(_) | Phase::Ending(_) => None,
        };
        let mut transfers = [payload, self.outgoing.sending()].into_iter().flatten();
        transfers.any(|(since_ns, bytes)| bounds.is_stalled(since_ns, bytes, now_ns))
    }

    /// Returns why the connection is to be closed now; `None` if it stays.
    pub(crate) fn close_reason(&self) -> Option<&CloseReason> {
        match &self.phase {
            Phase::Ending(ending) if ending.step == EndStep::Closed => Some(&ending.reason),
            _ => None,
        }
    }

    /// Handles the end of the connection's deadline.
    pub(crate) fn expire(&mut self) {
        match &mut self.phase {
            Phase::Handshake(handshake) if handshake.is_shut_down => self.close(CloseReason::Shutdown),
            Phase::Handshake(_) => self.close(CloseReason::HandshakeTimeout),
            Phase::Transmission(transmission) => transmission.grace = Grace::Over,
            Phase::Ending(ending) if ending.step == EndStep::Flushing => self.close(CloseReason::ReplyTimeout),
            Phase::Ending(_) => {}
        }
    }

    /// Marks the connection to be closed as soon as possible.
    pub(crate) fn close(&mut self, reason: CloseReason) {
        self.end(EndStep::Closed, reason);
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
            if used < bytes.len() {
                self.input.extend_from_slice(&bytes[used..]);
            }
        } else {
            self.input.extend_from_slice(bytes);
            self.consume_input(state);
        }
    }

    /// Retries the requests that waited for memory.
    pub(crate) fn resume<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if self.blocked().is_none() {
            return;
        }
        match &mut self.phase {
            Phase::Handshake(handshake) => handshake.is_blocked = false,
            Phase::Transmission(transmission) => transmission.input = Input::Header,
            Phase::Ending(_) => {}
        }
        self.consume_input(state);
    }

    /// Returns the queue for the memory for which the next request waits, if it waits for others.
    pub(crate) fn queue(&self) -> Option<MemoryQueue> {
        self.client()?.membership.queue_for(self.blocked()?)
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
        match &mut self.phase {
            Phase::Handshake(_) => {}
            Phase::Transmission(transmission) => transmission.client.membership.release(charge, state),
            Phase::Ending(ending) => {
                if let Some(client) = &mut ending.client {
                    client.membership.release(charge, state);
                }
            }
        }
        // Output that was added during the send.
        if self.outgoing.pending() > 0 || self.channel.as_ref().is_some_and(|channel| channel.has_records()) {
            state.senders.schedule(self.id);
        }
        if self.blocked() == Some(Wait::Own) {
            self.resume(state);
        }
    }

    /// Handles a failed send or receive.
    pub(crate) fn transport_failed(&mut self) {
        self.reception = Reception::Over;
        match &mut self.phase {
            Phase::Handshake(_) | Phase::Transmission(_) => self.close(CloseReason::Broken),
            // A client may close its socket after a disconnect request; its requests are completed
            // all the same.
            Phase::Ending(ending) => {
                ending.step = if ending.is_finished() { EndStep::Closed } else { EndStep::FinishingSilently };
            }
        }
    }

    /// Shuts the connection down: completes requests in progress, and refuses all others. Requests
    /// that have already arrived are answered, and a client in the handshake gets a grace time to
    /// receive the error.
    fn drain<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if let Phase::Handshake(handshake) = &mut self.phase {
            if !std::mem::replace(&mut handshake.is_shut_down, true) {
                handshake.nbd.shut_down();
                state.set_deadline_in(self.id, HANDSHAKE_GRACE_NS);
            }
            return;
        }
        if matches!(self.blocked(), Some(Wait::Tenant | Wait::Others)) {
            // A refused request needs no memory.
            self.resume(state);
        }
        let Phase::Transmission(transmission) = &mut self.phase else { return };
        match transmission.grace {
            Grace::None if transmission.is_idle() => {
                transmission.grace = Grace::Running;
                state.set_deadline_in(self.id, IDLE_GRACE_NS);
            }
            Grace::Over if transmission.is_idle() => self.finish(),
            Grace::None | Grace::Running | Grace::Over => {}
        }
    }

    /// Returns the message to be sent now; `None` without output or during a send.
    pub(crate) fn next_message<E: Engine>(&mut self, state: &mut ServerState<E>) -> Option<Message> {
        if matches!(&self.phase, Phase::Ending(ending) if ending.step == EndStep::FinishingSilently) {
            return None;
        }
        self.outgoing.next(self.channel.as_deref_mut(), &mut state.spare, state.now_ns)
    }

    /// Advances the connection after an event: receives more bytes, or advances its end.
    pub(crate) fn advance<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if state.drain.has_begun() {
            self.drain(state);
        }
        match &mut self.phase {
            Phase::Handshake(_) => self.receive(state),
            Phase::Transmission(transmission) => {
                transmission.client.shrink();
                self.receive(state);
            }
            Phase::Ending(_) => self.advance_end(state),
        }
    }

    /// Goes on with the end of the connection when its current step is done.
    fn advance_end<E: Engine>(&mut self, state: &mut ServerState<E>) {
        let Phase::Ending(ending) = &mut self.phase else { return };
        if ending.is_finished() {
            match ending.step {
                EndStep::Finishing => self.close_after_sending(CloseReason::Disconnected, state),
                EndStep::FinishingSilently => ending.step = EndStep::Closed,
                EndStep::Flushing | EndStep::Closed => {}
            }
        }
        if let Phase::Ending(ending) = &mut self.phase
            && ending.step == EndStep::Flushing
            && self.outgoing.is_empty()
            && !state.senders.contains(self.id)
        {
            ending.step = EndStep::Closed;
        }
    }

    /// Starts a receive, unless one is in progress or the next request waits for memory.
    fn receive<E: Engine>(&mut self, state: &mut ServerState<E>) {
        if self.reception != Reception::Idle || self.blocked().is_some() {
            return;
        }
        self.reception = Reception::InProgress;
        if self.channel.is_none()
            && let Phase::Transmission(transmission) = &mut self.phase
            && let Some((buffer, from, to)) = transmission.take_memory()
        {
            return state.engine.receive_into(self.id, buffer, from, to);
        }
        state.engine.receive(self.id);
    }

    /// Returns the memory for which the next request waits.
    fn blocked(&self) -> Option<Wait> {
        match &self.phase {
            Phase::Handshake(handshake) => handshake.is_blocked.then_some(Wait::Own),
            Phase::Transmission(transmission) => match transmission.input {
                Input::Blocked(wait) => Some(wait),
                Input::Header | Input::Payload(_) | Input::Discarded(_) => None,
            },
            Phase::Ending(_) => None,
        }
    }

    /// Handles the end of the client's stream.
    fn end_of_stream(&mut self) {
        if !matches!(self.phase, Phase::Ending(_)) {
            self.close(CloseReason::EndOfStream);
        }
    }

    /// Closes the connection when all output is sent, or when the client does not receive the
    /// output before the deadline.
    fn close_after_sending<E: Engine>(&mut self, reason: CloseReason, state: &mut ServerState<E>) {
        let keeps_deadline = match &self.phase {
            Phase::Handshake(handshake) => !handshake.is_shut_down,
            Phase::Transmission(_) => false,
            Phase::Ending(ending) if ending.step == EndStep::Closed => return,
            Phase::Ending(ending) => ending.step == EndStep::Flushing,
        };
        if let Some(channel) = &mut self.channel {
            channel.close();
            state.senders.schedule(self.id);
        }
        tracing::debug!(client = self.number, %reason, "closing");
        if !keeps_deadline {
            state.set_handshake_deadline(self.id);
        }
        self.end(EndStep::Flushing, reason);
    }

    /// Ends the phase of the connection, or changes what its end waits for.
    fn end(&mut self, step: EndStep, reason: CloseReason) {
        let ending = Phase::Ending(Box::new(Ending { client: None, reason, step }));
        let client = match std::mem::replace(&mut self.phase, ending) {
            Phase::Handshake(_) => None,
            Phase::Transmission(transmission) => Some(transmission.client),
            Phase::Ending(before) => before.client,
        };
        if let Phase::Ending(ending) = &mut self.phase {
            ending.client = client;
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
        while at < bytes.len() {
            let used = match &self.phase {
                Phase::Handshake(_) => self.negotiate(&bytes[at..], state),
                Phase::Transmission(_) => self.transmit(&bytes[at..], state),
                Phase::Ending(_) => break,
            };
            if used == 0 {
                break;
            }
            at += used;
        }
        // A client in the handshake has received the error of the shutdown.
        if let Phase::Handshake(handshake) = &self.phase
            && handshake.is_shut_down
            && !handshake.is_blocked
            && self.outgoing.pending() > pending_before
        {
            self.finish();
        }
        at
    }
}

impl Ending {
    /// Returns true if no request is in progress that is to be completed.
    fn is_finished(&self) -> bool {
        let is_finishing = matches!(self.step, EndStep::Finishing | EndStep::FinishingSilently);
        !is_finishing || self.client.as_ref().is_none_or(|client| client.in_flight() == 0)
    }
}

/// Logs the end of a connection: ordinary ends at level debug, ends that the server or an
/// administrator decided at info, faults of the client as warnings.
fn log_end(client: u64, peer: &Peer, requests: u64, reason: &CloseReason) {
    let from = &peer.address;
    match reason {
        CloseReason::Disconnected | CloseReason::EndOfStream | CloseReason::Broken | CloseReason::Shutdown => {
            tracing::debug!(client, %from, requests, "disconnected: {reason}");
        }
        CloseReason::HandshakeTimeout
        | CloseReason::ReplyTimeout
        | CloseReason::ExportWithdrawn
        | CloseReason::ByOperator => tracing::info!(client, %from, "closed: {reason}"),
        _ => tracing::warn!(client, %from, "closed: {reason}"),
    }
}
