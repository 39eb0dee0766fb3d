//! One suite of tests for both engines, with real sockets and files.

mod fuse;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustix::mm::ProtFlags;

use super::*;

const SECOND_NS: u64 = 1_000_000_000;
/// The time after which an event that a test waits for does not come.
const PATIENCE_NS: u64 = 60 * SECOND_NS;

/// An engine under test, and its events.
struct Harness<E: Engine> {
    engine: E,
    events: Vec<Event>,
}

impl<E: Engine> Harness<E> {
    fn new(engine: E) -> Self {
        Harness { engine, events: Vec::new() }
    }

    /// Turns until an event matches, and removes it; the others stay.
    fn until<T>(&mut self, mut find: impl FnMut(&Event) -> bool, take: impl FnOnce(Event) -> T) -> T {
        let end_ns = self.engine.now_ns() + PATIENCE_NS;
        loop {
            if let Some(at) = self.events.iter().position(&mut find) {
                return take(self.events.remove(at));
            }
            assert!(self.engine.now_ns() < end_ns, "no event matches: {:?}", self.events);
            self.engine.turn(Some(end_ns), &mut self.events).expect("a turn");
        }
    }

    fn accepted(&mut self) -> (ConnId, Peer) {
        self.until(
            |event| matches!(event, Event::Accepted { .. }),
            |event| match event {
                Event::Accepted { conn, peer, .. } => (conn, peer),
                _ => unreachable!("the event matches"),
            },
        )
    }

    fn received(&mut self, of: ConnId) -> Vec<u8> {
        self.until(
            |event| matches!(event, Event::Received { conn, .. } if *conn == of),
            |event| match event {
                Event::Received { buffer, len, .. } => buffer[..len].to_vec(),
                _ => unreachable!("the event matches"),
            },
        )
    }

    fn filled(&mut self, of: ConnId) -> (Buffer, usize) {
        self.until(
            |event| matches!(event, Event::Filled { conn, .. } if *conn == of),
            |event| match event {
                Event::Filled { buffer, filled, .. } => (buffer, filled),
                _ => unreachable!("the event matches"),
            },
        )
    }

    fn sent(&mut self, of: ConnId) {
        self.until(|event| matches!(event, Event::Sent { conn, .. } if *conn == of), drop);
    }

    fn done(&mut self, of: u64) -> IoDone {
        self.until(
            |event| matches!(event, Event::Done { tag, .. } if *tag == of),
            |event| match event {
                Event::Done { done, .. } => done,
                _ => unreachable!("the event matches"),
            },
        )
    }

    fn io(&mut self, file: FileId, op: IoOp, offset: u64, length: u64, buffer: Option<Buffer>) -> IoDone {
        self.engine.start(99, Io { file, op, offset, length, buffer });
        self.done(99)
    }

    fn write(&mut self, file: FileId, offset: u64, bytes: &[u8], durable: bool) -> Result<(), i32> {
        let mut buffer = self.engine.buffer(bytes.len());
        buffer[..bytes.len()].copy_from_slice(bytes);
        self.io(file, IoOp::Write { durable }, offset, bytes.len() as u64, Some(buffer)).result
    }

    fn read(&mut self, file: FileId, offset: u64, length: usize) -> Vec<u8> {
        let mut buffer = self.engine.buffer(length);
        buffer.fill(0xee);
        let done = self.io(file, IoOp::Read, offset, length as u64, Some(buffer));
        assert_eq!(done.result, Ok(()));
        done.buffer.expect("the buffer comes back")[..length].to_vec()
    }

    /// Lets the engine release what was closed, until a condition holds. A process that another
    /// test starts has copies of the descriptors of this one until it runs its program.
    fn settle_until(&mut self, failure: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let end_ns = self.engine.now_ns() + PATIENCE_NS;
        self.settle();
        while !holds(self) {
            let now_ns = self.engine.now_ns();
            assert!(now_ns < end_ns, "{failure}");
            self.engine.turn(Some(now_ns + SECOND_NS / 2), &mut self.events).expect("a turn");
            self.settle();
        }
    }

