//! Weight raising: the weight of a queue that starts a program or plays media is multiplied for
//! some time.

use super::{NEVER, Scheduler, Tick, tick};
use crate::collections::{Count, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::Note;

/// The coefficient of interactive raising, for programs that start or answer a user.
pub(super) const INTERACTIVE: u32 = 30;
/// The coefficient of soft real-time raising, for playback and recording.
pub(super) const SOFT_REAL_TIME: u32 = 3000;
/// The duration of soft real-time raising, in ms. It distinguishes the two kinds, as interactive
/// raising is always longer.
pub(super) const SOFT_RAISING_MS: Tick = 300;
/// The minimum and maximum of interactive raising, in ms.
const INTERACTIVE_MS: [u64; 2] = [3000, 25_000];
/// The number of sectors that suffices to start a program; interactive raising ends with them.
const RAISED_SECTORS_MAX: u64 = 120_000;
/// The maximum mean rate of a soft real-time queue, in sectors a second.
const SOFT_SECTORS_PER_S: u64 = 7000;
/// The margin beyond the idle wait that a queue's next request must keep to count as sent in its
/// own time, in ms.
const SOFT_MARGIN_MS: Tick = 4;

/// The raising of a queue. Its coefficient is in the engine's entity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raising {
    /// Its start; while not raised, a time up to which the queue certainly was not raised.
    pub at: Tick,
    /// Its duration.
    pub length: Tick,
    /// The start of the interactive raising that soft real-time raising interrupted.
    pub interactive_at: Tick,
    /// Sectors charged since it began.
    pub served: u64,
}

impl Default for Raising {
    fn default() -> Self {
        Raising { at: 0, length: 0, interactive_at: NEVER, served: 0 }
    }
}

impl Raising {
    /// Returns true if it is soft real-time, provided that the queue is raised.
    pub fn is_soft(&self) -> bool {
        self.length == SOFT_RAISING_MS
    }

    /// Returns true if its duration has passed.
    pub fn is_over(&self, now: Tick) -> bool {
        now > self.at.saturating_add(self.length)
    }

    /// Makes an interactive raising soft real-time.
    pub fn interrupt(&mut self) {
        (self.interactive_at, self.length) = (self.at, SOFT_RAISING_MS);
    }
}

/// The conditions under which the next request of a queue makes it soft real-time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SoftStart {
    /// The time from which a request does.
    pub earliest: Tick,
    /// The time at which the queue last became busy, from which its rate is computed.
    pub busy_since: Tick,
}

/// The reference device of the durations: a large program took `duration_ms` to start on a device
/// of this rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    /// The rate in sectors a microsecond, times 2^16.
    pub rate: u64,
    duration_ms: u64,
}

impl Reference {
    pub const fn of(rotational: bool) -> Reference {
        if rotational {
            Reference { rate: 14_000, duration_ms: 7000 }
        } else {
            Reference { rate: 33_000, duration_ms: 2500 }
        }
    }

    /// The start time of a program on a device of this rate, in ms.
    pub fn duration(self, rate: u64) -> Tick {
        let [shortest, longest] = INTERACTIVE_MS;
        (self.rate.saturating_mul(self.duration_ms) / rate.max(1)).max(shortest).min(longest) as Tick
    }
}

impl<H: HostTypes> Scheduler<H> {
    /// The duration of interactive raising on this device, in ms.
    pub(super) fn interactive_ms(&self) -> Tick {
        Reference::of(self.rotational).duration(self.rate.rate)
    }

    /// Raises a queue as interactive.
    #[inline(never)]
    pub(super) fn raise_interactive(&mut self, slot: Slot) {
        self.engine.entities[slot].coefficient = INTERACTIVE;
        self.queues[slot].raising.length = self.interactive_ms();
    }

    /// Ends a queue's raising.
    #[inline(never)]
    pub(super) fn end_raising(&mut self, slot: Slot, now: Tick) {
        let queue = &mut self.queues[slot];
        if !queue.raising.is_soft() {
            queue.soft.earliest = now;
        }
        if queue.is_busy() {
            self.raised_busy.decrement();
        }
        queue.raising.length = 0;
        queue.raising.at = now;
        let entity = &mut self.engine.entities[slot];
        entity.coefficient = 1;
        entity.pending = true;
    }

    /// Ends soft real-time raising; an interrupted interactive raising continues.
    #[inline(never)]
    pub(super) fn end_soft_raising(&mut self, slot: Slot, now: Tick) {
        if self.interactive_is_over(slot, now) {
            self.end_raising(slot, now);
        } else {
            self.resume_interactive(slot);
        }
    }

    /// Returns true if the interactive raising that soft real-time raising interrupted would be
    /// over now.
    pub(super) fn interactive_is_over(&self, slot: Slot, now: Tick) -> bool {
        now > self.queues[slot].raising.interactive_at.saturating_add(self.interactive_ms())
    }

    #[inline(never)]
    pub(super) fn resume_interactive(&mut self, slot: Slot) {
        self.raise_interactive(slot);
        let queue = &mut self.queues[slot];
        queue.raising.at = queue.raising.interactive_at;
        self.engine.entities[slot].pending = true;
    }

    /// Ends the raising of the queue in service after a request if it is over. The change applies
    /// at once.
    pub(super) fn check_raising(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        let now = tick(core);
        let before = self.coefficient(slot);
        if before > 1 {
            let queue = &self.queues[slot];
            if queue.is_in_large_burst() {
                self.end_raising(slot, now);
            } else if queue.raising.is_over(now) {
                if queue.raising.is_soft() {
                    self.end_soft_raising(slot, now);
                } else {
                    self.end_raising(slot, now);
                }
            }
            let queue = &self.queues[slot];
            let interactive = self.coefficient(slot) > 1 && !queue.raising.is_soft();
            if interactive && queue.raising.served > RAISED_SECTORS_MAX {
                self.end_raising(slot, now);
            }
        }
        let entity = &self.engine.entities[slot];
        if (entity.weight > entity.base) != (entity.coefficient > 1) {
            self.engine.apply(slot, false);
        }
        let coefficient = self.coefficient(slot);
        if coefficient != before {
            core.note(|_| Note::WeightRaised { queue: self.name(slot), coefficient });
        }
        debug_assert!(coefficient <= SOFT_REAL_TIME);
    }

    /// The earliest arrival that makes the queue's next request soft real-time: not earlier than at
    /// the maximum rate of soft real-time queues, and not within the idle wait.
    pub(super) fn next_soft_start(&self, slot: Slot, now: Tick) -> Tick {
        let queue = &self.queues[slot];
        let paced = (queue.service.served.saturating_mul(1000) / SOFT_SECTORS_PER_S) as Tick;
        let idle_ms = (self.tunables.slice_idle_ns / 1_000_000) as Tick;
        let patient = now.saturating_add(idle_ms).saturating_add(SOFT_MARGIN_MS);
        queue.soft.earliest.max(queue.soft.busy_since.saturating_add(paced)).max(patient)
    }

    /// Ends all raising, because low_latency was turned off.
    pub(super) fn end_all_raising(&mut self, now: Tick) {
        for slot in 0..self.queues.capacity() {
            if self.queues[slot].exists() && self.coefficient(slot) > 1 {
                self.end_raising(slot, now);
            }
        }
    }
}
