//! Executes requests on an NBD server. Each process has a connection, so that a server that divides
//! its disk among clients can tell them apart. All due requests are in flight.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use hoistway_nbd::client::{
    Collector, Completion, Goal, Handshake, HandshakeOptions, Progress, RequestSpec, Session, TlsMode,
};
use hoistway_nbd::server::Replies;
use hoistway_nbd::uri::{ServerAddress, Uri};
use hoistway_nbd::wire::{Command, CommandFlags};

use super::on_device::pattern;
use super::request::{PlannedRequest, RequestKind};
use super::{ReplayError, ReplayTarget};
use hoistway_reactor::{ConnId, Engine, Event, Message, Part};

/// The timeout of each step of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest number of connections; further processes share them.
pub const CONNECTIONS_MAX: usize = 16;

/// An export of an NBD server as the target of a replay.
pub struct NbdTarget {
    name: String,
    /// The first connection; there is at least one.
    first: Connection,
    others: Vec<Connection>,
    /// The number of outstanding pieces and the first error, by request.
    pieces: HashMap<u32, (u32, Option<String>)>,
    done: Vec<(u32, Option<String>)>,
    pattern: Vec<u8>,
}

struct Connection {
    conn: ConnId,
    collector: Collector,
    /// The bytes to send, and whether a message is being sent: one at a time.
    out: Vec<u8>,
    is_sending: bool,
    /// The request of each cookie.
    requests_by_cookie: HashMap<u64, u32>,
}

impl NbdTarget {
    /// Connects to the export: one connection per process, up to 16, if flushes on the server cover
    /// the writes of all connections; else one.
    ///
    /// # Errors
    /// The server cannot be reached, requires TLS, or refuses.
    pub fn connect<E: Engine>(uri: &Uri, processes: usize, engine: &mut E) -> Result<NbdTarget, ReplayError> {
        let name = uri.to_string();
        let error = |what: String| ReplayError::ReplayTarget { target: name.clone(), what };
        if uri.tls {
            return Err(error("a replay does not support TLS: use nbd:// or nbd+unix://".to_owned()));
        }
        let (first, early) = Connection::open(uri, engine).map_err(error)?;
        let shared = first.collector.session.abilities().multi_conn;
        let count = if shared { processes.clamp(1, CONNECTIONS_MAX) } else { 1 };
        let (done, pieces) = (Vec::new(), HashMap::new());
        let mut target = NbdTarget { name: name.clone(), first, others: Vec::new(), pieces, done, pattern: pattern() };
        target.process_bytes(0, &early)?;
        for place in 1..count {
            let (connection, early) = Connection::open(uri, engine).map_err(error)?;
            target.others.push(connection);
            target.process_bytes(place, &early)?;
        }
        Ok(target)
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        1 + self.others.len()
    }

    /// Returns the size of the export in bytes.
    pub fn size(&self) -> u64 {
        self.session().info.size
    }

    /// Returns true if writes are refused.
    pub fn is_read_only(&self) -> bool {
        self.session().abilities().read_only
    }

    /// Returns true if trim is supported.
    pub fn can_discard(&self) -> bool {
        self.session().abilities().trim
    }

    /// Returns true if flush is supported.
    pub fn can_flush(&self) -> bool {
        self.session().abilities().flush
    }

    /// Returns the smallest alignment of offsets and lengths in bytes.
    pub fn block_min(&self) -> u32 {
        self.session().size_limits().0
    }

    /// Disconnects from the server.
    pub fn leave<E: Engine>(mut self, engine: &mut E) {
        for connection in std::iter::once(&mut self.first).chain(&mut self.others) {
            connection.collector.session.disconnect(&mut connection.out);
            connection.send(engine);
        }
        let now_ns = engine.now_ns();
        // The result of the last transfer does not matter.
        let _ = engine.turn(Some(now_ns), &mut Vec::new());
        std::iter::once(&self.first).chain(&self.others).for_each(|connection| engine.close(connection.conn));
    }

    fn session(&self) -> &Session {
        &self.first.collector.session
    }