    /// Lets the engine release closed connections.
    fn settle(&mut self) {
        let now_ns = self.engine.now_ns();
        for step in 1..=5 {
            self.engine.turn(Some(now_ns + step * 2_000_000), &mut self.events).expect("a turn");
        }
    }
}

fn options() -> Options {
    Options { signals: false, pool_bytes: 8 << 20, receive_buffers: 8, ..Options::default() }
}

fn head(bytes: &[u8]) -> Message {
    Message { head: bytes.to_vec(), parts: vec![Part::Head { len: bytes.len() }] }
}

fn pair<E: Engine>(harness: &mut Harness<E>) -> (ConnId, UnixStream) {
    let (own, other) = UnixStream::pair().expect("a pair of sockets");
    (harness.engine.adopt(OwnedFd::from(own)), other)
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Pcg64Mcg::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("the descriptors of this process").count()
}

/// Creates a temporary file, on a disk if the temporary directory is on one.
fn temporary_file() -> tempfile::NamedTempFile {
    tempfile::Builder::new().prefix("hoistway-engine").tempfile().expect("a temporary file")
}

fn bytes_are_echoed(mut harness: Harness<impl Engine>) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let id = harness.engine.listen(OwnedFd::from(listener));
    let mut client = UnixStream::connect(&path).expect("a connection");
    let (conn, peer) = harness.accepted();
    assert_eq!(peer.address, Address::Unix);
    let process = peer.process.expect("it is a process of this machine");
    assert_eq!((process.pid, process.uid), (std::process::id(), rustix::process::getuid().as_raw()));
    for round in 0..50u8 {
        client.write_all(&[round; 28]).expect("written");
        harness.engine.receive(conn);
        let bytes = harness.received(conn);
        assert_eq!(bytes, [round; 28]);
        harness.engine.send(conn, head(&bytes));
        harness.sent(conn);
        let mut back = [0; 28];
        client.read_exact(&mut back).expect("read");
        assert_eq!(back, [round; 28]);
    }
    drop(client);
    harness.engine.receive(conn);
    assert!(harness.received(conn).is_empty(), "the end of the stream is a receive of nothing");
    harness.engine.close(conn);
    harness.engine.unlisten(id);
    harness.settle_until("the listener stays open", |_| UnixStream::connect(&path).is_err());
}

fn tcp_clients_are_identified_by_address(mut harness: Harness<impl Engine>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("its address");
    harness.engine.listen(OwnedFd::from(listener));
    let client = TcpStream::connect(address).expect("a connection");
    let (conn, peer) = harness.accepted();
    assert_eq!(peer, Peer { address: Address::Tcp(client.local_addr().expect("an address")), process: None });
    harness.engine.send(conn, head(b"hello"));
    harness.sent(conn);
    harness.engine.close(conn);
    let mut text = String::new();
    (&client).read_to_string(&mut text).expect("what was sent, then the end");
    assert_eq!(text, "hello");
}

/// Connects, and returns the result.
fn connected(harness: &mut Harness<impl Engine>, wanted: u64, to: Endpoint) -> std::io::Result<ConnId> {
    harness.engine.connect(wanted, to, PATIENCE_NS);
    harness.until(
        |event| matches!(event, Event::Connected { tag, .. } if *tag == wanted),
        |event| match event {
            Event::Connected { result, .. } => result,
            _ => unreachable!("the event matches"),
        },
    )
}

/// Connects until nothing listens.
fn until_refused(harness: &mut Harness<impl Engine>, mut to: impl FnMut() -> Endpoint) {
    harness.settle_until("the connection is refused", |harness| match connected(harness, 3, to()) {
        Ok(conn) => {
            harness.engine.close(conn);
            false
        }
        Err(refused) => {
            assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
            true
        }
    });
}

fn unused_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

