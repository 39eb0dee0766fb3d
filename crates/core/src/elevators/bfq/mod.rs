//! BFQ as in mainline: budget fair queueing with groups and low latency, Linux 6.1.
//!
//! The idea: one queue at a time is in service, for a budget of sectors. B-WF2Q+
//! (`crate::elevators::shared::wf2q`) selects the next queue, so that each share follows the
//! weight, however large budgets are for the sake of throughput. A seeky queue is charged for its
//! time as if it had transferred sectors. Heuristics are added: the disk is kept idle for a queue
//! that will soon send more; queues that start a program or play media are *raised* (their weights
//! are multiplied); contexts that read adjacent sectors share a queue; while the disk is idle,
//! other queues' requests are *injected*.
//!
//! Each call of the engine is O(log N). Some heuristics are not: the search for a request to inject
//! walks all active queues.
//!
//! `state` has the queues, contexts and groups; the groups of a queue's fields are in the files
//! that change them. This file has the calls from the request queue; `swept` is their only way into
//! the scheduler. In the order of a request's path follow `insert` with `habits`, `activation` (a
//! queue becomes busy), `select` and `injection`, `expire` and `raising`, `completion` (with the
//! timer); then `cooperators` and `split` (shared queues), `wakers`, `bursts`, `groups`. `idling`
//! has the conditions that all of them use, `rate` measures the device.

mod activation;
mod bursts;
mod completion;
mod cooperators;
mod expire;
mod groups;
mod habits;
mod idling;
mod injection;
mod insert;
mod lifetime;
mod raising;
mod rate;
mod select;
mod split;
mod state;
mod swept;
mod tunables;
mod wakers;

use crate::bio::{Bio, Flags, Op};
use crate::clock::Timer;
use crate::collections::{Arena, Count, List, NIL, Node, Slot};
use crate::elevator::capacity::Capacity;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker, TableOf};
use crate::elevator::{ActiveSlice, Elevator, MakeTables, Merge, Search};
use crate::elevators::shared::async_queues::AsyncQueues;
use crate::elevators::shared::chooser::Chooser;
use crate::elevators::shared::wf2q::{self, Engine};

use bursts::Burst;
use injection::Injection;
pub(crate) use lifetime::weight_of;
use rate::{Queueing, Rate};
use state::{ContextState, GroupState, Member, Queue};
pub(crate) use swept::Bfq;
pub(crate) use tunables::INFO;
use tunables::{Tunables, index};

/// A time in whole milliseconds since boot, the resolution of the coarser decisions.
type Tick = i64;
/// A time before all others, farther away than any interval.
const NEVER: Tick = i64::MIN / 4;

/// The index of a context's async queue.
const ASYNC: usize = 0;
/// The index of a context's sync queue.
const SYNC: usize = 1;

/// The time without service after which a level's idle class is served once, in ms.
const IDLE_CLASS_GUARANTEE_MS: u64 = 200;
/// The default budget until a better one is known: 8 MiB.
const BUDGET_DEFAULT: u64 = 16 * 1024;
/// The smoothed count of slots from which the automatic budget is used: reached with the 11th.
const SLOTS_KNOWN: u32 = 194;

/// The tables of the elevator.
pub(crate) struct Tables<H: HostTypes> {
    queues: H::Slots<Queue>,
    /// One node per queue, for the indices of positions.
    index: H::Slots<Node>,
    /// One entry per context.
    contexts: H::Slots<ContextState>,
    /// One entry per group.
    groups: H::Slots<GroupState>,
    engine: wf2q::Tables<H>,
}

/// The scheduler behind the elevator.
struct Scheduler<H: HostTypes> {
    queues: TableOf<H, Queue>,
    free_queues: List<Member>,
    /// The position of the search for a reusable queue.
    reclaim_at: Slot,
    index_nodes: TableOf<H, Node>,
    contexts: TableOf<H, ContextState>,
    groups: TableOf<H, GroupState>,
    engine: Engine<H>,

