//! BFQ in its first form: "bfq-v0", the patch that was posted for discussion in 2008, in Linux 2.6.29 and without control groups.
//!
//! The idea: give each process the disk to itself until it has used up a *budget* of sectors, and let B-WF2Q+ decide who is next by
//! what each has really got. Then shares follow priorities whatever the budgets are, and the budgets may follow throughput:
//! they grow while they are used up, and shrink while a process keeps the disk waiting. A process that is too slow to use its budget up
//! in time pays for all of it, so that slow ones share time and fast ones bandwidth.
//!
//! The state is in [`BfqV0`]; the engine in `wf2q` has the queues that wait, `slot` who has the disk and for how long, this file the
//! way of a request: insert, dispatch, complete.

mod queue;
mod slot;
mod tunables;

use super::async_queues::AsyncQueues;
use super::chooser::Chooser;
use super::wf2q::{self, Engine, IDLE, ROOT_LEVEL, class_index};
use super::{Elevator, Merge};
use crate::bio::{Bio, Flags, Op};
use crate::clock::Timer;
use crate::event::{Expiry, Note};
use crate::parts::{Arena, List, NIL, Slot};
use crate::priority::{LEVELS, Priority};
use crate::queue::block::{Block, Of};
use crate::storage::{Capacity, Home, Maker};

use queue::{Queue, Spare};
use slot::DEFAULT_MAX_BUDGET;
pub(crate) use tunables::INFO;
use tunables::Tunables;

/// Index of a context's async queue.
const ASYNC: usize = 0;
/// Index of its sync queue.
const SYNC: usize = 1;
/// A context's mark: its priority has changed since its last request.
const PRIORITY_CHANGED: u8 = 1;
/// With more than this many requests in the device at once, the device is taken to queue by itself.
const HW_QUEUE_DEPTH: u32 = 4;
/// It is judged only while there are as many requests.
const HW_QUEUE_THRESHOLD: u32 = 4;
/// The number of moments over which it is judged.
const HW_QUEUE_SAMPLES: u32 = 32;
/// A queue that is alone may have so many times its quantum in flight.
const ALONE_QUANTUMS: u32 = 4;

/// Its tables.
pub(crate) struct Tables<H: Home> {
    queues: H::Slots<Queue>,
    engine: wf2q::Tables<H>,
}

/// The state.
pub(crate) struct BfqV0<H: Home> {
    queues: Of<H, Queue>,
    engine: Engine<H>,
    free_queues: List<Spare>,
    /// Queues that nobody but the engine knows any more: their past service still counts.
    remembered: List<Spare>,
    async_queues: AsyncQueues,
    /// Queues that have requests, or the disk.
    busy_queues: u32,
    /// The queue that has the disk, or [`NIL`].
    active: Slot,
    /// Requests in the queues.
    queued: u32,
    /// Requests that the driver has.
    in_driver: u32,
    /// Requests of sync queues on the dispatch list or in the device.
    sync_in_flight: u32,
    /// The end of the request that the driver took last.
    last_position: u64,
    /// The greatest budget, in sectors.
    max_budget: u64,
    /// The highest rate seen, in sectors a microsecond times 2^16.
    rate: u64,
    /// Slots that it was seen in, up to 32.
    rate_samples: u32,
    /// The device queues by itself, as far as is known.
    hw_tag: bool,
    hw_tag_samples: u32,
    most_in_driver: u32,
    /// Since when the disk is kept idle, in ns since boot.
    idle_since_ns: u64,
    tunables: Tunables,
}

impl<H: Home> Elevator<H> for BfqV0<H> {
    type Tables = Tables<H>;

    fn make_tables<M: Maker<H>>(capacity: Capacity, maker: &mut M) -> Tables<H> {
        // A sync queue a process, as many that are only remembered, and the async ones.
        let queues = capacity.contexts.saturating_mul(2).saturating_add(AsyncQueues::COUNT);
        Tables { queues: maker.table(queues), engine: Engine::<H>::make_tables(queues, 1, maker) }
    }

