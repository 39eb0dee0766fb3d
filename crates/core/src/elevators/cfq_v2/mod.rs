//! The second CFQ: "cfq-v2", as in Linux 2.6.10 to 2.6.12.
//!
//! The idea: as in the first CFQ, the driver gets one request of every queue in each pass. But a
//! queue exists as long as its context, so that passes can visit first the queues with the least
//! service in the last second; and the grouping of contexts into queues can be chosen. Within a
//! queue the request nearest to the head goes first (a short distance behind the head counts
//! double), unless another one has waited too long.
//!
//! Service is the time that requests take. Once four requests were in the device at a time, which
//! then has its own queue, service is their number.
//!
//! The state is in [`CfqV2`]; `queue` has the queues and the order of their turns. A pass moves
//! requests to the driver's list, which the elevator keeps itself; from there they go to the block
//! layer one by one.
//!
//! No decisions of a kernel were recorded for this elevator: it follows the specification only. Two
//! inputs do not exist here and are left out: processes that reclaim memory may always allocate,
//! and the number of requests that a process woken for one may take.

mod queue;
mod tunables;

use crate::bio::{Bio, Op};
use crate::collections::{Arena, HashChains, List, NIL, Node, Slot};
use crate::collections::{Count, tree::Range};
use crate::elevator::capacity::Capacity;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker, TableOf, buckets};
use crate::elevator::{Elevator, MakeTables, MayQueue, Merge};
use crate::elevators::shared::chooser::Chooser;
use crate::elevators::shared::driver_list::DriverList;
use crate::elevators::shared::sorted_fifo;
use crate::event::Note;

use queue::{ByKey, Key, Queue, Turns};
pub(crate) use tunables::INFO;
use tunables::NR_REQUESTS;

/// The index of async requests.
const ASYNC: usize = 0;
/// The index of sync requests.
const SYNC: usize = 1;
/// The index in a context's history of its queue, which is common to both kinds.
const OWN: usize = 0;
/// The limit of allocated requests of a queue in one direction.
const MAX_QUEUED: u32 = NR_REQUESTS / 16;
/// The period over which service counts, in ms.
const SERVICE_PERIOD_MS: u64 = 1000;
/// The number of in-flight requests from which the device counts as having its own queue.
const TAGGED_DEPTH: u32 = 4;

/// The tables of the elevator.
pub(crate) struct Tables<H: HostTypes> {
    queues: H::Slots<Queue>,
    /// One node per queue, for the order of turns.
    turns: H::Slots<Node>,
    buckets: H::Slots<u32>,
    /// One entry per request, for the driver's list.
    driver_nodes: H::Slots<Node<Range>>,
}

/// The state of the elevator.
pub(crate) struct CfqV2<H: HostTypes> {
    queues: TableOf<H, Queue>,
    free_queues: List<ByKey>,
    by_key: HashChains<H::Slots<u32>>,
    turns: Turns<H>,
    driver_list: DriverList<H>,
    /// The assumed position of the head in comparisons.
    last_sector: u64,
    in_driver: u32,
    /// Whether the device was seen to have its own queue.
    tagged: bool,
    /// The tunables as stored, in the order of their list.
    stored: [i64; 10],
    quantum: u32,
    queued: u32,
    /// By the kind after which they are named: async, sync.
    fifo_expire: [u64; 2],
    fifo_batch_expire: u64,
    by_group: bool,
    find_best: bool,
    chooser: Chooser,
    swapped_fifo: bool,
}

impl<H: HostTypes> MakeTables<H> for CfqV2<H> {
    fn make_tables<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Tables<H> {
        let queues = capacity.queues();
        Tables {
            queues: maker.table(queues),
            turns: maker.table(queues),
            buckets: maker.table(buckets(capacity.contexts)),
            driver_nodes: maker.table(capacity.request_slots()),
        }
    }
}

impl<H: HostTypes> Elevator<H> for CfqV2<H> {
    type Tables = Tables<H>;

