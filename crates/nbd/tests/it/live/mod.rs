//! Checks of a live server from outside, each with its own connections.
//!
//! The checks write to the first MiB of the export: it must be writable and at least
//! that long. The checks overwrite its data.

use std::fmt::Debug;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use hoistway_nbd::client::{
    Collector, Completion, Goal, Handshake, HandshakeOptions, Progress, ReplyContent, RequestSpec, TlsMode, send_option,
};
use hoistway_nbd::server::Replies;
use hoistway_nbd::uri::{ServerAddress, Uri};
use hoistway_nbd::wire::{Command, CommandFlags, Errno, command_flags as flag, option, rep};

/// A connection to the server.
pub trait Wire: Read + Write + Send {}
impl Wire for UnixStream {}
impl Wire for TcpStream {}

/// A live server.
pub struct Live {
    pub uri: Uri,
}

/// A check: its name and its function. An error is the description of the violation.
pub type Check = (&'static str, fn(&Live) -> Result<(), String>);

/// All checks.
pub const CHECKS: &[Check] = &[
    ("it sends_the_greeting with fixed newstyle and closes on unknown client flags", sends_the_greeting),
    ("it says of unknown options that they are unsupported, and goes on", refuses_unknown_options),
    ("it says of unknown exports that they are unknown, and goes on", refuses_unknown_exports),
    ("it lists the export and acknowledges ABORT", lists),
    ("it refuses options whose lengths do not add up", refuses_malformed_options),
    ("it leaves a client that sends options without end", disconnects_endless_clients),
    ("it survives an option of 4 GiB", survives_huge_options),
    ("it leaves a client that does not speak NBD", disconnects_garbage),
    ("it reads what was written, in every form of replies", reads_back_writes),
    ("it enters by EXPORT_NAME", enters_by_name),
    ("it keeps zeroes, trims, caches and flushes where it offers to", executes_other_commands),
    ("it tells extents that cover what was asked for", reports_extents),
    ("it answers requests beyond the end with ENOSPC for writes and EINVAL else", refuses_beyond_the_end),
    ("it answers unaligned requests with EINVAL", refuses_unaligned),
    ("it answers unknown commands and flags with EINVAL", refuses_unknown),
    ("it stays connected after lengths of 0", survives_empty_requests),
    ("it refuses payloads that are too long, or leaves", refuses_long_payloads),
    ("it leaves on a wrong magic number, and on nothing but that client", disconnects_wrong_magic),
    ("it closes the connection on a disconnect request", closes),
    ("it serves on when clients vanish in the middle of a request", survives_vanished_clients),
    ("it answers many requests under way, each once", answers_many),
    ("it gives a second connection what the first one wrote and flushed", shares_writes),
];

/// Runs all checks and returns the failures.
pub fn run(live: &Live) -> Vec<String> {
    let mut failures = Vec::new();
    for (name, check) in CHECKS {
        match check(live) {
            Ok(()) => eprintln!("ok: {name}"),
            Err(what) => failures.push(format!("{name}: {what}")),
        }
    }
    failures
}

/// A connection in transmission.
struct Peer {
    wire: Box<dyn Wire>,
    client: Collector,
}

const KIB: u64 = 1024;
const FORMS: [Replies; 3] = [Replies::Simple, Replies::Structured, Replies::Extended];

impl Live {
    fn connect(&self) -> Result<Box<dyn Wire>, String> {
        let patience = Some(Duration::from_secs(20));
        match &self.uri.server {
            ServerAddress::Unix { path } => {
                let stream = UnixStream::connect(path).map_err(said)?;
                stream.set_read_timeout(patience).map_err(said)?;
                Ok(Box::new(stream))
            }
            ServerAddress::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).map_err(said)?;
                stream.set_read_timeout(patience).map_err(said)?;
                stream.set_nodelay(true).map_err(said)?;
                Ok(Box::new(stream))
            }
        }
    }

    /// Connects and sends these client flags after the greeting.
    fn greeted(&self, flags: u32) -> Result<Box<dyn Wire>, String> {
        let mut wire = self.connect()?;
        let mut greeting = [0; 18];
        wire.read_exact(&mut greeting).map_err(said)?;
        same(&greeting[..16], &b"NBDMAGICIHAVEOPT"[..])?;
        same(greeting[17] & 1, 1)?;
        wire.write_all(&flags.to_be_bytes()).map_err(said)?;
        Ok(wire)
    }

    fn enter(&self, replies: Replies) -> Result<Peer, String> {
        self.enter_with(self.wants(replies))
    }

    fn wants(&self, replies: Replies) -> HandshakeOptions {
        let export = self.uri.export.clone();
        let contexts = vec!["base:allocation".to_owned()];
        HandshakeOptions { export, tls: TlsMode::Never, replies, contexts, goal: Goal::Enter }
    }

    fn enter_with(&self, wants: HandshakeOptions) -> Result<Peer, String> {
        let mut wire = self.connect()?;
        let mut handshake = Handshake::new(wants);
        loop {
            let mut buffer = [0; 4096];
            let count = wire.read(&mut buffer).map_err(said)?;
            if count == 0 {
                return Err("it closed the connection in the handshake".to_owned());
            }
            let mut out = Vec::new();
            let (used, progress) = handshake.receive(&buffer[..count], &mut out).map_err(said)?;
            wire.write_all(&out).map_err(said)?;
            if let Progress::Ready(session) = progress {
                same(used, count)?;
                return Ok(Peer { wire, client: Collector::new(*session) });
            }
        }
    }
}

