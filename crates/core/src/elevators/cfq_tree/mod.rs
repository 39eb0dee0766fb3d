//! CFQ with time slices and one sorted tree: "cfq-tree", as in Linux 2.6.24 (2.6.22 to 2.6.32 had
//! forms of it).
//!
//! The idea: as in cfq-v3, each context has the disk for a slice of time, scaled by its I/O
//! priority. One tree replaces the lists and rounds: a queue is filed under its time of arrival
//! plus an offset, which grows with the number of waiting queues and is larger for shorter slices.
//! Sync writes count as sync. A slice begins when its first request has completed. A sync request
//! preempts an async queue at once.
//!
//! The state is in [`CfqTree`]. `queue` has the queues and the service tree, `slice` the active
//! queue and its slice, this file the path of a request: insert, dispatch, complete.

mod queue;
mod slice;
mod tunables;

use crate::bio::{Bio, Flags, Op};
use crate::clock::Timer;
use crate::collections::{Arena, Count, NIL, Node, Slot};
use crate::elevator::capacity::Capacity;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker, TableOf};
use crate::elevator::{ActiveSlice, Elevator, MakeTables, MayQueue, Merge, hooks};
use crate::elevators::shared::async_queues::AsyncQueues;
use crate::elevators::shared::slice_tunables::SliceTunables;
use crate::elevators::shared::sorted_fifo;
use crate::event::Note;
use crate::priority::Class;

use queue::{Queue, ServiceTree};
pub(crate) use tunables::INFO;

/// The index of a context's async queue.
const ASYNC: usize = 0;
/// The index of a context's sync queue.
const SYNC: usize = 1;

/// The mark in a context's history that its priority has changed since its last allocation.
const PRIORITY_CHANGED: u8 = 1;
/// The mean seek distance above which a context counts as seeky, in sectors.
const SEEKY_SECTORS: u64 = 8 * 1024;
/// The number of in-flight requests above which the device counts as having its own queue.
const HW_QUEUE_DEPTH: u32 = 4;

/// The tables. A context's sync queue is at the context's slot; the async queues follow.
pub(crate) struct Tables<H: HostTypes> {
    queues: H::Slots<Queue>,
    /// One node per queue, for the service tree.
    nodes: H::Slots<Node>,
}

/// The state of the elevator.
pub(crate) struct CfqTree<H: HostTypes> {
    queues: TableOf<H, Queue>,
    /// Queues with requests, in the order of their turns.
    service: ServiceTree<H>,
    async_queues: AsyncQueues,
    /// The active queue, or [`NIL`].
    active: Slot,
    /// The context of the first request moved in this slice, or [`NIL`]; its entry is held, as the
    /// process may exit meanwhile.
    active_context: Slot,
    /// The end of the last request that the driver took.
    last_position: u64,
    /// The last completion of a request outside the idle class.
    last_end: u64,
    in_driver: u32,
    /// Requests of sync queues on the dispatch list or in the device.
    sync_flight: u32,
    /// Whether the device was seen to have its own queue.
    hw_queue: bool,
    tunables: SliceTunables,
}

impl<H: HostTypes> MakeTables<H> for CfqTree<H> {
    fn make_tables<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Tables<H> {
        let queues = capacity.contexts.saturating_add(AsyncQueues::COUNT);
        Tables { queues: maker.table(queues), nodes: maker.table(queues) }
    }
}

impl<H: HostTypes> Elevator<H> for CfqTree<H> {
    type Tables = Tables<H>;

    fn new(core: &mut QueueCore<H>, tables: Tables<H>) -> Self {
        CfqTree {
            queues: Arena::new(tables.queues),
            service: ServiceTree::new(Arena::new(tables.nodes)),
            async_queues: AsyncQueues::default(),
            active: NIL,
            active_context: NIL,
            last_position: 0,
            last_end: core.ticks(),
            in_driver: 0,
            sync_flight: 0,
            hw_queue: false,
            tunables: SliceTunables::defaults(INFO.tunables, &core.clock),
        }
    }

    fn into_tables(self) -> Tables<H> {
        Tables { queues: self.queues.into_slots(), nodes: self.service.into_nodes() }
    }

    fn retire(&mut self, core: &mut QueueCore<H>) {
        self.follow(core, NIL);
    }

    fn tunable(&self, index: usize) -> i64 {
        self.tunables.get(index)
    }

    fn set_tunable(&mut self, core: &mut QueueCore<H>, index: usize, value: i64) {
        self.tunables.set(INFO.tunables, &core.clock, index, value);
    }

