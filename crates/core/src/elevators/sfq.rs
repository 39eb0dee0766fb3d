//! Stochastic fair queueing for disks, "sfq": what CFQ grew from.
//!
//! The idea: hash the processes into a fixed number of buckets and serve the buckets in turn, one request each. That is fair among
//! processes without keeping anything about one, as long as their hashes differ; those that collide share a turn, so the hash is
//! changed now and then and nobody shares for long. McKenney described it for packets ("Stochastic fairness queueing", 1990).
//!
//! This is a reconstruction. In early 2003 such a scheduler was proposed for Linux and posted for 2.5, and CFQ followed within weeks,
//! with a queue a process in place of the buckets; no source of it was found. The buckets, their order and the length of a round here
//! are what the first CFQ in the kernel had, and the period of the hash is the one usual for packets: choices, not facts.
//!
//! The state: 64 buckets, each sorted by sector and by arrival, and a list of those that have requests. The hash is salted by a seed
//! and by the number of the period since boot, so the same calls give the same buckets: the core draws no random numbers.

use crate::bio::Bio;
use crate::collections::{Arena, Link, LinkOf, List, NIL, Slot};
use crate::elevator::info::Info;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{Capacity, HostTypes, TableMaker, TableOf};
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevator::{Elevator, MakeTables, Merge};
use crate::elevators::shared::sorted_fifo::SortedFifo;
use crate::elevators::shared::stored_time::StoredTime;
use crate::event::Note;
use crate::layer::BlockLayer;

/// Buckets: a power of two.
const BUCKETS: u32 = 64;

/// What the registry tells of it.
pub(crate) const INFO: Info = Info {
    name: "sfq",
    aliases: &[],
    kernel: "none: a reconstruction of what was posted for 2.5 in early 2003",
    in_linux: "posted 2003",
    headline: "Processes hashed into buckets that take turns",
    idea: "Processes are hashed into 64 buckets, and each bucket in turn has a request served; the hash changes every ten seconds.",
    suits: "To show what CFQ began with: fair by requests among many processes, without anticipation, and so with a seek for each.",
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
            meaning: "Rounds over all buckets go on until so many requests were moved to the dispatch list, where they are sorted.",
            trade_off: "Higher seeks less and lets a newcomer wait longer.",
        },
        Tunable {
            name: "perturb",
            unit: Unit::Milliseconds,
            default: 10_000,
            min: 0,
            max: u32::MAX as i64,
            meaning: "How long a hash is kept for requests that arrive; 0 is for ever.",
            trade_off: "Shorter ends a collision sooner; a process that is waiting may find its requests in two buckets, and out of order.",
        },
        Tunable {
            name: "seed",
            unit: Unit::Number,
            default: 0,
            min: 0,
            max: i64::MAX,
            meaning: "What the hashes are derived from, beside the time.",
            trade_off: "None; another one has other collisions.",
        },
        Tunable {
            name: "sorted",
            unit: Unit::Switch,
            default: 1,
            min: 0,
            max: 1,
            meaning: "Whether a bucket's turn is its lowest sector's (as in the first CFQ) or its oldest request's.",
            trade_off: "Sorted seeks less; a process that goes on asking at low sectors then starves what waits above in its own bucket.",
        },
    ],
};

/// The requests of the processes that share a hash.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bucket {
    requests: SortedFifo,
    /// Its place among those that have requests.
    busy: Link,
}

/// The list of buckets that have requests.
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

/// Its tables.
pub(crate) struct Tables<H: HostTypes> {
    buckets: H::Slots<Bucket>,
}

/// The state.
pub(crate) struct Sfq<H: HostTypes> {
    buckets: TableOf<H, Bucket>,
    /// Those that have requests, in the order in which they got some.
    busy: List<Busy>,
    quantum: u32,
    /// The period after which the hash changes; 0: never.
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

    /// Only in the bucket that the bio itself would go to.
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
            moved = moved.saturating_add(1);
            if moved == core.batch_max && !self.buckets[bucket].requests.is_empty() {
                // A round that is cut short goes on behind it.
                self.busy.remove(&mut self.buckets, bucket);
                self.busy.push_back(&mut self.buckets, bucket);
            }
            bucket = next;
        }
        moved
    }

    /// Takes a request out of its bucket.
    fn remove(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let bucket = core.tables.requests[request].owner;
        self.buckets[bucket].requests.remove(core, request);
        if self.buckets[bucket].requests.is_empty() {
            self.busy.remove(&mut self.buckets, bucket);
        }
    }

    /// The bucket that a process's requests go to now.
    fn bucket_of(&self, core: &QueueCore<H>, context: Slot) -> Slot {
        let period = core.ticks().checked_div(self.perturb.ticks).unwrap_or(0);
        let salt = mix(self.seed.unsigned_abs().wrapping_add(mix(period)));
        let pid = u64::from(core.tables.contexts[context].pid);
        (mix(pid ^ salt) % u64::from(BUCKETS)) as Slot
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014): every bit of the answer depends on every bit of the number.
fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
