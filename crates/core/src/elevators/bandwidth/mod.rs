//! A bandwidth class, as a layer over any other elevator.
//!
//! The idea: each process, or group of processes, that has reserved a rate has a token bucket, which fills at that rate. A request for
//! which there are tokens is *within the reservation*; all such requests, of all processes, are served in one ascending sweep over the
//! disk, so that many streams cost one stroke, not one seek each. They come after real-time processes and before best effort. What a
//! reserving process asks beyond its reservation - its *excess* - is served when best effort is silent, and no tokens are paid for it; so
//! nothing of the disk is wasted, and who asks for more than was promised does not lose what was. Admission control keeps the promises
//! together below what the device can do.
//!
//! All other requests are the inner elevator's, which decides as ever: it is told of them alone. As long as there is any reservation it
//! moves one request at a time: between any two, one that is within its reservation can come. While requests of reserving processes
//! wait, it is asked for real-time requests by themselves. While it keeps the disk idle, what is within a reservation is served all the
//! same. The layer bypasses the sorting of the dispatch list for its own: they are appended, in the sweep's order. Without reservations
//! the inner elevator works as if there were no layer.
//!
//! The state: for each process and each group a flow, which is a bucket and the requests that wait for its tokens, in order of arrival
//! (`flow`); the present sweep and the next (`sweep`); two orders of the flows with waiting requests, by when the first comes within the
//! reservation and by how much excess they have had (`waiting`). `dispatch` has the order of the classes, `admission` and `figures` the promises, this
//! file the way of a request.
//!
//! No kernel had it. It follows the bandwidth class that Lunde, Espeland, Stensland, Petlund and Halvorsen showed as a proof of concept for
//! CFQ, as far as that was published: a token bucket a process, one elevator over all that reserve, what is not used for the others.

mod admission;
mod dispatch;
mod figures;
mod flow;
mod sweep;
mod tunables;
mod waiting;

use crate::elevator::queue_core::QueueCore;
use crate::elevator::reservation::{Reservation, ReservationHolder, ReservationSummary, ReserveError};
use crate::elevator::tables::{Capacity, HostTypes, TableMaker, TableOf};
use crate::elevator::{Elevator, MakeTables, MayQueue, Merge, Search};
use core::mem::take;

use crate::bio::{Bio, Op};
use crate::bucket::TokenBucket;
use crate::clock::Timer;
use crate::collections::{Arena, NIL, Node, Slot, Tree};
use crate::priority::Class;
use crate::request::Marks;

pub use figures::DeviceFigures;
use flow::{Flow, Held, Stage};
pub(super) use tunables::COUNT;
pub(crate) use tunables::ROWS;
use tunables::Tunables;

/// Bytes a sector.
const SECTOR_BYTES: u64 = 512;

/// Its tables: one entry a context and one a group in three of them, one a request in the fourth.
pub(crate) struct Tables<H: HostTypes, T> {
    /// How many contexts they were made for: the groups' entries come behind those.
    contexts: u32,
    flows: H::Slots<Flow>,
    soonest: H::Slots<Node>,
    least_served: H::Slots<Node>,
    held: H::Slots<Held>,
    pub(crate) inner: T,
}

/// The state of the layer and the elevator below.
pub(crate) struct Bandwidth<H: HostTypes, E: Elevator<H>> {
    pub(crate) inner: E,
    /// Those of contexts at their places, and from `first_group` on those of groups.
    flows: TableOf<H, Flow>,
    first_group: Slot,
    held: TableOf<H, Held>,
    /// Flows with pending requests by when the first of them comes within the reservation (ns) ...
    soonest: Tree,
    soonest_nodes: TableOf<H, Node>,
    /// ... and by the excess that they have been served (sectors), then by place.
    least_served: Tree,
    least_served_nodes: TableOf<H, Node>,
    /// The excess that the last one served beyond its reservation had had before.
    excess_floor: u64,
    /// The present sweep and the next, by sector, then by arrival.
    sweep: Tree,
    next_sweep: Tree,
    next_sweep_bytes: u64,
    sweep_number: u64,
    /// Where the head is in the sweep: the end of the last one dispatched from it.
    head: u64,
    /// A request of this sweep was late, and how many sweeps before it, in a row, had such.
    late: bool,
    late_sweeps: u32,
    /// Pending requests and those in sweeps.
    inside: u32,
    /// Counts arrivals.
    arrivals: u64,
    /// Requests in the inner elevator that the driver has not taken: real time, best effort, idle.
    inner_queued: [u32; 3],
    /// The weights of the processes with best-effort requests among them.
    inner_weight: u64,
    /// When a request of the inner elevator's was done last, but for the idle class, in ns.
    inner_end_ns: u64,
    /// How far the excess is ahead of best effort, in sectors a weight, scaled; as long as both have requests.
    excess_lead: i64,
    /// The flow for whose next request the head waits, or [`NIL`]; the process that had the one before, and until when, in ns.
    awaited: Slot,
    awaited_pid: u32,
    awaited_until_ns: u64,
    /// Something is queued, and the last dispatch moved nothing.
    waiting: bool,
    /// Flows with a reservation.
    reservations: u32,
    /// The largest request seen, in bytes.
    largest_bytes: u64,
    sweep_ns_max: u64,
    /// The most requests that the device has had at once.
    deepest: u32,
    tunables: Tunables,
}