fn connections_are_opened_and_refused(mut harness: Harness<impl Engine>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let (unix, tcp) = (UnixListener::bind(&path).expect("a socket"), TcpListener::bind("127.0.0.1:0").expect("a port"));
    let port = tcp.local_addr().expect("an address").port();
    let conn = connected(&mut harness, 1, Endpoint::Unix(path.clone())).expect("it listens");
    let (mut peer, _) = unix.accept().expect("a connection");
    harness.engine.send(conn, head(b"unix"));
    harness.sent(conn);
    let mut bytes = [0; 4];
    peer.read_exact(&mut bytes).expect("the bytes arrive");
    assert_eq!(&bytes, b"unix");
    let localhost = |port| Endpoint::Tcp { host: "localhost".to_owned(), port };
    let conn = connected(&mut harness, 2, localhost(port)).expect("it listens");
    let (mut peer, _) = tcp.accept().expect("a connection");
    peer.write_all(b"tcp").expect("it is connected");
    harness.engine.receive(conn);
    assert_eq!(harness.received(conn), b"tcp");
    drop((unix, tcp));
    until_refused(&mut harness, || Endpoint::Unix(path.clone()));
    let mut port = Some(port);
    // Another program may have got the port in the meantime: then another one is tried.
    until_refused(&mut harness, || localhost(port.take().unwrap_or_else(unused_port)));
}

fn messages_of_many_parts_pass_through_small_socket_buffers(mut harness: Harness<impl Engine>) {
    let (conn, mut client) = pair(&mut harness);
    // The smallest that the kernel allows: a message goes in hundreds of pieces.
    let shared_bytes = noise(1, 300_000);
    let region = Region::map(1 << 20, ProtFlags::READ | ProtFlags::WRITE).expect("memory");
    // SAFETY: the region is larger than the bytes and has no other user yet.
    unsafe { std::ptr::copy_nonoverlapping(shared_bytes.as_ptr(), region.start().add(77), shared_bytes.len()) };
    let shared = Arc::new(region).share(77, shared_bytes.len()).expect("the range lies in the region");
    let mut message = Message::default();
    let mut expected = Vec::new();
    for number in 0..3000u32 {
        message.head.extend(number.to_be_bytes());
        message.parts.push(Part::Head { len: 4 });
        expected.extend(number.to_be_bytes());
    }
    let own = noise(2, 100_000);
    let mut buffer = harness.engine.buffer(own.len());
    buffer[..own.len()].copy_from_slice(&own);
    message.parts.push(Part::Buffer { buffer, len: own.len() });
    expected.extend(&own);
    message.parts.push(Part::Head { len: 0 });
    message.parts.push(Part::Shared(shared));
    expected.extend(&shared_bytes);
    rustix::net::sockopt::set_socket_recv_buffer_size(&client, 1).expect("a tiny buffer");
    harness.engine.send(conn, message);
    let reader = std::thread::spawn(move || {
        let mut got = vec![0; expected.len()];
        client.read_exact(&mut got).expect("the whole message");
        assert!(got == expected, "the message is not what was sent");
    });
    harness.sent(conn);
    reader.join().expect("the reader ends well");
}

fn a_receive_into_a_buffer_fills_its_range(mut harness: Harness<impl Engine>) {
    let (conn, mut client) = pair(&mut harness);
    let bytes = noise(3, 400_000);
    let (to_send, expected) = (bytes.clone(), bytes);
    let writer = std::thread::spawn(move || {
        for piece in to_send.chunks(7_777) {
            client.write_all(piece).expect("written");
        }
        client
    });
    let mut buffer = harness.engine.buffer(500_000);
    buffer[..10].fill(9);
    harness.engine.receive_into(conn, buffer, 10, 10 + 399_000);
    let (buffer, filled) = harness.filled(conn);
    assert_eq!(filled, 10 + 399_000);
    assert_eq!(buffer[..10], [9; 10]);
    assert!(buffer[10..filled] == expected[..399_000]);
    // What was not waited for is the next receive's; then the other side ends in the middle.
    drop(writer.join().expect("the writer ends well"));
    harness.engine.receive_into(conn, buffer, 0, 2_000);
    let (buffer, filled) = harness.filled(conn);
    assert_eq!((filled, &buffer[..filled]), (1_000, &expected[399_000..]));
    harness.engine.receive_into(conn, buffer, 5, 5);
    assert_eq!(harness.filled(conn).1, 5);
}

