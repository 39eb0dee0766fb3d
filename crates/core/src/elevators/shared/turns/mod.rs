//! Queues of processes that take turns by WF2Q+: the common part of the first BFQ and of CFQ
//! scheduled by WF2Q+.
//!
//! Each process has a queue of its sync requests; the processes of one priority share a queue of
//! async requests. A queue with requests waits in the engine (`wf2q`) until it becomes the active
//! queue for a turn. The [`Measure`] defines the unit of a turn, its length and its charge: sectors
//! in `bfq_v0`, time in `cfq_wf2q`. Within a turn requests go by sector, up to a quantum at a time.
//! When the queue is empty, the disk may be kept idle for its process for a few milliseconds.
//!
//! This file has the path of a request: insert, dispatch, complete. `assignment` has the queues
//! with priorities and groups, `history` the statistics of processes and of the device, and idling.

mod assignment;
mod history;
mod queue;

use super::async_queues::AsyncQueues;
use super::slice_tunables::SliceTunables;
use super::wf2q::{self, Engine, IDLE, Insertion, REAL_TIME, ROOT_LEVEL, Removal};
use crate::bio::Bio;
use crate::clock::{Clock, Timer};
use crate::collections::{Arena, Count, List, NIL, Slot};
use crate::elevator::capacity::Capacity;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker, TableOf};
use crate::elevator::{ActiveSlice, Elevator, MakeTables, Merge, hooks};
use crate::elevators::shared::sorted_fifo;
use crate::event::{Expiry, Note};
use crate::priority::Priority;

pub(crate) use history::SEEKY_SECTORS;
pub(crate) use queue::Queue;
use queue::Spare;

/// The index of a context's async queue.
const ASYNC: usize = 0;
/// The index of a context's sync queue.
pub(crate) const SYNC: usize = 1;
/// The mark in a context's history that its priority has changed since its last request.
const PRIORITY_CHANGED: u8 = 1;
/// The multiple of its quantum that a queue may have in flight when it is the only one.
const ALONE_QUANTUMS: u32 = 4;

/// The unit of turns: the parts of an elevator in which those with turns differ.
pub(crate) trait Measure: Sized + 'static {
    /// Whether groups share the disk.
    const GROUPS: bool;
    /// Whether one call may move batches of several queues to the dispatch list. A turn can then
    /// end, and the next begin, before the device has finished the moved requests. This matters
    /// only if turns are charged for time.
    const MANY_BATCHES: bool;
    /// The data of a queue about its turns.
    type Own: Copy + Default + 'static;

    /// Creates the measure with default tunables.
    fn new(clock: &Clock) -> Self;
    /// The rules of the engine.
    fn rules() -> wf2q::Rules;
    /// The tunables common to all measures.
    fn shared(&self) -> &SliceTunables;
    /// The value of a tunable.
    fn tunable(&self, index: usize) -> i64;
    /// Sets a tunable.
    fn set_tunable<H: HostTypes>(turns: &mut Turns<H, Self>, core: &mut QueueCore<H>, index: usize, value: i64);
    /// The weight of a priority.
    fn weight_of(&self, priority: Priority) -> u32;
    /// Whether a process that changes its priority takes its async queue to an unused priority, as
    /// shipped in the first BFQ.
    fn moves_async_queue(&self) -> bool {
        false
    }
    /// The number of async requests moved at a time.
    fn async_quantum(&self) -> u32;

    /// Initialises the data of a queue that was created or emptied by force.
    fn begin_with<H: HostTypes>(turns: &mut Turns<H, Self>, slot: Slot);
    /// Charges for the time since the last call, in measures of time.
    fn account<H: HostTypes>(_turns: &mut Turns<H, Self>, _block: &QueueCore<H>) {}
    /// Sets the budget of a queue that waits for its turn; it has a next request.
    fn grant_budget<H: HostTypes>(turns: &mut Turns<H, Self>, core: &QueueCore<H>, slot: Slot);
    /// The part of its queue's budget that a request uses when it is moved.
    fn charge_of<H: HostTypes>(core: &QueueCore<H>, request: Slot) -> u64;
    /// Begins the turn of the active queue.
    fn begin_turn<H: HostTypes>(turns: &mut Turns<H, Self>, core: &mut QueueCore<H>);
    /// Returns true if the time of the active queue's turn is over.
    fn is_over<H: HostTypes>(turns: &Turns<H, Self>, core: &QueueCore<H>) -> bool;
    /// The latest end of the active queue's turn, in ns of the host's time.
    fn until_ns<H: HostTypes>(turns: &Turns<H, Self>, core: &QueueCore<H>) -> Option<u64>;
    /// Ends the turn of the active queue for this reason: updates its data and calls
    /// [`Turns::end_service`]. `in_choice`: called while the next queue is selected.
    /// `idle_since_ns`: the start of an idle period of the disk, in ns since boot.
    fn end_turn<H: HostTypes>(
        turns: &mut Turns<H, Self>,
        core: &mut QueueCore<H>,
        reason: Expiry,
        in_choice: bool,
        idle_since_ns: Option<u64>,
    );
    /// Returns true if a queue's turn ends after a batch of this many requests while others wait.
    fn ends_after(&self, _sync: bool, _idle_class: bool, _moved: u32) -> bool {
        false
    }
    /// Handles the completion of a request of the active queue.
    fn completed<H: HostTypes>(turns: &mut Turns<H, Self>, core: &mut QueueCore<H>, request: Slot);
    /// Updates further statistics on the arrival of a request of a sync queue.
    fn history_updated(_own: &mut Self::Own, _seek_mean: u64) {}
}

