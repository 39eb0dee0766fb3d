//! A host of a queue in virtual time: a disk without data, which checks what begins, and clients
//! whose requests are checked when they complete.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashSet};

use hoistway_core::Kind;
use hoistway_qos::medium::DriveCommand;
use hoistway_qos::{
    Begin, CommandId, Completion, DiskQueue, DiskQueueConfig, IoError, IoId, IoRequest, Limits, Medium, MediumEvent,
    MediumProperties, MediumRequest, MemberId, OpKind, Output, Rate, RequestOp, Terms,
};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;
pub const MIB: u64 = 1 << 20;

/// The name under which clients without a tenant are accounted.
pub const DEFAULT: &str = "default";

pub fn rate(per_second: u64, burst: u64) -> Option<Rate> {
    Some(Rate { per_second, burst })
}

pub fn limited(bytes: Option<Rate>, operations: Option<Rate>) -> Terms {
    Terms { limits: Limits { bytes, operations }, ..Terms::default() }
}

/// The data of a write: the range to which they belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    offset: u64,
    length: u64,
}

/// The output of a read: the ranges that were read, in the order of the pieces.
#[derive(Debug, Default)]
pub struct Ranges(Vec<(u64, u64)>);

impl Output for Ranges {
    fn none() -> Self {
        Ranges::default()
    }
    fn from_pieces(pieces: Vec<(u64, Self)>) -> Self {
        for (length, piece) in &pieces {
            assert_eq!(piece.0.iter().map(|(_, length)| length).sum::<u64>(), *length, "the output of another piece");
        }
        Ranges(pieces.into_iter().flat_map(|(_, piece)| piece.0).collect())
    }
}

/// How the disk ends its I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Within the call.
    AtOnce,
    /// Later, each I/O for itself.
    Later,
    /// As a drive model reports it.
    InDrive,
}

/// An I/O that began.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    pub at_ns: u64,
    pub ticket: u64,
    pub op: RequestOp,
    pub offset: u64,
    pub length: u64,
}

/// What ends at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Io(IoId),
    Command(CommandId),
    DriveFlush,
}

pub struct Disk {
    pub ends: Ends,
    /// Each I/O takes this time, and up to as much again.
    pub io_ns: u64,
    /// All I/O that begins fails.
    pub fails: bool,
    pub begun: Vec<Begun>,
    /// Tickets of clients that have left.
    gone: HashSet<u64>,
    /// Tickets of which an I/O failed.
    failed: HashSet<u64>,
    /// The I/O in progress.
    in_progress: BTreeMap<IoId, Result<Vec<(u64, u64)>, IoError>>,
    ends_at: BinaryHeap<Reverse<(u64, u64, End)>>,
    order: u64,
    now_ns: u64,
    /// The disk's flushes: whether each succeeds, and whether it has ended.
    flushes: Vec<(bool, bool)>,
}

impl Disk {
    fn new(ends: Ends, io_ns: u64) -> Disk {
        Disk {
            ends,
            io_ns,
            fails: false,
            begun: Vec::new(),
            gone: HashSet::new(),
            failed: HashSet::new(),
            in_progress: BTreeMap::new(),
            ends_at: BinaryHeap::new(),
            order: 0,
            now_ns: 0,
            flushes: Vec::new(),
        }
    }

    /// Returns the number of I/Os in progress, flushes and status queries excepted.
    pub fn in_progress(&self) -> usize {
        self.in_progress.len() - usize::from(self.in_progress.contains_key(&IoId::FLUSH))
    }

    fn ends_later(&mut self, end: End) {
        self.order += 1;
        // Each seventh takes the time once, and the next ones up to twice.
        let ns = self.io_ns + self.io_ns * (self.order % 7) / 7;
        self.ends_at.push(Reverse((self.now_ns + ns, self.order, end)));
    }

