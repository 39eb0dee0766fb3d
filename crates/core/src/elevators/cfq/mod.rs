//! CFQ's final form: "cfq", as in Linux 4.19 (2.6.33 to 4.20 had forms of it, from 4.8 on with a
//! clock of nanoseconds).
//!
//! The idea: groups share the disk by weight. Within a group real time precedes best effort, and
//! best effort precedes idle. Within a class, async requests, sync requests of seeky contexts, and
//! other sync requests are served in turns. Within such a workload each context has the disk for a
//! slice of time, scaled by its priority and the number of queues. The disk is kept idle for a few
//! milliseconds for a context that reads sequentially; seeky contexts share the idling, as does
//! the last queue of a group. Two contexts that read adjacent sectors share a queue.
//!
//! The state is in [`Cfq`]. `contexts` has the state of contexts, `groups` the tree of shares,
//! `workload` the service trees, `slice` the active queue, `idling` the idling, `preemption`
//! the preemption of the active queue, `cooperators` the sharing of queues. This file has the path
//! of a request: allocate, insert, dispatch, complete.

mod contexts;
mod cooperators;
mod groups;
mod idling;
mod preemption;
mod queue;
mod slice;
mod tunables;
mod workload;

use crate::bio::{Bio, Flags, Op};
use crate::clock::Timer;
use crate::collections::{Arena, Count, List, NIL, Node, Slot, Tree};
use crate::elevator::capacity::Capacity;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker, TableOf};
use crate::elevator::{ActiveSlice, Elevator, MakeTables, MayQueue, Merge, hooks};
use crate::elevators::shared::async_queues::AsyncQueues;
use crate::elevators::shared::chooser::Chooser;
use crate::event::Note;
use crate::priority::Class;

use contexts::ContextState;
use cooperators::POSITION_TREES;
use groups::GroupState;
use idling::HwQueue;
use queue::{FreeQueues, Kind, Queue};
pub(crate) use tunables::INFO;
use tunables::Tunables;
use workload::FilingPosition;

/// The index of a context's async queue, and of counts of async requests.
const ASYNC: usize = 0;
/// The index of a context's sync queue, and of counts of sync requests.
const SYNC: usize = 1;

/// The maximum size of a small request: a page (4 KiB).
const SMALL_SECTORS: u32 = 8;
const NS_PER_S: u64 = 1_000_000_000;

/// The tables of the elevator.
pub(crate) struct Tables<H: HostTypes> {
    queues: H::Slots<Queue>,
    service_nodes: H::Slots<Node>,
    positions: H::Slots<Node>,
    groups: H::Slots<GroupState>,
    group_places: H::Slots<Node>,
    contexts: H::Slots<ContextState>,
}

/// The state of the elevator.
pub(crate) struct Cfq<H: HostTypes> {
    queues: TableOf<H, Queue>,
    free_queues: List<FreeQueues>,
    /// The nodes of queues in the service trees of their groups.
    service_nodes: TableOf<H, Node>,
    /// The nodes of queues by the sector of their next request, and the trees: one per level.
    positions: TableOf<H, Node>,
    position_trees: [Tree; POSITION_TREES],
    groups: TableOf<H, GroupState>,
    group_places: TableOf<H, Node>,
    /// Groups with queues, by virtual time.
    group_tree: Tree,
    min_vdisktime: u64,
    contexts: TableOf<H, ContextState>,
    /// The class and kind being served, and the end of its time; while a queue is active only the
    /// kind matters.
    serving_class: Class,
    serving_kind: Kind,
    workload_expires: u64,
    /// The active queue, or [`NIL`].
    active: Slot,
    /// The context of the first request dispatched in this slice, or [`NIL`]; its entry is held, as
    /// the process may exit meanwhile.
    active_context: Slot,
    /// The number of filed queues: those with requests, and the active one.
    busy_queues: u32,
    busy_sync_queues: u32,
    /// The number of queued requests.
    queued: u32,
    /// Requests on the dispatch list or in the device: async, sync.
    in_flight: [u32; 2],
    in_driver: u32,
    hw_queue: HwQueue,
    /// The end of the request that the driver took last.
    last_position: u64,
    /// The time at which a sync request last completed late.
    last_delayed_sync: u64,
    tunables: Tunables,
}