    fn new(block: &mut Block<H>, tables: Tables<H>) -> Self {
        let rules = wf2q::Rules { exact_search: false, keeps_time: false, idle_guarantee: None };
        let engine = Engine::new(tables.engine, rules, block.ticks());
        let mut queues: Of<H, Queue> = Arena::new(tables.queues);
        let mut free_queues = List::default();
        for slot in 0..queues.capacity().min(engine.queue_capacity()) {
            free_queues.push_back(&mut queues, slot);
        }
        BfqV0 {
            queues,
            engine,
            free_queues,
            remembered: List::default(),
            async_queues: AsyncQueues::default(),
            busy_queues: 0,
            active: NIL,
            queued: 0,
            in_driver: 0,
            sync_in_flight: 0,
            last_position: 0,
            max_budget: DEFAULT_MAX_BUDGET,
            rate: 0,
            rate_samples: 0,
            hw_tag: true,
            hw_tag_samples: 0,
            most_in_driver: 0,
            idle_since_ns: 0,
            tunables: Tunables::defaults(&block.clock),
        }
    }

    fn into_tables(self) -> Tables<H> {
        Tables { queues: self.queues.into_slots(), engine: self.engine.into_tables() }
    }

    fn tunable(&self, index: usize) -> i64 {
        self.tunables.get(index)
    }

    fn set_tunable(&mut self, block: &mut Block<H>, index: usize, value: i64) {
        self.tunables.set(&block.clock, index, value);
        self.engine.rules.exact_search = self.tunables.search_fixed;
        self.engine.rules.keeps_time = self.tunables.time_fixed;
        self.set_max_budget(block);
    }

    fn allow_merge(&mut self, block: &mut Block<H>, request: Slot, bio: &Bio) -> bool {
        let sync = is_sync(bio);
        if sync && !block.table.requests[request].is_sync() {
            return false;
        }
        let queue = queue_of(block, bio.context.slot, sync);
        queue != NIL && queue == block.table.requests[request].owner
    }

    fn find_front_merge(&mut self, block: &mut Block<H>, bio: &Bio) -> Slot {
        let queue = queue_of(block, bio.context.slot, is_sync(bio));
        if queue == NIL { NIL } else { self.queues[queue].tree.find(&block.table.nodes, bio.end()) }
    }

    fn former(&self, block: &Block<H>, request: Slot) -> Slot {
        block.table.nodes[request].prev()
    }

    fn latter(&self, block: &Block<H>, request: Slot) -> Slot {
        block.table.nodes[request].next()
    }

    fn merged(&mut self, block: &mut Block<H>, request: Slot, merge: Merge) {
        let owner = block.table.requests[request].owner;
        if merge == Merge::Back || owner == NIL {
            return;
        }
        self.queues[owner].tree.remove(&mut block.table.nodes, request);
        self.queued = self.queued.saturating_sub(1);
        self.sort(block, owner, request);
    }

    fn join(&mut self, block: &mut Block<H>, request: Slot, absorbed: Slot) {
        let owner = block.table.requests[absorbed].owner;
        if owner == block.table.requests[request].owner {
            // It takes over the earlier deadline, but keeps its own place in order of arrival.
            let deadline = block.table.arrivals[absorbed].deadline.min(block.table.arrivals[request].deadline);
            block.table.arrivals[request].deadline = deadline;
        }
        self.remove(block, absorbed);
        self.free_forgotten();
    }

