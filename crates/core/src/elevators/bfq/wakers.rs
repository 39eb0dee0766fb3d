//! Wakers: queues for whose requests another queue waits.

use super::Scheduler;
use crate::collections::{Count, Link, List, NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;

/// The maximum time between a waker's completion and the woken context's request, in ns.
const WAKE_NS: u64 = 4_000_000;
/// The number of consecutive observations that confirms a waker.
const OBSERVATIONS_MIN: u32 = 3;
/// The period for those observations, as a multiple of the idle wait.
const OBSERVATION_IDLE_WAITS: u64 = 128;

/// The queues with the same waker.
#[derive(Debug)]
pub(super) struct Woken;

/// The waker of a queue, and the queues that it wakes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wakers {
    /// The start of the observations of the candidate, in ns.
    sighted_ns: u64,
    /// The queue whose completions trigger this one's next request, or [`NIL`].
    pub waker: Slot,
    /// The number of observations of the candidate.
    sightings: u32,
    /// The tentative waker with its generation.
    pub candidate: (Slot, u32),
    /// The queues of which it is the waker.
    pub woken: List<Woken>,
    pub link: Link,
}

impl Default for Wakers {
    fn default() -> Self {
        Wakers {
            sighted_ns: 0,
            waker: NIL,
            sightings: 0,
            candidate: (NIL, 0),
            woken: List::default(),
            link: Link::default(),
        }
    }
}

impl Wakers {
    /// Counts an observation of a queue with this generation. Returns true if it is confirmed as
    /// the waker.
    fn sighted(&mut self, seen: (Slot, u32), now_ns: u64, window_ns: u64) -> bool {
        if self.candidate != seen || now_ns > self.sighted_ns.saturating_add(window_ns) {
            (self.candidate, self.sightings, self.sighted_ns) = (seen, 1, now_ns);
        } else {
            self.sightings.increment();
        }
        let confirmed = self.sightings == OBSERVATIONS_MIN;
        if confirmed {
            self.candidate = (NIL, 0);
        }
        confirmed
    }
}

impl<H: HostTypes> Scheduler<H> {
    /// Handles a request that a context without others sends shortly after another queue's
    /// completion: the other queue may be its waker.
    #[inline(never)]
    pub(super) fn detect_waker(&mut self, core: &QueueCore<H>, slot: Slot) {
        let (now_ns, last) = (core.ktime_ns(), self.done_queue);
        let soon = now_ns.saturating_sub(self.rate.completed_ns) < WAKE_NS;
        if last == NIL || last == slot || self.queues[slot].habits.short_think || !soon {
            return;
        }
        let seen = (last, self.queues[last].generation);
        let window_ns = self.tunables.slice_idle_ns.saturating_mul(OBSERVATION_IDLE_WAITS);
        if self.queues[slot].wakers.sighted(seen, now_ns, window_ns) {
            self.set_waker(slot, last);
        }
    }

    /// Sets the waker of this queue, which becomes the first in the waker's list.
    pub(super) fn set_waker(&mut self, slot: Slot, waker: Slot) {
        let old = core::mem::replace(&mut self.queues[slot].wakers.waker, waker);
        if old != NIL {
            let mut woken = self.queues[old].wakers.woken;
            woken.remove(&mut self.queues, slot);
            self.queues[old].wakers.woken = woken;
        }
        if waker != NIL {
            let mut woken = self.queues[waker].wakers.woken;
            woken.push_front(&mut self.queues, slot);
            self.queues[waker].wakers.woken = woken;
        }
    }

    /// Removes a queue that ends from its waker's list, and as a waker.
    pub(super) fn leave_wakers(&mut self, slot: Slot) {
        self.set_waker(slot, NIL);
        loop {
            let woken = self.queues[slot].wakers.woken.head();
            if woken == NIL {
                break;
            }
            self.set_waker(woken, NIL);
        }
    }
}
