//! paternoster: shares of the device's time as the device shows it, one sweep over the disk.
//!
//! The idea: a *party* (a process) is owed its share of the device's time. What a request costs is
//! learned from completions ([`cost`]), so the same rule shares time on one arm, requests on flash
//! and bytes among streams. Each party has a position in virtual time, the service that it has had
//! divided by its share ([`shares`]); the virtual time itself is the position of a party that had
//! exactly its share. A party is *eligible* while its position is not ahead of the virtual time, by
//! more than one request.
//!
//! Each eligible party has a finish ([`order`]): its position and what it asks for now, divided by
//! its share. The kind of the party that finishes first is served next, so a party that asks for
//! little precedes one that asks for much. A *stream*, whose requests are near each other, asks for
//! a turn: as much as makes the move to it a small part ([`moves`]). All others ask for single
//! requests, which are served together in one sweep by sector. During a turn the device may be kept
//! idle for the next request of its stream, if that is expected to cost less than to move away and
//! back.
//!
//! Where a move costs nothing, as on flash, there are no turns, the device is not kept idle, and
//! the eligible party that finishes first is next. While a party loses a part of its share, others
//! are given less of the device's queue ([`depth`]).

mod cost;
mod depth;
mod moves;
mod order;
mod parts;
mod party;
mod shares;
#[cfg(test)]
mod tests;
mod tunables;
mod turn;

use crate::bio::Bio;
use crate::clock::Timer;
use crate::collections::{Arena, Count, List, NIL, Node, Slot};
use crate::elevator::capacity::Capacity;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::{HostTypes, TableMaker, TableOf};
use crate::elevator::{ActiveSlice, Elevator, MakeTables, Merge};
use crate::event::Note;

use cost::{CostClass, CostModel, Entered, Step};
use depth::Depth;
use moves::{Moves, Turn};
use order::{Kind, Order};
use parts::Part;
use party::{Absent, Party, Place};
pub(crate) use shares::weight_of;
use shares::{Members, Shares};
pub(crate) use tunables::INFO;
use tunables::Tunables;

/// The number of scattered requests that a party may be ahead of its share within a sweep.
const WINDOW_REQUESTS: u64 = 8;
/// The part of the pool of requests that parties with more than their share leave to others: one in
/// four.
const POOL_PART_FOR_OTHERS: u32 = 4;
/// The round of turns that is aimed at, in ns: with many parties, turns are shorter.
const ROUND_NS: u64 = 1_000_000_000;
/// Beside parties that are no streams, a turn is this part of the usual one.
const TURN_PART_BESIDE_SCATTERED: u64 = 2;
/// The shortest turn with many parties, as a part of the one with few.
const TURN_PART_MIN: u64 = 2;
/// While a light party is eligible, a turn is shorter: this part of the usual one.
const TURN_PART_FOR_LIGHT: u64 = 8;
/// The virtual time that a party may have saved up while it was away, in requests elsewhere.
const CREDIT_REQUESTS: u64 = 5;
/// The bounds of the grace period for which a party stays present without requests, in ns.
const GRACE_LEAST_NS: u64 = 10_000_000;
const GRACE_MOST_NS: u64 = 300_000_000;

/// What the elevator records of a request that it has dispatched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Served {
    entered: Entered,
    /// The step from the request of the same party that was dispatched before it.
    step: Step,
    cost_ns: u64,
}

/// The tables of the elevator.
pub(crate) struct Tables<H: HostTypes> {
    parties: H::Slots<Party>,
    nodes: H::Slots<Node>,
    sweep_nodes: H::Slots<Node>,
    served: H::Slots<Served>,
    members: H::Slots<Members>,
}

/// The state of the elevator.
pub(crate) struct Paternoster<H: HostTypes> {
    parties: TableOf<H, Party>,
    served: TableOf<H, Served>,
    order: Order<H>,
    shares: Shares<H>,
    /// The number of contexts for which the tables have entries.
    room: u32,
    /// The stream whose turn it is, or [`NIL`].
    active: Slot,
    /// Parties that are present without requests.
    absent: List<Absent>,
    /// Requests that are queued.
    queued: u32,
    /// The count of requests.
    arrivals: u64,
    /// The sector after the end of the request that was dispatched last.
    head: u64,
    costs: CostModel,
    /// The cost of the requests in the device, in ns.
    in_flight_ns: u64,
    /// Present parties that came back so late that they lost a part of their share.
    deprived: u32,
    /// Present parties that are no streams.
    scattered: u32,
    depth: Depth,
    moves: Moves,
    tunables: Tunables,
}

