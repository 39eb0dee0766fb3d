//! Both sides of the protocol in memory, and the invariants for arbitrary bytes. Tests and fuzz
//! targets share this module.

use hoistway_nbd::client::{self, Collector, Completion, ReplyContent};
use hoistway_nbd::server::{Catalogue, Extent, Handshake, Parsed, Progress, Replies, Request, Session, Tls, Violation};
use hoistway_nbd::wire::{Command, Errno};
use hoistway_nbd::{Abilities, Export, Limits};

/// The abilities of an export with every feature.
pub const ALL: Abilities = Abilities {
    read_only: false,
    flush: true,
    fua: true,
    rotational: true,
    trim: true,
    write_zeroes: true,
    fast_zero: true,
    multi_conn: true,
    cache: true,
    block_status: true,
};

/// Returns an export of 1 MiB with every feature and the default sizes of the protocol.
pub fn export(name: &str) -> Export {
    Export {
        name: name.to_owned(),
        description: format!("about {name}"),
        size: 1 << 20,
        abilities: ALL,
        block_min: 1,
        block_preferred: 4096,
        payload_max: 1 << 25,
        tls_only: false,
    }
}

/// The exports of a test.
pub struct Shelf(pub Vec<Export>);

impl Catalogue for Shelf {
    fn list(&self) -> Vec<(String, String)> {
        self.0.iter().map(|export| (export.name.clone(), export.description.clone())).collect()
    }

    fn find(&self, name: &str) -> Option<Export> {
        self.0.iter().find(|export| export.name == name).cloned()
    }
}

/// The phase of a [`Server`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Open,
    Aborted,
    Left,
    Violated(Violation),
}

/// A server over memory: the state machines with a minimal backend.
pub struct Server {
    pub shelf: Shelf,
    pub disk: Vec<u8>,
    pub session: Option<Session>,
    pub standing: Standing,
    /// The server splits READs into pieces of this size in bytes; pieces of zeroes become holes
    /// (not with simple replies or DF).
    pub piece_bytes: usize,
    /// The offset of an unreadable byte.
    pub bad_byte: Option<u64>,
    handshake: Handshake,
    input: Vec<u8>,
    encrypt: bool,
}

impl Server {
    pub fn new(shelf: Shelf, tls: Tls, limits: Limits, out: &mut Vec<u8>) -> Server {
        let size = shelf.0.iter().map(|export| export.size).max().unwrap_or(0).min(1 << 24);
        Server {
            shelf,
            disk: vec![0; size as usize],
            session: None,
            standing: Standing::Open,
            piece_bytes: usize::MAX,
            bad_byte: None,
            handshake: Handshake::new(tls, limits, out),
            input: Vec::new(),
            encrypt: false,
        }
    }

    /// Starts a shutdown.
    pub fn shut_down(&mut self) {
        self.handshake.shut_down();
    }

