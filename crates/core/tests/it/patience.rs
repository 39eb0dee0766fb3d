//! Bounds of linus, sfq and kyber on how many later requests are served before a waiting one, under
//! any arrivals.
//!
//! Requests arrive at random from a fixed seed, always more than are served; the device takes one
//! at a time.

use std::collections::BTreeMap;

use hoistway_core::{
    Bio, Capacity, ContextId, ElevatorStorage, Kind, Next, NoSink, Op, Owned, Priority, QueueConfig, RequestQueue,
    Storage,
};

const PROCESSES: u64 = 8;
const SERVED: u64 = 4000;
/// The number of waiting requests in steady state.
const BACKLOG: usize = 60;

/// A waiting request.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    op: Op,
    process: u64,
    /// The number of its process's requests that waited at its arrival.
    ahead: u64,
    /// The number of requests served before its arrival.
    came: u64,
    /// The number of later arrivals served so far.
    overtaken: u64,
}

/// Serves many requests. `check` receives each served one, their number, and the waiting ones by
/// age.
fn serve(
    kind: Kind,
    hw_queues: u16,
    settings: &[(&str, i64)],
    seed: u64,
    mut check: impl FnMut(Waiting, u64, &BTreeMap<u64, Waiting>),
) {
    let capacity = Capacity { requests: 256, contexts: 16, merged_bios: 0, groups: 1 };
    let config = QueueConfig {
        layer: kind.info().layer,
        plugging: false,
        merging: false,
        nr_requests: None,
        hw_queues,
        ..QueueConfig::default()
    };
    let (storage, elevator) = (Storage::owned(capacity), ElevatorStorage::owned(kind, capacity));
    let mut queue: RequestQueue<Owned<NoSink>> = RequestQueue::new(config, storage, elevator, NoSink, 0);
    for &(name, value) in settings {
        queue.set_tunable(name, value).expect("in range");
    }
    let contexts: Vec<ContextId> = (0..PROCESSES)
        .map(|pid| {
            let context = queue.create_context(pid as u32, Priority::UNSET, 0).expect("few processes");
            queue.set_cpu(context, pid as u16).expect("it runs");
            context
        })
        .collect();
    let (mut random, mut waiting, mut token) = (Random(seed), BTreeMap::new(), 0);
    for served in 0..SERVED {
        // Arrivals come in bursts that refill the queue.
        while waiting.len() < BACKLOG / 2 || (waiting.len() < BACKLOG && random.below(3) > 0) {
            let process = random.below(PROCESSES);
            let op = [Op::Read, Op::Read, Op::Read, Op::Write, Op::Write, Op::Discard][random.below(6) as usize];
            // A moving hot spot, and other sectors.
            let sector =
                if random.below(4) > 0 { served * 8 + random.below(64) * 8 } else { random.below(1 << 20) * 8 };
            let bio = Bio::new(token, contexts[process as usize], op, sector, 8);
            assert!(queue.submit(bio, served * 1_000_000).is_ok());
            let ahead = waiting.values().filter(|other: &&Waiting| other.process == process).count() as u64;
            waiting.insert(token, Waiting { op, process, ahead, came: served, overtaken: 0 });
            token += 1;
        }
        let Next::Request(id) = queue.next(served * 1_000_000) else { panic!("{kind:?}: no request is dispatched") };
        let token = queue.request(id).expect("it was just given").token();
        let request = waiting.remove(&token).expect("it is served once");
        waiting.range_mut(..token).for_each(|(_, older)| older.overtaken += 1);
        check(request, served, &waiting);
        assert!(queue.complete(id, served * 1_000_000 + 900_000, |_| {}).is_ok());
    }
}

#[test]
fn linus_bounds_how_often_a_request_is_passed_by_its_passovers() {
    for form in 0..3 {
        for (seed, latency) in [(1, 0), (2, 3), (3, 20), (4, 200)] {
            let settings =
                [("form", form), ("read_latency", latency), ("write_latency", latency), ("max_bomb_segments", 0)];
            let mut most = 0;
            // In forms 0 and 1 less than the bio's 8 sectors is none.
            serve(Kind::Linus, 1, &settings, seed, |request, _, _| {
                assert!(request.overtaken <= latency as u64, "form {form}, {latency}: {request:?}");
                most = most.max(request.overtaken);
            });
            assert!(latency < 3 || form < 2 || most > 0, "form {form}, {latency}: no request was passed");
        }
    }
}

#[test]
fn linus_serves_writes_among_preferred_reads() {
    // A read goes behind the first four or six writes of the list, which it does not pass, so
    // writes continue.
    for form in [1, 2] {
        serve(
            Kind::Linus,
            1,
            &[("form", form), ("read_latency", 50), ("write_latency", 50)],
            5,
            |request, served, _| {
                assert!(
                    served - request.came <= 50 + 2 * BACKLOG as u64,
                    "form {form}: {request:?} served at {served}"
                );
            },
        );
    }
}

#[test]
fn sfq_serves_the_oldest_of_each_process_once_a_round() {
    for quantum in [1, 4, 16] {
        let settings = [("sorted", 0), ("quantum", quantum), ("perturb", 0), ("seed", 2)];
        serve(Kind::Sfq, 1, &settings, 6, |request, served, _| {
            // These precede the request: the dispatch list, one round for each earlier request of
            // its process and for itself, and the requests moved together with it (quantum), plus
            // one round.
            let together = quantum as u64 + PROCESSES;
            let allowed = 2 * together + (request.ahead + 1) * PROCESSES;
            assert!(served - request.came <= allowed, "quantum {quantum}: {request:?} served at {served}");
        });
    }
}

#[test]
fn kyber_serves_the_kinds_in_turn_and_each_in_order() {
    for hw_queues in [1u64, 4] {
        let mut turn: BTreeMap<(u64, u8), u64> = BTreeMap::new();
        serve(Kind::Kyber, hw_queues as u16, &[], 7, |request, served, waiting| {
            let queue = request.process % hw_queues;
            let mates = |other: &&Waiting| other.process % hw_queues == queue && other.op == request.op;
            assert!(waiting.values().filter(mates).all(|other| other.came >= request.came), "in order of arrival");
            let since = turn.insert((queue, request.op as u8), served).unwrap_or(0).max(request.came);
            // A batch of each other kind, and the queues take turns.
            assert!(served - since <= (16 + 8 + 1 + 1) * hw_queues, "{hw_queues}: {request:?}, {since}, {served}");
        });
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
