//! Shares under the elevators with WF2Q+: no process with a permanent backlog falls behind or gets
//! ahead of its share by more than about one turn, over any time and for any kinds of requests.
//!
//! Cases are random numbers of processes, priorities, groups, sizes and service times; the device
//! serves one request at a time.

use hoistway_core::{
    Bio, BlockLayer, Capacity, Class, ContextId, ElevatorStorage, GroupWeights, Kind, Next, NoSink, Op, Owned,
    Priority, QueueConfig, RequestQueue, Storage,
};

const US: u64 = 1000;
/// Requests that each process keeps queued.
const QUEUED: u64 = 8;

struct Process {
    context: ContextId,
    /// Its share of the disk.
    share: f64,
    sectors: u32,
    service_us: u64,
    next_sector: u64,
    /// The service received: sectors or us.
    served: f64,
}

/// A queue, its processes with a permanent backlog, and a device.
struct FairShareSimulation {
    queue: RequestQueue<Owned<NoSink>>,
    processes: Vec<Process>,
    now_us: u64,
}

impl FairShareSimulation {
    fn new(kind: Kind, layer: BlockLayer, settings: &[(&str, i64)]) -> FairShareSimulation {
        let capacity = Capacity { requests: 256, contexts: 16, merged_bios: 0, groups: 4 };
        let config =
            QueueConfig { layer, plugging: false, merging: false, nr_requests: None, ..QueueConfig::default() };
        let (storage, elevator) = (Storage::owned(capacity), ElevatorStorage::owned(kind, capacity));
        let mut queue = RequestQueue::new(config, storage, elevator, NoSink, 0);
        for (name, value) in settings {
            queue.set_tunable(name, *value).expect("a tunable of this elevator's");
        }
        FairShareSimulation { queue, processes: Vec::new(), now_us: 0 }
    }

    fn add(&mut self, level: u8, share: f64, sectors: u32, service_us: u64) -> ContextId {
        let (pid, priority) = (self.processes.len() as u32 + 1, Priority::new(Class::BestEffort, level));
        let context = self.queue.create_context(pid, priority.expect("a level"), 0).expect("free entries");
        let next_sector = u64::from(pid) << 32;
        self.processes.push(Process { context, share, sectors, service_us, next_sector, served: 0.0 });
        context
    }

    fn submit(&mut self, index: usize) {
        let process = &mut self.processes[index];
        let bio = Bio::new(index as u64, process.context, Op::Read, process.next_sector, process.sectors);
        process.next_sector += u64::from(process.sectors);
        assert!(self.queue.submit(bio, self.now_us * US).is_ok());
    }

    /// Serves this many requests. Returns the maximum by which any process was behind or ahead of
    /// its share.
    fn run(&mut self, requests: usize, measure: impl Fn(&Process) -> f64) -> (f64, f64) {
        for index in 0..self.processes.len() {
            (0..QUEUED).for_each(|_| self.submit(index));
        }
        let whole: f64 = self.processes.iter().map(|process| process.share).sum();
        let (mut behind, mut ahead, mut total) = (0f64, 0f64, 0f64);
        for _ in 0..requests {
            let Next::Request(id) = self.queue.next(self.now_us * US) else { panic!("the disk is left idle") };
            let index = self.queue.request(id).expect("an issued request").token() as usize;
            self.now_us += self.processes[index].service_us;
            let amount = measure(&self.processes[index]);
            self.processes[index].served += amount;
            total += amount;
            assert!(self.queue.complete(id, self.now_us * US, |_| {}).is_ok());
            self.submit(index);
            for process in &self.processes {
                let lag = total * process.share / whole - process.served;
                (behind, ahead) = (behind.max(lag), ahead.max(-lag));
            }
        }
        (behind, ahead)
    }
}

#[test]
fn sectors_follow_priorities_under_bfq_for_any_requests_and_budgets() {
    let settings = [("quantum", 1), ("search_fixed", 1), ("time_fixed", 1), ("timeout_sync", 100_000)];
    let mut worst = 0f64;
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut sim = FairShareSimulation::new(Kind::BfqV0, BlockLayer::V2_6_29, &settings);
        let count = 2 + random.below(6);
        for _ in 0..count {
            let level = random.below(8) as u8;
            let sectors = 8 << random.below(7);
            sim.add(level, f64::from(8 - level), sectors, 100 + random.below(1000));
        }
        let (behind, ahead) = sim.run(6000, |process| process.sectors.into());
        // The maximum budget, and one request of each process dispatched in the same call, at most
        // 512 sectors.
        let bound = (16384 + 512 * count) as f64;
        assert!(behind < bound && ahead < bound, "seed {seed}: {behind} behind, {ahead} ahead");
        worst = worst.max(behind / bound).max(ahead / bound);
    }
    assert!(worst > 0.4, "the bound is not nearly reached: {worst}");
}

#[test]
fn time_follows_priorities_under_cfq_by_wf2q_however_slow_requests_are() {
    let mut worst = 0f64;
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut sim = FairShareSimulation::new(Kind::CfqWf2q, BlockLayer::V2_6_24, &[]);
        for _ in 0..2 + random.below(6) {
            let level = random.below(8) as u8;
            sim.add(level, f64::from(8 - level), 8, 200 + random.below(10_000));
        }
        let (behind, ahead) = sim.run(6000, |process| process.service_us as f64);
        // A slice of 100 ms, and the overrun: four requests of 10 ms.
        let bound = 140_200.0;
        assert!(behind < bound && ahead < bound, "seed {seed}: {behind} behind, {ahead} ahead");
        worst = worst.max(behind / bound).max(ahead / bound);
    }
    assert!(worst > 0.4, "the bound is not nearly reached: {worst}");
}

#[test]
fn groups_get_their_part_and_their_processes_share_it() {
    let mut sim = FairShareSimulation::new(Kind::CfqWf2q, BlockLayer::V2_6_24, &[]);
    let root = sim.queue.root_group();
    // 300 : 100, and a process of level 4, 40, beside them. Two of level 4 and 6, 40 and 20, share
    // the first.
    let groups =
        [300, 100].map(|weight| sim.queue.create_group(root, GroupWeights::of(weight), 0).expect("free entries"));
    let members =
        [(4, 300.0 * 40.0 / 60.0, Some(0)), (6, 300.0 * 20.0 / 60.0, Some(0)), (4, 100.0, Some(1)), (4, 40.0, None)];
    for (level, share, group) in members {
        let context = sim.add(level, share, 8, 3000);
        if let Some(group) = group {
            let _ = sim.queue.move_context(context, groups[group], 0).expect("both exist");
        }
    }
    let (behind, ahead) = sim.run(20_000, |process| process.service_us as f64);
    // A slice of 100 ms and an overrun of 12 ms at each of two levels.
    assert!(behind < 224_000.0 && ahead < 224_000.0, "{behind} behind, {ahead} ahead");
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
