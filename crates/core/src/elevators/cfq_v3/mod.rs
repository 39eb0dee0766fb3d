//! CFQ with time slices and priority lists: "cfq-v3", as in Linux 2.6.18 (2.6.13 to 2.6.21 had
//! forms of it).
//!
//! The idea: each context has the disk for a slice of time, scaled by its I/O priority. Within a
//! slice its requests are served in ascending order of sectors. At the end of a burst the disk is
//! kept idle for a few milliseconds, so that a context that reads sequentially can continue. The
//! contexts of one priority share a queue of async writes, whose number is limited.
//!
//! The state is in [`CfqV3`]. `filing` has the lists of waiting queues, `slice` the active queue
//! and its slice, this file the path of a request: insert, dispatch, complete.

mod filing;
mod queue;
mod slice;
mod tunables;

use crate::bio::{Bio, Op};
use crate::clock::Timer;
use crate::collections::{Arena, HashChains, List, NIL, Node, Slot};
use crate::collections::{Count, tree::Least};
use crate::elevator::capacity::Capacity;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker, TableOf, buckets};
use crate::elevator::{ActiveSlice, Elevator, MakeTables, MayQueue, Merge};
use crate::elevators::shared::chooser::Chooser;
use crate::elevators::shared::slice_tunables::SliceTunables;
use crate::elevators::shared::sorted_fifo;
use crate::event::Note;
use crate::priority::{Class, Priority};

use filing::Filing;
use queue::{ByPid, Queue, key_of};
pub(crate) use tunables::INFO;
use tunables::PREEMPT_FIXED;

/// The index of a context's async queue.
const ASYNC: usize = 0;
/// The index of a context's sync queue.
const SYNC: usize = 1;

/// The mean seek distance above which a context counts as seeky, in sectors.
const SEEKY_SECTORS: u64 = 128 * 1024;
/// The number of in-flight requests above which the device counts as having its own queue.
const HW_QUEUE_DEPTH: u32 = 4;

/// The tables of the elevator.
pub(crate) struct Tables<H: HostTypes> {
    queues: H::Slots<Queue>,
    /// One node per queue, for the lists of waiting queues.
    nodes: H::Slots<Node<Least>>,
    /// Buckets of the hash of queues by process id.
    buckets: H::Slots<u32>,
}

/// The state of the elevator.
pub(crate) struct CfqV3<H: HostTypes> {
    queues: TableOf<H, Queue>,
    free_queues: List<ByPid>,
    by_pid: HashChains<H::Slots<u32>>,
    filing: Filing<H>,
    /// The number of queues with requests.
    busy_queues: u32,
    /// The active queue, or [`NIL`].
    active: Slot,
    /// The context of the first request dispatched in this slice, or [`NIL`]; its entry is held, as
    /// its process may exit meanwhile.
    active_context: Slot,
    /// Requests dispatched in this slice.
    dispatch_slice: u32,
    /// The end of the last request on the dispatch list.
    last_sector: u64,
    /// The last completion of a request outside the idle class.
    last_end: u64,
    in_driver: u32,
    /// Whether the device was seen to have its own queue.
    hw_queue: bool,
    tunables: SliceTunables,
    preempt_fixed: bool,
}

impl<H: HostTypes> MakeTables<H> for CfqV3<H> {
    fn make_tables<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Tables<H> {
        let queues = capacity.queues();
        Tables {
            queues: maker.table(queues),
            nodes: maker.table(queues),
            buckets: maker.table(buckets(capacity.contexts)),
        }
    }
}

impl<H: HostTypes> Elevator<H> for CfqV3<H> {
    type Tables = Tables<H>;

    fn new(core: &mut QueueCore<H>, tables: Tables<H>) -> Self {
        let mut queues: TableOf<H, Queue> = Arena::new(tables.queues);
        let mut free_queues = List::<ByPid>::default();
        let nodes: TableOf<H, Node<Least>> = Arena::new(tables.nodes);
        for slot in 0..queues.capacity().min(nodes.capacity()) {
            free_queues.push_back(&mut queues, slot);
        }
        CfqV3 {
            queues,
            free_queues,
            by_pid: HashChains::new(tables.buckets),
            filing: Filing::new(nodes),
            busy_queues: 0,
            active: NIL,
            active_context: NIL,
            dispatch_slice: 0,
            last_sector: 0,
            last_end: 0,
            in_driver: 0,
            hw_queue: false,
            tunables: SliceTunables::defaults(INFO.tunables, &core.clock),
            preempt_fixed: false,
        }
    }

