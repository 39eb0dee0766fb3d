//! paternoster: shares of the device's time as the device shows it, one sweep over the disk.
//!
//! The idea: a *context* (a process) is owed its share of the device's time. What a request costs
//! is learned from completions, so the same rule shares time on one arm, requests on flash and
//! bytes among streams. Each context has a position in virtual time, the costs of its requests
//! divided by its share; the virtual time itself is the position of a context that had exactly its
//! share. A context is *eligible* while its position is not ahead of the virtual time, by more than
//! one request.
//!
//! Each eligible context has a finish: its position and what it asks for now, divided by its share.
//! The kind of the context that finishes first is served next, so a context that asks for little
//! precedes one that asks for much. A *stream*, whose requests are near each other, asks for a
//! turn: as much as makes the seek to it a small part. All others ask for single requests, which
//! are served together in one sweep by sector. During a turn the device may be kept idle for the
//! next request of its stream, if that is expected to cost less than a seek away and back.
//!
//! Where a seek costs nothing, as on flash, there are no turns, the device is not kept idle, and
//! the eligible context that finishes first is next. While a context loses a part of its share,
//! others are given less of the device's queue.
//!
//! `docs/elevators/paternoster.md` describes the elevator. Its parts and the modules:
//!
//! | part | module |
//! |---|---|
//! | Life of a request | this file, with [`context`], the queue of a context |
//! | Who is served next | [`selection`] |
//! | What a request costs | [`costs`] |
//! | Shares | [`shares`] |
//! | Turns and seeks | [`turns`] |
//! | Depth | [`depth`] |

mod context;
mod costs;
mod depth;
mod selection;
mod shares;
mod tunables;
mod turns;

use crate::bio::Bio;
use crate::clock::Timer;
use crate::collections::{Arena, Count, List, NIL, Node, Slot};
use crate::elevator::capacity::Capacity;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker, TableOf};
use crate::elevator::{ActiveSlice, Elevator, MakeTables, Merge};
use crate::event::Note;

use context::{ContextQueue, Idle, Stage};
use costs::{CostModel, Distance, Issue};
use depth::DepthLimit;
use selection::Order;
pub(crate) use shares::weight_of;
use shares::{Members, Shares};
pub(crate) use tunables::INFO;
use tunables::Tunables;
use turns::Seeks;

/// What the elevator records of a request that it has dispatched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dispatched {
    issue: Issue,
    /// The distance from the request of the same context that was dispatched before it.
    distance: Distance,
    cost_ns: u64,
}

/// The tables of the elevator.
pub(crate) struct Tables<H: HostTypes> {
    contexts: H::Slots<ContextQueue>,
    nodes: H::Slots<Node>,
    sweep_nodes: H::Slots<Node>,
    dispatched: H::Slots<Dispatched>,
    members: H::Slots<Members>,
}

/// The state of the elevator.
pub(crate) struct Paternoster<H: HostTypes> {
    contexts: TableOf<H, ContextQueue>,
    dispatched: TableOf<H, Dispatched>,
    order: Order<H>,
    shares: Shares<H>,
    /// The number of contexts for which the tables have entries.
    capacity: u32,
    /// The stream whose turn it is, or [`NIL`].
    in_turn: Slot,
    /// Contexts that are present without requests.
    idle: List<Idle>,
    /// Requests that are queued.
    queued: u32,
    /// The sector after the end of the request that was dispatched last.
    head: u64,
    costs: CostModel,
    /// The cost of the requests in the device, in ns.
    in_flight_ns: u64,
    /// The number of present contexts that lost a part of their share when they returned last.
    deprived: u32,
    /// The number of present contexts that are scattered.
    scattered: u32,
    depth: DepthLimit,
    seeks: Seeks,
    tunables: Tunables,
}

impl<H: HostTypes> MakeTables<H> for Paternoster<H> {
    fn make_tables<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Tables<H> {
        Tables {
            contexts: maker.table(capacity.contexts),
            nodes: maker.table(capacity.contexts),
            sweep_nodes: maker.table(capacity.contexts),
            dispatched: maker.table(capacity.request_slots()),
            members: maker.table(capacity.group_slots()),
        }
    }
}

impl<H: HostTypes> Elevator<H> for Paternoster<H> {
    type Tables = Tables<H>;

    fn new(_: &mut QueueCore<H>, tables: Tables<H>) -> Self {
        let contexts: TableOf<H, ContextQueue> = Arena::new(tables.contexts);
        let order = Order::new(tables.nodes, tables.sweep_nodes);
        let mut new = Paternoster {
            capacity: contexts.capacity().min(order.capacity()),
            contexts,
            dispatched: Arena::new(tables.dispatched),
            order,
            shares: Shares::new(tables.members),
            in_turn: NIL,
            idle: List::default(),
            queued: 0,
            head: 0,
            costs: CostModel::default(),
            in_flight_ns: 0,
            deprived: 0,
            scattered: 0,
            depth: DepthLimit::default(),
            seeks: Seeks::default(),
            tunables: Tunables::defaults(),
        };
        new.update_turn();
        new
    }

    fn into_tables(self) -> Tables<H> {
        let (nodes, sweep_nodes) = self.order.into_slots();
        Tables {
            contexts: self.contexts.into_slots(),
            nodes,
            sweep_nodes,
            dispatched: self.dispatched.into_slots(),
            members: self.shares.into_slots(),
        }
    }

