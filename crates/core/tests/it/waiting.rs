//! Which requests each elevator may let wait without bound.
//!
//! In each test some processes have a permanent backlog, and one request waits to which theirs are
//! preferred. An elevator either guarantees service, or serves it only when the others stop; both
//! are compared with [`PROMISES`]. The device serves a request in 5 ms, one at a time, and the
//! others keep four queued.
//!
//! The guarantees hold with reservations, too: the part that is left to best effort suffices.

use hoistway_core::{
    Bio, Capacity, Class, ContextId, DeferredWork, ElevatorStorage, Flags, Kick, Kind, Next, NoSink, Op, Owned,
    Priority, QueueConfig, RequestId, RequestQueue, Reservation, Storage, Submitted,
};

const MS: u64 = 1_000_000;
const SERVICE_NS: u64 = 5 * MS;
/// The longest wait allowed by any guarantee: the 2.4 elevator lets 8192 others pass, which is 41
/// s, or 82 s with half of the device reserved.
const LONGEST_NS: u64 = 100_000 * MS;

/// The treatment of a request to which others are preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// It is served while the others continue.
    InTime,
    /// It waits as long as the others continue.
    WhenOthersStop,
}
use Served::{InTime, WhenOthersStop};

/// The guarantees of an elevator in each test.
struct Promises {
    elevator: &'static str,
    /// A read far away, while other processes read one sector after the other.
    far_read: Served,
    /// A write, while others read.
    write: Served,
    /// A read, while others write.
    read: Served,
    /// A read of the best-effort class, while others of the real-time class read.
    best_effort: Served,
    /// A read of the idle class, while others of the best-effort class read.
    idle: Served,
}

/// An elevator without classes.
const fn classless(elevator: &'static str) -> Promises {
    Promises { elevator, far_read: InTime, write: InTime, read: InTime, best_effort: InTime, idle: InTime }
}

/// An elevator with strict classes: a lower one is served only if the higher ones have no requests.
const fn strict(elevator: &'static str) -> Promises {
    Promises { best_effort: WhenOthersStop, idle: WhenOthersStop, ..classless(elevator) }
}

const PROMISES: &[Promises] = &[
    classless("linus"),
    classless("sfq"),
    // As shipped: it serves the newest busy process until that has no more requests.
    classless("cfq-v1"),
    classless("cfq-v2"),
    classless("noop"),
    classless("deadline"),
    classless("anticipatory"),
    strict("cfq-v3"),
    strict("cfq-tree"),
    strict("bfq-v0"),
    strict("cfq-wf2q"),
    strict("cfq-bw"),
    strict("fiops"),
    strict("cfq"),
    // A class that is passed over is served after 10 s (`prio_aging_expire`).
    classless("mq-deadline"),
    classless("kyber"),
    // The idle class is served every 200 ms; the best-effort class has no such guarantee.
    Promises { best_effort: WhenOthersStop, ..classless("bfq") },
    // Classes are shares.
    classless("paternoster"),
];

#[test]
fn a_far_read_among_sequential_ones() {
    hold(|promises| promises.far_read, |sim| sim.wait_for(Op::Read, Class::BestEffort, Op::Read, Class::BestEffort));
}

#[test]
fn a_write_among_reads() {
    hold(|promises| promises.write, |sim| sim.wait_for(Op::Write, Class::BestEffort, Op::Read, Class::BestEffort));
}

#[test]
fn a_read_among_writes() {
    hold(|promises| promises.read, |sim| sim.wait_for(Op::Read, Class::BestEffort, Op::Write, Class::BestEffort));
}

#[test]
fn a_best_effort_read_among_real_time_ones() {
    hold(|promises| promises.best_effort, |sim| sim.wait_for(Op::Read, Class::BestEffort, Op::Read, Class::RealTime));
}

#[test]
fn an_idle_read_among_best_effort_ones() {
    hold(|promises| promises.idle, |sim| sim.wait_for(Op::Read, Class::Idle, Op::Read, Class::BestEffort));
}

#[test]
fn every_elevator_has_a_row_of_promises() {
    for kind in Kind::ALL {
        let name = kind.info().name;
        let rows = PROMISES.iter().filter(|promises| promises.elevator == name).count();
        assert_eq!(rows, 1, "the table in this file must have one row for {name}");
    }
}