    fn new(core: &mut QueueCore<H>, tables: Tables<H>) -> Self {
        let mut new = CfqV2 {
            queues: Arena::new(tables.queues),
            free_queues: List::default(),
            by_key: HashChains::new(tables.buckets),
            turns: Turns::new(Arena::new(tables.turns)),
            driver_list: DriverList::new(Arena::new(tables.driver_nodes)),
            last_sector: 0,
            in_driver: 0,
            tagged: false,
            stored: [0; 10],
            quantum: 0,
            queued: 0,
            fifo_expire: [0; 2],
            fifo_batch_expire: 0,
            by_group: false,
            find_best: false,
            // In this kernel, metadata and sync requests did not precede others.
            chooser: Chooser { back_max: 0, back_penalty: 0, marks_count: false },
            swapped_fifo: false,
        };
        for slot in 0..new.queues.capacity().min(new.turns.capacity()) {
            new.free_queues.push_back(&mut new.queues, slot);
        }
        for (index, tunable) in INFO.tunables.iter().enumerate() {
            // Defaults are rounded down to ticks, but to at least one; values stored later are
            // rounded up.
            new.store(index, tunable.default, core.clock.ticks_of_ms(tunable.default.unsigned_abs()).max(1));
        }
        new
    }

    fn into_tables(self) -> Tables<H> {
        let (queues, driver_nodes) = (self.queues.into_slots(), self.driver_list.into_nodes());
        Tables { queues, turns: self.turns.into_nodes(), buckets: self.by_key.into_slots(), driver_nodes }
    }

    fn tunable(&self, index: usize) -> i64 {
        self.stored.get(index).copied().unwrap_or(0)
    }

