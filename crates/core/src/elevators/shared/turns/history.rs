//! Statistics of processes and of the device, and idling for a process's next request.

use super::{Measure, Turns};
use crate::clock::Timer;
use crate::collections::{Count, NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::elevators::shared::idling::idle_wait;
use crate::elevators::shared::wf2q::IDLE;
use crate::event::{Expiry, Note};

/// The mean seek distance above which a process counts as seeky, in sectors.
pub(crate) const SEEKY_SECTORS: u64 = 8192;
/// The number of in-flight requests above which the device counts as having its own queue.
const HW_QUEUE_DEPTH: u32 = 4;
/// The minimum of queued and in-flight requests for a sample.
const HW_QUEUE_THRESHOLD: u32 = 4;
/// The number of samples of a decision.
const HW_QUEUE_SAMPLES: u32 = 32;

impl<H: HostTypes, M: Measure> Turns<H, M> {
    /// Updates the statistics of a process with a new request, and whether the disk may be kept
    /// idle for it.
    pub(super) fn update_history(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot) {
        let (now, idle) = (core.ticks(), self.measure.shared().slice_idle);
        let (sector, end) = (core.tables.requests[request].sector, core.tables.requests[request].end());
        let context = core.context_of(request);
        let running = context.is_running();
        let history = &mut context.history;
        let first = history.last_position == 0;
        history.update(now, idle, if first { 0 } else { sector.abs_diff(history.last_position) }, end);
        let queue = &mut self.queues[slot];
        if !queue.is_sync() {
            return;
        }
        M::history_updated(&mut queue.own, history.seek.mean);
        if self.engine.entities[slot].class == IDLE {
            return;
        }
        let seeky = self.hw_tag && history.seek.mean > SEEKY_SECTORS;
        if let Some(idle_window) = history.idle_window(running, idle, seeky) {
            queue.idle_window = idle_window;
        }
    }

    /// Decides whether the device has its own queue, from the number of in-flight requests while
    /// there were enough requests.
    pub(super) fn detect_device_queue(&mut self) {
        self.most_in_driver = self.most_in_driver.max(self.in_driver);
        if self.in_driver.saturating_add(self.queued) < HW_QUEUE_THRESHOLD {
            return;
        }
        self.hw_tag_samples.increment();
        if self.hw_tag_samples > HW_QUEUE_SAMPLES {
            self.hw_tag = self.most_in_driver > HW_QUEUE_DEPTH;
            self.hw_tag_samples = 0;
            self.most_in_driver = 0;
        }
    }

    /// Keeps the disk idle for the next request of the process of `request`, which belongs to the
    /// active queue. Returns true if it does.
    pub fn arm_idle(&mut self, core: &mut QueueCore<H>, request: Slot) -> bool {
        let context = core.context_of(request);
        let (running, seek) = (context.is_running(), context.history.seek);
        let queue = &mut self.queues[self.active];
        let mut wait = self.measure.shared().slice_idle;
        if !running || !queue.idle_window || wait == 0 {
            return false;
        }
        wait = idle_wait(core, wait, seek, SEEKY_SECTORS);
        queue.wait_request = true;
        let (name, until) = (queue.name(), core.ticks().saturating_add(wait));
        self.idle_since_ns = core.ktime_ns();
        core.arm_at_tick(Timer::Idle, until);
        core.note(|core| Note::IdleArmed { queue: name, until_ns: core.clock.time_of_tick(until) });
        true
    }

    /// Ends the wait for the next request of the active queue.
    pub(super) fn idle_over(&mut self, core: &mut QueueCore<H>) {
        if self.active != NIL {
            let name = self.queues[self.active].name();
            core.note(|_| Note::IdleTimeout { queue: name });
            let reason = if M::is_over(self, core) { Expiry::TimedOut } else { Expiry::TooIdle };
            M::end_turn(self, core, reason, false, Some(self.idle_since_ns));
        }
        self.kick(core);
    }
}
