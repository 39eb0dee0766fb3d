//! The dispatch list and deadline compared with naive models: plain vectors with linear searches.

use hoistway_core::{
    Bio, BlockLayer, Capacity, ClockConfig, ContextId, ElevatorStorage, Flags, Kind, Next, NoSink, Op, OrderedMode,
    Owned, Priority, QueueConfig, RequestQueue, Storage,
};

const MS: u64 = 1_000_000;
const CASES: u64 = 3000;

/// Sorting into the dispatch list is defined by a walk from its tail; the core does it without
/// walking.
#[test]
fn the_dispatch_list_sorts_as_a_walk_from_its_tail_does() {
    let (mut sorted, mut at_head, mut in_front) = (0, 0, 0);
    for number in 0..CASES {
        let mut random = Random(number);
        let layer = [BlockLayer::V2_6_18, BlockLayer::V2_6_18, BlockLayer::V2_6_24, BlockLayer::V4_19]
            [random.below(4) as usize];
        let mut host = Host::new(Kind::from_name("noop").expect("noop"), layer);
        let mut model = ListModel { stops_at_direction: stops_at_direction(layer), ..ListModel::default() };
        // The head moves, and some requests are requeued.
        for _ in 0..random.below(4) {
            let entry = host.submit(&mut random, false);
            model.fifo.push(entry);
            assert_eq!(host.take(), model.take(), "case {number}");
            if random.below(2) == 0 {
                host.requeue();
                model.requeue();
            }
        }
        for _ in 0..random.below(40) {
            let barrier = random.below(12) == 0;
            let entry = host.submit(&mut random, barrier);
            if barrier { model.insert_barrier(entry) } else { model.fifo.push(entry) }
        }
        loop {
            let (got, expected) = (host.take(), model.take());
            assert_eq!(got, expected, "case {number}, {layer:?}");
            if expected.is_none() {
                break;
            }
            host.complete();
        }
        (sorted, at_head, in_front) = (sorted + model.sorted, at_head + model.at_head, in_front + model.in_front);
    }
    assert!(
        sorted > 10_000 && at_head > 1000 && in_front > 1000,
        "{sorted} sorted, {at_head} to the head, {in_front} in between"
    );
}

#[test]
fn deadline_decides_as_a_naive_model_of_each_form_does() {
    let mut overdue = 0;
    for number in 0..CASES {
        let mut random = Random(number + (1 << 32));
        let mut host = Host::new(Kind::from_name("deadline").expect("deadline"), BlockLayer::V2_6_18);
        let mut model = DeadlineModel::new(&mut random);
        let settings = [
            ("form", i64::from(model.form)),
            ("read_expire", model.expire[0] as i64),
            ("write_expire", model.expire[1] as i64),
            ("writes_starved", model.writes_starved),
            ("fifo_batch", i64::from(model.fifo_batch)),
        ];
        for (name, value) in settings {
            host.queue.set_tunable(name, value).expect("in range");
        }
        for step in 0..random.below(150) {
            host.now_ns += random.below(8) * MS / 2;
            if random.below(100) < 58 {
                let entry = host.submit(&mut random, false);
                model.insert(entry, host.now_ns / MS);
            } else {
                assert_eq!(host.take(), model.take(host.now_ns / MS), "case {number}, step {step}: {settings:?}");
                host.complete();
            }
        }
        while let Some(expected) = model.take(host.now_ns / MS) {
            assert_eq!(host.take(), Some(expected), "case {number}, at the end: {settings:?}");
            host.complete();
            host.now_ns += MS;
        }
        assert_eq!(host.take(), None, "case {number}");
        overdue += model.overdue;
    }
    assert!(overdue > 1000, "only {overdue} requests were overdue");
}

/// A request of the models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    token: u64,
    sector: u64,
    end: u64,
    write: bool,
    barrier: bool,
    /// Sorting does not pass it.
    stops: bool,
    deadline: u64,
}

/// The dispatch list, with noop before it.
#[derive(Default)]
struct ListModel {
    fifo: Vec<Entry>,
    list: Vec<Entry>,
    boundary: u64,
    taken: Option<Entry>,
    /// A barrier holds the boundary where it is.
    held: bool,
    stops_at_direction: bool,
    sorted: u32,
    at_head: u32,
    in_front: u32,
}