    fn set_tunable(&mut self, core: &mut QueueCore<H>, index: usize, value: i64) {
        self.store(index, value, core.clock.ticks_of_stored_ms(value.unsigned_abs()));
    }

    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        let slot = core.tables.contexts[bio.context.slot].history.queues[OWN];
        if slot == NIL { NIL } else { self.queues[slot].tree.find(&core.tables.nodes, bio.end()) }
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        let owner = core.tables.requests[request].owner;
        if merge == Merge::Back || owner == NIL {
            return;
        }
        self.leave_next(core, request);
        self.queues[owner].tree.remove(&mut core.tables.nodes, request);
        self.sort(core, owner, request);
    }

    fn settled_after(&self, request: Slot) -> Slot {
        self.driver_list.after(request)
    }

    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        let (owner, kind) = (core.tables.requests[request].owner, kind_of(core, request));
        let older = core.tables.arrivals[absorbed].deadline;
        if older < core.tables.arrivals[request].deadline && kind == kind_of(core, absorbed) {
            // Its age is that of the older of the two.
            core.tables.arrivals[request].deadline = older;
            let fifo = &mut self.queues[owner].fifos[kind];
            fifo.remove(&mut core.tables.arrivals, request);
            fifo.insert_after(&mut core.tables.arrivals, absorbed, request);
        }
        self.remove(core, absorbed);
    }

    fn may_queue(&mut self, core: &mut QueueCore<H>, context: Slot, op: Op) -> MayQueue {
        let own = core.tables.contexts[context].history.queues[OWN];
        let slot = if own == NIL { self.find_queue(self.key_of(core, context)) } else { own };
        let allocated = self.queues[slot].allocated[op.direction()];
        // A refused process has requests allocated. It sleeps until a request of the same direction
        // completes.
        if slot != NIL && allocated >= MAX_QUEUED {
            return MayQueue::No;
        }
        if slot == NIL || allocated < self.queued {
            return MayQueue::Must;
        }
        let share = NR_REQUESTS.checked_div(self.turns.count).unwrap_or(MAX_QUEUED);
        let limit = if share < self.queued { self.queued } else { share.min(MAX_QUEUED) };
        if allocated >= limit { MayQueue::No } else { MayQueue::May }
    }

    fn allocate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let (context, op) = (core.tables.requests[request].context, core.tables.requests[request].op);
        let slot = self.queue_of(core, context);
        let queue = &mut self.queues[slot];
        queue.references.increment();
        let allocated = &mut queue.allocated[op.direction()];
        allocated.increment();
        core.tables.requests[request].owner = slot;
    }

    fn free(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let entry = &mut core.tables.requests[request];
        let owner = core::mem::replace(&mut entry.owner, NIL);
        let allocated = &mut self.queues[owner].allocated[entry.op.direction()];
        allocated.decrement();
        self.unreference(owner);
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let owner = core.tables.requests[request].owner;
        if owner == NIL {
            // The storage has no room for another queue: serve the request in order of arrival.
            return self.driver_list.append(core, request);
        }
        self.sort(core, owner, request);
        core.tables.arrivals[request].deadline = core.ticks();
        let fifo = &mut self.queues[owner].fifos[kind_of(core, request)];
        fifo.push_back(&mut core.tables.arrivals, request);
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        if force {
            while self.turns.count > 0 {
                self.pass(core, false);
            }
            return self.driver_list.pass_all(core);
        }
        if self.driver_list.is_empty() {
            let mut moved = self.pass(core, true);
            while moved < self.quantum && self.turns.count > 0 {
                moved = moved.saturating_add(self.pass(core, false));
            }
        }
        self.driver_list.pass_first(core)
    }

    fn activate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let (owner, now) = (core.tables.requests[request].owner, core.ticks());
        // It is on no list by arrival any more: the field now holds the start of its service.
        core.tables.arrivals[request].deadline = now;
        if self.tagged {
            self.charge(core, owner, 1, 10);
        } else {
            self.queues[owner].service_start.get_or_insert(now);
        }
        self.in_driver.increment();
        if self.in_driver >= TAGGED_DEPTH {
            self.tagged = true;
        }
    }

    fn deactivate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.in_driver.decrement();
        if self.tagged {
            let owner = core.tables.requests[request].owner;
            let queue = &mut self.queues[owner];
            queue.service_used = queue.service_used.saturating_sub(1);
            self.turns.service_changed(&self.queues, owner);
        }
    }

    fn complete(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let owner = core.tables.requests[request].owner;
        self.in_driver.decrement();
        if owner == NIL {
            return;
        }
        let queue = &mut self.queues[owner];
        queue.in_flight.decrement();
        if !self.tagged {
            let took = core.ticks().saturating_sub(core.tables.arrivals[request].deadline);
            self.charge(core, owner, took, 8);
        }
    }

    fn is_empty(&self) -> bool {
        self.turns.count == 0 && self.driver_list.is_empty()
    }

    fn exit(&mut self, core: &mut QueueCore<H>, context: Slot) {
        self.leave_queue(core, context);
    }

    fn group_changed(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let slot = core.tables.contexts[context].history.queues[OWN];
        if slot != NIL && matches!(self.queues[slot].key, Key::Group(_)) {
            self.leave_queue(core, context);
        }
    }

    fn release_group(&mut self, _: &mut QueueCore<H>, group: Slot) -> bool {
        // Requests may be left in its queue, and, after a change of the key type, contexts of
        // other groups. It continues under a key that is never looked up.
        let slot = self.find_queue(Key::Group(group));
        if slot != NIL {
            self.set_key(slot, Key::Group(NIL));
        }
        true
    }
}

impl<H: HostTypes> CfqV2<H> {
    /// Visits every queue once, the least served first, and takes a request of each; in the first
    /// round, queues with in-flight requests are skipped. Returns the number of moved requests.
    fn pass(&mut self, core: &mut QueueCore<H>, first: bool) -> u32 {
        let (mut moved, mut at) = (0u32, self.turns.first());
        while at != NIL {
            let next = self.turns.next(at);
            if !first || self.queues[at].in_flight == 0 {
                let request = self.choose(core, at);
                self.last_sector = core.tables.requests[request].end();
                self.move_to_driver(core, request);
                moved.increment();
            }
            at = next;
        }
        moved
    }