    fn allow_merge(&mut self, core: &mut QueueCore<H>, request: Slot, bio: &Bio) -> bool {
        let sync = bio.is_sync();
        if sync && !core.tables.requests[request].is_sync() {
            return false;
        }
        let queue = core.tables.contexts[bio.context.slot].history.queues[usize::from(sync)];
        queue != NIL && queue == core.tables.requests[request].owner
    }

    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        let queue = core.tables.contexts[bio.context.slot].history.queues[usize::from(bio.is_sync())];
        if queue == NIL { NIL } else { self.queues[queue].tree.find(&core.tables.nodes, bio.end()) }
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        let owner = core.tables.requests[request].owner;
        if merge == Merge::Front && owner != NIL {
            self.queues[owner].tree.remove(&mut core.tables.nodes, request);
            self.sort(core, owner, request);
        }
    }

    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        sorted_fifo::take_older_deadline(core, request, absorbed);
        self.remove(core, absorbed);
    }

    fn may_queue(&mut self, core: &mut QueueCore<H>, context: Slot, op: Op) -> MayQueue {
        let slot = core.tables.contexts[context].history.queues[usize::from(op == Op::Read)];
        let queue = &mut self.queues[slot];
        if slot == NIL || !queue.wait_request || queue.must_alloc_slice {
            return MayQueue::May;
        }
        queue.must_alloc_slice = true;
        MayQueue::Must
    }

    fn allocate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let context = core.tables.requests[request].context;
        let kind = usize::from(core.tables.requests[request].is_sync());
        self.prepare_context(core, context);
        if core.tables.contexts[context].history.queues[kind] == NIL {
            let queue = if kind == SYNC { self.make_sync(core, context) } else { self.find_async(core, context) };
            core.tables.contexts[context].history.queues[kind] = queue;
        }
        let queue = core.tables.contexts[context].history.queues[kind];
        self.reference(queue);
        core.tables.requests[request].owner = queue;
    }

    fn free(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let owner = core::mem::replace(&mut core.tables.requests[request].owner, NIL);
        self.unreference(core, owner);
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let (owner, context) = (core.tables.requests[request].owner, core.tables.requests[request].context);
        if owner == NIL {
            // The storage has no room for another queue: serve the request in order of arrival.
            return core.dispatch_sort(request);
        }
        self.read_priority(core, owner, context);
        self.sort(core, owner, request);
        core.tables.arrivals[request].deadline = core.ticks();
        let queue = &mut self.queues[owner];
        queue.fifo.push_back(&mut core.tables.arrivals, request);
        if is_metadata(core, request) {
            queue.metadata.increment();
        }
        self.enqueued(core, owner, request);
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        if force {
            return self.drain(core);
        }
        let mut moved = 0u32;
        if self.service.count == 0 {
            return moved;
        }
        loop {
            // A further selection after the last request makes an empty async queue expire.
            let slot = self.select(core);
            let queue = &mut self.queues[slot];
            let quantum = if queue.is_idle_class() { 1 } else { self.tunables.quantum };
            let alone = self.service.count <= 1;
            let enough = queue.dispatched >= quantum.saturating_mul(if alone { 4 } else { 1 });
            // Async queues wait until all dispatched sync requests have completed.
            if slot == NIL || enough || (self.sync_flight > 0 && !queue.is_sync()) {
                break;
            }
            queue.wait_request = false;
            core.timers.cancel(Timer::Idle);
            let round = self.dispatch_from(core, slot, quantum.min(core.batch_max));
            moved = moved.saturating_add(round);
            debug_assert!(round > 0, "a selected queue has a request");
            if round == 0 || moved >= core.batch_max {
                break;
            }
        }
        moved
    }

    /// An active queue of another class is preempted. An active real-time queue without requests is
    /// waited for as usual.
    fn dispatch_real_time(&mut self, core: &mut QueueCore<H>) -> u32 {
        let first = self.service.first();
        if first == NIL || !self.queues[first].is_real_time() {
            return 0;
        }
        if self.active != NIL && !self.queues[self.active].is_real_time() {
            self.expire(core, true);
        }
        hooks::dispatch(self, core, false)
    }

    fn activate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.in_driver.increment();
        if self.in_driver > HW_QUEUE_DEPTH {
            self.hw_queue = true;
        }
        self.last_position = core.tables.requests[request].end();
    }

    fn deactivate(&mut self, _: &mut QueueCore<H>, _: Slot) {
        self.in_driver.decrement();
    }

    fn complete(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let (owner, sync) = (core.tables.requests[request].owner, core.tables.requests[request].is_sync());
        let now = core.ticks();
        self.in_driver.decrement();
        if owner == NIL {
            return;
        }
        let queue = &mut self.queues[owner];
        queue.dispatched.decrement();
        if queue.is_sync() {
            self.sync_flight.decrement();
        }
        if !queue.is_idle_class() {
            self.last_end = now;
        }
        if sync {
            core.context_of(request).history.last_end = now;
        }
        if self.active == owner {
            self.active_completed(core, sync);
        }
        if self.in_driver == 0 {
            self.kick(core);
        }
    }

    fn is_empty(&self) -> bool {
        self.service.count == 0
    }

    fn slice(&self, core: &QueueCore<H>) -> Option<ActiveSlice> {
        let queue = &self.queues[self.active];
        let until_ns = (!queue.slice_new).then(|| core.clock.time_of_tick(queue.slice_end));
        (self.active != NIL).then(|| ActiveSlice { queue: queue.name(), until_ns })
    }

    fn exit(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let [shared, own] = core::mem::replace(&mut core.tables.contexts[context].history.queues, [NIL; 2]);
        for queue in [shared, own] {
            if queue != NIL && self.active == queue {
                self.expire(core, false);
                self.kick(core);
            }
            self.unreference(core, queue);
        }
    }

    fn priority_changed(&mut self, core: &mut QueueCore<H>, context: Slot) {
        // Applied when the context allocates its next request.
        core.tables.contexts[context].history.marks |= PRIORITY_CHANGED;
    }

    fn timer(&mut self, core: &mut QueueCore<H>, timer: Timer) {
        match timer {
            Timer::Grace => self.grace_over(core),
            _ => self.idle_over(core),
        }
    }
}

