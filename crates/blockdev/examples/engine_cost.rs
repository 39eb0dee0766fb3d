//! Measures the cost of an engine: requests of 28 bytes, replies of 16 bytes and data, as for NBD
//! reads, without the protocol.
//!
//! `cargo run --release -p hoistway-blockdev --example engine_cost -- [io_uring|threads] [DEPTH]
//! [BYTES] [SECONDS] [FILE]`
//!
//! The client of the single connection behaves as libnbd does: one send per request, two receives
//! per reply. The output is the request rate, the CPU time of the engine's thread per request, and
//! the lateness of timers.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hoistway_blockdev::{Backend, DeviceId, IoOutput, IoTag, Started};
use hoistway_config::BackendConfig;
use hoistway_qos::{Begin, IoId, MediumRequest, RequestOp};
use hoistway_reactor::{Buffer, ConnId, Engine, EngineKind, Event, Message, Options, Part, Threads, Uring};

const DEVICE: DeviceId = DeviceId(0);
static OVER: AtomicBool = AtomicBool::new(false);

struct Job {
    depth: usize,
    bytes: usize,
    seconds: u64,
    file: Option<String>,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().map_or(Ok(EngineKind::Uring), |text| text.parse()).expect("io_uring or threads");
    let mut number = |otherwise: usize| arguments.next().map_or(otherwise, |text| text.parse().expect("a number"));
    let (depth, bytes, seconds) = (number(16), number(4096), number(3) as u64);
    let job = Job { depth, bytes, seconds, file: arguments.next() };
    let mut options = Options { signals: false, ..Options::default() };
    if let Ok(text) = std::env::var("RECEIVE_BYTES") {
        options.receive_bytes = text.parse().expect("bytes");
    }
    println!("{kind}, depth {depth}, {bytes} bytes, options {options:?}");
    match kind {
        EngineKind::Uring => run(Uring::new(&options).expect("io_uring"), &job),
        EngineKind::Threads => run(Threads::new(&options).expect("an engine"), &job),
    }
}

fn run(mut engine: impl Engine, job: &Job) {
    late_timers(&mut engine);
    let (own, other) = UnixStream::pair().expect("a pair of sockets");
    let conn = engine.adopt(OwnedFd::from(own));
    let (depth, bytes) = (job.depth, job.bytes);
    let client = std::thread::spawn(move || client(other, depth, bytes));
    let config = match &job.file {
        Some(path) => BackendConfig::File { path: path.into(), direct: None, read_only: false, force_in_use: false },
        None => BackendConfig::Memory { bytes: 256 << 20 },
    };
    let mut backend = Backend::open(DEVICE, &config, &mut engine).expect("a backend");
    println!("{}", backend.describe());
    let mut server = Server { message: Message::default(), sending: false, waiting: 0, requests: 0, seed: 1 };
    if job.file.is_none() {
        fill(&mut backend, &mut engine);
    }
    let (begin, cpu) = (Instant::now(), cpu());
    let mut turns = 0u64;
    let mut events = Vec::new();
    engine.receive(conn);
    'all: loop {
        engine.turn(None, &mut events).expect("a turn");
        turns += 1;
        for event in events.drain(..) {
            match event {
                Event::Received { len: 0, .. } | Event::Broken { .. } => break 'all,
                Event::Received { len, .. } => {
                    server.requests(&mut engine, &mut backend, len / 28, job.bytes);
                    engine.receive(conn);
                }
                Event::Sent { message, .. } => server.sent(message),
                Event::Done { tag, done } => {
                    let finished = backend.finish(&mut engine, IoTag::of(tag), RequestOp::Read, done);
                    server.output(finished, job.bytes);
                }
                _ => {}
            }
        }
        server.flush(&mut engine, conn);
        if begin.elapsed() > Duration::from_secs(job.seconds) {
            OVER.store(true, Ordering::Relaxed);
        }
    }
    let (elapsed, used) = (begin.elapsed().as_secs_f64(), self::cpu() - cpu);
    let requests = server.requests as f64;
    println!(
        "{:.0} requests/s, {:.2} us of CPU a request, {:.1} requests a turn",
        requests / elapsed,
        used.as_secs_f64() * 1e6 / requests,
        requests / turns as f64
    );
    client.join().expect("the client ends well");
}