    /// The next request of a queue: one that has waited too long, async ones first; otherwise the
    /// nearest.
    fn choose(&mut self, core: &mut QueueCore<H>, slot: Slot) -> Slot {
        let now = core.ticks();
        let queue = &mut self.queues[slot];
        debug_assert!(!queue.tree.is_empty() && queue.next != NIL);
        if now >= queue.last_fifo_expire.saturating_add(self.fifo_batch_expire) {
            let [for_async, for_sync] = self.fifo_expire;
            let limits = if self.swapped_fifo { [for_sync, for_async] } else { [for_async, for_sync] };
            for (fifo, limit) in queue.fifos.iter().zip(limits) {
                let oldest = fifo.head();
                if oldest != NIL && now > core.tables.arrivals[oldest].deadline.saturating_add(limit) {
                    queue.last_fifo_expire = now;
                    core.note(|core| Note::Overdue { token: core.tables.requests[oldest].token });
                    return oldest;
                }
            }
        }
        if self.find_best { queue.next } else { queue.tree.first() }
    }

    /// Moves a request from its queue to the driver's list: behind the last one below it, or behind
    /// the last one above the head if it is below the head.
    fn move_to_driver(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let owner = core.tables.requests[request].owner;
        self.remove(core, request);
        let queue = &mut self.queues[owner];
        queue.in_flight.increment();
        let (sector, head) = (core.tables.requests[request].sector, self.last_sector);
        let wraps = sector < head;
        let after = self.driver_list.last_matching(|range| range.least < sector || (wraps && range.greatest > head));
        if after != NIL && core.tables.requests[after].sector >= sector {
            self.last_sector = sector;
        }
        self.driver_list.insert_after(core, after, request);
    }

    /// Sorts a request into its queue and files the queue if it was empty.
    fn sort(&mut self, core: &mut QueueCore<H>, owner: Slot, request: Slot) {
        let sector = core.tables.requests[request].sector;
        self.queues[owner].tree.insert(&mut core.tables.nodes, request, sector);
        sorted_fifo::move_alias(self, core, request, |cfq| &mut cfq.queues[owner].tree, Self::move_to_driver);
        let now = core.ticks();
        let queue = &mut self.queues[owner];
        if !queue.filed {
            if queue.period_is_over(now, core.clock.ticks_of_ms(SERVICE_PERIOD_MS)) {
                queue.service_used /= 8;
            }
            self.turns.file(&mut self.queues, owner);
        }
        let next = self.queues[owner].next;
        self.queues[owner].next = self.chooser.best(core, next, request, self.last_sector);
    }

    /// Removes a request from its queue, and the queue from the passes after its last request.
    fn remove(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.leave_next(core, request);
        let owner = core.tables.requests[request].owner;
        let queue = &mut self.queues[owner];
        queue.tree.remove(&mut core.tables.nodes, request);
        queue.fifos[kind_of(core, request)].remove(&mut core.tables.arrivals, request);
        if queue.tree.is_empty() {
            self.turns.unfile(&mut self.queues, owner);
        }
    }

    /// Replaces a leaving next request by the nearer of its neighbours.
    fn leave_next(&mut self, core: &QueueCore<H>, request: Slot) {
        let owner = core.tables.requests[request].owner;
        let queue = &self.queues[owner];
        if queue.next == request {
            let next = self.chooser.neighbour(core, &queue.tree, request, self.last_sector);
            self.queues[owner].next = next;
        }
    }

