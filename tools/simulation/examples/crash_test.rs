//! Kills the server under load repeatedly: `cargo xtask crash-test [--rounds N] [--seed
//! N] [--engine auto|uring|threads]`.
//!
//! The server works on a file of a small file system (FUSE) in this process, which keeps every
//! write in memory until a request makes it durable: `fsync`, or a write with `O_DSYNC`. The memory
//! stands for the disk's cache where the server does direct I/O, and for the page cache where it
//! does not: each round does one or the other. At a random moment the server is killed, or the
//! power fails at once after an acknowledgement and the server is killed then: everything that was
//! not made durable is dropped, but for sectors that chance keeps. Then what is left is compared
//! with what the clients know: every byte that was acknowledged as durable, by FUA or by a flush,
//! must be there, and no older one.
//!
//! Before the rounds proper it does the same over a disk that ignores `fsync` and over one that
//! ignores `O_DSYNC`, in both ways of I/O, until a loss is found: a test that cannot fail proves
//! nothing.
//!
//! With `--remote nbdkit` the server works on an export of nbdkit, whose file is on that file
//! system. nbdkit is killed and started again several times in a round, and what it had not made
//! durable is dropped, while the clients go on: no request may fail, no read may return older data,
//! and at the end, after a kill of both, every durable byte must be there.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command as Process, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hoistway_nbd::client::{
    Collector, Goal, Handshake, HandshakeOptions, Progress, ReplyContent, RequestSpec, TlsMode,
};
use hoistway_nbd::server::Replies;
use hoistway_nbd::wire::{Command, CommandFlags};
use hoistway_reactor::simulated::Prng;
use hoistway_simulation::crash::forgetting::{Cache, Disk, Fault, Session};
use hoistway_simulation::crash::{CrashOptions, exit_code};
use hoistway_simulation::history::{ChangeId, Content, History};

/// Bytes of the disk, and of the region of each pair of connections.
const DISK_BYTES: usize = 4 << 20;
const REGIONS: usize = 3;
const REGION_BYTES: usize = DISK_BYTES / REGIONS;
const DEPTH: usize = 8;

type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    exit_code(run())
}

struct Options {
    shared: CrashOptions,
    engine: String,
    /// The server works on an export of nbdkit, which is killed.
    is_remote: bool,
}

