//! A simulated connection: both directions, the operations of the server on it, and its state.

use super::ids::ActorId;
use super::pipe::Pipe;
use crate::shared::Shared;
use crate::{Buffer, ConnId, ListenerId, Message, Part, Peer};

/// The behaviour of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPlan {
    /// Maximum latency of bytes in ns.
    pub latency_ns_max: u64,
    /// Capacity of each direction in bytes.
    pub capacity: usize,
    /// Maximum number of bytes of one receive or send.
    pub piece_max: usize,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    pub plan: LinkPlan,
    /// The client.
    pub actor: ActorId,
    /// The listener; `None` for a connection that the server itself opens.
    pub listener: Option<ListenerId>,
    /// The peer, until the server accepts the connection.
    pub peer: Option<Peer>,
    /// The ID at the server, from acceptance until the server closes the connection.
    pub conn: Option<ConnId>,
    /// Bytes to the server, and to the client.
    pub up: Pipe,
    pub down: Pipe,
    pub receive: PendingReceive,
    pub send: Option<PendingSend>,
    /// One side has reset the connection: no bytes pass.
    pub is_reset: bool,
    /// The client has failed without closing the connection.
    pub is_abandoned: bool,
    /// The server was notified of the end of the stream.
    pub is_end_reported: bool,
    /// The server was notified of the reset.
    pub is_reset_reported: bool,
    /// The connection ended with the server or its machine.
    pub was_cut: bool,
    /// A delivery or a push is scheduled.
    pub is_deliver_due: bool,
    pub is_push_due: bool,
}

/// The receive of the server.
#[derive(Debug)]
pub(super) enum PendingReceive {
    None,
    Any,
    Into { buffer: Buffer, at: usize, to: usize },
}

/// A message that the server is sending.
#[derive(Debug)]
pub(super) struct PendingSend {
    pub message: Message,
    /// The part that is sent next.
    part: usize,
    /// Sent bytes of that part.
    sent: usize,
    /// Bytes of the head that earlier parts used.
    head: usize,
}

/// The state of a connection for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Bytes may still arrive.
    Open,
    /// The server has closed its side, and all bytes were read.
    Ended,
    /// One side has reset the connection.
    Reset,
}

impl Link {
    pub fn new(plan: LinkPlan, actor: ActorId, listener: Option<ListenerId>, peer: Option<Peer>) -> Link {
        Link {
            plan,
            actor,
            listener,
            peer,
            conn: None,
            up: Pipe::new(plan.capacity),
            down: Pipe::new(plan.capacity),
            receive: PendingReceive::None,
            send: None,
            is_reset: false,
            is_abandoned: false,
            is_end_reported: false,
            is_reset_reported: false,
            was_cut: false,
            is_deliver_due: false,
            is_push_due: false,
        }
    }
}

impl PendingSend {
    pub fn new(message: Message) -> PendingSend {
        PendingSend { message, part: 0, sent: 0, head: 0 }
    }

    /// Takes at most `count` bytes.
    pub fn take(&mut self, mut count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count);
        while count > 0 && self.part < self.message.parts.len() {
            let (from, len) = match &self.message.parts[self.part] {
                Part::Head { len } => (&self.message.head[self.head..], *len),
                Part::Buffer { buffer, len } => (&buffer[..], *len),
                Part::Kept { buffer, len } => (&buffer[..], *len),
                Part::Shared(shared) => (slice(shared), shared.len()),
            };
            let piece = count.min(len - self.sent);
            bytes.extend_from_slice(&from[self.sent..self.sent + piece]);
            self.sent += piece;
            count -= piece;
            if self.sent == len {
                if let Part::Head { len } = &self.message.parts[self.part] {
                    self.head += len;
                }
                self.part += 1;
                self.sent = 0;
            }
        }
        bytes
    }

    /// Returns true if all bytes were taken.
    pub fn is_over(&self) -> bool {
        self.message.parts[self.part.min(self.message.parts.len())..].iter().all(|part| match part {
            Part::Head { len } | Part::Buffer { len, .. } | Part::Kept { len, .. } => *len == 0,
            Part::Shared(shared) => shared.is_empty(),
        })
    }
}

/// Returns the bytes of memory that is shared with a backend.
fn slice(shared: &Shared) -> &[u8] {
    // SAFETY: `shared` keeps the memory mapped. The backend writes to it only from this thread and
    // between turns, and no such slice outlives one step of the simulation.
    unsafe { std::slice::from_raw_parts(shared.as_ptr(), shared.len()) }
}