    fn allocate(&mut self, block: &mut Block<H>, request: Slot) {
        let (context, sync) = (block.table.requests[request].context, block.table.requests[request].is_sync());
        let now = block.ticks();
        let history = &mut block.table.contexts[context].history;
        if !history.known {
            history.known = true;
            history.last_end = now;
        }
        if history.marks & PRIORITY_CHANGED != 0 {
            history.marks &= !PRIORITY_CHANGED;
            self.read_priority(block, context);
        }
        let kind = usize::from(sync);
        if queue_of(block, context, sync) == NIL {
            let queue = if sync { self.make_sync_queue(block, context) } else { self.async_queue(block, context) };
            self.reference(queue);
            block.table.contexts[context].history.queues[kind] = queue;
        }
        let queue = queue_of(block, context, sync);
        self.reference(queue);
        block.table.requests[request].owner = queue;
    }

    fn free(&mut self, block: &mut Block<H>, request: Slot) {
        let owner = core::mem::replace(&mut block.table.requests[request].owner, NIL);
        self.unreference(owner);
    }

    fn insert(&mut self, block: &mut Block<H>, request: Slot) {
        let owner = block.table.requests[request].owner;
        if owner == NIL {
            // No room for another queue: the storage was made too small. It is served in order of arrival.
            return block.dispatch_sort(request);
        }
        self.sort(block, owner, request);
        let expire = self.tunables.shared.fifo_expire[usize::from(self.queues[owner].is_sync())];
        block.table.arrivals[request].deadline = block.ticks().saturating_add(expire);
        self.queues[owner].fifo.push_back(&mut block.table.arrivals, request);
        self.update_habits(block, owner, request);
        if owner == self.active && core::mem::take(&mut self.queues[owner].wait_request) {
            block.timers.cancel(Timer::Idle);
            let name = self.queues[owner].name();
            block.note(|_| Note::IdleHit { queue: name });
            block.run_now();
        }
        self.free_forgotten();
    }

    fn dispatch(&mut self, block: &mut Block<H>, force: bool) -> u32 {
        let mut moved = 0u32;
        if force {
            return self.drain(block);
        }
        while self.busy_queues > 0 {
            let slot = self.select(block);
            if slot == NIL || self.has_enough(slot) {
                break;
            }
            self.queues[slot].wait_request = false;
            block.timers.cancel(Timer::Idle);
            moved = moved.saturating_add(self.dispatch_batch(block, slot));
        }
        self.free_forgotten();
        moved
    }

    fn activate(&mut self, block: &mut Block<H>, request: Slot) {
        self.in_driver = self.in_driver.saturating_add(1);
        self.last_position = block.table.requests[request].end();
    }

    fn deactivate(&mut self, _: &mut Block<H>, _: Slot) {
        self.in_driver = self.in_driver.saturating_sub(1);
    }

    fn complete(&mut self, block: &mut Block<H>, request: Slot) {
        let owner = block.table.requests[request].owner;
        self.judge_device();
        self.in_driver = self.in_driver.saturating_sub(1);
        if owner != NIL {
            let queue = &mut self.queues[owner];
            queue.in_flight = queue.in_flight.saturating_sub(1);
            if queue.is_sync() {
                self.sync_in_flight = self.sync_in_flight.saturating_sub(1);
            }
        }
        if block.table.requests[request].is_sync() {
            let now = block.ticks();
            block.context_of(request).history.last_end = now;
        }
        if owner != NIL && owner == self.active {
            self.completed_in_service(block, request);
        }
        if self.in_driver == 0 {
            self.kick(block);
        }
        self.free_forgotten();
    }

    fn is_empty(&self) -> bool {
        self.queued == 0
    }

    fn exit(&mut self, block: &mut Block<H>, context: Slot) {
        let queues = core::mem::replace(&mut block.table.contexts[context].history.queues, [NIL; 2]);
        for queue in queues {
            if queue != NIL {
                if queue == self.active {
                    self.leave_disk(block);
                    self.kick(block);
                }
                self.unreference(queue);
            }
        }
        self.free_forgotten();
    }

    fn priority_changed(&mut self, block: &mut Block<H>, context: Slot) {
        let history = &mut block.table.contexts[context].history;
        if history.known {
            history.marks |= PRIORITY_CHANGED;
        }
    }