impl Peer {
    /// Sends bytes and waits for this number of replies.
    fn exchange(&mut self, bytes: &[u8], answers: usize) -> Result<Vec<Completion>, String> {
        self.wire.write_all(bytes).map_err(said)?;
        let (mut buffer, mut done) = (vec![0; 1 << 16], Vec::new());
        while done.len() < answers {
            let count = self.wire.read(&mut buffer).map_err(said)?;
            if count == 0 {
                return Err("it closed the connection".to_owned());
            }
            self.client.receive(&buffer[..count], &mut done).map_err(said)?;
        }
        Ok(done)
    }

    fn ask(&mut self, command: Command, flags: CommandFlags, offset: u64, length: u64) -> Result<Answer, String> {
        let mut bytes = Vec::new();
        self.client.request(&RequestSpec { command, flags, offset, length }, &[], &mut bytes).map_err(said)?;
        self.exchange(&bytes, 1).map(|mut done| done.remove(0).result)
    }

    fn write(&mut self, flags: CommandFlags, offset: u64, data: &[u8]) -> Result<(), String> {
        let mut bytes = Vec::new();
        self.client
            .request(&RequestSpec { command: Command::Write, flags, offset, length: 0 }, data, &mut bytes)
            .map_err(said)?;
        same(self.exchange(&bytes, 1)?.remove(0).result, Ok(ReplyContent::Nothing))
    }

    /// Sends a request without checks, with the payload that its header announces.
    fn raw(&mut self, command: Command, flags: u16, offset: u64, length: u64) -> Result<Answer, String> {
        let extended = self.client.session.replies == Replies::Extended;
        let carries = command == Command::Write;
        let flags = if extended && carries { flags | flag::PAYLOAD_LEN } else { flags };
        let mut bytes = Vec::new();
        self.client.request_unchecked(command, flags, offset, length, &mut bytes);
        bytes.resize(bytes.len() + if carries { length as usize } else { 0 }, 0x11);
        self.exchange(&bytes, 1).map(|mut done| done.remove(0).result)
    }

    fn refused(&mut self, command: Command, flags: u16, offset: u64, length: u64, wanted: Errno) -> Result<(), String> {
        match self.raw(command, flags, offset, length)? {
            Err((errno, _)) if errno == wanted => Ok(()),
            other => Err(format!("{command:?} {flags:#x} {offset}+{length}: {other:?} where {wanted} belongs")),
        }
    }

    /// Returns a length aligned to the minimum block size.
    fn unit(&self) -> u64 {
        self.client.session.size_limits().0.into()
    }

    fn left(mut self) -> Result<(), String> {
        closed(&mut self.wire)
    }
}

type Answer = Result<ReplyContent, (Errno, String)>;

fn said(error: impl ToString) -> String {
    error.to_string()
}

fn same<T: PartialEq + Debug>(found: T, wanted: T) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{found:.300?} where {wanted:.300?} belongs")) }
}

/// Checks that the server closes the connection, with any output before.
fn closed(wire: &mut Box<dyn Wire>) -> Result<(), String> {
    match io::copy(wire, &mut io::sink()) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(()),
        Err(error) => Err(format!("it does not close the connection: {error}")),
    }
}