/// The tables of the elevator.
pub(crate) struct Tables<H: HostTypes, M: Measure> {
    queues: H::Slots<Queue<M::Own>>,
    engine: wf2q::Tables<H>,
    async_queues: H::Slots<AsyncQueues>,
}

/// The state of the elevator.
pub(crate) struct Turns<H: HostTypes, M: Measure> {
    pub queues: TableOf<H, Queue<M::Own>>,
    pub engine: Engine<H>,
    free_queues: List<Spare>,
    /// Queues to which only the engine refers, as their past service still counts.
    remembered: List<Spare>,
    /// The shared async queues of each group.
    async_queues: TableOf<H, AsyncQueues>,
    /// The number of queues that have requests or are active.
    pub busy_queues: u32,
    /// The active queue, or [`NIL`].
    pub active: Slot,
    /// The number of queued requests.
    queued: u32,
    /// The number of requests in the device.
    pub in_driver: u32,
    /// Requests of sync queues on the dispatch list or in the device.
    sync_in_flight: u32,
    /// The number of requests already moved of the active queue's batch, which a layer above cut
    /// short.
    batch_moved: u32,
    /// The end of the request that the driver took last.
    last_position: u64,
    /// Whether the device counts as having its own queue.
    hw_tag: bool,
    hw_tag_samples: u32,
    most_in_driver: u32,
    /// The start of the current idle period of the disk, in ns since boot.
    idle_since_ns: u64,
    pub measure: M,
}

impl<H: HostTypes, M: Measure> MakeTables<H> for Turns<H, M> {
    fn make_tables<C: TableMaker<H>>(capacity: Capacity, maker: &mut C) -> Tables<H, M> {
        let groups = if M::GROUPS { capacity.group_slots() } else { 1 };
        // One sync queue per process, as many that only the engine refers to, and the async queues.
        let queues = capacity.contexts.saturating_mul(2).saturating_add(AsyncQueues::COUNT.saturating_mul(groups));
        Tables {
            queues: maker.table(queues),
            engine: Engine::<H>::make_tables(queues, groups, maker),
            async_queues: maker.table(groups),
        }
    }
}

impl<H: HostTypes, M: Measure> Elevator<H> for Turns<H, M> {
    type Tables = Tables<H, M>;

    fn new(core: &mut QueueCore<H>, tables: Tables<H, M>) -> Self {
        let engine = Engine::new(tables.engine, M::rules(), core.ticks());
        let mut queues: TableOf<H, Queue<M::Own>> = Arena::new(tables.queues);
        let mut free_queues = List::default();
        for slot in 0..queues.capacity().min(engine.queue_capacity()) {
            free_queues.push_back(&mut queues, slot);
        }
        let mut new = Turns {
            queues,
            engine,
            free_queues,
            remembered: List::default(),
            async_queues: Arena::new(tables.async_queues),
            busy_queues: 0,
            active: NIL,
            queued: 0,
            in_driver: 0,
            sync_in_flight: 0,
            batch_moved: 0,
            last_position: 0,
            hw_tag: true,
            hw_tag_samples: 0,
            most_in_driver: 0,
            idle_since_ns: 0,
            measure: M::new(&core.clock),
        };
        new.add_groups(core);
        new
    }