    fn timer(&mut self, block: &mut Block<H>, _: Timer) {
        self.idle_over(block);
        self.free_forgotten();
    }
}

impl<H: Home> BfqV0<H> {
    /// Sorts a request into its queue, and lets the queue wait for its turn with a budget for what is next now.
    fn sort(&mut self, block: &mut Block<H>, owner: Slot, request: Slot) {
        let sector = block.table.requests[request].sector;
        // A queue has room for one request a sector: the older one goes to the dispatch list, and counts for nothing.
        let alias = self.queues[owner].tree.find(&block.table.nodes, sector);
        if alias != NIL {
            self.move_to_dispatch(block, alias);
        }
        self.queues[owner].tree.insert(&mut block.table.nodes, request, sector);
        self.queued = self.queued.saturating_add(1);
        let next = self.queues[owner].next;
        self.queues[owner].next = self.chooser().best(block, next, request, self.last_position);
        if !self.queues[owner].busy {
            self.grant_budget(block, owner);
            self.set_busy(owner, true);
            self.engine.flat_activate(owner);
        } else if owner != self.active {
            self.grant_budget(block, owner);
            self.engine.flat_requeue(owner);
        }
    }

    /// Takes a request out of its queue, which finds what is next after it; a queue that waits for its turn does so with a budget for that,
    /// or not at all if it was the last.
    fn remove(&mut self, block: &mut Block<H>, request: Slot) {
        let owner = block.table.requests[request].owner;
        if owner == NIL {
            return;
        }
        if self.queues[owner].next == request {
            let (chooser, tree) = (self.chooser(), self.queues[owner].tree);
            self.queues[owner].next = chooser.neighbour(block, &tree, request, self.last_position);
            if self.queues[owner].next != NIL && owner != self.active {
                self.grant_budget(block, owner);
                self.engine.flat_requeue(owner);
            }
        }
        let queue = &mut self.queues[owner];
        queue.tree.remove(&mut block.table.nodes, request);
        queue.fifo.remove(&mut block.table.arrivals, request);
        self.queued = self.queued.saturating_sub(1);
        if queue.tree.is_empty() {
            if queue.busy && owner != self.active {
                self.set_busy(owner, false);
                self.engine.flat_deactivate(owner, true);
            }
        }
    }

    fn move_to_dispatch(&mut self, block: &mut Block<H>, request: Slot) {
        let owner = block.table.requests[request].owner;
        self.remove(block, request);
        let queue = &mut self.queues[owner];
        queue.in_flight = queue.in_flight.saturating_add(1);
        if queue.is_sync() {
            self.sync_in_flight = self.sync_in_flight.saturating_add(1);
        }
        block.dispatch_sort(request);
    }

    fn set_busy(&mut self, slot: Slot, busy: bool) {
        debug_assert!(self.queues[slot].busy != busy);
        self.queues[slot].busy = busy;
        self.busy_queues = if busy { self.busy_queues.saturating_add(1) } else { self.busy_queues.saturating_sub(1) };
    }

    /// Whether the queue that has the disk has as much in flight as it may, or has to let sync requests pass.
    fn has_enough(&self, slot: Slot) -> bool {
        let (queue, quantum) = (&self.queues[slot], self.quantum(slot));
        let full = queue.in_flight >= quantum
            && (self.busy_queues > 1 || queue.in_flight >= quantum.saturating_mul(ALONE_QUANTUMS));
        full || (!queue.is_sync() && self.sync_in_flight > 0)
    }

    /// How many requests are moved at a time.
    fn quantum(&self, slot: Slot) -> u32 {
        if !self.queues[slot].is_sync() {
            self.tunables.max_budget_async_rq
        } else if self.engine.entities[slot].class == IDLE {
            1
        } else {
            self.tunables.shared.quantum
        }
    }