fn a_timer_is_never_early(mut harness: Harness<impl Engine>) {
    harness.engine.turn(Some(0), &mut harness.events).expect("a turn that does not wait");
    let mut random = Pcg64Mcg::seed_from_u64(4);
    for _ in 0..50 {
        let until_ns = clock::now_ns() + random.random_range(1..3_000_000);
        harness.engine.turn(Some(until_ns), &mut harness.events).expect("a turn");
        assert!(harness.engine.now_ns() >= until_ns);
        assert!(harness.events.is_empty());
    }
}

fn a_closed_connection_has_no_events(mut harness: Harness<impl Engine>) {
    for round in 0..200u32 {
        let (conn, mut client) = pair(&mut harness);
        if round % 2 == 0 {
            harness.engine.receive(conn);
        } else {
            let buffer = harness.engine.buffer(4096);
            harness.engine.receive_into(conn, buffer, 0, 4096);
        }
        // The message is larger than the socket buffer.
        let mut message = head(b"x");
        let buffer = harness.engine.buffer(1 << 20);
        message.parts.push(Part::Buffer { len: 1 << 20, buffer });
        harness.engine.send(conn, message);
        if round % 3 == 0 {
            harness.engine.turn(Some(0), &mut harness.events).expect("a turn");
        }
        if round % 5 == 0 {
            client.write_all(b"some").expect("written");
        }
        harness.events.clear();
        harness.engine.close(conn);
        harness.engine.close(conn);
        harness.engine.receive(conn);
        harness.engine.send(conn, head(b"too late"));
        harness.engine.turn(Some(0), &mut harness.events).expect("a turn");
        assert!(harness.events.is_empty(), "{:?}", harness.events);
        // The peer sees the end, whatever was pending.
        client.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("a timeout");
        let mut rest = Vec::new();
        match client.read_to_end(&mut rest) {
            // Unread bytes turn the end of the stream into a reset.
            Err(error) if round % 5 == 0 => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
            end => assert!(end.is_ok(), "{end:?}"),
        }
        assert!(rest.len() <= 1 + (1 << 20));
    }
    harness.settle();
    assert!(harness.events.is_empty(), "{:?}", harness.events);
}

fn a_disconnected_client_is_reported_once(mut harness: Harness<impl Engine>) {
    let (conn, client) = pair(&mut harness);
    drop(client);
    let buffer = harness.engine.buffer(4096);
    harness.engine.send(conn, Message { head: Vec::new(), parts: vec![Part::Buffer { buffer, len: 4096 }] });
    harness.until(|event| matches!(event, Event::Broken { conn: broken } if *broken == conn), drop);
    harness.engine.send(conn, head(b"once more"));
    harness.settle();
    assert!(harness.events.is_empty(), "{:?}", harness.events);
    harness.engine.close(conn);
}

fn thousands_of_connections_leak_nothing(mut harness: Harness<impl Engine>) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    harness.engine.listen(OwnedFd::from(UnixListener::bind(&path).expect("a socket")));
    harness.settle();
    let before = descriptors();
    for round in 0..3_000u32 {
        let mut client = UnixStream::connect(&path).expect("a connection");
        client.write_all(&round.to_be_bytes()).expect("written");
        let (conn, _) = harness.accepted();
        harness.engine.receive(conn);
        assert_eq!(harness.received(conn), round.to_be_bytes());
        assert!(conn.slot < 16, "slots are reused: {conn:?}");
        if round % 2 == 0 {
            harness.engine.receive(conn);
            harness.engine.turn(Some(0), &mut harness.events).expect("a turn");
        }
        harness.engine.close(conn);
    }
    harness.settle();
    assert!(harness.events.is_empty(), "{:?}", harness.events);
    // Concurrent tests of this process open descriptors, too, some of them more than 500 at once.
    harness.settle_until("descriptors stay open", |_| descriptors() < before + 500);
    assert!(harness.events.is_empty(), "{:?}", harness.events);
}