    /// Charges service to a queue; older service counts less from second to second.
    fn charge(&mut self, core: &mut QueueCore<H>, slot: Slot, amount: u64, divisor: u64) {
        let (now, period) = (core.ticks(), core.clock.ticks_of_ms(SERVICE_PERIOD_MS));
        let queue = &mut self.queues[slot];
        if queue.period_is_over(now, period) {
            queue.service_used /= divisor.max(1);
            queue.service_start = Some(now);
        }
        queue.service_start.get_or_insert(now);
        queue.service_used = queue.service_used.saturating_add(amount);
        let name = queue.name();
        self.turns.service_changed(&self.queues, slot);
        core.note(|_| Note::Charge { queue: name, amount });
    }

    /// The queue of a context's request, found or created. [`NIL`]: no room.
    fn queue_of(&mut self, core: &mut QueueCore<H>, context: Slot) -> Slot {
        let key = self.key_of(core, context);
        let own = core.tables.contexts[context].history.queues[OWN];
        if own != NIL && self.queues[own].key.is_same_type(key) {
            return own;
        }
        let mut slot = self.find_queue(key);
        if slot == NIL && own != NIL {
            // The key type was changed: the queue continues under its new key.
            self.set_key(own, key);
            return own;
        }
        if slot == NIL {
            slot = self.free_queues.pop_front(&mut self.queues);
            if slot == NIL {
                return NIL;
            }
            self.queues[slot] = Queue { key, ..Queue::default() };
            self.by_key.insert::<ByKey, _, _>(&mut self.queues, key.hash(), slot);
        }
        self.queues[slot].references.increment();
        self.leave_queue(core, context);
        core.tables.contexts[context].history.queues[OWN] = slot;
        slot
    }

    fn key_of(&self, core: &QueueCore<H>, context: Slot) -> Key {
        let context = &core.tables.contexts[context];
        if self.by_group { Key::Group(context.group) } else { Key::Process(context.pid) }
    }

    fn set_key(&mut self, slot: Slot, key: Key) {
        let old = core::mem::replace(&mut self.queues[slot].key, key);
        self.by_key.remove::<ByKey, _, _>(&mut self.queues, old.hash(), slot);
        self.by_key.insert::<ByKey, _, _>(&mut self.queues, key.hash(), slot);
    }

    fn find_queue(&self, key: Key) -> Slot {
        let mut at = self.by_key.first(key.hash());
        while at != NIL && self.queues[at].key != key {
            at = self.queues[at].by_key.next;
        }
        at
    }

    fn leave_queue(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let slot = core::mem::replace(&mut core.tables.contexts[context].history.queues[OWN], NIL);
        self.unreference(slot);
    }

    fn unreference(&mut self, slot: Slot) {
        if slot == NIL {
            return;
        }
        let queue = &mut self.queues[slot];
        queue.references.decrement();
        if queue.references == 0 {
            debug_assert!(queue.tree.is_empty() && queue.in_flight == 0);
            let key = queue.key;
            self.by_key.remove::<ByKey, _, _>(&mut self.queues, key.hash(), slot);
            self.free_queues.push_front(&mut self.queues, slot);
        }
    }

    /// Stores a tunable; `ticks` is its conversion if it is a time in ms.
    fn store(&mut self, index: usize, value: i64, ticks: u64) {
        if let Some(stored) = self.stored.get_mut(index) {
            *stored = value;
        }
        let count = value.unsigned_abs();
        match index {
            0 => self.quantum = count as u32,
            1 => self.queued = count as u32,
            2 => self.fifo_expire[SYNC] = ticks,
            3 => self.fifo_expire[ASYNC] = ticks,
            4 => self.fifo_batch_expire = ticks,
            5 => self.by_group = value != 0,
            6 => self.find_best = value != 0,
            // KiB to sectors.
            7 => self.chooser.back_max = count.saturating_mul(2),
            8 => self.chooser.back_penalty = count,
            _ => self.swapped_fifo = value != 0,
        }
    }
}

fn kind_of<H: HostTypes>(core: &QueueCore<H>, request: Slot) -> usize {
    if core.tables.requests[request].is_sync() { SYNC } else { ASYNC }
}
