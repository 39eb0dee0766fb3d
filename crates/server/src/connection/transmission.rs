//! The transmission of a connection: requests to the device of the export, and their replies.

use hoistway_blockdev::{BlockRequest, IoOutput};
use hoistway_nbd::server::{Parsed, Request, Session};
use hoistway_nbd::wire::{Command, Errno};
use hoistway_qos::{Hints, IoError, RequestOp};
use hoistway_reactor::{Buffer, Engine};
use slab::Slab;

use super::{Connection, EndStep, Phase, Reception};
use crate::budget::{Charge, Wait};
use crate::close_reason::CloseReason;
use crate::membership::{Counts, Membership};
use crate::protocol::errno_of;
use crate::state::ServerState;
use crate::ticket::request_ticket;

/// The missing bytes of a write payload from which on the engine receives into the payload's own
/// buffer. A shorter rest arrives with the next headers and is copied.
const RECEIVE_INTO_BYTES_MIN: usize = 16 << 10;
/// The capacity that the request table keeps while it is empty.
const REQUESTS_KEPT: usize = 64;

/// The phase in which the client sends requests.
#[derive(Debug)]
pub(super) struct Transmission {
    pub(super) client: Client,
    pub(super) input: Input,
    pub(super) grace: Grace,
}

/// A client that has chosen its export.
#[derive(Debug)]
pub(crate) struct Client {
    pub(super) session: Session,
    pub(crate) membership: Membership,
    /// The requests that the device has not completed.
    requests: Slab<Request>,
}

/// The meaning of the next bytes from the client.
#[derive(Debug)]
pub(super) enum Input {
    /// The header of a request.
    Header,
    /// A header that waits for memory.
    Blocked(Wait),
    /// The payload of a write.
    Payload(Payload),
    /// This many bytes of the payload of a refused request, which are discarded.
    Discarded(u64),
}

/// A write whose payload is being received.
#[derive(Debug)]
pub(super) struct Payload {
    request: Request,
    /// The memory for the payload; `None` while the engine receives into it.
    buffer: Option<Buffer>,
    /// The number of bytes received.
    filled: usize,
    /// When the header was read, in ns.
    since_ns: u64,
}

/// The grace time of an idle client during a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grace {
    /// The server is in service, or the client has requests in progress.
    None,
    /// The server reads for a short time and refuses all requests.
    Running,
    /// The grace time has passed.
    Over,
}

impl Client {
    /// Returns the name of the export.
    pub(crate) fn export(&self) -> &str {
        &self.session.export.name
    }

    /// Returns the number of requests that the device has not completed.
    pub(crate) fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// Leaves the device. Returns the counters.
    pub(super) fn leave<E: Engine>(self, state: &mut ServerState<E>) -> Counts {
        let counts = self.membership.counts;
        self.membership.leave(&self.session.export.name, state);
        counts
    }

    /// Returns the memory of a request table that was large.
    pub(super) fn shrink(&mut self) {
        if self.requests.is_empty() && self.requests.capacity() > REQUESTS_KEPT {
            self.requests = Slab::new();
        }
    }
}

impl Transmission {
    pub(super) fn new(session: Session, membership: Membership) -> Transmission {
        let client = Client { session, membership, requests: Slab::new() };
        Transmission { client, input: Input::Header, grace: Grace::None }
    }

    /// Returns true if no request is in progress, and none has been received in part.
    pub(super) fn is_idle(&self) -> bool {
        self.client.requests.is_empty() && matches!(self.input, Input::Header)
    }

    /// Returns the start of the payload that is being received, in ns, and its length in bytes.
    pub(super) fn receiving(&self) -> Option<(u64, u64)> {
        match &self.input {
            Input::Payload(payload) => Some((payload.since_ns, payload.request.length)),
            Input::Header | Input::Blocked(_) | Input::Discarded(_) => None,
        }
    }

    /// Returns the memory into which the engine should receive, and the range to fill.
    pub(super) fn take_memory(&mut self) -> Option<(Buffer, usize, usize)> {
        let Input::Payload(Payload { request, buffer, filled, .. }) = &mut self.input else { return None };
        let end = request.length as usize;
        if end - *filled < RECEIVE_INTO_BYTES_MIN {
            return None;
        }
        Some((buffer.take()?, *filled, end))
    }
}

impl Connection {
    /// Consumes bytes of the transmission, a payload or a header, and returns their number.
    pub(super) fn transmit<E: Engine>(&mut self, bytes: &[u8], state: &mut ServerState<E>) -> usize {
        let Phase::Transmission(transmission) = &mut self.phase else { return 0 };
        match &mut transmission.input {
            Input::Header => {}
            Input::Blocked(_) | Input::Payload(Payload { buffer: None, .. }) => return 0,
            Input::Discarded(left) => {
                let used = bytes.len().min(*left as usize);
                *left -= used as u64;
                if *left == 0 {
                    transmission.input = Input::Header;
                }
                return used;
            }
            Input::Payload(Payload { request, buffer: Some(buffer), filled, .. }) => {
                let used = bytes.len().min(request.length as usize - *filled);
                buffer[*filled..*filled + used].copy_from_slice(&bytes[..used]);
                *filled += used;
                if *filled == request.length as usize {
                    self.submit_write(state);
                }
                return used;
            }
        }
        match transmission.client.session.parse(bytes) {
            Parsed::Need(_) => 0,
            Parsed::Violated(violation) => {
                self.close(CloseReason::Violation(violation));
                0
            }
            Parsed::Request(mut request, header) => {
                if state.drain.has_begun() && request.refused.is_none() && request.command != Command::Disconnect {
                    request.refused = Some((Errno::Shutdown, "the server is shutting down"));
                }
                if let Err(wait) = transmission.client.membership.admit(self.id, charge_of(&request), state) {
                    transmission.input = Input::Blocked(wait);
                    self.enqueue_if_blocked(state);
                    return 0;
                }
                self.begin(request, state);
                header
            }
        }
    }

