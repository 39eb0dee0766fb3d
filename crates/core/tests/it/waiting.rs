//! Who may wait for ever under which elevator, and who may not.
//!
//! In each test some processes never stop asking, and one request that they are preferred to waits. An elevator either promises
//! that it is served all the same, or serves it only when the others stop; both are held against [`PROMISES`]. The device serves a request
//! in 5 ms, one at a time, and the others have four queued at any time.
//!
//! The promises hold under reservations too: what is left to best effort whatever is reserved is enough for them.

use hoistway_core::{
    Bio, Capacity, Class, ContextId, DeferredWork, ElevatorStorage, Flags, Kick, Kind, Next, NoSink, Op, Owned,
    Priority, QueueConfig, RequestId, RequestQueue, Reservation, Storage, Submitted,
};

const MS: u64 = 1_000_000;
const SERVICE_NS: u64 = 5 * MS;
/// The longest wait that any promise allows: the 2.4 elevator lets 8192 others pass, which is 41 s, or 82 s with half of the device reserved.
const LONGEST_NS: u64 = 100_000 * MS;

/// What an elevator does about a request that others are preferred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// It comes, whatever the others do.
    InTime,
    /// It waits for as long as the others go on.
    WhenOthersStop,
}
use Served::{InTime, WhenOthersStop};

/// What an elevator promises in each test.
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

/// An elevator that knows no classes.
const fn classless(elevator: &'static str) -> Promises {
    Promises { elevator, far_read: InTime, write: InTime, read: InTime, best_effort: InTime, idle: InTime }
}

/// An elevator whose classes are strict: a lower one is served when the higher ones have nothing.
const fn strict(elevator: &'static str) -> Promises {
    Promises { best_effort: WhenOthersStop, idle: WhenOthersStop, ..classless(elevator) }
}

const PROMISES: &[Promises] = &[
    classless("linus"),
    classless("sfq"),
    // As it was shipped: it serves the newest busy process until that has no more.
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
    // The idle class is served every 200 ms; nothing looks after the best-effort class.
    Promises { best_effort: WhenOthersStop, ..classless("bfq") },
];

#[test]
fn a_far_read_among_sequential_ones() {
    hold(
        |promises| promises.far_read,
        |world| world.wait_for(Op::Read, Class::BestEffort, Op::Read, Class::BestEffort),
    );
}

#[test]
fn a_write_among_reads() {
    hold(|promises| promises.write, |world| world.wait_for(Op::Write, Class::BestEffort, Op::Read, Class::BestEffort));
}

#[test]
fn a_read_among_writes() {
    hold(|promises| promises.read, |world| world.wait_for(Op::Read, Class::BestEffort, Op::Write, Class::BestEffort));
}

#[test]
fn a_best_effort_read_among_real_time_ones() {
    hold(
        |promises| promises.best_effort,
        |world| world.wait_for(Op::Read, Class::BestEffort, Op::Read, Class::RealTime),
    );
}

#[test]
fn an_idle_read_among_best_effort_ones() {
    hold(|promises| promises.idle, |world| world.wait_for(Op::Read, Class::Idle, Op::Read, Class::BestEffort));
}

#[test]
fn every_elevator_says_what_it_promises() {
    for kind in Kind::ALL {
        let name = kind.info().name;
        let told = PROMISES.iter().filter(|promises| promises.elevator == name).count();
        assert_eq!(told, 1, "the table in this file has to say what {name} promises, once");
    }
}

