//! The connections to the remote: which one a request takes, and connecting again after a loss.

use hoistway_nbd::client::{Goal, Handshake, HandshakeOptions, TlsMode};
use hoistway_nbd::server::Replies;
use hoistway_nbd::uri::{ServerAddress, Uri};
use hoistway_nbd::wire::BASE_ALLOCATION;
use hoistway_reactor::{ConnId, Endpoint, Engine};

use super::connection::{Connection, Stage};
use super::{Facts, Recovery, Remote};
use crate::ids::DeviceId;

/// The longest duration of an attempt to connect, and of a handshake, in ns.
pub(super) const HANDSHAKE_NS_MAX: u64 = 10_000_000_000;
/// The delay before the second attempt to connect in ns; it doubles with each further attempt.
const DELAY_NS: u64 = 100_000_000;
/// The longest delay between two attempts to connect in ns.
const DELAY_NS_MAX: u64 = 5_000_000_000;
/// A connection that lived for this time in ns counts as sound: the next attempt has no delay.
const SOUND_NS: u64 = 1_000_000_000;
/// The number of attempts that the tag of an attempt distinguishes.
const ATTEMPTS: u32 = 1 << 24;

/// The connections of a remote.
#[derive(Debug)]
pub(super) struct Slots {
    pub list: Vec<Slot>,
    /// The device, in the tags of attempts to connect.
    device: DeviceId,
}

/// A connection, or the attempt to have one.
#[derive(Debug)]
pub(super) struct Slot {
    state: SlotState,
    /// The number of failed attempts since the last sound connection.
    failures: u32,
    /// The number of the last attempt.
    attempt: u32,
}

#[derive(Debug)]
enum SlotState {
    /// The next attempt begins at this time in ns.
    Idle {
        retry_ns: u64,
    },
    Connecting,
    Open(Box<Connection>),
}

impl Slots {
    /// Creates the first connection.
    pub fn new(device: DeviceId, first: Connection) -> Slots {
        let first = Slot { state: SlotState::Open(Box::new(first)), failures: 0, attempt: 0 };
        Slots { list: vec![first], device }
    }

    /// Adds connections that are opened by [`Remote::advance`], up to a number.
    pub fn grow(&mut self, count: usize) {
        let idle = || Slot { state: SlotState::Idle { retry_ns: 0 }, failures: 0, attempt: 0 };
        self.list.resize_with(count.max(1), idle);
    }

    fn connection(&self, slot: usize) -> Option<&Connection> {
        match &self.list.get(slot)?.state {
            SlotState::Open(connection) => Some(connection),
            SlotState::Idle { .. } | SlotState::Connecting => None,
        }
    }

    pub fn open_mut(&mut self, slot: usize) -> Option<&mut Connection> {
        match &mut self.list.get_mut(slot)?.state {
            SlotState::Open(connection) => Some(connection),
            SlotState::Idle { .. } | SlotState::Connecting => None,
        }
    }

    /// Returns the slot of a connection.
    pub fn of(&self, conn: ConnId) -> Option<usize> {
        (0..self.list.len()).find(|slot| self.connection(*slot).is_some_and(|connection| connection.id == conn))
    }

    /// Returns the connection with the fewest requests in flight.
    pub fn least_busy(&self) -> Option<usize> {
        let ready = (0..self.list.len()).filter_map(|slot| Some((slot, self.connection(slot)?)));
        let ready = ready.filter(|(_, connection)| connection.is_ready());
        ready.min_by_key(|(_, connection)| connection.in_flight()).map(|(slot, _)| slot)
    }

    /// Sends the output of all connections.
    pub fn send_output<E: Engine>(&mut self, engine: &mut E) {
        for slot in &mut self.list {
            if let SlotState::Open(connection) = &mut slot.state
                && let Some(message) = connection.next_message()
            {
                engine.send(connection.id, message);
            }
        }
    }

    /// Returns the time in ns of the next attempt, or of the end of a handshake.
    pub fn next_wake_ns(&self) -> Option<u64> {
        let wake = |slot: &Slot| match &slot.state {
            SlotState::Idle { retry_ns } => Some(*retry_ns),
            SlotState::Connecting => None,
            SlotState::Open(connection) if !connection.is_receiving => Some(0),
            SlotState::Open(connection) if connection.is_ready() => None,
            SlotState::Open(connection) => Some(connection.since_ns.saturating_add(HANDSHAKE_NS_MAX)),
        };
        self.list.iter().filter_map(wake).min()
    }
}

/// Returns the address of the server of a URI.
pub(super) fn endpoint(uri: &Uri) -> Endpoint {
    match &uri.server {
        ServerAddress::Tcp { host, port } => Endpoint::Tcp { host: host.clone(), port: *port },
        ServerAddress::Unix { path } => Endpoint::Unix(path.into()),
    }
}

/// Starts the handshake for the export of a URI.
pub(super) fn handshake(uri: &Uri) -> Handshake {
    Handshake::new(HandshakeOptions {
        export: uri.export.clone(),
        tls: if uri.tls { TlsMode::Always } else { TlsMode::Never },
        replies: Replies::Extended,
        contexts: vec![BASE_ALLOCATION.to_owned()],
        goal: Goal::Enter,
    })
}

