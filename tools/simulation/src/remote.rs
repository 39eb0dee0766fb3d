//! A remote NBD server of a world: it executes requests in any order, loses connections, and
//! crashes.
//!
//! It is another machine than that of the server, with a disk that has a volatile write cache. A
//! crash resets its connections and loses what its disk has not made durable. A lost connection
//! loses the replies to its requests; each of them is executed at once or never. A failover is the
//! crash of one of several machines in front of the disk: one connection and the write cache are
//! lost, the other connections remain.

use std::fmt;

use hoistway_config::RemoteConfig;
use hoistway_nbd::server::{Catalogue, Extent, Handshake, Parsed, Progress, Request, Session, Tls};
use hoistway_nbd::uri::{ServerAddress, TlsQuery, Uri};
use hoistway_nbd::wire::Command;
use hoistway_nbd::{Abilities, Export, Limits};
use hoistway_reactor::Endpoint;
use hoistway_reactor::simulated::{Actor, ActorId, DiskId, LinkId, LinkPlan, LinkState, Prng, Sim};

const MS: u64 = 1_000_000;
/// The number of extents in one reply.
const EXTENTS_MAX: usize = 16;
/// The bytes that are read from a connection at a time.
const READ_BYTES: usize = 64 << 10;

/// The plan of a remote server and of the server's connections to it.
#[derive(Clone, Copy, Debug)]
pub struct RemotePlan {
    /// The maximum number of connections of the server.
    pub connections: u32,
    /// The remote announces that several connections may be used.
    pub multi_conn: bool,
    /// The remote supports FUA.
    pub fua: bool,
    /// The minimum block size in bytes.
    pub block_min: u32,
    /// The largest payload in bytes.
    pub payload_max: u32,
    /// The bytes of unflushed writes that the server keeps.
    pub unflushed_bytes: u64,
    /// The time in ns after which requests fail.
    pub timeout_ns: u64,
    /// The number of crashes and lost connections.
    pub failures: u32,
    /// The longest time in ns between two of them.
    pub calm_ns_max: u64,
    /// The remote fails only while it has requests.
    pub fails_under_load: bool,
    /// Failures of a thousand that are failovers, if there are several connections.
    pub failovers_permille: u64,
    /// Of the other failures, those of a thousand that are crashes; the rest lose one connection.
    pub crashes_permille: u64,
    /// The longest time in ns from a crash to the restart.
    pub down_ns_max: u64,
    /// The longest time of one of two steps of a request, in ns.
    pub latency_ns_max: u64,
    /// The behaviour of the connections.
    pub link: LinkPlan,
}

impl RemotePlan {
    /// Derives a plan.
    pub(super) fn new(prng: &mut Prng) -> RemotePlan {
        // In some worlds the remote is away for longer than requests may take.
        let is_late = prng.permille(150);
        // In others it fails again soon, so that requests wait at each new connection.
        let is_stormy = !is_late && prng.permille(600);
        RemotePlan {
            connections: prng.pick(&[1, 2, 4, 4]),
            multi_conn: prng.permille(800),
            fua: prng.permille(700),
            block_min: prng.pick(&[1, 1, 512, 4096]),
            payload_max: prng.pick(&[64 << 10, 1 << 20, 32 << 20]),
            // Without kept writes, reads after a crash of the remote return older data.
            unflushed_bytes: prng.pick(&[16 << 10, 256 << 10, 64 << 20]),
            timeout_ns: if is_late { 1_000 * MS } else { 3_600_000 * MS },
            failures: if is_stormy { prng.between(6, 12) as u32 } else { prng.magnitude(12) as u32 },
            calm_ns_max: prng.pick(if is_stormy { &[MS, 5 * MS, 20 * MS] } else { &[5 * MS, 60 * MS, 1_000 * MS] }),
            fails_under_load: is_stormy,
            failovers_permille: prng.pick(&[0, 500, 500, 900]),
            crashes_permille: prng.pick(&[200, 600, 1000]),
            down_ns_max: if is_late { 3_000 * MS } else { prng.pick(&[MS, 300 * MS, 2_000 * MS]) },
            latency_ns_max: prng.pick(&[20_000, MS, 10 * MS]),
            link: LinkPlan {
                latency_ns_max: prng.pick(&[1_000, 100_000, 3 * MS]),
                capacity: prng.pick(&[4_000, 200_000, 1 << 20]),
                piece_max: prng.pick(&[600, 40_000, 1 << 20, 1 << 20]),
            },
        }
    }

    /// Returns true if valid requests may fail.
    pub(super) fn may_fail(&self) -> bool {
        self.timeout_ns < 3_600_000 * MS
    }