impl<H: HostTypes> MakeTables<H> for Paternoster<H> {
    fn make_tables<M: TableMaker<H>>(capacity: Capacity, maker: &mut M) -> Tables<H> {
        Tables {
            parties: maker.table(capacity.contexts),
            nodes: maker.table(capacity.contexts),
            sweep_nodes: maker.table(capacity.contexts),
            served: maker.table(capacity.request_slots()),
            members: maker.table(capacity.group_slots()),
        }
    }
}

impl<H: HostTypes> Elevator<H> for Paternoster<H> {
    type Tables = Tables<H>;

    fn new(_: &mut QueueCore<H>, tables: Tables<H>) -> Self {
        let parties: TableOf<H, Party> = Arena::new(tables.parties);
        let order = Order::new(tables.nodes, tables.sweep_nodes);
        let mut new = Paternoster {
            room: parties.capacity().min(order.capacity()),
            parties,
            served: Arena::new(tables.served),
            order,
            shares: Shares::new(tables.members),
            active: NIL,
            absent: List::default(),
            queued: 0,
            arrivals: 0,
            head: 0,
            costs: CostModel::default(),
            in_flight_ns: 0,
            deprived: 0,
            scattered: 0,
            depth: Depth::default(),
            moves: Moves::default(),
            tunables: Tunables::defaults(),
        };
        new.set_turn();
        new
    }

    fn into_tables(self) -> Tables<H> {
        let (nodes, sweep_nodes) = self.order.into_slots();
        Tables {
            parties: self.parties.into_slots(),
            nodes,
            sweep_nodes,
            served: self.served.into_slots(),
            members: self.shares.into_slots(),
        }
    }

    fn tunable(&self, index: usize) -> i64 {
        self.tunables.get(index)
    }

    fn set_tunable(&mut self, _: &mut QueueCore<H>, index: usize, value: i64) {
        self.tunables.set(index, value);
        self.costs.set_weighing(self.tunables.parts.has(Part::WriteFactor));
        self.set_turn();
    }

    fn allow_merge(&mut self, core: &mut QueueCore<H>, request: Slot, bio: &Bio) -> bool {
        let entry = &core.tables.requests[request];
        entry.context == bio.context.slot && entry.is_sync() == bio.is_sync()
    }

    fn find_front_merge(&mut self, core: &mut QueueCore<H>, bio: &Bio) -> Slot {
        let party = bio.context.slot;
        if party < self.room { self.parties[party].at_sector(core, bio.end(), bio.is_sync()) } else { NIL }
    }

    fn merged(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        let party = core.tables.requests[request].context;
        if party >= self.room {
            return;
        }
        match merge {
            Merge::Back => {
                let end = core.tables.requests[request].end();
                self.parties[party].extended(end);
            }
            Merge::Front => {
                self.parties[party].resort(core, request);
                self.update_sweep(core, party);
            }
        }
    }

    fn join(&mut self, core: &mut QueueCore<H>, _: Slot, absorbed: Slot) {
        let party = core.tables.requests[absorbed].context;
        self.remove(core, party, absorbed);
        if self.parties[party].queued == 0 {
            self.unfile(party);
            self.set_absent_if_done(core, party);
        } else {
            self.update_sweep(core, party);
        }
    }

