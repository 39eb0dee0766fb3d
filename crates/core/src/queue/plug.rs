//! Plugging: a queue that was empty holds its first requests back for a moment, so that bios can be
//! merged into them.

use super::{RequestQueue, direction};
use crate::clock::Timer;
use crate::elevator::tables::{DeferredWork, HostTypes};
use crate::event::Event;

/// The delay after which a plugged queue is unplugged, in ms (rounded down to ticks, but at least
/// one tick).
const UNPLUG_DELAY_MS: u64 = 3;
/// The number of waiting requests at which a plugged queue is unplugged.
const UNPLUG_THRESHOLD: u32 = 4;

impl<H: HostTypes> RequestQueue<H> {
    /// Plugs the queue if it is not plugged.
    pub(super) fn plug(&mut self) {
        if self.plugged {
            return;
        }
        self.plugged = true;
        let delay = self.core.clock.ticks_of_ms(UNPLUG_DELAY_MS).max(1);
        let expires = self.core.ticks().saturating_add(delay);
        self.core.arm_at_tick(Timer::Unplug, expires);
        self.core.emit(|_| Event::Plug);
    }

    /// Removes the plug. Returns true if the queue was plugged.
    pub(super) fn remove_plug(&mut self) -> bool {
        if !self.plugged {
            return false;
        }
        self.plugged = false;
        self.core.timers.cancel(Timer::Unplug);
        let waiting = self.waiting();
        self.core.emit(|_| Event::Unplug { waiting });
        true
    }

    /// Removes the plug and runs the queue, if it is plugged.
    pub(super) fn unplug(&mut self) {
        if self.remove_plug() {
            self.core.run_now();
        }
    }

    /// Unplugs after an insertion if enough requests wait. A run that the elevator scheduled has
    /// removed the plug before.
    pub(super) fn unplug_at_threshold(&mut self) {
        if self.core.run_now {
            self.remove_plug();
        } else if self.plugged && self.waiting() >= UNPLUG_THRESHOLD {
            self.unplug();
        }
    }

    /// Handles the unplug timer, which only schedules the unplugging.
    pub(super) fn unplug_timer(&mut self) {
        self.core.emit(|_| Event::UnplugTimer);
        self.core.work.push(DeferredWork::Unplug);
    }

    /// Unplugs after a completion.
    pub(super) fn unplug_after_completion(&mut self) {
        self.remove_plug();
        if !self.is_empty() {
            self.core.run_now();
        }
    }

    /// Requests that are allocated and not in the device.
    fn waiting(&self) -> u32 {
        self.pool.allocated().saturating_sub(self.core.in_flight)
    }

    /// Records that a process sleeps, and schedules the unplugging.
    pub(super) fn sleep(&mut self, context: u32, op: crate::bio::Op) {
        self.pool.add_waiter(&mut self.core.tables.contexts, context, direction(op));
        self.unplug();
    }
}
