//! Kyber with one and several hardware queues: tokens bound the requests in the device, depths
//! follow latencies, all requests are served.

use std::collections::VecDeque;

use hoistway_core::{
    Bio, BlockLayer, Capacity, ContextId, DeferredWork, ElevatorStorage, Event, Flags, Kind, Next, Note, Op, Owned,
    Priority, QueueConfig, RequestId, RequestQueue, Sink, Storage, Submitted,
};

const MS: u64 = 1_000_000;
const READ: u8 = 0;
const WRITE: u8 = 1;

/// Records the changes of depth.
#[derive(Debug, Default)]
struct Depths(Vec<(u8, u32)>);

impl Sink for Depths {
    fn record(&mut self, _: u64, event: Event) {
        if let Event::Note(Note::TokenDepth { domain, depth }) = event {
            self.0.push((domain, depth));
        }
    }
}

struct Host {
    queue: RequestQueue<Owned<Depths>>,
    /// One process per CPU.
    contexts: Vec<ContextId>,
    now_ns: u64,
    next_token: u64,
}

impl Host {
    fn new(hw_queues: u16, cpus: u16) -> Host {
        Host::with(QueueConfig { hw_queues, nr_requests: None, ..config() }, cpus)
    }

    fn with(config: QueueConfig, cpus: u16) -> Host {
        let capacity = Capacity { requests: 2048, contexts: 16, merged_bios: 64, groups: 1 };
        let (storage, elevator) = (Storage::owned(capacity), ElevatorStorage::owned(Kind::Kyber, capacity));
        let mut queue = RequestQueue::new(config, storage, elevator, Depths::default(), 0);
        let contexts: Vec<ContextId> = (0..cpus)
            .map(|cpu| {
                let context = queue.create_context(cpu.into(), Priority::UNSET, 0).expect("few processes");
                queue.set_cpu(context, cpu).expect("it runs");
                context
            })
            .collect();
        Host { queue, contexts, now_ns: 0, next_token: 0 }
    }

    /// Submits on a CPU, far from all other requests.
    fn submit(&mut self, cpu: usize, op: Op) -> Submitted {
        let sector = self.next_token * 1000;
        self.submit_at(cpu, op, sector)
    }

    fn submit_at(&mut self, cpu: usize, op: Op, sector: u64) -> Submitted {
        let bio = Bio::new(self.next_token, self.contexts[cpu], op, sector, 8);
        self.next_token += 1;
        self.queue.submit(bio, self.now_ns).expect("free entries").0
    }

    fn next(&mut self) -> Option<RequestId> {
        let Next::Request(id) = self.queue.next(self.now_ns) else { return None };
        Some(id)
    }

    fn next_for(&mut self, hw_queue: u16) -> Option<RequestId> {
        let Next::Request(id) = self.queue.next_for(hw_queue, self.now_ns) else { return None };
        Some(id)
    }

    fn op(&self, id: RequestId) -> Op {
        self.queue.request(id).expect("an in-flight request").op()
    }

    fn cpu(&self, id: RequestId) -> u16 {
        let context = self.queue.context_of(id).expect("an in-flight request");
        u16::try_from(context.pid()).expect("a CPU's number")
    }

    fn complete(&mut self, id: RequestId) {
        let _ = self.queue.complete(id, self.now_ns, |_| {}).expect("an in-flight request");
    }

    /// Returns true if a run of the queue was scheduled.
    fn was_kicked(&mut self) -> bool {
        std::iter::from_fn(|| self.queue.next_work()).any(|work| work == DeferredWork::Run)
    }

    /// Serves this many requests one after the other, with these waiting and service times in ns;
    /// the timer fires long before the end.
    fn measure(&mut self, requests: &[(Op, u64, u64)]) -> Vec<(u8, u32)> {
        for &(op, wait_ns, device_ns) in requests {
            for _ in 0..500 {
                self.submit(0, op);
                self.now_ns += wait_ns;
                let id = self.next().expect("tokens are free");
                self.now_ns += device_ns;
                self.complete(id);
            }
        }
        assert!(self.queue.next_timer().is_some_and(|at_ns| at_ns <= self.now_ns));
        let _ = self.queue.timer(self.now_ns);
        assert_eq!(self.queue.next_timer(), None, "only a completion arms it");
        std::mem::take(&mut self.queue.sink_mut().0)
    }
}

