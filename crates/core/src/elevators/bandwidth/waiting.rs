//! Requests that wait for tokens: insertion, merges, removal; and the orders of the flows with such
//! requests.

use super::flow::{Flow, Stage};
use super::{Bandwidth, bytes_of};
use crate::collections::{Count, NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::elevator::{Elevator, Merge};
use crate::event::Note;
use crate::request::Marks;

impl<H: HostTypes, E: Elevator<H>> Bandwidth<H, E> {
    /// Inserts a new request of a reserving process or group.
    pub(super) fn insert_pending(&mut self, core: &mut QueueCore<H>, request: Slot) {
        // The queue's own search must not find it: other processes' bios would be served with its
        // tokens.
        core.unhash(request);
        core.tables.requests[request].marks.clear(Marks::NO_MERGE);
        if core.last_merge == request {
            core.last_merge = NIL;
        }
        let slot = self.held[request].flow;
        self.largest_bytes = self.largest_bytes.max(bytes_of(core, request));
        self.arrivals = self.arrivals.wrapping_add(1);
        self.held[request].stage = Stage::Pending;
        self.held[request].order = self.arrivals;
        let sector = core.tables.requests[request].sector;
        let flow = &mut self.flows[slot];
        flow.pending.push_back(&mut core.tables.arrivals, request);
        flow.sorted.insert(&mut core.tables.nodes, request, sector);
        flow.queued.increment();
        self.inside.increment();
        if !flow.filed {
            // A flow that becomes active gets no credit for excess that it has not requested.
            flow.excess_served = flow.excess_served.max(self.excess_floor);
            let now_ns = core.clock.now_ns();
            // Inflow beyond a full bucket was lost while nothing waited.
            flow.bucket.refill(now_ns);
            self.refile(core, slot, now_ns);
        }
        if self.awaited == slot {
            self.awaited = NIL;
            core.note(|core| Note::IdleHit { queue: core.tables.contexts[core.tables.requests[request].context].pid });
        }
        if self.waiting {
            // The queue runs only if the wait is ended explicitly.
            core.run_now();
        }
    }

    /// Handles a merge of a bio into a pending request.
    pub(super) fn merged_pending(&mut self, core: &mut QueueCore<H>, request: Slot, merge: Merge) {
        debug_assert_eq!(self.held[request].stage, Stage::Pending);
        if merge == Merge::Front {
            let sector = core.tables.requests[request].sector;
            let sorted = &mut self.flows[self.held[request].flow].sorted;
            sorted.remove(&mut core.tables.nodes, request);
            sorted.insert(&mut core.tables.nodes, request, sector);
        }
        self.has_grown(core, request);
    }

    /// Handles a merge of a pending request with its upper neighbour: it takes the older position
    /// of the two.
    pub(super) fn join_pending(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        debug_assert_eq!(self.held[request].stage, Stage::Pending);
        let flow = self.held[request].flow;
        debug_assert_eq!(self.held[absorbed].flow, flow, "neighbours are of one flow");
        if self.held[absorbed].order < self.held[request].order {
            self.held[request].order = self.held[absorbed].order;
            let pending = &mut self.flows[flow].pending;
            pending.remove(&mut core.tables.arrivals, request);
            pending.insert_before(&mut core.tables.arrivals, absorbed, request);
        }
        self.take_pending(core, absorbed, 0);
        self.has_grown(core, request);
    }

    fn has_grown(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let flow = self.held[request].flow;
        self.largest_bytes = self.largest_bytes.max(bytes_of(core, request));
        if self.flows[flow].pending.head() == request {
            self.refile(core, flow, 0);
        }
    }

    /// Removes a request from those that wait for tokens; its successor has been the first since
    /// `from_ns`.
    pub(super) fn take_pending(&mut self, core: &mut QueueCore<H>, request: Slot, from_ns: u64) {
        debug_assert_eq!(self.held[request].stage, Stage::Pending);
        let slot = self.held[request].flow;
        self.held[request].stage = Stage::Layer;
        let flow = &mut self.flows[slot];
        flow.pending.remove(&mut core.tables.arrivals, request);
        flow.sorted.remove(&mut core.tables.nodes, request);
        flow.queued.decrement();
        self.inside.decrement();
        self.refile(core, slot, from_ns);
    }

    /// Inserts a flow into the trees by its first request and its excess, or removes it. The first
    /// request becomes eligible when there are tokens for it, but not before `from_ns`.
    pub(super) fn refile(&mut self, core: &QueueCore<H>, flow: Slot, from_ns: u64) {
        let Flow { bucket, pending, excess_served, filed, .. } = self.flows[flow];
        if filed {
            self.soonest.remove(&mut self.soonest_nodes, flow);
            self.least_served.remove(&mut self.least_served_nodes, flow);
        }
        let first = pending.head();
        self.flows[flow].filed = first != NIL;
        if first == NIL {
            return;
        }
        let within_at_ns = bucket.holds_at(bytes_of(core, first)).max(from_ns);
        self.soonest.insert(&mut self.soonest_nodes, flow, within_at_ns);
        // Of flows with equal excess the lowest slot goes first.
        let precedes = |other: Slot, served: u64| (excess_served, flow) < (served, other);
        self.least_served.insert_by(&mut self.least_served_nodes, flow, excess_served, precedes);
    }
}