    fn next_ns(&self) -> Option<u64> {
        self.ends_at.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    fn take_end(&mut self, now_ns: u64) -> Option<End> {
        self.next_ns().filter(|&at_ns| at_ns <= now_ns)?;
        let Reverse((.., end)) = self.ends_at.pop()?;
        if matches!(end, End::DriveFlush | End::Io(IoId::FLUSH)) {
            self.flushes.last_mut().expect("it has begun").1 = true;
        }
        Some(end)
    }
}

impl Medium for Disk {
    type Data = Data;
    type Output = Ranges;

    fn begin(&mut self, request: MediumRequest<Data>) -> Begin<Ranges> {
        let MediumRequest { io, ticket, op, offset, length, data, .. } = request;
        assert!(!self.in_progress.contains_key(&io), "two I/Os have the id {io:?}");
        assert!(!self.gone.contains(&ticket), "the client of {ticket} has left");
        let expected = (op == RequestOp::Write).then_some(Data { offset, length });
        assert_eq!(data, expected, "the data of the write {ticket}");
        let result = if self.fails { Err(IoError::Io) } else { Ok(vec![(offset, length)]) };
        if self.fails {
            self.failed.insert(ticket);
        }
        match op {
            RequestOp::Flush => {
                assert!(self.flushes.iter().all(|(_, ended)| *ended), "two flushes at a time");
                self.flushes.push((!self.fails, self.ends == Ends::AtOnce));
            }
            _ => self.begun.push(Begun { at_ns: self.now_ns, ticket, op, offset, length }),
        }
        if self.ends == Ends::Later {
            self.in_progress.insert(io, result);
            self.ends_later(End::Io(io));
            return Begin::Pending;
        }
        Begin::Done(result.map(Ranges))
    }

    fn copy_piece(&mut self, data: &Data, from: usize, length: usize) -> Option<Data> {
        let piece = Data { offset: data.offset + from as u64, length: length as u64 };
        (piece.offset + piece.length <= data.offset + data.length).then_some(piece)
    }

    fn start_command(&mut self, command: &DriveCommand, now_ns: u64) -> bool {
        assert_eq!((self.ends, self.now_ns), (Ends::InDrive, now_ns));
        self.ends_later(End::Command(command.id));
        true
    }

    fn start_flush(&mut self, _: u64) -> bool {
        if self.ends == Ends::InDrive {
            self.ends_later(End::DriveFlush);
        }
        self.ends == Ends::InDrive
    }

    fn poll(&mut self, now_ns: u64) -> Option<MediumEvent> {
        self.now_ns = self.now_ns.max(now_ns);
        if self.ends != Ends::InDrive {
            return None;
        }
        match self.take_end(now_ns)? {
            End::Command(id) => Some(MediumEvent::CommandDone { id, bad_sector: None }),
            _ => Some(MediumEvent::FlushDone),
        }
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.next_ns().filter(|_| self.ends == Ends::InDrive)
    }
}

/// A request without a completion.
#[derive(Clone, Debug)]
struct Sent {
    member: MemberId,
    tenant: String,
    op: RequestOp,
    offset: u64,
    length: u64,
    /// The number of flushes that the disk had begun when it was submitted.
    flushes: usize,
}

/// The counts of one tenant by [`OpKind`]: requests, bytes, errors.
pub type Counts = [(u64, u64, u64); 4];

/// A queue on a [`Disk`], and the requests of its clients.
pub struct Host {
    pub queue: DiskQueue<Data, Ranges>,
    pub disk: Disk,
    pub now_ns: u64,
    tickets: u64,
    open: BTreeMap<u64, Sent>,
    /// The completions: time, ticket, success.
    pub done: Vec<(u64, u64, bool)>,
    /// What completed for each tenant.
    pub counts: BTreeMap<String, Counts>,
}

/// The properties of a disk of 64 MiB that is flash.
pub fn properties(ends: Ends) -> MediumProperties {
    MediumProperties {
        bytes: 64 * MIB,
        rotational: false,
        is_emulated: ends == Ends::InDrive,
        is_synchronous: ends == Ends::AtOnce,
        splits_requests: true,
        io_bytes_max: 32 * MIB,
        default_depth: 8,
        depth_max: 4096,
    }
}

/// A configuration without merging, so that each request of the queue is one I/O of the disk.
pub fn plain(kind: Kind, depth: u32) -> DiskQueueConfig {
    DiskQueueConfig { elevator: Some(kind), depth: Some(depth), merge: false, ..DiskQueueConfig::new("d") }
}

impl Host {
    pub fn new(config: &DiskQueueConfig, ends: Ends, io_ns: u64) -> Host {
        Host::over(config, properties(ends), ends, io_ns)
    }