    fn into_tables(self) -> Tables<H, M> {
        Tables {
            queues: self.queues.into_slots(),
            engine: self.engine.into_tables(),
            async_queues: self.async_queues.into_slots(),
        }
    }

    fn tunable(&self, index: usize) -> i64 {
        self.measure.tunable(index)
    }

    fn set_tunable(&mut self, core: &mut QueueCore<H>, index: usize, value: i64) {
        M::set_tunable(self, core, index, value);
    }

    fn allow_merge(&mut self, core: &mut QueueCore<H>, request: Slot, bio: &Bio) -> bool {
        let sync = bio.is_sync();
        if sync && !core.tables.requests[request].is_sync() {
            return false;
        }
        let queue = queue_of(core, bio.context.slot, sync);
        queue != NIL && queue == core.tables.requests[request].owner
    }

    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        let queue = queue_of(core, bio.context.slot, bio.is_sync());
        if queue == NIL { NIL } else { self.queues[queue].tree.find(&core.tables.nodes, bio.end()) }
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        let owner = core.tables.requests[request].owner;
        if merge == Merge::Back || owner == NIL {
            return;
        }
        M::account(self, core);
        self.queues[owner].tree.remove(&mut core.tables.nodes, request);
        self.queued.decrement();
        self.sort(core, owner, request);
    }

    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        M::account(self, core);
        let owner = core.tables.requests[absorbed].owner;
        if owner == core.tables.requests[request].owner {
            // The request takes over the earlier deadline but keeps its position in order of
            // arrival.
            sorted_fifo::take_older_deadline(core, request, absorbed);
        }
        self.remove(core, absorbed);
        self.free_forgotten();
    }

    fn allocate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let context = core.tables.requests[request].context;
        let sync = core.tables.requests[request].is_sync();
        let queue = self.queue_for(core, context, sync);
        self.reference(queue);
        core.tables.requests[request].owner = queue;
    }

    fn free(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let owner = core::mem::replace(&mut core.tables.requests[request].owner, NIL);
        self.unreference(owner);
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let owner = core.tables.requests[request].owner;
        if owner == NIL {
            // The storage has no room for another queue: serve the request in order of arrival.
            return core.dispatch_sort(request);
        }
        M::account(self, core);
        self.sort(core, owner, request);
        let expire = self.measure.shared().fifo_expire[usize::from(self.queues[owner].is_sync())];
        core.tables.arrivals[request].deadline = core.ticks().saturating_add(expire);
        self.queues[owner].fifo.push_back(&mut core.tables.arrivals, request);
        self.update_history(core, owner, request);
        if owner == self.active && core::mem::take(&mut self.queues[owner].wait_request) {
            core.timers.cancel(Timer::Idle);
            let name = self.queues[owner].name();
            core.note(|_| Note::IdleHit { queue: name });
            core.run_now();
        }
        self.free_forgotten();
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        let mut moved = 0u32;
        M::account(self, core);
        if force {
            return self.drain(core);
        }
        while self.busy_queues > 0 {
            let slot = self.select(core);
            if slot == NIL || self.has_enough(slot) {
                break;
            }
            self.queues[slot].wait_request = false;
            core.timers.cancel(Timer::Idle);
            moved = moved.saturating_add(self.dispatch_batch(core, slot));
            if moved > 0 && (!M::MANY_BATCHES || moved >= core.batch_max) {
                break;
            }
        }
        self.free_forgotten();
        moved
    }

    /// Dispatches requests of real-time queues. An active queue of another class is preempted, as
    /// far as the classes can be compared (not across groups). An active real-time queue without
    /// requests is waited for as usual.
    fn dispatch_real_time(&mut self, core: &mut QueueCore<H>) -> u32 {
        let waits = !self.engine.levels[ROOT_LEVEL].tree(REAL_TIME).active.is_empty();
        let active = &self.engine.entities[self.active];
        let has_disk = self.active != NIL && active.class == REAL_TIME && active.level == ROOT_LEVEL;
        let goes_on = has_disk && self.queues[self.active].next != NIL;
        if !waits && !goes_on {
            return 0;
        }
        if self.active != NIL && !has_disk {
            M::account(self, core);
            M::end_turn(self, core, Expiry::Preempted, false, None);
        }
        hooks::dispatch(self, core, false)
    }

    fn activate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.in_driver.increment();
        self.last_position = core.tables.requests[request].end();
    }

    fn deactivate(&mut self, _: &mut QueueCore<H>, _: Slot) {
        self.in_driver.decrement();
    }

    fn complete(&mut self, core: &mut QueueCore<H>, request: Slot) {
        M::account(self, core);
        let owner = core.tables.requests[request].owner;
        self.detect_device_queue();
        self.in_driver.decrement();
        if owner != NIL {
            let queue = &mut self.queues[owner];
            queue.in_flight.decrement();
            if queue.is_sync() {
                self.sync_in_flight.decrement();
            }
        }
        if core.tables.requests[request].is_sync() {
            let now = core.ticks();
            core.context_of(request).history.last_end = now;
        }
        if owner != NIL && owner == self.active {
            M::completed(self, core, request);
        }
        if self.in_driver == 0 {
            self.kick(core);
        }
        self.free_forgotten();
    }

    fn is_empty(&self) -> bool {
        self.queued == 0
    }

    fn slice(&self, core: &QueueCore<H>) -> Option<ActiveSlice> {
        let slice = || ActiveSlice { queue: self.queues[self.active].name(), until_ns: M::until_ns(self, core) };
        (self.active != NIL).then(slice)
    }

    fn exit(&mut self, core: &mut QueueCore<H>, context: Slot) {
        M::account(self, core);
        let queues = core::mem::replace(&mut core.tables.contexts[context].history.queues, [NIL; 2]);
        for queue in queues {
            if queue != NIL {
                if queue == self.active {
                    self.end_service(core);
                    self.kick(core);
                }
                self.unreference(queue);
            }
        }
        self.free_forgotten();
    }

    fn priority_changed(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let history = &mut core.tables.contexts[context].history;
        if history.known {
            history.marks |= PRIORITY_CHANGED;
        }
    }

    fn group_created(&mut self, core: &mut QueueCore<H>, group: Slot) {
        self.add_group(core, group);
    }

    fn group_weights_changed(&mut self, core: &mut QueueCore<H>, group: Slot) {
        self.update_group_weight(core, group);
    }

    fn release_group(&mut self, core: &mut QueueCore<H>, group: Slot) -> bool {
        self.remove_group(core, group)
    }

    fn group_changed(&mut self, core: &mut QueueCore<H>, context: Slot) {
        self.move_to_group(core, context);
    }

    fn timer(&mut self, core: &mut QueueCore<H>, _: Timer) {
        M::account(self, core);
        self.idle_over(core);
        self.free_forgotten();
    }
}