impl<H: HostTypes, E: MakeTables<H>> MakeTables<H> for Bandwidth<H, E> {
    fn make_tables<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Self::Tables {
        Self::make_tables_over(capacity, maker, |maker| E::make_tables(capacity, maker))
    }
}

impl<H: HostTypes, E: Elevator<H>> Elevator<H> for Bandwidth<H, E> {
    type Tables = Tables<H, E::Tables>;

    fn new(core: &mut QueueCore<H>, tables: Self::Tables) -> Self {
        Bandwidth {
            inner: E::new(core, tables.inner),
            flows: Arena::new(tables.flows),
            first_group: tables.contexts,
            held: Arena::new(tables.held),
            soonest: Tree::default(),
            soonest_nodes: Arena::new(tables.soonest),
            least_served: Tree::default(),
            least_served_nodes: Arena::new(tables.least_served),
            excess_floor: 0,
            sweep: Tree::default(),
            next_sweep: Tree::default(),
            next_sweep_bytes: 0,
            sweep_number: 0,
            head: 0,
            late: false,
            late_sweeps: 0,
            inside: 0,
            arrivals: 0,
            inner_queued: [0; 3],
            inner_weight: 0,
            inner_end_ns: 0,
            excess_lead: 0,
            awaited: NIL,
            awaited_pid: 0,
            awaited_until_ns: 0,
            waiting: false,
            reservations: 0,
            largest_bytes: 0,
            sweep_ns_max: 0,
            deepest: 1,
            tunables: Tunables::defaults(),
        }
    }

    fn into_tables(self) -> Self::Tables {
        Tables {
            contexts: self.first_group,
            flows: self.flows.into_slots(),
            soonest: self.soonest_nodes.into_slots(),
            least_served: self.least_served_nodes.into_slots(),
            held: self.held.into_slots(),
            inner: self.inner.into_tables(),
        }
    }

    fn retire(&mut self, core: &mut QueueCore<H>) {
        self.inner.retire(core);
    }

    fn tunable(&self, index: usize) -> i64 {
        match index.checked_sub(COUNT) {
            Some(index) => self.inner.tunable(index),
            None => self.tunables.get(index),
        }
    }

    fn set_tunable(&mut self, core: &mut QueueCore<H>, index: usize, value: i64) {
        match index.checked_sub(COUNT) {
            Some(index) => self.inner.set_tunable(core, index, value),
            None => {
                self.tunables.set(index, value);
                self.set_bounds();
            }
        }
    }

    /// A reserving process's bio joins pending requests of its own flow only, and no other joins those.
    fn find_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Search {
        let flow = self.flow_for(core, bio.context.slot, bio.op);
        if flow == NIL {
            if core.last_merge != NIL && self.held[core.last_merge].stage != Stage::Inner {
                core.last_merge = NIL;
            }
            return self.inner.find_merge(core, bio);
        }
        let (sorted, nodes) = (&self.flows[flow].sorted, &core.tables.nodes);
        let above = sorted.first_not_below(nodes, bio.sector);
        let below = if above == NIL { sorted.last() } else { nodes[above].prev() };
        let is_of_its_kind = |request: Slot| request != NIL && core.tables.requests[request].op == bio.op;
        if is_of_its_kind(below) && core.tables.requests[below].end() == bio.sector {
            return Search::Found(below, Merge::Back);
        }
        let front = sorted.find(nodes, bio.end());
        if is_of_its_kind(front) { Search::Found(front, Merge::Front) } else { Search::Nothing }
    }

