//! A host that merges over the reservation layer: everything is served once, and a process is not
//! merged with another one that has a reservation.

use hoistway_core::{
    Bio, ContextId, ElevatorStorage, Kind, Next, NoSink, Op, Priority, QueueConfig, RequestId, Reservation, Storage,
};

use super::merger::{Merger, Queue};
use super::{CAPACITY, Random, config};

struct Host {
    queue: Queue,
    merger: Merger,
    contexts: [ContextId; 2],
    device: Vec<RequestId>,
    now_ns: u64,
    /// For each sector the processes that read it, the first as 1 and the second as 2.
    submitted: [u8; 256],
    served_sectors: u32,
}

impl Host {
    fn new(kind: Kind) -> Host {
        let config = QueueConfig { merging: false, ..config(64, false, true) };
        let storage = ElevatorStorage::owned_reserving(kind, CAPACITY);
        let mut queue = Queue::new(config, Storage::owned(CAPACITY), storage, NoSink, 0);
        let contexts = [1, 2].map(|pid| queue.create_context(pid, Priority::UNSET, 0).expect("two processes"));
        let reservation = Reservation { bytes_per_second: 200_000, depth_bytes: None, request_bytes: 4096 };
        let _ = queue.reserve(contexts[0], reservation, 0).expect("the device has capacity");
        let merger = Merger::new(64, false, None);
        Host { queue, merger, contexts, device: Vec::new(), now_ns: 0, submitted: [0; 256], served_sectors: 0 }
    }

    fn submit(&mut self, token: u64, random: &mut Random) -> u32 {
        let process = random.below(2) as usize;
        let sector = 4 * random.below(64);
        let range = sector as usize..sector as usize + 4;
        if self.submitted[range.clone()].iter().any(|&processes| processes != 0) {
            return 0;
        }
        self.submitted[range].fill(1 << process);
        let bio = Bio::new(token, self.contexts[process], Op::Read, sector, 4);
        let _ = self.merger.submit(&mut self.queue, &bio, self.now_ns);
        4
    }

    fn run(&mut self, kind: Kind) {
        while self.device.len() < 2 {
            let Next::Request(id) = self.queue.next(self.now_ns) else { break };
            let request = self.queue.request(id).expect("it was issued");
            let (token, first, sectors) = (request.token(), request.sector() as usize, request.sectors());
            let of = &mut self.submitted[first..first + sectors as usize];
            assert!(of.iter().all(|&processes| processes == of[0] && processes != 0), "{kind:?}: {first}: {of:?}");
            of.fill(0);
            self.served_sectors += sectors;
            self.merger.forget(token);
            self.merger.forget_dispatched(&self.queue);
            self.device.push(id);
        }
    }

    /// Completes a request, or passes the time until a timer. Returns false if there is neither.
    fn go_on(&mut self) -> bool {
        if let Some(id) = self.device.pop() {
            self.now_ns += 1_000_000;
            let _ = self.queue.complete(id, self.now_ns, |_| {}).expect("it is in the device");
        } else if let Some(at_ns) = self.queue.next_timer() {
            self.now_ns = self.now_ns.max(at_ns);
            let _ = self.queue.timer(self.now_ns);
        } else {
            return false;
        }
        while self.queue.next_work().is_some() {}
        true
    }
}

#[test]
fn requests_over_a_reservation_are_merged_by_the_host_and_served_once() {
    let (mut merges, mut at_insert) = (0, 0);
    for (&kind, seed) in Kind::ALL.iter().flat_map(|kind| (0..40).map(move |seed| (kind, seed))) {
        let random = &mut Random::new(seed);
        let mut host = Host::new(kind);
        let mut sectors = 0;
        for token in 0..200 {
            sectors += host.submit(token, random);
            if random.one_in(3) {
                host.run(kind);
                host.go_on();
            }
        }
        for _ in 0..10_000 {
            host.run(kind);
            if !host.go_on() {
                break;
            }
        }
        assert!(host.queue.is_empty(), "{kind:?}, seed {seed}: a request is not served");
        assert_eq!(host.served_sectors, sectors, "{kind:?}, seed {seed}");
        let [back, front, join, insert] = host.merger.counts;
        merges += back + front + join;
        at_insert += insert;
    }
    assert!(merges > 1000, "{merges}");
    assert_eq!(at_insert, 0, "the host asks nothing at insertion");
}
