//! The same tests for both engines, against real sockets and files.

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

/// An engine under test and what has happened in it.
struct Outside<E: Engine> {
    engine: E,
    events: Vec<Event>,
}

impl<E: Engine> Outside<E> {
    fn new(engine: E) -> Self {
        Outside { engine, events: Vec::new() }
    }

    /// Turns until something is found among the events; the others stay.
    fn until<T>(&mut self, mut find: impl FnMut(&Event) -> bool, take: impl FnOnce(Event) -> T) -> T {
        let end_ns = self.engine.now_ns() + 20 * SECOND_NS;
        loop {
            if let Some(at) = self.events.iter().position(&mut find) {
                return take(self.events.remove(at));
            }
            assert!(self.engine.now_ns() < end_ns, "nothing of the sort happened; instead {:?}", self.events);
            self.engine.turn(Some(end_ns), &mut self.events).expect("a turn");
        }
    }

    fn accepted(&mut self) -> (ConnId, Peer) {
        self.until(
            |event| matches!(event, Event::Accepted { .. }),
            |event| match event {
                Event::Accepted { conn, peer, .. } => (conn, peer),
                _ => unreachable!("it was looked for"),
            },
        )
    }

    fn received(&mut self, of: ConnId) -> Vec<u8> {
        self.until(
            |event| matches!(event, Event::Received { conn, .. } if *conn == of),
            |event| match event {
                Event::Received { buffer, len, .. } => buffer[..len].to_vec(),
                _ => unreachable!("it was looked for"),
            },
        )
    }

