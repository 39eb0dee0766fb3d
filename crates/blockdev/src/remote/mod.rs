//! An export of another NBD server as the storage of a device.
//!
//! The sockets belong to the engine that also serves the clients. The device passes their events to
//! [`Remote::event`], runs [`Remote::advance`] before and [`Remote::send_waiting`] after its queue,
//! and takes ended I/O from [`Remote::take_ended`].
//!
//! ```text
//! begin ─▶ requests (waiting) ─ send_waiting ─▶ connection ─▶ remote
//!             ▲   sent again after a loss           │ reply
//!             └──────────── journal ◀── completed changes ─┘
//! ```
//!
//! Guarantees:
//! - Two changes of the same bytes are never in flight together, so that their order is known.
//! - Completed changes stay in the journal until the remote has flushed them. After the
//!   loss of a connection they are sent again, in order, before any other request.
//! - A flush succeeds only if no connection was lost between its start and its end. Otherwise it is
//!   sent again after the journal.
//! - Requests without a reply are sent again. A request fails with EIO when its time is over.
//!
//! | module | contents |
//! |---|---|
//! | `open` | the first connection, at the start of the server |
//! | `connection` | one connection: handshake, TLS, requests out, replies in |
//! | `requests` | the requests in progress, their steps and their order |
//! | `journal` | completed changes that are not flushed |
//! | `slots` | connecting again, and the choice among several connections |
//! | `tls` | the certificates of the connections |
//! | `replies` | the data of replies, and what follows from their end |

mod connection;
mod error;
mod journal;
mod open;
mod replies;
mod requests;
mod slots;
mod tls;

use hoistway_config::RemoteConfig;
use hoistway_nbd::Abilities;
use hoistway_qos::{Begin, IoError, IoId, LogRateLimiter, MediumRequest, RequestOp};
use hoistway_reactor::{Buffer, ConnId, Engine, Event};

pub use self::error::RemoteError;
use self::journal::Journal;
use self::requests::{Purpose, Request, Requests, Step};
use self::slots::Slots;
use self::tls::RemoteTls;
use crate::error_log::Cause;
use crate::output::{IoOutput, Started};

/// The largest payload of a request in bytes, 32 MiB: servers accept it unless they say otherwise.
const PAYLOAD_BYTES: u32 = 1 << 25;

/// An export of another server.
#[derive(Debug)]
pub struct Remote {
    config: RemoteConfig,
    /// The URI, for messages.
    name: String,
    tls: Option<RemoteTls>,
    facts: Facts,
    slots: Slots,
    requests: Requests,
    journal: Journal,
    /// The state of sending the journal again.
    recovery: Recovery,
    /// Why changes that the remote had completed are lost, until [`Remote::take_loss`].
    loss: Option<&'static str>,
    ended: Vec<Ended>,
    now_ns: u64,
    loss_limiter: LogRateLimiter,
    sabotage: Sabotage,
}

/// The properties of the remote export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    /// The size in bytes.
    bytes: u64,
    /// The usable size in bytes: whole blocks.
    size: u64,
    read_only: bool,
    flush: bool,
    fua: bool,
    rotational: bool,
    trim: bool,
    write_zeroes: bool,
    multi_conn: bool,
    cache: bool,
    block_status: bool,
    /// The unit of offsets and lengths in bytes.
    block_min: u32,
    block_preferred: u32,
    payload_max: u32,
}

/// The state of sending the journal again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    /// All completed changes are present at the remote.
    None,
    /// A connection was lost. Changes on other connections have to end first.
    Needed,
    /// The changes of the journal are being sent again; this many are not completed.
    Running { left: usize },
}

/// An I/O that ended.
#[derive(Debug)]
pub struct Ended {
    /// The I/O.
    pub io: IoId,
    /// The output, or the error for the client.
    pub result: Result<IoOutput, IoError>,
    /// The reason of an error.
    pub cause: Cause,
}

/// A deliberate fault, with which tests of the recovery prove that they find it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// No fault.
    #[default]
    None,
    /// Completed changes are not sent again after a lost connection.
    ForgetsJournal,
    /// The journal is sent again from its newest change to its oldest.
    ReversesJournal,
    /// Changes of the same bytes may be in flight together.
    OverlapsChanges,
    /// Reads do not wait until the journal was sent again.
    ReadsEarly,
}

impl Sabotage {
    /// All faults.
    pub const ALL: [Sabotage; 4] =
        [Sabotage::ForgetsJournal, Sabotage::ReversesJournal, Sabotage::OverlapsChanges, Sabotage::ReadsEarly];
}

