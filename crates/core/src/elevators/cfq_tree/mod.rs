//! CFQ with time slices and one sorted tree: "cfq-tree", as in Linux 2.6.24 (2.6.22 to 2.6.32 had forms of it).
//!
//! The idea: as before, each process has the disk to itself for a slice of time, scaled by its I/O priority. Whose turn is next is
//! told by one tree instead of rounds of lists: a queue is filed under the time when it came plus an offset, longer the shorter its
//! slices are and the more queues wait. Sync writes count as sync; a slice begins when its first request has completed; a sync
//! request takes the disk from an async queue at once.
//!
//! The state is in [`CfqTree`]; `queue` has the queues and the tree that they wait in, `slice` who has the disk and for how long, this file
//! the way of a request: insert, dispatch, complete.

mod queue;
mod slice;
mod tunables;

use super::async_queues::AsyncQueues;
use super::slice_tunables::SliceTunables;
use super::sorted_fifo;
use super::{Elevator, MakeTables, MayQueue, Merge};
use crate::bio::{Bio, Flags, Op};
use crate::clock::Timer;
use crate::event::Note;
use crate::parts::{Arena, NIL, Node, Slot};
use crate::priority::Class;
use crate::queue::block::{Block, Of};
use crate::registry::hooks;
use crate::storage::{Capacity, Home, Maker};

use queue::{Queue, ServiceTree};
pub(crate) use tunables::INFO;

/// Index of a context's async queue.
const ASYNC: usize = 0;
/// Index of its sync queue.
const SYNC: usize = 1;

/// The mark in a context's history that its priority was changed since its last allocation.
const PRIORITY_CHANGED: u8 = 1;
/// A mean seek distance above which a process counts as seeky, in sectors.
const SEEKY_SECTORS: u64 = 8 * 1024;
/// With more than this many requests in the device at once, the device is taken to queue by itself.
const HW_QUEUE_DEPTH: u32 = 4;

/// Its tables. A context's sync queue lies at the context's slot, the async ones behind all of those.
pub(crate) struct Tables<H: Home> {
    queues: H::Slots<Queue>,
    /// As many nodes, for the tree that queues wait in.
    nodes: H::Slots<Node>,
}

/// The state.
pub(crate) struct CfqTree<H: Home> {
    queues: Of<H, Queue>,
    /// Queues with requests, in the order of their turns.
    service: ServiceTree<H>,
    async_queues: AsyncQueues,
    /// The queue that has the disk, or [`NIL`].
    active: Slot,
    /// The context of the first request moved in this slice, or [`NIL`]; its entry is held, as its process may exit meanwhile.
    active_context: Slot,
    /// The end of the last request that the driver took.
    last_position: u64,
    /// When a request of another class than idle completed last.
    last_end: u64,
    in_driver: u32,
    /// Requests of sync queues that were moved and have not completed.
    sync_flight: u32,
    /// The device has been seen to queue by itself.
    hw_queue: bool,
    tunables: SliceTunables,
}

impl<H: Home> MakeTables<H> for CfqTree<H> {
    fn make_tables<M: Maker<H>>(capacity: Capacity, maker: &mut M) -> Tables<H> {
        let queues = capacity.contexts.saturating_add(AsyncQueues::COUNT);
        Tables { queues: maker.table(queues), nodes: maker.table(queues) }
    }
}

impl<H: Home> Elevator<H> for CfqTree<H> {
    type Tables = Tables<H>;

    fn new(block: &mut Block<H>, tables: Tables<H>) -> Self {
        CfqTree {
            queues: Arena::new(tables.queues),
            service: ServiceTree::new(Arena::new(tables.nodes)),
            async_queues: AsyncQueues::default(),
            active: NIL,
            active_context: NIL,
            last_position: 0,
            last_end: block.ticks(),
            in_driver: 0,
            sync_flight: 0,
            hw_queue: false,
            tunables: SliceTunables::defaults(INFO.tunables, &block.clock),
        }
    }

    fn into_tables(self) -> Tables<H> {
        Tables { queues: self.queues.into_slots(), nodes: self.service.into_nodes() }
    }

    fn retire(&mut self, block: &mut Block<H>) {
        self.follow(block, NIL);
    }

    fn tunable(&self, index: usize) -> i64 {
        self.tunables.get(index)
    }

    fn set_tunable(&mut self, block: &mut Block<H>, index: usize, value: i64) {
        self.tunables.set(INFO.tunables, &block.clock, index, value);
    }

    fn allow_merge(&mut self, block: &mut Block<H>, request: Slot, bio: &Bio) -> bool {
        let sync = bio.is_sync();
        if sync && !block.table.requests[request].is_sync() {
            return false;
        }
        let queue = block.table.contexts[bio.context.slot].history.queues[usize::from(sync)];
        queue != NIL && queue == block.table.requests[request].owner
    }