    fn filled(&mut self, of: ConnId) -> (Buffer, usize) {
        self.until(
            |event| matches!(event, Event::Filled { conn, .. } if *conn == of),
            |event| match event {
                Event::Filled { buffer, filled, .. } => (buffer, filled),
                _ => unreachable!("it was looked for"),
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
                _ => unreachable!("it was looked for"),
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

    /// Lets the engine work off what was closed.
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

fn pair<E: Engine>(outside: &mut Outside<E>) -> (ConnId, UnixStream) {
    let (own, other) = UnixStream::pair().expect("a pair of sockets");
    (outside.engine.adopt(OwnedFd::from(own)), other)
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Pcg64Mcg::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("the descriptors of this process").count()
}

/// A file of a file system on a disk, if the directory for temporary files is on one.
fn temporary_file() -> tempfile::NamedTempFile {
    tempfile::Builder::new().prefix("hoistway-engine").tempfile().expect("a temporary file")
}

fn what_is_sent_to_it_comes_back(mut outside: Outside<impl Engine>) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let id = outside.engine.listen(OwnedFd::from(listener));
    let mut client = UnixStream::connect(&path).expect("a connection");
    let (conn, peer) = outside.accepted();
    assert_eq!(peer.address, Address::Unix);
    let process = peer.process.expect("it is a process of this machine");
    assert_eq!((process.pid, process.uid), (std::process::id(), rustix::process::getuid().as_raw()));
    for round in 0..50u8 {
        client.write_all(&[round; 28]).expect("written");
        outside.engine.receive(conn);
        let bytes = outside.received(conn);
        assert_eq!(bytes, [round; 28]);
        outside.engine.send(conn, head(&bytes));
        outside.sent(conn);
        let mut back = [0; 28];
        client.read_exact(&mut back).expect("read");
        assert_eq!(back, [round; 28]);
    }
    drop(client);
    outside.engine.receive(conn);
    assert!(outside.received(conn).is_empty(), "the end of the stream is a receive of nothing");
    outside.engine.close(conn);
    outside.engine.unlisten(id);
    outside.settle();
    UnixStream::connect(&path).expect_err("nobody listens any more");
}

fn clients_over_tcp_are_known_by_their_address(mut outside: Outside<impl Engine>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("its address");
    outside.engine.listen(OwnedFd::from(listener));
    let client = TcpStream::connect(address).expect("a connection");
    let (conn, peer) = outside.accepted();
    assert_eq!(peer, Peer { address: Address::Tcp(client.local_addr().expect("an address")), process: None });
    outside.engine.send(conn, head(b"hello"));
    outside.sent(conn);
    outside.engine.close(conn);
    let mut text = String::new();
    (&client).read_to_string(&mut text).expect("what was sent, then the end");
    assert_eq!(text, "hello");
}

fn messages_of_many_parts_arrive_whole_through_tiny_sockets(mut outside: Outside<impl Engine>) {
    let (conn, mut client) = pair(&mut outside);
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
    let mut buffer = outside.engine.buffer(own.len());
    buffer[..own.len()].copy_from_slice(&own);
    message.parts.push(Part::Buffer { buffer, len: own.len() });
    expected.extend(&own);
    message.parts.push(Part::Head { len: 0 });
    message.parts.push(Part::Shared(shared));
    expected.extend(&shared_bytes);
    rustix::net::sockopt::set_socket_recv_buffer_size(&client, 1).expect("a tiny buffer");
    outside.engine.send(conn, message);
    let reader = std::thread::spawn(move || {
        let mut got = vec![0; expected.len()];
        client.read_exact(&mut got).expect("the whole message");
        assert!(got == expected, "the message is not what was sent");
    });
    outside.sent(conn);
    reader.join().expect("the reader ends well");
}

fn a_receive_into_a_buffer_fills_all_of_its_part(mut outside: Outside<impl Engine>) {
    let (conn, mut client) = pair(&mut outside);
    let bytes = noise(3, 400_000);
    let (to_send, expected) = (bytes.clone(), bytes);
    let writer = std::thread::spawn(move || {
        for piece in to_send.chunks(7_777) {
            client.write_all(piece).expect("written");
        }
        client
    });
    let mut buffer = outside.engine.buffer(500_000);
    buffer[..10].fill(9);
    outside.engine.receive_into(conn, buffer, 10, 10 + 399_000);
    let (buffer, filled) = outside.filled(conn);
    assert_eq!(filled, 10 + 399_000);
    assert_eq!(buffer[..10], [9; 10]);
    assert!(buffer[10..filled] == expected[..399_000]);
    // What was not waited for is the next receive's; then the other side ends in the middle.
    drop(writer.join().expect("the writer ends well"));
    outside.engine.receive_into(conn, buffer, 0, 2_000);
    let (buffer, filled) = outside.filled(conn);
    assert_eq!((filled, &buffer[..filled]), (1_000, &expected[399_000..]));
    outside.engine.receive_into(conn, buffer, 5, 5);
    assert_eq!(outside.filled(conn).1, 5);
}

fn a_timer_is_never_early(mut outside: Outside<impl Engine>) {
    outside.engine.turn(Some(0), &mut outside.events).expect("a turn that does not wait");
    let mut random = Pcg64Mcg::seed_from_u64(4);
    for _ in 0..50 {
        let until_ns = clock::now_ns() + random.random_range(1..3_000_000);
        outside.engine.turn(Some(until_ns), &mut outside.events).expect("a turn");
        assert!(outside.engine.now_ns() >= until_ns);
        assert!(outside.events.is_empty());
    }
}

fn nothing_is_heard_of_a_closed_connection(mut outside: Outside<impl Engine>) {
    for round in 0..200u32 {
        let (conn, mut client) = pair(&mut outside);
        if round % 2 == 0 {
            outside.engine.receive(conn);
        } else {
            let buffer = outside.engine.buffer(4096);
            outside.engine.receive_into(conn, buffer, 0, 4096);
        }
        // More than the socket takes.
        let mut message = head(b"x");
        let buffer = outside.engine.buffer(1 << 20);
        message.parts.push(Part::Buffer { len: 1 << 20, buffer });
        outside.engine.send(conn, message);
        if round % 3 == 0 {
            outside.engine.turn(Some(0), &mut outside.events).expect("a turn");
        }
        if round % 5 == 0 {
            client.write_all(b"some").expect("written");
        }
        outside.events.clear();
        outside.engine.close(conn);
        outside.engine.close(conn);
        outside.engine.receive(conn);
        outside.engine.send(conn, head(b"too late"));
        outside.engine.turn(Some(0), &mut outside.events).expect("a turn");
        assert!(outside.events.is_empty(), "{:?}", outside.events);
        // The other side is told, whatever was under way.
        client.set_read_timeout(Some(std::time::Duration::from_secs(10))).expect("a timeout");
        let mut rest = Vec::new();
        match client.read_to_end(&mut rest) {
            // What the engine has not read makes a reset of the end.
            Err(error) if round % 5 == 0 => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
            end => assert!(end.is_ok(), "{end:?}"),
        }
        assert!(rest.len() <= 1 + (1 << 20));
    }
    outside.settle();
    assert!(outside.events.is_empty(), "{:?}", outside.events);
}

fn a_client_that_vanishes_breaks_its_connection_once(mut outside: Outside<impl Engine>) {
    let (conn, client) = pair(&mut outside);
    drop(client);
    let buffer = outside.engine.buffer(4096);
    outside.engine.send(conn, Message { head: Vec::new(), parts: vec![Part::Buffer { buffer, len: 4096 }] });
    outside.until(|event| matches!(event, Event::Broken { conn: broken } if *broken == conn), drop);
    outside.engine.send(conn, head(b"once more"));
    outside.settle();
    assert!(outside.events.is_empty(), "{:?}", outside.events);
    outside.engine.close(conn);
}

fn thousands_of_connections_leave_nothing_behind(mut outside: Outside<impl Engine>) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    outside.engine.listen(OwnedFd::from(UnixListener::bind(&path).expect("a socket")));
    outside.settle();
    let before = descriptors();
    for round in 0..3_000u32 {
        let mut client = UnixStream::connect(&path).expect("a connection");
        client.write_all(&round.to_be_bytes()).expect("written");
        let (conn, _) = outside.accepted();
        outside.engine.receive(conn);
        assert_eq!(outside.received(conn), round.to_be_bytes());
        assert!(conn.slot < 16, "places are used again: {conn:?}");
        if round % 2 == 0 {
            outside.engine.receive(conn);
            outside.engine.turn(Some(0), &mut outside.events).expect("a turn");
        }
        outside.engine.close(conn);
    }
    outside.settle();
    assert!(outside.events.is_empty(), "{:?}", outside.events);
    // Other tests of this process open some, too.
    assert!(descriptors() < before + 500, "{} descriptors, {before} before", descriptors());
}

fn hundreds_of_connections_are_served_at_once(mut outside: Outside<impl Engine>) {
    let mut clients: Vec<(ConnId, UnixStream)> = (0..300).map(|_| pair(&mut outside)).collect();
    for (conn, client) in &mut clients {
        outside.engine.receive(*conn);
        client.write_all(&conn.slot.to_be_bytes()).expect("written");
    }
    // There are 8 buffers to receive into: nobody may be forgotten.
    for (conn, client) in &mut clients {
        let bytes = outside.received(*conn);
        assert_eq!(bytes, conn.slot.to_be_bytes());
        outside.engine.send(*conn, head(&bytes));
        outside.sent(*conn);
        let mut back = [0; 4];
        client.read_exact(&mut back).expect("read");
        assert_eq!(back, conn.slot.to_be_bytes());
    }
}

fn a_file_is_read_and_written(mut outside: Outside<impl Engine>) {
    let temporary = temporary_file();
    temporary.as_file().set_len(1 << 20).expect("a length");
    let file = outside.engine.open(OwnedFd::from(temporary.reopen().expect("the file again")));
    let bytes = noise(5, 200_000);
    assert_eq!(outside.write(file, 12_345, &bytes, false), Ok(()));
    assert_eq!(outside.write(file, 900_000, &bytes[..1000], true), Ok(()));
    assert!(outside.read(file, 12_345, 200_000) == bytes);
    assert!(outside.read(file, 12_000, 345).iter().all(|byte| *byte == 0));
    let mut there = vec![0; 1000];
    temporary.as_file().read_exact_at(&mut there, 900_000).expect("read");
    assert_eq!(there, bytes[..1000]);
    assert_eq!(outside.io(file, IoOp::Flush, 0, 0, None).result, Ok(()));
    // Long ones are memory of their own.
    let long = noise(6, 3 << 20);
    assert_eq!(outside.write(file, 4096, &long, false), Ok(()));
    assert!(outside.read(file, 4096, 3 << 20) == long);
}

fn bytes_behind_the_end_of_a_file_are_zeroes(mut outside: Outside<impl Engine>) {
    let temporary = temporary_file();
    temporary.as_file().write_all_at(&[7; 5000], 0).expect("written");
    let file = outside.engine.open(OwnedFd::from(temporary.reopen().expect("the file again")));
    let bytes = outside.read(file, 4096, 8192);
    assert!(bytes[..904].iter().all(|byte| *byte == 7));
    assert!(bytes[904..].iter().all(|byte| *byte == 0));
    assert!(outside.read(file, 100_000, 4096).iter().all(|byte| *byte == 0));
    let direct = File::options().read(true).custom_flags(libc::O_DIRECT).open(temporary.path());
    let Ok(direct) = direct else { return eprintln!("skipped: no direct I/O here") };
    let file = outside.engine.open(OwnedFd::from(direct));
    let bytes = outside.read(file, 4096, 8192);
    assert!(bytes[..904].iter().all(|byte| *byte == 7));
    assert!(bytes[904..].iter().all(|byte| *byte == 0));
}

fn zeroed_and_trimmed_ranges_read_as_zeroes(mut outside: Outside<impl Engine>) {
    let temporary = temporary_file();
    let file = outside.engine.open(OwnedFd::from(temporary.reopen().expect("the file again")));
    let bytes = noise(7, 1 << 20);
    assert_eq!(outside.write(file, 0, &bytes, false), Ok(()));
    for (op, offset) in
        [(IoOp::Zero { punch: true }, 100), (IoOp::Zero { punch: false }, 300_001), (IoOp::Trim, 2 * 262_144)]
    {
        assert_eq!(outside.io(file, op, offset, 65_536, None).result, Ok(()));
        let around = outside.read(file, offset - 50, 65_536 + 100);
        assert!(around[..50] == bytes[offset as usize - 50..offset as usize]);
        assert!(around[50..50 + 65_536].iter().all(|byte| *byte == 0), "{op:?}");
        assert!(around[50 + 65_536..] == bytes[offset as usize + 65_536..offset as usize + 65_586]);
    }
    assert_eq!(outside.read(file, 0, 1 << 20).len(), 1 << 20);
    let length = temporary.as_file().metadata().expect("its length").len();
    assert_eq!(length, 1 << 20, "no operation changes the length");
}

fn the_status_of_a_range_is_its_holes_and_data(mut outside: Outside<impl Engine>) {
    let temporary = temporary_file();
    temporary.as_file().set_len(4 << 20).expect("a length");
    temporary.as_file().write_all_at(&[1; 65_536], 1 << 20).expect("written");
    let file = outside.engine.open(OwnedFd::from(temporary.reopen().expect("the file again")));
    let done = outside.io(file, IoOp::Status, 4096, (4 << 20) - 4096, None);
    assert_eq!(done.result, Ok(()));
    let sum: u64 = done.extents.iter().map(|extent| extent.length).sum();
    assert_eq!(sum, (4 << 20) - 4096);
    if done.extents.len() == 1 {
        return eprintln!("skipped: this file system knows no holes");
    }
    let hole = |length, hole| Allocation { length, hole };
    assert_eq!(done.extents, [hole((1 << 20) - 4096, true), hole(65_536, false), hole((3 << 20) - 65_536, true)]);
}

fn errors_of_files_are_told(mut outside: Outside<impl Engine>) {
    let temporary = temporary_file();
    let read_only = File::open(temporary.path()).expect("the file for reading");
    let file = outside.engine.open(OwnedFd::from(read_only));
    assert_eq!(outside.write(file, 0, b"no", false), Err(libc::EBADF));
    let short = outside.engine.buffer(1);
    let done = outside.io(file, IoOp::Read, 0, 1 << 30, Some(short));
    assert_eq!(done.result, Err(libc::EINVAL));
    assert!(done.buffer.is_some());
    assert_eq!(outside.io(FileId(77), IoOp::Flush, 0, 0, None).result, Err(libc::EBADF));
}

fn many_operations_are_under_way_at_once(mut outside: Outside<impl Engine>) {
    let temporary = temporary_file();
    temporary.as_file().set_len(8 << 20).expect("a length");
    let file = outside.engine.open(OwnedFd::from(temporary.reopen().expect("the file again")));
    // More than a submission queue holds.
    for tag in 0..2000u64 {
        let mut buffer = outside.engine.buffer(4096);
        buffer.fill(tag as u8);
        let io =
            Io { file, op: IoOp::Write { durable: false }, offset: tag * 4096, length: 4096, buffer: Some(buffer) };
        outside.engine.start(tag, io);
    }
    for tag in 0..2000u64 {
        assert_eq!(outside.done(tag).result, Ok(()));
    }
    for tag in 0..2000u64 {
        assert!(outside.read(file, tag * 4096, 4096).iter().all(|byte| *byte == tag as u8));
    }
}

fn an_engine_ends_with_everything_under_way(mut outside: Outside<impl Engine>) {
    let temporary = temporary_file();
    let file = outside.engine.open(OwnedFd::from(temporary.reopen().expect("the file again")));
    let (conn, _client) = pair(&mut outside);
    let buffer = outside.engine.buffer(4096);
    outside.engine.receive_into(conn, buffer, 0, 4096);
    for tag in 0..100 {
        let buffer = outside.engine.buffer(65_536);
        outside.engine.start(tag, Io { file, op: IoOp::Read, offset: 0, length: 65_536, buffer: Some(buffer) });
    }
    outside.engine.turn(Some(0), &mut outside.events).expect("a turn");
}

macro_rules! both_engines {
    ($($test:ident),* $(,)?) => {
        mod uring_does {
            use super::*;
            $(#[test]
            fn $test() {
                match Uring::new(&options()) {
                    Ok(engine) => {
                        let pool = engine.pool().clone();
                        super::$test(Outside::new(engine));
                        assert_eq!(pool.outstanding(), 0, "buffers are lost");
                    }
                    Err(error) => eprintln!("skipped: io_uring is not to be had here: {error}"),
                }
            })*
        }
        mod threads_do {
            use super::*;
            $(#[test]
            fn $test() {
                let engine = Threads::new(&options()).expect("an engine");
                super::$test(Outside::new(engine));
            })*
        }
    };
}

both_engines!(
    what_is_sent_to_it_comes_back,
    clients_over_tcp_are_known_by_their_address,
    messages_of_many_parts_arrive_whole_through_tiny_sockets,
    a_receive_into_a_buffer_fills_all_of_its_part,
    a_timer_is_never_early,
    nothing_is_heard_of_a_closed_connection,
    a_client_that_vanishes_breaks_its_connection_once,
    thousands_of_connections_leave_nothing_behind,
    hundreds_of_connections_are_served_at_once,
    a_file_is_read_and_written,
    bytes_behind_the_end_of_a_file_are_zeroes,
    zeroed_and_trimmed_ranges_read_as_zeroes,
    the_status_of_a_range_is_its_holes_and_data,
    errors_of_files_are_told,
    many_operations_are_under_way_at_once,
    an_engine_ends_with_everything_under_way,
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

/// One test, for signals are of the whole process.
#[test]
fn signals_are_told_by_every_engine_that_catches_them() {
    let options = Options { signals: true, ..options() };
    let mut threads = Outside::new(Threads::new(&options).expect("an engine"));
    let mut uring = Uring::new(&options).ok().map(Outside::new);
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