impl<H: HostTypes, M: Measure> Turns<H, M> {
    /// Sorts a request into its queue and sets the queue's budget for the request that is now next.
    fn sort(&mut self, core: &mut QueueCore<H>, owner: Slot, request: Slot) {
        let sector = core.tables.requests[request].sector;
        self.queues[owner].tree.insert(&mut core.tables.nodes, request, sector);
        // Of two requests at one sector the older is not considered.
        sorted_fifo::move_alias(self, core, request, |turns| &mut turns.queues[owner].tree, Self::move_to_dispatch);
        self.queued.increment();
        let (chooser, next) = (self.measure.shared().chooser(true), self.queues[owner].next);
        self.queues[owner].next = chooser.best(core, next, request, self.last_position);
        if !self.queues[owner].busy {
            M::grant_budget(self, core, owner);
            self.set_busy(owner, true);
            self.wait_for_turn(core, owner);
        } else if owner != self.active {
            M::grant_budget(self, core, owner);
            self.requeue_waiting(core, owner);
        }
    }

    /// Removes a request from its queue and updates the queue's next request. A waiting queue gets
    /// a budget for it, or stops waiting if there is none.
    fn remove(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let owner = core.tables.requests[request].owner;
        if owner == NIL {
            return;
        }
        if self.queues[owner].next == request {
            let (chooser, tree) = (self.measure.shared().chooser(true), self.queues[owner].tree);
            self.queues[owner].next = chooser.neighbour(core, &tree, request, self.last_position);
            if self.queues[owner].next != NIL && owner != self.active {
                M::grant_budget(self, core, owner);
                self.requeue_waiting(core, owner);
            }
        }
        let queue = &mut self.queues[owner];
        queue.tree.remove(&mut core.tables.nodes, request);
        queue.fifo.remove(&mut core.tables.arrivals, request);
        self.queued.decrement();
        if queue.tree.is_empty() && queue.busy && owner != self.active {
            self.set_busy(owner, false);
            self.stop_waiting(core, owner, false);
        }
    }