    fn find_front_merge(&mut self, block: &mut Block<H>, bio: &Bio) -> Slot {
        let queue = block.table.contexts[bio.context.slot].history.queues[usize::from(bio.is_sync())];
        if queue == NIL { NIL } else { self.queues[queue].tree.find(&block.table.nodes, bio.end()) }
    }

    fn merged(&mut self, block: &mut Block<H>, request: Slot, merge: Merge) {
        let owner = block.table.requests[request].owner;
        if merge == Merge::Front && owner != NIL {
            self.queues[owner].tree.remove(&mut block.table.nodes, request);
            self.sort(block, owner, request);
        }
    }

    fn join(&mut self, block: &mut Block<H>, request: Slot, absorbed: Slot) {
        sorted_fifo::take_older_deadline(block, request, absorbed);
        self.remove(block, absorbed);
    }

    fn may_queue(&mut self, block: &mut Block<H>, context: Slot, op: Op) -> MayQueue {
        let slot = block.table.contexts[context].history.queues[usize::from(op == Op::Read)];
        let queue = &mut self.queues[slot];
        if slot == NIL || !queue.wait_request || queue.must_alloc_slice {
            return MayQueue::May;
        }
        queue.must_alloc_slice = true;
        MayQueue::Must
    }

    fn allocate(&mut self, block: &mut Block<H>, request: Slot) {
        let context = block.table.requests[request].context;
        let kind = usize::from(block.table.requests[request].is_sync());
        self.meet(block, context);
        if block.table.contexts[context].history.queues[kind] == NIL {
            let queue = if kind == SYNC { self.make_sync(block, context) } else { self.find_async(block, context) };
            block.table.contexts[context].history.queues[kind] = queue;
        }
        let queue = block.table.contexts[context].history.queues[kind];
        self.reference(queue);
        block.table.requests[request].owner = queue;
    }

    fn free(&mut self, block: &mut Block<H>, request: Slot) {
        let owner = core::mem::replace(&mut block.table.requests[request].owner, NIL);
        self.unreference(block, owner);
    }

    fn insert(&mut self, block: &mut Block<H>, request: Slot) {
        let (owner, context) = (block.table.requests[request].owner, block.table.requests[request].context);
        if owner == NIL {
            // No room for another queue: the storage was made too small. It is served in order of arrival.
            return block.dispatch_sort(request);
        }
        self.read_priority(block, owner, context);
        self.sort(block, owner, request);
        block.table.arrivals[request].deadline = block.ticks();
        let queue = &mut self.queues[owner];
        queue.fifo.push_back(&mut block.table.arrivals, request);
        if is_metadata(block, request) {
            queue.metadata = queue.metadata.saturating_add(1);
        }
        self.enqueued(block, owner, request);
    }

    fn dispatch(&mut self, block: &mut Block<H>, force: bool) -> u32 {
        if force {
            return self.drain(block);
        }
        let mut moved = 0u32;
        if self.service.count == 0 {
            return moved;
        }
        loop {
            // Asked once more when nothing is left, it takes the disk from an async queue that has run dry.
            let slot = self.select(block);
            let queue = &mut self.queues[slot];
            let quantum = if queue.is_idle_class() { 1 } else { self.tunables.quantum };
            let alone = self.service.count <= 1;
            let enough = queue.dispatched >= quantum.saturating_mul(if alone { 4 } else { 1 });
            // Async queues wait until all that sync ones have sent has come back.
            if slot == NIL || enough || (self.sync_flight > 0 && !queue.is_sync()) {
                break;
            }
            queue.must_dispatch = false;
            queue.wait_request = false;
            block.timers.cancel(Timer::Idle);
            let round = self.dispatch_from(block, slot, quantum.min(block.batch_max));
            moved = moved.saturating_add(round);
            debug_assert!(round > 0, "a queue that was selected has a request");
            if round == 0 || moved >= block.batch_max {
                break;
            }
        }
        moved
    }

    /// A queue of another class loses the disk. One of real time that has it and no request is waited for as ever.
    fn dispatch_real_time(&mut self, block: &mut Block<H>) -> u32 {
        let first = self.service.first();
        if first == NIL || !self.queues[first].is_real_time() {
            return 0;
        }
        if self.active != NIL && !self.queues[self.active].is_real_time() {
            self.expire(block, true);
        }
        hooks::dispatch(self, block, false)
    }

    fn activate(&mut self, block: &mut Block<H>, request: Slot) {
        self.in_driver = self.in_driver.saturating_add(1);
        if self.in_driver > HW_QUEUE_DEPTH {
            self.hw_queue = true;
        }
        self.last_position = block.table.requests[request].end();
    }