/// Holds what an elevator does against what it promises, for all of them.
fn hold(promised: impl Fn(&Promises) -> Served, test: impl Fn(World) -> Result<Served, String>) {
    let mut wrong = Vec::new();
    for promises in PROMISES {
        let Some(kind) = Kind::from_name(promises.elevator) else { continue };
        for reserving in [false, true] {
            let served = test(World::new(kind, reserving));
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

/// How many processes never stop, and how many requests of each wait at any time.
const OTHERS: usize = 2;
const QUEUED: usize = 4;

/// A queue and a device that serves one request at a time.
struct World {
    queue: RequestQueue<Owned<NoSink>>,
    now_ns: u64,
    device: Option<(RequestId, u64)>,
    reserving: bool,
    others: Vec<(ContextId, u64)>,
    /// The request that waits has this token; the others' begin with 1.
    served: bool,
    next_token: u64,
}

const WAITING: u64 = 0;
/// The remainder by this tells whose a token is.
const TOKENS: u64 = 8;

impl World {
    /// With or without a third one of the others, which has reserved half of what the device does.
    fn new(kind: Kind, reserving: bool) -> World {
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
        World { queue, now_ns: 0, device: None, reserving, others: Vec::new(), served: false, next_token: 1 }
    }

    /// A process reserves 100 of 200 requests a second, reads or writes.
    fn reserve(&mut self, context: ContextId) {
        for (name, value) in
            [("device_bandwidth", 10_000_000), ("device_position", 5000), ("device_return", 0), ("dirs", 2)]
        {
            self.queue.set_tunable(name, value).expect("in range");
        }
        let half = Reservation { request_bytes: 4096, ..Reservation::of(100 * 4096) };
        assert!(self.queue.reserve(context, half, 0).is_ok(), "half of the device's time");
    }

    /// One request waits, of this kind, while others ask for those. Answers whether it is served while they go on; it must be served
    /// in any case once they stop.
    fn wait_for(mut self, op: Op, class: Class, others_op: Op, others_class: Class) -> Result<Served, String> {
        for number in 0..OTHERS + usize::from(self.reserving) {
            let context = self.process(if number < OTHERS { others_class } else { Class::BestEffort });
            self.others.push((context, number as u64 * 1_000_000));
            if number == OTHERS {
                self.reserve(context);
            }
            for _ in 0..QUEUED {
                self.ask(number, others_op);
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
        // 8 requests of 5 ms are left, and a wait for the processes that asked before.
        for _ in 0..100 {
            if self.served {
                return Ok(WhenOthersStop);
            }
            self.step(None)?;
        }
        Err("it is not served when the others stop, either".to_owned())
    }

    fn process(&mut self, class: Class) -> ContextId {
        let level = if class == Class::Idle { 7 } else { 4 };
        let priority = Priority::new(class, level).unwrap_or_default();
        self.queue.create_context(self.others.len() as u32 + 1, priority, 0).expect("there is room for eight")
    }

    /// One of the others asks for the sectors behind its last ones.
    fn ask(&mut self, number: usize, op: Op) {
        let (context, sector) = self.others[number];
        self.others[number].1 = sector + 8;
        let token = self.next_token * TOKENS + number as u64;
        self.next_token += 1;
        self.submit(Bio::new(token, context, op, sector, 8));
    }

    fn submit(&mut self, bio: Bio) {
        let bio = Bio { flags: Flags::NONE, ..bio };
        let (submitted, _) = self.queue.submit(bio, self.now_ns).expect("there is room");
        assert!(matches!(submitted, Submitted::Queued(_)), "nothing merges and nobody sleeps");
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

    /// Goes to what is due next: a completion, whose process asks again, or a timer.
    fn step(&mut self, again: Option<Op>) -> Result<(), String> {
        let timer_ns = self.queue.next_timer();
        if let Some((id, done_ns)) = self.device
            && timer_ns.is_none_or(|timer_ns| done_ns <= timer_ns)
        {
            (self.now_ns, self.device) = (self.now_ns.max(done_ns), None);
            let mut token = WAITING;
            let kick = self.queue.complete(id, self.now_ns, |done| token = done);
            assert!(kick.is_ok(), "what the device has is known to the queue");
            match again {
                _ if token == WAITING => self.served = true,
                Some(op) => self.ask((token % TOKENS) as usize, op),
                None => {}
            }
            self.run();
            return Ok(());
        }
        let Some(timer_ns) = timer_ns else { return Err("nothing is due".to_owned()) };
        self.now_ns = self.now_ns.max(timer_ns);
        match self.queue.timer(self.now_ns) {
            Kick::Run => self.run(),
            Kick::Quiet => self.work(),
        }
        Ok(())
    }
}
