//! Kyber: latency by admission, as in Linux 6.1 (in the kernel since 4.12; this form since 4.20).
//!
//! The idea: a fast device needs no order from outside, but it answers late when too much is in it. So every kind of request
//! (reads, writes, discards, others: a *domain*) has tokens, and takes one into the device. Ten times a second the latencies
//! that were measured are held against a target: while the device is slow for somebody, those who do well lose tokens, and those
//! who do badly get more.
//!
//! The state: for each hardware queue of the device what waits for it, a list for each domain, in order of arrival, and whose turn
//! it is; for all of them together the tokens (`tokens`) and the latencies (`latency`). Position and priority do not count, and the
//! device is never kept idle.
//!
//! The kernel keeps what was submitted lately in a list for each CPU, and moves those of all CPUs of a hardware queue to its list when
//! that is empty. Here it is one list a hardware queue: with one CPU for each, as fast devices are mostly set up, it is the same. Of more
//! hardware queues than 256, or than the storage has requests, some share their lists.

mod domain;
mod latency;
mod tokens;

use crate::bio::{Bio, Flags};
use crate::clock::Timer;
use crate::collections::{Arena, Link, LinkOf, List, NIL, Slot};
use crate::elevator::info::Info;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{Capacity, HostTypes, TableMaker, TableOf};
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevator::{Elevator, MakeTables, Merge, Search};
use crate::event::Note;
use crate::layer::BlockLayer;
use crate::request::Arrivals;

use domain::{Domain, PerDomain};
use latency::Latencies;
use tokens::Tokens;

/// Latencies are looked at this long after a completion, in ms, at the latest.
const ADJUST_MS: u64 = 100;
/// What a discard may take; it cannot be set.
const DISCARD_TARGET_NS: u64 = 5_000_000_000;
/// So many percent of the tags may be allocated for requests that nobody waits for.
const ASYNC_PERCENT: u32 = 75;
/// A bio is tried with so many requests: those that came last.
const MERGE_TRIES: u32 = 8;
/// More hardware queues than this share their lists; so do more than there are requests.
const HW_QUEUES_MAX: u32 = 256;

/// What the registry tells of it.
pub(crate) const INFO: Info = Info {
    name: "kyber",
    aliases: &[],
    kernel: "6.1 (in the kernel since 4.12; this form since 4.20)",
    in_linux: "from 4.12",
    headline: "As many in the device as keeps latency in bounds",
    idea: "No order by position and no fairness among processes: reads, writes and discards may each have so many requests in the \
           device, and that number follows the latencies that are measured against a target.",
    suits: "Flash with many hardware queues, where reads must not wait for floods of writes. On a disk with an arm it leaves every \
            seek as it is.",
    layer: BlockLayer::V6_1,
    groups: false,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: false,
    tunables: &[
        Tunable {
            name: "read_lat_nsec",
            unit: Unit::Nanoseconds,
            default: 2_000_000,
            min: 0,
            max: i64::MAX,
            meaning: "The latency that reads should have.",
            trade_off: "Lower holds writes back sooner while reads are slow; below what the device can do it helps nobody.",
        },
        Tunable {
            name: "write_lat_nsec",
            unit: Unit::Nanoseconds,
            default: 10_000_000,
            min: 0,
            max: i64::MAX,
            meaning: "The latency that writes should have.",
            trade_off: "Lower holds reads back sooner while writes are slow.",
        },
    ],
};

/// What is kept about a request.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// When the driver took it, in ns since boot.
    started_ns: u64,
    /// Its token's number, or [`NIL`].
    token: u32,
}

impl Default for Entry {
    fn default() -> Self {
        Entry { started_ns: 0, token: NIL }
    }
}

/// What waits for a hardware queue.
#[derive(Clone, Copy, Default)]
pub(crate) struct HwQueue {
    /// What has arrived. Bios can still be merged into it.
    staged: PerDomain<List<Arrivals>>,
    /// What was moved on when a request of the domain was last taken from an empty list: it takes no more bios.
    flushed: PerDomain<List<Arrivals>>,
    /// Requests in these lists.
    queued: u32,
    /// Whose turn it is.
    domain: Domain,
    /// Requests taken in this turn.
    batching: u32,
    /// Its place among those that have requests.
    busy: Link,
}

/// The list of hardware queues that have requests.
#[derive(Debug)]
struct Busy;

impl LinkOf<HwQueue> for Busy {
    fn link(queue: &HwQueue) -> &Link {
        &queue.busy
    }
    fn link_mut(queue: &mut HwQueue) -> &mut Link {
        &mut queue.busy
    }
}

/// Its tables.
pub(crate) struct Tables<H: HostTypes> {
    entries: H::Slots<Entry>,
    queues: H::Slots<HwQueue>,
}

/// The state.
pub(crate) struct Kyber<H: HostTypes> {
    entries: TableOf<H, Entry>,
    queues: TableOf<H, HwQueue>,
    /// How many of them are used.
    queue_count: u32,
    /// Those that have requests: the one whose turn it is first.
    busy: List<Busy>,
    busy_count: u32,
    tokens: PerDomain<Tokens>,
    /// Somebody has looked for a token of this domain in vain.
    waiting: PerDomain<bool>,
    latencies: Latencies,
    targets_ns: PerDomain<u64>,
}