    /// Returns a connection by index, modulo their number.
    fn connection(&mut self, place: usize) -> &mut Connection {
        match place % (1 + self.others.len()) {
            0 => &mut self.first,
            place => self.others.get_mut(place - 1).unwrap_or(&mut self.first),
        }
    }

    fn send_command(
        &mut self,
        place: usize,
        index: u32,
        command: Command,
        flags: CommandFlags,
        offset: u64,
        length: u64,
    ) {
        let mut data = Vec::new();
        if command == Command::Write {
            data.reserve(length as usize);
            let mut from = (index as usize).wrapping_mul(8_209) % (self.pattern.len() / 2);
            while (data.len() as u64) < length {
                let rest = self.pattern.get(from..).unwrap_or_default();
                let len = rest.len().min(length as usize - data.len());
                data.extend_from_slice(&rest[..len]);
                from = 0;
            }
        }
        let connection = self.connection(place);
        let requests_by_cookie =
            connection.collector.request(&RequestSpec { command, flags, offset, length }, &data, &mut connection.out);
        match requests_by_cookie {
            Ok(cookie) => {
                connection.requests_by_cookie.insert(cookie, index);
            }
            Err(misuse) => self.complete_piece(index, Some(misuse.to_string())),
        }
    }

    /// Processes the reply to a piece of a request.
    fn complete_piece(&mut self, index: u32, error: Option<String>) {
        let Some((left, first)) = self.pieces.get_mut(&index) else { return };
        *left = left.saturating_sub(1);
        if first.is_none() {
            *first = error;
        }
        if *left == 0
            && let Some((_, error)) = self.pieces.remove(&index)
        {
            self.done.push((index, error));
        }
    }

    fn process_bytes(&mut self, place: usize, bytes: &[u8]) -> Result<(), ReplayError> {
        let mut completions: Vec<Completion> = Vec::new();
        let connection = self.connection(place);
        let broken = connection.collector.receive(bytes, &mut completions);
        for completion in completions {
            let Some(index) = self.connection(place).requests_by_cookie.remove(&completion.cookie) else { continue };
            let error = completion.result.err().map(|(errno, text)| format!("{errno} {text}").trim_end().to_owned());
            self.complete_piece(index, error);
        }
        broken.map_err(|broken| self.error(format!("the server violates the protocol: {broken}")))
    }

    fn place_of(&self, conn: ConnId) -> Option<usize> {
        let mut all = std::iter::once(&self.first).chain(&self.others);
        all.position(|connection| connection.conn == conn)
    }

    fn error(&self, what: String) -> ReplayError {
        ReplayError::ReplayTarget { target: self.name.clone(), what }
    }
}

impl Connection {
    /// Connects and negotiates; also returns bytes that followed the handshake.
    fn open<E: Engine>(uri: &Uri, engine: &mut E) -> Result<(Connection, Vec<u8>), String> {
        let refused = |error: io::Error| format!("cannot connect: {error}");
        let wants = HandshakeOptions {
            export: uri.export.clone(),
            tls: TlsMode::Never,
            replies: Replies::Structured,
            contexts: Vec::new(),
            goal: Goal::Enter,
        };
        let (entered, socket): (Result<(Session, Vec<u8>), String>, OwnedFd) = match &uri.server {
            ServerAddress::Unix { path } => {
                let mut stream = UnixStream::connect(path).map_err(refused)?;
                stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT)).map_err(refused)?;
                (handshake(&mut stream, wants), stream.into())
            }
            ServerAddress::Tcp { host, port } => {
                let mut stream = TcpStream::connect((host.as_str(), *port)).map_err(refused)?;
                stream.set_nodelay(true).map_err(refused)?;
                stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT)).map_err(refused)?;
                (handshake(&mut stream, wants), stream.into())
            }
        };
        let (session, early) = entered?;
        let conn = engine.adopt(socket);
        engine.receive(conn);
        let collector = Collector::new(session);
        Ok((
            Connection { conn, collector, out: Vec::new(), is_sending: false, requests_by_cookie: HashMap::new() },
            early,
        ))
    }

    fn send<E: Engine>(&mut self, engine: &mut E) {
        if self.is_sending || self.out.is_empty() {
            return;
        }
        let head = std::mem::take(&mut self.out);
        let parts = vec![Part::Head { len: head.len() }];
        engine.send(self.conn, Message { head, parts });
        self.is_sending = true;
    }
}

