//! Stochastic fair queueing for disks, "sfq": the predecessor of CFQ.
//!
//! The idea: hash the processes into a fixed number of buckets and serve one request of each bucket
//! in turn. This is fair among processes without state per process, as long as their hashes differ.
//! Colliding processes share a turn, so the hash changes periodically. McKenney described it for
//! packets ("Stochastic fairness queueing", 1990).
//!
//! This is a reconstruction. In early 2003 such a scheduler was proposed for Linux and posted for
//! 2.5; CFQ followed within weeks, with one queue per process instead of buckets. No source was
//! found. The buckets, their order and the length of a round are those of the first CFQ in the
//! kernel, and the period of the hash is the one usual for packets: these are choices, not facts.
//!
//! The state is 64 buckets, each sorted by sector and by arrival, and a list of those with
//! requests. The hash is salted with a seed and the number of the period since boot, so the same
//! calls give the same buckets.

use crate::bio::Bio;
use crate::collections::{Arena, Count, Link, LinkOf, List, NIL, Slot};
use crate::elevator::capacity::Capacity;
use crate::elevator::info::Info;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker, TableOf};
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevator::{Elevator, MakeTables, Merge};
use crate::elevators::shared::sorted_fifo::SortedFifo;
use crate::elevators::shared::stored_time::StoredTime;
use crate::event::Note;
use crate::layer::BlockLayer;

/// The number of buckets, a power of two.
const BUCKETS: u32 = 64;

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "sfq",
    aliases: &[],
    kernel: "none: a reconstruction of a proposal for 2.5 in early 2003",
    in_linux: "posted 2003",
    headline: "Processes hashed into buckets that take turns",
    idea: "Processes are hashed into 64 buckets, and one request of each bucket is served in turn; \
           the hash changes every ten seconds.",
    suits: "Studying the origin of CFQ: fair by requests among many processes, but without \
            anticipation, so that every turn costs a seek.",
    layer: BlockLayer::V2_6_18,
    groups: false,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: true,
    tunables: &[
        Tunable {
            name: "quantum",
            unit: Unit::Requests,
            default: 4,
            min: 1,
            max: u32::MAX as i64,
            meaning: "Rounds over all buckets continue until this many requests have moved to the \
                      dispatch list, where they are sorted.",
            trade_off: "Higher seeks less and makes new processes wait longer.",
        },
        Tunable {
            name: "perturb",
            unit: Unit::Milliseconds,
            default: 10_000,
            min: 0,
            max: u32::MAX as i64,
            meaning: "The time for which arriving requests use one hash; 0 is unlimited.",
            trade_off: "Shorter ends collisions sooner; the requests of a waiting process may end \
                        up in two buckets and out of order.",
        },
        Tunable {
            name: "seed",
            unit: Unit::Number,
            default: 0,
            min: 0,
            max: i64::MAX,
            meaning: "The seed of the hashes, used together with the time.",
            trade_off: "None; a different seed has different collisions.",
        },
        Tunable {
            name: "sorted",
            unit: Unit::Switch,
            default: 1,
            min: 0,
            max: 1,
            meaning: "1 serves the lowest sector of a bucket (as the first CFQ), 0 the oldest \
                      request.",
            trade_off: "Sorted seeks less; a process that keeps requesting low sectors then \
                        starves the requests above in its own bucket.",
        },
    ],
};

/// The requests of the processes with the same hash.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bucket {
    requests: SortedFifo,
    /// The link in the list of buckets with requests.
    busy: Link,
}

/// The list of buckets with requests.
#[derive(Debug)]
struct Busy;

impl LinkOf<Bucket> for Busy {
    fn link(bucket: &Bucket) -> &Link {
        &bucket.busy
    }
    fn link_mut(bucket: &mut Bucket) -> &mut Link {
        &mut bucket.busy
    }
}

/// The tables of the elevator.
pub(crate) struct Tables<H: HostTypes> {
    buckets: H::Slots<Bucket>,
}

/// The state of the elevator.
pub(crate) struct Sfq<H: HostTypes> {
    buckets: TableOf<H, Bucket>,
    /// The buckets with requests, in the order in which they became non-empty.
    busy: List<Busy>,
    quantum: u32,
    /// The period after which the hash changes; 0 is never.
    perturb: StoredTime,
    seed: i64,
    sorted: bool,
}

impl<H: HostTypes> MakeTables<H> for Sfq<H> {
    fn make_tables<M: TableMaker<H>>(_: Capacity, maker: &mut M) -> Tables<H> {
        Tables { buckets: maker.table(BUCKETS) }
    }
}

