//! A bandwidth class, as a layer over any other elevator.
//!
//! The idea: each process or group with a reservation has a token bucket that fills at the reserved
//! rate. A request for which there are tokens is *within the reservation*. All such requests, of
//! all processes, are served in one ascending sweep over the disk, so that many streams cost one
//! stroke instead of one seek each. They come after real-time processes and before best effort. The
//! *excess*, requests beyond a reservation, is served without tokens when best effort is silent. So
//! no disk time is wasted, and a process that requests more than its reservation does not lose the
//! reservation. Admission control limits the sum of reservations to the capacity of the device.
//!
//! All other requests belong to the inner elevator, which handles only those. While there is any
//! reservation, it dispatches one request at a time, so that a reserved one can come in between.
//! While reserved requests wait, it is first called for real-time requests only. While it keeps the
//! disk idle, reserved requests are served all the same. Reserved requests bypass the sorting of
//! the dispatch list: they are appended in the sweep's order. Without reservations the inner
//! elevator decides as if there were no layer.
//!
//! The state is a flow for each process and group: a bucket and the pending requests that wait for
//! tokens, in order of arrival (`flow`); the current and the next sweep (`sweep`); and the flows
//! with pending requests in two orders, by the eligibility of their first request and by the excess
//! served (`waiting`). `dispatch` has the order of the classes, `admission` and `figures` the
//! admission, this file the path of a request.
//!
//! No kernel had it. It follows the bandwidth class that Lunde, Espeland, Stensland, Petlund and
//! Halvorsen showed as a proof of concept for CFQ, as far as it was published: a token bucket per
//! process, one elevator over all reservations, unused bandwidth for the others.

mod admission;
mod dispatch;
mod figures;
mod flow;
mod sweep;
mod tunables;
mod waiting;

use crate::elevator::capacity::Capacity;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::reservation::{Reservation, ReservationHolder, ReservationSummary, ReserveError};
use crate::elevator::tables::{HostTypes, TableMaker, TableOf};
use crate::elevator::{ActiveSlice, Elevator, MakeTables, MayQueue, Merge, Search};
use core::mem::take;

use crate::bio::{Bio, Op};
use crate::bucket::TokenBucket;
use crate::clock::Timer;
use crate::collections::{Arena, Count, NIL, Node, Slot, Tree};
use crate::priority::Class;
use crate::request::Marks;

pub use figures::DeviceFigures;
use flow::{Flow, Held, Stage};
pub(super) use tunables::COUNT;
pub(crate) use tunables::ROWS;
use tunables::Tunables;

/// Bytes per sector.
const SECTOR_BYTES: u64 = 512;

/// The tables: three with one entry per context and group, one with one entry per request.
pub(crate) struct Tables<H: HostTypes, T> {
    /// The number of contexts; the entries of groups follow.
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
    /// The flows of contexts, and from `first_group` on those of groups.
    flows: TableOf<H, Flow>,
    first_group: Slot,
    held: TableOf<H, Held>,
    /// Flows with pending requests by the eligibility of the first one (ns).
    soonest: Tree,
    soonest_nodes: TableOf<H, Node>,
    /// Flows with pending requests by the excess served (sectors), then by slot.
    least_served: Tree,
    least_served_nodes: TableOf<H, Node>,
    /// The excess of the flow that was last served beyond its reservation, before that service.
    excess_floor: u64,
    /// The current and the next sweep, by sector, then by arrival.
    sweep: Tree,
    next_sweep: Tree,
    next_sweep_bytes: u64,
    sweep_number: u64,
    /// The position in the sweep: the end of its last dispatched request.
    head: u64,
    /// Whether a request of this sweep was late, and the number of consecutive earlier sweeps with
    /// late requests.
    late: bool,
    late_sweeps: u32,
    /// Pending requests and requests in sweeps.
    inside: u32,
    /// The arrival count.
    arrivals: u64,
    /// Requests in the inner elevator that the driver has not taken: real time, best effort, idle.
    inner_queued: [u32; 3],
    /// The sum of weights of processes with best-effort requests among them.
    inner_weight: u64,
    /// The last completion of a request of the inner elevator outside the idle class, in ns.
    inner_end_ns: u64,
    /// The lead of the excess over best effort, in scaled sectors per weight; valid while both have
    /// requests.
    excess_lead: i64,
    /// The flow for whose next request the disk waits, or [`NIL`]; the process that had the one
    /// before; and the end of the wait in ns.
    awaited: Slot,
    awaited_pid: u32,
    awaited_until_ns: u64,
    /// Requests are queued, and the last dispatch moved none.
    waiting: bool,
    /// The number of flows with a reservation.
    reservations: u32,
    /// The largest request seen, in bytes.
    largest_bytes: u64,
    sweep_ns_max: u64,
    /// The maximum number of requests that the device had at once.
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