fn config() -> QueueConfig {
    QueueConfig { layer: BlockLayer::V6_1, plugging: false, ..QueueConfig::default() }
}

#[test]
fn depths_bound_the_in_flight_requests_for_any_number_of_hardware_queues() {
    for hw_queues in [1, 4] {
        let mut host = Host::new(hw_queues, 4);
        for index in 0..400 {
            for op in [Op::Read, Op::Write, Op::Discard] {
                host.submit(index % 4, op);
            }
        }
        let (mut in_device, mut served) = (VecDeque::new(), [0u32; 4]);
        for _ in 0..2000 {
            let mut cpus = [0u32; 4];
            while let Some(id) = host.next() {
                cpus[usize::from(host.cpu(id))] += 1;
                in_device.push_back(id);
            }
            for (sum, cpu) in served.iter_mut().zip(cpus) {
                *sum += cpu;
            }
            let count = |op| in_device.iter().filter(|id| host.op(**id) == op).count();
            let counts = [count(Op::Read), count(Op::Write), count(Op::Discard)];
            assert!(counts[0] <= 256 && counts[1] <= 128 && counts[2] <= 64, "{hw_queues}: {counts:?}");
            if served.iter().sum::<u32>() < 256 + 128 + 64 + 1 {
                assert_eq!(counts, [256, 128, 64], "and are used");
                if hw_queues == 4 {
                    assert!(served.iter().all(|&count| count == 112), "queues are served in turn: {served:?}");
                }
            }
            let Some(id) = in_device.pop_front() else { break };
            host.complete(id);
        }
        assert_eq!(served, [300; 4], "{hw_queues}");
        assert!(host.queue.is_empty());
    }
}

#[test]
fn a_hardware_queue_gets_the_requests_of_its_own_cpus() {
    let mut host = Host::new(4, 8);
    for cpu in 0..8 {
        host.submit(cpu, Op::Read);
    }
    for hw_queue in [2, 0, 3, 1] {
        let ids = [host.next_for(hw_queue), host.next_for(hw_queue)].map(|id| id.expect("two CPUs' requests"));
        assert_eq!(ids.map(|id| host.cpu(id) % 4), [hw_queue; 2]);
        assert_eq!(ids.map(|id| host.cpu(id) / 4), [0, 1], "in order of arrival");
        assert_eq!(host.next_for(hw_queue), None);
    }
    assert!(host.queue.is_empty());
}

#[test]
fn each_hardware_queue_has_its_own_turns() {
    let mut host = Host::new(2, 2);
    for _ in 0..20 {
        for cpu in 0..2 {
            host.submit(cpu, Op::Read);
            host.submit(cpu, Op::Write);
        }
    }
    let reads = |host: &mut Host, hw_queue| {
        let ops: Vec<Op> = (0..24).map(|_| host.next_for(hw_queue).map(|id| host.op(id)).expect("40 wait")).collect();
        ops.iter().take_while(|op| **op == Op::Read).count()
    };
    assert_eq!((reads(&mut host, 0), reads(&mut host, 1)), (16, 16));
}

#[test]
fn tokens_are_shared_and_a_freed_one_schedules_a_run() {
    let mut host = Host::new(2, 2);
    for _ in 0..256 {
        host.submit(0, Op::Read);
    }
    host.submit(1, Op::Read);
    let first = host.next_for(0).expect("tokens are free");
    for _ in 1..256 {
        assert!(host.next_for(0).is_some());
    }
    host.was_kicked();
    assert_eq!(host.queue.next_for(1, host.now_ns), Next::Wait, "the other queue has all tokens");
    assert!(!host.was_kicked());
    host.complete(first);
    assert!(host.was_kicked());
    assert!(host.next_for(1).is_some());
}

#[test]
fn requests_of_different_hardware_queues_stay_apart() {
    let mut host = Host::new(2, 4);
    assert!(matches!(host.submit_at(0, Op::Write, 0), Submitted::Queued(_)));
    assert!(matches!(host.submit_at(1, Op::Write, 8), Submitted::Queued(_)), "CPU 1 is of the other queue");
    assert!(matches!(host.submit_at(2, Op::Write, 8), Submitted::Merged(_)), "CPU 2 is of the first");
}

