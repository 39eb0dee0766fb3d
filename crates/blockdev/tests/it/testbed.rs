//! A device on a fake engine in virtual time, with clients that keep requests in flight.

use hoistway_qos::DiskQueueConfig;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use hoistway_blockdev::Backend;
use hoistway_blockdev::{BlockRequest, Device, DeviceDriver, DeviceId, IoOutput};
use hoistway_config::{BackendConfig, DeviceConfig};
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_qos::{Completion, MemberId, RequestOp};
use hoistway_reactor::Buffer;
use hoistway_reactor::{ConnId, Endpoint, Engine, Event, FileId, Io, IoDone, IoOp, ListenerId, Message};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;
pub const MIB: u64 = 1 << 20;

/// An engine with one file, in which each I/O takes `io_ns`; all I/O runs in parallel.
#[derive(Default)]
pub struct FakeEngine {
    pub now_ns: u64,
    pub io_ns: u64,
    /// The I/O that was started: time, operation, offset, length.
    pub log: Vec<(u64, IoOp, u64, u64)>,
    /// The I/O in flight: end time, order of start, tag.
    under_way: BinaryHeap<Reverse<(u64, u64, u64)>>,
    ends: std::collections::HashMap<u64, IoDone>,
    started: u64,
    pub file: Vec<u8>,
    /// Writes fail with this error number.
    pub write_error: Option<i32>,
    /// Flushes fail with this error number.
    pub flush_error: Option<i32>,
}

impl FakeEngine {
    fn next_ns(&self) -> Option<u64> {
        self.under_way.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    fn take(&mut self) -> Option<(u64, IoDone)> {
        let Reverse((at_ns, order, tag)) = *self.under_way.peek()?;
        if at_ns > self.now_ns {
            return None;
        }
        self.under_way.pop();
        Some((tag, self.ends.remove(&order).expect("everything started has an end")))
    }
}

impl Engine for FakeEngine {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }
    fn buffer(&mut self, len: usize) -> Buffer {
        Buffer::alone(len)
    }
    fn start(&mut self, tag: u64, io: Io) {
        self.log.push((self.now_ns, io.op, io.offset, io.length));
        let mut done = IoDone { result: Ok(()), buffer: io.buffer, extents: Vec::new(), missing: 0 };
        let (from, to) = (io.offset as usize, (io.offset + io.length) as usize);
        match (io.op, &mut done.buffer) {
            (IoOp::Read, Some(buffer)) => buffer[..to - from].copy_from_slice(&self.file[from..to]),
            (IoOp::Write { .. }, Some(buffer)) => match self.write_error {
                Some(errno) => done.result = Err(errno),
                None => self.file[from..to].copy_from_slice(&buffer[..to - from]),
            },
            (IoOp::Zero { .. } | IoOp::Trim, _) => self.file[from..to].fill(0),
            (IoOp::Flush, _) => done.result = self.flush_error.map_or(Ok(()), Err),
            _ => {}
        }
        self.started += 1;
        self.under_way.push(Reverse((self.now_ns + self.io_ns, self.started, tag)));
        self.ends.insert(self.started, done);
    }
    fn listen(&mut self, _: OwnedFd) -> ListenerId {
        unreachable!("devices have no sockets")
    }
    fn unlisten(&mut self, _: ListenerId) {}
    fn adopt(&mut self, _: OwnedFd) -> ConnId {
        unreachable!("devices have no sockets")
    }
    fn connect(&mut self, _: u64, _: Endpoint, _: u64) {
        unreachable!("devices on files have no connections")
    }
    fn receive(&mut self, _: ConnId) {}
    fn receive_into(&mut self, _: ConnId, _: Buffer, _: usize, _: usize) {}
    fn send(&mut self, _: ConnId, _: Message) {}
    fn close(&mut self, _: ConnId) {}
    fn open(&mut self, _: OwnedFd) -> FileId {
        FileId(0)
    }
    /// Sets the time to the end of the next I/O or to `until_ns`, whichever is first, and returns
    /// the I/O that has ended.
    fn turn(&mut self, until_ns: Option<u64>, events: &mut Vec<Event>) -> std::io::Result<()> {
        let wake_ns = [self.next_ns(), until_ns].into_iter().flatten().min();
        self.now_ns = self.now_ns.max(wake_ns.unwrap_or(0));
        while let Some((tag, done)) = self.take() {
            events.push(Event::Done { tag, done });
        }
        Ok(())
    }
}

/// A client that keeps `depth` requests in flight.
#[derive(Clone, Debug)]
pub struct Client {
    pub member: Option<MemberId>,
    pub depth: u32,
    pub bytes: u64,
    pub op: RequestOp,
    /// The range of its requests in bytes: sequential within it, or spread over it.
    pub from: u64,
    pub span: u64,
    pub sequential: bool,
    /// The pause between a completion and the next request, in ns.
    pub pause_ns: u64,
    pub served: u64,
    pub served_bytes: u64,
    pub errors: u64,
    pub latencies_ns: Vec<u64>,
    pub sent: u64,
    pub state: u64,
}