    fn deactivate(&mut self, _: &mut Block<H>, _: Slot) {
        self.in_driver = self.in_driver.saturating_sub(1);
    }

    fn complete(&mut self, block: &mut Block<H>, request: Slot) {
        let (owner, sync) = (block.table.requests[request].owner, block.table.requests[request].is_sync());
        let now = block.ticks();
        self.in_driver = self.in_driver.saturating_sub(1);
        if owner == NIL {
            return;
        }
        let queue = &mut self.queues[owner];
        queue.dispatched = queue.dispatched.saturating_sub(1);
        if queue.is_sync() {
            self.sync_flight = self.sync_flight.saturating_sub(1);
        }
        if !queue.is_idle_class() {
            self.last_end = now;
        }
        if sync {
            block.context_of(request).history.last_end = now;
        }
        if self.active == owner {
            self.active_completed(block, sync);
        }
        if self.in_driver == 0 {
            self.kick(block);
        }
    }

    fn is_empty(&self) -> bool {
        self.service.count == 0
    }

    fn exit(&mut self, block: &mut Block<H>, context: Slot) {
        let [shared, own] = core::mem::replace(&mut block.table.contexts[context].history.queues, [NIL; 2]);
        for queue in [shared, own] {
            if queue != NIL && self.active == queue {
                self.expire(block, false);
                self.kick(block);
            }
            self.unreference(block, queue);
        }
    }

    fn priority_changed(&mut self, block: &mut Block<H>, context: Slot) {
        // It is noticed when the process allocates its next request.
        block.table.contexts[context].history.marks |= PRIORITY_CHANGED;
    }

    fn timer(&mut self, block: &mut Block<H>, timer: Timer) {
        match timer {
            Timer::Grace => self.grace_over(block),
            _ => self.idle_over(block),
        }
    }
}

impl<H: Home> CfqTree<H> {
    /// Sorts a request into its queue and files the queue if it was empty.
    fn sort(&mut self, block: &mut Block<H>, owner: Slot, request: Slot) {
        let sector = block.table.requests[request].sector;
        self.queues[owner].tree.insert(&mut block.table.nodes, request, sector);
        sorted_fifo::move_alias(self, block, request, |cfq| &mut cfq.queues[owner].tree, Self::move_to_dispatch);
        if !self.queues[owner].filed {
            // It counts itself when its place is worked out.
            self.service.count = self.service.count.saturating_add(1);
            self.refile(block, owner);
        }
        let next = self.queues[owner].next;
        self.queues[owner].next = self.tunables.chooser(true).best(block, next, request, self.last_position);
    }

    /// Takes a request out of its queue, and the queue out of the service tree if that was the last.
    fn remove(&mut self, block: &mut Block<H>, request: Slot) {
        let owner = block.table.requests[request].owner;
        let queue = &self.queues[owner];
        if queue.next == request {
            let next = self.tunables.chooser(true).neighbour(block, &queue.tree, request, self.last_position);
            self.queues[owner].next = next;
        }
        let queue = &mut self.queues[owner];
        queue.tree.remove(&mut block.table.nodes, request);
        queue.fifo.remove(&mut block.table.arrivals, request);
        if is_metadata(block, request) {
            queue.metadata = queue.metadata.saturating_sub(1);
        }
        if queue.tree.is_empty() {
            // What is next after the last one is at most a request that grew down to its sector and stands aside until it is gone.
            let requests = &block.table.requests;
            debug_assert!(queue.next == NIL || requests[queue.next].sector == requests[request].sector);
            self.service.unfile(&mut self.queues, owner);
        }
    }

    fn move_to_dispatch(&mut self, block: &mut Block<H>, request: Slot) {
        let owner = block.table.requests[request].owner;
        self.remove(block, request);
        let queue = &mut self.queues[owner];
        queue.dispatched = queue.dispatched.saturating_add(1);
        if queue.is_sync() {
            self.sync_flight = self.sync_flight.saturating_add(1);
        }
        block.dispatch_sort(request);
    }

    /// Moves up to `quantum` requests of the queue that has the disk.
    fn dispatch_from(&mut self, block: &mut Block<H>, slot: Slot, quantum: u32) -> u32 {
        let mut moved = 0u32;
        while moved < quantum && !self.queues[slot].tree.is_empty() {
            let overdue = self.take_overdue(block, slot);
            let request = if overdue != NIL { overdue } else { self.queues[slot].next };
            if request == NIL {
                break;
            }
            let context = block.table.requests[request].context;
            self.move_to_dispatch(block, request);
            moved = moved.saturating_add(1);
            if self.active_context == NIL {
                self.follow(block, context);
            }
        }
        let queue = &self.queues[slot];
        let enough = !queue.is_sync() && moved >= self.tunables.max_async_requests(queue.level());
        if self.service.count > 1 && (enough || queue.is_idle_class()) {
            self.expire(block, false);
        }
        moved
    }

