//! What a queue's requests tell about its context: think time, idle time, seeks.

use super::{Scheduler, Tick, tick, wf2q};
use crate::collections::{Count, Mean, NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;

/// The distance from which requests count as far apart, in sectors.
const NEAR_SECTORS: u64 = 800;
/// On flash, only requests smaller than this count as seeking, in sectors.
const SMALL_ON_FLASH_SECTORS: u32 = 64;
/// The time after a split, in ms, in which a queue's seekiness is not judged.
const JUDGED_AFTER_SPLIT_MS: Tick = 2000;
/// The time for which a lowered injection limit is kept although the think time has changed, in ms.
const INJECTED_MS: Tick = 100;
/// The window of a queue's idle-time statistics, in ns; each window counts half as much as the
/// next.
const OBSERVED_NS_MAX: u64 = 200_000_000;
/// A queue is seeky if more of the last 32 requests than this were far from the previous one.
const SEEKY_ABOVE: u32 = 19;

/// The times at which a context sends requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Habits {
    /// The time of the last completion, in ns; before that one more than the queue's creation, so
    /// that think times count only after it.
    pub last_end_ns: u64,
    /// The time from a completion to the next request.
    think: Mean,
    /// The start of the current idle-time window, in ns.
    observed_ns: u64,
    /// The time without requests in that window, in ns.
    idle_ns: u64,
    /// The think time is short.
    pub short_think: bool,
    /// At most a fifth of the time is idle.
    pub io_bound: bool,
}

impl Habits {
    /// The habits of a new queue.
    pub fn begun(now_ns: u64, sync: bool) -> Habits {
        Habits {
            last_end_ns: now_ns.saturating_add(1),
            observed_ns: now_ns,
            short_think: sync,
            io_bound: true,
            ..Habits::default()
        }
    }

    /// Adds the think time before a request. Times above twice the idle wait count as twice the
    /// wait.
    fn add_think(&mut self, now_ns: u64, wait_ns: u64) {
        // Before the first completion the difference is negative and wraps to a huge value.
        let elapsed_ns = now_ns.wrapping_sub(self.last_end_ns);
        self.think.add_think(elapsed_ns.min(wait_ns.saturating_mul(2)));
    }

    /// Judges the think time: it is short unless, after at least three samples, the mean exceeds
    /// half of the idle wait. Returns true if the result has changed.
    fn judge_think(&mut self, wait_ns: u64) -> bool {
        let short = !(self.think.is_valid() && self.think.mean > wait_ns / 2);
        core::mem::replace(&mut self.short_think, short) != short
    }

    /// Adds the time without requests before a request.
    fn add_idle(&mut self, now_ns: u64) {
        self.idle_ns = self.idle_ns.wrapping_add(now_ns.wrapping_sub(self.last_end_ns));
    }

    /// Judges whether the context is I/O-bound, and begins another window if this one is full.
    fn judge_idle(&mut self, now_ns: u64) {
        // Unsigned wrap-around: a new queue's first gap is -1 and counts as endless until there is
        // a real one.
        let observed_ns = now_ns.wrapping_sub(self.observed_ns);
        self.io_bound = self.idle_ns.wrapping_mul(5) <= observed_ns;
        if observed_ns > OBSERVED_NS_MAX {
            self.observed_ns = now_ns.wrapping_sub(observed_ns / 2);
            self.idle_ns /= 2;
        }
    }
}

/// Where the requests of a queue are on the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Locality {
    /// The end of the last request that arrived.
    pub last_sector: u64,
    /// The last 32 requests, one bit each: 1 if far from the previous one.
    history: u32,
    /// The group in whose index of positions the queue is, or [`NIL`].
    pub indexed: Slot,
}

impl Default for Locality {
    fn default() -> Self {
        Locality { last_sector: 0, history: 1, indexed: NIL }
    }
}

impl Locality {
    /// Returns true if most requests were far from the previous one.
    pub fn is_seeky(&self) -> bool {
        self.history.count_ones() > SEEKY_ABOVE
    }

    /// Returns true if all requests were far from the previous one.
    pub fn is_totally_seeky(&self) -> bool {
        self.history == u32::MAX
    }
}

impl<H: HostTypes> Scheduler<H> {
    /// Updates the think time of a context. If the result changes and injection has no statistics
    /// yet, its guess is reset.
    pub(super) fn update_think_time(&mut self, core: &QueueCore<H>, slot: Slot, class: u8) {
        let (now_ns, now) = (core.ktime_ns(), tick(core));
        let wait_ns = self.tunables.slice_idle_ns;
        let queue = &mut self.queues[slot];
        if !queue.is_busy() && queue.in_flight == 0 {
            queue.habits.add_think(now_ns, wait_ns);
        }
        let recent = now <= queue.sharing.split_at.saturating_add(JUDGED_AFTER_SPLIT_MS);
        if !queue.sync || class == wf2q::IDLE || wait_ns == 0 || recent {
            return;
        }
        let changed = queue.habits.judge_think(wait_ns);
        let rested = now >= queue.injection.lowered_at.saturating_add(INJECTED_MS) || !queue.habits.short_think;
        if changed && queue.injection.baseline_ns == 0 && rested {
            self.reset_injection(slot, now);
        }
    }

    /// Records whether the request is far from the queue's last one. A completely seeky queue is
    /// not soft real-time.
    pub(super) fn update_seekiness(&mut self, core: &QueueCore<H>, slot: Slot, request: Slot, coefficient: u32) {
        let far = self.is_far(core, self.queues[slot].locality.last_sector, request);
        let queue = &mut self.queues[slot];
        queue.locality.history = (queue.locality.history << 1) | u32::from(far);
        if coefficient > 1 && queue.raising.is_soft() && queue.locality.is_totally_seeky() {
            self.end_soft_raising(slot, tick(core));
        }
    }

    /// Returns true if a request is far from a position. Position 0 stands for "none", from which
    /// no request is far.
    pub(super) fn is_far(&self, core: &QueueCore<H>, position: u64, request: Slot) -> bool {
        let request = &core.tables.requests[request];
        let small = self.rotational || request.sectors < SMALL_ON_FLASH_SECTORS;
        position != 0 && request.sector.abs_diff(position) > NEAR_SECTORS && small
    }

    /// Counts a request and updates wakers, injection and idle time.
    pub(super) fn count(&mut self, core: &QueueCore<H>, slot: Slot, request: Slot, context: Slot) {
        let now_ns = core.ktime_ns();
        let queue = &mut self.queues[slot];
        let nothing_waited = queue.pending() == 0;
        let [of_async, of_sync] = &mut queue.queued;
        (if core.tables.requests[request].is_sync() { of_sync } else { of_async }).increment();
        self.queued.increment();
        if !queue.sync {
            return;
        }
        if self.contexts[context].requests <= 1 {
            self.detect_waker(core, slot);
            self.time_request(core, slot);
        }
        let queue = &mut self.queues[slot];
        if nothing_waited && queue.in_flight == 0 {
            queue.habits.add_idle(now_ns);
        }
        if !queue.is_fresh() {
            queue.habits.judge_idle(now_ns);
        }
    }
}