impl<H: HostTypes> MakeTables<H> for Cfq<H> {
    fn make_tables<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Tables<H> {
        let groups = capacity.group_slots();
        let queues = capacity.queues().saturating_add(groups.saturating_mul(AsyncQueues::COUNT));
        Tables {
            queues: maker.table(queues),
            service_nodes: maker.table(queues),
            positions: maker.table(queues),
            groups: maker.table(groups),
            group_places: maker.table(groups),
            contexts: maker.table(capacity.contexts),
        }
    }
}

impl<H: HostTypes> Elevator<H> for Cfq<H> {
    type Tables = Tables<H>;

    fn new(core: &mut QueueCore<H>, tables: Tables<H>) -> Self {
        let now = core.counted_ns();
        let mut queues: TableOf<H, Queue> = Arena::new(tables.queues);
        let (service_nodes, positions): (TableOf<H, Node>, TableOf<H, Node>) =
            (Arena::new(tables.service_nodes), Arena::new(tables.positions));
        let mut free_queues = List::<FreeQueues>::default();
        for slot in 0..queues.capacity().min(service_nodes.capacity()).min(positions.capacity()) {
            free_queues.push_back(&mut queues, slot);
        }
        let mut groups: TableOf<H, GroupState> = Arena::new(tables.groups);
        for slot in 0..groups.capacity() {
            groups[slot] = GroupState::new(now);
        }
        Cfq {
            queues,
            free_queues,
            service_nodes,
            positions,
            position_trees: [Tree::default(); POSITION_TREES],
            groups,
            group_places: Arena::new(tables.group_places),
            group_tree: Tree::default(),
            min_vdisktime: 0,
            contexts: Arena::new(tables.contexts),
            serving_class: Class::BestEffort,
            serving_kind: Kind::Async,
            workload_expires: now,
            active: NIL,
            active_context: NIL,
            busy_queues: 0,
            busy_sync_queues: 0,
            queued: 0,
            in_flight: [0; 2],
            in_driver: 0,
            hw_queue: HwQueue::default(),
            last_position: 0,
            last_delayed_sync: now.wrapping_sub(NS_PER_S),
            tunables: Tunables::defaults(core.rotational),
        }
    }

    fn into_tables(self) -> Tables<H> {
        Tables {
            queues: self.queues.into_slots(),
            service_nodes: self.service_nodes.into_slots(),
            positions: self.positions.into_slots(),
            groups: self.groups.into_slots(),
            group_places: self.group_places.into_slots(),
            contexts: self.contexts.into_slots(),
        }
    }

    fn retire(&mut self, core: &mut QueueCore<H>) {
        self.follow(core, NIL);
        debug_assert!(self.all_queues_are_freed(core), "every queue is free after its references were released");
    }

    fn tunable(&self, index: usize) -> i64 {
        self.tunables.get(index)
    }

    fn set_tunable(&mut self, _: &mut QueueCore<H>, index: usize, value: i64) {
        self.tunables.set(index, value);
    }