impl Remote {
    /// Connects where no connection is, ends handshakes that take too long, and receives.
    pub(super) fn keep_connected<E: Engine>(&mut self, engine: &mut E) {
        for slot in 0..self.slots.list.len() {
            let device = self.slots.device;
            let entry = &mut self.slots.list[slot];
            match &mut entry.state {
                SlotState::Idle { retry_ns } if *retry_ns <= self.now_ns => {
                    entry.attempt = (entry.attempt + 1) % ATTEMPTS;
                    entry.state = SlotState::Connecting;
                    let tag = device.tag((slot as u32) << 24 | entry.attempt);
                    let timeout_ns = HANDSHAKE_NS_MAX.min(self.config.timeout_ns);
                    engine.connect(tag, endpoint(&self.config.uri), timeout_ns);
                }
                SlotState::Idle { .. } | SlotState::Connecting => {}
                SlotState::Open(connection) => {
                    if !std::mem::replace(&mut connection.is_receiving, true) {
                        engine.receive(connection.id);
                    }
                    let is_late = connection.since_ns.saturating_add(HANDSHAKE_NS_MAX) <= self.now_ns;
                    if is_late && !connection.is_ready() {
                        self.lose(engine, slot, "the handshake took too long");
                    }
                }
            }
        }
    }

    /// Takes the end of an attempt to connect.
    pub(super) fn connected<E: Engine>(&mut self, engine: &mut E, tag: u64, result: std::io::Result<ConnId>) {
        let (slot, attempt) = (((tag >> 24) & 0xff) as usize, tag as u32 % ATTEMPTS);
        let is_current = |entry: &&mut Slot| matches!(entry.state, SlotState::Connecting) && entry.attempt == attempt;
        let Some(entry) = self.slots.list.get_mut(slot).filter(is_current) else {
            if let Ok(conn) = result {
                engine.close(conn);
            }
            return;
        };
        match result {
            Ok(conn) => {
                let mut connection = Connection::new(conn, handshake(&self.config.uri), self.tls.clone(), self.now_ns);
                connection.is_receiving = true;
                engine.receive(conn);
                entry.state = SlotState::Open(Box::new(connection));
            }
            Err(error) => {
                tracing::debug!(remote = self.name, %error, "the remote cannot be reached");
                entry.retry(self.now_ns);
            }
        }
    }

    /// Takes the end of a handshake: the export must be the same as at the start.
    pub(super) fn entered<E: Engine>(&mut self, engine: &mut E, slot: usize) {
        let session = self.slots.connection(slot).and_then(Connection::session);
        let Some(facts) = session.map(Facts::of) else { return };
        if let Err(why) = self.facts.check_again(&facts) {
            if let Some(suppressed) = self.loss_limiter.allow(self.now_ns) {
                tracing::error!(remote = self.name, suppressed, "{why}: restart the server to use it");
            }
            return self.lose(engine, slot, "the export has changed");
        }
        if facts.size != self.facts.size {
            let (size, was) = (facts.size, self.facts.size);
            tracing::warn!(
                remote = self.name,
                size,
                was,
                "the remote export has grown: a restart makes the rest usable"
            );
        }
        tracing::info!(remote = self.name, connection = slot, "connected");
    }

    /// Closes a connection that is lost. Its requests wait to be sent again.
    pub(super) fn lose<E: Engine>(&mut self, engine: &mut E, slot: usize, why: &str) {
        let Some(entry) = self.slots.list.get_mut(slot) else { return };
        let SlotState::Open(connection) = std::mem::replace(&mut entry.state, SlotState::Connecting) else { return };
        engine.close(connection.id);
        if connection.is_ready() && self.now_ns.saturating_sub(connection.since_ns) >= SOUND_NS {
            entry.failures = 0;
        }
        entry.retry(self.now_ns);
        if !matches!(connection.stage, Stage::Ready(_)) {
            tracing::debug!(remote = self.name, connection = slot, why, "no connection");
            return;
        }
        match self.loss_limiter.allow(self.now_ns) {
            Some(suppressed) => {
                let requests = connection.in_flight();
                tracing::warn!(remote = self.name, connection = slot, requests, suppressed, "connection lost: {why}");
            }
            None => tracing::debug!(remote = self.name, connection = slot, why, "connection lost"),
        }
        self.requests.wait_all_of(slot);
        self.requests.remove_waiting_replays();
        // Changes in flight on other connections may have been completed, and then lost.
        let may_lose = self.journal.is_dirty() || (self.facts.flush && self.requests.has_changes_in_flight());
        if !may_lose {
            self.recovery = Recovery::None;
        } else if self.journal.keeps_changes() {
            self.recovery = Recovery::Needed;
            self.requests.make_stale();
        } else {
            self.lose_writes("the connection was lost before they were flushed");
        }
    }
}

impl Slot {
    /// Plans the next attempt.
    fn retry(&mut self, now_ns: u64) {
        let delay_ns = match self.failures {
            0 => 0,
            failures => (DELAY_NS << (failures - 1).min(10)).min(DELAY_NS_MAX),
        };
        self.failures += 1;
        self.state = SlotState::Idle { retry_ns: now_ns.saturating_add(delay_ns) };
    }
}