    pub fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if std::mem::take(&mut self.encrypt) {
            self.handshake.encrypted();
        }
        if self.session.is_some() {
            self.input.extend_from_slice(bytes);
            return self.serve(out);
        }
        let (used, progress) = self.handshake.receive(bytes, &self.shelf, out);
        match progress {
            Progress::More => assert_eq!(used, bytes.len()),
            Progress::StartTls => {
                assert_eq!(used, bytes.len());
                self.encrypt = true;
            }
            Progress::Ready(session) => {
                self.session = Some(*session);
                self.input.extend_from_slice(&bytes[used..]);
                self.serve(out);
            }
            Progress::Aborted => self.standing = Standing::Aborted,
            Progress::Violated(violation) => self.standing = Standing::Violated(violation),
        }
    }

    fn serve(&mut self, out: &mut Vec<u8>) {
        let session = self.session.take().expect("a session");
        let mut at = 0;
        while self.standing == Standing::Open {
            match session.parse(&self.input[at..]) {
                Parsed::Need(bytes) => {
                    assert!(self.input.len() - at < bytes);
                    break;
                }
                Parsed::Violated(violation) => self.standing = Standing::Violated(violation),
                Parsed::Request(request, header) => {
                    let whole = at + header + request.payload_bytes as usize;
                    let Some(payload) = self.input.get(at + header..whole).map(<[u8]>::to_vec) else { break };
                    at = whole;
                    if request.command == Command::Disconnect {
                        self.standing = Standing::Left;
                    } else {
                        self.carry_out(&session, &request, &payload, out);
                    }
                }
            }
        }
        self.input.drain(..at);
        self.session = Some(session);
    }

    fn carry_out(&mut self, session: &Session, request: &Request, payload: &[u8], out: &mut Vec<u8>) {
        if let Some((errno, text)) = request.refused {
            return session.error(request, errno, text, out);
        }
        check_accepted(session, request);
        let range = request.offset as usize..(request.offset + request.length) as usize;
        match request.command {
            Command::Read => self.read(session, request, out),
            Command::Write => {
                self.disk[range].copy_from_slice(payload);
                session.ok(request, out);
            }
            Command::WriteZeroes if request.flags.fast_zero => {
                session.error(request, Errno::NotSup, "no faster than writing", out);
            }
            Command::WriteZeroes | Command::Trim => {
                self.disk[range].fill(0);
                session.ok(request, out);
            }
            Command::BlockStatus => {
                let extents = self.extents(request.offset as usize);
                session.block_status(request, &extents, out);
            }
            _ => session.ok(request, out),
        }
    }

    fn read(&mut self, session: &Session, request: &Request, out: &mut Vec<u8>) {
        let (start, end) = (request.offset, request.offset + request.length);
        let bad = self.bad_byte.filter(|bad| (start..end).contains(bad));
        let pieces = self.piece_bytes as u64;
        if session.replies == Replies::Simple || request.flags.dont_fragment || pieces >= request.length {
            if let Some(bad) = bad {
                return session.error_at(request, Errno::Io, bad, "a bad sector", true, out);
            }
            session.data(request, out);
            out.extend_from_slice(&self.disk[start as usize..end as usize]);
            return;
        }
        let mut at = start;
        while at < end {
            let length = pieces.min(end - at);
            let piece = &self.disk[at as usize..(at + length) as usize];
            let last = at + length == end;
            if let Some(bad) = bad.filter(|bad| (at..at + length).contains(bad)) {
                session.error_at(request, Errno::Io, bad, "a bad sector", last, out);
            } else if piece.iter().all(|byte| *byte == 0) {
                session.hole_chunk(request, at, length as u32, last, out);
            } else {
                session.data_chunk(request, at, length as u32, last, out);
                out.extend_from_slice(piece);
            }
            at += length;
        }
    }

    /// Returns the extents from an offset on. Zero blocks of 4096 bytes are holes.
    pub fn extents(&self, from: usize) -> Vec<Extent> {
        let mut extents = Vec::new();
        let mut at = from;
        while at < self.disk.len() {
            let end = ((at / 4096 + 1) * 4096).min(self.disk.len());
            let zero = self.disk[at..end].iter().all(|byte| *byte == 0);
            extents.push(Extent { length: (end - at) as u64, hole: zero, zero });
            at = end;
        }
        extents
    }
}

/// Checks the properties that a device relies on in a request that was not refused.
fn check_accepted(session: &Session, request: &Request) {
    let export = &session.export;
    assert!(!(export.abilities.read_only && request.command.changes()), "{request:?}");
    assert!(!matches!(request.command, Command::Other(_)), "{request:?}");
    if request.command == Command::Flush {
        return assert_eq!((request.offset, request.length), (0, 0));
    }
    assert!(request.length > 0 && request.offset.checked_add(request.length).unwrap() <= export.size, "{request:?}");
    assert_eq!((request.offset | request.length) % u64::from(export.block_min), 0, "{request:?}");
    if request.command == Command::Write {
        assert_eq!(u64::from(request.payload_bytes), request.length, "{request:?}");
    } else {
        assert_eq!(request.payload_bytes, 0, "{request:?}");
    }
    if matches!(request.command, Command::Read | Command::Write) {
        assert!(request.length <= u64::from(export.payload_max), "{request:?}");
    }
    assert!(request.command != Command::BlockStatus || session.base_allocation);
}

/// A connected client and server.
pub struct Pair {
    pub server: Server,
    pub client: Collector,
}

/// The end of a client's handshake.
#[derive(Debug)]
pub enum Ended {
    Ready(Box<client::Session>),
    Over(client::Findings),
    Failed(client::HandshakeError),
}