impl<H: HostTypes> MakeTables<H> for Kyber<H> {
    fn make_tables<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Tables<H> {
        let queues = capacity.requests.clamp(1, HW_QUEUES_MAX);
        Tables { entries: maker.table(capacity.request_slots()), queues: maker.table(queues) }
    }
}

impl<H: HostTypes> Elevator<H> for Kyber<H> {
    type Tables = Tables<H>;

    fn new(core: &mut QueueCore<H>, tables: Tables<H>) -> Self {
        let queues: TableOf<H, HwQueue> = Arena::new(tables.queues);
        let queue_count = u32::from(core.hw_queues).min(queues.capacity()).max(1);
        let mut new = Kyber {
            entries: Arena::new(tables.entries),
            queues,
            queue_count,
            busy: List::default(),
            busy_count: 0,
            tokens: PerDomain(Domain::ALL.map(|domain| Tokens::new(domain.depth_max()))),
            waiting: PerDomain::default(),
            latencies: Latencies::default(),
            targets_ns: PerDomain([0, 0, DISCARD_TARGET_NS, 0]),
        };
        for (index, tunable) in INFO.tunables.iter().enumerate() {
            new.set_tunable(core, index, tunable.default);
        }
        new
    }

    fn into_tables(self) -> Tables<H> {
        Tables { entries: self.entries.into_slots(), queues: self.queues.into_slots() }
    }

    fn tunable(&self, index: usize) -> i64 {
        i64::try_from(self.targets_ns[domain_of_tunable(index)]).unwrap_or(i64::MAX)
    }

    fn set_tunable(&mut self, _: &mut QueueCore<H>, index: usize, value: i64) {
        self.targets_ns[domain_of_tunable(index)] = value.unsigned_abs();
    }

    fn searches_merges(&self) -> bool {
        true
    }

    /// The requests of the bio's hardware queue and domain that came last, newest first. The first that it touches decides.
    fn find_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Search {
        let context = &core.tables.contexts[bio.context.slot];
        let priority = context.effective_priority();
        let queue = &self.queues[self.queue_for(core, context.cpu)];
        let staged = &queue.staged[Domain::of(bio.op)];
        let mut at = staged.tail();
        for _ in 0..MERGE_TRIES {
            if at == NIL {
                break;
            }
            let request = &core.tables.requests[at];
            if core.is_mergeable(at) && request.op == bio.op && request.priority == priority {
                if request.end() == bio.sector {
                    return Search::Found(at, Merge::Back);
                }
                if bio.end() == request.sector {
                    return Search::Found(at, Merge::Front);
                }
            }
            at = staged.prev(&core.tables.arrivals, at);
        }
        Search::Nothing
    }

    fn former(&self, _: &QueueCore<H>, _: Slot) -> Slot {
        NIL
    }

    fn latter(&self, _: &QueueCore<H>, _: Slot) -> Slot {
        NIL
    }

    fn join(&mut self, _: &mut QueueCore<H>, _: Slot, _: Slot) {
        debug_assert!(false, "queued requests are never joined: no search for merges but Kyber's own finds them");
    }

    fn depth_limit(&self, _: &QueueCore<H>, nr_requests: u32, bio: &Bio) -> u32 {
        if bio.op.is_sync(bio.flags) || bio.flags.has(Flags::FUA) {
            return nr_requests;
        }
        let limit = u64::from(nr_requests).saturating_mul(u64::from(ASYNC_PERCENT)) / 100;
        u32::try_from(limit).unwrap_or(nr_requests)
    }

    fn allocate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.entries[request] = Entry::default();
        core.tables.requests[request].owner = NIL;
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let domain = domain_of(core, request);
        let cpu = core.context_of(request).cpu;
        let slot = self.queue_for(core, cpu);
        core.tables.requests[request].owner = slot;
        let queue = &mut self.queues[slot];
        queue.staged[domain].push_back(&mut core.tables.arrivals, request);
        queue.queued = queue.queued.saturating_add(1);
        if queue.queued == 1 {
            self.busy.push_back(&mut self.queues, slot);
            self.busy_count = self.busy_count.saturating_add(1);
        }
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        if force {
            return self.drain(core);
        }
        let moved = match core.hw_queue {
            Some(number) => {
                let queue = self.queue_for(core, number);
                self.dispatch_from(core, queue)
            }
            None => self.dispatch_in_rotation(core),
        };
        u32::from(moved)
    }

    fn activate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.entries[request].started_ns = core.ktime_ns();
    }

    fn deactivate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        // It goes to the driver again without a token, as it is at the head of the dispatch list.
        self.put_token(core, request);
    }

    fn complete(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let domain = domain_of(core, request);
        if domain == Domain::Other {
            return;
        }
        let now_ns = core.clock.now_ns();
        let total_ns = now_ns.saturating_sub(core.tables.requests[request].submitted_ns);
        let device_ns = core.ktime_ns().saturating_sub(self.entries[request].started_ns);
        self.latencies.add(domain, self.targets_ns[domain], total_ns, device_ns);
        if core.timers.armed_for(Timer::Adjust).is_none() {
            let expires = core.ticks().saturating_add(core.clock.ticks_of_ms(ADJUST_MS));
            core.arm_at_tick(Timer::Adjust, expires);
        }
    }

    fn free(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.put_token(core, request);
        core.tables.requests[request].owner = NIL;
    }

    fn is_empty(&self) -> bool {
        self.busy_count == 0
    }

    /// New depths, from the latencies of the last tenth of a second or more.
    fn timer(&mut self, core: &mut QueueCore<H>, _: Timer) {
        let window = core.clock.ticks_of_ms(latency::WINDOW_MS);
        let tokens = &mut self.tokens;
        self.latencies.evaluate(core.clock.ticks(), window, |change| {
            let tokens = &mut tokens[change.domain];
            let depth = tokens.depth().saturating_mul(change.quarters) / 4;
            let depth = depth.clamp(1, change.domain.depth_max());
            if depth != tokens.depth() {
                tokens.resize(depth);
                core.note(|_| Note::TokenDepth { domain: change.domain as u8, depth });
            }
        });
    }
}