    /// The queue in service, or [`NIL`].
    in_service: Slot,
    /// The disk is kept idle for it until a timer fires.
    waits: bool,
    /// The start of the current slot, and of the last idling, in ns.
    slot_start_ns: u64,
    idle_start_ns: u64,
    /// The number of busy queues per class. If the class of a busy queue changes, one count remains
    /// too high and another too low; only 0 reads as none.
    busy: [i32; wf2q::CLASSES],
    raised_busy: i32,
    /// Queued requests, and requests in the device.
    queued: u32,
    in_flight: u32,

    /// The end of the last dispatched request; and of the last one of the queue in service, 0 at
    /// the start of a slot.
    position: u64,
    position_in_service: u64,
    /// The maximum budget, in sectors.
    budget_max: u64,
    /// A smoothed count of slots, which tends to 256.
    slots: u32,
    rate: Rate,
    queueing: Queueing,
    /// Whether the device is flash with a queue of its own, or flash not known to be without.
    flash_queueing: bool,
    rotational: bool,

    /// The queue whose request completed last, if it serves one context; or [`NIL`].
    done_queue: Slot,
    burst: Burst,
    injection: Injection,
    tunables: Tunables,
}

/// Whole milliseconds since boot.
fn tick<H: HostTypes>(core: &QueueCore<H>) -> Tick {
    core.clock.ktime_ms() as Tick
}

/// Whole milliseconds since boot, as a tick of the engine.
fn engine_tick<H: HostTypes>(core: &QueueCore<H>) -> u64 {
    core.clock.ktime_ms()
}

impl<H: HostTypes> MakeTables<H> for Bfq<H> {
    fn make_tables<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Tables<H> {
        let groups = capacity.group_slots();
        let queues = capacity.queues().saturating_add(groups.saturating_mul(AsyncQueues::COUNT));
        Tables {
            queues: maker.table(queues),
            index: maker.table(queues),
            contexts: maker.table(capacity.contexts),
            groups: maker.table(groups),
            engine: Engine::<H>::make_tables(queues, groups, maker),
        }
    }
}

impl<H: HostTypes> Elevator<H> for Bfq<H> {
    type Tables = Tables<H>;

    fn new(core: &mut QueueCore<H>, tables: Tables<H>) -> Self {
        Bfq::around(Scheduler::new(core, tables))
    }

    fn into_tables(self) -> Tables<H> {
        let scheduler = self.into_scheduler();
        Tables {
            queues: scheduler.queues.into_slots(),
            index: scheduler.index_nodes.into_slots(),
            contexts: scheduler.contexts.into_slots(),
            groups: scheduler.groups.into_slots(),
            engine: scheduler.engine.into_tables(),
        }
    }

    fn tunable(&self, index: usize) -> i64 {
        self.scheduler().tunables.get(index)
    }

    fn set_tunable(&mut self, core: &mut QueueCore<H>, index: usize, value: i64) {
        self.change(|bfq| bfq.set_tunable(core, index, value));
    }

    fn find_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Search {
        if core.tables.contexts[bio.context.slot].history.known {
            self.change(|bfq| {
                let waited = bfq.waits;
                bfq.apply_group_change(core, bio.context.slot);
                if waited && !bfq.waits {
                    // If the bio is refused, its host does not process deferred work: the timer
                    // causes the run that is due.
                    core.arm_at_ktime(Timer::Idle, core.ktime_ns());
                }
            });
        }
        Search::Usual
    }