fn stops_at_direction(layer: BlockLayer) -> bool {
    layer != BlockLayer::V2_6_18
}

impl ListModel {
    fn take(&mut self) -> Option<u64> {
        if self.list.is_empty() {
            if self.fifo.is_empty() {
                return None;
            }
            let first = self.fifo.remove(0);
            self.sort(first);
        }
        let entry = self.list.remove(0);
        if !self.held {
            self.boundary = entry.end;
        }
        self.taken = Some(entry);
        Some(entry.token)
    }

    fn requeue(&mut self) {
        if let Some(entry) = self.taken.take() {
            self.list.insert(0, Entry { stops: true, ..entry });
        }
    }

    /// A barrier moves the boundary to its end, then everything before it is dispatched, then the
    /// barrier follows.
    fn insert_barrier(&mut self, entry: Entry) {
        (self.boundary, self.held) = (entry.end, true);
        for earlier in std::mem::take(&mut self.fifo) {
            self.sort(earlier);
        }
        self.list.push(Entry { stops: true, ..entry });
    }

    fn sort(&mut self, entry: Entry) {
        let boundary = self.boundary;
        let stops = |other: &Entry| {
            if other.stops || (self.stops_at_direction && other.write != entry.write) {
                true
            } else if entry.sector >= boundary {
                other.sector >= boundary && entry.sector >= other.sector
            } else {
                other.sector >= boundary || entry.sector >= other.sector
            }
        };
        let place = self.list.iter().rposition(stops).map_or(0, |at| at + 1);
        self.sorted += 1;
        self.at_head += u32::from(place == 0 && !self.list.is_empty());
        self.in_front += u32::from(place > 0 && place < self.list.len());
        self.list.insert(place, entry);
    }
}

/// deadline according to its specification, with linear searches.
struct DeadlineModel {
    form: u8,
    expire: [u64; 2],
    writes_starved: i64,
    fifo_batch: u32,
    /// In order of arrival.
    queued: Vec<Entry>,
    dispatched: Vec<Entry>,
    /// The token of the request after the last one, by direction.
    next: [Option<u64>; 2],
    batching: u32,
    last_sector: u64,
    starved: i64,
    overdue: u32,
}

impl DeadlineModel {
    fn new(random: &mut Random) -> Self {
        DeadlineModel {
            form: random.below(3) as u8,
            expire: [random.below(60), random.below(120)],
            writes_starved: random.below(5) as i64 - 1,
            fifo_batch: random.below(6) as u32,
            queued: Vec::new(),
            dispatched: Vec::new(),
            next: [None; 2],
            batching: 0,
            last_sector: 0,
            starved: 0,
            overdue: 0,
        }
    }

    fn insert(&mut self, entry: Entry, now_ms: u64) {
        // Forms before 3.x have room for one request per sector and direction: the current one
        // leaves.
        let same = |other: &&Entry| other.write == entry.write && other.sector == entry.sector;
        if self.form < 2
            && let Some(alias) = self.queued.iter().find(same).copied()
        {
            self.dispatch(alias);
        }
        let deadline = now_ms + self.expire[usize::from(entry.write)];
        self.queued.push(Entry { deadline, ..entry });
    }

    fn take(&mut self, now_ms: u64) -> Option<u64> {
        if self.dispatched.is_empty() {
            let chosen = self.choose(now_ms)?;
            self.batching += 1;
            self.dispatch(chosen);
        }
        Some(self.dispatched.remove(0).token)
    }