/// Runs a handshake to its end.
pub fn shake(wants: client::HandshakeOptions, shelf: Shelf, tls: Tls) -> (Server, Ended) {
    let mut to_client = Vec::new();
    let mut server = Server::new(shelf, tls, Limits::default(), &mut to_client);
    let mut handshake = client::Handshake::new(wants);
    loop {
        assert!(!to_client.is_empty(), "both wait");
        let mut to_server = Vec::new();
        let step = handshake.receive(&std::mem::take(&mut to_client), &mut to_server);
        if let Ok((_, client::Progress::StartTls)) = &step {
            handshake.encrypted(&mut to_server);
        }
        if !to_server.is_empty() {
            server.receive(&to_server, &mut to_client);
        }
        match step {
            Ok((_, client::Progress::Ready(session))) => return (server, Ended::Ready(session)),
            Ok((_, client::Progress::Over(findings))) => return (server, Ended::Over(findings)),
            Ok(_) => {}
            Err(failure) => return (server, Ended::Failed(failure)),
        }
    }
}

/// Returns the options of a client that enters the export "disk" with these replies, and with
/// `base:allocation` if the replies allow it.
pub fn wants(replies: Replies) -> client::HandshakeOptions {
    client::HandshakeOptions {
        export: "disk".to_owned(),
        tls: client::TlsMode::Never,
        replies,
        contexts: vec!["base:allocation".to_owned()],
        goal: client::Goal::Enter,
    }
}

impl Pair {
    /// Creates a client in transmission with the given export "disk".
    pub fn new(replies: Replies, export: Export) -> Pair {
        let (server, ended) = shake(wants(replies), Shelf(vec![export]), Tls::Off);
        let Ended::Ready(session) = ended else { panic!("{ended:?}") };
        assert_eq!(session.replies, replies);
        Pair { server, client: Collector::new(*session) }
    }

    /// Sends bytes and returns the completions.
    pub fn exchange(&mut self, bytes: &[u8]) -> Vec<Completion> {
        let (mut out, mut completions) = (Vec::new(), Vec::new());
        self.server.receive(bytes, &mut out);
        self.client.receive(&out, &mut completions).expect("a server that keeps to the protocol");
        completions
    }

    /// Sends one request without checks, with a payload of this many bytes.
    pub fn unchecked(&mut self, command: Command, flags: u16, offset: u64, length: u64, payload: usize) -> Answer {
        let mut bytes = Vec::new();
        self.client.request_unchecked(command, flags, offset, length, &mut bytes);
        bytes.resize(bytes.len() + payload, 0xa5);
        let mut completions = self.exchange(&bytes);
        assert_eq!(completions.len(), 1, "{completions:?}");
        completions.remove(0).result
    }
}

/// The reply to a request.
pub type Answer = Result<ReplyContent, (Errno, String)>;

/// A small pseudorandom number generator.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit.max(1)
    }
}

/// Cuts bytes to pieces of pseudorandom lengths.
pub fn cut(bytes: &[u8], seed: u64) -> Vec<&[u8]> {
    let mut numbers = Numbers::new(seed);
    let (mut rest, mut pieces) = (bytes, Vec::new());
    while !rest.is_empty() {
        let most = [1, 3, 17, 300, 70_000][numbers.below(5)];
        let (piece, tail) = rest.split_at((1 + numbers.below(most)).min(rest.len()));
        pieces.push(piece);
        rest = tail;
    }
    pieces
}

/// Cuts bytes to single bytes; a long stream to a bounded number of longer pieces.
fn singly(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    stream.chunks(1 + stream.len() / 512)
}

/// The transcript of a handshake: its replies and its end.
#[derive(Debug, PartialEq, Eq)]
pub struct Transcript {
    replies: Vec<u8>,
    ended: String,
}

/// Feeds arbitrary bytes of a client to the handshake. The first byte selects the server, the rest
/// is the stream.
pub fn handshake(bytes: &[u8]) {
    let Some((choice, stream)) = bytes.split_first() else { return };
    let whole = handshake_in([stream].into_iter(), *choice);
    assert_eq!(whole, handshake_in(singly(stream), *choice));
    assert_eq!(whole, handshake_in(cut(stream, stream.len() as u64).into_iter(), *choice));
}