    /// Starts an admitted request.
    fn begin<E: Engine>(&mut self, request: Request, state: &mut ServerState<E>) {
        let Phase::Transmission(transmission) = &mut self.phase else { return };
        if request.command == Command::Disconnect {
            transmission.client.membership.release(charge_of(&request), state);
            self.end(EndStep::Finishing, CloseReason::Disconnected);
        } else if let Some((errno, text)) = request.refused {
            if request.payload_bytes > 0 {
                transmission.input = Input::Discarded(request.payload_bytes.into());
            }
            self.refuse(&request, errno, text, state);
        } else if request.command == Command::Write {
            let buffer = Some(state.engine.buffer(request.length as usize));
            transmission.input = Input::Payload(Payload { request, buffer, filled: 0, since_ns: state.now_ns });
        } else {
            self.submit(request, None, state);
        }
    }

    /// Handles the end of a receive into the payload's own buffer.
    pub(crate) fn payload_filled<E: Engine>(&mut self, buffer: Buffer, filled: usize, state: &mut ServerState<E>) {
        self.reception = Reception::Idle;
        let Phase::Transmission(transmission) = &mut self.phase else { return };
        let Input::Payload(payload) = &mut transmission.input else { return };
        if (filled as u64) < payload.request.length {
            return self.end_of_stream();
        }
        payload.buffer = Some(buffer);
        self.submit_write(state);
    }

    /// Submits the write whose payload is complete.
    fn submit_write<E: Engine>(&mut self, state: &mut ServerState<E>) {
        let Phase::Transmission(transmission) = &mut self.phase else { return };
        if let Input::Payload(payload) = std::mem::replace(&mut transmission.input, Input::Header) {
            self.submit(payload.request, payload.buffer, state);
        }
    }

    /// Submits a request to the device.
    fn submit<E: Engine>(&mut self, request: Request, data: Option<Buffer>, state: &mut ServerState<E>) {
        let Phase::Transmission(transmission) = &mut self.phase else { return };
        let Client { membership, requests, .. } = &mut transmission.client;
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
        if request.flags.fast_zero && !membership.zero_is_fast(!request.flags.no_hole, state) {
            return self.refuse(&request, Errno::NotSup, "zeroes would have to be written", state);
        }
        let work = BlockRequest {
            ticket: request_ticket(self.id, requests.insert(request)),
            op,
            offset: request.offset,
            length: request.length,
            durable: request.flags.fua,
            data,
            hints: Hints::default(),
        };
        membership.submit(work, state);
    }

    /// Handles the completion of a request.
    pub(crate) fn complete<E: Engine>(
        &mut self,
        key: usize,
        result: Result<IoOutput, IoError>,
        state: &mut ServerState<E>,
    ) {
        let (client, is_answered) = match &mut self.phase {
            Phase::Handshake(_) => return,
            Phase::Transmission(transmission) => (Some(&mut transmission.client), true),
            Phase::Ending(ending) => (ending.client.as_mut(), ending.step != EndStep::FinishingSilently),
        };
        let Some(client) = client else { return };
        let Some(request) = client.requests.try_remove(key) else { return };
        let charge = charge_of(&request);
        if !is_answered {
            return client.membership.release(charge, state);
        }
        self.outgoing.supply(&mut state.spare);
        client.reply(&request, result.map_err(errno_of), &mut self.outgoing);
        self.reply_added(charge, state);
    }

    /// Replies with an error.
    fn refuse<E: Engine>(&mut self, request: &Request, errno: Errno, text: &str, state: &mut ServerState<E>) {
        if let Phase::Transmission(transmission) = &mut self.phase {
            transmission.client.refuse(request, errno, text, &mut self.outgoing);
        }
        self.reply_added(charge_of(request), state);
    }

    /// Accounts for a reply that was added to the outgoing message.
    fn reply_added<E: Engine>(&mut self, charge: Charge, state: &mut ServerState<E>) {
        state.reply_history.count(self.id, state.now_ns);
        self.outgoing.reply_added(charge);
        state.senders.schedule(self.id);
    }
}

/// Returns the memory that a request holds until its reply is sent: the data that it writes or
/// reads.
fn charge_of(request: &Request) -> Charge {
    match request.command {
        Command::Read | Command::Write if request.refused.is_none() => Charge::of(request.length),
        _ => Charge::of(0),
    }
}
