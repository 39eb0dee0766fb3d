//! Raising: the weight of a queue that starts a program, or plays, is multiplied for a while.

use super::state::{INTERACTIVE, SOFT_REAL_TIME, Tick};
use super::{Bfq, tick};
use crate::collections::Slot;
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::Note;

/// The shortest and the longest interactive raising, in ms.
const INTERACTIVE_MS: [u64; 2] = [3000, 25_000];
/// So many sectors start any program: interactive raising ends with them.
const RAISED_SECTORS_MAX: u64 = 120_000;
/// A queue that is slower than this on average may play something, in sectors a second.
const SOFT_SECTORS_PER_S: u64 = 7000;
/// What a queue's next request is given beyond the longest idling before it counts as one of its own time, in ms.
const SOFT_MARGIN_MS: Tick = 4;

/// The device that durations were measured on: a large program took `duration_ms` to start on one of this rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    /// Sectors a microsecond, times 2^16.
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

    /// How long a program takes to start on a device of this rate, in ms.
    pub fn duration(self, rate: u64) -> Tick {
        let [shortest, longest] = INTERACTIVE_MS;
        (self.rate.saturating_mul(self.duration_ms) / rate.max(1)).max(shortest).min(longest) as Tick
    }
}

impl<H: HostTypes> Bfq<H> {
    /// How long interactive raising lasts on this device.
    pub(super) fn interactive_ms(&self) -> Tick {
        Reference::of(self.rotational).duration(self.rate.rate)
    }

    /// Raises a queue as interactive.
    pub(super) fn raise_interactive(&mut self, slot: Slot) {
        self.engine.entities[slot].coefficient = INTERACTIVE;
        self.queues[slot].raised_for = self.interactive_ms();
    }

    /// Ends a queue's raising.
    pub(super) fn end_raising(&mut self, slot: Slot, now: Tick) {
        let queue = &mut self.queues[slot];
        if !queue.is_soft() {
            queue.soft_start = now;
        }
        if queue.busy {
            self.raised_busy = self.raised_busy.saturating_sub(1);
        }
        queue.raised_for = 0;
        queue.raised_at = now;
        let entity = &mut self.engine.entities[slot];
        entity.coefficient = 1;
        entity.pending = true;
    }

    /// Soft real-time raising is over: what was left of the interactive one that it broke off goes on.
    pub(super) fn end_soft_raising(&mut self, slot: Slot, now: Tick) {
        if self.interactive_is_over(slot, now) {
            self.end_raising(slot, now);
        } else {
            self.resume_interactive(slot);
        }
    }

    /// Whether the interactive raising that soft real time broke off would be over by now.
    pub(super) fn interactive_is_over(&self, slot: Slot, now: Tick) -> bool {
        now > self.queues[slot].interactive_at.saturating_add(self.interactive_ms())
    }

    pub(super) fn resume_interactive(&mut self, slot: Slot) {
        self.raise_interactive(slot);
        let queue = &mut self.queues[slot];
        queue.raised_at = queue.interactive_at;
        self.engine.entities[slot].pending = true;
    }

    /// After a request of the queue in service: whether its raising is over. What changes is taken over at once.
    pub(super) fn check_raising(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        let now = tick(core);
        let before = self.coefficient(slot);
        if before > 1 {
            let queue = &self.queues[slot];
            if queue.large_burst {
                self.end_raising(slot, now);
            } else if now > queue.raised_at.saturating_add(queue.raised_for) {
                if queue.is_soft() {
                    self.end_soft_raising(slot, now);
                } else {
                    self.end_raising(slot, now);
                }
            }
            let queue = &self.queues[slot];
            let interactive = self.coefficient(slot) > 1 && !queue.is_soft();
            if interactive && queue.served_raised > RAISED_SECTORS_MAX {
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

    /// From when on a request of the queue is one that plays in time: not before it would have been sent at the highest rate of such, and
    /// not while the disk might have been kept idle for it.
    pub(super) fn next_soft_start(&self, slot: Slot, now: Tick) -> Tick {
        let queue = &self.queues[slot];
        let paced = (queue.served.saturating_mul(1000) / SOFT_SECTORS_PER_S) as Tick;
        let idle_ms = (self.tunables.slice_idle_ns / 1_000_000) as Tick;
        let patient = now.saturating_add(idle_ms).saturating_add(SOFT_MARGIN_MS);
        queue.soft_start.max(queue.active_since.saturating_add(paced)).max(patient)
    }

    /// Low latency was turned off.
    pub(super) fn end_all_raising(&mut self, now: Tick) {
        for slot in 0..self.queues.capacity() {
            if self.queues[slot].exists && self.coefficient(slot) > 1 {
                self.end_raising(slot, now);
            }
        }
    }
}