    fn searches_merges(&self) -> bool {
        self.inner.searches_merges()
    }

    fn allow_merge(&mut self, core: &mut QueueCore<H>, request: Slot, bio: &Bio) -> bool {
        let flow = self.flow_for(core, bio.context.slot, bio.op);
        match self.held[request].stage {
            Stage::Inner => flow == NIL && self.inner.allow_merge(core, request, bio),
            Stage::Pending => self.held[request].flow == flow,
            Stage::Ours | Stage::Swept => false,
        }
    }

    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        self.inner.find_front_merge(core, bio)
    }

    fn former(&self, core: &QueueCore<H>, request: Slot) -> Slot {
        match self.held[request].stage {
            Stage::Inner => self.inner.former(core, request),
            Stage::Pending => core.tables.nodes[request].prev(),
            Stage::Ours | Stage::Swept => NIL,
        }
    }

    fn latter(&self, core: &QueueCore<H>, request: Slot) -> Slot {
        match self.held[request].stage {
            Stage::Inner => self.inner.latter(core, request),
            Stage::Pending => core.tables.nodes[request].next(),
            Stage::Ours | Stage::Swept => NIL,
        }
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        if self.held[request].stage == Stage::Inner {
            return self.inner.merged(core, request, merge);
        }
        self.merged_pending(core, request, merge);
    }

    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        if self.held[absorbed].stage == Stage::Inner {
            self.left_inner(core, absorbed);
            return self.inner.join(core, request, absorbed);
        }
        self.join_pending(core, request, absorbed);
    }

    /// A reserving process gets a request from a full pool as long as it has fewer waiting than its bucket holds: others must not be able
    /// to keep it from what was promised.
    fn may_queue(&mut self, core: &mut QueueCore<H>, context: Slot, op: Op) -> MayQueue {
        let flow = self.flow_for(core, context, op);
        if flow != NIL && u64::from(self.flows[flow].queued) < self.flows[flow].burst_requests() {
            return MayQueue::Must;
        }
        self.inner.may_queue(core, context, op)
    }

    /// What the inner elevator denies to some is for its own requests.
    fn depth_limit(&self, core: &QueueCore<H>, nr_requests: u32, bio: &Bio) -> u32 {
        let own = self.flow_for(core, bio.context.slot, bio.op) != NIL;
        if own { nr_requests } else { self.inner.depth_limit(core, nr_requests, bio) }
    }

    fn allocate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let (context, op) = (core.tables.requests[request].context, core.tables.requests[request].op);
        debug_assert_eq!(self.held[request].stage, Stage::Inner);
        let flow = self.flow_for(core, context, op);
        if flow != NIL {
            self.held[request] = Held { stage: Stage::Ours, flow, ..Held::default() };
        } else {
            self.inner.allocate(core, request);
        }
    }

    fn free(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let stage = take(&mut self.held[request]).stage;
        debug_assert!(matches!(stage, Stage::Inner | Stage::Ours), "{stage:?} is in a list");
        if stage == Stage::Inner {
            self.inner.free(core, request);
        }
    }

    fn prepare_insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let last = core.last_merge;
        if self.held[request].stage == Stage::Inner {
            if last != NIL && self.held[last].stage != Stage::Inner {
                core.last_merge = NIL;
            }
            return self.inner.prepare_insert(core, request);
        }
        // Until it is among its own, it does not join: multi-queue layers would look for anybody's request.
        core.tables.requests[request].marks.set(Marks::NO_MERGE);
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        if self.held[request].stage != Stage::Inner {
            return self.insert_pending(core, request);
        }
        self.entered_inner(core, request);
        self.inner.insert(core, request);
        // The wait may be the layer's own, and then the inner elevator does not know how to end it. Best effort ends the excess's wait for
        // silence, but not the one for a reserving process's next request.
        let layer_waits = self.waiting && (self.inside > 0 || self.awaited != NIL);
        let ends_wait = match usize::from(core.tables.requests[request].priority.class().rank()) {
            REAL_TIME => true,
            BEST_EFFORT => self.awaited == NIL,
            _ => false,
        };
        if layer_waits && ends_wait {
            core.run_now();
        }
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        if force {
            return self.drain(core);
        }
        let moved = self.dispatch_by_class(core);
        self.waiting = moved == 0 && !self.is_empty();
        moved
    }

    fn dispatch_real_time(&mut self, core: &mut QueueCore<H>) -> u32 {
        self.inner.dispatch_real_time(core)
    }

    fn activate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        if self.held[request].stage == Stage::Inner {
            self.left_inner(core, request);
            self.inner.activate(core, request);
        }
    }

    fn deactivate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        if self.held[request].stage == Stage::Inner {
            self.entered_inner(core, request);
            self.inner.deactivate(core, request);
        }
    }

    fn complete(&mut self, core: &mut QueueCore<H>, request: Slot) {
        // This one is not counted any more.
        self.deepest = self.deepest.max(core.in_flight.saturating_add(1));
        if self.held[request].stage == Stage::Inner {
            if core.tables.requests[request].priority.class() != Class::Idle {
                self.inner_end_ns = core.clock.now_ns();
            }
            return self.inner.complete(core, request);
        }
        self.completed(core, request);
    }

    // So that the plain elevators do not pay for the room that it would take.
    #[inline(never)]
    fn is_empty(&self) -> bool {
        self.inside == 0 && self.inner.is_empty()
    }

    fn exit(&mut self, core: &mut QueueCore<H>, context: Slot) {
        // While the process is still there, for the inner elevator may have to get to know it.
        self.release(core, ReservationHolder::Context(context));
        self.give_up(core, context);
        self.inner.exit(core, context);
    }

    fn priority_changed(&mut self, core: &mut QueueCore<H>, context: Slot) {
        self.inner.priority_changed(core, context);
    }

    fn reserve(
        &mut self,
        core: &mut QueueCore<H>,
        holder: ReservationHolder,
        wanted: Reservation,
    ) -> Result<(), ReserveError> {
        self.admit(core, self.flow_of(holder), wanted)
    }

    /// What is in a sweep stays there. What waits for tokens goes to where its process's new requests go: the flow of its group, or the
    /// inner elevator.
    fn release(&mut self, core: &mut QueueCore<H>, holder: ReservationHolder) {
        let flow = self.flow_of(holder);
        if !self.flows[flow].is_reserved() {
            return;
        }
        self.flows[flow].bucket = TokenBucket::default();
        self.reservations = self.reservations.saturating_sub(1);
        if self.awaited == flow {
            self.awaited = NIL;
        }
        loop {
            let request = self.flows[flow].pending.head();
            if request == NIL {
                break;
            }
            self.take_pending(core, request, 0);
            let (context, op) = (core.tables.requests[request].context, core.tables.requests[request].op);
            match self.flow_for(core, context, op) {
                NIL => self.pass_to_inner(core, request),
                other => {
                    self.held[request].flow = other;
                    self.insert_pending(core, request);
                }
            }
        }
        self.set_bounds();
        if self.waiting {
            core.run_now();
        }
    }

    fn reservation(&self, holder: ReservationHolder) -> Option<Reservation> {
        self.flows[self.flow_of(holder)].reservation()
    }

    fn reserved(&self) -> Option<ReservationSummary> {
        Some(self.sum())
    }

    fn group_created(&mut self, core: &mut QueueCore<H>, group: Slot) {
        self.inner.group_created(core, group);
    }

    fn group_weights_changed(&mut self, core: &mut QueueCore<H>, group: Slot) {
        self.inner.group_weights_changed(core, group);
    }

    fn release_group(&mut self, core: &mut QueueCore<H>, group: Slot) -> bool {
        let released = self.inner.release_group(core, group);
        if released {
            // Requests of processes that have left the group may wait for its tokens yet.
            self.release(core, ReservationHolder::Group(group));
        }
        released
    }

    fn group_changed(&mut self, core: &mut QueueCore<H>, context: Slot) {
        self.inner.group_changed(core, context);
    }

    fn timer(&mut self, core: &mut QueueCore<H>, timer: Timer) {
        if timer != Timer::Refill {
            self.inner.timer(core, timer);
        }
        // The inner elevator asks for a run only if it has something itself.
        if self.inside > 0 || (timer == Timer::Refill && !self.is_empty()) {
            core.kick();
        }
    }
}