    fn tunable(&self, index: usize) -> i64 {
        self.tunables.get(index)
    }

    fn set_tunable(&mut self, _: &mut QueueCore<H>, index: usize, value: i64) {
        self.tunables.set(index, value);
        self.update_turn();
    }

    fn allow_merge(&mut self, core: &mut QueueCore<H>, request: Slot, bio: &Bio) -> bool {
        let entry = &core.tables.requests[request];
        entry.context == bio.context.slot && entry.is_sync() == bio.is_sync()
    }

    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        let context = bio.context.slot;
        if context < self.capacity { self.contexts[context].at_sector(core, bio.end(), bio.is_sync()) } else { NIL }
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        let entry = &core.tables.requests[request];
        let (context, end) = (entry.context, entry.end());
        if context >= self.capacity {
            return;
        }
        match merge {
            Merge::Back => self.contexts[context].update_score(true, end),
            Merge::Front => {
                self.contexts[context].resort(core, request);
                self.update_sweep(core, context);
            }
        }
    }

    fn join(&mut self, core: &mut QueueCore<H>, _: Slot, absorbed: Slot) {
        let context = core.tables.requests[absorbed].context;
        self.remove(core, context, absorbed);
        if self.contexts[context].queued == 0 {
            self.dequeue(context);
            self.begin_grace_if_idle(context);
        } else {
            self.update_sweep(core, context);
        }
    }

    fn allocate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        core.tables.requests[request].owner = NIL;
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let context = core.tables.requests[request].context;
        if context >= self.capacity {
            // The storage was made for fewer contexts: serve the request in order of arrival.
            return core.dispatch_sort(request);
        }
        self.set_present(core, context);
        let now_ns = core.ktime_ns();
        let entry = &mut self.contexts[context];
        let away_ns = entry.arrive(core, request, now_ns);
        entry.insert(core, request);
        self.set_scattered(context, self.contexts[context].has_scattered_requests());
        self.queued.increment();
        match self.contexts[context].stage {
            Stage::Empty => self.enqueue_returned(core, context, away_ns),
            Stage::InTurn => {
                if core.timers.cancel(Timer::Idle) {
                    self.contexts[context].record_return(true);
                    core.note(|core| Note::IdleHit { queue: core.tables.contexts[context].pid });
                    core.run_now();
                }
            }
            Stage::Eligible(_) => self.update_sweep(core, context),
            Stage::Waiting => {}
        }
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        if force {
            return self.drain(core);
        }
        if self.queued == 0 {
            return 0;
        }
        self.end_grace(core);
        let context = self.select(core);
        if context == NIL {
            return 0;
        }
        self.serve(core, context);
        1
    }

    fn depth_limit(&self, core: &QueueCore<H>, nr_requests: u32, bio: &Bio) -> u32 {
        self.pool_limit(core, bio.context.slot, nr_requests)
    }

    fn activate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let op = core.tables.requests[request].op;
        self.dispatched[request].issue = self.costs.issue(op, core.ktime_ns());
    }

    fn complete(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let now_ns = core.ktime_ns();
        let entry = &core.tables.requests[request];
        let Dispatched { issue, distance, cost_ns } = self.dispatched[request];
        let time_ns = self.costs.complete(entry, distance, issue, now_ns);
        self.depth.complete(entry.sectors, now_ns, self.costs.unloaded_ns);
        if self.costs.take_changed() {
            self.update_turn();
        }
        let context = entry.owner;
        if context != NIL {
            if self.seeks.owner == Some(context) {
                self.seeks.complete(time_ns, self.costs.continuing(entry), cost_ns);
            }
            self.in_flight_ns = self.in_flight_ns.saturating_sub(cost_ns);
            let entry = &mut self.contexts[context];
            entry.in_flight.decrement();
            entry.completed_ns = now_ns;
            self.begin_grace_if_idle(context);
        }
        if self.queued > 0 {
            core.kick();
        }
    }

    fn is_empty(&self) -> bool {
        self.queued == 0
    }

    fn slice(&self, core: &QueueCore<H>) -> Option<ActiveSlice> {
        self.active_slice(core)
    }

    fn exit(&mut self, core: &mut QueueCore<H>, context: Slot) {
        if context == self.in_turn && self.contexts[context].queued == 0 {
            self.end_turn(core);
            core.kick();
        }
    }

    fn priority_changed(&mut self, core: &mut QueueCore<H>, context: Slot) {
        self.reweigh(core, context);
    }

    fn group_created(&mut self, _: &mut QueueCore<H>, group: Slot) {
        self.shares.begin(group);
    }

    fn group_weights_changed(&mut self, core: &mut QueueCore<H>, group: Slot) {
        self.shares.reweigh(core, group);
    }

    fn release_group(&mut self, core: &mut QueueCore<H>, group: Slot) -> bool {
        self.end_grace_in(core, group);
        self.shares.is_empty(group)
    }

    fn group_changed(&mut self, core: &mut QueueCore<H>, context: Slot) {
        self.reweigh(core, context);
    }

    fn timer(&mut self, core: &mut QueueCore<H>, _: Timer) {
        let context = self.in_turn;
        if context != NIL && self.contexts[context].queued == 0 {
            self.contexts[context].record_return(false);
            core.note(|core| Note::IdleTimeout { queue: core.tables.contexts[context].pid });
            self.end_turn(core);
        }
        core.kick();
    }
}