impl<H: HostTypes> Kyber<H> {
    /// Takes a request for the driver from whichever hardware queue has one: they take turns.
    fn dispatch_in_rotation(&mut self, core: &mut QueueCore<H>) -> bool {
        for _ in 0..self.busy_count {
            let queue = self.busy.pop_front(&mut self.queues);
            self.busy.push_back(&mut self.queues, queue);
            if self.dispatch_from(core, queue) {
                return true;
            }
        }
        false
    }

    /// Takes a request from a hardware queue: of the domain whose turn it is, for as long as a batch lasts, else of the next one that has
    /// both a request and a token.
    fn dispatch_from(&mut self, core: &mut QueueCore<H>, slot: Slot) -> bool {
        let HwQueue { queued, mut domain, batching, .. } = self.queues[slot];
        if queued == 0 {
            return false;
        }
        if batching < domain.batch() && self.take(core, slot, domain) {
            return true;
        }
        self.queues[slot].batching = 0;
        for _ in Domain::ALL {
            domain = domain.next();
            self.queues[slot].domain = domain;
            if self.take(core, slot, domain) {
                return true;
            }
        }
        false
    }

    /// Takes the oldest request of a domain, if it has one and there is a token for it.
    fn take(&mut self, core: &mut QueueCore<H>, slot: Slot, domain: Domain) -> bool {
        let queue = &mut self.queues[slot];
        if queue.flushed[domain].is_empty() && queue.staged[domain].is_empty() {
            return false;
        }
        let Some(token) = self.tokens[domain].take() else {
            self.waiting[domain] = true;
            return false;
        };
        if queue.flushed[domain].is_empty() {
            queue.flushed[domain] = core::mem::take(&mut queue.staged[domain]);
        }
        let request = queue.flushed[domain].pop_front(&mut core.tables.arrivals);
        queue.batching = queue.batching.saturating_add(1);
        self.entries[request].token = token;
        self.move_to_dispatch(core, slot, request);
        true
    }

    /// Moves everything, without tokens.
    fn drain(&mut self, core: &mut QueueCore<H>) -> u32 {
        let mut moved = 0u32;
        while !self.busy.is_empty() {
            let slot = self.busy.head();
            let queue = &mut self.queues[slot];
            let mut request = NIL;
            for list in queue.flushed.0.iter_mut().chain(&mut queue.staged.0) {
                if request == NIL {
                    request = list.pop_front(&mut core.tables.arrivals);
                }
            }
            debug_assert!(request != NIL, "a busy queue has a request");
            self.move_to_dispatch(core, slot, request);
            moved = moved.saturating_add(1);
        }
        moved
    }

    /// Sends on a request that was taken off its list.
    fn move_to_dispatch(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot) {
        let queue = &mut self.queues[slot];
        queue.queued = queue.queued.saturating_sub(1);
        if queue.queued == 0 {
            self.busy.remove(&mut self.queues, slot);
            self.busy_count = self.busy_count.saturating_sub(1);
        }
        core.dispatch_append(request);
    }

    /// A request gives its token back, if it has one; who waits for it has the queue run.
    fn put_token(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let token = core::mem::replace(&mut self.entries[request].token, NIL);
        if token == NIL {
            return;
        }
        let domain = domain_of(core, request);
        self.tokens[domain].put(token);
        if core::mem::take(&mut self.waiting[domain]) {
            core.kick();
        }
    }

    /// The hardware queue of this number, or of a CPU.
    fn queue_for(&self, core: &QueueCore<H>, number: u16) -> Slot {
        let number = number.checked_rem(core.hw_queues).unwrap_or(0);
        u32::from(number).checked_rem(self.queue_count).unwrap_or(0)
    }
}

fn domain_of<H: HostTypes>(core: &QueueCore<H>, request: Slot) -> Domain {
    Domain::of(core.tables.requests[request].op)
}

fn domain_of_tunable(index: usize) -> Domain {
    if index == 0 { Domain::Read } else { Domain::Write }
}