/// Returns the types and data of the replies to an option, up to the final one.
fn option_replies(wire: &mut Box<dyn Wire>, option: u32, data: &[u8]) -> Result<Vec<(u32, Vec<u8>)>, String> {
    let mut bytes = Vec::new();
    send_option(option, data, &mut bytes);
    wire.write_all(&bytes).map_err(said)?;
    let mut replies = Vec::new();
    loop {
        let mut header = [0; 20];
        wire.read_exact(&mut header).map_err(said)?;
        let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        same((number(0), number(4), number(8)), (0x0003_e889, 0x0455_65a9, option))?;
        let mut data = vec![0; number(16) as usize];
        wire.read_exact(&mut data).map_err(said)?;
        let kind = number(12);
        replies.push((kind, data));
        if kind == rep::ACK || kind & rep::ERROR_BIT != 0 {
            return Ok(replies);
        }
    }
}

fn last_kind(wire: &mut Box<dyn Wire>, option: u32, data: &[u8]) -> Result<u32, String> {
    Ok(option_replies(wire, option, data)?.last().map_or(0, |(kind, _)| *kind))
}

fn go(name: &str) -> Vec<u8> {
    [&(name.len() as u32).to_be_bytes(), name.as_bytes(), &[0, 0]].concat()
}

fn sends_the_greeting(live: &Live) -> Result<(), String> {
    closed(&mut live.greeted(0x8000_0003)?)?;
    last_kind(&mut live.greeted(3)?, option::ABORT, &[]).and_then(|kind| same(kind, rep::ACK))
}

fn refuses_unknown_options(live: &Live) -> Result<(), String> {
    let mut wire = live.greeted(3)?;
    for (option, bytes) in [(4, 0), (99, 1000), (u32::MAX, 60_000)] {
        same(last_kind(&mut wire, option, &vec![7; bytes])?, rep::ERR_UNSUP)?;
    }
    same(last_kind(&mut wire, option::INFO, &go(&live.uri.export))?, rep::ACK)
}

fn refuses_unknown_exports(live: &Live) -> Result<(), String> {
    let mut wire = live.greeted(3)?;
    for option in [option::INFO, option::GO] {
        same(last_kind(&mut wire, option, &go("certainly-not-there"))?, rep::ERR_UNKNOWN)?;
    }
    same(last_kind(&mut wire, option::INFO, &go(&live.uri.export))?, rep::ACK)?;
    let mut bytes = Vec::new();
    send_option(option::EXPORT_NAME, b"certainly-not-there", &mut bytes);
    wire.write_all(&bytes).map_err(said)?;
    closed(&mut wire)
}

fn lists(live: &Live) -> Result<(), String> {
    let mut wire = live.greeted(3)?;
    let replies = option_replies(&mut wire, option::LIST, &[])?;
    let name = [&(live.uri.export.len() as u32).to_be_bytes(), live.uri.export.as_bytes()].concat();
    same(replies.iter().any(|(kind, data)| *kind == rep::SERVER && data.starts_with(&name)), true)?;
    same(last_kind(&mut wire, option::LIST, b"x")?, rep::ERR_INVALID)?;
    same(last_kind(&mut wire, option::ABORT, b"with data")?, rep::ACK)?;
    closed(&mut wire)
}

fn refuses_malformed_options(live: &Live) -> Result<(), String> {
    let mut wire = live.greeted(3)?;
    let mut beyond = go(&live.uri.export);
    beyond[..4].copy_from_slice(&u32::MAX.to_be_bytes());
    for option in [option::INFO, option::GO] {
        for data in [&beyond[..], &[], &[0, 0, 0, 0, 0, 9]] {
            same(last_kind(&mut wire, option, data)?, rep::ERR_INVALID)?;
        }
    }
    same(last_kind(&mut wire, option::SET_META_CONTEXT, &[0; 8])?, rep::ERR_INVALID)?;
    same(last_kind(&mut wire, option::INFO, &go(&live.uri.export))?, rep::ACK)
}

fn disconnects_endless_clients(live: &Live) -> Result<(), String> {
    let mut wire = live.greeted(3)?;
    for _ in 0..100_000 {
        if last_kind(&mut wire, 99, &[]).is_err() {
            return sends_the_greeting(live);
        }
    }
    Err("it answered 100,000 options".to_owned())
}