fn hundreds_of_connections_are_served_concurrently(mut harness: Harness<impl Engine>) {
    let mut clients: Vec<(ConnId, UnixStream)> = (0..300).map(|_| pair(&mut harness)).collect();
    for (conn, client) in &mut clients {
        harness.engine.receive(*conn);
        client.write_all(&conn.slot.to_be_bytes()).expect("written");
    }
    // There are only 8 receive buffers.
    for (conn, client) in &mut clients {
        let bytes = harness.received(*conn);
        assert_eq!(bytes, conn.slot.to_be_bytes());
        harness.engine.send(*conn, head(&bytes));
        harness.sent(*conn);
        let mut back = [0; 4];
        client.read_exact(&mut back).expect("read");
        assert_eq!(back, conn.slot.to_be_bytes());
    }
}

fn a_file_is_read_and_written(mut harness: Harness<impl Engine>) {
    let temporary = temporary_file();
    temporary.as_file().set_len(1 << 20).expect("a length");
    let file = harness.engine.open(OwnedFd::from(temporary.reopen().expect("the file again")));
    let bytes = noise(5, 200_000);
    assert_eq!(harness.write(file, 12_345, &bytes, false), Ok(()));
    assert_eq!(harness.write(file, 900_000, &bytes[..1000], true), Ok(()));
    assert!(harness.read(file, 12_345, 200_000) == bytes);
    assert!(harness.read(file, 12_000, 345).iter().all(|byte| *byte == 0));
    let mut there = vec![0; 1000];
    temporary.as_file().read_exact_at(&mut there, 900_000).expect("read");
    assert_eq!(there, bytes[..1000]);
    assert_eq!(harness.io(file, IoOp::Flush, 0, 0, None).result, Ok(()));
    // Buffers longer than a block are allocated.
    let long = noise(6, 3 << 20);
    assert_eq!(harness.write(file, 4096, &long, false), Ok(()));
    assert!(harness.read(file, 4096, 3 << 20) == long);
}

/// Reads 8192 bytes, and returns how many of them were beyond the end of the file.
fn missing(harness: &mut Harness<impl Engine>, file: FileId, offset: u64) -> u64 {
    let buffer = harness.engine.buffer(8192);
    harness.io(file, IoOp::Read, offset, 8192, Some(buffer)).missing
}

fn bytes_beyond_the_end_of_a_file_are_zeroes(mut harness: Harness<impl Engine>) {
    let temporary = temporary_file();
    temporary.as_file().write_all_at(&[7; 5000], 0).expect("written");
    let file = harness.engine.open(OwnedFd::from(temporary.reopen().expect("the file again")));
    let bytes = harness.read(file, 4096, 8192);
    assert!(bytes[..904].iter().all(|byte| *byte == 7));
    assert!(bytes[904..].iter().all(|byte| *byte == 0));
    assert!(harness.read(file, 100_000, 4096).iter().all(|byte| *byte == 0));
    assert_eq!([4096, 0, 100_000].map(|offset| missing(&mut harness, file, offset)), [7288, 3192, 8192]);
    let direct = File::options().read(true).custom_flags(libc::O_DIRECT).open(temporary.path());
    let Ok(direct) = direct else { return eprintln!("skipped: no direct I/O here") };
    let file = harness.engine.open(OwnedFd::from(direct));
    let bytes = harness.read(file, 4096, 8192);
    assert!(bytes[..904].iter().all(|byte| *byte == 7));
    assert!(bytes[904..].iter().all(|byte| *byte == 0));
    assert_eq!(missing(&mut harness, file, 4096), 7288);
}

/// The kernel's io_uring returns the data before the end again, up to the full length of the read.
fn bytes_beyond_the_end_of_an_uncached_file_on_fuse_are_missing(mut harness: Harness<impl Engine>) {
    let Some(mounted) = fuse::Uncached::mount(noise(9, 100_000)) else { return };
    let file = harness.engine.open(OwnedFd::from(mounted.open()));
    assert_eq!(missing(&mut harness, file, 50_000), 0);
    assert!(harness.read(file, 50_000, 8192) == mounted.contents()[50_000..58_192]);
    assert_eq!(harness.write(file, 99_000, &[5; 1000], false), Ok(()));
    // The file shrinks without the kernel's knowledge.
    mounted.contents().truncate(5000);
    assert_eq!([4096, 0, 50_000].map(|offset| missing(&mut harness, file, offset)), [7288, 3192, 8192]);
    let bytes = harness.read(file, 4096, 8192);
    assert!(bytes[..904] == mounted.contents()[4096..] && bytes[904..].iter().all(|byte| *byte == 0));
    // The engine closes its file before the end of the mount.
    drop(harness);
}