    /// Returns the path of the socket of a device's remote.
    fn path(device: usize) -> String {
        format!("remote-{device}")
    }

    /// Returns the address of a device's remote.
    pub(super) fn endpoint(device: usize) -> Endpoint {
        Endpoint::Unix(RemotePlan::path(device).into())
    }

    /// Returns the configuration of the server for its remote.
    pub(super) fn config(&self, device: usize) -> RemoteConfig {
        let uri = Uri {
            tls: false,
            server: ServerAddress::Unix { path: RemotePlan::path(device) },
            user: None,
            export: "disk".to_owned(),
            tls_query: TlsQuery::default(),
        };
        RemoteConfig {
            connections: self.connections,
            timeout_ns: self.timeout_ns,
            unflushed_bytes: self.unflushed_bytes,
            ..RemoteConfig::new(uri)
        }
    }
}

impl fmt::Display for RemotePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// A remote server.
pub(super) struct RemoteServer {
    plan: RemotePlan,
    disk: DiskId,
    export: Export,
    connections: Vec<RemoteConnection>,
    jobs: Vec<Job>,
    prng: Prng,
    /// No request is executed before this time in ns.
    silent_until_ns: u64,
    /// The time of the restart after a crash.
    down_until_ns: Option<u64>,
    /// The time of the next failure.
    next_failure_ns: Option<u64>,
    failures: u32,
    /// The number of the last I/O on the disk.
    io: u64,
}

struct RemoteConnection {
    link: LinkId,
    /// True after the first request.
    has_requests: bool,
    stage: Stage,
    input: Vec<u8>,
    output: Vec<u8>,
}

enum Stage {
    Handshake(Box<Handshake>),
    Session(Box<Session>),
}

/// A request in progress.
struct Job {
    link: LinkId,
    request: Request,
    /// The data of a write, or of a read after its effect.
    data: Vec<u8>,
    io: u64,
    /// For a flush: the completed writes that it covers.
    horizon: u64,
    /// True after the effect; the reply follows.
    is_effective: bool,
    due_ns: u64,
}

/// The only export.
struct Shelf<'a>(&'a Export);

impl Catalogue for Shelf<'_> {
    fn list(&self) -> Vec<(String, String)> {
        vec![(self.0.name.clone(), String::new())]
    }

    fn find(&self, name: &str) -> Option<Export> {
        (name == self.0.name).then(|| self.0.clone())
    }
}

impl RemoteServer {
    /// Creates a server over a disk of this size.
    pub fn new(plan: RemotePlan, disk: DiskId, size: u64, prng: Prng) -> RemoteServer {
        let export = Export {
            name: "disk".to_owned(),
            description: String::new(),
            size,
            abilities: Abilities {
                flush: true,
                fua: plan.fua,
                trim: true,
                write_zeroes: true,
                multi_conn: plan.multi_conn,
                cache: true,
                block_status: true,
                ..Abilities::default()
            },
            block_min: plan.block_min,
            block_preferred: 4096,
            payload_max: plan.payload_max,
            tls_only: false,
        };
        RemoteServer {
            plan,
            disk,
            export,
            connections: Vec::new(),
            jobs: Vec::new(),
            prng,
            silent_until_ns: 0,
            down_until_ns: None,
            next_failure_ns: None,
            failures: 0,
            io: 0,
        }
    }

    /// Returns true if a failure may follow.
    fn may_fail(&self) -> bool {
        let is_loaded = !self.jobs.is_empty() || !self.plan.fails_under_load;
        self.failures < self.plan.failures && !self.connections.is_empty() && is_loaded
    }

    /// Fails if it is time: fails over, crashes, or loses a connection.
    fn fail(&mut self, me: ActorId, sim: &mut Sim) {
        if !self.may_fail() {
            return;
        }
        let now_ns = sim.now_ns;
        let at_ns = *self.next_failure_ns.get_or_insert_with(|| now_ns + self.prng.magnitude(self.plan.calm_ns_max));
        if now_ns < at_ns {
            return;
        }
        self.next_failure_ns = None;
        let has_nodes = self.plan.multi_conn && self.plan.connections > 1;
        if has_nodes && self.prng.permille(self.plan.failovers_permille) {
            // It waits until there are several connections.
            self.failures += u32::from(self.fail_over(sim));
            return;
        }
        self.failures += 1;
        if self.prng.permille(self.plan.crashes_permille) {
            sim.trace.note(now_ns, &[40, self.disk.0 as u64], format_args!("remote {} crashes", self.disk.0));
            for connection in std::mem::take(&mut self.connections) {
                sim.reset(connection.link);
            }
            self.jobs.clear();
            sim.disk_mut(self.disk).crash(&mut self.prng);
            sim.set_up(me, false);
            self.down_until_ns = Some(now_ns + self.prng.magnitude(self.plan.down_ns_max));
        } else {
            let lost = self.prng.index(self.connections.len());
            let link = self.connections[lost].link;
            let numbers = [41, self.disk.0 as u64, link.0 as u64];
            sim.trace.note(now_ns, &numbers, format_args!("remote {} loses {link:?}", self.disk.0));
            sim.reset(link);
        }
    }

