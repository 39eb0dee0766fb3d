//! Who is served next: eligibility by start, the kind by the least finish, the sweep within it.
//!
//! A context with queued requests waits until the virtual time has reached its start; then it is
//! eligible. Its finish is its position and what it asks for, divided by its share. The kind of the
//! eligible context with the least finish is served: of streams the one with the least finish gets
//! a turn, of the others the next one in the sweep by sector has a request served.

mod order;

use crate::collections::{Count, NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::Note;

use super::context::{ContextQueue, Stage};
use super::costs::{CostClass, Distance, Issue};
use super::turns::Turn;
use super::{Dispatched, Paternoster};
pub use order::{Kind, Order};

/// The number of far requests that a scattered context may be ahead of its share within a sweep.
const WINDOW_REQUESTS: u64 = 8;
/// The virtual time by which a context may be behind when it returns, in far requests.
const CREDIT_REQUESTS: u64 = 5;

impl<H: HostTypes> Paternoster<H> {
    /// Enqueues a context that returns after an absence. What it did not use of its share
    /// meanwhile is lost, but for the credit.
    pub(super) fn enqueue_returned(&mut self, core: &QueueCore<H>, context: Slot, away_ns: u64) {
        let think = self.normalised(core, context, away_ns.min(self.contexts[context].cost_ns));
        let credit = self.costs.far_ns.saturating_mul(CREDIT_REQUESTS);
        let least = self.order.virtual_time.saturating_sub(credit);
        let entry = &mut self.contexts[context];
        if away_ns > 0 {
            entry.record_return(away_ns <= self.seeks.seek_ns);
        }
        entry.is_light = entry.position < self.order.virtual_time && entry.in_flight == 0;
        let position = entry.position.saturating_add(think);
        entry.position = position.max(least);
        self.set_deprived(context, position < least);
        self.enqueue(core, context);
    }

    /// Makes a context with queued requests eligible, or lets it wait for its start.
    pub(super) fn enqueue(&mut self, core: &QueueCore<H>, context: Slot) {
        let ContextQueue { position, .. } = self.contexts[context];
        let may_be_ahead = position >= self.order.virtual_time && !self.gets_turns(context);
        let ahead = if may_be_ahead { self.normalised(core, context, self.costs.far_ns) } else { 0 };
        let start = position.saturating_sub(ahead);
        if start < self.order.virtual_time {
            self.make_eligible(core, context);
        } else {
            // At the virtual time itself, the contexts that have waited for it precede.
            self.contexts[context].stage = Stage::Waiting;
            self.order.insert_waiting(context, start);
        }
    }

    /// Returns true if a context is a stream and gets turns.
    fn gets_turns(&self, context: Slot) -> bool {
        self.seeks.are_costly() && self.contexts[context].is_stream()
    }

    fn make_eligible(&mut self, core: &QueueCore<H>, context: Slot) {
        let far_ns = self.costs.far_ns;
        let window_ns = if self.seeks.are_costly() { far_ns.saturating_mul(WINDOW_REQUESTS) } else { 0 };
        let window = self.normalised(core, context, window_ns);
        let entry = &mut self.contexts[context];
        entry.is_light &= entry.position < self.order.virtual_time;
        entry.position_limit = entry.position.saturating_add(window);
        let (kind, asked_ns) = if entry.is_light {
            (Kind::Light, far_ns)
        } else if self.gets_turns(context) {
            (Kind::Stream, self.turn_of(core, context))
        } else {
            (Kind::Scattered, window_ns.max(far_ns))
        };
        self.insert_eligible(core, context, kind, asked_ns);
    }

    /// Makes a context eligible that asks for this much, in ns.
    fn insert_eligible(&mut self, core: &QueueCore<H>, context: Slot, kind: Kind, asked_ns: u64) {
        let finish = self.contexts[context].position.saturating_add(self.normalised(core, context, asked_ns));
        self.contexts[context].stage = Stage::Eligible(kind);
        let sector = self.seeks.are_costly().then(|| core.tables.nodes[self.next_request(core, context)].key());
        self.order.insert_eligible(context, kind, finish, sector);
    }

    /// Removes a context from the orders. A stream in its turn stays.
    pub(super) fn dequeue(&mut self, context: Slot) {
        match self.contexts[context].stage {
            Stage::Waiting => self.order.remove_waiting(context),
            Stage::Eligible(kind) => self.order.remove_eligible(context, kind),
            Stage::Empty | Stage::InTurn => return,
        }
        self.contexts[context].stage = Stage::Empty;
    }

    /// The request of a context that is served next.
    fn next_request(&self, core: &QueueCore<H>, context: Slot) -> Slot {
        let entry = &self.contexts[context];
        if !self.seeks.are_costly() {
            return entry.oldest();
        }
        let from = if entry.stage == Stage::InTurn { entry.served_end } else { self.head };
        entry.next_from(core, from)
    }

    /// Updates the place of a context in the sweep after a change of its requests.
    pub(super) fn update_sweep(&mut self, core: &QueueCore<H>, context: Slot) {
        if let Stage::Eligible(kind) = self.contexts[context].stage
            && self.order.is_in_sweep(context)
        {
            let request = self.next_request(core, context);
            self.order.move_in_sweep(context, kind, core.tables.nodes[request].key());
        }
    }

    /// Makes those contexts eligible whose start the virtual time has reached. If none is eligible,
    /// the virtual time moves forward, unless dispatch is throttled.
    fn release_waiting(&mut self, core: &QueueCore<H>) {
        loop {
            let may_advance = !self.order.has_eligible() && !self.is_throttled();
            let context = self.order.pop_due(may_advance);
            if context == NIL {
                return;
            }
            self.make_eligible(core, context);
        }
    }

    /// Selects the context to serve, or [`NIL`] to keep the device idle.
    pub(super) fn select(&mut self, core: &mut QueueCore<H>) -> Slot {
        if self.in_turn != NIL {
            match self.check_turn(core) {
                Turn::GoesOn => return self.in_turn,
                Turn::Waits => return NIL,
                Turn::Ends => self.end_turn(core),
            }
        }
        self.release_waiting(core);
        let Some((kind, first)) = self.order.first() else { return NIL };
        let is_costly = self.seeks.are_costly();
        let is_swept = is_costly && kind != Kind::Stream && self.order.is_in_sweep(first);
        let context = if is_swept { self.order.next_in_sweep(kind, self.head) } else { first };
        // No trial beside others: they would wait for it, and writes take time later.
        let is_alone = self.scattered == 0 && !self.costs.has_writes(core.ktime_ns());
        let is_trial = is_alone && self.seeks.is_trial_due();
        if (is_costly || is_trial) && self.contexts[context].is_stream() {
            self.order.remove_eligible(context, kind);
            self.begin_turn(core, context, is_trial);
        }
        context
    }

    /// Dispatches the next request of a context and charges it.
    pub(super) fn serve(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let request = self.next_request(core, context);
        let entry = &core.tables.requests[request];
        let distance = Distance::between(self.contexts[context].served_end, entry.sector);
        let cost_ns = self.costs.cost(CostClass::of(entry.op, distance), entry.sectors);
        self.dispatched[request] = Dispatched { issue: Issue::default(), distance, cost_ns };
        self.in_flight_ns = self.in_flight_ns.saturating_add(cost_ns);
        self.seeks.serve(cost_ns);
        self.move_to_dispatch(core, context, request);
        let charge = self.normalised(core, context, cost_ns);
        self.order.virtual_time = self.order.virtual_time.saturating_add(cost_ns);
        let entry = &mut self.contexts[context];
        entry.cost_ns = cost_ns;
        entry.position = entry.position.saturating_add(charge);
        core.note(|core| Note::Charge { queue: core.tables.contexts[context].pid, amount: cost_ns });
        let ContextQueue { position, position_limit, queued, stage, .. } = *entry;
        if stage == Stage::InTurn {
            return;
        }
        self.dequeue(context);
        if queued == 0 {
            return;
        }
        if stage == Stage::Eligible(Kind::Scattered) && position < position_limit {
            self.insert_eligible(core, context, Kind::Scattered, self.costs.far_ns);
        } else {
            self.enqueue(core, context);
        }
    }

    /// Removes a request of a context.
    pub(super) fn remove(&mut self, core: &mut QueueCore<H>, context: Slot, request: Slot) {
        self.contexts[context].remove(core, request);
        self.queued.decrement();
    }

    /// Moves a request to the dispatch list; it then counts as in the device.
    fn move_to_dispatch(&mut self, core: &mut QueueCore<H>, context: Slot, request: Slot) {
        self.head = core.tables.requests[request].end();
        core.tables.requests[request].owner = context;
        self.remove(core, context, request);
        let entry = &mut self.contexts[context];
        entry.in_flight.increment();
        entry.served_end = self.head;
        core.dispatch_append(request);
    }

    /// Moves all requests without a charge. A turn goes on afterwards.
    pub(super) fn drain(&mut self, core: &mut QueueCore<H>) -> u32 {
        let mut moved = 0u32;
        self.seeks.cancel_trial();
        for context in 0..self.capacity {
            self.dequeue(context);
            while self.contexts[context].queued > 0 {
                let request = self.contexts[context].oldest();
                self.dispatched[request] = Dispatched::default();
                self.move_to_dispatch(core, context, request);
                moved.increment();
            }
        }
        moved
    }
}