fn survives_huge_options(live: &Live) -> Result<(), String> {
    for option in [option::GO, option::LIST, option::EXPORT_NAME, 99] {
        let mut wire = live.greeted(3)?;
        let header = [&b"IHAVEOPT"[..], &option.to_be_bytes(), &u32::MAX.to_be_bytes()].concat();
        wire.write_all(&header).map_err(said)?;
        // The server may read a part of the data, but must not wait for 4 GiB.
        let some = vec![0; 1 << 20];
        for _ in 0..64 {
            if wire.write_all(&some).is_err() {
                break;
            }
        }
    }
    sends_the_greeting(live)
}

fn disconnects_garbage(live: &Live) -> Result<(), String> {
    let mut wire = live.connect()?;
    wire.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").map_err(said)?;
    closed(&mut wire)?;
    let mut wire = live.greeted(3)?;
    wire.write_all(&[0x55; 16]).map_err(said)?;
    closed(&mut wire)
}

fn reads_back_writes(live: &Live) -> Result<(), String> {
    for (number, replies) in FORMS.into_iter().enumerate() {
        let mut peer = live.enter(replies)?;
        let unit = peer.unit();
        let data = (0..64 * KIB).map(|at| (at * 7 / 3) as u8 ^ number as u8).collect::<Vec<_>>();
        peer.write(CommandFlags::default(), 64 * KIB, &data)?;
        let fua = peer.client.session.abilities().fua;
        peer.write(CommandFlags { fua, ..CommandFlags::default() }, 64 * KIB, &data[..unit as usize])?;
        for (offset, length) in [(64 * KIB, 64 * KIB), (64 * KIB + unit, unit), (100 * KIB / unit * unit, 3 * unit)] {
            let wanted = &data[(offset - 64 * KIB) as usize..][..length as usize];
            let read = peer.ask(Command::Read, CommandFlags::default(), offset, length)?;
            same(read, Ok(ReplyContent::Data(wanted.to_vec())))?;
        }
        if replies != Replies::Simple && peer.client.session.replies != Replies::Simple {
            let whole = CommandFlags { dont_fragment: true, ..CommandFlags::default() };
            let read = peer.ask(Command::Read, whole, 64 * KIB, 64 * KIB)?;
            same(read, Ok(ReplyContent::Data(data)))?;
        }
    }
    Ok(())
}

fn enters_by_name(live: &Live) -> Result<(), String> {
    let mut peer = live.enter_with(HandshakeOptions { goal: Goal::EnterByName, ..live.wants(Replies::Simple) })?;
    let read = peer.ask(Command::Read, CommandFlags::default(), 0, 64 * KIB)?;
    same(matches!(read, Ok(ReplyContent::Data(_))), true)
}

fn executes_other_commands(live: &Live) -> Result<(), String> {
    for replies in FORMS {
        let mut peer = live.enter(replies)?;
        let can = peer.client.session.abilities();
        peer.write(CommandFlags::default(), 0, &[9; 128 << 10])?;
        let none = CommandFlags::default();
        if can.write_zeroes {
            for flags in [none, CommandFlags { no_hole: true, fua: can.fua, ..none }] {
                peer.write(none, 0, &[9; 64 << 10])?;
                same(peer.ask(Command::WriteZeroes, flags, 0, 64 * KIB)?, Ok(ReplyContent::Nothing))?;
                let read = peer.ask(Command::Read, none, 0, 128 * KIB)?;
                same(read, Ok(ReplyContent::Data([vec![0; 64 << 10], vec![9; 64 << 10]].concat())))?;
            }
            if can.fast_zero {
                let fast = peer.ask(Command::WriteZeroes, CommandFlags { fast_zero: true, ..none }, 0, 64 * KIB)?;
                same(matches!(fast, Ok(ReplyContent::Nothing) | Err((Errno::NotSup, _))), true)?;
            }
        }
        if can.trim {
            same(peer.ask(Command::Trim, none, 0, 64 * KIB)?, Ok(ReplyContent::Nothing))?;
            let read = peer.ask(Command::Read, none, 64 * KIB, 64 * KIB)?;
            same(read, Ok(ReplyContent::Data(vec![9; 64 << 10])))?;
        }
        if can.cache {
            same(peer.ask(Command::Cache, none, 0, 64 * KIB)?, Ok(ReplyContent::Nothing))?;
        }
        if can.flush {
            same(peer.ask(Command::Flush, none, 0, 0)?, Ok(ReplyContent::Nothing))?;
        }
    }
    Ok(())
}