    fn allow_merge(&mut self, core: &mut QueueCore<H>, request: Slot, bio: &Bio) -> bool {
        self.change(|bfq| bfq.allow_merge(core, request, bio))
    }

    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        let bfq = self.scheduler();
        let queue = bfq.queue_of(core, bio.context.slot, bio.is_sync());
        if queue == NIL { NIL } else { bfq.queues[queue].requests.at_sector(core, bio.end()) }
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        if merge == Merge::Front {
            self.change(|bfq| bfq.merged_at_front(core, request));
        }
    }

    fn join(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        self.change(|bfq| bfq.join_requests(core, request, absorbed));
    }

    fn depth_limit(&self, _: &QueueCore<H>, nr_requests: u32, bio: &Bio) -> u32 {
        // Sixteenths of the tags: fewer for others while a raised queue is busy, so that it finds a
        // free tag.
        let sixteenths = match (bio.op, bio.flags.has(Flags::SYNC), self.scheduler().raised_busy > 0) {
            (Op::Read, _, _) => return nr_requests,
            (_, false, false) => 8,
            (_, true, false) => 12,
            (_, false, true) => 3,
            (_, true, true) => 6,
        };
        (nr_requests.saturating_mul(sixteenths) / 16).max(1)
    }

    fn allocate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        core.tables.requests[request].owner = NIL;
    }

    fn free(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let owner = core::mem::replace(&mut core.tables.requests[request].owner, NIL);
        if owner != NIL {
            let context = core.tables.requests[request].context;
            self.change(|bfq| {
                bfq.contexts[context].requests.decrement();
                bfq.queues[owner].allocated.decrement();
                bfq.end_if_unused(owner);
            });
        }
    }

    #[inline(never)]
    fn prepare_insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        self.change(|bfq| bfq.assign(core, request));
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        if core.tables.requests[request].owner == NIL {
            // No room for another queue: the storage was made too small, or none of the 64 examined
            // entries could be freed. The request bypasses the queues in order of arrival.
            return core.dispatch_append(request);
        }
        self.change(|bfq| {
            let waited = bfq.waits;
            bfq.insert_request(core, request);
            if waited && !bfq.waits {
                // Block layers that do not run the queue at every arrival would otherwise leave the
                // disk idle.
                core.run_now();
            }
        });
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        self.change(|bfq| if force { bfq.drain(core) } else { bfq.dispatch_one(core) })
    }

    fn dispatch_real_time(&mut self, core: &mut QueueCore<H>) -> u32 {
        self.change(|bfq| if bfq.takes_real_time(core) { bfq.dispatch_one(core) } else { 0 })
    }

    fn complete(&mut self, core: &mut QueueCore<H>, request: Slot) {
        if core.tables.requests[request].owner != NIL {
            self.change(|bfq| bfq.completed(core, request));
        }
    }

    fn is_empty(&self) -> bool {
        self.scheduler().queued == 0
    }

    fn slice(&self, core: &QueueCore<H>) -> Option<ActiveSlice> {
        let (bfq, slot) = (self.scheduler(), self.scheduler().in_service);
        let timeout_ms = u64::try_from(bfq.queues[slot].service.timeout).ok();
        let until_ns = timeout_ms.map(|ms| core.clock.host_ns(ms.saturating_mul(1_000_000)));
        (slot != NIL).then(|| ActiveSlice { queue: bfq.name(slot), until_ns })
    }

    fn exit(&mut self, core: &mut QueueCore<H>, context: Slot) {
        if core.tables.contexts[context].history.known {
            self.change(|bfq| bfq.context_exits(core, context));
        }
    }

    fn group_created(&mut self, core: &mut QueueCore<H>, group: Slot) {
        self.change(|bfq| bfq.add_group(core, group));
    }

    fn group_weights_changed(&mut self, core: &mut QueueCore<H>, group: Slot) {
        self.change(|bfq| bfq.update_group_weight(core, group));
    }

    fn release_group(&mut self, core: &mut QueueCore<H>, group: Slot) -> bool {
        self.change(|bfq| bfq.release_group_data(core, group))
    }

    fn timer(&mut self, core: &mut QueueCore<H>, _: Timer) {
        self.change(|bfq| bfq.idle_over(core));
    }
}