    /// Merges a reserving process's bio only with pending requests of its own flow, and no other
    /// bio with those.
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

    fn failure(&self) -> Option<&str> {
        self.inner.failure()
    }

    fn joins_queued(&self) -> bool {
        self.inner.joins_queued()
    }

    fn settled_after(&self, request: Slot) -> Slot {
        self.inner.settled_after(request)
    }

    fn joined_at_insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        if self.held[request].stage == Stage::Inner {
            self.inner.joined_at_insert(core, request);
        }
    }

    fn allow_merge(&mut self, core: &mut QueueCore<H>, request: Slot, bio: &Bio) -> bool {
        let flow = self.flow_for(core, bio.context.slot, bio.op);
        match self.held[request].stage {
            Stage::Inner => flow == NIL && self.inner.allow_merge(core, request, bio),
            Stage::Pending => self.held[request].flow == flow,
            Stage::Layer | Stage::Swept => false,
        }
    }

    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        self.inner.find_front_merge(core, bio)
    }

    fn former(&self, core: &QueueCore<H>, request: Slot) -> Slot {
        match self.held[request].stage {
            Stage::Inner => self.inner.former(core, request),
            Stage::Pending => core.tables.nodes[request].prev(),
            Stage::Layer | Stage::Swept => NIL,
        }
    }

    fn latter(&self, core: &QueueCore<H>, request: Slot) -> Slot {
        match self.held[request].stage {
            Stage::Inner => self.inner.latter(core, request),
            Stage::Pending => core.tables.nodes[request].next(),
            Stage::Layer | Stage::Swept => NIL,
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
            // Anticipation exchanges the contexts of the two, and so whose request it counts as.
            self.left_inner(core, absorbed);
            self.left_inner(core, request);
            self.inner.join(core, request, absorbed);
            return self.entered_inner(core, request);
        }
        self.join_pending(core, request, absorbed);
    }

    /// Grants a reserving process a request from a full pool while it has fewer waiting than its
    /// bucket holds, so that other processes cannot prevent its service.
    fn may_queue(&mut self, core: &mut QueueCore<H>, context: Slot, op: Op) -> MayQueue {
        let flow = self.flow_for(core, context, op);
        if flow != NIL && u64::from(self.flows[flow].queued) < self.flows[flow].burst_requests() {
            return MayQueue::Must;
        }
        self.inner.may_queue(core, context, op)
    }

    /// The inner elevator's limit applies to its own requests only.
    fn depth_limit(&self, core: &QueueCore<H>, nr_requests: u32, bio: &Bio) -> u32 {
        let own = self.flow_for(core, bio.context.slot, bio.op) != NIL;
        if own { nr_requests } else { self.inner.depth_limit(core, nr_requests, bio) }
    }

    fn allocate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let (context, op) = (core.tables.requests[request].context, core.tables.requests[request].op);
        debug_assert_eq!(self.held[request].stage, Stage::Inner);
        let flow = self.flow_for(core, context, op);
        if flow != NIL {
            self.held[request] = Held { stage: Stage::Layer, flow, ..Held::default() };
        } else {
            self.inner.allocate(core, request);
        }
    }

    fn free(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let stage = take(&mut self.held[request]).stage;
        debug_assert!(matches!(stage, Stage::Inner | Stage::Layer), "{stage:?} is in a list");
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
        // It is not merged before insertion: multi-queue layers would consider any request.
        core.tables.requests[request].marks.set(Marks::NO_MERGE);
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        if self.held[request].stage != Stage::Inner {
            return self.insert_pending(core, request);
        }
        self.entered_inner(core, request);
        self.inner.insert(core, request);
        // The wait may be the layer's own, which the inner elevator cannot end. Best effort ends
        // the excess's wait for silence, but not the wait for a reserving process's next request.
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
        // The completed request is not counted any more.
        self.deepest = self.deepest.max(core.in_flight.saturating_add(1));
        if self.held[request].stage == Stage::Inner {
            if core.tables.requests[request].priority.class() != Class::Idle {
                self.inner_end_ns = core.clock.now_ns();
            }
            return self.inner.complete(core, request);
        }
        self.completed(core, request);
    }

    // Not inlined, so that plain elevators do not pay for its size.
    #[inline(never)]
    fn is_empty(&self) -> bool {
        self.inside == 0 && self.inner.is_empty()
    }

    fn exit(&mut self, core: &mut QueueCore<H>, context: Slot) {
        // While the process still exists, as the inner elevator may see it for the first time.
        self.release(core, ReservationHolder::Context(context));
        self.drop_pending_of_exited(core, context);
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

    /// Ends a reservation. Requests in a sweep stay there. Pending requests move to where the
    /// process's new requests go: its group's flow or the inner elevator.
    fn release(&mut self, core: &mut QueueCore<H>, holder: ReservationHolder) {
        let flow = self.flow_of(holder);
        if !self.flows[flow].is_reserved() {
            return;
        }
        self.flows[flow].bucket = TokenBucket::default();
        self.reservations.decrement();
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

    fn reserves(&self) -> bool {
        self.reservations > 0 || self.inside > 0
    }

    fn lateness_ns(&self, _: &QueueCore<H>, request: Slot, now_ns: u64) -> Option<u64> {
        let held = &self.held[request];
        let within_at_ns = match held.stage {
            // Of the pending requests of a flow only the first has a time.
            Stage::Pending if self.flows[held.flow].pending.head() == request => self.soonest_nodes[held.flow].key(),
            _ => held.conformed_ns?,
        };
        Some(now_ns.saturating_sub(within_at_ns.saturating_add(self.late_after_ns())))
    }

    fn slice(&self, core: &QueueCore<H>) -> Option<ActiveSlice> {
        self.inner.slice(core)
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
            // Requests of processes that have left the group may still be pending.
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
        // The inner elevator schedules a run only if it has requests itself.
        if self.inside > 0 || (timer == Timer::Refill && !self.is_empty()) {
            core.kick();
        }
    }
}

impl<H: HostTypes, E: Elevator<H>> Bandwidth<H, E> {
    /// Makes the tables of the layer, and those of the inner elevator by `inner`.
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

    /// The slot of a context's or group's flow.
    fn flow_of(&self, holder: ReservationHolder) -> Slot {
        match holder {
            ReservationHolder::Context(context) => context,
            ReservationHolder::Group(group) => self.first_group.saturating_add(group),
        }
    }

    /// The flow of a new request of this process: its own if it has a reservation, otherwise its
    /// group's; [`NIL`] if there is none or the kind of request is not reserved.
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

    /// Passes a request to the inner elevator.
    fn pass_to_inner(&mut self, core: &mut QueueCore<H>, request: Slot) {
        debug_assert_eq!(self.held[request].stage, Stage::Layer);
        self.held[request] = Held::default();
        self.inner.allocate(core, request);
        self.inner.prepare_insert(core, request);
        self.insert(core, request);
    }

    /// Handles the exit of a process: its requests that wait for a group's tokens become best
    /// effort. After a later release of the group's reservation the inner elevator would otherwise
    /// see a process that has exited.
    fn drop_pending_of_exited(&mut self, core: &mut QueueCore<H>, context: Slot) {
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

    /// Counts a request that entered the inner elevator.
    fn entered_inner(&mut self, core: &QueueCore<H>, request: Slot) {
        let request = &core.tables.requests[request];
        let class = usize::from(request.priority.class().rank());
        if let Some(queued) = self.inner_queued.get_mut(class) {
            queued.increment();
        }
        if class != BEST_EFFORT {
            return;
        }
        let flow = &mut self.flows[request.context];
        if flow.inner_queued == 0 {
            flow.inner_weight = weight_of(request.priority.level());
            self.inner_weight = self.inner_weight.saturating_add(u64::from(flow.inner_weight));
        }
        flow.inner_queued.increment();
    }

    /// Counts a request that left the inner elevator: taken by the driver or absorbed.
    fn left_inner(&mut self, core: &QueueCore<H>, request: Slot) {
        let request = &core.tables.requests[request];
        let class = usize::from(request.priority.class().rank());
        if let Some(queued) = self.inner_queued.get_mut(class) {
            debug_assert!(*queued > 0);
            queued.decrement();
        }
        if class != BEST_EFFORT {
            return;
        }
        let flow = &mut self.flows[request.context];
        flow.inner_queued.decrement();
        if flow.inner_queued == 0 {
            self.inner_weight = self.inner_weight.saturating_sub(u64::from(take(&mut flow.inner_weight)));
        }
    }
}

/// Indices of the inner elevator's counts: the ranks of the classes.
const REAL_TIME: usize = Class::RealTime.rank() as usize;
const BEST_EFFORT: usize = Class::BestEffort.rank() as usize;

/// The weight of a best-effort process, like CFQ's slices: each level adds or removes a fifth of
/// level 4's.
fn weight_of(level: u8) -> u32 {
    9u32.saturating_sub(u32::from(level))
}

fn bytes_of<H: HostTypes>(core: &QueueCore<H>, request: Slot) -> u64 {
    u64::from(core.tables.requests[request].sectors).saturating_mul(SECTOR_BYTES)
}
