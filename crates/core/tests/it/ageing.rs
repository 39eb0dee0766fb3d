//! mq-deadline's classes: a lower class waits for higher ones, in the queue and in the device, but
//! with a bound. Decisions are compared with a naive model.

use hoistway_core::{
    Bio, BlockLayer, Capacity, Class, ClockConfig, ContextId, ElevatorStorage, Kick, Kind, Next, NoSink, Op, Owned,
    Priority, QueueConfig, RequestId, RequestQueue, Storage,
};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const CLASSES: [Class; 3] = [Class::RealTime, Class::BestEffort, Class::Idle];

/// A request submitted by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    token: u64,
    class: usize,
    write: bool,
    sector: u64,
    arrived: u64,
    deadline: u64,
}

struct Host {
    queue: RequestQueue<Owned<NoSink>>,
    contexts: Vec<ContextId>,
    device: Vec<(RequestId, Entry)>,
    waiting: Vec<Entry>,
    now_ms: u64,
    next_token: u64,
}

/// The tunables under test, times in ms.
#[derive(Clone, Copy, Debug)]
struct Set {
    expire: [u64; 2],
    writes_starved: i64,
    fifo_batch: u64,
    ageing: u64,
}

impl Host {
    fn new(set: Set, rerun_delay: i64) -> Host {
        let config = QueueConfig {
            layer: BlockLayer::V6_1,
            clock: ClockConfig { hz: 1000, uptime_ns: 0 },
            plugging: false,
            merging: false,
            nr_requests: None,
            ..QueueConfig::default()
        };
        let capacity = Capacity { requests: 1024, contexts: 3, merged_bios: 4, groups: 1 };
        let (storage, elevator) = (Storage::owned(capacity), ElevatorStorage::owned(Kind::MqDeadline, capacity));
        let mut queue = RequestQueue::new(config, storage, elevator, NoSink, 0);
        let [read_expire, write_expire] = set.expire.map(|ms| ms as i64);
        for (name, value) in [
            ("read_expire", read_expire),
            ("write_expire", write_expire),
            ("writes_starved", set.writes_starved),
            ("fifo_batch", set.fifo_batch as i64),
            ("prio_aging_expire", set.ageing as i64),
            ("rerun_delay", rerun_delay),
        ] {
            queue.set_tunable(name, value).expect("in range");
        }
        let create =
            |class| queue.create_context(1, Priority::new(class, 4).expect("a level"), 0).expect("free entries");
        let contexts = CLASSES.map(create).to_vec();
        Host { queue, contexts, device: Vec::new(), waiting: Vec::new(), now_ms: 0, next_token: 0 }
    }

    fn submit(&mut self, class: usize, write: bool, sector: u64, set: Set) -> Entry {
        let op = if write { Op::Write } else { Op::Read };
        let deadline = self.now_ms + set.expire[usize::from(write)];
        let entry = Entry { token: self.next_token, class, write, sector, arrived: self.now_ms, deadline };
        self.next_token += 1;
        let bio = Bio::new(entry.token, self.contexts[class], op, sector, 8);
        let _ = self.queue.submit(bio, self.now_ms * MS).expect("free entries");
        self.waiting.push(entry);
        entry
    }

    fn take(&mut self) -> Option<Entry> {
        let Next::Request(id) = self.queue.next(self.now_ms * MS) else { return None };
        let token = self.queue.request(id).expect("an in-flight request").token();
        let at = self.waiting.iter().position(|entry| entry.token == token).expect("it waited");
        let entry = self.waiting.remove(at);
        self.device.push((id, entry));
        Some(entry)
    }

    fn complete(&mut self, which: usize) -> Option<Entry> {
        if self.device.is_empty() {
            return None;
        }
        let (id, entry) = self.device.remove(which % self.device.len());
        let _ = self.queue.complete(id, self.now_ms * MS, |_| {}).expect("an in-flight request");
        Some(entry)
    }

    /// Returns true if a request of this class is old enough to precede higher classes.
    fn has_aged(&self, entry: &Entry, set: Set) -> bool {
        entry.class > 0 && entry.arrived + set.ageing <= self.now_ms
    }