#[test]
fn hardware_queues_beyond_the_capacity_share_lists() {
    let mut host = Host::new(u16::MAX, 3);
    for cpu in [0usize, 1, 2] {
        let context = host.contexts[cpu];
        host.queue.set_cpu(context, [7, 7 + 256, u16::MAX - 1][cpu]).expect("it runs");
        host.submit(cpu, Op::Read);
    }
    assert!([host.next_for(7), host.next_for(7)].iter().all(Option::is_some));
    assert_eq!(host.next_for(7), None);
    assert!(host.next_for(u16::MAX - 1).is_some() && host.queue.is_empty());
}

#[test]
fn a_domain_within_its_target_is_throttled_for_one_that_misses_it() {
    // Reads are in the third quarter of their 2 ms, writes in the sixth of their 10 ms: 256 * 3/4,
    // and so on.
    let mut host = Host::new(1, 1);
    let both = [(Op::Read, 0, 1_200_000), (Op::Write, 0, 15 * MS - 1)];
    for depth in [192, 144, 108] {
        assert_eq!(host.measure(&both), [(READ, depth)], "writes have their maximum");
    }
    // Now reads wait long but no kind is slow in the device: reads get twice the depth, and then
    // all of it.
    let waiting = [(Op::Read, 4 * MS, 100)];
    for depth in [216, 256] {
        assert_eq!(host.measure(&waiting), [(READ, depth)]);
    }
    assert_eq!(host.measure(&waiting), []);
}

#[test]
fn a_depth_never_falls_below_one() {
    // Writes in the first quarter of their target: a quarter of the depth each time, but at least
    // 1.
    let mut host = Host::new(1, 1);
    let both = [(Op::Write, 0, 100), (Op::Read, 0, 3 * MS)];
    for depth in [32, 8, 2, 1] {
        assert_eq!(host.measure(&both), [(WRITE, depth)]);
    }
    assert_eq!(host.measure(&both), []);
    for _ in 0..3 {
        host.submit(0, Op::Write);
    }
    let one = host.next().expect("the one");
    assert_eq!(host.queue.next(host.now_ns), Next::Wait);
    host.complete(one);
    assert!(host.next().is_some());
}

#[test]
fn a_target_can_be_set_and_counts_from_the_next_completion_on() {
    let mut host = Host::new(1, 1);
    host.queue.set_tunable("read_lat_nsec", 100 * MS as i64).expect("in range");
    let both = [(Op::Write, 0, 100), (Op::Read, 0, 3 * MS)];
    assert_eq!(host.measure(&both), [], "3 ms are well within 100");
    host.queue.set_tunable("read_lat_nsec", 0).expect("in range");
    assert_eq!(host.measure(&both), [(WRITE, 32)], "and beyond 0");
}

#[test]
fn a_requeued_request_releases_its_token() {
    let mut host = Host::new(1, 1);
    let both = [(Op::Write, 0, 100), (Op::Read, 0, 3 * MS)];
    for _ in 0..4 {
        host.measure(&both);
    }
    host.submit(0, Op::Write);
    host.submit(0, Op::Write);
    let first = host.next().expect("the only token is free");
    assert_eq!(host.next(), None);
    let _ = host.queue.requeue(first, host.now_ns).expect("an in-flight request");
    assert_eq!(host.next(), Some(first), "it goes first without a token");
    let second = host.next().expect("the token is free");
    host.complete(first);
    host.complete(second);
    assert!(host.queue.is_empty() && host.queue.in_flight() == 0);
}

#[test]
fn three_quarters_of_the_tags_are_for_async_requests() {
    let mut host = Host::with(QueueConfig { nr_requests: Some(64), ..config() }, 8);
    for count in 0..48 {
        assert!(matches!(host.submit(0, Op::Write), Submitted::Queued(_)), "write {count}");
    }
    assert_eq!(host.submit(0, Op::Write), Submitted::Asleep);
    let sync = Bio { flags: Flags::SYNC, ..Bio::new(9999, host.contexts[1], Op::Write, 1 << 40, 8) };
    assert!(matches!(host.queue.submit(sync, 0), Ok((Submitted::Queued(_), _))));
    for count in 0..15 {
        assert!(matches!(host.submit(2, Op::Read), Submitted::Queued(_)), "read {count}");
    }
    assert_eq!(host.submit(2, Op::Read), Submitted::Asleep);
}
