//! An engine without an outside, virtual time, and clients that keep requests under way.

use hoistway_qos::DiskQueueConfig;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;

use hoistway_blockdev::Backend;
use hoistway_blockdev::{Answer, Device, Work};
use hoistway_config::{BackendConfig, DeviceConfig};
use hoistway_core::Kind;
use hoistway_drive::Profile;
use hoistway_qos::{Completion, Hints, MemberId, RequestOp};
use hoistway_reactor::Buffer;
use hoistway_reactor::{ConnId, Engine, Event, FileId, Io, IoDone, IoOp, ListenerId, Message};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;
pub const MIB: u64 = 1 << 20;

/// Files whose I/O takes `io_ns` each, side by side.
#[derive(Default)]
pub struct FakeEngine {
    pub now_ns: u64,
    pub io_ns: u64,
    /// What was started: when, and what.
    pub log: Vec<(u64, IoOp, u64, u64)>,
    /// I/O under way: when it ends, in which order it was started, its tag, its end.
    under_way: BinaryHeap<Reverse<(u64, u64, u64)>>,
    ends: std::collections::HashMap<u64, IoDone>,
    started: u64,
    pub file: Vec<u8>,
    /// Writes fail with this error.
    pub write_error: Option<i32>,
}

impl FakeEngine {
    pub fn next_ns(&self) -> Option<u64> {
        self.under_way.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    pub fn take(&mut self) -> Option<(u64, IoDone)> {
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
        let mut done = IoDone { result: Ok(()), buffer: io.buffer, extents: Vec::new() };
        let (from, to) = (io.offset as usize, (io.offset + io.length) as usize);
        match (io.op, &mut done.buffer) {
            (IoOp::Read, Some(buffer)) => buffer[..to - from].copy_from_slice(&self.file[from..to]),
            (IoOp::Write { .. }, Some(buffer)) => match self.write_error {
                Some(errno) => done.result = Err(errno),
                None => self.file[from..to].copy_from_slice(&buffer[..to - from]),
            },
            (IoOp::Zero { .. } | IoOp::Trim, _) => self.file[from..to].fill(0),
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
    fn receive(&mut self, _: ConnId) {}
    fn receive_into(&mut self, _: ConnId, _: Buffer, _: usize, _: usize) {}
    fn send(&mut self, _: ConnId, _: Message) {}
    fn close(&mut self, _: ConnId) {}
    fn open(&mut self, _: OwnedFd) -> FileId {
        FileId(0)
    }
    fn turn(&mut self, _: Option<u64>, _: &mut Vec<Event>) -> std::io::Result<()> {
        Ok(())
    }
}

/// A client that keeps `depth` requests under way.
#[derive(Clone, Debug)]
pub struct Client {
    pub member: Option<MemberId>,
    pub depth: u32,
    pub bytes: u64,
    pub op: RequestOp,
    /// Where its requests lie: sequential within this range, or spread over it.
    pub from: u64,
    pub span: u64,
    pub sequential: bool,
    /// It waits so long after an answer before it asks again, in ns.
    pub think_ns: u64,
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
            think_ns: 0,
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

    fn next(&mut self, ticket: u64, engine: &mut FakeEngine) -> Work {
        let places = (self.span / self.bytes).max(1);
        let place = match self.sequential {
            true => self.sent % places,
            false => {
                self.state ^= self.state << 13;
                self.state ^= self.state >> 7;
                self.state ^= self.state << 17;
                self.state % places
            }
        };
        self.sent += 1;
        let data = (self.op == RequestOp::Write).then(|| engine.buffer(self.bytes as usize));
        let offset = self.from + place * self.bytes;
        Work { ticket, op: self.op, offset, length: self.bytes, durable: false, data, hints: Hints::default() }
    }
}

/// A device, its engine and its clients.
pub struct World {
    pub device: Device,
    pub engine: FakeEngine,
    pub clients: Vec<Client>,
    /// What clients will do: when, who.
    wakes: BinaryHeap<Reverse<(u64, u32)>>,
    /// When each client's requests were sent, by ticket.
    sent: std::collections::HashMap<u64, u64>,
    tickets: u64,
    pub log_done: Vec<(u64, u64)>,
}

pub fn config(name: &str) -> DeviceConfig {
    DeviceConfig {
        queue: DiskQueueConfig {
            name: name.to_owned(),
            elevator: None,
            depth: None,
            tunables: Vec::new(),
            merge: true,
            request_bytes_max: 1 << 20,
            bandwidth: None,
            position_ns: None,
        },
        backend: BackendConfig::Null { bytes: 1 << 30 },
        drive: None,
    }
}

/// A device that takes `service_ns` for everything, `depth` at a time.
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

impl World {
    pub fn new(config: &DeviceConfig) -> World {
        let mut engine = FakeEngine::default();
        let device = Device::new(0, config, &mut engine, 0).expect("a good device");
        World::of(device, engine)
    }

    /// Over a file in the engine, whose I/O takes `io_ns`.
    pub fn on_file(config: &DeviceConfig, bytes: u64, io_ns: u64) -> World {
        let engine = FakeEngine { io_ns, file: vec![0; bytes as usize], ..FakeEngine::default() };
        let backend = Backend::on_file(FileId(0), bytes);
        World::of(Device::with_backend(0, config, backend, 0).expect("a good device"), engine)
    }

    fn of(device: Device, engine: FakeEngine) -> World {
        World {
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

    /// A client joins and begins to work.
    pub fn add(&mut self, tenant: Option<&str>, mut client: Client) -> usize {
        let now_ns = self.now();
        client.member = Some(self.device.scheduler_mut().join(tenant, None, now_ns).expect("room for a client"));
        client.state ^= (self.clients.len() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let number = self.clients.len();
        for _ in 0..client.depth {
            self.wakes.push(Reverse((now_ns, number as u32)));
        }
        self.clients.push(client);
        number
    }

    /// Lets the time pass until then.
    pub fn run_until(&mut self, until_ns: u64) {
        let mut done = Vec::new();
        let mut steps = 0u64;
        loop {
            self.send_what_is_due();
            while let Some((tag, io)) = self.engine.take() {
                let now_ns = self.now();
                self.device.io_done(&mut self.engine, tag, io, now_ns);
            }
            let now_ns = self.now();
            self.device.run(&mut self.engine, now_ns, &mut done);
            for done in done.drain(..) {
                self.answered(done);
            }
            let wake_ns = self.wakes.peek().map(|Reverse((at_ns, _))| *at_ns);
            let next = [self.device.next_wake_ns(), self.engine.next_ns(), wake_ns].into_iter().flatten().min();
            let next_ns = next.unwrap_or(until_ns).max(now_ns);
            steps = if next_ns == now_ns { steps + 1 } else { 0 };
            assert!(steps < 1_000_000, "the device wants to run for ever at {now_ns} ns");
            if next_ns > until_ns || next.is_none() {
                self.engine.now_ns = until_ns.max(now_ns);
                return;
            }
            self.engine.now_ns = next_ns;
        }
    }

    fn send_what_is_due(&mut self) {
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

    fn answered(&mut self, done: Completion<Answer>) {
        let now_ns = self.now();
        self.log_done.push((now_ns, done.ticket));
        let sent_ns = self.sent.remove(&done.ticket).expect("an answer to what was asked, once");
        let number = (done.ticket >> 40) as usize;
        let client = &mut self.clients[number];
        client.served += 1;
        match &done.result {
            Ok(_) => client.served_bytes += client.bytes,
            Err(_) => client.errors += 1,
        }
        client.latencies_ns.push(now_ns - sent_ns);
        if client.member.is_some() {
            self.wakes.push(Reverse((now_ns + client.think_ns, number as u32)));
        }
    }

    /// Forgets what was counted so far.
    pub fn count_from_here(&mut self) {
        for client in &mut self.clients {
            (client.served, client.served_bytes) = (0, 0);
            client.latencies_ns.clear();
        }
    }
}

/// Asks once, and lets the device work until it is answered or `patience_ns` is over.
pub fn ask(world: &mut World, member: MemberId, work: Work, patience_ns: u64) -> Option<Completion<Answer>> {
    let ticket = work.ticket;
    let now_ns = world.now();
    world.device.submit(member, work, now_ns);
    wait_for(world, ticket, patience_ns)
}

/// Lets the device work until a request is answered.
pub fn wait_for(world: &mut World, ticket: u64, patience_ns: u64) -> Option<Completion<Answer>> {
    let until_ns = world.now() + patience_ns;
    let mut done = Vec::new();
    loop {
        while let Some((tag, io)) = world.engine.take() {
            let now_ns = world.now();
            world.device.io_done(&mut world.engine, tag, io, now_ns);
        }
        let now_ns = world.now();
        world.device.run(&mut world.engine, now_ns, &mut done);
        if let Some(at) = done.iter().position(|done| done.ticket == ticket) {
            return Some(done.swap_remove(at));
        }
        let next = [world.device.next_wake_ns(), world.engine.next_ns()].into_iter().flatten().min();
        let next_ns = next.filter(|next_ns| *next_ns <= until_ns)?;
        world.engine.now_ns = next_ns.max(now_ns);
    }
}

/// The bytes of an answer to a read.
pub fn bytes_of(answer: &Answer, length: usize) -> Vec<u8> {
    match answer {
        Answer::Buffer(buffer) => buffer[..length].to_vec(),
        Answer::Shared(shared) => shared_bytes(shared),
        Answer::Zeroes => vec![0; length],
        Answer::Pieces(parts) => parts.iter().flat_map(|(length, part)| bytes_of(part, *length as usize)).collect(),
        Answer::Nothing | Answer::Extents(_) => panic!("no data"),
    }
}

fn shared_bytes(shared: &hoistway_reactor::Shared) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(shared.len());
    // SAFETY: the mapping lives as long as `shared`, and nobody writes to it while this test's only
    // thread copies it.
    bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(shared.as_ptr(), shared.len()) });
    bytes
}

pub fn read(ticket: u64, offset: u64, length: u64) -> Work {
    Work { ticket, op: RequestOp::Read, offset, length, durable: false, data: None, hints: Hints::default() }
}

pub fn write(ticket: u64, offset: u64, bytes: &[u8]) -> Work {
    let mut data = Buffer::alone(bytes.len());
    data[..bytes.len()].copy_from_slice(bytes);
    Work {
        ticket,
        op: RequestOp::Write,
        offset,
        length: bytes.len() as u64,
        durable: false,
        data: Some(data),
        hints: Hints::default(),
    }
}

pub fn simple(ticket: u64, op: RequestOp) -> Work {
    Work { ticket, op, offset: 0, length: 0, durable: false, data: None, hints: Hints::default() }
}
