//! Merges by the host: a queue whose host merges decides as one that merges itself.

mod errors;
mod merger;
mod reserving;

use hoistway_core::{
    Bio, BlockLayer, Capacity, Class, ContextId, ElevatorStorage, Flags, GroupId, GroupWeights, Kind, Next, NoSink, Op,
    Priority, QueueConfig, RequestId, Storage,
};

use merger::{Fault, Merger, Queue};

const CAPACITY: Capacity = Capacity { requests: 64, contexts: 8, merged_bios: 1024, groups: 3 };

/// A generator of random numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }
}

/// Two queues that get the same bios: one merges itself, for the other one the host merges.
struct Pair {
    /// The queue that merges, and the one whose host does.
    queues: [Queue; 2],
    merger: Merger,
    contexts: Vec<ContextId>,
    groups: Vec<GroupId>,
    /// The requests in the device, of both queues.
    device: Vec<[RequestId; 2]>,
    depth: usize,
    now_ns: u64,
    token: u64,
}

fn config(max_sectors: u32, refusal_ends_merging: bool, rotational: bool) -> QueueConfig {
    let layer = BlockLayer::V6_1;
    QueueConfig {
        layer,
        plugging: false,
        nr_requests: None,
        max_sectors,
        refusal_ends_merging,
        rotational,
        ..QueueConfig::default()
    }
}

fn queue(kind: Kind, config: QueueConfig) -> Queue {
    Queue::new(config, Storage::owned(CAPACITY), ElevatorStorage::owned(kind, CAPACITY), NoSink, 0)
}

fn priority(random: &mut Random) -> Priority {
    let class = [Class::None, Class::RealTime, Class::BestEffort, Class::BestEffort, Class::Idle];
    let class = class[random.below(5) as usize];
    Priority::new(class, random.below(8) as u8).expect("a level below 8")
}

impl Pair {
    fn new(kind: Kind, random: &mut Random, fault: Option<Fault>) -> Pair {
        let max_sectors = [24, 64, 1024][random.below(3) as usize];
        let refusal_ends_merging = random.one_in(2);
        let merging = config(max_sectors, refusal_ends_merging, random.one_in(2));
        let mut queues = [queue(kind, merging), queue(kind, QueueConfig { merging: false, ..merging })];
        let is_alike = random.one_in(2);
        let mut contexts = Vec::new();
        for pid in 0..1 + random.below(4) as u32 {
            let priority = if is_alike { Priority::UNSET } else { priority(random) };
            let made = queues.each_mut().map(|queue| queue.create_context(pid, priority, 0).expect("few processes"));
            assert_eq!(made[0], made[1]);
            contexts.push(made[0]);
        }
        let mut groups = vec![queues[0].root_group()];
        for weight in [50, 400] {
            let root = groups[0];
            let made = queues.each_mut().map(|queue| queue.create_group(root, GroupWeights::of(weight), 0));
            assert_eq!(made[0], made[1]);
            groups.extend(made[0]);
        }
        let merger = Merger::new(max_sectors, refusal_ends_merging, fault);
        let depth = 1 + random.below(4) as usize;
        Pair { queues, merger, contexts, groups, device: Vec::new(), depth, now_ns: 0, token: 1 }
    }

    /// Does one random thing with both queues. Fails if they differ.
    fn step(&mut self, random: &mut Random) -> Result<(), String> {
        let context = self.contexts[random.below(self.contexts.len() as u64) as usize];
        match random.below(20) {
            0..11 => self.submit(context, random),
            11..15 => self.complete(random)?,
            15..17 => {
                let longest = [100_000, 5_000_000, 40_000_000][random.below(3) as usize];
                self.now_ns += random.below(longest);
            }
            17 => self.timer()?,
            18 if random.one_in(4) => {
                let priority = priority(random);
                let now_ns = self.now_ns;
                let _ = self.queues.each_mut().map(|queue| queue.set_priority(context, priority, now_ns));
            }
            18 => {
                let group = self.groups[random.below(self.groups.len() as u64) as usize];
                let now_ns = self.now_ns;
                let _ = self.queues.each_mut().map(|queue| queue.move_context(context, group, now_ns));
            }
            _ => return self.run(),
        }
        self.work();
        if random.one_in(3) { self.run() } else { self.compare("timer", |queue| queue.next_timer()) }
    }