impl Options {
    fn parse() -> Result<Options> {
        let (mut engine, mut is_remote) = ("auto".to_owned(), false);
        let shared = CrashOptions::parse(std::env::args().skip(1), &["--engine", "--remote"], |word, value| {
            match (word, value) {
                ("--engine", _) => value.clone_into(&mut engine),
                ("--remote", "nbdkit") => is_remote = true,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Options { shared, engine, is_remote })
    }
}

fn run() -> Result<()> {
    let options = Options::parse()?;
    let began = Instant::now();
    for fault in [Fault::Fsync, Fault::DurableWrites] {
        for direct in [true, false] {
            // nbdkit uses the page cache, and makes durable writes durable by fsync.
            if !options.is_remote || (fault, direct) == (Fault::Fsync, false) {
                detect_fault(fault, direct, &options)?;
            }
        }
    }
    let bed = TestBed::new(&options, Fault::None)?;
    for round in 0..options.shared.rounds {
        let direct = round % 2 == 0 && !options.is_remote;
        bed.round(round, direct, &options).map_err(|what| format!("round {round} (direct: {direct}): {what}"))?;
    }
    let [writes, durable, flushes] = [&bed.counts.writes, &bed.counts.durable, &bed.counts.flushes];
    println!(
        "crash-test: {} rounds in {:.1} s: {} writes acknowledged, {} durable ones when the server died, {} flushes; 0 lost",
        options.shared.rounds,
        began.elapsed().as_secs_f64(),
        writes.load(Ordering::Relaxed),
        durable.load(Ordering::Relaxed),
        flushes.load(Ordering::Relaxed),
    );
    Ok(())
}

/// The maximum number of crashes until a fault must be detected.
const FAULT_ROUNDS_MAX: u64 = 100;

/// Crashes over a disk with a fault, until data are lost.
fn detect_fault(fault: Fault, direct: bool, options: &Options) -> Result<()> {
    let bed = TestBed::new(options, fault)?;
    let io = if direct { "direct I/O" } else { "buffered I/O" };
    for round in 0..FAULT_ROUNDS_MAX {
        match bed.round(round, direct, options) {
            Ok(()) => {}
            Err(what) if what.contains(LOST) || (options.is_remote && what.contains(WRONG)) => {
                println!("{io}: a disk with the fault {fault:?} is detected by crash {}: {what}", round + 1);
                return Ok(());
            }
            Err(other) => return Err(format!("{fault:?}, {io}: {other}")),
        }
    }
    Err(format!("{io}: {FAULT_ROUNDS_MAX} crashes over a disk with the fault {fault:?}, and nothing was missing"))
}

/// The text by which a loss is recognised in an error.
const LOST: &str = "after the crash";
/// The text by which a wrong read is recognised: it returned older data.
const WRONG: &str = "it may be";

/// A file system with a disk, the histories of its clients, and a directory for sockets.
struct TestBed {
    dir: tempfile::TempDir,
    disk: Disk,
    histories: Vec<Arc<Mutex<History>>>,
    counts: Arc<Counts>,
    _session: Session,
}

#[derive(Default)]
struct Counts {
    writes: AtomicU64,
    durable: AtomicU64,
    flushes: AtomicU64,
}

impl TestBed {
    fn new(options: &Options, fault: Fault) -> Result<TestBed> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mount = dir.path().join("mount");
        std::fs::create_dir(&mount).map_err(|error| error.to_string())?;
        let disk = Disk::new(fault, options.shared.seed);
        disk.put("disk", vec![0; DISK_BYTES]);
        let session = disk.mount(&mount, Cache::Bypassed)?;
        let history = |at: usize| {
            let start = at * REGION_BYTES;
            Arc::new(Mutex::new(History::new(start as u64, REGION_BYTES, 0, options.shared.seed ^ start as u64, false)))
        };
        let histories = (0..REGIONS).map(history).collect();
        Ok(TestBed { dir, disk, histories, counts: Arc::default(), _session: session })
    }

    /// Runs a server with clients, kills it, and checks the disk.
    fn round(&self, round: u64, direct: bool, options: &Options) -> Result<()> {
        let mut prng = Prng::new(options.shared.seed.wrapping_mul(1_000_003) ^ round);
        let socket = self.dir.path().join(format!("{round}.sock"));
        let elevators = ["noop", "deadline", "cfq", "bfq", "fiops", "mq-deadline", "kyber"];
        self.disk.power_on();
        let mut remote = if options.is_remote { Some(start_remote(self.dir.path())?) } else { None };
        let mut server = start(options, self.dir.path(), &socket, prng.pick(&elevators), direct)?;
        let cuts_permille = if !options.is_remote && prng.permille(600) { 20 } else { 0 };
        let stop = Arc::new(AtomicBool::new(false));
        let (has_cut, cut) = channel();
        let clients: Vec<_> = (0..2 * REGIONS)
            .map(|number| {
                let client = Client {
                    history: self.histories[number / 2].clone(),
                    counts: self.counts.clone(),
                    prng: prng.split(),
                    stop: stop.clone(),
                    disk: self.disk.clone(),
                    cuts_permille,
                    ends_with_power: !options.is_remote,
                    has_cut: has_cut.clone(),
                    pending: BTreeMap::new(),
                };
                let socket = socket.clone();
                std::thread::spawn(move || client.run(&socket))
            })
            .collect();
        if let Some(remote) = &mut remote {
            self.kill_remote(remote, &mut prng)?;
        }
        // At any time, or as soon as the power has failed after an acknowledgement.
        let _ = cut.recv_timeout(Duration::from_micros(prng.between(20_000, 250_000)));
        let alive = matches!(server.try_wait(), Ok(None));
        let _ = server.kill();
        let _ = server.wait();
        drop(remote);
        self.disk.fail_power(&mut prng);
        stop.store(true, Ordering::Relaxed);
        let mut problem = (!alive).then(|| "the server ended before it was killed".to_owned());
        for client in clients {
            let ended = client.join().map_err(|_| "a client panicked".to_owned()).and_then(|ended| ended);
            problem = problem.or(ended.err());
        }
        let _ = std::fs::remove_file(&socket);
        problem.map_or(Ok(()), Err)?;
        self.check()
    }

    /// Kills the remote several times while clients go on, and starts it again each time. What it
    /// had not made durable is lost.
    fn kill_remote(&self, remote: &mut Remote, prng: &mut Prng) -> Result<()> {
        for _ in 0..prng.between(1, 4) {
            std::thread::sleep(Duration::from_micros(prng.between(10_000, 200_000)));
            remote.kill();
            self.disk.fail_power(prng);
            std::thread::sleep(Duration::from_micros(prng.between(0, 50_000)));
            self.disk.power_on();
            *remote = start_remote(self.dir.path())?;
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let disk = self.disk.get("disk").ok_or("the file of the disk is gone")?;
        for history in &self.histories {
            let mut history = lock(history);
            self.counts.durable.fetch_add(history.durable_changes(), Ordering::Relaxed);
            let start = history.start as usize;
            history.check_crash(&disk[start..start + REGION_BYTES]).map_err(|what| format!("{LOST}: {what}"))?;
        }
        Ok(())
    }
}

/// A remote server, which is killed on drop.
struct Remote(Child);

impl Remote {
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts nbdkit on the file of the disk, and waits until it listens.
fn start_remote(dir: &Path) -> Result<Remote> {
    let socket = dir.join("remote.sock");
    let _ = std::fs::remove_file(&socket);
    let log = std::fs::File::create(dir.join("remote.log")).map_err(|error| error.to_string())?;
    let child = Process::new("nbdkit")
        .args(["--foreground", "--unix"])
        .arg(&socket)
        .arg("file")
        .arg(dir.join("mount/disk"))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|error| format!("nbdkit: {error}"))?;
    let remote = Remote(child);
    let began = Instant::now();
    while UnixStream::connect(&socket).is_err() {
        if began.elapsed() > Duration::from_secs(20) {
            let log = std::fs::read_to_string(dir.join("remote.log")).unwrap_or_default();
            return Err(format!("nbdkit does not listen after 20 s: {log}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(remote)
}

fn start(options: &Options, dir: &Path, socket: &Path, elevator: &str, direct: bool) -> Result<Child> {
    let config = dir.join("config.toml");
    let backend = match options.is_remote {
        true => format!("backend = \"nbd+unix:///?socket={}\"", dir.join("remote.sock").display()),
        false => format!("backend = \"file:{}\"\ndirect = {direct}", dir.join("mount/disk").display()),
    };
    let text = format!(
        "[[device]]\nname = \"disk\"\n{backend}\nelevator = \"{elevator}\"\n\
         [[export]]\nname = \"\"\ndevice = \"disk\"\n"
    );
    std::fs::write(&config, text).map_err(|error| error.to_string())?;
    let log = std::fs::File::create(dir.join("log")).map_err(|error| error.to_string())?;
    let mut server = Process::new(&options.shared.hoistway)
        .arg("serve")
        .arg("--config")
        .arg(&config)
        .arg("--socket")
        .arg(socket)
        .args(["--control", "none", "--engine", &options.engine])
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|error| format!("{}: {error}", options.shared.hoistway.display()))?;
    let began = Instant::now();
    while UnixStream::connect(socket).is_err() {
        if let Ok(Some(status)) = server.try_wait() {
            let log = std::fs::read_to_string(dir.join("log")).unwrap_or_default();
            return Err(format!("the server ended with {status}: {log}"));
        }
        if began.elapsed() > Duration::from_secs(20) {
            let _ = server.kill();
            let _ = server.wait();
            return Err("the server does not listen after 20 s".into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(server)
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection that writes, reads and flushes until the server dies.
struct Client {
    history: Arc<Mutex<History>>,
    counts: Arc<Counts>,
    prng: Prng,
    stop: Arc<AtomicBool>,
    disk: Disk,
    /// The share of acknowledgements after which the power fails at once, in permille.
    cuts_permille: u64,
    /// The client ends when the power fails.
    ends_with_power: bool,
    /// Signals a power failure.
    has_cut: Sender<()>,
    pending: BTreeMap<u64, PendingRequest>,
}

struct PendingRequest {
    command: Command,
    offset: u64,
    begun: u64,
    change: Option<ChangeId>,
    fua: bool,
}

impl Client {
    fn run(mut self, socket: &Path) -> Result<()> {
        let Ok(mut stream) = UnixStream::connect(socket) else { return Ok(()) };
        let Some(session) = enter(&mut stream, self.prng.pick(&[Replies::Simple, Replies::Structured]))? else {
            return Ok(());
        };
        let mut collector = Collector::new(*session);
        let mut input = vec![0; 256 << 10];
        while !self.stop.load(Ordering::Relaxed) {
            let mut out = Vec::new();
            while self.pending.len() < DEPTH {
                self.ask(&mut collector, &mut out)?;
            }
            if stream.write_all(&out).is_err() {
                return Ok(());
            }
            let Ok(count @ 1..) = stream.read(&mut input) else { return Ok(()) };
            // Replies after a power failure have no meaning.
            if self.ends_with_power && !self.disk.is_on() {
                return Ok(());
            }
            let mut completions = Vec::new();
            collector.receive(&input[..count], &mut completions).map_err(|broken| broken.to_string())?;
            for completion in completions {
                let Some(request) = self.pending.remove(&completion.cookie) else { continue };
                self.handle_completion(&request, completion.result.map_err(|(errno, text)| format!("{errno} {text}")))?;
            }
        }
        Ok(())
    }

    fn ask(&mut self, collector: &mut Collector, out: &mut Vec<u8>) -> Result<()> {
        let command = match self.prng.between(0, 99) {
            0..15 => Command::Read,
            15..80 => Command::Write,
            80..84 => Command::WriteZeroes,
            84..88 => Command::Trim,
            _ => Command::Flush,
        };
        let mut history = lock(&self.history);
        let begun = history.tick();
        let (offset, length) = if command == Command::Flush { (0, 0) } else { range(&mut self.prng, history.start) };
        let fua = command.changes() && self.prng.permille(200);
        let change = match command {
            Command::Write => Some(history.begin(offset, length, Content::Data(0))),
            Command::WriteZeroes => Some(history.begin(offset, length, Content::Zeroes)),
            Command::Trim => Some(history.begin(offset, length, Content::Trimmed)),
            _ => None,
        };
        let data = change.filter(|_| command == Command::Write).map(|change| history.data(change)).unwrap_or_default();
        drop(history);
        let flags = CommandFlags { fua, ..CommandFlags::default() };
        let cookie = collector
            .request(&RequestSpec { command, flags, offset, length }, &data, out)
            .map_err(|misuse| misuse.to_string())?;
        self.pending.insert(cookie, PendingRequest { command, offset, begun, change, fua });
        Ok(())
    }

    fn handle_completion(
        &mut self,
        request: &PendingRequest,
        result: std::result::Result<ReplyContent, String>,
    ) -> Result<()> {
        let outcome = result.map_err(|error| format!("{:?} failed: {error}", request.command))?;
        let mut history = lock(&self.history);
        if let ReplyContent::Data(data) = &outcome {
            history.check_read(request.offset, data, request.begun)?;
        }
        if let Some(change) = request.change {
            history.end(change, true, request.fua);
            self.counts.writes.fetch_add(1, Ordering::Relaxed);
        }
        if request.command == Command::Flush {
            history.flushed(request.begun);
            self.counts.flushes.fetch_add(1, Ordering::Relaxed);
        }
        drop(history);
        if (request.fua || request.command == Command::Flush) && self.prng.permille(self.cuts_permille) {
            self.disk.fail_power(&mut self.prng);
            let _ = self.has_cut.send(());
        }
        Ok(())
    }
}

/// Returns a random range of a region: in a few hot pages or anywhere, of pages, sectors or bytes.
fn range(prng: &mut Prng, start: u64) -> (u64, u64) {
    let span = prng.pick(&[32 << 10, REGION_BYTES as u64 - (64 << 10)]);
    let unit = prng.pick(&[1, 512, 4096]);
    let length = (prng.magnitude((32 << 10) / unit) * unit).max(1);
    let at = (start + prng.between(0, span)).next_multiple_of(unit);
    (at, length)
}

/// Leads the handshake; none: the server died meanwhile.
fn enter(stream: &mut UnixStream, replies: Replies) -> Result<Option<Box<hoistway_nbd::client::Session>>> {
    let wants = HandshakeOptions {
        export: String::new(),
        tls: TlsMode::Never,
        replies,
        contexts: Vec::new(),
        goal: Goal::Enter,
    };
    let (mut handshake, mut input) = (Handshake::new(wants), [0; 4096]);
    loop {
        let Ok(count @ 1..) = stream.read(&mut input) else { return Ok(None) };
        let mut out = Vec::new();
        let progress = handshake.receive(&input[..count], &mut out).map_err(|failure| failure.to_string())?.1;
        if stream.write_all(&out).is_err() {
            return Ok(None);
        }
        if let Progress::Ready(session) = progress {
            return Ok(Some(session));
        }
    }
}