    /// Moves up to a quantum of requests of the queue that has the disk.
    fn dispatch_batch(&mut self, block: &mut Block<H>, slot: Slot) -> u32 {
        let (mut moved, quantum) = (0u32, self.quantum(slot));
        while moved < quantum && self.queues[slot].next != NIL {
            let overdue = self.take_overdue(block, slot);
            let request = if overdue != NIL { overdue } else { self.queues[slot].next };
            let charge = self.charge_of(block, request);
            if charge > self.left(slot) {
                self.queues[slot].next = request;
                self.expire(block, Expiry::Exhausted, None);
                return moved;
            }
            self.engine.charge(slot, charge);
            self.move_to_dispatch(block, request);
            moved = moved.saturating_add(1);
        }
        let idle_class = self.engine.entities[slot].class == IDLE;
        let enough = !self.queues[slot].is_sync() && moved >= self.tunables.max_budget_async_rq;
        if self.busy_queues > 1 && (idle_class || enough) {
            self.expire(block, Expiry::Exhausted, None);
        }
        moved
    }

    /// The oldest request of a queue, if it is overdue as the queue's slot begins.
    fn take_overdue(&mut self, block: &mut Block<H>, slot: Slot) -> Slot {
        let queue = &mut self.queues[slot];
        let oldest = queue.fifo.head();
        if core::mem::replace(&mut queue.fifo_checked, true) || oldest == NIL {
            return NIL;
        }
        if block.ticks() < block.table.arrivals[oldest].deadline {
            return NIL;
        }
        block.note(|block| Note::Overdue { token: block.table.requests[oldest].token });
        oldest
    }

    fn drain(&mut self, block: &mut Block<H>) -> u32 {
        let mut moved = 0u32;
        self.leave_disk(block);
        loop {
            let slot = self.engine.flat_select();
            if slot == NIL {
                break;
            }
            self.active = slot;
            while self.queues[slot].next != NIL {
                let next = self.queues[slot].next;
                self.move_to_dispatch(block, next);
                moved = moved.saturating_add(1);
            }
            self.queues[slot].max_budget = self.default_budget(slot);
            self.leave_disk(block);
        }
        debug_assert!(self.queued == 0 && self.busy_queues == 0);
        self.free_forgotten();
        moved
    }

    /// Judges whether the device queues by itself, by how many requests it has had while there were enough.
    fn judge_device(&mut self) {
        self.most_in_driver = self.most_in_driver.max(self.in_driver);
        if self.in_driver.saturating_add(self.queued) < HW_QUEUE_THRESHOLD {
            return;
        }
        self.hw_tag_samples = self.hw_tag_samples.saturating_add(1);
        if self.hw_tag_samples > HW_QUEUE_SAMPLES {
            self.hw_tag = self.most_in_driver > HW_QUEUE_DEPTH;
            self.hw_tag_samples = 0;
            self.most_in_driver = 0;
        }
    }

    fn chooser(&self) -> Chooser {
        self.tunables.shared.chooser(true)
    }

    /// Asks for a run of the queue, if there are requests.
    fn kick(&self, block: &mut Block<H>) {
        if self.queued > 0 {
            block.kick();
        }
    }

    /// A process's priority has changed: its sync queue takes it over when it next waits for a turn, its async requests go to another queue.
    fn read_priority(&mut self, block: &mut Block<H>, context: Slot) {
        let [old, sync] = block.table.contexts[context].history.queues;
        let priority = block.table.contexts[context].effective_priority();
        if old != NIL {
            let place = self.async_queues.get(priority);
            let new = if place == NIL && !self.tunables.async_fixed {
                // As shipped: the old queue takes the place, and everybody there gets it.
                self.put_async(priority, old);
                old
            } else {
                self.async_queue(block, context)
            };
            self.reference(new);
            block.table.contexts[context].history.queues[ASYNC] = new;
            self.unreference(old);
        }
        if sync != NIL {
            self.queues[sync].priority = priority;
            let entity = &mut self.engine.entities[sync];
            entity.new_class = class_index(priority.class());
            entity.new_base = weight_of(priority);
            entity.pending = true;
            if entity.new_class == IDLE {
                self.queues[sync].idle_window = false;
            }
        }
    }