fn reports_extents(live: &Live) -> Result<(), String> {
    for replies in [Replies::Structured, Replies::Extended] {
        let mut peer = live.enter(replies)?;
        if !peer.client.session.abilities().block_status {
            eprintln!("skipped: no metadata context");
            continue;
        }
        peer.write(CommandFlags::default(), 0, &[9; 64 << 10])?;
        for one_extent in [false, true] {
            let flags = CommandFlags { one_extent, ..CommandFlags::default() };
            let (mut at, mut asked) = (0, 0);
            while at < KIB * KIB {
                let Ok(ReplyContent::Extents(reported)) = peer.ask(Command::BlockStatus, flags, at, KIB * KIB - at)?
                else {
                    return Err("no extents".to_owned());
                };
                same(reported.len(), 1)?;
                // Written data do not read as zeroes.
                same(at == 0 && reported[0].1[0].flags & 2 != 0, false)?;
                at += reported[0].1.iter().map(|extent| extent.length).sum::<u64>();
                asked += 1;
                same(asked < 10_000, true)?;
            }
        }
        peer.refused(Command::BlockStatus, 0, u64::MAX - 4095, 4096, Errno::Inval)?;
    }
    Ok(())
}

fn refuses_beyond_the_end(live: &Live) -> Result<(), String> {
    for replies in FORMS {
        let mut peer = live.enter(replies)?;
        let (size, unit) = (peer.client.session.info.size, peer.unit());
        for offset in [size / unit * unit, size - size % unit + unit, u64::MAX / unit * unit] {
            peer.refused(Command::Read, 0, offset, unit, Errno::Inval)?;
            peer.refused(Command::Write, 0, offset, unit, Errno::NoSpc)?;
        }
        let can = peer.client.session.abilities();
        if can.write_zeroes {
            peer.refused(Command::WriteZeroes, 0, size / unit * unit, unit, Errno::NoSpc)?;
        }
        if can.trim {
            peer.refused(Command::Trim, 0, size / unit * unit, unit, Errno::Inval)?;
        }
        if peer.client.session.replies == Replies::Extended {
            peer.refused(Command::Read, 0, 0, u64::MAX / unit * unit, Errno::Inval)?;
        }
    }
    Ok(())
}

fn refuses_unaligned(live: &Live) -> Result<(), String> {
    let mut peer = live.enter(Replies::Structured)?;
    let unit = peer.unit();
    if unit == 1 {
        return Ok(());
    }
    for (offset, length) in [(1, unit), (0, unit + 1), (unit, 1)] {
        peer.refused(Command::Read, 0, offset, length, Errno::Inval)?;
        peer.refused(Command::Write, 0, offset, length, Errno::Inval)?;
    }
    Ok(())
}

fn refuses_unknown(live: &Live) -> Result<(), String> {
    for replies in FORMS {
        let mut peer = live.enter(replies)?;
        for command in [8, 99, 0xffff] {
            peer.refused(Command::Other(command), 0, 0, 4096, Errno::Inval)?;
        }
        for flags in [0x40, 0x8000, flag::NO_HOLE, flag::REQ_ONE] {
            peer.refused(Command::Read, flags, 0, 4096, Errno::Inval)?;
            peer.refused(Command::Write, flags, 0, 4096, Errno::Inval)?;
        }
        if replies == Replies::Simple {
            peer.refused(Command::Read, flag::DF, 0, 4096, Errno::Inval)?;
            peer.refused(Command::BlockStatus, 0, 0, 4096, Errno::Inval)?;
        }
    }
    Ok(())
}

fn survives_empty_requests(live: &Live) -> Result<(), String> {
    for replies in FORMS {
        let mut peer = live.enter(replies)?;
        for command in [Command::Read, Command::Write, Command::Trim, Command::WriteZeroes] {
            // The protocol requires a reply but not its result.
            let _ = peer.raw(command, 0, 0, 0)?;
        }
        let read = peer.ask(Command::Read, CommandFlags::default(), 0, 4096)?;
        same(matches!(read, Ok(ReplyContent::Data(_))), true)?;
    }
    Ok(())
}