impl Client {
    pub fn reads(depth: u32, bytes: u64) -> Client {
        Client {
            member: None,
            depth,
            bytes,
            op: RequestOp::Read,
            from: 0,
            span: 512 * MIB,
            sequential: false,
            pause_ns: 0,
            served: 0,
            served_bytes: 0,
            errors: 0,
            latencies_ns: Vec::new(),
            sent: 0,
            state: 88_172_645_463_325_252,
        }
    }

    pub fn at(mut self, from: u64, span: u64) -> Client {
        (self.from, self.span) = (from, span);
        self
    }

    fn next(&mut self, ticket: u64, engine: &mut FakeEngine) -> BlockRequest {
        let slots = (self.span / self.bytes).max(1);
        let slot = match self.sequential {
            true => self.sent % slots,
            false => {
                self.state ^= self.state << 13;
                self.state ^= self.state >> 7;
                self.state ^= self.state << 17;
                self.state % slots
            }
        };
        self.sent += 1;
        let data = (self.op == RequestOp::Write).then(|| engine.buffer(self.bytes as usize));
        let offset = self.from + slot * self.bytes;
        BlockRequest { data, ..BlockRequest::plain(ticket, self.op, offset, self.bytes) }
    }
}

/// A device, its engine and its clients.
pub struct Testbed {
    pub device: Device,
    pub engine: FakeEngine,
    pub clients: Vec<Client>,
    /// The next submissions: time, client.
    wakes: BinaryHeap<Reverse<(u64, u32)>>,
    /// The submission time of each open request, by ticket.
    sent: std::collections::HashMap<u64, u64>,
    tickets: u64,
    pub log_done: Vec<(u64, u64)>,
}

pub fn config(name: &str) -> DeviceConfig {
    DeviceConfig { queue: DiskQueueConfig::new(name), backend: BackendConfig::Null { bytes: 1 << 30 }, drive: None }
}

/// A device that takes `service_ns` for every request, `depth` at a time.
pub fn constant_drive(service_ns: u64, depth: u32) -> Profile {
    let text = format!(
        "name = \"constant\"\nwhat = \"a device of constant time\"\nsource = \"a test\"\n[null]\nservice_ns = {service_ns}\ndepth = {depth}\n\
         capacity_sectors = 4194304\n"
    );
    Profile::from_toml(&text, "constant.toml").expect("a good profile")
}

/// A null drive of 1 ms under this elevator.
pub fn millisecond(kind: Kind, depth: u32) -> DeviceConfig {
    let tunables = if kind == Kind::Bfq { vec![("low_latency".to_owned(), 0)] } else { Vec::new() };
    DeviceConfig {
        queue: DiskQueueConfig { elevator: Some(kind), tunables, ..config("d").queue },
        drive: Some(constant_drive(MS, depth)),
        ..config("d")
    }
}

impl Testbed {
    pub fn new(config: &DeviceConfig) -> Testbed {
        let mut engine = FakeEngine::default();
        let device = Device::new(DeviceId(0), config, &mut engine, 0).expect("a good device");
        Testbed::of(device, engine)
    }

    /// A device over a file in the engine, whose I/O takes `io_ns`.
    pub fn on_file(config: &DeviceConfig, bytes: u64, io_ns: u64) -> Testbed {
        let engine = FakeEngine { io_ns, file: vec![0; bytes as usize], ..FakeEngine::default() };
        let backend = Backend::on_file(FileId(0), bytes);
        Testbed::of(Device::with_backend(DeviceId(0), config, backend, 0).expect("a good device"), engine)
    }

    fn of(device: Device, engine: FakeEngine) -> Testbed {
        Testbed {
            device,
            engine,
            clients: Vec::new(),
            wakes: BinaryHeap::new(),
            sent: std::collections::HashMap::new(),
            tickets: 0,
            log_done: Vec::new(),
        }
    }

    pub fn now(&self) -> u64 {
        self.engine.now_ns
    }