    pub fn over(config: &DiskQueueConfig, medium: MediumProperties, ends: Ends, io_ns: u64) -> Host {
        Host {
            queue: DiskQueue::new(config, medium, 0).expect("a good configuration"),
            disk: Disk::new(ends, io_ns),
            now_ns: 0,
            tickets: 0,
            open: BTreeMap::new(),
            done: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    pub fn tenant(&mut self, name: &str, terms: &Terms) {
        let now_ns = self.now_ns;
        self.queue.scheduler_mut().set_tenant(name, terms, now_ns).expect("good terms");
    }

    pub fn join(&mut self, tenant: Option<&str>) -> MemberId {
        let now_ns = self.now_ns;
        self.queue.scheduler_mut().join(tenant, None, now_ns).expect("the client can join")
    }

    /// Submits a request without running the queue. Returns its ticket.
    pub fn submit(&mut self, member: MemberId, tenant: &str, op: RequestOp, offset: u64, length: u64) -> u64 {
        self.tickets += 1;
        let ticket = self.tickets;
        let data = (op == RequestOp::Write).then_some(Data { offset, length });
        let request = IoRequest { data, ..IoRequest::plain(ticket, op, offset, length) };
        let flushes = self.disk.flushes.len();
        let sent = Sent { member, tenant: tenant.to_owned(), op, offset, length, flushes };
        self.open.insert(ticket, sent);
        let now_ns = self.now_ns;
        self.queue.submit(member, request, now_ns);
        ticket
    }

    /// Removes a client; no I/O of it may begin from now on, and none of its requests complete.
    pub fn leave(&mut self, member: MemberId) {
        let now_ns = self.now_ns;
        self.queue.leave(member, now_ns);
        let gone: BTreeSet<u64> =
            self.open.iter().filter(|(_, sent)| sent.member == member).map(|(ticket, _)| *ticket).collect();
        self.open.retain(|ticket, _| !gone.contains(ticket));
        self.disk.gone.extend(gone);
    }

    /// Does what is due now.
    pub fn run(&mut self) {
        let now_ns = self.now_ns;
        self.disk.now_ns = now_ns;
        if self.disk.ends == Ends::Later {
            while let Some(End::Io(io)) = self.disk.take_end(now_ns) {
                let result = self.disk.in_progress.remove(&io).expect("it is in progress");
                self.queue.end_io(io, result.map(Ranges), now_ns);
            }
        }
        let (begun, depth) = (self.disk.begun.len(), self.queue.scheduler().depth());
        let mut done = Vec::new();
        self.queue.run(&mut self.disk, now_ns, &mut done);
        let begins_io = self.disk.begun[begun..].iter().any(|begun| begun.op != RequestOp::Status);
        assert!(!begins_io || self.queue.scheduler().in_flight() <= depth, "requests begin beyond the depth {depth}");
        for completion in done {
            self.complete(completion);
        }
    }

    /// Lets time pass, and runs the queue only when it asks for it or an I/O ends.
    pub fn run_until(&mut self, until_ns: u64) {
        let mut runs_at_once = 0;
        loop {
            self.run();
            let wake_ns = self.queue.next_wake_ns(self.disk.next_event_ns());
            let next_ns = [wake_ns, self.disk.next_ns()].into_iter().flatten().min();
            let Some(next_ns) = next_ns.filter(|&next_ns| next_ns <= until_ns) else { break };
            runs_at_once = if next_ns > self.now_ns { 0 } else { runs_at_once + 1 };
            assert!(runs_at_once < 10_000, "the queue asks to be run again and does nothing");
            self.now_ns = self.now_ns.max(next_ns);
        }
        self.now_ns = self.now_ns.max(until_ns);
    }

    /// Runs until nothing is left to do. Every request of a present client has to complete.
    pub fn drain(&mut self) {
        let until_ns = self.now_ns + 10_000 * SECOND;
        self.run_until(until_ns);
        assert!(self.open.is_empty(), "without a completion: {:?}", self.open);
        assert!(self.queue.is_idle());
        let scheduler = self.queue.scheduler();
        assert_eq!((scheduler.waiting(), scheduler.in_flight()), ((0, 0), 0));
        for (name, account) in scheduler.accounts() {
            assert_eq!((account.waiting, account.held, account.in_flight), (0, 0, 0), "{name}");
        }
    }

    fn complete(&mut self, completion: Completion<Ranges>) {
        let ticket = completion.ticket;
        let sent = self.open.remove(&ticket);
        let sent = sent.unwrap_or_else(|| panic!("{ticket} completes twice, or after its client has left"));
        let Sent { op, offset, length, .. } = sent;
        let is_good = completion.result.is_ok();
        if op == RequestOp::Flush {
            let after = &self.disk.flushes[sent.flushes..];
            assert!(after.contains(&(is_good, true)), "no flush of the disk covers {ticket}");
        } else if offset + length > 64 * MIB || length == 0 {
            assert!(!is_good, "{ticket} is beyond the end");
        } else if !(op == RequestOp::Cache && self.disk.ends == Ends::AtOnce) {
            assert_eq!(is_good, !self.disk.failed.contains(&ticket), "the result of {ticket}: {sent:?}");
            if is_good {
                self.check_ranges(ticket, &sent, &completion.result.expect("it is good"));
            }
        }
        self.done.push((self.now_ns, ticket, is_good));
        self.count(&sent, is_good);
    }

    /// Checks that the disk did each byte of a request once, and that the output of a read is in
    /// order.
    fn check_ranges(&self, ticket: u64, sent: &Sent, output: &Ranges) {
        let mut begun: Vec<(u64, u64)> =
            self.disk.begun.iter().filter(|io| io.ticket == ticket).map(|io| (io.offset, io.length)).collect();
        begun.sort_unstable();
        for ranges in [Some(&begun), (sent.op == RequestOp::Read).then_some(&output.0)].into_iter().flatten() {
            let end = ranges.iter().try_fold(sent.offset, |at, (from, length)| (at == *from).then_some(from + length));
            assert_eq!(end, Some(sent.offset + sent.length), "{ticket}: {sent:?} was done as {ranges:?}");
        }
    }

    fn count(&mut self, sent: &Sent, is_good: bool) {
        let is_refused = sent.op != RequestOp::Flush && (sent.offset + sent.length > 64 * MIB || sent.length == 0);
        let at_once = sent.op == RequestOp::Cache && self.disk.ends == Ends::AtOnce;
        let Some(kind) = OpKind::of(sent.op).filter(|_| !is_refused && !at_once) else { return };
        let counts = &mut self.counts.entry(sent.tenant.clone()).or_default()[kind as usize];
        counts.0 += 1;
        if is_good {
            counts.1 += sent.length;
        } else {
            counts.2 += 1;
        }
    }

    /// Checks the accounts of all tenants against what completed.
    pub fn check_accounts(&self) {
        for (name, account) in self.queue.scheduler().accounts() {
            let counted = [0, 1, 2, 3].map(|kind| {
                let op = &account.ops[kind];
                let recorded = op.total_ns.as_ref().map_or(0, |histogram| histogram.len());
                assert_eq!(recorded, op.requests, "latencies of {name}");
                (op.requests, op.bytes, op.errors)
            });
            assert_eq!(counted, self.counts.get(name).copied().unwrap_or_default(), "the account of {name}");
        }
    }
}