    /// The oldest request of a queue if it is overdue; asked for the first request of a slice only.
    fn take_overdue(&mut self, block: &mut Block<H>, slot: Slot) -> Slot {
        let queue = &mut self.queues[slot];
        let oldest = queue.fifo.head();
        if core::mem::replace(&mut queue.fifo_used, true) || oldest == NIL {
            return NIL;
        }
        let expire = self.tunables.fifo_expire[usize::from(queue.is_sync())];
        if block.ticks() < block.table.arrivals[oldest].deadline.saturating_add(expire) {
            return NIL;
        }
        block.note(|block| Note::Overdue { token: block.table.requests[oldest].token });
        oldest
    }

    fn drain(&mut self, block: &mut Block<H>) -> u32 {
        let mut moved = 0u32;
        loop {
            let slot = self.service.first();
            let request = self.queues[slot].next;
            if slot == NIL || request == NIL {
                break;
            }
            self.move_to_dispatch(block, request);
            moved = moved.saturating_add(1);
        }
        self.expire(block, false);
        debug_assert_eq!(self.service.count, 0);
        moved
    }

    /// A process allocates a request: it may be the first time, and its priority may have changed.
    fn meet(&mut self, block: &mut Block<H>, context: Slot) {
        let ticks = block.ticks();
        let history = &mut block.table.contexts[context].history;
        if !history.known {
            history.known = true;
            history.last_end = ticks;
        }
        if history.marks & PRIORITY_CHANGED == 0 {
            return;
        }
        history.marks &= !PRIORITY_CHANGED;
        let [old, sync] = history.queues;
        if old != NIL {
            let new = self.find_async(block, context);
            block.table.contexts[context].history.queues[ASYNC] = new;
            self.unreference(block, old);
        }
        if sync != NIL {
            self.queues[sync].priority_changed = true;
        }
    }

    /// Makes a context's sync queue; the context counts as one reference. [`NIL`]: no room.
    fn make_sync(&mut self, block: &mut Block<H>, context: Slot) -> Slot {
        let pid = block.table.contexts[context].pid;
        debug_assert_eq!(self.queues[context].references, 0);
        self.make_queue(block, context, context, Queue { pid: Some(pid), idle_window: true, ..Queue::default() })
    }

    /// The async queue for a context, made if there is none; it counts one reference more. [`NIL`]: no room.
    fn find_async(&mut self, block: &mut Block<H>, context: Slot) -> Slot {
        let priority = block.table.contexts[context].effective_priority();
        let mut queue = self.async_queues.get(priority);
        if queue == NIL {
            // As shipped, a process whose priority was changed brings its old queue along, with its old class and level, and all of the
            // new priority use that one from then on.
            queue = block.table.contexts[context].history.queues[ASYNC];
            if queue == NIL {
                let places = self.queues.capacity().saturating_sub(AsyncQueues::COUNT);
                let slot = places.saturating_add(AsyncQueues::place(priority) as u32);
                queue = self.make_queue(block, slot, context, Queue::default());
            } else {
                self.reference(queue);
            }
            self.async_queues.put(priority, queue);
        }
        self.reference(queue);
        queue
    }

    /// Makes a queue at this place, with one reference.
    fn make_queue(&mut self, block: &mut Block<H>, slot: Slot, context: Slot, queue: Queue) -> Slot {
        if slot >= self.queues.capacity().min(self.service.capacity()) {
            return NIL;
        }
        self.queues[slot] = Queue { priority_changed: true, references: 1, ..queue };
        self.read_priority(block, slot, context);
        slot
    }

    /// Reads a queue's priority from its owner, if it has changed.
    fn read_priority(&mut self, block: &mut Block<H>, slot: Slot, context: Slot) {
        let queue = &mut self.queues[slot];
        if !core::mem::take(&mut queue.priority_changed) {
            return;
        }
        queue.priority = block.table.contexts[context].effective_priority();
        if queue.priority.class() == Class::Idle {
            queue.idle_window = false;
        }
        self.service.class_changed(&self.queues, slot);
    }

    fn reference(&mut self, slot: Slot) {
        if slot != NIL {
            self.queues[slot].references = self.queues[slot].references.saturating_add(1);
        }
    }

    fn unreference(&mut self, block: &mut Block<H>, slot: Slot) {
        if slot == NIL {
            return;
        }
        let queue = &mut self.queues[slot];
        queue.references = queue.references.saturating_sub(1);
        if queue.references == 0 && self.active == slot {
            self.expire(block, false);
            self.kick(block);
        }
    }
}

fn is_metadata<H: Home>(block: &Block<H>, request: Slot) -> bool {
    block.table.requests[request].flags.has(Flags::META)
}
