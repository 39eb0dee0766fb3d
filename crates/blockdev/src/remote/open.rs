//! The first connection to a remote export, at the start of the server.

use hoistway_config::RemoteConfig;
use hoistway_nbd::client::{Session, Status};
use hoistway_nbd::wire::Errno;
use hoistway_qos::LogRateLimiter;
use hoistway_reactor::{ConnId, Engine, Event, Signal};

use super::connection::{Connection, ReplySink};
use super::error::RemoteError;
use super::journal::Journal;
use super::requests::Requests;
use super::slots::{HANDSHAKE_NS_MAX, Slots, endpoint, handshake};
use super::tls::RemoteTls;
use super::{Facts, PAYLOAD_BYTES, Recovery, Remote, Sabotage};
use crate::ids::DeviceId;

/// Takes no replies, because no requests were sent.
struct NoReplies;

impl ReplySink for NoReplies {
    fn data(&mut self, _: u64, _: u64, _: &[u8]) {}
    fn hole(&mut self, _: u64, _: u64, _: u64) {}
    fn extents(&mut self, _: u64, _: Vec<Status>) {}
    fn done(&mut self, _: u64, _: Result<(), Errno>) {}
}

impl Remote {
    /// Connects to the server and enters the export. The tags of later attempts to connect contain
    /// `device`.
    ///
    /// The engine must have no other connections: their events would be lost.
    ///
    /// # Errors
    /// The server cannot be reached or refuses the export, or the export cannot be used.
    pub fn open<E: Engine>(device: DeviceId, config: &RemoteConfig, engine: &mut E) -> Result<Remote, RemoteError> {
        let tls = config.tls.as_ref().map(RemoteTls::read).transpose()?;
        let timeout_ns = config.timeout_ns.min(HANDSHAKE_NS_MAX);
        let deadline_ns = engine.now_ns().saturating_add(timeout_ns);
        engine.connect(0, endpoint(&config.uri), timeout_ns);
        let mut connection = None;
        let entered = loop {
            match enter(config, tls.as_ref(), engine, deadline_ns, &mut connection) {
                Ok(false) if engine.now_ns() >= deadline_ns => break Err(RemoteError::TimedOut(timeout_ns)),
                Ok(false) => {}
                Ok(true) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let usable = entered.and_then(|()| {
            let facts = connection.as_ref().and_then(Connection::session).map(Facts::of).ok_or(RemoteError::Closed)?;
            facts.check(config.read_only).map(|()| facts)
        });
        let (facts, connection) = match (usable, connection) {
            (Ok(facts), Some(connection)) => (facts, connection),
            (usable, connection) => {
                if let Some(connection) = connection {
                    engine.close(connection.id);
                }
                return Err(usable.err().unwrap_or(RemoteError::Closed));
            }
        };
        let mut slots = Slots::new(device, connection);
        if facts.multi_conn {
            slots.grow(config.connections as usize);
        }
        let name = config.uri.to_string();
        if facts.size < facts.bytes {
            let unused = facts.bytes - facts.size;
            tracing::warn!(remote = name, unused, "the last bytes are no whole block: they are not used");
        }
        Ok(Remote {
            config: config.clone(),
            name,
            tls,
            facts,
            slots,
            requests: Requests::new(),
            journal: Journal::new(config.unflushed_bytes),
            recovery: Recovery::None,
            loss: None,
            ended: Vec::new(),
            now_ns: engine.now_ns(),
            loss_limiter: LogRateLimiter::new(),
            sabotage: Sabotage::None,
        })
    }
}

/// Waits for the next events of the first connection. Returns true when its handshake is over, and
/// no event of it is left.
fn enter<E: Engine>(
    config: &RemoteConfig,
    tls: Option<&RemoteTls>,
    engine: &mut E,
    deadline_ns: u64,
    connection: &mut Option<Connection>,
) -> Result<bool, RemoteError> {
    let mut events = Vec::new();
    engine.turn(Some(deadline_ns), &mut events).map_err(RemoteError::Engine)?;
    for event in events {
        match (event, &mut *connection) {
            (Event::Connected { tag: 0, result }, _) => {
                let conn: ConnId = result.map_err(RemoteError::Connect)?;
                engine.receive(conn);
                *connection = Some(Connection::new(conn, handshake(&config.uri), tls.cloned(), engine.now_ns()));
            }
            (Event::Received { len: 0, .. } | Event::Broken { .. }, _) => return Err(RemoteError::Closed),
            (Event::Received { buffer, len, .. }, Some(connection)) => {
                let is_over = connection.receive(&buffer[..len], &mut NoReplies)?;
                // After the handshake the receive waits for the first turn of the server, so that
                // other devices can be opened meanwhile.
                if !is_over {
                    engine.receive(connection.id);
                }
            }
            (Event::Sent { message, .. }, Some(connection)) => connection.sent(message),
            (Event::Signal(Signal::Terminate), _) => {
                return Err(RemoteError::Engine(std::io::ErrorKind::Interrupted.into()));
            }
            _ => {}
        }
    }
    let Some(connection) = connection else { return Ok(false) };
    if let Some(message) = connection.next_message() {
        engine.send(connection.id, message);
    }
    Ok(connection.is_ready() && !connection.is_sending())
}

impl Facts {
    /// Returns the properties of the export of a session.
    pub fn of(session: &Session) -> Facts {
        let can = session.abilities();
        let (block_min, payload_max) = session.size_limits();
        let block_min = block_min.max(1);
        let preferred = session.info.block_sizes.map_or(4096, |(_, preferred, _)| preferred);
        Facts {
            bytes: session.info.size,
            size: session.info.size / u64::from(block_min) * u64::from(block_min),
            read_only: can.read_only,
            flush: can.flush,
            fua: can.fua,
            rotational: can.rotational,
            trim: can.trim,
            write_zeroes: can.write_zeroes,
            multi_conn: can.multi_conn,
            cache: can.cache,
            block_status: can.block_status,
            block_min,
            block_preferred: preferred.clamp(512, PAYLOAD_BYTES),
            payload_max: payload_max.min(PAYLOAD_BYTES),
        }
    }

    /// Checks that the export can be used.
    fn check(&self, read_only: bool) -> Result<(), RemoteError> {
        if self.size == 0 {
            return Err(RemoteError::Empty { size: self.bytes, block: self.block_min });
        }
        if self.read_only && !read_only {
            return Err(RemoteError::ReadOnly);
        }
        Ok(())
    }

    /// Checks that the export of a new connection can do what that of the first one could.
    ///
    /// # Errors
    /// The difference.
    pub fn check_again(&self, new: &Facts) -> Result<(), String> {
        if new.size < self.size {
            return Err(format!("the remote export had {} bytes and now has {}", self.size, new.size));
        }
        let lost = [
            (self.read_only, new.read_only, "is now read-only"),
            (!self.flush, !new.flush, "no longer supports flush"),
            (!self.fua, !new.fua, "no longer supports FUA"),
            (!self.trim, !new.trim, "no longer supports trim"),
            (!self.write_zeroes, !new.write_zeroes, "no longer supports writing zeroes"),
            (!self.cache, !new.cache, "no longer supports reading into a cache"),
            (!self.block_status, !new.block_status, "no longer supports block status"),
        ];
        if let Some((_, _, what)) = lost.iter().find(|(old, new, _)| !old && *new) {
            return Err(format!("the remote export {what}"));
        }
        if new.block_min > self.block_min || new.payload_max < self.payload_max {
            return Err("the block sizes of the remote export have changed".to_owned());
        }
        Ok(())
    }
}