    /// Loses a connection and the write cache, if other connections remain. These execute no
    /// request until the server has noticed the loss: without that, no client could find out that
    /// writes are lost. Returns false if there is no connection whose loss the server notices.
    fn fail_over(&mut self, sim: &mut Sim) -> bool {
        // The loss of a connection without requests says nothing to the server.
        let used =
            |connection: &RemoteConnection| connection.has_requests && sim.state(connection.link) == LinkState::Open;
        let used: Vec<LinkId> =
            self.connections.iter().filter(|connection| used(connection)).map(|of| of.link).collect();
        if used.is_empty() || self.connections.len() < 2 {
            return false;
        }
        let lost = used[self.prng.index(used.len())];
        // Flushes are rare, and those in progress the most delicate requests.
        let is_flush = |job: &Job| job.request.command == Command::Flush && job.link != lost;
        if !self.jobs.iter().any(is_flush) && self.prng.permille(800) {
            return false;
        }
        let numbers = [43, self.disk.0 as u64, lost.0 as u64];
        sim.trace.note(sim.now_ns, &numbers, format_args!("remote {} fails over without {lost:?}", self.disk.0));
        self.connections.retain(|connection| connection.link != lost);
        self.jobs.retain(|job| job.link != lost);
        sim.reset(lost);
        sim.disk_mut(self.disk).crash(&mut self.prng);
        self.silent_until_ns = sim.now_ns + self.plan.link.latency_ns_max + MS;
        for job in &mut self.jobs {
            job.is_effective = false;
            job.due_ns = self.silent_until_ns + self.prng.magnitude(self.plan.latency_ns_max);
        }
        true
    }

    /// Ends the connections that are no longer open, with their requests.
    fn end_connections(&mut self, sim: &mut Sim) {
        let open = |connection: &RemoteConnection| sim.state(connection.link) == LinkState::Open;
        let (kept, ended) = std::mem::take(&mut self.connections).into_iter().partition(open);
        self.connections = kept;
        for RemoteConnection { link, .. } in ended {
            let (of_link, others) = std::mem::take(&mut self.jobs).into_iter().partition(|job| job.link == link);
            self.jobs = others;
            for mut job in of_link {
                // A request that was received may still be executed, but not later, and not after
                // the power of the whole world has failed.
                if !job.is_effective && !sim.was_cut(link) && self.prng.permille(500) {
                    self.effect(&mut job, sim);
                }
                sim.disk_mut(self.disk).finish(job.io);
            }
        }
    }

    /// Reads the input of a connection and starts its requests.
    fn read(&mut self, at: usize, sim: &mut Sim) {
        let mut bytes = vec![0; READ_BYTES];
        let link = self.connections[at].link;
        loop {
            let count = sim.read(link, &mut bytes);
            if count == 0 {
                break;
            }
            self.connections[at].input.extend_from_slice(&bytes[..count]);
        }
        while self.parse(at, sim) {}
    }

    /// Processes the next part of a connection's input. Returns false if more input is needed.
    fn parse(&mut self, at: usize, sim: &mut Sim) -> bool {
        let connection = &mut self.connections[at];
        let session = match &mut connection.stage {
            Stage::Handshake(handshake) => {
                let (used, progress) =
                    handshake.receive(&connection.input, &Shelf(&self.export), &mut connection.output);
                connection.input.drain(..used);
                let Progress::Ready(session) = progress else { return false };
                connection.stage = Stage::Session(session);
                return true;
            }
            Stage::Session(session) => session,
        };
        match session.parse(&connection.input) {
            Parsed::Need(_) => false,
            Parsed::Violated(violation) => {
                sim.violated(format!("the server violates the protocol at its remote: {violation}"));
                false
            }
            Parsed::Request(request, header_bytes) => {
                let bytes = header_bytes + request.payload_bytes as usize;
                if connection.input.len() < bytes {
                    return false;
                }
                let data = connection.input[header_bytes..bytes].to_vec();
                connection.input.drain(..bytes);
                if let Some((errno, text)) = request.refused {
                    sim.violated(format!("the server sends its remote {request:?}: {errno}: {text}"));
                    return false;
                }
                let link = connection.link;
                connection.has_requests = true;
                self.start(link, request, data, sim);
                true
            }
        }
    }