/// Compares the behaviour of all elevators with their guarantees.
fn hold(promised: impl Fn(&Promises) -> Served, test: impl Fn(StarvationSimulation) -> Result<Served, String>) {
    let mut wrong = Vec::new();
    for promises in PROMISES {
        let Some(kind) = Kind::from_name(promises.elevator) else { continue };
        for reserving in [false, true] {
            let served = test(StarvationSimulation::new(kind, reserving));
            if served != Ok(promised(promises)) {
                let wanted = promised(promises);
                wrong.push(format!(
                    "{} (reserving: {reserving}): promised {wanted:?}, did {served:?}",
                    promises.elevator
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The number of processes with a backlog, and the number of waiting requests of each.
const OTHERS: usize = 2;
const QUEUED: usize = 4;

/// A queue and a device that serves one request at a time.
struct StarvationSimulation {
    queue: RequestQueue<Owned<NoSink>>,
    now_ns: u64,
    device: Option<(RequestId, u64)>,
    reserving: bool,
    competitors: Vec<(ContextId, u64)>,
    /// The waiting request has this token; the others' begin with 1.
    served: bool,
    next_token: u64,
}

const WAITING: u64 = 0;
/// A token modulo this number identifies its process.
const TOKENS: u64 = 8;

impl StarvationSimulation {
    /// Creates a world, with or without a third process with a backlog that has reserved half of
    /// the device.
    fn new(kind: Kind, reserving: bool) -> StarvationSimulation {
        let capacity = Capacity { requests: 32, contexts: 8, merged_bios: 1, groups: 1 };
        let config = QueueConfig {
            layer: kind.info().layer,
            plugging: false,
            merging: false,
            nr_requests: None,
            ..QueueConfig::default()
        };
        let make = if reserving { ElevatorStorage::owned_reserving } else { ElevatorStorage::owned };
        let (storage, elevator) = (Storage::owned(capacity), make(kind, capacity));
        let queue = RequestQueue::new(config, storage, elevator, NoSink, 0);
        StarvationSimulation {
            queue,
            now_ns: 0,
            device: None,
            reserving,
            competitors: Vec::new(),
            served: false,
            next_token: 1,
        }
    }

    /// Reserves 100 of 200 requests a second for a process, reads or writes.
    fn reserve(&mut self, context: ContextId) {
        for (name, value) in
            [("device_bandwidth", 10_000_000), ("device_position", 5000), ("device_return", 0), ("dirs", 2)]
        {
            self.queue.set_tunable(name, value).expect("in range");
        }
        let half = Reservation { request_bytes: 4096, ..Reservation::of(100 * 4096) };
        assert!(self.queue.reserve(context, half, 0).is_ok(), "half of the device's time");
    }

    /// Submits one request of this kind while others have a backlog of those. Returns whether it is
    /// served while they continue; it must be served once they stop.
    fn wait_for(mut self, op: Op, class: Class, others_op: Op, others_class: Class) -> Result<Served, String> {
        for number in 0..OTHERS + usize::from(self.reserving) {
            let context = self.process(if number < OTHERS { others_class } else { Class::BestEffort });
            self.competitors.push((context, number as u64 * 1_000_000));
            if number == OTHERS {
                self.reserve(context);
            }
            for _ in 0..QUEUED {
                self.submit_next(number, others_op);
            }
        }
        for _ in 0..20 {
            self.step(Some(others_op))?;
        }
        let context = self.process(class);
        self.submit(Bio::new(WAITING, context, op, 500_000_000, 8));
        let begin_ns = self.now_ns;
        while !self.served && self.now_ns - begin_ns < LONGEST_NS {
            self.step(Some(others_op))?;
        }
        if self.served {
            return Ok(InTime);
        }
        // 8 requests of 5 ms are left, and an idle wait for the processes that submitted before.
        for _ in 0..100 {
            if self.served {
                return Ok(WhenOthersStop);
            }
            self.step(None)?;
        }
        Err("it is not served when the competitors stop, either".to_owned())
    }

    fn process(&mut self, class: Class) -> ContextId {
        let level = if class == Class::Idle { 7 } else { 4 };
        let priority = Priority::new(class, level).unwrap_or_default();
        self.queue.create_context(self.competitors.len() as u32 + 1, priority, 0).expect("free entries")
    }

    /// Submits the sectors behind its last ones for one of the others.
    fn submit_next(&mut self, number: usize, op: Op) {
        let (context, sector) = self.competitors[number];
        self.competitors[number].1 = sector + 8;
        let token = self.next_token * TOKENS + number as u64;
        self.next_token += 1;
        self.submit(Bio::new(token, context, op, sector, 8));
    }

    fn submit(&mut self, bio: Bio) {
        let bio = Bio { flags: Flags::NONE, ..bio };
        let (submitted, _) = self.queue.submit(bio, self.now_ns).expect("free entries");
        assert!(matches!(submitted, Submitted::Queued(_)), "no bio is merged and no process sleeps");
        self.run();
    }

    fn run(&mut self) {
        if self.device.is_none()
            && let Next::Request(id) = self.queue.next(self.now_ns)
        {
            self.device = Some((id, self.now_ns + SERVICE_NS));
        }
        self.work();
    }

    fn work(&mut self) {
        while let Some(work) = self.queue.next_work() {
            if work == DeferredWork::Run {
                self.run();
            }
        }
    }

    /// Advances to the next event: a completion, after which the process submits again, or a timer.
    fn step(&mut self, again: Option<Op>) -> Result<(), String> {
        let timer_ns = self.queue.next_timer();
        if let Some((id, done_ns)) = self.device
            && timer_ns.is_none_or(|timer_ns| done_ns <= timer_ns)
        {
            (self.now_ns, self.device) = (self.now_ns.max(done_ns), None);
            let mut token = WAITING;
            let kick = self.queue.complete(id, self.now_ns, |done| token = done);
            assert!(kick.is_ok(), "the queue accepts the completion of an in-flight request");
            match again {
                _ if token == WAITING => self.served = true,
                Some(op) => self.submit_next((token % TOKENS) as usize, op),
                None => {}
            }
            self.run();
            return Ok(());
        }
        let Some(timer_ns) = timer_ns else { return Err("no timer is armed".to_owned()) };
        self.now_ns = self.now_ns.max(timer_ns);
        match self.queue.timer(self.now_ns) {
            Kick::Run => self.run(),
            Kick::Quiet => self.work(),
        }
        Ok(())
    }
}