fn refuses_long_payloads(live: &Live) -> Result<(), String> {
    for replies in FORMS {
        let mut peer = live.enter(replies)?;
        let most = u64::from(peer.client.session.size_limits().1);
        match peer.raw(Command::Write, 0, 0, most + peer.unit()) {
            Ok(Err((Errno::Inval | Errno::NoSpc, _))) | Err(_) => {}
            Ok(other) => return Err(format!("{other:?}")),
        }
        let mut peer = live.enter(replies)?;
        let mut bytes = Vec::new();
        let flags = if replies == Replies::Extended { flag::PAYLOAD_LEN } else { 0 };
        peer.client.request_unchecked(Command::Write, flags, 0, 0xffff_f000, &mut bytes);
        peer.wire.write_all(&bytes).map_err(said)?;
        if peer.client.session.replies == Replies::Extended {
            peer.left()?;
        }
    }
    sends_the_greeting(live)
}

fn disconnects_wrong_magic(live: &Live) -> Result<(), String> {
    let mut other = live.enter(Replies::Simple)?;
    for replies in FORMS {
        let mut peer = live.enter(replies)?;
        peer.wire.write_all(&[0x77; 64]).map_err(said)?;
        peer.left()?;
    }
    let read = other.ask(Command::Read, CommandFlags::default(), 0, 4096)?;
    same(matches!(read, Ok(ReplyContent::Data(_))), true)
}

fn closes(live: &Live) -> Result<(), String> {
    for replies in FORMS {
        let mut peer = live.enter(replies)?;
        let mut bytes = Vec::new();
        peer.client.session.disconnect(&mut bytes);
        peer.wire.write_all(&bytes).map_err(said)?;
        peer.left()?;
    }
    Ok(())
}

fn survives_vanished_clients(live: &Live) -> Result<(), String> {
    for cut in [1, 10, 28, 29, 5000] {
        for _ in 0..5 {
            let mut peer = live.enter(Replies::Simple)?;
            let mut bytes = Vec::new();
            let none = CommandFlags::default();
            peer.client
                .request(
                    &RequestSpec { command: Command::Write, flags: none, offset: 0, length: 0 },
                    &[1; 8192],
                    &mut bytes,
                )
                .map_err(said)?;
            peer.wire.write_all(&bytes[..cut]).map_err(said)?;
        }
        // The same with replies that the client does not read.
        let mut peer = live.enter(Replies::Structured)?;
        let mut bytes = Vec::new();
        for _ in 0..64 {
            peer.client
                .request(
                    &RequestSpec {
                        command: Command::Read,
                        flags: CommandFlags::default(),
                        offset: 0,
                        length: KIB * KIB,
                    },
                    &[],
                    &mut bytes,
                )
                .map_err(said)?;
        }
        peer.wire.write_all(&bytes).map_err(said)?;
    }
    reads_back_writes(live)
}

fn answers_many(live: &Live) -> Result<(), String> {
    for replies in FORMS {
        let mut peer = live.enter(replies)?;
        for block in 0..16u64 {
            peer.write(CommandFlags::default(), block * 64 * KIB, &vec![block as u8 + 1; 64 << 10])?;
        }
        let mut bytes = Vec::new();
        for number in 0..256u64 {
            let none = CommandFlags::default();
            let asked = peer.client.request(
                &RequestSpec { command: Command::Read, flags: none, offset: number % 16 * 64 * KIB, length: 4096 },
                &[],
                &mut bytes,
            );
            asked.map_err(said)?;
        }
        for done in peer.exchange(&bytes, 256)? {
            let block = done.offset / (64 * KIB);
            same(done.result, Ok(ReplyContent::Data(vec![block as u8 + 1; 4096])))?;
        }
        same(peer.client.session.in_flight(), 0)?;
    }
    Ok(())
}

fn shares_writes(live: &Live) -> Result<(), String> {
    let (mut first, mut second) = (live.enter(Replies::Structured)?, live.enter(Replies::Simple)?);
    if !first.client.session.abilities().multi_conn {
        eprintln!("skipped: no multi-conn");
        return Ok(());
    }
    for round in 0..8u8 {
        first.write(CommandFlags::default(), 0, &[round; 4096])?;
        same(first.ask(Command::Flush, CommandFlags::default(), 0, 0)?, Ok(ReplyContent::Nothing))?;
        let read = second.ask(Command::Read, CommandFlags::default(), 0, 4096)?;
        same(read, Ok(ReplyContent::Data(vec![round; 4096])))?;
    }
    Ok(())
}
