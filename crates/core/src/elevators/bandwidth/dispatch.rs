//! The order of classes: real time, reserved, best effort, excess of reservations, idle.

use super::flow::Stage;
use super::{BEST_EFFORT, Bandwidth, REAL_TIME, bytes_of, weight_of};
use crate::clock::Timer;
use crate::collections::{Count, NIL, Slot};
use crate::elevator::Elevator;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::priority::NORMAL_LEVEL;

/// The factor on sectors before the division by a weight.
const SCALE: u64 = 1 << 10;

impl<H: HostTypes, E: Elevator<H>> Bandwidth<H, E> {
    /// Dispatches the next request: one, unless there are no reservations.
    pub(super) fn dispatch_by_class(&mut self, core: &mut QueueCore<H>) -> u32 {
        if self.reservations == 0 && self.inside == 0 {
            return self.inner.dispatch(core, false);
        }
        core.timers.cancel(Timer::Refill);
        // A process with a reservation waits for at most one request, even if it has none queued
        // yet.
        core.batch_max = 1;
        let idle = self.inside == 0 && self.awaited == NIL;
        let moved = if idle { self.dispatch_inner(core) } else { self.dispatch_one(core) };
        core.batch_max = u32::MAX;
        moved
    }

    fn dispatch_one(&mut self, core: &mut QueueCore<H>) -> u32 {
        if self.queued(REAL_TIME) > 0 {
            let moved = self.inner.dispatch_real_time(core);
            if moved > 0 {
                return moved;
            }
        }
        self.promote(core);
        self.begin_sweep(core);
        if self.waits_for_next(core) {
            return 0;
        }
        if !self.sweep.is_empty() {
            self.dispatch_swept(core);
            return 1;
        }
        let others = self.queued(REAL_TIME) > 0 || self.queued(BEST_EFFORT) > 0;
        let excess_leads = self.least_served.is_empty() || !self.tunables.shares_excess || self.excess_lead >= 0;
        if others && excess_leads {
            let moved = self.dispatch_inner(core);
            if moved > 0 {
                return moved;
            }
        }
        if !self.least_served.is_empty() {
            // In turn with best effort that has requests; silence is not required.
            let in_turn = !excess_leads && self.queued(BEST_EFFORT) > 0;
            return self.dispatch_excess(core, in_turn);
        }
        // Only the idle class may remain; better classes returned nothing before.
        if others { 0 } else { self.dispatch_inner(core) }
    }

    /// Dispatches from the inner elevator, and accounts for its service against the excess, if
    /// there is some.
    ///
    /// While the inner elevator keeps the disk idle and a dispatch would restart that wait, it is
    /// not called. It would be called after each reserved request, and the processes that wait with
    /// it would never be served.
    fn dispatch_inner(&mut self, core: &mut QueueCore<H>) -> u32 {
        if self.inner.would_restart_wait(core) {
            return 0;
        }
        let moved = self.inner.dispatch(core, false);
        if moved == 0 {
            return 0;
        }
        let first = core.dispatch.head();
        self.largest_bytes = self.largest_bytes.max(bytes_of(core, first));
        let sectors = u64::from(core.tables.requests[first].sectors).saturating_mul(u64::from(moved));
        let part = sectors.saturating_mul(SCALE) / self.inner_weight.max(1);
        self.excess_lead = match self.least_served.is_empty() {
            true => 0,
            false => self.excess_lead.saturating_sub_unsigned(part),
        };
        moved
    }

    /// Dispatches the first request of the flow with the least excess served, if it is the excess's
    /// turn or best effort has been silent long enough. This takes no tokens.
    fn dispatch_excess(&mut self, core: &mut QueueCore<H>, in_turn: bool) -> u32 {
        let silent_at_ns = self.inner_end_ns.saturating_add(self.tunables.excess_wait_ns);
        if !in_turn && core.clock.now_ns() < silent_at_ns {
            // A request that becomes eligible meanwhile does not wait.
            let first = self.soonest.first();
            let at_ns = silent_at_ns.min(self.soonest_nodes[first].key());
            core.timers.arm(Timer::Refill, at_ns);
            return 0;
        }
        let slot = self.least_served.first();
        let request = self.flows[slot].pending.head();
        debug_assert!(request != NIL, "it is filed, so it has some");
        let sectors = u64::from(core.tables.requests[request].sectors);
        let flow = &mut self.flows[slot];
        self.excess_floor = flow.excess_served;
        flow.excess_served = flow.excess_served.saturating_add(sectors);
        let now_ns = core.clock.now_ns();
        self.take_pending(core, request, now_ns);
        let part = sectors.saturating_mul(SCALE) / u64::from(weight_of(NORMAL_LEVEL)).max(1);
        self.excess_lead = match self.queued(BEST_EFFORT) {
            0 => 0,
            _ => self.excess_lead.saturating_add_unsigned(part),
        };
        core.dispatch_append(request);
        1
    }

    /// Dispatches everything, sweeps first, without taking tokens.
    pub(super) fn drain(&mut self, core: &mut QueueCore<H>) -> u32 {
        let mut moved = 0u32;
        loop {
            let mut sweep = if self.sweep.is_empty() { self.next_sweep } else { self.sweep };
            let request = sweep.first();
            if request == NIL {
                break;
            }
            sweep.remove(&mut core.tables.nodes, request);
            *(if self.sweep.is_empty() { &mut self.next_sweep } else { &mut self.sweep }) = sweep;
            self.held[request].stage = Stage::Layer;
            self.inside.decrement();
            core.dispatch_sort(request);
            moved.increment();
        }
        self.next_sweep_bytes = 0;
        self.awaited = NIL;
        self.waiting = false;
        loop {
            let flow: Slot = self.soonest.first();
            if flow == NIL {
                break;
            }
            let request = self.flows[flow].pending.head();
            self.take_pending(core, request, 0);
            core.dispatch_sort(request);
            moved.increment();
        }
        debug_assert_eq!(self.inside, 0);
        moved.saturating_add(self.inner.dispatch(core, true))
    }

    fn queued(&self, class: usize) -> u32 {
        self.inner_queued.get(class).copied().unwrap_or(0)
    }
}