    fn make_sync_queue(&mut self, block: &mut Block<H>, context: Slot) -> Slot {
        let context = &block.table.contexts[context];
        let (priority, pid) = (context.effective_priority(), context.pid);
        self.make_queue(block, priority, Some(pid))
    }

    /// The async queue that processes of this one's priority share, or [`NIL`] if there is no room for it.
    fn async_queue(&mut self, block: &mut Block<H>, context: Slot) -> Slot {
        let priority = block.table.contexts[context].effective_priority();
        let found = self.async_queues.get(priority);
        if found != NIL {
            return found;
        }
        let new = self.make_queue(block, priority, None);
        if new != NIL {
            self.put_async(priority, new);
        }
        new
    }

    /// Puts a queue in the place of a priority, which keeps it for good.
    fn put_async(&mut self, priority: Priority, queue: Slot) {
        self.async_queues.put(priority, queue);
        self.reference(queue);
    }

    /// A new queue that nothing refers to yet, or [`NIL`].
    fn make_queue(&mut self, block: &mut Block<H>, priority: Priority, pid: Option<u32>) -> Slot {
        let mut slot = self.free_queues.pop_front(&mut self.queues);
        if slot == NIL {
            slot = self.remembered.pop_front(&mut self.queues);
            if slot != NIL && slot == self.active {
                self.leave_disk(block);
            }
        }
        if slot == NIL {
            return NIL;
        }
        let class = class_index(priority.class());
        let idle_window = pid.is_some() && class != IDLE;
        self.queues[slot] = Queue { pid, priority, idle_window, ..Queue::default() };
        self.queues[slot].max_budget = self.default_budget(slot);
        self.engine.init_queue(slot, ROOT_LEVEL, class, weight_of(priority), 0);
        slot
    }

    fn reference(&mut self, slot: Slot) {
        if slot != NIL {
            self.queues[slot].references = self.queues[slot].references.saturating_add(1);
        }
    }

    fn unreference(&mut self, slot: Slot) {
        if slot == NIL {
            return;
        }
        let queue = &mut self.queues[slot];
        queue.references = queue.references.saturating_sub(1);
        if queue.references > 0 {
            return;
        }
        // Its requests are gone; it may have the disk still, empty, or be ahead of its tree's time.
        let is_free = self.engine.is_out(slot) && !self.engine.entities[slot].forgotten;
        let spare = if is_free { &mut self.free_queues } else { &mut self.remembered };
        spare.push_back(&mut self.queues, slot);
    }

    /// Frees the queues that the engine has let go of.
    fn free_forgotten(&mut self) {
        loop {
            let slot = self.engine.take_forgotten();
            if slot == NIL {
                return;
            }
            if self.queues[slot].references == 0 {
                self.remembered.remove(&mut self.queues, slot);
                self.free_queues.push_back(&mut self.queues, slot);
            }
        }
    }
}

/// The weight of a priority: 8 at level 0, 1 at level 7 and in the idle class.
fn weight_of(priority: Priority) -> u32 {
    u32::from(LEVELS.saturating_sub(priority.level())).max(1)
}

/// Whether somebody waits for a bio.
fn is_sync(bio: &Bio) -> bool {
    bio.op == Op::Read || bio.flags.has(Flags::SYNC)
}

/// A context's queue for sync requests or for async ones, or [`NIL`].
fn queue_of<H: Home>(block: &Block<H>, context: Slot, sync: bool) -> Slot {
    let [asynchronous, synchronous] = block.table.contexts[context].history.queues;
    if sync { synchronous } else { asynchronous }
}