impl<H: HostTypes, E: Elevator<H>> Bandwidth<H, E> {
    /// The tables of the layer, and those that `inner` makes.
    pub fn make_tables_over<M: TableMaker<H>>(
        capacity: Capacity,
        maker: &mut M,
        inner: impl FnOnce(&mut M) -> E::Tables,
    ) -> Tables<H, E::Tables> {
        let flows = capacity.contexts.saturating_add(capacity.group_slots());
        Tables {
            contexts: capacity.contexts,
            flows: maker.table(flows),
            soonest: maker.table(flows),
            least_served: maker.table(flows),
            held: maker.table(capacity.request_slots()),
            inner: inner(maker),
        }
    }

    /// The place of a context's or group's flow.
    fn flow_of(&self, holder: ReservationHolder) -> Slot {
        match holder {
            ReservationHolder::Context(context) => context,
            ReservationHolder::Group(group) => self.first_group.saturating_add(group),
        }
    }

    /// The flow that a new request of this process would belong to: its own, if it has reserved something, or its group's, if that has;
    /// [`NIL`] if neither has, or what the process asks for is not reserved.
    fn flow_for(&self, core: &QueueCore<H>, context: Slot, op: Op) -> Slot {
        let reserves = match op {
            Op::Read => self.tunables.reads,
            Op::Write => self.tunables.writes,
            Op::Flush | Op::Discard => false,
        };
        if self.reservations == 0 || !reserves {
            return NIL;
        }
        if self.flows[context].is_reserved() {
            return context;
        }
        let group = self.flow_of(ReservationHolder::Group(core.tables.contexts[context].group));
        if self.flows[group].is_reserved() { group } else { NIL }
    }