    fn compare<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        of: impl Fn(&mut Queue) -> T,
    ) -> Result<(), String> {
        let [own, host] = self.queues.each_mut().map(of);
        if own == host { Ok(()) } else { Err(format!("{what}: {own:?} of its own, {host:?} by the host")) }
    }

    /// Submits a bio in a small area, so that many are adjacent.
    fn submit(&mut self, context: ContextId, random: &mut Random) {
        let dispatched = self.queues[1].dispatched().count();
        if self.merger.requests.len() + dispatched + self.device.len() > 50 {
            return;
        }
        let op = if random.one_in(3) { Op::Write } else { Op::Read };
        let sectors = 4 * (1 + random.below(2) as u32);
        let mut bio = Bio::new(self.token, context, op, 4 * random.below(40), sectors);
        self.token += 1;
        if random.one_in(4) {
            bio.flags = Flags::SYNC;
        }
        let [own, host] = &mut self.queues;
        let _ = own.submit(bio, self.now_ns).expect("the storage is large");
        let _ = self.merger.submit(host, &bio, self.now_ns);
    }

    fn complete(&mut self, random: &mut Random) -> Result<(), String> {
        if self.device.is_empty() {
            return Ok(());
        }
        let [own, host] = self.device.swap_remove(random.below(self.device.len() as u64) as usize);
        self.now_ns += random.below(2_000_000);
        for (queue, id) in self.queues.iter_mut().zip([own, host]) {
            let _ = queue.complete(id, self.now_ns, |_| {}).map_err(|_| "the request is stale")?;
        }
        Ok(())
    }

    fn timer(&mut self) -> Result<(), String> {
        self.compare("timer", |queue| queue.next_timer())?;
        if let Some(at_ns) = self.queues[0].next_timer() {
            self.now_ns = self.now_ns.max(at_ns);
            let now_ns = self.now_ns;
            let _ = self.queues.each_mut().map(|queue| queue.timer(now_ns));
        }
        Ok(())
    }

    /// Does deferred work. Both queues are run as one, so that nothing else is to do.
    fn work(&mut self) {
        for queue in &mut self.queues {
            while queue.next_work().is_some() {}
        }
        self.merger.forget_dispatched(&self.queues[1]);
    }

    /// Fills the device. Fails if the queues dispatch different requests.
    fn run(&mut self) -> Result<(), String> {
        while self.device.len() < self.depth {
            let now_ns = self.now_ns;
            let [own, host] = self.queues.each_mut().map(|queue| queue.next(now_ns));
            self.merger.forget_dispatched(&self.queues[1]);
            match (own, host) {
                (Next::Request(own), Next::Request(host)) => {
                    let [a, b] = [(0, own), (1, host)].map(|(index, id)| {
                        let request = self.queues[index].request(id).expect("it was issued");
                        (request.token(), request.op(), request.sector(), request.sectors())
                    });
                    if a != b {
                        return Err(format!("dispatch at {now_ns}: {a:?} of its own, {b:?} by the host"));
                    }
                    self.merger.forget(b.0);
                    self.device.push([own, host]);
                }
                (own, host) if own == host => break,
                (own, host) => return Err(format!("next at {now_ns}: {own:?} of its own, {host:?} by the host")),
            }
        }
        self.work();
        self.compare("timer", |queue| queue.next_timer())
    }

    /// Serves all requests.
    fn drain(&mut self, random: &mut Random) -> Result<(), String> {
        for _ in 0..10_000 {
            self.run()?;
            if !self.device.is_empty() {
                self.complete(random)?;
            } else if self.queues[0].is_empty() {
                return self.compare("empty", |queue| queue.is_empty());
            } else {
                self.timer()?;
            }
            self.work();
        }
        Err("a request is not served".to_owned())
    }
}

/// Plays a case. Returns the number of merges of each kind.
fn play(kind: Kind, seed: u64, fault: Option<Fault>) -> Result<[u64; 4], String> {
    let random = &mut Random::new(seed);
    let mut pair = Pair::new(kind, random, fault);
    for step in 0..120 {
        pair.step(random).map_err(|error| format!("{}, seed {seed}, step {step}: {error}", kind.info().name))?;
    }
    pair.drain(random).map_err(|error| format!("{}, seed {seed}, at the end: {error}", kind.info().name))?;
    Ok(pair.merger.counts)
}

#[test]
fn a_queue_whose_host_merges_dispatches_as_one_that_merges_itself() {
    let seeds = std::env::var("HOISTWAY_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1000);
    let mut faults = Vec::new();
    for &kind in Kind::ALL {
        let mut counts = [0; 4];
        let mut count = 0;
        for seed in 0..seeds {
            match play(kind, seed, None) {
                Ok(merges) => counts.iter_mut().zip(merges).for_each(|(sum, merges)| *sum += merges),
                Err(error) => {
                    count += 1;
                    if count == 1 {
                        faults.push(error);
                    }
                }
            }
        }
        println!("{}: {counts:?} back, front, joined, joined at insertion; {count} differ", kind.info().name);
        assert!(counts[0] > 0, "{}: nothing was merged", kind.info().name);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_host_that_departs_from_the_contract_is_noticed() {
    for fault in [Fault::NoGrowth, Fault::OldExtent, Fault::NoVeto, Fault::GrowthForJoin] {
        let noticed = |kind: &Kind| {
            let play = || (0..200).any(|seed| play(*kind, seed, Some(fault)).is_err());
            std::panic::catch_unwind(play).unwrap_or(true)
        };
        assert!(Kind::ALL.iter().any(noticed), "{fault:?} is not noticed");
    }
}
