//! Injection of other queues' requests while the disk is kept idle for a queue, if they do it no
//! harm.

use super::{ASYNC, Scheduler, Tick, tick};
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;

/// The time after which statistics of injection are discarded, in ms.
const FORGET_MS: Tick = 1000;
/// The time without injection attempts after the limit was lowered, in ms.
const REST_MS: Tick = 10;
/// On flash, requests from this size on are injected only if the device is empty, in sectors.
/// Smaller ones are served in parallel.
const LARGE_ON_FLASH_SECTORS: u32 = 64;
/// The injection that a queue in service tolerates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InjectionLimit {
    /// The latency of the queue's requests without injection, in ns; 0 is unknown.
    pub baseline_ns: u64,
    /// The time at which the limit was last lowered or the statistics reset.
    pub lowered_at: Tick,
    /// The maximum of requests in the device for an injection.
    pub limit: u32,
}

impl InjectionLimit {
    /// Restarts the statistics.
    fn reset(&mut self, short_think: bool, now: Tick) {
        *self = InjectionLimit { baseline_ns: 0, limit: u32::from(!short_think), lowered_at: now };
    }
}

/// Statistics of injected requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Injection {
    /// The arrival of the request whose latency is measured, in ns.
    since_ns: u64,
    /// Whether that request has not been dispatched yet.
    undispatched: bool,
    /// That request after its dispatch, or [`NIL`].
    measured: Slot,
    /// Whether a request was injected in the meantime.
    injected: bool,
}

impl Default for Injection {
    fn default() -> Self {
        Injection { since_ns: 0, undispatched: false, measured: NIL, injected: false }
    }
}

impl Injection {
    /// Cancels the measurement, because the queue loses the disk.
    pub fn cancel(&mut self) {
        (self.undispatched, self.injected, self.measured) = (false, false, NIL);
    }

    /// Starts to measure the first dispatched request of the queue in service.
    pub fn request_dispatched(&mut self, request: Slot) {
        if core::mem::take(&mut self.undispatched) {
            self.measured = request;
        }
    }
}

impl<H: HostTypes> Scheduler<H> {
    /// A queue whose request may be injected while the disk is idle for the queue in service, or
    /// [`NIL`].
    #[inline(never)]
    pub(super) fn injected(&mut self, core: &QueueCore<H>, served: Slot) -> Slot {
        let queue = &self.queues[served];
        let owner = queue.sharing.owner;
        if owner != NIL {
            let slot = self.contexts[owner].queues.get(ASYNC).copied().unwrap_or(NIL);
            let next = self.queues[slot].next;
            if self.fits(core, slot) && core.tables.requests[next].context == owner {
                return slot;
            }
        }
        for slot in [queue.wakers.waker, queue.wakers.woken.head()] {
            if self.fits(core, slot) {
                return slot;
            }
        }
        let raised_alone = self.coefficient(served) > 1 && self.raised_busy <= 1 && queue.habits.short_think;
        if self.idling_boosts(served) || raised_alone {
            return NIL;
        }
        self.harmless(core, served)
    }

    /// Returns true if a queue's budget suffices for its next request.
    fn fits(&self, core: &QueueCore<H>, slot: Slot) -> bool {
        if slot == NIL || !self.queues[slot].is_busy() {
            return false;
        }
        let next = self.queues[slot].next;
        next != NIL && self.cost(core, next, slot) as i64 <= self.budget_left(slot)
    }

    /// The most recently activated queue whose request does not harm the queue in service, within
    /// its limit. As in the kernel, this is a linear search over all active queues: O(N).
    fn harmless(&mut self, core: &QueueCore<H>, served: Slot) -> Slot {
        let limit = self.queues[served].injection.limit;
        if self.in_flight >= limit {
            return NIL;
        }
        let raised_only = self.coefficient(served) > 1 && self.queues[served].habits.short_think;
        let mut slot = self.engine.recent_first();
        while slot != NIL {
            if self.fits(core, slot) && (!raised_only || self.coefficient(slot) > 1) {
                let large = core.tables.requests[self.queues[slot].next].sectors >= LARGE_ON_FLASH_SECTORS;
                let limit = if large && !self.rotational { limit.min(1) } else { limit };
                if self.in_flight < limit {
                    self.injection.injected = true;
                    return slot;
                }
            }
            slot = self.engine.recent_next(slot);
        }
        NIL
    }

    /// Restarts the statistics of injection of a queue.
    #[inline(never)]
    pub(super) fn reset_injection(&mut self, slot: Slot, now: Tick) {
        self.injection.measured = NIL;
        let queue = &mut self.queues[slot];
        queue.injection.reset(queue.habits.short_think, now);
    }

    /// Handles a request of a context without other requests: if its queue is in service, measure
    /// the latency until completion, with or without injection.
    #[inline(never)]
    pub(super) fn time_request(&mut self, core: &QueueCore<H>, slot: Slot) {
        let now = tick(core);
        if now >= self.queues[slot].injection.lowered_at.saturating_add(FORGET_MS) {
            self.reset_injection(slot, now);
        }
        let queue = &self.queues[slot];
        let alone = self.in_flight == 0;
        let compared = queue.injection.baseline_ns > 0 && self.injection.injected && !alone;
        let rested = now >= queue.injection.lowered_at.saturating_add(REST_MS);
        if slot == self.in_service && (alone || compared) && rested {
            self.injection.since_ns = core.ktime_ns();
            self.injection.undispatched = true;
            if alone {
                self.injection.injected = false;
            }
        }
    }

    /// Handles the completion of the measured request. If it took half as long again as without
    /// injection, the limit falls; otherwise it rises by one, up to the maximum that the device has
    /// had in flight. `in_flight` still counts the request.
    #[inline]
    pub(super) fn update_injection_limit(&mut self, core: &QueueCore<H>, slot: Slot, request: Slot) {
        if self.injection.measured == request {
            self.judge_injection(core, slot);
        }
    }

    #[inline(never)]
    fn judge_injection(&mut self, core: &QueueCore<H>, slot: Slot) {
        let (now, alone) = (tick(core), self.in_flight == 1);
        let took_ns = core.ktime_ns().saturating_sub(self.injection.since_ns);
        let (injected, in_flight_max) = (self.injection.injected, self.queueing.in_flight_max());
        let tolerated = &mut self.queues[slot].injection;
        let InjectionLimit { baseline_ns, limit, .. } = *tolerated;
        if baseline_ns > 0 && injected {
            if took_ns >= baseline_ns.saturating_mul(3) / 2 {
                if limit > 0 {
                    (tolerated.limit, tolerated.lowered_at) = (limit.saturating_sub(1), now);
                }
            } else if limit <= in_flight_max {
                tolerated.limit = limit.saturating_add(1);
            }
        }
        if (baseline_ns == 0 && alone) || took_ns < baseline_ns {
            if baseline_ns == 0 {
                tolerated.limit = limit.max(1);
            }
            tolerated.baseline_ns = took_ns;
        } else if !injected && alone {
            tolerated.baseline_ns = took_ns;
        }
        (self.injection.measured, self.injection.injected) = (NIL, false);
    }
}