    /// Adds a client, which begins to submit.
    pub fn add(&mut self, tenant: Option<&str>, mut client: Client) -> usize {
        let now_ns = self.now();
        client.member = Some(self.device.scheduler_mut().join(tenant, None, now_ns).expect("the client can join"));
        client.state ^= (self.clients.len() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let number = self.clients.len();
        for _ in 0..client.depth {
            self.wakes.push(Reverse((now_ns, number as u32)));
        }
        self.clients.push(client);
        number
    }

    /// Runs the device and its clients until this time.
    pub fn run_until(&mut self, until_ns: u64) {
        let mut done = Vec::new();
        let mut steps = 0u64;
        loop {
            self.submit_due();
            let now_ns = self.now();
            self.driver().run(&mut done);
            for done in done.drain(..) {
                self.complete(done);
            }
            let wake_ns = self.wakes.peek().map(|Reverse((at_ns, _))| *at_ns);
            let next = [self.device.next_wake_ns(), self.engine.next_ns(), wake_ns].into_iter().flatten().min();
            let next_ns = next.unwrap_or(until_ns).max(now_ns);
            steps = if next_ns == now_ns { steps + 1 } else { 0 };
            assert!(steps < 1_000_000, "the device makes no progress at {now_ns} ns");
            if next_ns > until_ns || next.is_none() {
                self.engine.now_ns = until_ns.max(now_ns);
                return;
            }
            self.driver().wait(wake_ns).expect("the fake engine does not fail");
        }
    }

    /// Runs the device without its clients, until nothing is due before `until_ns` or
    /// `on_completion` breaks. The time stays at the last event.
    pub fn run_device(
        &mut self,
        until_ns: u64,
        mut on_completion: impl FnMut(Completion<IoOutput>) -> ControlFlow<()>,
    ) {
        let mut done = Vec::new();
        loop {
            self.driver().run(&mut done);
            if done.drain(..).any(|completion| on_completion(completion).is_break()) {
                return;
            }
            let next_ns = [self.device.next_wake_ns(), self.engine.next_ns()].into_iter().flatten().min();
            if next_ns.is_none_or(|next_ns| next_ns > until_ns) {
                return;
            }
            self.driver().wait(None).expect("the fake engine does not fail");
        }
    }

    fn driver(&mut self) -> DeviceDriver<'_, FakeEngine> {
        DeviceDriver::new(&mut self.device, &mut self.engine)
    }

    fn submit_due(&mut self) {
        while let Some(Reverse((at_ns, number))) = self.wakes.peek().copied() {
            if at_ns > self.now() {
                return;
            }
            self.wakes.pop();
            let client = &mut self.clients[number as usize];
            let Some(member) = client.member else { continue };
            self.tickets += 1;
            let ticket = u64::from(number) << 40 | self.tickets;
            let work = client.next(ticket, &mut self.engine);
            self.sent.insert(ticket, at_ns);
            self.device.submit(member, work, self.engine.now_ns);
        }
    }

    fn complete(&mut self, done: Completion<IoOutput>) {
        let now_ns = self.now();
        self.log_done.push((now_ns, done.ticket));
        let sent_ns = self.sent.remove(&done.ticket).expect("each request completes once");
        let number = (done.ticket >> 40) as usize;
        let client = &mut self.clients[number];
        client.served += 1;
        match &done.result {
            Ok(_) => client.served_bytes += client.bytes,
            Err(_) => client.errors += 1,
        }
        client.latencies_ns.push(now_ns - sent_ns);
        if client.member.is_some() {
            self.wakes.push(Reverse((now_ns + client.pause_ns, number as u32)));
        }
    }

    /// Resets the counts.
    pub fn reset_counts(&mut self) {
        for client in &mut self.clients {
            (client.served, client.served_bytes) = (0, 0);
            client.latencies_ns.clear();
        }
    }
}

/// Executes a request; returns `None` if it takes longer than `patience_ns`.
pub fn execute(
    testbed: &mut Testbed,
    member: MemberId,
    work: BlockRequest,
    patience_ns: u64,
) -> Option<Completion<IoOutput>> {
    let ticket = work.ticket;
    let now_ns = testbed.now();
    testbed.device.submit(member, work, now_ns);
    wait_for(testbed, ticket, patience_ns)
}

/// Runs the device until a request has completed.
pub fn wait_for(testbed: &mut Testbed, ticket: u64, patience_ns: u64) -> Option<Completion<IoOutput>> {
    let until_ns = testbed.now() + patience_ns;
    let mut found = None;
    testbed.run_device(until_ns, |completion| {
        if completion.ticket != ticket {
            return ControlFlow::Continue(());
        }
        found = Some(completion);
        ControlFlow::Break(())
    });
    found
}

/// Returns the data of a read.
pub fn bytes_of(output: &IoOutput, length: usize) -> Vec<u8> {
    match output {
        IoOutput::Buffer(buffer) => buffer[..length].to_vec(),
        IoOutput::Shared(shared) => shared_bytes(shared),
        IoOutput::Zeroes => vec![0; length],
        IoOutput::Pieces(parts) => parts.iter().flat_map(|(length, part)| bytes_of(part, *length as usize)).collect(),
        IoOutput::Nothing | IoOutput::Extents(_) => panic!("no data"),
    }
}

fn shared_bytes(shared: &hoistway_reactor::Shared) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(shared.len());
    // SAFETY: the mapping lives as long as `shared`, and this test's only thread does not write to
    // it meanwhile.
    bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(shared.as_ptr(), shared.len()) });
    bytes
}

pub fn read(ticket: u64, offset: u64, length: u64) -> BlockRequest {
    BlockRequest::plain(ticket, RequestOp::Read, offset, length)
}

pub fn write(ticket: u64, offset: u64, bytes: &[u8]) -> BlockRequest {
    let mut data = Buffer::alone(bytes.len());
    data[..bytes.len()].copy_from_slice(bytes);
    BlockRequest { data: Some(data), ..BlockRequest::plain(ticket, RequestOp::Write, offset, bytes.len() as u64) }
}

pub fn without_data(ticket: u64, op: RequestOp) -> BlockRequest {
    BlockRequest::plain(ticket, op, 0, 0)
}