    /// Returns true if a higher class than this has requests, waiting or in the device.
    fn higher_class_has_requests(&self, class: usize) -> bool {
        let device = self.device.iter().map(|(_, entry)| entry.class);
        self.waiting.iter().map(|entry| entry.class).chain(device).any(|other| other < class)
    }
}

fn sets() -> impl Strategy<Value = Set> {
    let expire = (0u64..60, 0u64..200);
    (expire, -1i64..5, 0u64..6, 0u64..80).prop_map(|(expire, writes_starved, fifo_batch, ageing)| Set {
        expire: [expire.0, expire.1],
        writes_starved,
        fifo_batch,
        ageing,
    })
}

/// Submit, take, complete or advance the time; the class or index; write; sector; ms.
type Call = (u8, usize, bool, u64, u64);

fn calls() -> impl Strategy<Value = Vec<Call>> {
    prop::collection::vec((0u8..12, 0usize..8, any::<bool>(), 0u64..40, 0u64..8), 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// While a higher class has requests, waiting or in the device, a lower class is served only
    /// with an aged request. If no request is returned although some wait, a higher class has
    /// requests in the device.
    #[test]
    fn lower_classes_wait_unless_they_have_aged(set in sets(), calls in calls()) {
        let mut host = Host::new(set, 0);
        for (what, which, write, sector, ms) in calls {
            match what {
                0..=4 => { host.submit(which % 3, write, sector * 100, set); }
                5..=7 => {
                    let better: Vec<bool> = (0..3).map(|class| host.higher_class_has_requests(class)).collect();
                    match host.take() {
                        Some(entry) => prop_assert!(!better[entry.class] || host.has_aged(&entry, set), "{:?}", entry),
                        None => for entry in &host.waiting {
                            let before = host.device.iter().any(|(_, other)| other.class < entry.class);
                            prop_assert!(before, "{:?} is held back without a request of a higher class", entry);
                        },
                    }
                }
                8 | 9 => { host.complete(which); }
                _ => host.now_ms += ms,
            }
        }
    }

    /// An aged request goes next, however many requests of higher classes wait; an aged idle one
    /// after aged best effort.
    #[test]
    fn an_aged_request_goes_next(
        set in sets(), class in 1usize..3, write in any::<bool>(), sector in 0u64..40, better in 0usize..2,
    ) {
        let mut host = Host::new(set, 0);
        let better = better.min(class - 1);
        for at in 0..60 {
            host.submit(better, at % 2 == 0, at * 61 % 4000, set);
        }
        host.take();
        let aged = host.submit(class, write, sector * 100, set);
        host.now_ms += set.ageing;
        prop_assert!(host.has_aged(&aged, set));
        let before = std::iter::from_fn(|| host.take()).take_while(|entry| entry.token != aged.token).count();
        prop_assert_eq!(before, if better == 1 { 59 } else { 0 });
    }

    /// If the queue is run every few ms, an aged request is dispatched to a device that a higher
    /// class keeps busy after at most that time.
    #[test]
    fn a_request_that_ages_does_not_wait_for_a_completion(ageing in 1u64..200, delay in 1u64..10, class in 1usize..3) {
        let set = Set { expire: [500, 5000], writes_starved: 2, fifo_batch: 16, ageing };
        let mut host = Host::new(set, delay as i64);
        host.submit(0, false, 0, set);
        prop_assert!(host.take().is_some());
        let waiting = host.submit(class, false, 1000, set);
        prop_assert_eq!(host.take(), None);
        loop {
            let at_ns = host.queue.next_timer().expect("a timer ends the wait");
            host.now_ms = at_ns / MS;
            prop_assert_eq!(host.queue.timer(at_ns), Kick::Quiet);
            prop_assert!(host.queue.next_work().is_some());
            if let Some(entry) = host.take() {
                prop_assert_eq!(entry, waiting);
                break;
            }
        }
        prop_assert!(host.now_ms >= ageing && host.now_ms < ageing + delay, "at {} ms", host.now_ms);
        prop_assert_eq!(host.queue.next_timer(), None);
    }

    /// A naive model makes the same decisions for random calls.
    #[test]
    fn decisions_equal_those_of_a_naive_model(set in sets(), calls in calls()) {
        let mut host = Host::new(set, 0);
        let mut model = Model::new(set);
        for (at, (what, which, write, sector, ms)) in calls.into_iter().enumerate() {
            match what {
                0..=4 => model.submit(host.submit(which % 3, write, sector * 100, set)),
                5..=7 => {
                    let expected = model.take(host.now_ms);
                    prop_assert_eq!(host.take(), expected, "call {}", at);
                }
                8 | 9 => {
                    if let Some(entry) = host.complete(which) {
                        model.held[entry.class] -= 1;
                    }
                }
                _ => host.now_ms += ms,
            }
        }
        while !host.waiting.is_empty() {
            let expected = model.take(host.now_ms);
            prop_assert_eq!(host.take(), expected, "at the end");
            if expected.is_none() {
                let entry = host.complete(0).expect("a request in the device");
                model.held[entry.class] -= 1;
            }
            host.now_ms += 1;
        }
    }
}

/// mq-deadline according to its description.
struct Model {
    set: Set,
    /// In order of arrival.
    queued: Vec<Entry>,
    /// Queued or in the device, by class.
    held: [u32; 3],
    /// The token of the request after the last one, by class and direction.
    next: [[Option<u64>; 2]; 3],
    last_write: bool,
    batching: u64,
    starved: i64,
}

impl Model {
    fn new(set: Set) -> Model {
        Model { set, queued: Vec::new(), held: [0; 3], next: [[None; 2]; 3], last_write: true, batching: 0, starved: 0 }
    }

    fn submit(&mut self, entry: Entry) {
        self.held[entry.class] += 1;
        self.queued.push(entry);
    }

    fn take(&mut self, now: u64) -> Option<Entry> {
        let mut picked = None;
        if self.held.iter().filter(|held| **held > 0).count() > 1 {
            let latest = now as i64 - self.set.ageing as i64;
            picked = [1, 2].into_iter().find_map(|class| self.pick(class, now, Some(latest)));
        }
        if picked.is_none() {
            for class in 0..3 {
                picked = self.pick(class, now, None);
                if picked.is_some() || self.held[class] > 0 {
                    break;
                }
            }
        }
        let entry = picked?;
        self.batching += 1;
        let after = self.sorted(entry.class, entry.write);
        let at = after.iter().position(|other| other.token == entry.token)?;
        self.next[entry.class][usize::from(entry.write)] = after.get(at + 1).map(|other| other.token);
        self.queued.retain(|other| other.token != entry.token);
        Some(entry)
    }

    fn pick(&mut self, class: usize, now: u64, latest: Option<i64>) -> Option<Entry> {
        let going_on = self.find(self.next[class][usize::from(self.last_write)]);
        let entry = match going_on {
            Some(entry) if self.batching < self.set.fifo_batch => entry,
            _ => self.begin(class, now)?,
        };
        latest.is_none_or(|latest| entry.arrived as i64 <= latest).then_some(entry)
    }

    fn begin(&mut self, class: usize, now: u64) -> Option<Entry> {
        let oldest = |write| self.queued.iter().find(|entry| entry.class == class && entry.write == write).copied();
        let (read, write) = (oldest(false), oldest(true));
        let writes = match (read, write) {
            (None, None) => return None,
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (Some(_), Some(_)) => {
                self.starved += 1;
                self.starved > self.set.writes_starved
            }
        };
        if writes {
            self.starved = 0;
        }
        (self.last_write, self.batching) = (writes, 0);
        let oldest = if writes { write } else { read }?;
        let next = self.find(self.next[class][usize::from(writes)]);
        Some(if oldest.deadline <= now { oldest } else { next.unwrap_or(oldest) })
    }

    fn find(&self, token: Option<u64>) -> Option<Entry> {
        self.queued.iter().find(|entry| Some(entry.token) == token).copied()
    }

    fn sorted(&self, class: usize, write: bool) -> Vec<Entry> {
        let mut sorted: Vec<Entry> =
            self.queued.iter().filter(|entry| entry.class == class && entry.write == write).copied().collect();
        sorted.sort_by_key(|entry| entry.sector);
        sorted
    }
}