    fn into_tables(self) -> Tables<H> {
        let (queues, nodes) = (self.queues.into_slots(), self.filing.into_nodes());
        Tables { queues, nodes, buckets: self.by_pid.into_slots() }
    }

    fn retire(&mut self, core: &mut QueueCore<H>) {
        self.follow(core, NIL);
    }

    fn tunable(&self, index: usize) -> i64 {
        self.tunables.get(index)
    }

    fn set_tunable(&mut self, core: &mut QueueCore<H>, index: usize, value: i64) {
        self.tunables.set(INFO.tunables, &core.clock, index, value);
        if index == PREEMPT_FIXED {
            self.preempt_fixed = value != 0;
        }
    }

    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        let queue = self.find_queue(core, bio.context.slot, bio.op);
        if queue == NIL { NIL } else { self.queues[queue].tree.find(&core.tables.nodes, bio.end()) }
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        let owner = core.tables.requests[request].owner;
        if merge == Merge::Back || owner == NIL {
            return;
        }
        if self.queues[owner].next == request {
            self.queues[owner].next = self.neighbour(core, request);
        }
        self.queues[owner].tree.remove(&mut core.tables.nodes, request);
        self.sort(core, owner, request);
    }

    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        sorted_fifo::take_older_deadline(core, request, absorbed);
        let owner = core.tables.requests[absorbed].owner;
        if self.queues[owner].next == absorbed {
            self.queues[owner].next = self.neighbour(core, absorbed);
        }
        self.remove(core, absorbed);
    }

    fn may_queue(&mut self, core: &mut QueueCore<H>, context: Slot, op: Op) -> MayQueue {
        let slot = self.find_queue(core, context, op);
        let queue = &mut self.queues[slot];
        if slot == NIL || !queue.wait_request || queue.must_alloc_slice {
            return MayQueue::May;
        }
        queue.must_alloc_slice = true;
        MayQueue::Must
    }

    fn allocate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let (context, op) = (core.tables.requests[request].context, core.tables.requests[request].op);
        let ticks = core.ticks();
        let history = &mut core.tables.contexts[context].history;
        if !history.known {
            history.known = true;
            history.last_end = ticks;
        }
        let kind = kind_of(op);
        if history.queues[kind] == NIL {
            let queue = self.get_queue(core, context, op);
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
        self.enqueued(core, owner, request);
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        if self.busy_queues == 0 {
            return 0;
        }
        if force {
            return self.drain(core);
        }
        let (mut moved, mut previous) = (0u32, NIL);
        loop {
            let slot = self.select(core);
            if slot == NIL || slot == previous {
                return moved;
            }
            self.queues[slot].must_dispatch = false;
            self.queues[slot].wait_request = false;
            core.timers.cancel(Timer::Idle);
            let quantum = if self.queues[slot].is_idle_class() { 1 } else { self.tunables.quantum };
            moved = moved.saturating_add(self.dispatch_from(core, slot, quantum.min(core.batch_max)));
            if (self.queues[slot].idle_window && self.active != NIL) || moved >= core.batch_max {
                return moved;
            }
            previous = slot;
        }
    }

    fn dispatch_real_time(&mut self, core: &mut QueueCore<H>) -> u32 {
        let slot = self.select_real_time(core);
        if slot == NIL {
            return 0;
        }
        self.queues[slot].must_dispatch = false;
        self.queues[slot].wait_request = false;
        core.timers.cancel(Timer::Idle);
        let quantum = self.tunables.quantum.min(core.batch_max);
        self.dispatch_from(core, slot, quantum)
    }

    fn would_restart_wait(&self, core: &QueueCore<H>) -> bool {
        core.timers.armed_for(Timer::Idle).is_some()
    }

    fn activate(&mut self, _: &mut QueueCore<H>, _: Slot) {
        self.in_driver.increment();
        if self.in_driver > HW_QUEUE_DEPTH {
            self.hw_queue = true;
        }
    }

    fn deactivate(&mut self, _: &mut QueueCore<H>, _: Slot) {
        self.in_driver.decrement();
    }

    fn complete(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let (owner, op) = (core.tables.requests[request].owner, core.tables.requests[request].op);
        let now = core.ticks();
        self.in_driver.decrement();
        let queue = &mut self.queues[owner];
        let kind = kind_of(op);
        queue.on_dispatch[kind].decrement();
        if !queue.is_idle_class() {
            self.last_end = now;
        }
        if queue.dispatched() == 0 && queue.filed.is_some() {
            queue.service_last = now;
            self.filing.refile(&mut self.queues, owner, false);
        }
        if kind == SYNC {
            core.context_of(request).history.last_end = now;
        }
        if self.active != owner || owner == NIL {
            return;
        }
        if now > self.queues[owner].slice_end {
            self.expire(core, false);
        } else if kind == SYNC && self.queues[owner].tree.is_empty() && !self.arm_idle(core) {
            self.kick(core);
        }
    }

    fn is_empty(&self) -> bool {
        self.busy_queues == 0
    }

    fn slice(&self, core: &QueueCore<H>) -> Option<ActiveSlice> {
        let queue = &self.queues[self.active];
        let until_ns = (queue.slice_end > 0).then(|| core.clock.time_of_tick(queue.slice_end));
        (self.active != NIL).then(|| ActiveSlice { queue: queue.name(), until_ns })
    }

    fn exit(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let queues = core::mem::replace(&mut core.tables.contexts[context].history.queues, [NIL; 2]);
        for queue in queues {
            if queue != NIL {
                if self.active == queue {
                    self.expire(core, false);
                }
                self.unreference(core, queue);
            }
        }
    }

    fn priority_changed(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let [old, sync] = core.tables.contexts[context].history.queues;
        if old != NIL {
            let new = self.get_queue(core, context, Op::Write);
            core.tables.contexts[context].history.queues[ASYNC] = new;
            self.unreference(core, old);
        }
        if sync != NIL {
            self.queues[sync].priority_changed = true;
        }
    }

    fn timer(&mut self, core: &mut QueueCore<H>, timer: Timer) {
        match timer {
            Timer::Grace => self.grace_over(core),
            _ => self.idle_over(core),
        }
    }
}