impl Remote {
    /// Returns the URI.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        self.facts.size
    }

    /// Returns the supported operations and guarantees.
    pub fn abilities(&self) -> Abilities {
        let Facts { flush, fua, rotational, trim, write_zeroes, cache, block_status, .. } = self.facts;
        let read_only = self.config.read_only;
        Abilities {
            read_only,
            flush,
            // A durable write is a write and a flush if the remote has no FUA.
            fua: fua || flush,
            rotational,
            trim: trim && !read_only,
            write_zeroes: write_zeroes && !read_only,
            // The remote does not tell whether zeroing is fast.
            fast_zero: false,
            multi_conn: true,
            cache,
            block_status,
        }
    }

    /// Returns why completed changes were lost since the last call.
    pub fn take_loss(&mut self) -> Option<&'static str> {
        self.loss.take()
    }

    /// Returns the preferred alignment of offsets and lengths in bytes.
    pub fn block_preferred(&self) -> u32 {
        self.facts.block_preferred
    }

    /// Returns true if the remote announces a rotating medium.
    pub fn rotational(&self) -> bool {
        self.facts.rotational
    }

    /// Returns the largest operation in bytes. One that is widened to whole blocks is still within
    /// the largest payload.
    pub fn io_bytes_max(&self) -> u64 {
        let (block, payload) = (u64::from(self.facts.block_min), u64::from(self.facts.payload_max));
        let widened = if block > 1 { 2 * block } else { 0 };
        payload.saturating_sub(widened).max(block)
    }

    /// Describes the remote for a log line.
    pub fn describe(&self) -> String {
        let Facts { size, flush, fua, block_min, .. } = self.facts;
        let count = self.slots.list.len();
        let connections = if count == 1 { "1 connection".to_owned() } else { format!("up to {count} connections") };
        let durable = match (flush, fua) {
            (true, true) => "flush and FUA",
            (true, false) => "flush",
            (false, true) => "FUA, no flush",
            (false, false) => "no flush",
        };
        let blocks = if block_min > 1 { format!(", blocks of {block_min} bytes") } else { String::new() };
        format!("{} (remote, {size} bytes, {connections}, {durable}{blocks})", self.name)
    }

    /// Plants a fault.
    pub fn set_sabotage(&mut self, sabotage: Sabotage) {
        self.sabotage = sabotage;
    }

    /// Returns true if a connection belongs to this remote.
    pub fn owns(&self, conn: ConnId) -> bool {
        self.slots.of(conn).is_some()
    }

    /// Begins an I/O, whose range has been checked. It is sent by [`Remote::send_waiting`].
    pub fn begin(&mut self, request: MediumRequest<Buffer>, now_ns: u64) -> Started {
        let MediumRequest { io, op, offset, length, durable, data, .. } = request;
        if op != RequestOp::Flush && length == 0 {
            return Begin::Done(Ok(IoOutput::Nothing));
        }
        let block = u64::from(self.facts.block_min);
        let (from, to) = match op {
            RequestOp::Flush if !self.facts.flush || self.config.read_only => {
                return Begin::Done(Ok(IoOutput::Nothing));
            }
            RequestOp::Flush => (0, 0),
            // A trim is a hint: parts of blocks at its ends are left out.
            RequestOp::Trim => {
                let (from, to) = (offset.next_multiple_of(block), (offset + length) / block * block);
                if from >= to {
                    return Begin::Done(Ok(IoOutput::Nothing));
                }
                (from, to)
            }
            _ => (offset / block * block, (offset + length).next_multiple_of(block)),
        };
        let is_whole = (from, to) == (offset, offset + length);
        let replaces_parts = !is_whole && matches!(op, RequestOp::Write | RequestOp::Zero { .. });
        let request = Request {
            step: if replaces_parts { Step::Load } else { Step::Whole },
            ..Request::new(Purpose::Host { io }, op, (from, to), now_ns)
        };
        self.requests.add(Request {
            asked: (offset, length),
            is_durable: durable,
            data: data.map(std::sync::Arc::new),
            ..request
        });
        Begin::Pending
    }

    /// Takes the I/O that ended.
    pub fn take_ended(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
    }

    /// Processes an event of a connection of this remote.
    pub fn event<E: Engine>(&mut self, engine: &mut E, event: Event, now_ns: u64) {
        self.now_ns = now_ns;
        match event {
            Event::Connected { tag, result } => self.connected(engine, tag, result),
            Event::Received { conn, buffer, len } => self.received(engine, conn, &buffer[..len]),
            Event::Filled { conn, buffer, filled } => self.filled(engine, conn, buffer, filled),
            Event::Sent { conn, message } => {
                let slot = self.slots.of(conn);
                if let Some(connection) = slot.and_then(|slot| self.slots.open_mut(slot)) {
                    connection.sent(message);
                }
            }
            Event::Broken { conn } => {
                if let Some(slot) = self.slots.of(conn) {
                    self.lose(engine, slot, "the connection broke");
                }
            }
            Event::Accepted { .. } | Event::Done { .. } | Event::Signal(_) => {}
        }
    }

    /// Returns the time in ns of the next call of [`Remote::advance`], unless an event comes first.
    pub fn next_wake_ns(&self) -> Option<u64> {
        let expiry = self.requests.oldest_ns().map(|since_ns| since_ns.saturating_add(self.config.timeout_ns));
        [expiry, self.slots.next_wake_ns()].into_iter().flatten().min()
    }

    /// Does what is due: fails requests whose time is over, and connects again.
    pub fn advance<E: Engine>(&mut self, engine: &mut E, now_ns: u64) {
        self.now_ns = now_ns;
        self.expire(engine);
        self.keep_connected(engine);
    }

    /// Fails the requests whose time is over, and loses the connections that did not reply to them.
    fn expire<E: Engine>(&mut self, engine: &mut E) {
        let Some(limit_ns) = self.now_ns.checked_sub(self.config.timeout_ns) else { return };
        if self.requests.oldest_ns().is_none_or(|since_ns| since_ns > limit_ns) {
            return;
        }
        for slot in self.requests.slots_of_expired(limit_ns) {
            self.lose(engine, slot, "no reply in time");
        }
        for request in self.requests.take_expired(limit_ns) {
            if let Purpose::Host { io } = request.purpose {
                self.ended.push(Ended { io, result: Err(IoError::Io), cause: Cause::NoReply });
            }
        }
    }

    /// Sends the waiting requests that may be sent.
    pub fn send_waiting<E: Engine>(&mut self, engine: &mut E) {
        self.continue_recovery();
        self.flush_full_journal();
        let mut at = 0;
        while let Some(number) = self.requests.waiting_from(at) {
            at = number + 1;
            if !self.may_send(number) {
                continue;
            }
            let Some(slot) = self.slots.least_busy() else { break };
            self.send_request(number, slot);
        }
        self.slots.send_output(engine);
    }

    /// Returns true if no other request has to end before this one is sent.
    fn may_send(&self, number: u64) -> bool {
        let Some(request) = self.requests.get(number) else { return false };
        if request.purpose == Purpose::Replay {
            return !self.requests.is_blocked(number) || self.sabotage == Sabotage::ReversesJournal;
        }
        if self.recovery != Recovery::None {
            return self.sabotage == Sabotage::ReadsEarly && request.op == RequestOp::Read;
        }
        if !request.op.writes() {
            return true;
        }
        !self.journal.is_full() && (!self.requests.is_blocked(number) || self.sabotage == Sabotage::OverlapsChanges)
    }

    /// Starts to send the journal again when no change is in flight on the remaining connections.
    fn continue_recovery(&mut self) {
        if self.recovery != Recovery::Needed
            || self.slots.least_busy().is_none()
            || self.requests.has_changes_in_flight()
        {
            return;
        }
        let mut changes: Vec<_> = match self.sabotage {
            Sabotage::ForgetsJournal => Vec::new(),
            _ => self.journal.changes().cloned().collect(),
        };
        if self.sabotage == Sabotage::ReversesJournal {
            changes.reverse();
        }
        if !changes.is_empty() {
            tracing::info!(remote = self.name, writes = changes.len(), "unflushed writes are sent again");
        }
        self.recovery = if changes.is_empty() { Recovery::None } else { Recovery::Running { left: changes.len() } };
        for change in changes {
            let mut request = Request::new(Purpose::Replay, change.op, (change.from, change.to), self.now_ns);
            request.data = change.data;
            self.requests.add_replay(request);
        }
    }

    /// Flushes the remote when the journal is half full.
    fn flush_full_journal(&mut self) {
        if self.journal.wants_flush() && !self.requests.has_own_flush() {
            self.requests.add(Request::new(Purpose::OwnFlush, RequestOp::Flush, (0, 0), self.now_ns));
        }
    }

    fn send_request(&mut self, number: u64, slot: usize) {
        let covers = self.journal.last();
        let Some(request) = self.requests.get_mut(number) else { return };
        request.covers = covers;
        let spec = request.spec(self.facts.fua);
        let data = request.data.clone();
        let Some(connection) = self.slots.open_mut(slot) else { return };
        if let Err(error) = connection.request(number, &spec, data.as_ref()) {
            // The range and the abilities were checked: only a fault of this program is left.
            tracing::error!(remote = self.name, %error, ?spec, "a request cannot be expressed");
            if let Some(Request { purpose: Purpose::Host { io }, .. }) = self.requests.remove(number) {
                self.ended.push(Ended { io, result: Err(IoError::Io), cause: Cause::Refused });
            }
            return;
        }
        self.requests.set_sent(number, slot);
    }
}