    fn move_to_dispatch(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let owner = core.tables.requests[request].owner;
        self.remove(core, request);
        let queue = &mut self.queues[owner];
        queue.in_flight.increment();
        if queue.is_sync() {
            self.sync_in_flight.increment();
        }
        core.dispatch_sort(request);
    }

    fn set_busy(&mut self, slot: Slot, busy: bool) {
        debug_assert!(self.queues[slot].busy != busy);
        self.queues[slot].busy = busy;
        self.busy_queues = if busy { self.busy_queues.saturating_add(1) } else { self.busy_queues.saturating_sub(1) };
    }

    /// Selects the queue to dispatch from, or [`NIL`] to wait.
    fn select(&mut self, core: &mut QueueCore<H>) -> Slot {
        if self.active == NIL {
            return self.next_turn(core);
        }
        let queue = &self.queues[self.active];
        let reason = if M::is_over(self, core) {
            Expiry::TimedOut
        } else if queue.next != NIL {
            if M::charge_of(core, queue.next) <= self.left(self.active) {
                return self.active;
            }
            Expiry::Exhausted
        } else if queue.wait_request || (queue.in_flight > 0 && queue.idle_window) {
            return NIL;
        } else {
            Expiry::NoMoreRequests
        };
        M::end_turn(self, core, reason, true, None);
        self.next_turn(core)
    }

    /// Makes the queue whose turn is next the active one.
    fn next_turn(&mut self, core: &mut QueueCore<H>) -> Slot {
        debug_assert!(self.active == NIL);
        let slot = if M::GROUPS { self.engine.pick_next(core.ticks()) } else { self.engine.flat_select() };
        self.active = slot;
        if slot == NIL {
            return NIL;
        }
        self.engine.entities[slot].service = 0;
        self.batch_moved = 0;
        let queue = &mut self.queues[slot];
        debug_assert!(queue.busy && queue.next != NIL, "a waiting queue has requests");
        queue.fifo_checked = false;
        let (name, level) = (queue.name(), queue.priority.level());
        core.note(|_| Note::Activate { queue: name, level });
        M::begin_turn(self, core);
        slot
    }

    /// The rest of a queue's budget.
    pub fn left(&self, slot: Slot) -> u64 {
        let entity = &self.engine.entities[slot];
        entity.budget.saturating_sub(entity.service)
    }

    /// Returns true if the active queue has its maximum in flight, or must let sync requests pass.
    fn has_enough(&self, slot: Slot) -> bool {
        let (queue, quantum) = (&self.queues[slot], self.quantum(slot));
        let full = queue.in_flight >= quantum
            && (self.busy_queues > 1 || queue.in_flight >= quantum.saturating_mul(ALONE_QUANTUMS));
        full || (!queue.is_sync() && self.sync_in_flight > 0)
    }

    /// The number of requests moved at a time.
    fn quantum(&self, slot: Slot) -> u32 {
        if !self.queues[slot].is_sync() {
            self.measure.async_quantum()
        } else if self.engine.entities[slot].class == IDLE {
            1
        } else {
            self.measure.shared().quantum
        }
    }

    /// Moves up to a quantum of requests of the active queue. If the batch is cut short, the next
    /// call continues it.
    fn dispatch_batch(&mut self, core: &mut QueueCore<H>, slot: Slot) -> u32 {
        let (begun, quantum) = (core::mem::take(&mut self.batch_moved), self.quantum(slot));
        let (mut moved, most) = (0u32, quantum.saturating_sub(begun).min(core.batch_max));
        while moved < most && self.queues[slot].next != NIL {
            let overdue = self.take_overdue(core, slot);
            let request = if overdue != NIL { overdue } else { self.queues[slot].next };
            let charge = M::charge_of(core, request);
            if charge > self.left(slot) {
                self.queues[slot].next = request;
                M::end_turn(self, core, Expiry::Exhausted, false, None);
                return moved;
            }
            if charge > 0 {
                self.engine.charge(slot, charge);
            }
            self.move_to_dispatch(core, request);
            moved.increment();
        }
        let batch = begun.saturating_add(moved);
        if moved == core.batch_max && batch < quantum && self.queues[slot].next != NIL {
            self.batch_moved = batch;
            return moved;
        }
        let (sync, idle_class) = (self.queues[slot].is_sync(), self.engine.entities[slot].class == IDLE);
        if self.busy_queues > 1 && self.measure.ends_after(sync, idle_class, batch) {
            M::end_turn(self, core, Expiry::Exhausted, false, None);
        }
        moved
    }