    fn allocate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        core.tables.requests[request].owner = NIL;
    }

    fn insert(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let party = core.tables.requests[request].context;
        if party >= self.room {
            // The storage was made for fewer contexts: serve the request in order of arrival.
            return core.dispatch_sort(request);
        }
        self.prepare(core, party);
        self.arrivals.increment();
        let (now_ns, order) = (core.ktime_ns(), self.arrivals);
        let entry = &mut self.parties[party];
        let away_ns = entry.arrive(core, request, now_ns);
        entry.insert(core, request, order);
        self.set_scattered(party, self.parties[party].has_scattered_requests());
        self.queued.increment();
        match self.parties[party].place {
            Place::Out => self.arrive(core, party, away_ns),
            Place::InTurn => {
                if core.timers.cancel(Timer::Idle) {
                    self.parties[party].returned(true);
                    core.note(|core| Note::IdleHit { queue: core.tables.contexts[party].pid });
                    core.run_now();
                }
            }
            Place::Eligible(_) => self.update_sweep(core, party),
            Place::Waiting => {}
        }
    }

    fn dispatch(&mut self, core: &mut QueueCore<H>, force: bool) -> u32 {
        if force {
            return self.drain(core);
        }
        if self.queued == 0 {
            return 0;
        }
        self.forget_absent(core);
        let party = self.select(core);
        if party == NIL {
            return 0;
        }
        self.serve(core, party);
        1
    }

    fn depth_limit(&self, core: &QueueCore<H>, nr_requests: u32, bio: &Bio) -> u32 {
        let party = bio.context.slot;
        let allocated = u64::from(core.tables.contexts[party].requests).saturating_add(1);
        if party >= self.room
            || !self.tunables.parts.has(Part::Pool)
            || self.has_share_of(core, party, allocated, nr_requests)
            || self.is_for_this_turn(core, party, allocated)
        {
            return nr_requests;
        }
        // A party with more than its share leaves a part to others.
        nr_requests.saturating_sub(nr_requests / POOL_PART_FOR_OTHERS)
    }

    fn activate(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let op = core.tables.requests[request].op;
        self.served[request].entered = self.costs.enter(op, core.ktime_ns());
    }

    fn complete(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let now_ns = core.ktime_ns();
        let entry = &core.tables.requests[request];
        let Served { entered, step, cost_ns } = self.served[request];
        let time_ns = self.costs.complete(entry, step, entered, now_ns);
        self.depth.complete(entry.sectors, now_ns, self.costs.alone_ns());
        if self.costs.take_changed() {
            self.set_turn();
        }
        let party = entry.owner;
        if party != NIL {
            if self.moves.is_of(party) {
                self.moves.complete(time_ns, self.costs.continuing(entry), cost_ns);
            }
            self.in_flight_ns = self.in_flight_ns.saturating_sub(cost_ns);
            self.parties[party].in_flight.decrement();
            self.parties[party].left_ns = now_ns;
            self.set_absent_if_done(core, party);
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
        if context == self.active && self.parties[context].queued == 0 {
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
        // Parties that left it without requests are present for a while.
        let mut party = self.absent.head();
        while party != NIL {
            let next = self.absent.next(&self.parties, party);
            if self.parties[party].group == group {
                self.set_gone(core, party);
            }
            party = next;
        }
        self.shares.is_empty(group)
    }

    fn group_changed(&mut self, core: &mut QueueCore<H>, context: Slot) {
        self.reweigh(core, context);
    }

    fn timer(&mut self, core: &mut QueueCore<H>, _: Timer) {
        let party = self.active;
        if party != NIL && self.parties[party].queued == 0 {
            self.parties[party].returned(false);
            core.note(|core| Note::IdleTimeout { queue: core.tables.contexts[party].pid });
            self.end_turn(core);
        }
        core.kick();
    }
}

impl<H: HostTypes> Paternoster<H> {
    /// Begins the state of a context that the elevator has not seen, and counts the party as
    /// present.
    fn prepare(&mut self, core: &mut QueueCore<H>, party: Slot) {
        let is_new = !core::mem::replace(&mut core.tables.contexts[party].history.known, true);
        if is_new {
            debug_assert_eq!(self.parties[party].queued, 0, "a new party has no requests");
            self.forget(core, party);
            self.parties[party] = Party::at(self.order.time);
        }
        let entry = &mut self.parties[party];
        if !entry.is_present {
            entry.is_present = true;
            entry.weight = shares::weight_of(core.tables.contexts[party].effective_priority());
            entry.group = self.shares.group_of(core, party);
            self.shares.enter(core, entry.group, entry.weight);
        } else if entry.queued == 0 && entry.in_flight == 0 {
            self.absent.remove(&mut self.parties, party);
        }
    }

    /// Removes a party of an earlier context at the slot.
    fn forget(&mut self, core: &mut QueueCore<H>, party: Slot) {
        if self.active == party {
            self.end_turn(core);
            core.kick();
        }
        if self.parties[party].is_present {
            self.set_gone(core, party);
        }
    }

    /// A party without requests is no longer present.
    fn set_gone(&mut self, core: &QueueCore<H>, party: Slot) {
        self.absent.remove(&mut self.parties, party);
        let Party { group, weight, .. } = self.parties[party];
        self.parties[party].is_present = false;
        self.set_deprived(party, false);
        self.set_scattered(party, false);
        self.shares.leave(core, group, weight);
    }

    /// Removes parties that have been without requests for the grace period, at most two a call.
    fn forget_absent(&mut self, core: &QueueCore<H>) {
        let grace_ns = self.moves.turn_ns().saturating_mul(2).clamp(GRACE_LEAST_NS, GRACE_MOST_NS);
        for _ in 0..2 {
            let party = self.absent.head();
            if party == NIL || self.parties[party].left_ns.saturating_add(grace_ns) > core.ktime_ns() {
                return;
            }
            self.set_gone(core, party);
        }
    }

    fn set_absent_if_done(&mut self, _: &QueueCore<H>, party: Slot) {
        let entry = &self.parties[party];
        if entry.queued == 0 && entry.in_flight == 0 && entry.is_present {
            self.absent.push_back(&mut self.parties, party);
        }
    }

    /// Applies a changed priority or group.
    fn reweigh(&mut self, core: &QueueCore<H>, party: Slot) {
        if party >= self.room || !self.parties[party].is_present {
            return;
        }
        let Party { group, weight, .. } = self.parties[party];
        self.shares.leave(core, group, weight);
        let (group, weight) =
            (self.shares.group_of(core, party), shares::weight_of(core.tables.contexts[party].effective_priority()));
        self.shares.enter(core, group, weight);
        let entry = &mut self.parties[party];
        (entry.group, entry.weight) = (group, weight);
    }

    /// Computes the cost of a move and the length of a turn.
    fn set_turn(&mut self) {
        let most_ns = self.tunables.turn_max_us.saturating_mul(1000);
        self.moves.update(&self.costs, self.tunables.turn_moves, most_ns);
    }

    /// The distance in virtual time of a cost to a party.
    fn distance(&self, core: &QueueCore<H>, party: Slot, cost_ns: u64) -> u64 {
        let Party { group, weight, .. } = self.parties[party];
        self.shares.distance(core, group, weight, cost_ns)
    }

    /// Files a party whose first request has arrived. What it did not use of its share while it was
    /// away is lost, but for some requests.
    fn arrive(&mut self, core: &QueueCore<H>, party: Slot, away_ns: u64) {
        let is_charged = self.tunables.parts.has(Part::ThinkCharge);
        let charged_ns = if is_charged { away_ns.min(self.parties[party].cost_ns) } else { 0 };
        let away = self.distance(core, party, charged_ns);
        if away_ns > 0 {
            self.parties[party].returned(away_ns <= self.moves.move_ns());
        }
        let is_bounded = self.tunables.parts.has(Part::CreditBound);
        let credit = if is_bounded { self.costs.far_ns().saturating_mul(CREDIT_REQUESTS) } else { u64::MAX };
        let entry = &mut self.parties[party];
        let least = self.order.time.saturating_sub(credit);
        entry.is_light = entry.position < self.order.time && entry.in_flight == 0;
        let position = entry.position.saturating_add(away);
        let is_deprived = position < least;
        entry.position = position.max(least);
        self.set_deprived(party, is_deprived);
        self.file(core, party);
    }

    /// Counts a party that is no stream, or no longer.
    fn set_scattered(&mut self, party: Slot, is_scattered: bool) {
        count_if(&mut self.parties[party].is_scattered, is_scattered, &mut self.scattered);
    }

    /// Counts a party that lost a part of its share, or no longer.
    fn set_deprived(&mut self, party: Slot, is_deprived: bool) {
        count_if(&mut self.parties[party].is_deprived, is_deprived, &mut self.deprived);
    }

    /// Returns true if this many requests of a pool of `size` are within the share of a party.
    fn has_share_of(&self, core: &QueueCore<H>, party: Slot, requests: u64, size: u32) -> bool {
        let entry = &self.parties[party];
        let (group, weight) = if entry.is_present {
            (entry.group, entry.weight)
        } else {
            let priority = core.tables.contexts[party].effective_priority();
            (self.shares.group_of(core, party), shares::weight_of(priority))
        };
        self.shares.distance(core, group, weight, requests) <= u64::from(size)
    }

    /// Returns true if this many requests of a party will be served in its present turn.
    fn is_for_this_turn(&self, core: &QueueCore<H>, party: Slot, requests: u64) -> bool {
        let entry = &self.parties[party];
        party == self.active
            && entry.position.saturating_add(self.distance(core, party, entry.cost_ns.saturating_mul(requests)))
                < entry.until
    }

    /// The turn of a party, in ns: shorter with many parties.
    fn turn_of(&self, core: &QueueCore<H>, party: Slot) -> u64 {
        let most_ns =
            if self.scattered > 0 { self.moves.turn_ns() / TURN_PART_BESIDE_SCATTERED } else { self.moves.turn_ns() };
        let round = self.distance(core, party, most_ns);
        let shorter = most_ns.saturating_mul(ROUND_NS / 1_000_000) / (round / 1_000_000).max(1);
        shorter.max(most_ns / TURN_PART_MIN).min(most_ns)
    }

    /// Files a party with requests: it is eligible, or waits.
    fn file(&mut self, core: &QueueCore<H>, party: Slot) {
        let Party { position, .. } = self.parties[party];
        let is_turn = self.moves.matter() && self.parties[party].is_stream();
        if position < self.order.time {
            return self.board(core, party);
        }
        let ahead = if is_turn { 0 } else { self.distance(core, party, self.costs.far_ns()) };
        let from = position.saturating_sub(ahead);
        if from < self.order.time {
            self.board(core, party);
        } else {
            // With the virtual time itself, those that have waited for it precede.
            self.parties[party].place = Place::Waiting;
            self.order.wait(party, from);
        }
    }

    /// Makes a party eligible.
    fn board(&mut self, core: &QueueCore<H>, party: Slot) {
        let Party { position, is_light, .. } = self.parties[party];
        let is_light = is_light && position < self.order.time;
        self.parties[party].is_light = is_light;
        let matters = self.moves.matter();
        let window_ns = if matters { self.costs.far_ns().saturating_mul(WINDOW_REQUESTS) } else { 0 };
        self.parties[party].until = position.saturating_add(self.distance(core, party, window_ns));
        let (kind, asked_ns) = if is_light {
            (Kind::Light, self.costs.far_ns())
        } else if matters && self.parties[party].is_stream() {
            (Kind::Stream, self.turn_of(core, party))
        } else {
            (Kind::Scattered, window_ns.max(self.costs.far_ns()))
        };
        self.board_as(core, party, kind, asked_ns);
    }

    /// Makes a party eligible that asks for this much, in ns.
    fn board_as(&mut self, core: &QueueCore<H>, party: Slot, kind: Kind, asked_ns: u64) {
        let finish = self.parties[party].position.saturating_add(self.distance(core, party, asked_ns));
        self.parties[party].place = Place::Eligible(kind);
        let sector = self.moves.matter().then(|| core.tables.nodes[self.next_request(core, party)].key());
        self.order.board(party, kind, finish, sector);
    }

    /// The request of a party that is served next.
    fn next_request(&self, core: &QueueCore<H>, party: Slot) -> Slot {
        let entry = &self.parties[party];
        if !self.moves.matter() {
            return entry.oldest();
        }
        let from = if entry.place == Place::InTurn { entry.served_end } else { self.head };
        entry.next_from(core, from)
    }

    /// Updates the position in the sweep after a change of a party's requests.
    fn update_sweep(&mut self, core: &QueueCore<H>, party: Slot) {
        if let Place::Eligible(kind) = self.parties[party].place
            && self.order.is_in_sweep(party)
        {
            let request = self.next_request(core, party);
            self.order.move_in_sweep(party, kind, core.tables.nodes[request].key());
        }
    }

    /// Removes a party from the orders. A stream in its turn stays.
    fn unfile(&mut self, party: Slot) {
        match self.parties[party].place {
            Place::Waiting => self.order.stop_waiting(party),
            Place::Eligible(kind) => self.order.leave(party, kind),
            Place::Out | Place::InTurn => return,
        }
        self.parties[party].place = Place::Out;
    }

    /// Makes those parties eligible that have waited until now.
    fn board_waiting(&mut self, core: &QueueCore<H>) {
        loop {
            // A party that had more than its share is served if no other is eligible, but not so
            // deep that those with less have to wait in the device.
            let stays = self.order.has_eligible() || self.holds_back();
            let party = self.order.next_to_board(stays);
            if party == NIL {
                return;
            }
            self.order.stop_waiting(party);
            self.board(core, party);
        }
    }

    /// Returns true if parties that had more than their share are to wait although no other is
    /// eligible: the device is deep enough, and others lost a part of their share.
    fn holds_back(&mut self) -> bool {
        self.tunables.parts.has(Part::HoldBack)
            && self.deprived > 0
            && self.costs.in_flight() > 0
            && self.depth.is_enough(self.in_flight_ns)
    }

    /// Selects the party to serve, or [`NIL`] to keep the device idle.
    fn select(&mut self, core: &mut QueueCore<H>) -> Slot {
        if self.active != NIL {
            match self.turn(core) {
                Turn::GoesOn => return self.active,
                Turn::Waits => return NIL,
                Turn::Ends => self.end_turn(core),
            }
        }
        self.board_waiting(core);
        let Some((kind, first)) = self.order.first() else { return NIL };
        let matters = self.moves.matter();
        let is_swept =
            self.tunables.parts.has(Part::Sweep) && matters && kind != Kind::Stream && self.order.is_in_sweep(first);
        let party = if is_swept { self.order.next_in_sweep(kind, self.head) } else { first };
        // Not beside others: they would wait for it, and writes take time later.
        let is_alone = self.scattered == 0 && !self.costs.has_writes(core.ktime_ns());
        let is_trial = is_alone && self.moves.is_trial_due() && self.tunables.parts.has(Part::Trials);
        if (matters || is_trial) && self.parties[party].is_stream() {
            self.begin_turn(core, party, kind, is_trial);
        }
        party
    }

    fn begin_turn(&mut self, core: &mut QueueCore<H>, party: Slot, kind: Kind, is_trial: bool) {
        self.order.leave(party, kind);
        let turn_ns =
            if is_trial { self.moves.trial_ns(self.parties[party].cost_ns) } else { self.turn_of(core, party) };
        let turn = self.distance(core, party, turn_ns);
        let entry = &mut self.parties[party];
        entry.place = Place::InTurn;
        entry.began = entry.position;
        entry.until = entry.position.saturating_add(turn);
        self.active = party;
        self.moves.begin(party, is_trial);
        self.set_turn();
        core.note(|core| Note::Activate {
            queue: core.tables.contexts[party].pid,
            level: core.tables.contexts[party].effective_priority().level(),
        });
    }

    fn end_turn(&mut self, core: &mut QueueCore<H>) {
        let party = core::mem::replace(&mut self.active, NIL);
        core.timers.cancel(Timer::Idle);
        if self.moves.is_on_trial() && self.moves.end_trial() {
            // Costs are different with turns: they are learned again.
            self.costs.forget();
            self.set_turn();
        }
        self.parties[party].place = Place::Out;
        if self.parties[party].queued > 0 {
            self.file(core, party);
        }
    }

    /// Decides on the turn of the active stream, while requests are queued.
    fn turn(&mut self, core: &mut QueueCore<H>) -> Turn {
        let party = self.active;
        let entry = &self.parties[party];
        let (is_trial, matters) = (self.moves.is_on_trial(), self.moves.matter());
        let learned = entry.began.saturating_add(self.distance(core, party, self.moves.turn_ns()));
        let until = if is_trial { entry.until } else { entry.until.min(learned) };
        if entry.position >= until || self.gives_way(core, party) || !(matters || is_trial) {
            return Turn::Ends;
        }
        if entry.queued > 0 {
            return Turn::GoesOn;
        }
        if !self.tunables.waits || !entry.is_stream() {
            return Turn::Ends;
        }
        if entry.in_flight > 0 && self.costs.in_flight() > 0 {
            return Turn::Waits;
        }
        // To wait costs the think time if it returns, and the whole wait if not. It saves a move.
        let move_ns = self.moves.move_ns();
        let wait_ns = entry.think_ns.saturating_mul(2).max(move_ns / 8).min(move_ns.max(1));
        let chance = entry.return_chance();
        let gain = move_ns.saturating_mul(chance);
        let loss =
            entry.think_ns.saturating_mul(chance).saturating_add(wait_ns.saturating_mul(256u64.saturating_sub(chance)));
        let until_ns = entry.left_ns.saturating_add(wait_ns);
        if gain <= loss || core.ktime_ns() >= until_ns {
            return Turn::Ends;
        }
        if core.timers.armed_for(Timer::Idle).is_none() {
            core.arm_at_ktime(Timer::Idle, until_ns);
            core.note(|core| Note::IdleArmed {
                queue: core.tables.contexts[party].pid,
                until_ns: core.clock.host_ns(until_ns),
            });
        }
        Turn::Waits
    }

    /// Returns true if a turn ends early because a light party is eligible.
    fn gives_way(&self, core: &QueueCore<H>, party: Slot) -> bool {
        if !self.order.has(Kind::Light) || !self.tunables.parts.has(Part::GiveWay) {
            return false;
        }
        let entry = &self.parties[party];
        let shorter = self.distance(core, party, self.moves.turn_ns() / TURN_PART_FOR_LIGHT);
        entry.position >= entry.began.saturating_add(shorter)
    }

    /// Dispatches the next request of a party and charges it.
    fn serve(&mut self, core: &mut QueueCore<H>, party: Slot) {
        let request = self.next_request(core, party);
        let entry = core.tables.requests[request];
        let step = Step::between(self.parties[party].served_end, entry.sector);
        let cost_ns = self.costs.cost(CostClass::of(entry.op, step), entry.sectors);
        self.served[request] = Served { entered: Entered::default(), step, cost_ns };
        self.in_flight_ns = self.in_flight_ns.saturating_add(cost_ns);
        self.parties[party].cost_ns = cost_ns;
        self.moves.serve(cost_ns);
        self.move_to_dispatch(core, party, request);
        let distance = self.distance(core, party, cost_ns);
        self.order.time = self.order.time.saturating_add(cost_ns);
        let party_entry = &mut self.parties[party];
        party_entry.position = party_entry.position.saturating_add(distance);
        core.note(|core| Note::Charge { queue: core.tables.contexts[party].pid, amount: cost_ns });
        if party_entry.place == Place::InTurn {
            return;
        }
        let Party { position, until, queued, place, .. } = *party_entry;
        if let Place::Eligible(kind) = place {
            self.order.leave(party, kind);
        }
        self.parties[party].place = Place::Out;
        if queued == 0 {
            return;
        }
        if place == Place::Eligible(Kind::Scattered) && position < until {
            self.board_as(core, party, Kind::Scattered, self.costs.far_ns());
        } else {
            self.file(core, party);
        }
    }

    /// Removes a request of a party.
    fn remove(&mut self, core: &mut QueueCore<H>, party: Slot, request: Slot) {
        self.parties[party].remove(core, request);
        self.queued.decrement();
    }

    /// Moves a request to the dispatch list; it then counts as in the device.
    fn move_to_dispatch(&mut self, core: &mut QueueCore<H>, party: Slot, request: Slot) {
        let end = core.tables.requests[request].end();
        core.tables.requests[request].owner = party;
        self.remove(core, party, request);
        let entry = &mut self.parties[party];
        entry.in_flight.increment();
        entry.served_end = end;
        self.head = end;
        core.dispatch_append(request);
    }

    /// Moves all requests without a charge. A turn goes on afterwards.
    fn drain(&mut self, core: &mut QueueCore<H>) -> u32 {
        let mut moved = 0u32;
        self.moves.cancel_trial();
        for party in 0..self.room {
            if self.parties[party].queued == 0 {
                continue;
            }
            self.unfile(party);
            while self.parties[party].queued > 0 {
                let request = self.parties[party].oldest();
                self.served[request] = Served::default();
                self.move_to_dispatch(core, party, request);
                moved.increment();
            }
        }
        moved
    }
}

/// Sets a mark, and counts how many are set.
fn count_if(mark: &mut bool, is_set: bool, count: &mut u32) {
    match (core::mem::replace(mark, is_set), is_set) {
        (false, true) => count.increment(),
        (true, false) => count.decrement(),
        _ => {}
    }
}