impl<H: HostTypes> Elevator<H> for Sfq<H> {
    type Tables = Tables<H>;

    fn new(core: &mut QueueCore<H>, tables: Tables<H>) -> Self {
        let mut new = Sfq {
            buckets: Arena::new(tables.buckets),
            busy: List::default(),
            quantum: 0,
            perturb: StoredTime::default(),
            seed: 0,
            sorted: true,
        };
        for (index, tunable) in INFO.tunables.iter().enumerate() {
            new.set_tunable(core, index, tunable.default);
        }
        new
    }

    fn into_tables(self) -> Tables<H> {
        Tables { buckets: self.buckets.into_slots() }
    }

    fn tunable(&self, index: usize) -> i64 {
        match index {
            0 => i64::from(self.quantum),
            1 => self.perturb.stored_ms,
            2 => self.seed,
            _ => i64::from(self.sorted),
        }
    }

    fn set_tunable(&mut self, core: &mut QueueCore<H>, index: usize, value: i64) {
        match index {
            0 => self.quantum = value.unsigned_abs() as u32,
            1 => self.perturb = StoredTime::of(&core.clock, value),
            2 => self.seed = value,
            _ => self.sorted = value != 0,
        }
    }

    /// Searches only the bucket to which the bio's process is hashed now.
    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        let bucket = self.bucket_of(core, bio.context.slot);
        self.buckets[bucket].requests.at_sector(core, bio.end())
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        if merge == Merge::Front {
            let bucket = core.tables.requests[request].owner;
            self.buckets[bucket].requests.resort(core, request);
        }
    }

    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        let (bucket, other) = (core.tables.requests[request].owner, core.tables.requests[absorbed].owner);
        if bucket == other {
            self.buckets[bucket].requests.inherit(core, request, absorbed);
        }
        self.remove(core, absorbed);
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let context = core.tables.requests[request].context;
        let bucket = self.bucket_of(core, context);
        core.tables.requests[request].owner = bucket;
        if self.buckets[bucket].requests.is_empty() {
            self.busy.push_back(&mut self.buckets, bucket);
        }
        let arrived = core.ticks();
        self.buckets[bucket].requests.insert(core, request, arrived);
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, _force: bool) -> u32 {
        let mut moved = 0u32;
        while moved < self.quantum.min(core.batch_max) && !self.busy.is_empty() {
            moved = moved.saturating_add(self.round(core));
        }
        moved
    }

    fn free(&mut self, core: &mut QueueCore<H>, request: Slot) {
        core.tables.requests[request].owner = NIL;
    }

    fn is_empty(&self) -> bool {
        self.busy.is_empty()
    }
}

impl<H: HostTypes> Sfq<H> {
    /// Moves one request of each bucket.
    fn round(&mut self, core: &mut QueueCore<H>) -> u32 {
        let mut moved = 0u32;
        let mut bucket = self.busy.head();
        while bucket != NIL && moved < core.batch_max {
            let next = self.busy.next(&self.buckets, bucket);
            let requests = &self.buckets[bucket].requests;
            let request = if self.sorted { requests.lowest() } else { requests.oldest() };
            debug_assert!(request != NIL, "a busy bucket has a request");
            core.note(|_| Note::Charge { queue: bucket, amount: 1 });
            self.remove(core, request);
            core.dispatch_sort(request);
            moved.increment();
            if moved == core.batch_max && !self.buckets[bucket].requests.is_empty() {
                // The round was cut short: the next one starts behind this bucket.
                self.busy.remove(&mut self.buckets, bucket);
                self.busy.push_back(&mut self.buckets, bucket);
            }
            bucket = next;
        }
        moved
    }

    /// Removes a request from its bucket.
    fn remove(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let bucket = core.tables.requests[request].owner;
        self.buckets[bucket].requests.remove(core, request);
        if self.buckets[bucket].requests.is_empty() {
            self.busy.remove(&mut self.buckets, bucket);
        }
    }

    /// The bucket to which a process is hashed now.
    fn bucket_of(&self, core: &QueueCore<H>, context: Slot) -> Slot {
        let period = core.ticks().checked_div(self.perturb.ticks).unwrap_or(0);
        let salt = mix(self.seed.unsigned_abs().wrapping_add(mix(period)));
        let pid = u64::from(core.tables.contexts[context].pid);
        (mix(pid ^ salt) % u64::from(BUCKETS)) as Slot
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014): every bit of the result depends on
/// every bit of the input.
fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