impl<H: HostTypes> CfqTree<H> {
    /// Sorts a request into its queue and files the queue if it was empty.
    fn sort(&mut self, core: &mut QueueCore<H>, owner: Slot, request: Slot) {
        let sector = core.tables.requests[request].sector;
        self.queues[owner].tree.insert(&mut core.tables.nodes, request, sector);
        sorted_fifo::move_alias(self, core, request, |cfq| &mut cfq.queues[owner].tree, Self::move_to_dispatch);
        if !self.queues[owner].filed {
            // The queue counts itself when its position is computed.
            self.service.count.increment();
            self.refile(core, owner);
        }
        let next = self.queues[owner].next;
        self.queues[owner].next = self.tunables.chooser(true).best(core, next, request, self.last_position);
    }

    /// Removes a request from its queue, and the queue from the service tree after its last
    /// request.
    fn remove(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let owner = core.tables.requests[request].owner;
        let queue = &self.queues[owner];
        if queue.next == request {
            let next = self.tunables.chooser(true).neighbour(core, &queue.tree, request, self.last_position);
            self.queues[owner].next = next;
        }
        let queue = &mut self.queues[owner];
        queue.tree.remove(&mut core.tables.nodes, request);
        queue.fifo.remove(&mut core.tables.arrivals, request);
        if is_metadata(core, request) {
            queue.metadata.decrement();
        }
        if queue.tree.is_empty() {
            // After the last request, the next one is at most a request with a front merge to the
            // same sector, which is out of the tree meanwhile.
            let requests = &core.tables.requests;
            debug_assert!(queue.next == NIL || requests[queue.next].sector == requests[request].sector);
            self.service.unfile(&mut self.queues, owner);
        }
    }

    fn move_to_dispatch(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let owner = core.tables.requests[request].owner;
        self.remove(core, request);
        let queue = &mut self.queues[owner];
        queue.dispatched.increment();
        if queue.is_sync() {
            self.sync_flight.increment();
        }
        core.dispatch_sort(request);
    }

    /// Moves up to `quantum` requests of the active queue.
    fn dispatch_from(&mut self, core: &mut QueueCore<H>, slot: Slot, quantum: u32) -> u32 {
        let mut moved = 0u32;
        while moved < quantum && !self.queues[slot].tree.is_empty() {
            let overdue = self.take_overdue(core, slot);
            let request = if overdue != NIL { overdue } else { self.queues[slot].next };
            if request == NIL {
                break;
            }
            let context = core.tables.requests[request].context;
            self.move_to_dispatch(core, request);
            moved.increment();
            if self.active_context == NIL {
                self.follow(core, context);
            }
        }
        let queue = &self.queues[slot];
        let enough = !queue.is_sync() && moved >= self.tunables.max_async_requests(queue.level());
        if self.service.count > 1 && (enough || queue.is_idle_class()) {
            self.expire(core, false);
        }
        moved
    }