    /// Removes and returns the oldest request of a queue if it is overdue when the queue's turn
    /// begins.
    fn take_overdue(&mut self, core: &mut QueueCore<H>, slot: Slot) -> Slot {
        let queue = &mut self.queues[slot];
        let oldest = queue.fifo.head();
        if core::mem::replace(&mut queue.fifo_checked, true) || oldest == NIL {
            return NIL;
        }
        if core.ticks() < core.tables.arrivals[oldest].deadline {
            return NIL;
        }
        core.note(|core| Note::Overdue { token: core.tables.requests[oldest].token });
        oldest
    }

    /// Ends the turn of the active queue: it waits again, or stops waiting if it has no requests.
    pub fn end_service(&mut self, core: &mut QueueCore<H>) {
        let slot = core::mem::replace(&mut self.active, NIL);
        if slot == NIL {
            return;
        }
        core.timers.cancel(Timer::Idle);
        self.queues[slot].wait_request = false;
        if self.queues[slot].next == NIL {
            self.set_busy(slot, false);
            self.stop_waiting(core, slot, true);
        } else if M::GROUPS {
            self.engine.raise(slot, Insertion::Expiry, core.ticks());
            self.out_of_service(slot);
        } else {
            self.engine.flat_requeue(slot);
        }
    }

    fn drain(&mut self, core: &mut QueueCore<H>) -> u32 {
        let mut moved = 0u32;
        self.end_service(core);
        loop {
            let slot = self.next_turn(core);
            if slot == NIL {
                break;
            }
            while self.queues[slot].next != NIL {
                let next = self.queues[slot].next;
                self.move_to_dispatch(core, next);
                moved.increment();
            }
            M::begin_with(self, slot);
            self.end_service(core);
        }
        debug_assert!(self.queued == 0 && self.busy_queues == 0);
        self.free_forgotten();
        moved
    }

    /// Lets a queue that had no requests wait for its turn.
    fn wait_for_turn(&mut self, core: &QueueCore<H>, slot: Slot) {
        if M::GROUPS {
            self.engine.raise(slot, Insertion::Pending, core.ticks());
        } else {
            self.engine.flat_activate(slot);
        }
    }

    /// Lets a waiting queue wait behind others of the same finish, with its current budget.
    fn requeue_waiting(&mut self, core: &QueueCore<H>, slot: Slot) {
        if M::GROUPS {
            self.engine.raise(slot, Insertion::Pending, core.ticks());
        } else {
            self.engine.flat_requeue(slot);
        }
    }

    /// Stops a queue without requests from waiting. `served`: it has had its turn.
    fn stop_waiting(&mut self, core: &QueueCore<H>, slot: Slot, served: bool) {
        if M::GROUPS {
            let reason = if served { Removal::Expiry } else { Removal::Empty };
            self.engine.deactivate(slot, reason, core.ticks());
            if served {
                self.out_of_service(slot);
            }
        } else {
            self.engine.flat_deactivate(slot, true);
        }
    }

    /// Accounts for the service of a queue that left service, and of its groups.
    fn out_of_service(&mut self, slot: Slot) {
        self.engine.clear_current(slot);
        let mut entity = slot;
        while entity != NIL {
            self.engine.entities[entity].service = 0;
            entity = self.engine.levels[self.engine.entities[entity].level].group;
        }
    }

    /// Schedules a run of the queue if there are requests.
    pub fn kick(&self, core: &mut QueueCore<H>) {
        if self.queued > 0 {
            core.kick();
        }
    }
}

/// A context's queue for sync or async requests, or [`NIL`].
fn queue_of<H: HostTypes>(core: &QueueCore<H>, context: Slot, sync: bool) -> Slot {
    let [asynchronous, synchronous] = core.tables.contexts[context].history.queues;
    if sync { synchronous } else { asynchronous }
}

/// The engine's level of a context's queues.
fn level_of<H: HostTypes, M: Measure>(core: &QueueCore<H>, context: Slot) -> Slot {
    if M::GROUPS { core.tables.contexts[context].group } else { ROOT_LEVEL }
}
