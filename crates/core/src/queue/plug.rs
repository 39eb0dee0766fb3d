//! Plugging: a queue that was empty holds its first requests back for a moment, so that bios can be merged into them.

use super::{RequestQueue, direction};
use crate::clock::Timer;
use crate::elevator::tables::{DeferredWork, HostTypes};
use crate::event::Event;

/// A plugged queue is unplugged after 3 ms (rounded down to ticks, but at least one) ...
const UNPLUG_DELAY_MS: u64 = 3;
/// ... or as soon as this many requests wait.
const UNPLUG_THRESHOLD: u32 = 4;

impl<H: HostTypes> RequestQueue<H> {
    /// Plugs the queue, unless it is plugged.
    pub(super) fn plug(&mut self) {
        if self.plugged {
            return;
        }
        self.plugged = true;
        let delay = self.core.clock.ticks_of_ms(UNPLUG_DELAY_MS).max(1);
        let expires = self.core.ticks().saturating_add(delay);
        self.core.arm_at_tick(Timer::Unplug, expires);
        self.core.tell(|_| Event::Plug);
    }

    /// Takes the plug out, if it is in; answers whether it was.
    pub(super) fn remove_plug(&mut self) -> bool {
        if !self.plugged {
            return false;
        }
        self.plugged = false;
        self.core.timers.cancel(Timer::Unplug);
        let waiting = self.waiting();
        self.core.tell(|_| Event::Unplug { waiting });
        true
    }

    /// Takes the plug out and runs the queue, if it is plugged.
    pub(super) fn unplug(&mut self) {
        if self.remove_plug() {
            self.core.run_now();
        }
    }

    /// After an insertion: unplug when enough requests wait. A run that the elevator asked for has taken the plug out before.
    pub(super) fn unplug_at_threshold(&mut self) {
        if self.core.run_now {
            self.remove_plug();
        } else if self.plugged && self.waiting() >= UNPLUG_THRESHOLD {
            self.unplug();
        }
    }

    /// The timer only schedules the unplugging.
    pub(super) fn unplug_timer(&mut self) {
        self.core.tell(|_| Event::UnplugTimer);
        self.core.work.push(DeferredWork::Unplug);
    }

    /// A completion lets the queue run.
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

    /// A process goes to sleep: whatever is held back goes to the driver.
    pub(super) fn sleep(&mut self, context: u32, op: crate::bio::Op) {
        self.pool.add_waiter(&mut self.core.tables.contexts, context, direction(op));
        self.unplug();
    }
}