fn handshake_in<'a>(pieces: impl Iterator<Item = &'a [u8]>, choice: u8) -> Transcript {
    let tls = [Tls::Off, Tls::Offered, Tls::Required][usize::from(choice % 3)];
    let small = choice & 0x40 != 0;
    let limits = if small {
        let discarded_bytes_max = 1 << 16;
        let (options_max, option_bytes_max, skipped_bytes_max) = (5, 64, 100);
        let (name_bytes_max, reply_bytes_max) = (8, 200);
        Limits {
            options_max,
            option_bytes_max,
            skipped_bytes_max,
            name_bytes_max,
            reply_bytes_max,
            discarded_bytes_max,
        }
    } else {
        Limits::default()
    };
    let mut secret = export("secret");
    secret.tls_only = true;
    let shelf = Shelf(vec![export(""), export("disk"), secret]);
    let mut replies = Vec::new();
    let mut handshake = Handshake::new(tls, limits, &mut replies);
    let encrypts = choice & 0x80 != 0;
    if encrypts {
        handshake.encrypted();
    }
    let (mut ended, mut rest) = (String::from("open"), 0usize);
    for piece in pieces {
        if ended != "open" {
            rest += piece.len();
            continue;
        }
        let (used, progress) = handshake.receive(piece, &shelf, &mut replies);
        let held = limits.option_bytes_max.max(4096) as usize;
        assert!(handshake.buffered_bytes() <= held, "{} > {held}", handshake.buffered_bytes());
        let replies_max = limits.reply_bytes_max as usize + limits.options_max as usize * 256 + 20_000;
        assert!(replies.len() <= replies_max, "{} bytes of replies", replies.len());
        match progress {
            Progress::More => assert_eq!(used, piece.len()),
            // All further bytes are refused.
            Progress::StartTls => assert_eq!(used, piece.len()),
            Progress::Ready(session) => {
                rest = piece.len() - used;
                ended = format!("{session:?}");
            }
            Progress::Aborted => ended = "aborted".to_owned(),
            Progress::Violated(violation) => ended = format!("{violation:?}"),
        }
    }
    if ended.starts_with("Session") {
        ended = format!("{ended}, {rest} bytes of requests");
    }
    Transcript { replies, ended }
}

/// Returns the export and the form of replies that a byte selects.
fn chosen(choice: u8) -> (Replies, Export) {
    let replies = [Replies::Simple, Replies::Structured, Replies::Extended][usize::from(choice % 3)];
    let mut disk = export("disk");
    disk.size = 1 << 17;
    disk.payload_max = 1 << 16;
    disk.block_min = if choice & 0x10 != 0 { 512 } else { 1 };
    disk.abilities.read_only = choice & 0x20 != 0;
    if choice & 0x40 != 0 {
        disk.abilities = Abilities::default();
    }
    (replies, disk)
}

/// Feeds arbitrary bytes as requests. First unchanged: there is no panic, and the pieces make no
/// difference. Then as a list of valid and invalid requests: each is answered once, as the protocol
/// requires.
pub fn requests(bytes: &[u8]) {
    let Some((choice, stream)) = bytes.split_first() else { return };
    let whole = requests_in([stream].into_iter(), *choice);
    assert_eq!(whole, requests_in(singly(stream), *choice));
    assert_eq!(whole, requests_in(cut(stream, stream.len() as u64).into_iter(), *choice));
    made_requests(stream, *choice);
}

fn requests_in<'a>(pieces: impl Iterator<Item = &'a [u8]>, choice: u8) -> Transcript {
    let (replies, export) = chosen(choice);
    let limits = Limits { discarded_bytes_max: 1 << 17, ..Limits::default() };
    let mut greeting = Vec::new();
    let mut server = Server::new(Shelf(vec![export.clone()]), Tls::Off, limits, &mut greeting);
    let base_allocation = replies != Replies::Simple && export.abilities.block_status;
    server.session = Some(Session { export, replies, base_allocation, limits });
    server.piece_bytes = 1000;
    let mut answers = Vec::new();
    for piece in pieces {
        server.receive(piece, &mut answers);
    }
    Transcript { replies: answers, ended: format!("{:?}", server.standing) }
}