    fn start(&mut self, link: LinkId, request: Request, data: Vec<u8>, sim: &mut Sim) {
        self.io += 1;
        let numbers = [42, self.disk.0 as u64, request.offset, request.length];
        sim.trace.note(sim.now_ns, &numbers, format_args!("remote {}: {link:?}: {request:?}", self.disk.0));
        let horizon = sim.disk(self.disk).horizon();
        let due_ns = self.silent_until_ns.max(sim.now_ns) + self.prng.magnitude(self.plan.latency_ns_max);
        self.jobs.push(Job { link, request, data, io: self.io, horizon, is_effective: false, due_ns });
    }

    /// Executes a request.
    fn effect(&mut self, job: &mut Job, sim: &mut Sim) {
        let Request { command, flags, offset, length, .. } = job.request;
        let keeps = sim.disk(self.disk).plan.trim_keeps;
        let disk = sim.disk_mut(self.disk);
        let (from, bytes) = (offset as usize, length as usize);
        match command {
            Command::Read => {
                job.data = vec![0; bytes];
                disk.read(offset, &mut job.data);
            }
            Command::Write => disk.write(job.io, from, &job.data),
            Command::WriteZeroes => disk.zero(job.io, from, bytes, !flags.no_hole),
            Command::Trim if !keeps => disk.zero(job.io, from, bytes, true),
            _ => {}
        }
        job.is_effective = true;
    }

    /// Completes a request and writes its reply.
    fn complete(&mut self, job: &Job, sim: &mut Sim) {
        let disk = sim.disk_mut(self.disk);
        match job.request.command {
            Command::Flush => disk.flush(job.horizon),
            command if command.changes() && job.request.flags.fua => disk.persist(job.io),
            _ => {}
        }
        disk.finish(job.io);
        let extents = disk.status(job.request.offset, job.request.length, EXTENTS_MAX);
        let Some(connection) = self.connections.iter_mut().find(|connection| connection.link == job.link) else {
            return;
        };
        let Stage::Session(session) = &connection.stage else { return };
        let out = &mut connection.output;
        match job.request.command {
            Command::Read => {
                session.data(&job.request, out);
                out.extend_from_slice(&job.data);
            }
            Command::BlockStatus => {
                let extent =
                    |of: &hoistway_reactor::Allocation| Extent { length: of.length, hole: of.hole, zero: of.hole };
                session.block_status(&job.request, &extents.iter().map(extent).collect::<Vec<_>>(), out);
            }
            _ => session.ok(&job.request, out),
        }
    }

    /// Continues the requests that are due.
    fn continue_jobs(&mut self, sim: &mut Sim) {
        let (due, later) = std::mem::take(&mut self.jobs).into_iter().partition(|job| job.due_ns <= sim.now_ns);
        self.jobs = later;
        for mut job in due {
            if job.is_effective {
                self.complete(&job, sim);
            } else {
                self.effect(&mut job, sim);
                job.due_ns = sim.now_ns + self.prng.magnitude(self.plan.latency_ns_max);
                self.jobs.push(job);
            }
        }
    }
}

impl Actor for RemoteServer {
    fn step(&mut self, me: ActorId, sim: &mut Sim) {
        if self.down_until_ns.is_some_and(|until_ns| until_ns <= sim.now_ns) {
            self.down_until_ns = None;
            sim.set_up(me, true);
        }
        for link in sim.take_accepted(me) {
            let mut output = Vec::new();
            let handshake = Handshake::new(Tls::Off, Limits::default(), &mut output);
            let stage = Stage::Handshake(Box::new(handshake));
            self.connections.push(RemoteConnection { link, has_requests: false, stage, input: Vec::new(), output });
        }
        self.end_connections(sim);
        for at in 0..self.connections.len() {
            self.read(at, sim);
        }
        self.continue_jobs(sim);
        self.fail(me, sim);
        for connection in &mut self.connections {
            let count = sim.write(connection.link, &connection.output);
            connection.output.drain(..count);
        }
        let jobs = self.jobs.iter().map(|job| job.due_ns).min();
        let failure = self.next_failure_ns.filter(|_| self.may_fail());
        if let Some(at_ns) = [jobs, self.down_until_ns, failure].into_iter().flatten().min() {
            sim.wake_at(at_ns.max(sim.now_ns + 1), me);
        }
    }

    fn is_done(&self) -> bool {
        true
    }
}