    /// The oldest request of a queue if it is overdue; called for the first request of a slice
    /// only.
    fn take_overdue(&mut self, core: &mut QueueCore<H>, slot: Slot) -> Slot {
        let queue = &mut self.queues[slot];
        let oldest = queue.fifo.head();
        if core::mem::replace(&mut queue.fifo_used, true) || oldest == NIL {
            return NIL;
        }
        let expire = self.tunables.fifo_expire[usize::from(queue.is_sync())];
        if core.ticks() < core.tables.arrivals[oldest].deadline.saturating_add(expire) {
            return NIL;
        }
        core.note(|core| Note::Overdue { token: core.tables.requests[oldest].token });
        oldest
    }

    fn drain(&mut self, core: &mut QueueCore<H>) -> u32 {
        let mut moved = 0u32;
        loop {
            let slot = self.service.first();
            let request = self.queues[slot].next;
            if slot == NIL || request == NIL {
                break;
            }
            self.move_to_dispatch(core, request);
            moved.increment();
        }
        self.expire(core, false);
        debug_assert_eq!(self.service.count, 0);
        moved
    }

    /// Prepares a context for an allocation: its first one, or one after a change of priority.
    fn prepare_context(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let ticks = core.ticks();
        let history = &mut core.tables.contexts[context].history;
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
            let new = self.find_async(core, context);
            core.tables.contexts[context].history.queues[ASYNC] = new;
            self.unreference(core, old);
        }
        if sync != NIL {
            self.queues[sync].priority_changed = true;
        }
    }

    /// Creates a context's sync queue; the context counts as one reference. [`NIL`]: no room.
    fn make_sync(&mut self, core: &mut QueueCore<H>, context: Slot) -> Slot {
        let pid = core.tables.contexts[context].pid;
        debug_assert_eq!(self.queues[context].references, 0);
        self.make_queue(core, context, context, Queue { pid: Some(pid), idle_window: true, ..Queue::default() })
    }

    /// The async queue for a context, created if necessary, with one more reference. [`NIL`]: no
    /// room.
    fn find_async(&mut self, core: &mut QueueCore<H>, context: Slot) -> Slot {
        let priority = core.tables.contexts[context].effective_priority();
        let mut queue = self.async_queues.get(priority);
        if queue == NIL {
            // As shipped, a context with a changed priority brings its old queue along, with its
            // old class and level; all contexts of the new priority then use it.
            queue = core.tables.contexts[context].history.queues[ASYNC];
            if queue == NIL {
                let first_async = self.queues.capacity().saturating_sub(AsyncQueues::COUNT);
                let slot = first_async.saturating_add(AsyncQueues::index_of(priority) as u32);
                queue = self.make_queue(core, slot, context, Queue::default());
            } else {
                self.reference(queue);
            }
            self.async_queues.put(priority, queue);
        }
        self.reference(queue);
        queue
    }

    /// Creates a queue at this slot, with one reference.
    fn make_queue(&mut self, core: &mut QueueCore<H>, slot: Slot, context: Slot, queue: Queue) -> Slot {
        if slot >= self.queues.capacity().min(self.service.capacity()) {
            return NIL;
        }
        self.queues[slot] = Queue { priority_changed: true, references: 1, ..queue };
        self.read_priority(core, slot, context);
        slot
    }

    /// Reads a queue's priority again from its context, if it has changed.
    fn read_priority(&mut self, core: &mut QueueCore<H>, slot: Slot, context: Slot) {
        let queue = &mut self.queues[slot];
        if !core::mem::take(&mut queue.priority_changed) {
            return;
        }
        queue.priority = core.tables.contexts[context].effective_priority();
        if queue.priority.class() == Class::Idle {
            queue.idle_window = false;
        }
        self.service.class_changed(&self.queues, slot);
    }

    fn reference(&mut self, slot: Slot) {
        if slot != NIL {
            self.queues[slot].references.increment();
        }
    }

    fn unreference(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        if slot == NIL {
            return;
        }
        let queue = &mut self.queues[slot];
        queue.references.decrement();
        if queue.references == 0 && self.active == slot {
            self.expire(core, false);
            self.kick(core);
        }
    }
}

fn is_metadata<H: HostTypes>(core: &QueueCore<H>, request: Slot) -> bool {
    core.tables.requests[request].flags.has(Flags::META)
}