impl<E: Engine> ReplayTarget<E> for NbdTarget {
    fn submit(&mut self, _: &mut E, _: u64, index: u32, request: &PlannedRequest) {
        let place = request.process as usize;
        let fua = request.durable && self.session().abilities().fua && request.kind != RequestKind::Read;
        let flags = CommandFlags { fua, ..CommandFlags::default() };
        let (min, most) = self.session().size_limits();
        let (command, piece_max) = match request.kind {
            RequestKind::Flush => {
                self.pieces.insert(index, (1, None));
                return self.send_command(place, index, Command::Flush, CommandFlags::default(), 0, 0);
            }
            RequestKind::Read => (Command::Read, most - most % min.max(1)),
            RequestKind::Write => (Command::Write, most - most % min.max(1)),
            RequestKind::Discard => (Command::Trim, u32::MAX - u32::MAX % min.max(1)),
        };
        let (piece_max, bytes) = (u64::from(piece_max.max(1)), u64::from(request.bytes));
        let count = bytes.div_ceil(piece_max).max(1);
        self.pieces.insert(index, (u32::try_from(count).unwrap_or(u32::MAX), None));
        for piece in 0..count {
            let from = piece * piece_max;
            self.send_command(place, index, command, flags, request.offset + from, (bytes - from).min(piece_max));
        }
    }

    fn run(&mut self, engine: &mut E, _: u64, done: &mut Vec<(u32, Option<String>)>) {
        self.first.send(engine);
        self.others.iter_mut().for_each(|connection| connection.send(engine));
        done.append(&mut self.done);
    }

    fn wake_ns(&self) -> Option<u64> {
        None
    }

    fn take(&mut self, engine: &mut E, event: Event, _: u64) -> Result<(), ReplayError> {
        let (Event::Received { conn, .. } | Event::Sent { conn, .. } | Event::Broken { conn }) = &event else {
            return Ok(());
        };
        let conn = *conn;
        let Some(place) = self.place_of(conn) else { return Ok(()) };
        match event {
            Event::Received { len: 0, .. } => Err(self.error("the server has closed the connection".to_owned())),
            Event::Received { buffer, len, .. } => {
                self.process_bytes(place, buffer.get(..len).unwrap_or_default())?;
                engine.receive(conn);
                Ok(())
            }
            Event::Sent { message, .. } => {
                let connection = self.connection(place);
                connection.is_sending = false;
                if connection.out.is_empty() {
                    // The buffer is reused.
                    connection.out = message.head;
                    connection.out.clear();
                }
                Ok(())
            }
            _ => Err(self.error("the connection is broken".to_owned())),
        }
    }
}

/// Negotiates; returns the session and bytes that already belong to it.
fn handshake<S: Read + Write>(stream: &mut S, wants: HandshakeOptions) -> Result<(Session, Vec<u8>), String> {
    let mut handshake = Handshake::new(wants);
    let (mut out, mut bytes) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let len = match stream.read(&mut bytes) {
            Ok(0) => return Err("the server has closed the connection".to_owned()),
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(format!("the server did not answer for {} s", HANDSHAKE_TIMEOUT.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        };
        let given = bytes.get(..len).unwrap_or_default();
        let process_bytes = handshake.receive(given, &mut out);
        stream.write_all(&out).map_err(|error| error.to_string())?;
        out.clear();
        match process_bytes.map_err(|failure| failure.to_string())? {
            (_, Progress::More) => {}
            (used, Progress::Ready(session)) => return Ok((*session, given.get(used..).unwrap_or_default().to_vec())),
            (_, Progress::StartTls | Progress::Over(_)) => return Err("the server selected another option".to_owned()),
        }
    }
}