impl<H: HostTypes> CfqV3<H> {
    /// Sorts a request into its queue and files the queue if it was empty.
    fn sort(&mut self, core: &mut QueueCore<H>, owner: Slot, request: Slot) {
        let sector = core.tables.requests[request].sector;
        self.queues[owner].tree.insert(&mut core.tables.nodes, request, sector);
        sorted_fifo::move_alias(self, core, request, |cfq| &mut cfq.queues[owner].tree, Self::move_to_dispatch);
        if self.queues[owner].filed.is_none() {
            self.busy_queues.increment();
            self.filing.refile(&mut self.queues, owner, false);
        }
        let next = self.queues[owner].next;
        self.queues[owner].next = self.chooser().best(core, next, request, self.last_sector);
    }

    /// Removes a request from its queue, and the queue from its list after its last request.
    fn remove(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let owner = core.tables.requests[request].owner;
        let queue = &mut self.queues[owner];
        queue.tree.remove(&mut core.tables.nodes, request);
        queue.fifo.remove(&mut core.tables.arrivals, request);
        if queue.tree.is_empty() && queue.filed.is_some() {
            self.filing.unfile(&mut self.queues, owner);
            self.busy_queues.decrement();
        }
    }

    fn move_to_dispatch(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let (owner, op) = (core.tables.requests[request].owner, core.tables.requests[request].op);
        self.queues[owner].next = self.neighbour(core, request);
        self.remove(core, request);
        let on_dispatch = &mut self.queues[owner].on_dispatch[kind_of(op)];
        on_dispatch.increment();
        core.dispatch_sort(request);
        let tail = core.dispatch.tail();
        self.last_sector = core.tables.requests[tail].end();
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
            self.dispatch_slice.increment();
            moved.increment();
            if self.active_context == NIL {
                self.follow(core, context);
            }
        }
        self.after_round(core, slot);
        moved
    }

    /// The oldest request of a queue if it is overdue; returned once a slice.
    fn take_overdue(&mut self, core: &mut QueueCore<H>, slot: Slot) -> Slot {
        let queue = &mut self.queues[slot];
        let oldest = queue.fifo.head();
        if queue.fifo_used || oldest == NIL {
            return NIL;
        }
        let expire = self.tunables.fifo_expire[usize::from(queue.is_for_sync())];
        if core.ticks() <= core.tables.arrivals[oldest].deadline.saturating_add(expire) {
            return NIL;
        }
        queue.fifo_used = true;
        core.note(|core| Note::Overdue { token: core.tables.requests[oldest].token });
        oldest
    }

    /// Of the two neighbours of a request that leaves its queue, the one nearer to the head; the
    /// lowest request follows the highest.
    fn neighbour(&self, core: &QueueCore<H>, request: Slot) -> Slot {
        let owner = core.tables.requests[request].owner;
        self.chooser().neighbour(core, &self.queues[owner].tree, request, self.last_sector)
    }

    fn chooser(&self) -> Chooser {
        // A queue has either sync or async requests, and in this kernel metadata did not precede
        // data.
        self.tunables.chooser(false)
    }

    fn drain(&mut self, core: &mut QueueCore<H>) -> u32 {
        let mut moved = 0u32;
        loop {
            let slot = self.filing.first_of_all();
            let request = self.queues[slot].next;
            if slot == NIL || request == NIL {
                break;
            }
            self.move_to_dispatch(core, request);
            moved.increment();
        }
        self.expire(core, false);
        moved
    }

    /// Looks a queue up by process id and priority, the newest first; [`NIL`] if there is none.
    /// A context without a priority of its own gets any queue of its key.
    fn find_queue(&self, core: &QueueCore<H>, context: Slot, op: Op) -> Slot {
        let context = &core.tables.contexts[context];
        let pid = (op == Op::Read).then_some(context.pid);
        let mut at = self.by_pid.first(key_of(pid));
        while at != NIL {
            let queue = &self.queues[at];
            if queue.pid == pid && (!context.priority.is_set() || queue.original == context.priority) {
                return at;
            }
            at = queue.by_pid.next;
        }
        NIL
    }

    /// The queue for a context's requests, created if necessary, with one more reference. [`NIL`]:
    /// no room.
    fn get_queue(&mut self, core: &mut QueueCore<H>, context: Slot, op: Op) -> Slot {
        let found = self.find_queue(core, context, op);
        if found != NIL {
            self.reference(found);
            return found;
        }
        let slot = self.free_queues.pop_front(&mut self.queues);
        if slot == NIL {
            return NIL;
        }
        let pid = (op == Op::Read).then_some(core.tables.contexts[context].pid);
        self.queues[slot] = Queue {
            pid,
            idle_window: true,
            slice_left: self.tunables.slice_idle.saturating_mul(2),
            priority_changed: true,
            references: 1,
            ..Queue::default()
        };
        self.by_pid.insert::<ByPid, _, _>(&mut self.queues, key_of(pid), slot);
        self.read_priority(core, slot, context);
        slot
    }

    /// Reads a queue's priority again from its context, if it has changed.
    fn read_priority(&mut self, core: &mut QueueCore<H>, slot: Slot, context: Slot) {
        let queue = &mut self.queues[slot];
        if !queue.priority_changed {
            return;
        }
        queue.priority_changed = false;
        let priority: Priority = core.tables.contexts[context].effective_priority();
        if priority.class() == Class::Idle {
            queue.idle_window = false;
        }
        queue.priority = priority;
        queue.original = priority;
        if queue.filed.is_some() {
            self.filing.refile(&mut self.queues, slot, false);
        }
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
        if queue.references > 0 {
            return;
        }
        if self.active == slot {
            self.expire(core, false);
        }
        let key = key_of(self.queues[slot].pid);
        self.by_pid.remove::<ByPid, _, _>(&mut self.queues, key, slot);
        self.free_queues.push_front(&mut self.queues, slot);
    }
}

/// Every write is async: in 2.6.18 the flag of sync writes does not reach CFQ.
#[inline]
fn kind_of(op: Op) -> usize {
    if op == Op::Read { SYNC } else { ASYNC }
}