fn made_requests(bytes: &[u8], choice: u8) {
    let (replies, export) = chosen(choice);
    let mut pair = Pair::new(replies, export);
    pair.server.piece_bytes = 700;
    pair.server.bad_byte = Some(77_777);
    for record in bytes.as_chunks::<6>().0.iter().take(100) {
        let [command, flags, offset_low, offset_high, length_low, length_high] = *record;
        let command = Command::from_number(u16::from(command % 10));
        // The range may end beyond the export, both in bytes and in blocks.
        let offset = u64::from(offset_high) * 520 + u64::from(offset_low) * 2;
        let length = u64::from(length_high) * 512 + u64::from(length_low % 4);
        let extended = replies == Replies::Extended;
        let flags = if extended && command == Command::Write { u16::from(flags) | 0x20 } else { u16::from(flags) };
        let payload = if extended { flags & 0x20 != 0 } else { command == Command::Write };
        if command == Command::Disconnect {
            continue;
        }
        let answer = pair.unchecked(command, flags, offset, length, if payload { length as usize } else { 0 });
        match answer {
            Ok(ReplyContent::Data(data)) => assert_eq!(data, pair.server.disk[offset as usize..][..length as usize]),
            Ok(ReplyContent::Extents(extents)) => assert_eq!(extents.len(), 1),
            Ok(ReplyContent::Nothing) => assert!(offset + length <= pair.server.disk.len() as u64),
            Err((errno, text)) => assert!(replies == Replies::Simple || !text.is_empty(), "{errno}"),
        }
        assert_eq!(pair.client.session.in_flight(), 0);
    }
    assert_eq!(pair.server.standing, Standing::Open);
}

/// Feeds arbitrary bytes of a server to the client. The first byte selects the client's options,
/// the rest is the stream.
pub fn client(bytes: &[u8]) {
    let Some((choice, stream)) = bytes.split_first() else { return };
    let run = if choice & 0x80 != 0 { client_handshake_in } else { client_session_in };
    let whole = run(&[stream], *choice);
    assert_eq!(whole, run(&singly(stream).collect::<Vec<_>>(), *choice));
    assert_eq!(whole, run(&cut(stream, stream.len() as u64), *choice));
}

fn client_handshake_in(pieces: &[&[u8]], choice: u8) -> Transcript {
    use client::{Goal, TlsMode};
    let goal = [Goal::Enter, Goal::EnterByName, Goal::Describe, Goal::List][usize::from(choice / 4 % 4)];
    let tls = if choice & 0x10 != 0 { TlsMode::IfOffered } else { TlsMode::Never };
    let mut handshake = client::Handshake::new(client::HandshakeOptions { goal, tls, ..wants(chosen(choice).0) });
    let (mut replies, mut ended) = (Vec::new(), String::from("open"));
    for piece in pieces {
        let mut rest = *piece;
        while ended == "open" {
            match handshake.receive(rest, &mut replies) {
                Ok((used, client::Progress::StartTls)) => {
                    handshake.encrypted(&mut replies);
                    rest = &rest[used..];
                }
                Ok((_, client::Progress::More)) => break,
                Ok((_, client::Progress::Ready(session))) => ended = format!("{:?}", session.info),
                Ok((_, client::Progress::Over(findings))) => ended = format!("{findings:?}"),
                Err(failure) => ended = failure.to_string(),
            }
            assert!(handshake.buffered_bytes() <= 8208, "{}", handshake.buffered_bytes());
        }
    }
    Transcript { replies, ended }
}

fn client_session_in(pieces: &[&[u8]], choice: u8) -> Transcript {
    let (replies, export) = chosen(choice & 0x0f);
    let info =
        client::ExportInfo { size: export.size, flags: export.abilities.flags(true), ..client::ExportInfo::default() };
    let contexts = vec![client::Context { id: 1, name: "base:allocation".to_owned() }];
    let contexts = if replies == Replies::Simple { Vec::new() } else { contexts };
    let mut collector = Collector::new(client::Session::new(info, replies, contexts));
    let mut out = Vec::new();
    // Cookies from 1 on: two reads, the second not to be fragmented; a status, then one of a single
    // extent; two without data.
    for (command, flags, length) in [
        (Command::Read, 0, 64),
        (Command::Read, 4, 64),
        (Command::BlockStatus, 0, 8192),
        (Command::BlockStatus, 8, 8192),
        (Command::Write, 0, 64),
        (Command::Flush, 0, 0),
    ] {
        collector.request_unchecked(command, flags, 0, length, &mut out);
    }
    let (mut completions, mut ended) = (Vec::new(), String::from("open"));
    for piece in pieces {
        if let Err(broken) = collector.receive(piece, &mut completions) {
            ended = broken.to_string();
            break;
        }
        assert!(collector.session.buffered_bytes() <= 8 + 16 * (1 << 20));
    }
    Transcript { replies: format!("{completions:?}").into_bytes(), ended }
}