    fn allow_merge(&mut self, core: &mut QueueCore<H>, request: Slot, bio: &Bio) -> bool {
        let sync = bio.is_sync();
        let queue = self.queue_of(core, bio.context.slot, sync);
        let entry = &core.tables.requests[request];
        queue != NIL && queue == entry.owner && (entry.is_sync() || !sync)
    }

    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        let queue = self.queue_of(core, bio.context.slot, bio.is_sync());
        // Slot NIL reads as an empty queue.
        self.queues[queue].requests.at_sector(core, bio.end())
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        let owner = core.tables.requests[request].owner;
        if merge == Merge::Front && owner != NIL {
            self.queues[owner].requests.resort(core, request);
            self.compare_with_next(core, owner, request);
        }
    }

    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        let (owner, absorbed_owner) = (core.tables.requests[request].owner, core.tables.requests[absorbed].owner);
        if owner == absorbed_owner {
            self.queues[owner].requests.inherit(core, request, absorbed);
        }
        if self.queues[owner].next == absorbed {
            self.queues[owner].next = request;
            self.mark_position(core, owner);
        }
        self.remove(core, absorbed_owner, absorbed);
        if self.queues[absorbed_owner].is_empty()
            && self.queues[absorbed_owner].filed.is_some()
            && absorbed_owner != self.active
        {
            self.unfile(core, absorbed_owner);
        }
    }

    fn may_queue(&mut self, core: &mut QueueCore<H>, context: Slot, op: Op) -> MayQueue {
        let flags = core.bio_flags;
        let slot = self.queue_of(core, context, op.is_sync(flags));
        if slot == NIL {
            return MayQueue::May;
        }
        self.read_priority(core, slot, context);
        self.boost(slot, flags.has(Flags::META));
        let queue = &mut self.queues[slot];
        if !queue.wait_request || queue.must_alloc_slice {
            return MayQueue::May;
        }
        queue.must_alloc_slice = true;
        MayQueue::Must
    }

    fn allocate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let entry = &core.tables.requests[request];
        let (context, sync) = (entry.context, entry.is_sync());
        let slot = self.queue_for_request(core, context, sync);
        core.tables.requests[request].owner = slot;
        if slot != NIL {
            let queue = &mut self.queues[slot];
            queue.references.increment();
            queue.allocated.increment();
            let group = &mut self.groups[queue.group];
            group.requests.increment();
        }
    }

    fn free(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let slot = core::mem::replace(&mut core.tables.requests[request].owner, NIL);
        if slot != NIL {
            let queue = &mut self.queues[slot];
            queue.allocated.decrement();
            self.groups[queue.group].requests.decrement();
            queue.references.decrement();
            if queue.references == 0 {
                self.free_queue(core, slot);
            }
        }
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let entry = &core.tables.requests[request];
        let (slot, context) = (entry.owner, entry.context);
        let (sync, metadata) = (entry.is_sync(), entry.flags.has(Flags::META));
        if slot == NIL {
            // The storage has no room for another queue: serve the request in order of arrival.
            return core.dispatch_sort(request);
        }
        if self.queues[slot].priority_changed {
            self.read_priority(core, slot, context);
        }
        let [of_async, of_sync] = self.tunables.fifo_expire;
        let expire = if sync { of_sync } else { of_async };
        let deadline = core.counted_ns().saturating_add(core.clock.counted_length(expire));
        let queue = &mut self.queues[slot];
        queue.requests.insert(core, request, deadline);
        queue.queued.increment();
        if metadata {
            queue.metadata.increment();
        }
        if queue.filed.is_none() {
            self.file(core, slot, FilingPosition::Usual);
        }
        self.compare_with_next(core, slot, request);
        self.queued.increment();
        self.update_history(core, slot, request);
        if slot == self.active {
            self.awaited_request_arrived(core, slot, request);
        } else if self.should_preempt(core, slot, request) {
            self.preempt(core, slot);
            core.run_now();
        }
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        if self.busy_queues == 0 {
            return 0;
        }
        if force {
            return self.drain(core);
        }
        let slot = self.select(core);
        if slot == NIL {
            return 0;
        }
        debug_assert!(!self.queues[slot].is_empty());
        let overdue = self.overdue(core, slot);
        if overdue != NIL {
            self.queues[slot].must_dispatch = true;
        }
        if !self.may_dispatch(core, slot) {
            return 0;
        }
        let request = if overdue != NIL { overdue } else { self.queues[slot].next };
        let context = core.tables.requests[request].context;
        self.move_to_dispatch(core, slot, request);
        if self.active_context == NIL {
            self.follow(core, context);
        }
        self.after_dispatch(core, slot);
        1
    }

    fn dispatch_real_time(&mut self, core: &mut QueueCore<H>) -> u32 {
        if self.queued > 0 && self.takes_real_time(core) { hooks::dispatch(self, core, false) } else { 0 }
    }

    fn activate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.in_driver.increment();
        self.last_position = core.tables.requests[request].end();
    }

    fn deactivate(&mut self, _: &mut QueueCore<H>, _: Slot) {
        self.in_driver.decrement();
    }

    fn complete(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let entry = &core.tables.requests[request];
        let (owner, sync) = (entry.owner, entry.is_sync());
        self.sample_device_queue();
        self.in_driver.decrement();
        if owner != NIL {
            self.count_completion(core, request);
            if owner == self.active {
                self.active_completed(core, sync);
            }
        }
        if self.in_driver == 0 {
            self.kick(core);
        }
    }

    fn is_empty(&self) -> bool {
        self.queued == 0
    }

    fn slice(&self, core: &QueueCore<H>) -> Option<ActiveSlice> {
        let queue = &self.queues[self.active];
        let until_ns = (!queue.slice_new).then(|| core.clock.host_ns(queue.slice_end));
        (self.active != NIL).then_some(ActiveSlice { queue: queue.pid, until_ns })
    }

    fn exit(&mut self, core: &mut QueueCore<H>, context: Slot) {
        self.exit_queues(core, context);
    }

    fn group_created(&mut self, core: &mut QueueCore<H>, group: Slot) {
        self.groups[group] = GroupState::new(core.counted_ns());
    }

    fn release_group(&mut self, core: &mut QueueCore<H>, group: Slot) -> bool {
        self.release_group(core, group)
    }

    fn timer(&mut self, core: &mut QueueCore<H>, _: Timer) {
        self.idle_over(core);
    }
}