    fn choose(&mut self, now_ms: u64) -> Option<Entry> {
        let next = self.next[1].or(self.next[0]).map(|token| self.by_token(token));
        if let Some(next) = next {
            if self.form < 2 && next.sector != self.last_sector {
                self.batching += self.fifo_batch;
            }
            if self.batching < self.fifo_batch {
                return Some(next);
            }
        }
        let (reads, writes) = (self.oldest(false).is_some(), self.oldest(true).is_some());
        let write = match (reads, writes) {
            (false, false) => return None,
            (true, true) => {
                self.starved += 1;
                self.starved > self.writes_starved
            }
            (_, writes) => writes,
        };
        if write {
            self.starved = 0;
        }
        let oldest = self.oldest(write)?;
        let next = self.next[usize::from(write)].map(|token| self.by_token(token));
        // The last form counts a request as overdue on the tick of its deadline.
        if now_ms + u64::from(self.form == 2) > oldest.deadline {
            self.overdue += 1;
            self.batching = 0;
            return Some(oldest);
        }
        match (self.form, next) {
            // The count of the batch continues.
            (0, Some(next)) => return Some(next),
            (0, None) => {
                self.batching = 0;
                return self.in_order(write).first().copied();
            }
            _ => {}
        }
        self.batching = 0;
        Some(next.unwrap_or(oldest))
    }

    fn dispatch(&mut self, entry: Entry) {
        let order = self.in_order(entry.write);
        let place = order.iter().position(|other| other.token == entry.token).expect("it is queued");
        self.next = [None; 2];
        self.next[usize::from(entry.write)] = order.get(place + 1).map(|after| after.token);
        self.last_sector = entry.end;
        self.queued.retain(|other| other.token != entry.token);
        self.dispatched.push(entry);
    }

    fn oldest(&self, write: bool) -> Option<Entry> {
        self.queued.iter().find(|entry| entry.write == write).copied()
    }

    fn in_order(&self, write: bool) -> Vec<Entry> {
        let mut order: Vec<Entry> = self.queued.iter().filter(|entry| entry.write == write).copied().collect();
        order.sort_by_key(|entry| entry.sector);
        order
    }

    fn by_token(&self, token: u64) -> Entry {
        *self.queued.iter().find(|entry| entry.token == token).expect("a next request is queued")
    }
}

/// The real queue, without plugging and merging.
struct Host {
    queue: RequestQueue<Owned<NoSink>>,
    context: ContextId,
    now_ns: u64,
    device: Vec<hoistway_core::RequestId>,
    next_token: u64,
}

impl Host {
    fn new(kind: Kind, layer: BlockLayer) -> Host {
        let capacity = Capacity { requests: 256, contexts: 1, merged_bios: 0, groups: 1 };
        let config = QueueConfig {
            layer,
            clock: ClockConfig { hz: 1000, uptime_ns: 0 },
            plugging: false,
            merging: false,
            nr_requests: None,
            // The barrier itself, without flushes around it.
            ordered: OrderedMode::Tag { flush: false, fua: false },
            ..QueueConfig::default()
        };
        let (storage, elevator) = (Storage::owned(capacity), ElevatorStorage::owned(kind, capacity));
        let mut queue = RequestQueue::new(config, storage, elevator, NoSink, 0);
        let context = queue.create_context(1, Priority::UNSET, 0).expect("free entries");
        Host { queue, context, now_ns: 0, device: Vec::new(), next_token: 0 }
    }

    /// A request mostly near others, so that sectors are sometimes equal; some are at the ends of
    /// the disk.
    fn submit(&mut self, random: &mut Random, barrier: bool) -> Entry {
        let sector = match random.below(20) {
            0 => u64::MAX - 8 - random.below(3),
            1 => (1 << 63) - 1 + random.below(3),
            _ => random.below(30) * 8,
        };
        let write = barrier || random.below(3) == 0;
        let op = if write { Op::Write } else { Op::Read };
        let mut bio = Bio::new(self.next_token, self.context, op, sector, 8);
        if barrier {
            bio.flags = Flags::BARRIER;
        }
        self.next_token += 1;
        assert!(self.queue.submit(bio, self.now_ns).is_ok(), "{bio:?}");
        Entry { token: bio.token, sector, end: bio.end(), write, barrier, stops: false, deadline: 0 }
    }

    fn take(&mut self) -> Option<u64> {
        let Next::Request(id) = self.queue.next(self.now_ns) else { return None };
        self.device.push(id);
        self.queue.request(id).map(|request| request.token())
    }

    fn complete(&mut self) {
        for id in self.device.drain(..) {
            assert!(self.queue.complete(id, self.now_ns, |_| {}).is_ok());
        }
    }

    fn requeue(&mut self) {
        if let Some(id) = self.device.pop() {
            assert!(self.queue.requeue(id, self.now_ns).is_ok());
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}
