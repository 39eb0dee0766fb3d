//! Requests that wait for tokens: in, merged, out; and the orders of the flows that have some.

use super::flow::{Flow, Stage};
use super::{Bandwidth, bytes_of};
use crate::elevators::{Elevator, Merge};
use crate::event::Note;
use crate::parts::{NIL, Slot};
use crate::queue::block::Block;
use crate::request::Marks;
use crate::storage::Home;

impl<H: Home, E: Elevator<H>> Bandwidth<H, E> {
    /// A new request of a reserving process or group.
    pub(super) fn insert_pending(&mut self, block: &mut Block<H>, request: Slot) {
        // The queue's own search must not find it: a stranger's bio would be served in its name.
        block.unhash(request);
        block.table.requests[request].marks.clear(Marks::NO_MERGE);
        if block.last_merge == request {
            block.last_merge = NIL;
        }
        let slot = self.held[request].flow;
        self.largest_bytes = self.largest_bytes.max(bytes_of(block, request));
        self.arrivals = self.arrivals.wrapping_add(1);
        self.held[request].stage = Stage::Pending;
        self.held[request].order = self.arrivals;
        let sector = block.table.requests[request].sector;
        let flow = &mut self.flows[slot];
        flow.pending.push_back(&mut block.table.arrivals, request);
        flow.sorted.insert(&mut block.table.nodes, request, sector);
        flow.queued = flow.queued.saturating_add(1);
        self.inside = self.inside.saturating_add(1);
        if !flow.filed {
            // Who comes anew does not get what it has not asked for so far.
            flow.excess_served = flow.excess_served.max(self.excess_floor);
            let now_ns = block.clock.now_ns();
            // While nothing waited, what came beyond a full bucket was lost.
            flow.bucket.refill(now_ns);
            self.refile(block, slot, now_ns);
        }
        if self.awaited == slot {
            self.awaited = NIL;
            block
                .note(|block| Note::IdleHit { queue: block.table.contexts[block.table.requests[request].context].pid });
        }
        if self.waiting {
            // Nobody runs a queue that waits but who ends the wait.
            block.run_now();
        }
    }

    /// A bio was merged into a pending request.
    pub(super) fn merged_pending(&mut self, block: &mut Block<H>, request: Slot, merge: Merge) {
        debug_assert_eq!(self.held[request].stage, Stage::Pending);
        if merge == Merge::Front {
            let sector = block.table.requests[request].sector;
            let sorted = &mut self.flows[self.held[request].flow].sorted;
            sorted.remove(&mut block.table.nodes, request);
            sorted.insert(&mut block.table.nodes, request, sector);
        }
        self.has_grown(block, request);
    }

    /// A pending request has taken in its upper neighbour: it has the older place of the two.
    pub(super) fn join_pending(&mut self, block: &mut Block<H>, request: Slot, absorbed: Slot) {
        debug_assert_eq!(self.held[request].stage, Stage::Pending);
        let flow = self.held[request].flow;
        debug_assert_eq!(self.held[absorbed].flow, flow, "neighbours are of one flow");
        if self.held[absorbed].order < self.held[request].order {
            self.held[request].order = self.held[absorbed].order;
            let pending = &mut self.flows[flow].pending;
            pending.remove(&mut block.table.arrivals, request);
            pending.insert_before(&mut block.table.arrivals, absorbed, request);
        }
        self.take_pending(block, absorbed, 0);
        self.has_grown(block, request);
    }

    fn has_grown(&mut self, block: &mut Block<H>, request: Slot) {
        let flow = self.held[request].flow;
        self.largest_bytes = self.largest_bytes.max(bytes_of(block, request));
        if self.flows[flow].pending.head() == request {
            self.refile(block, flow, 0);
        }
    }

    /// Takes a request out of those that wait for tokens; the one behind it has been the first since `from_ns`.
    pub(super) fn take_pending(&mut self, block: &mut Block<H>, request: Slot, from_ns: u64) {
        debug_assert_eq!(self.held[request].stage, Stage::Pending);
        let slot = self.held[request].flow;
        self.held[request].stage = Stage::Ours;
        let flow = &mut self.flows[slot];
        flow.pending.remove(&mut block.table.arrivals, request);
        flow.sorted.remove(&mut block.table.nodes, request);
        flow.queued = flow.queued.saturating_sub(1);
        self.inside = self.inside.saturating_sub(1);
        self.refile(block, slot, from_ns);
    }

    /// Files a flow among those with pending requests, where its first one and its excess say; or takes it out. The first one is
    /// within the reservation when there are tokens for it, but not before `from_ns`.
    pub(super) fn refile(&mut self, block: &Block<H>, flow: Slot, from_ns: u64) {
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
        let within_at_ns = bucket.holds_at(bytes_of(block, first)).max(from_ns);
        self.soonest.insert(&mut self.soonest_nodes, flow, within_at_ns);
        // Of those that have had the same, the one with the least place goes first.
        let precedes = |other: Slot, served: u64| (excess_served, flow) < (served, other);
        self.least_served.insert_by(&mut self.least_served_nodes, flow, excess_served, precedes);
    }
}