fn zeroed_and_trimmed_ranges_read_as_zeroes(mut harness: Harness<impl Engine>) {
    let temporary = temporary_file();
    let file = harness.engine.open(OwnedFd::from(temporary.reopen().expect("the file again")));
    let bytes = noise(7, 1 << 20);
    assert_eq!(harness.write(file, 0, &bytes, false), Ok(()));
    for (op, offset) in
        [(IoOp::Zero { punch: true }, 100), (IoOp::Zero { punch: false }, 300_001), (IoOp::Trim, 2 * 262_144)]
    {
        assert_eq!(harness.io(file, op, offset, 65_536, None).result, Ok(()));
        let around = harness.read(file, offset - 50, 65_536 + 100);
        assert!(around[..50] == bytes[offset as usize - 50..offset as usize]);
        assert!(around[50..50 + 65_536].iter().all(|byte| *byte == 0), "{op:?}");
        assert!(around[50 + 65_536..] == bytes[offset as usize + 65_536..offset as usize + 65_586]);
    }
    assert_eq!(harness.read(file, 0, 1 << 20).len(), 1 << 20);
    let length = temporary.as_file().metadata().expect("its length").len();
    assert_eq!(length, 1 << 20, "no operation changes the length");
}

fn the_status_of_a_range_lists_holes_and_data(mut harness: Harness<impl Engine>) {
    let temporary = temporary_file();
    temporary.as_file().set_len(4 << 20).expect("a length");
    temporary.as_file().write_all_at(&[1; 65_536], 1 << 20).expect("written");
    let file = harness.engine.open(OwnedFd::from(temporary.reopen().expect("the file again")));
    let done = harness.io(file, IoOp::Status, 4096, (4 << 20) - 4096, None);
    assert_eq!(done.result, Ok(()));
    let sum: u64 = done.extents.iter().map(|extent| extent.length).sum();
    assert_eq!(sum, (4 << 20) - 4096);
    if done.extents.len() == 1 {
        return eprintln!("skipped: this file system has no holes");
    }
    let hole = |length, hole| Allocation { length, hole };
    assert_eq!(done.extents, [hole((1 << 20) - 4096, true), hole(65_536, false), hole((3 << 20) - 65_536, true)]);
}

fn errors_of_files_are_reported(mut harness: Harness<impl Engine>) {
    let temporary = temporary_file();
    let read_only = File::open(temporary.path()).expect("the file for reading");
    let file = harness.engine.open(OwnedFd::from(read_only));
    assert_eq!(harness.write(file, 0, b"no", false), Err(libc::EBADF));
    let short = harness.engine.buffer(1);
    let done = harness.io(file, IoOp::Read, 0, 1 << 30, Some(short));
    assert_eq!(done.result, Err(libc::EINVAL));
    assert!(done.buffer.is_some());
    assert_eq!(harness.io(FileId(77), IoOp::Flush, 0, 0, None).result, Err(libc::EBADF));
}

fn many_operations_are_in_flight_at_once(mut harness: Harness<impl Engine>) {
    let temporary = temporary_file();
    temporary.as_file().set_len(8 << 20).expect("a length");
    let file = harness.engine.open(OwnedFd::from(temporary.reopen().expect("the file again")));
    // More operations than submission queue entries.
    for tag in 0..2000u64 {
        let mut buffer = harness.engine.buffer(4096);
        buffer.fill(tag as u8);
        let io =
            Io { file, op: IoOp::Write { durable: false }, offset: tag * 4096, length: 4096, buffer: Some(buffer) };
        harness.engine.start(tag, io);
    }
    for tag in 0..2000u64 {
        assert_eq!(harness.done(tag).result, Ok(()));
    }
    for tag in 0..2000u64 {
        assert!(harness.read(file, tag * 4096, 4096).iter().all(|byte| *byte == tag as u8));
    }
}

