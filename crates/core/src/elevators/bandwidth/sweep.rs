//! The sweeps over reserved requests, in the order of the disk.

use super::flow::Stage;
use super::{Bandwidth, bytes_of};
use crate::clock::Timer;
use crate::collections::{Count, NIL, Slot, Tree};
use crate::elevator::Elevator;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::Note;

/// The number of consecutive sweeps with late requests that is reported.
const LATE_SWEEPS: u32 = 3;

impl<H: HostTypes, E: Elevator<H>> Bandwidth<H, E> {
    /// Puts all requests that are within their reservation by now into a sweep.
    pub(super) fn promote(&mut self, core: &mut QueueCore<H>) {
        let now_ns = core.clock.now_ns();
        loop {
            let flow = self.soonest.first();
            let within_at_ns = self.soonest_nodes[flow].key();
            if flow == NIL || within_at_ns > now_ns {
                return;
            }
            self.promote_first(core, flow, within_at_ns);
        }
    }

    /// Takes the tokens for a flow's first pending request, as of the moment at which there were
    /// enough; otherwise a full bucket would have lost inflow. The request goes into the current
    /// sweep if that has not passed it and the flow has not used up its part of the sweep;
    /// otherwise into the next.
    fn promote_first(&mut self, core: &mut QueueCore<H>, slot: Slot, within_at_ns: u64) {
        let request = self.flows[slot].pending.head();
        let (bytes, sector) = (bytes_of(core, request), core.tables.requests[request].sector);
        let flow = &mut self.flows[slot];
        flow.bucket.refill(within_at_ns);
        debug_assert!(
            flow.bucket.holds(bytes),
            "the request's time has come, but there are no \
                                                 tokens"
        );
        flow.bucket.take(bytes);
        self.take_pending(core, request, within_at_ns);
        self.held[request].stage = Stage::Swept;
        self.held[request].conformed_ns = Some(within_at_ns);
        self.inside.increment();
        core.note(|core| Note::Charge {
            queue: core.tables.contexts[core.tables.requests[request].context].pid,
            amount: bytes,
        });
        let number = self.sweep_number;
        let flow = &mut self.flows[slot];
        let within_quota = flow.in_sweep(number).saturating_add(bytes) <= flow.bucket.depth();
        if !self.sweep.is_empty() && sector >= self.head && within_quota {
            flow.put_in_sweep(bytes, number);
            let mut sweep = self.sweep;
            self.file(core, &mut sweep, request, sector);
            self.sweep = sweep;
            return;
        }
        if !self.sweep.is_empty() {
            core.note(|_| Note::Postponed);
        }
        flow.put_in_next(bytes, number);
        self.next_sweep_bytes = self.next_sweep_bytes.saturating_add(bytes);
        let mut next = self.next_sweep;
        self.file(core, &mut next, request, sector);
        self.next_sweep = next;
    }

    /// Inserts a request into a sweep: by sector, and among equal sectors by arrival.
    fn file(&self, core: &mut QueueCore<H>, sweep: &mut Tree, request: Slot, sector: u64) {
        let order = self.held[request].order;
        let precedes = |other: Slot, key: u64| (sector, order) < (key, self.held[other].order);
        sweep.insert_by(&mut core.tables.nodes, request, sector, precedes);
    }

    /// Begins the next sweep at the lowest sector when the current one is over.
    pub(super) fn begin_sweep(&mut self, core: &mut QueueCore<H>) {
        if !self.sweep.is_empty() || self.next_sweep.is_empty() {
            return;
        }
        core::mem::swap(&mut self.sweep, &mut self.next_sweep);
        self.sweep_number = self.sweep_number.wrapping_add(1);
        self.head = 0;
        let bytes = core::mem::take(&mut self.next_sweep_bytes);
        core.note(|_| Note::SweepBegun { bytes });
        self.late_sweeps = if core::mem::take(&mut self.late) { self.late_sweeps.saturating_add(1) } else { 0 };
        if self.late_sweeps == LATE_SWEEPS {
            self.late_sweeps = 0;
            let bound_ns = self.late_after_ns();
            core.note(|_| Note::Degraded { bound_ns });
        }
    }

    /// Moves the next request of the sweep to the dispatch list.
    pub(super) fn dispatch_swept(&mut self, core: &mut QueueCore<H>) {
        let request = self.sweep.first();
        self.sweep.remove(&mut core.tables.nodes, request);
        self.held[request].stage = Stage::Layer;
        self.inside.decrement();
        debug_assert!(core.tables.nodes[request].next() == NIL, "it is out of the tree");
        self.head = self.head.max(core.tables.requests[request].end());
        self.awaited = NIL;
        core.dispatch_append(request);
    }

    /// Handles the completion of a reserving process's request: checks the bound and begins to wait
    /// for the process's next one.
    pub(super) fn completed(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let Some(conformed_ns) = self.held[request].conformed_ns else { return };
        let now_ns = core.clock.now_ns();
        if now_ns.saturating_sub(conformed_ns) > self.late_after_ns() {
            self.late = true;
            core.late_requests.increment();
        }
        let (context, end) = (core.tables.requests[request].context, core.tables.requests[request].end());
        let slot = self.held[request].flow;
        let flow = &self.flows[slot];
        let goes_on = flow.is_reserved() && flow.queued == 0 && core.tables.contexts[context].is_running();
        if self.tunables.idle_ns > 0 && goes_on && self.head == end && core.in_flight == 0 {
            self.awaited = slot;
            self.awaited_pid = core.tables.contexts[context].pid;
            self.awaited_until_ns = now_ns.saturating_add(self.tunables.idle_ns);
            let (pid, until_ns) = (self.awaited_pid, self.awaited_until_ns);
            core.note(|_| Note::IdleArmed { queue: pid, until_ns });
        }
    }

    /// Returns true while the disk waits for a flow's next request: until the time is over, and if
    /// the request would be within the reservation and the flow's part of the sweep.
    pub(super) fn waits_for_next(&mut self, core: &mut QueueCore<H>) -> bool {
        let slot = self.awaited;
        if slot == NIL {
            return false;
        }
        let now_ns = core.clock.now_ns();
        let number = self.sweep_number;
        let flow = &mut self.flows[slot];
        flow.bucket.refill(now_ns);
        let bytes = flow.request_bytes;
        let in_share = self.sweep.is_empty() || flow.in_sweep(number).saturating_add(bytes) <= flow.bucket.depth();
        if now_ns < self.awaited_until_ns && in_share && flow.bucket.holds(bytes) {
            let at_ns = self.awaited_until_ns;
            core.timers.arm(Timer::Refill, at_ns);
            return true;
        }
        self.awaited = NIL;
        let pid = self.awaited_pid;
        core.note(|_| Note::IdleTimeout { queue: pid });
        false
    }
}