impl<H: HostTypes> Cfq<H> {
    /// Updates the next request of a queue after a request was sorted in.
    fn compare_with_next(&mut self, core: &QueueCore<H>, slot: Slot, request: Slot) {
        let next = self.queues[slot].next;
        let best = self.chooser().best(core, next, request, self.last_position);
        if best != next {
            self.queues[slot].next = best;
            self.position(core, slot);
        } else if best == request {
            self.mark_position(core, slot);
        }
    }

    /// Removes a request from its queue, which stays filed.
    fn remove(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot) {
        if self.queues[slot].next == request {
            self.choose_next(core, slot, request);
        }
        self.take_out(core, slot, request);
    }

    /// Removes a request that is not the next one of its queue.
    #[inline]
    fn take_out(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot) {
        let queue = &mut self.queues[slot];
        debug_assert!(queue.next != request);
        queue.requests.remove(core, request);
        queue.queued.decrement();
        if core.tables.requests[request].flags.has(Flags::META) {
            queue.metadata.decrement();
        }
        debug_assert_eq!(queue.is_empty(), queue.next == NIL);
        self.queued.decrement();
        if queue.is_empty() {
            self.leave_positions(slot);
        }
    }

    /// Chooses the next request of a queue, of which `request` leaves: of the request's two
    /// neighbours the one nearer to its start; the lowest request follows the highest.
    #[inline]
    fn choose_next(&mut self, core: &QueueCore<H>, slot: Slot, request: Slot) {
        let (chooser, head) = (self.chooser(), core.tables.requests[request].sector);
        let queue = &mut self.queues[slot];
        queue.next = chooser.neighbour(core, queue.requests.tree(), request, head);
        if queue.positioned.is_some() && queue.next != NIL {
            self.positions[slot].set_key(core.tables.requests[queue.next].sector);
        }
    }

    fn move_to_dispatch(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot) {
        self.choose_next(core, slot, request);
        self.take_out(core, slot, request);
        let queue = &mut self.queues[slot];
        queue.dispatched.increment();
        let [of_async, of_sync] = &mut self.in_flight;
        let in_flight = if queue.sync { of_sync } else { of_async };
        in_flight.increment();
        let group = &mut self.groups[queue.group];
        group.dispatched.increment();
        core.dispatch_sort(request);
    }

    #[inline]
    fn chooser(&self) -> Chooser {
        let back_max = self.tunables.back_max_sectors();
        Chooser { back_max, back_penalty: self.tunables.back_penalty, marks_count: true }
    }