    /// A request that nobody has any more becomes one of the inner elevator's.
    fn pass_to_inner(&mut self, core: &mut QueueCore<H>, request: Slot) {
        debug_assert_eq!(self.held[request].stage, Stage::Ours);
        self.held[request] = Held::default();
        self.inner.allocate(core, request);
        self.inner.prepare_insert(core, request);
        self.insert(core, request);
    }

    /// A process exits: what waits for tokens of a group in its name becomes best effort. If the group gave its reservation back later, the
    /// inner elevator would get to know a process that is gone.
    fn give_up(&mut self, core: &mut QueueCore<H>, context: Slot) {
        if self.inside == 0 || core.tables.contexts[context].requests == 0 {
            return;
        }
        for request in 0..self.held.capacity() {
            if self.held[request].stage == Stage::Pending && core.tables.requests[request].context == context {
                self.take_pending(core, request, 0);
                self.pass_to_inner(core, request);
            }
        }
    }

    /// The inner elevator has one more request.
    fn entered_inner(&mut self, core: &QueueCore<H>, request: Slot) {
        let request = &core.tables.requests[request];
        let class = usize::from(request.priority.class().rank());
        if let Some(queued) = self.inner_queued.get_mut(class) {
            *queued = queued.saturating_add(1);
        }
        if class != BEST_EFFORT {
            return;
        }
        let flow = &mut self.flows[request.context];
        if flow.inner_queued == 0 {
            flow.inner_weight = weight_of(request.priority.level());
            self.inner_weight = self.inner_weight.saturating_add(u64::from(flow.inner_weight));
        }
        flow.inner_queued = flow.inner_queued.saturating_add(1);
    }

    /// It has one less: the driver has it, or another has absorbed it.
    fn left_inner(&mut self, core: &QueueCore<H>, request: Slot) {
        let request = &core.tables.requests[request];
        let class = usize::from(request.priority.class().rank());
        if let Some(queued) = self.inner_queued.get_mut(class) {
            debug_assert!(*queued > 0);
            *queued = queued.saturating_sub(1);
        }
        if class != BEST_EFFORT {
            return;
        }
        let flow = &mut self.flows[request.context];
        flow.inner_queued = flow.inner_queued.saturating_sub(1);
        if flow.inner_queued == 0 {
            self.inner_weight = self.inner_weight.saturating_sub(u64::from(take(&mut flow.inner_weight)));
        }
    }
}

/// Indices of the inner elevator's counts: the ranks of the classes.
const REAL_TIME: usize = Class::RealTime.rank() as usize;
const BEST_EFFORT: usize = Class::BestEffort.rank() as usize;

/// The weight of a best-effort process, as CFQ's slices have it: a fifth of level 4's more or less for each level.
fn weight_of(level: u8) -> u32 {
    9u32.saturating_sub(u32::from(level))
}

fn bytes_of<H: HostTypes>(core: &QueueCore<H>, request: Slot) -> u64 {
    u64::from(core.tables.requests[request].sectors).saturating_mul(SECTOR_BYTES)
}
