//! Injection: while the disk is kept for a queue that has no request, another queue's request is put in, if that does it no harm; and
//! wakers, whose requests the queue is waiting for itself.

use super::state::{ASYNC, Tick};
use super::{Bfq, tick};
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;

/// What a queue tells of injection is forgotten after so long, in ms.
const FORGET_MS: Tick = 1000;
/// After its limit was lowered a queue is left alone for so long, in ms.
const REST_MS: Tick = 10;
/// A flash device serves small requests side by side; one of so many sectors goes in only alone.
const LARGE_ON_FLASH_SECTORS: u32 = 64;
/// A completion makes a process send a request within this time, in ns, if it does.
const WAKE_NS: u64 = 4_000_000;
/// So many times in a row make a waker ...
const SIGHTINGS: u32 = 3;
/// ... within so many times the longest idling.
const SIGHTING_IDLES: u64 = 128;

/// What is known of the requests that are put in while the disk is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Injection {
    /// When the request arrived that is to show what injection costs, in ns.
    since_ns: u64,
    /// It has not been dispatched.
    undispatched: bool,
    /// It has: this is it; or [`NIL`].
    waited: Slot,
    /// A request was put in meanwhile.
    injected: bool,
}

impl Default for Injection {
    fn default() -> Self {
        Injection { since_ns: 0, undispatched: false, waited: NIL, injected: false }
    }
}

impl Injection {
    /// Nothing is to be learnt from the present request: its queue loses the disk.
    pub fn abandon(&mut self) {
        (self.undispatched, self.injected, self.waited) = (false, false, NIL);
    }

    /// The first request of the queue in service that leaves is the one that is timed.
    pub fn request_leaves(&mut self, request: Slot) {
        if core::mem::take(&mut self.undispatched) {
            self.waited = request;
        }
    }
}

impl<H: HostTypes> Bfq<H> {
    /// A queue with a request to put in while the disk is kept for the one in service, or [`NIL`].
    pub(super) fn injected(&mut self, core: &QueueCore<H>, served: Slot) -> Slot {
        let queue = &self.queues[served];
        let owner = queue.owner;
        if owner != NIL {
            let slot = self.processes[owner].queues.get(ASYNC).copied().unwrap_or(NIL);
            let next = self.queues[slot].next;
            if self.fits(core, slot) && core.tables.requests[next].context == owner {
                return slot;
            }
        }
        for slot in [queue.waker, queue.woken.head()] {
            if self.fits(core, slot) {
                return slot;
            }
        }
        let raised_alone = self.coefficient(served) > 1 && self.raised_busy <= 1 && queue.short_think;
        if self.idling_boosts(served) || raised_alone {
            return NIL;
        }
        self.harmless(core, served)
    }

    /// Whether a queue has a request for which its budget suffices.
    fn fits(&self, core: &QueueCore<H>, slot: Slot) -> bool {
        if slot == NIL || !self.queues[slot].busy {
            return false;
        }
        let next = self.queues[slot].next;
        next != NIL && self.cost(core, next, slot) as i64 <= self.budget_left(slot)
    }

    /// The queue that became active last of those whose request does the one in service no harm, as far as its limit tells. As in the
    /// kernel, it is looked for among all active queues, one by one: O(N), unlike what the engine does.
    fn harmless(&mut self, core: &QueueCore<H>, served: Slot) -> Slot {
        let limit = self.queues[served].inject_limit;
        if self.in_flight >= limit {
            return NIL;
        }
        let raised_only = self.coefficient(served) > 1 && self.queues[served].short_think;
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

    /// Begins anew to learn what injection costs a queue.
    pub(super) fn reset_injection(&mut self, slot: Slot, now: Tick) {
        self.injection.waited = NIL;
        let queue = &mut self.queues[slot];
        queue.baseline_ns = 0;
        queue.inject_limit = u32::from(!queue.short_think);
        queue.lowered_at = now;
    }

    /// A process without other requests sends one: if its queue is in service, it is timed to its completion, with or without others put in.
    pub(super) fn time_request(&mut self, core: &QueueCore<H>, slot: Slot) {
        let now = tick(core);
        if now >= self.queues[slot].lowered_at.saturating_add(FORGET_MS) {
            self.reset_injection(slot, now);
        }
        let queue = &self.queues[slot];
        let alone = self.in_flight == 0;
        let compared = queue.baseline_ns > 0 && self.injection.injected && !alone;
        let rested = now >= queue.lowered_at.saturating_add(REST_MS);
        if slot == self.in_service && (alone || compared) && rested {
            self.injection.since_ns = core.ktime_ns();
            self.injection.undispatched = true;
            if alone {
                self.injection.injected = false;
            }
        }
    }

    /// The timed request completes. If it took half as long again as without others, fewer are put in from now on; else one more, up to what
    /// the device has had at once. `in_flight` counts it still.
    pub(super) fn learn_injection(&mut self, core: &QueueCore<H>, slot: Slot, request: Slot) {
        if self.injection.waited != request || request == NIL {
            return;
        }
        let (now, in_flight) = (tick(core), self.in_flight);
        let took_ns = core.ktime_ns().saturating_sub(self.injection.since_ns);
        let (injected, in_flight_max) = (self.injection.injected, self.queueing.in_flight_max());
        let queue = &mut self.queues[slot];
        let limit = queue.inject_limit;
        if queue.baseline_ns > 0 && injected {
            if took_ns >= queue.baseline_ns.saturating_mul(3) / 2 {
                if limit > 0 {
                    queue.inject_limit = limit.saturating_sub(1);
                    queue.lowered_at = now;
                }
            } else if limit <= in_flight_max {
                queue.inject_limit = limit.saturating_add(1);
            }
        }
        if (queue.baseline_ns == 0 && in_flight == 1) || took_ns < queue.baseline_ns {
            if queue.baseline_ns == 0 {
                queue.inject_limit = limit.max(1);
            }
            queue.baseline_ns = took_ns;
        } else if !injected && in_flight == 1 {
            queue.baseline_ns = took_ns;
        }
        (self.injection.waited, self.injection.injected) = (NIL, false);
    }

    /// A process without other requests sends one right after another queue's request has completed: that may be what it waited for.
    pub(super) fn look_for_waker(&mut self, core: &QueueCore<H>, slot: Slot) {
        let (now_ns, last) = (core.ktime_ns(), self.done_queue);
        let soon = now_ns.saturating_sub(self.rate.completed_ns) < WAKE_NS;
        if last == NIL || last == slot || self.queues[slot].short_think || !soon {
            return;
        }
        let seen = (last, self.queues[last].generation);
        let window_ns = self.tunables.slice_idle_ns.saturating_mul(SIGHTING_IDLES);
        let queue = &mut self.queues[slot];
        if queue.tentative != seen || now_ns > queue.sighted_ns.saturating_add(window_ns) {
            queue.tentative = seen;
            queue.sightings = 1;
            queue.sighted_ns = now_ns;
        } else {
            queue.sightings = queue.sightings.saturating_add(1);
        }
        if queue.sightings == SIGHTINGS {
            queue.tentative = (NIL, 0);
            self.set_waker(slot, last);
        }
    }
}
