use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::{Address, Buffer, ConnId, Engine, Event, Io, IoOp, Message, Part, Peer};

/// A client that sends bytes, reads the echo at its own pace, and closes the connection when it has
/// received all.
struct EchoClient {
    link: Option<LinkId>,
    listener: crate::ListenerId,
    plan: LinkPlan,
    bytes: Vec<u8>,
    sent: usize,
    received: Rc<RefCell<Vec<u8>>>,
    resets_at: Option<usize>,
    is_done: bool,
}

impl Actor for EchoClient {
    fn step(&mut self, me: ActorId, sim: &mut Sim) {
        let peer = Peer { address: Address::Unix, process: None };
        let link = *self.link.get_or_insert_with(|| sim.connect(self.listener, me, peer, self.plan).expect("open"));
        if self.is_done {
            return;
        }
        self.sent += sim.write(link, &self.bytes[self.sent..]);
        let mut piece = [0; 100];
        let count = sim.read(link, &mut piece);
        let mut received = self.received.borrow_mut();
        received.extend_from_slice(&piece[..count]);
        if self.resets_at.is_some_and(|at| received.len() >= at) {
            sim.reset(link);
            self.is_done = true;
        } else if received.len() == self.bytes.len() {
            sim.shut(link);
            self.is_done = true;
        } else {
            sim.wake_at(sim.now_ns + 50_000, me);
        }
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}

/// Runs an echo server. Returns the bytes that each client received, the hash of the log, and the
/// end of each connection.
fn echo(seed: u64, clients: usize, resets_at: Option<usize>) -> (Vec<Vec<u8>>, u64, Vec<&'static str>) {
    let sim = Rc::new(RefCell::new(Sim::new(Prng::new(seed), false)));
    let mut engine = SimEngine::new(sim.clone());
    let listener = sim.borrow_mut().add_listener();
    let received: Vec<_> = (0..clients).map(|_| Rc::new(RefCell::new(Vec::new()))).collect();
    for (number, received) in received.iter().enumerate() {
        let plan = LinkPlan { latency_ns_max: 300_000, capacity: 700, piece_max: 90 };
        let bytes = (0..5_000usize).map(|at| (at * 7 + number) as u8).collect();
        let received = received.clone();
        let client = EchoClient { link: None, listener, plan, bytes, sent: 0, received, resets_at, is_done: false };
        sim.borrow_mut().add_actor(Box::new(client), 0);
    }
    let (mut ends, mut events, mut waiting) = (Vec::new(), Vec::new(), Vec::<(ConnId, Buffer, usize)>::new());
    while ends.len() < clients {
        engine.turn(None, &mut events).expect("the simulation continues");
        for event in events.drain(..) {
            match event {
                Event::Accepted { conn, .. } => engine.receive(conn),
                Event::Received { conn, len: 0, .. } => {
                    ends.push("end");
                    engine.close(conn);
                }
                Event::Received { conn, buffer, len } if len % 2 == 0 => waiting.push((conn, buffer, len)),
                Event::Received { conn, buffer, len } => {
                    // A receive of odd length is completed by one more byte, which exists because
                    // the total is even.
                    let mut longer = engine.buffer(len + 1);
                    longer[..len].copy_from_slice(&buffer[..len]);
                    engine.receive_into(conn, longer, len, len + 1);
                }
                Event::Filled { conn, buffer, filled } => waiting.push((conn, buffer, filled)),
                Event::Sent { conn, message } => {
                    assert!(message.head.is_empty() && message.parts.is_empty());
                    engine.receive(conn);
                }
                Event::Broken { conn } => {
                    ends.push("broken");
                    waiting.retain(|(waiting, ..)| *waiting != conn);
                    engine.close(conn);
                }
                Event::Connected { .. } | Event::Done { .. } | Event::Signal(_) => panic!("unexpected event"),
            }
        }
        for (conn, buffer, len) in waiting.drain(..) {
            let head = buffer[..1].to_vec();
            let rest = Buffer::alone(len);
            let mut message = Message { head, parts: vec![Part::Head { len: 1 }] };
            let mut tail = rest;
            tail[..len - 1].copy_from_slice(&buffer[1..len]);
            message.parts.push(Part::Buffer { buffer: tail, len: len - 1 });
            engine.send(conn, message);
        }
    }
    let sim = sim.borrow();
    assert_eq!(sim.violations, [""; 0]);
    let received = received.iter().map(|received| received.borrow().clone()).collect();
    (received, sim.trace.hash(), ends)
}

#[test]
fn bytes_are_echoed_through_split_receives_and_short_sends() {
    for seed in 0..20 {
        let (received, _, ends) = echo(seed, 3, None);
        for (number, received) in received.iter().enumerate() {
            assert!(received.iter().enumerate().all(|(at, byte)| *byte == (at * 7 + number) as u8));
            assert_eq!(received.len(), 5_000);
        }
        assert_eq!(ends, ["end"; 3]);
    }
}

#[test]
fn a_seed_determines_the_run_and_another_seed_differs() {
    assert_eq!(echo(5, 4, None), echo(5, 4, None));
    assert_ne!(echo(5, 4, None).1, echo(6, 4, None).1);
}

#[test]
fn a_reset_is_reported_once() {
    for seed in 0..20 {
        let (_, _, ends) = echo(seed, 3, Some(1_000));
        assert_eq!(ends, ["broken"; 3]);
    }
}

/// Returns a simulation with one disk, its engine, and an open file on the disk.
fn with_disk(seed: u64, plan: DiskPlan) -> (Rc<RefCell<Sim>>, SimEngine, crate::FileId) {
    let sim = Rc::new(RefCell::new(Sim::new(Prng::new(seed), false)));
    let file = rustix::fs::memfd_create("disk", rustix::fs::MemfdFlags::CLOEXEC).expect("memory");
    let stat = rustix::fs::fstat(&file).expect("a file");
    sim.borrow_mut().add_disk(plan, (stat.st_dev, stat.st_ino));
    let mut engine = SimEngine::new(sim.clone());
    let file = engine.open(file);
    (sim, engine, file)
}

fn done(engine: &mut SimEngine, count: usize) -> Vec<(u64, crate::IoDone)> {
    let mut events = Vec::new();
    while events.len() < count {
        engine.turn(None, &mut events).expect("the simulation continues");
    }
    let each = events.into_iter().map(|event| match event {
        Event::Done { tag, done } => (tag, done),
        other => panic!("{other:?}"),
    });
    each.collect()
}

fn write(file: crate::FileId, offset: u64, byte: u8, durable: bool) -> Io {
    let mut buffer = Buffer::alone(512);
    buffer[..512].fill(byte);
    Io { file, op: IoOp::Write { durable }, offset, length: 512, buffer: Some(buffer) }
}

#[test]
fn completions_are_reordered_and_a_crash_keeps_durable_data() {
    let (mut reordered, mut lost) = (0, 0);
    for seed in 0..50 {
        let plan = DiskPlan { size: 8192, latency_ns_max: 1_000_000, ..DiskPlan::default() };
        let (sim, mut engine, file) = with_disk(seed, plan);
        for tag in 0..4 {
            engine.start(tag, write(file, tag * 512, 1 + tag as u8, tag == 0));
        }
        let order: Vec<u64> = done(&mut engine, 4).iter().map(|(tag, _)| *tag).collect();
        reordered += u32::from(order != [0, 1, 2, 3]);
        sim.borrow_mut().crash_in(0);
        assert!(engine.turn(None, &mut Vec::new()).is_err());
        let mut bytes = [0; 2048];
        sim.borrow().disk(DiskId(0)).read(0, &mut bytes);
        assert_eq!(bytes[0], 1, "the write was durable");
        lost += u32::from(bytes[512] == 0);
    }
    assert!(reordered > 10 && lost > 10, "{reordered} reordered, {lost} lost");
}

#[test]
fn reads_and_writes_take_effect_in_parts() {
    let (mut read_mixed, mut kept_mixed) = (0, 0);
    for seed in 0..200 {
        let plan = DiskPlan { size: 8192, latency_ns_max: 1_000_000, errors_permille: 200, ..DiskPlan::default() };
        let (sim, mut engine, file) = with_disk(seed, plan);
        engine.start(0, write(file, 0, 1, false));
        let buffer = Some(Buffer::alone(512));
        engine.start(1, Io { file, op: IoOp::Read, offset: 0, length: 512, buffer });
        let done = done(&mut engine, 2);
        let read = done.iter().find(|(tag, done)| *tag == 1 && done.result.is_ok());
        let is_mixed = |bytes: &[u8]| bytes[0] != bytes[511];
        read_mixed +=
            u32::from(read.is_some_and(|(_, done)| is_mixed(done.buffer.as_ref().expect("the buffer of a read"))));
        let mut bytes = [0; 512];
        sim.borrow().disk(DiskId(0)).read(0, &mut bytes);
        let has_failed = done.iter().any(|(tag, done)| *tag == 0 && done.result.is_err());
        assert!(has_failed || bytes == [1; 512], "a successful write is complete");
        kept_mixed += u32::from(is_mixed(&bytes));
    }
    assert!(
        read_mixed > 3 && kept_mixed > 10,
        "{read_mixed} reads of a partial write, {kept_mixed} partial failed writes"
    );
}

#[test]
fn errors_occur_as_often_as_planned() {
    let plan = DiskPlan { size: 4096, errors_permille: 300, no_space_permille: 300, ..DiskPlan::default() };
    let (_, mut engine, file) = with_disk(1, plan);
    for tag in 0..200 {
        engine.start(tag, write(file, 0, 1, false));
    }
    let results = done(&mut engine, 200);
    let of = |error| results.iter().filter(|(_, done)| done.result == error).count();
    assert!((40..80).contains(&of(Err(5))), "{}", of(Err(5)));
    assert!((25..65).contains(&of(Err(28))), "{}", of(Err(28)));
}

#[test]
fn violations_of_the_contract_are_recorded() {
    let (sim, mut engine, file) = with_disk(1, DiskPlan { size: 4096, ..DiskPlan::default() });
    engine.start(1, write(file, 4096, 1, false));
    engine.receive(ConnId { slot: 0, generation: 9 });
    assert!(engine.turn(None, &mut Vec::new()).is_err());
    let violations = sim.borrow().violations.join("\n");
    for part in ["reaches beyond the end", "receive, but it is closed"] {
        assert!(violations.contains(part), "{violations}");
    }
    let (sim, mut engine, _) = with_disk(1, DiskPlan::default());
    assert!(engine.turn(None, &mut Vec::new()).is_ok(), "no actor exists, which is reported once");
    assert!(engine.turn(None, &mut Vec::new()).is_err());
    assert!(sim.borrow().violations[0].contains("waits for ever"));
}