    /// The oldest request of a queue if it is overdue; checked once a slice.
    fn overdue(&mut self, core: &mut QueueCore<H>, slot: Slot) -> Slot {
        let queue = &mut self.queues[slot];
        let (oldest, checked) = (queue.requests.oldest(), queue.fifo_checked);
        queue.fifo_checked = true;
        if checked || oldest == NIL || core.counted_ns() < core.tables.arrivals[oldest].deadline {
            return NIL;
        }
        core.note(|core| Note::Overdue { token: core.tables.requests[oldest].token });
        oldest
    }

    /// Ends the slice of an async queue after its maximum of requests, and that of an idle-class
    /// queue after each, if other queues wait.
    fn after_dispatch(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        let queue = &mut self.queues[slot];
        queue.slice_dispatch.increment();
        queue.must_dispatch = false;
        let enough = !queue.sync && queue.slice_dispatch >= self.tunables.max_async_requests(queue.level());
        if self.busy_queues > 1 && (enough || queue.is_idle_class()) {
            queue.slice_end = core.counted_ns().saturating_add(1);
            self.expire(core, false);
        }
    }

    fn count_completion(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let now = core.counted_ns();
        let entry = &core.tables.requests[request];
        let queue = &mut self.queues[entry.owner];
        debug_assert!(queue.dispatched > 0);
        queue.dispatched.decrement();
        let [of_async, of_sync] = &mut self.in_flight;
        let in_flight = if queue.sync { of_sync } else { of_async };
        in_flight.decrement();
        let group = &mut self.groups[queue.group];
        group.dispatched.decrement();
        group.think.last_end = now;
        if entry.is_sync() {
            self.contexts[entry.context].think.last_end = now;
            let (class, kind) = queue.filed.unwrap_or((queue.class(), queue.kind()));
            group.tree_mut(class, kind).think.last_end = now;
            let [_, expire] = self.tunables.fifo_expire;
            let arrived = core.clock.counted_at(entry.submitted_ns);
            if arrived.saturating_add(core.clock.counted_length(expire)) <= now {
                self.last_delayed_sync = now;
            }
        }
    }

    /// Handles a completion of the active queue.
    fn active_completed(&mut self, core: &mut QueueCore<H>, sync: bool) {
        if self.queues[self.active].slice_new {
            self.start_slice(core);
        }
        self.extend_slice(core);
        let queue = &self.queues[self.active];
        if queue.slice_used(core.counted_ns()) || queue.is_idle_class() {
            self.expire(core, true);
        } else if sync && queue.is_empty() && self.close_cooperator(core, self.active) == NIL {
            self.arm_idle(core);
        }
    }

    /// Moves all requests: group by group, best effort, real time, idle.
    fn drain(&mut self, core: &mut QueueCore<H>) -> u32 {
        let mut moved = 0u32;
        self.expire(core, false);
        loop {
            let slot = self.first_to_drain();
            if slot == NIL {
                break;
            }
            self.activate(core, slot);
            while self.queues[slot].next != NIL {
                self.move_to_dispatch(core, slot, self.queues[slot].next);
                moved.increment();
            }
            self.expire(core, false);
        }
        debug_assert!(self.queued == 0 && self.busy_queues == 0);
        moved
    }

    fn first_to_drain(&mut self) -> Slot {
        let group = self.next_group();
        if group == NIL {
            return NIL;
        }
        let state = &self.groups[group];
        let classes = [Class::BestEffort, Class::RealTime, Class::Idle];
        let trees = classes.into_iter().flat_map(|class| Kind::ALL.into_iter().map(move |kind| (class, kind)));
        let mut firsts = trees.map(|(class, kind)| state.tree(class, kind).tree.first());
        firsts.find(|&first| first != NIL).unwrap_or(NIL)
    }

    /// Schedules a run of the request queue if any queue has requests.
    fn kick(&self, core: &mut QueueCore<H>) {
        if self.busy_queues > 0 {
            core.kick();
        }
    }
}
