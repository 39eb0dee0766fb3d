//! Completions, and the begin and end of idling.

use super::raising::INTERACTIVE;
use super::{Scheduler, tick};
use crate::clock::Timer;
use crate::collections::{Count, NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::{Expiry, Note};

/// The maximum idle wait for a seeky queue, in ns, if it is not raised and the scenario is
/// symmetric.
const IDLE_SEEKY_NS: u64 = 2_000_000;
/// The minimum idle wait for a raised queue, in ns.
const IDLE_RAISED_NS: u64 = 20_000_000;
/// Below this number of in-flight requests, a device gives no evidence of queueing if the queue in
/// service also sends few.
const FEW: u32 = 3;

impl<H: HostTypes> Scheduler<H> {
    /// Handles the completion of a request.
    pub(super) fn completed(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let slot = core.tables.requests[request].owner;
        let (now_ns, now) = (core.ktime_ns(), tick(core));
        self.update_injection_limit(core, slot, request);
        self.sample_queueing();
        self.in_flight.decrement();
        let queue = &mut self.queues[slot];
        queue.in_flight.decrement();
        queue.habits.last_end_ns = now_ns;
        if queue.in_flight == 0 && !queue.is_busy() {
            queue.service.timeout = now;
            self.engine.leave_all(slot);
        }
        if self.rate.completed(now_ns) {
            self.rate_changed();
        }
        let queue = &self.queues[slot];
        self.done_queue = if queue.is_shared() { NIL } else { slot };
        let done = queue.in_flight == 0 && queue.requests.is_empty();
        if queue.soft_later && done && self.coefficient(slot) != INTERACTIVE {
            self.queues[slot].soft.earliest = self.next_soft_start(slot, now);
        }
        if slot == self.in_service && self.keep_or_expire(core, slot) {
            return;
        }
        if self.in_flight == 0 && self.queued > 0 {
            core.kick();
        }
    }

    fn sample_queueing(&mut self) {
        let served = self.in_service;
        let queue = &self.queues[served];
        let own = queue.in_flight.saturating_add(queue.pending());
        let quiet = served != NIL && queue.habits.short_think && own < FEW && self.in_flight < FEW;
        if self.queueing.sample(self.in_flight, self.queued, !quiet) {
            self.flash_queueing = !self.rotational && self.queueing.queues == Some(true);
        }
    }

    /// After a completion of the queue in service: keeps the disk idle for it or expires it, if it
    /// has no requests. Returns true if the disk is kept idle.
    fn keep_or_expire(&mut self, core: &mut QueueCore<H>, slot: Slot) -> bool {
        let empty = self.queues[slot].requests.is_empty();
        let in_flight = self.queues[slot].in_flight;
        let may_idle = self.may_idle(slot);
        if empty && may_idle {
            if in_flight == 0 {
                self.arm_idle(core, slot);
            }
            return true;
        }
        if self.may_time_out(slot, tick(core)) {
            self.expire(core, slot, Expiry::TimedOut, false);
        } else if empty && (in_flight == 0 || !may_idle) {
            self.expire(core, slot, Expiry::NoMoreRequests, false);
        }
        false
    }

    #[inline(never)]
    fn arm_idle(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        let idle_ns = self.tunables.slice_idle_ns;
        let raised = self.coefficient(slot) > 1;
        let length_ns = if self.queues[slot].locality.is_seeky() && !raised && !self.is_asymmetric(slot) {
            idle_ns.min(IDLE_SEEKY_NS)
        } else if raised {
            idle_ns.max(IDLE_RAISED_NS)
        } else {
            idle_ns
        };
        self.waits = true;
        self.idle_start_ns = core.ktime_ns();
        let until_ns = self.idle_start_ns.saturating_add(length_ns);
        core.arm_at_ktime(Timer::Idle, until_ns);
        core.note(|core| Note::IdleArmed { queue: self.name(slot), until_ns: core.clock.host_ns(until_ns) });
    }

    /// The idle wait for the queue in service timed out.
    #[inline(never)]
    pub(super) fn idle_over(&mut self, core: &mut QueueCore<H>) {
        let slot = self.in_service;
        if slot != NIL && self.waits {
            self.waits = false;
            core.note(|_| Note::IdleTimeout { queue: self.name(slot) });
            if tick(core) >= self.queues[slot].service.timeout {
                self.expire(core, slot, Expiry::TimedOut, true);
            } else if self.queues[slot].requests.is_empty() {
                self.expire(core, slot, Expiry::TooIdle, true);
            }
        }
        if self.queued > 0 {
            core.kick();
        }
    }
}