impl<H: HostTypes> Scheduler<H> {
    fn new(core: &QueueCore<H>, tables: Tables<H>) -> Self {
        let tunables = Tunables::defaults();
        let rules =
            wf2q::Rules { exact_search: false, keeps_time: false, idle_guarantee: Some(IDLE_CLASS_GUARANTEE_MS) };
        let mut bfq = Scheduler {
            queues: Arena::new(tables.queues),
            free_queues: List::default(),
            reclaim_at: 0,
            index_nodes: Arena::new(tables.index),
            contexts: Arena::new(tables.contexts),
            groups: Arena::new(tables.groups),
            engine: Engine::new(tables.engine, rules, engine_tick(core)),
            in_service: NIL,
            waits: false,
            slot_start_ns: 0,
            idle_start_ns: 0,
            busy: [0; wf2q::CLASSES],
            raised_busy: 0,
            queued: 0,
            in_flight: 0,
            position: 0,
            position_in_service: 0,
            budget_max: BUDGET_DEFAULT,
            slots: 0,
            rate: Rate::new(raising::Reference::of(core.rotational).rate.saturating_mul(2) / 3),
            queueing: Queueing::default(),
            flash_queueing: !core.rotational,
            rotational: core.rotational,
            done_queue: NIL,
            burst: Burst::default(),
            injection: Injection::default(),
            tunables,
        };
        let room = bfq.queues.capacity().min(bfq.index_nodes.capacity()).min(bfq.engine.queue_capacity());
        for slot in 0..room {
            bfq.free_queues.push_back(&mut bfq.queues, slot);
        }
        bfq.add_groups(core);
        bfq
    }

    fn set_tunable(&mut self, core: &QueueCore<H>, index: usize, value: i64) {
        self.tunables.set(index, value);
        match index {
            index::MAX_BUDGET | index::TIMEOUT_SYNC => self.find_budget_max(),
            index::LOW_LATENCY if value == 0 => self.end_all_raising(tick(core)),
            index::SEARCH_FIXED => self.engine.rules.exact_search = value != 0,
            index::TIME_FIXED => self.engine.rules.keeps_time = value != 0,
            _ => {}
        }
    }

    fn allow_merge(&mut self, core: &mut QueueCore<H>, request: Slot, bio: &Bio) -> bool {
        let (context, sync) = (bio.context.slot, bio.is_sync());
        if sync && !core.tables.requests[request].is_sync() {
            return false;
        }
        let queue = self.queue_of(core, context, sync);
        if queue == NIL {
            return false;
        }
        let target = self.merge_test(core, queue, bio.sector, context);
        let queue = if target == NIL { queue } else { self.follow(core, context, queue, target) };
        core.tables.requests[request].owner == queue
    }

    /// A context's queue for sync or async requests, or [`NIL`].
    fn queue_of(&self, core: &QueueCore<H>, context: Slot, sync: bool) -> Slot {
        if !core.tables.contexts[context].history.known {
            return NIL;
        }
        let [async_queue, sync_queue] = self.contexts[context].queues;
        if sync { sync_queue } else { async_queue }
    }

    /// The chooser of the next request within a queue.
    fn chooser(&self) -> Chooser {
        let Tunables { back_max_sectors: back_max, back_penalty, .. } = self.tunables;
        Chooser { back_max, back_penalty, marks_count: true }
    }

    /// Busy queues of all classes.
    fn busy_queues(&self) -> i32 {
        self.busy.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// The maximum budget as far as it is known reliably.
    fn budget_safe(&self) -> u64 {
        if self.slots < SLOTS_KNOWN { BUDGET_DEFAULT } else { self.budget_max }
    }

    /// The minimum budget.
    fn budget_min(&self) -> u64 {
        self.budget_safe() / 32
    }

    /// Sets the maximum budget: the tunable's, or the volume that the device transfers in a full
    /// timeout.
    fn find_budget_max(&mut self) {
        self.budget_max = match self.tunables.max_budget {
            0 => self.rate.sectors_in_ms(u64::from(self.tunables.timeout_ms)),
            budget => budget,
        };
    }

    /// The group of a queue.
    fn group_of(&self, queue: Slot) -> Slot {
        self.engine.entities[queue].level
    }

    /// The factor on a queue's weight; 1 is not raised.
    fn coefficient(&self, queue: Slot) -> u32 {
        self.engine.entities[queue].coefficient
    }

    fn is_idle_class(&self, queue: Slot) -> bool {
        self.engine.entities[queue].class == wf2q::IDLE
    }

    /// The rest of a queue's budget; negative if overdrawn.
    fn budget_left(&self, queue: Slot) -> i64 {
        let at = &self.engine.entities[queue];
        (at.budget as i64).saturating_sub(at.service as i64)
    }
}