/// The server side of the connection. Replies are collected until the previous message has been
/// sent.
struct Server {
    message: Message,
    sending: bool,
    waiting: usize,
    requests: u64,
    seed: u64,
}

impl Server {
    fn requests(&mut self, engine: &mut impl Engine, backend: &mut Backend, count: usize, bytes: usize) {
        for _ in 0..count {
            self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let offset = (self.seed >> 33) % (backend.size() / bytes as u64) * bytes as u64;
            let io = IoId::of_number(self.requests as u32);
            self.requests += 1;
            let started = backend.begin(engine, DEVICE, request(io, RequestOp::Read, offset, bytes, None));
            self.output(started, bytes);
        }
    }

    fn output(&mut self, started: Started, bytes: usize) {
        let part = match started {
            Begin::Done(Ok(IoOutput::Shared(shared))) => Part::Shared(shared),
            Begin::Done(Ok(IoOutput::Buffer(buffer))) => Part::Buffer { buffer, len: bytes },
            Begin::Done(other) => panic!("a read returns {other:?}"),
            Begin::Pending => return,
        };
        self.waiting += 1;
        self.message.head.extend([1; 16]);
        self.message.parts.extend([Part::Head { len: 16 }, part]);
    }

    fn sent(&mut self, message: Message) {
        self.sending = false;
        if self.waiting == 0 {
            self.message = message;
        }
    }

    fn flush(&mut self, engine: &mut impl Engine, conn: ConnId) {
        if !self.sending && self.waiting > 0 {
            self.waiting = 0;
            self.sending = true;
            engine.send(conn, std::mem::take(&mut self.message));
        }
    }
}

fn fill(backend: &mut Backend, engine: &mut impl Engine) {
    for offset in (0..backend.size()).step_by(1 << 20) {
        let mut data = engine.buffer(1 << 20);
        data.fill(7);
        backend.begin(engine, DEVICE, request(IoId::of_number(0), RequestOp::Write, offset, 1 << 20, Some(data)));
    }
}

fn request(io: IoId, op: RequestOp, offset: u64, bytes: usize, data: Option<Buffer>) -> MediumRequest<Buffer> {
    MediumRequest { io, ticket: 0, op, offset, length: bytes as u64, durable: false, data }
}

fn client(mut socket: UnixStream, depth: usize, bytes: usize) {
    let (request, mut head, mut data) = ([0; 28], [0; 16], vec![0; bytes]);
    for _ in 0..depth {
        socket.write_all(&request).expect("sent");
    }
    let mut under_way = depth;
    while under_way > 0 {
        socket.read_exact(&mut head).expect("a reply");
        socket.read_exact(&mut data).expect("its data");
        under_way -= 1;
        if !OVER.load(Ordering::Relaxed) {
            socket.write_all(&request).expect("sent");
            under_way += 1;
        }
    }
}

fn late_timers(engine: &mut impl Engine) {
    let mut late: Vec<u64> = Vec::new();
    let mut events = Vec::new();
    for step in 0..500u64 {
        engine.turn(Some(0), &mut events).expect("a turn");
        let until_ns = engine.now_ns() + 50_000 + step * 2_000;
        engine.turn(Some(until_ns), &mut events).expect("a turn");
        late.push(engine.now_ns() - until_ns);
    }
    late.sort_unstable();
    println!("timers are late by: median {} us, 99 % below {} us", late[250] / 1000, late[495] / 1000);
}

/// Returns the CPU time of this thread.
fn cpu() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}
