//! Kyber: latency by admission, as in Linux 6.1 (in the kernel since 4.12; this form since 4.20).
//!
//! The idea: a fast device needs no external order, but its latency grows with the number of
//! requests in it. So every kind of request (reads, writes, discards, others: a *domain*) has
//! tokens and needs one in the device. Ten times a second the measured latencies are compared with
//! a target. While the device is slow for some domain, domains that meet their target lose tokens,
//! and those that miss it gain some.
//!
//! The state: for each hardware queue, lists of waiting requests by domain in order of arrival, and
//! the domain whose turn it is; for all hardware queues together, the tokens (`tokens`) and the
//! latencies (`latency`). Position and priority have no effect, and the device is never kept idle.
//!
//! The kernel keeps recent submissions in a list per CPU and moves those of all CPUs of a hardware
//! queue to its list when that is empty. Here there is one list per hardware queue; with one CPU
//! for each, the usual setup of fast devices, the result is the same. With more than 256 hardware
//! queues, or more than the storage has requests, some share their lists.

mod domain;
mod latency;
mod tokens;

use crate::bio::{Bio, Flags};
use crate::clock::Timer;
use crate::collections::{Arena, Count, Link, LinkOf, List, NIL, Slot};
use crate::elevator::capacity::Capacity;
use crate::elevator::info::Info;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker, TableOf};
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevator::{Elevator, MakeTables, Merge, Search};
use crate::event::Note;
use crate::layer::BlockLayer;
use crate::request::Arrivals;

use domain::{Domain, PerDomain};
use latency::Latencies;
use tokens::Tokens;

/// The maximum delay from a completion to the evaluation of latencies, in ms.
const ADJUST_MS: u64 = 100;
/// The target latency of discards, in ns; it is not tunable.
const DISCARD_TARGET_NS: u64 = 5_000_000_000;
/// The percentage of tags that async requests may use.
const ASYNC_PERCENT: u32 = 75;
/// The number of latest requests that are considered for a merge.
const MERGE_TRIES: u32 = 8;
/// The maximum number of separate lists of hardware queues; there are also not more than requests.
const HW_QUEUES_MAX: u32 = 256;

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "kyber",
    aliases: &[],
    kernel: "6.1 (in the kernel since 4.12; this form since 4.20)",
    in_linux: "from 4.12",
    headline: "Bounds latency by limiting the device's queue",
    idea: "No order by position and no fairness among processes. Reads, writes and discards each \
           have a maximum of requests in the device, which follows the measured latencies relative \
           to a target.",
    suits: "Flash with many hardware queues, where reads must not wait for bursts of writes. On a \
            rotational disk it does not reduce seeks.",
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
            meaning: "The target latency of reads.",
            trade_off: "Lower holds writes back sooner while reads are slow. A target that the \
                        device cannot meet has no benefit.",
        },
        Tunable {
            name: "write_lat_nsec",
            unit: Unit::Nanoseconds,
            default: 10_000_000,
            min: 0,
            max: i64::MAX,
            meaning: "The target latency of writes.",
            trade_off: "Lower holds reads back sooner while writes are slow.",
        },
    ],
};

/// Kyber's state of a request.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// The time at which the driver took it, in ns since boot.
    started_ns: u64,
    /// The number of its token, or [`NIL`].
    token: u32,
}

impl Default for Entry {
    fn default() -> Self {
        Entry { started_ns: 0, token: NIL }
    }
}

/// The waiting requests of a hardware queue.
#[derive(Clone, Copy, Default)]
pub(crate) struct HwQueue {
    /// Requests that can still be merged with bios.
    staged: PerDomain<List<Arrivals>>,
    /// Requests moved here when one was taken from an empty list of the domain; excluded from
    /// merges.
    flushed: PerDomain<List<Arrivals>>,
    /// Requests in these lists.
    queued: u32,
    /// The domain whose turn it is.
    domain: Domain,
    /// Requests taken in this turn.
    batching: u32,
    /// The link in the list of hardware queues with requests.
    busy: Link,
}

/// The list of hardware queues with requests.
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

/// The tables of the elevator.
pub(crate) struct Tables<H: HostTypes> {
    entries: H::Slots<Entry>,
    queues: H::Slots<HwQueue>,
}

/// The state of the elevator.
pub(crate) struct Kyber<H: HostTypes> {
    entries: TableOf<H, Entry>,
    queues: TableOf<H, HwQueue>,
    /// The number of hardware queues in use.
    queue_count: u32,
    /// The hardware queues with requests; the next one first.
    busy: List<Busy>,
    busy_count: u32,
    tokens: PerDomain<Tokens>,
    /// Whether a request waits for a token of the domain.
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

    /// Searches the latest requests of the bio's hardware queue and domain, newest first. The first
    /// adjacent one decides.
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
        debug_assert!(false, "only Kyber's own search finds merges");
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
        let cpu = if core.hw_queues > 1 { core.context_of(request).cpu } else { 0 };
        let slot = self.queue_for(core, cpu);
        core.tables.requests[request].owner = slot;
        let queue = &mut self.queues[slot];
        queue.staged[domain].push_back(&mut core.tables.arrivals, request);
        queue.queued.increment();
        if queue.queued == 1 {
            self.busy.push_back(&mut self.queues, slot);
            self.busy_count.increment();
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
        // It is issued again without a token, as it is at the head of the dispatch list.
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

    /// Computes new depths from the latencies of the last tenth of a second or more.
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
    /// Takes a request from the hardware queues in rotation.
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

    /// Takes a request from a hardware queue: of the current domain until its batch ends, otherwise
    /// of the next domain with both a request and a token.
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

    /// Takes the oldest request of a domain, if there is one and a token for it.
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
        queue.batching.increment();
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
            moved.increment();
        }
        moved
    }

    /// Moves a request to the dispatch list after its removal from its list.
    fn move_to_dispatch(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot) {
        let queue = &mut self.queues[slot];
        queue.queued.decrement();
        if queue.queued == 0 {
            self.busy.remove(&mut self.queues, slot);
            self.busy_count.decrement();
        }
        core.dispatch_append(request);
    }

    /// Returns a request's token, if it has one, and schedules a run if a request waits for it.
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

    /// The hardware queue with this number, or of a CPU.
    #[inline]
    fn queue_for(&self, core: &QueueCore<H>, number: u16) -> Slot {
        if core.hw_queues <= 1 {
            return 0;
        }
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