fn an_engine_is_dropped_with_pending_operations(mut harness: Harness<impl Engine>) {
    let temporary = temporary_file();
    let file = harness.engine.open(OwnedFd::from(temporary.reopen().expect("the file again")));
    let (conn, _client) = pair(&mut harness);
    let buffer = harness.engine.buffer(4096);
    harness.engine.receive_into(conn, buffer, 0, 4096);
    for tag in 0..100 {
        let buffer = harness.engine.buffer(65_536);
        harness.engine.start(tag, Io { file, op: IoOp::Read, offset: 0, length: 65_536, buffer: Some(buffer) });
    }
    harness.engine.turn(Some(0), &mut harness.events).expect("a turn");
}

fn the_lock_of_a_file_is_free_after_the_engine(mut harness: Harness<impl Engine>) {
    let temporary = temporary_file();
    temporary.as_file().set_len(4096).expect("a length");
    let open = || OwnedFd::from(temporary.reopen().expect("the file again"));
    let lock = |file: &OwnedFd| rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    let served = open();
    lock(&served).expect("a free lock");
    let file = harness.engine.open(served);
    harness.read(file, 0, 4096);
    assert!(lock(&open()).is_err(), "the engine holds the lock");
    drop(harness);
    lock(&open()).expect("the engine has closed the file");
}

macro_rules! both_engines {
    ($($test:ident),* $(,)?) => {
        mod uring {
            use super::*;
            $(#[test]
            fn $test() {
                match Uring::new(&options()) {
                    Ok(engine) => {
                        let pool = engine.pool().clone();
                        super::$test(Harness::new(engine));
                        assert_eq!(pool.outstanding(), 0, "buffers leaked");
                    }
                    Err(error) => eprintln!("skipped: io_uring is not available: {error}"),
                }
            })*
        }
        mod threads {
            use super::*;
            $(#[test]
            fn $test() {
                let engine = Threads::new(&options()).expect("an engine");
                super::$test(Harness::new(engine));
            })*
        }
    };
}

both_engines!(
    bytes_are_echoed,
    tcp_clients_are_identified_by_address,
    connections_are_opened_and_refused,
    messages_of_many_parts_pass_through_small_socket_buffers,
    a_receive_into_a_buffer_fills_its_range,
    a_timer_is_never_early,
    a_closed_connection_has_no_events,
    a_disconnected_client_is_reported_once,
    thousands_of_connections_leak_nothing,
    hundreds_of_connections_are_served_concurrently,
    a_file_is_read_and_written,
    bytes_beyond_the_end_of_a_file_are_zeroes,
    bytes_beyond_the_end_of_an_uncached_file_on_fuse_are_missing,
    zeroed_and_trimmed_ranges_read_as_zeroes,
    the_status_of_a_range_lists_holes_and_data,
    errors_of_files_are_reported,
    many_operations_are_in_flight_at_once,
    an_engine_is_dropped_with_pending_operations,
    the_lock_of_a_file_is_free_after_the_engine,
);

#[test]
fn a_probe_agrees_with_the_engine() {
    match probe() {
        Ok(()) => assert!(Uring::new(&options()).is_ok()),
        Err(unavailable) => {
            let text = unavailable.to_string();
            assert!(text.starts_with("io_uring cannot be used: ") && !unavailable.advice.is_empty(), "{text}");
        }
    }
}

/// One test for all signals, because they concern the whole process.
#[test]
fn signals_reach_every_engine_that_handles_them() {
    let options = Options { signals: true, ..options() };
    let mut threads = Harness::new(Threads::new(&options).expect("an engine"));
    let mut uring = Uring::new(&options).ok().map(Harness::new);
    for (number, signal) in
        [(libc::SIGHUP, Signal::Reload), (libc::SIGTERM, Signal::Terminate), (libc::SIGINT, Signal::Terminate)]
    {
        signal_hook::low_level::raise(number).expect("raised");
        threads.until(|event| matches!(event, Event::Signal(came) if *came == signal), drop);
        if let Some(uring) = &mut uring {
            uring.until(|event| matches!(event, Event::Signal(came) if *came == signal), drop);
        }
    }
}
