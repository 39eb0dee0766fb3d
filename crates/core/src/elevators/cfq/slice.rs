//! The active queue: its selection, its slice, and its number of requests in the device.

use super::Cfq;
use super::workload::FilingPosition;
use crate::clock::Timer;
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::Note;
use crate::priority::Class;

impl<H: HostTypes> Cfq<H> {
    /// Selects the queue to dispatch from, or [`NIL`] to wait.
    pub(super) fn select(&mut self, core: &mut QueueCore<H>) -> Slot {
        let active = self.active;
        if active == NIL {
            return self.activate_next(core);
        }
        if self.queued == 0 {
            return NIL;
        }
        let now = core.counted_ns();
        let queue = &self.queues[active];
        if queue.wait_busy && !queue.is_empty() {
            return self.end_and_activate_next(core);
        }
        let over = queue.slice_used(now) && !queue.must_dispatch;
        if !over && !queue.is_empty() {
            return active;
        }
        let alone = self.groups[queue.group].queues == 1;
        if over {
            // The last queue of its group, if idling is useful for it, stays active while it has
            // requests in the device; otherwise the group might lose its position.
            if alone && queue.is_empty() && queue.dispatched > 0 && self.should_idle(core, active) {
                return NIL;
            }
        } else {
            let close = self.close_cooperator(core, active);
            if close != NIL {
                self.set_up_merge(core, active, close);
                self.expire(core, false);
                self.activate(core, close);
                return close;
            }
            if self.waits_for_request(core, now) {
                return NIL;
            }
        }
        let group = &self.groups[self.queues[active].group];
        let wait = self.tunables.group_idle;
        if wait > 0 && alone && group.dispatched > 0 && !group.think.is_above(wait) {
            return NIL;
        }
        self.end_and_activate_next(core)
    }

    /// Returns true if the next dispatched request is real-time, or can be made so, in the group
    /// being served or next to be served (classes are compared within a group only). An active
    /// queue of another class is preempted; an active real-time queue without requests is waited
    /// for as usual.
    pub(super) fn takes_real_time(&mut self, core: &mut QueueCore<H>) -> bool {
        let (active, now) = (self.active, core.counted_ns());
        let queue = &self.queues[active];
        let has_disk = active != NIL && queue.is_real_time();
        let over = queue.wait_busy || (queue.slice_used(now) && !queue.must_dispatch);
        if has_disk && (queue.is_empty() || !over) {
            return !queue.is_empty();
        }
        let group = if active == NIL { self.next_group() } else { queue.group };
        if group == NIL || self.groups[group].busy(Class::RealTime) == 0 {
            return false;
        }
        self.expire(core, !has_disk);
        let slot = self.choose_in_group(core, group);
        self.activate(core, slot);
        // A queue may be filed under a class that it no longer has.
        self.queues[slot].is_real_time()
    }

    fn end_and_activate_next(&mut self, core: &mut QueueCore<H>) -> Slot {
        self.expire(core, false);
        self.activate_next(core)
    }

    /// Activates the queue whose turn it is.
    fn activate_next(&mut self, core: &mut QueueCore<H>) -> Slot {
        let first = self.choose_queue(core);
        let slot = if self.queued == 0 { NIL } else { first };
        self.activate(core, slot);
        slot
    }

    pub(super) fn activate(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        self.active = slot;
        if slot == NIL {
            return;
        }
        debug_assert!(self.queues[slot].filed.is_some());
        let queue = &mut self.queues[slot];
        queue.dispatch_start = core.counted_ns();
        (queue.slice_start, queue.slice_end, queue.allocated_slice, queue.slice_dispatch) = (0, 0, 0, 0);
        queue.slice_new = true;
        queue.wait_request = false;
        queue.must_dispatch = false;
        queue.must_alloc_slice = false;
        queue.fifo_checked = false;
        let (pid, level) = (queue.pid, queue.level());
        core.timers.cancel(Timer::Idle);
        core.note(|_| Note::Activate { queue: pid, level });
    }

    /// Expires the active queue, if there is one. The rest of a slice that was cut short counts
    /// later.
    pub(super) fn expire(&mut self, core: &mut QueueCore<H>, cut_short: bool) {
        let slot = self.active;
        if slot == NIL {
            return;
        }
        let now = core.counted_ns();
        let queue = &mut self.queues[slot];
        if queue.wait_request {
            core.timers.cancel(Timer::Idle);
        }
        queue.wait_request = false;
        queue.wait_busy = false;
        if queue.coop && queue.is_seeky() {
            queue.split_coop = true;
        }
        if cut_short {
            let queue = &self.queues[slot];
            let left = if queue.slice_new {
                core.clock.counted_length(self.scaled_slice(slot))
            } else {
                queue.slice_end.wrapping_sub(now)
            };
            self.queues[slot].slice_left = left as i64;
        }
        let queue = &self.queues[slot];
        let (pid, left, empty) = (queue.pid, queue.slice_end.saturating_sub(now), queue.is_empty());
        core.note(|_| Note::SliceExpired { queue: pid, left_ns: left, preempted: cut_short });
        self.charge_group(core, slot);
        if empty {
            self.unfile(core, slot);
        } else {
            self.file(core, slot, FilingPosition::Usual);
            self.position(core, slot);
        }
        self.active = NIL;
        self.follow(core, NIL);
    }

    /// Sets the context whose statistics decide about idling.
    pub(super) fn follow(&mut self, core: &mut QueueCore<H>, context: Slot) {
        core.hold_instead(&mut self.active_context, context);
    }

    /// Starts the slice of the active queue at its first completion.
    pub(super) fn start_slice(&mut self, core: &mut QueueCore<H>) {
        let (slot, now) = (self.active, core.counted_ns());
        let length = core.clock.counted_length(self.scaled_slice(slot));
        let queue = &mut self.queues[slot];
        queue.slice_new = false;
        queue.slice_start = now;
        queue.slice_end = now.saturating_add(length);
        queue.allocated_slice = length;
        let (pid, end) = (queue.pid, queue.slice_end);
        core.note(|core| Note::SliceSet { queue: pid, until_ns: core.clock.host_ns(end) });
    }

    /// The length of a queue's slice. With `low_latency` it is shortened so that one sync slice for
    /// each of the group's queues of the class fits, on average, into the group's part of the
    /// target latency; but not below two idle waits.
    fn scaled_slice(&mut self, slot: Slot) -> u64 {
        let queue = &self.queues[slot];
        let slice = self.tunables.slice_of(queue.sync, queue.level());
        if !self.tunables.low_latency {
            return slice;
        }
        let [_, slice_sync] = self.tunables.slice;
        let group = &mut self.groups[queue.group];
        let expected = slice_sync.saturating_mul(group.update_busy_average(queue.class()));
        let granted = group.part_of(self.tunables.target_latency);
        if expected <= granted {
            return slice;
        }
        let scaled_idle = self.tunables.slice_idle.saturating_mul(2).saturating_mul(slice).checked_div(slice_sync);
        let least = slice.min(scaled_idle.unwrap_or(0));
        slice.saturating_mul(granted).checked_div(expected).unwrap_or(slice).max(least)
    }

    /// Returns true if one more request of a queue may be dispatched.
    pub(super) fn may_dispatch(&self, core: &QueueCore<H>, slot: Slot) -> bool {
        let (queue, now) = (&self.queues[slot], core.counted_ns());
        let [async_in_flight, sync_in_flight] = self.in_flight;
        if queue.must_dispatch {
            return true;
        }
        if async_in_flight > 0 && self.should_idle(core, slot) {
            return false;
        }
        if !queue.sync && sync_in_flight > 0 {
            return false;
        }
        let mut most = if queue.is_idle_class() { 1 } else { (self.tunables.quantum / 2).max(1) };
        if queue.dispatched >= most {
            let (alone, only_sync) = (self.busy_queues == 1, queue.sync && self.busy_sync_queues == 1);
            if queue.is_idle_class() || (!alone && self.slice_used_soon(slot, now) && !only_sync) {
                return false;
            }
            most = if alone || only_sync { u32::MAX } else { self.tunables.quantum };
        }
        if !queue.sync && self.tunables.low_latency {
            // One more async request for each sync slice since a sync request was last late; none
            // in the first.
            let [_, slice_sync] = self.tunables.slice;
            let depth = now.wrapping_sub(self.last_delayed_sync).checked_div(slice_sync).unwrap_or(u64::MAX);
            let depth = if depth == 0 && queue.dispatched == 0 { 1 } else { depth };
            most = most.min(u32::try_from(depth).unwrap_or(u32::MAX));
        }
        queue.dispatched < most
    }

    /// Returns true if the slice will be over when the in-flight requests have completed, estimated
    /// at one idle wait each.
    fn slice_used_soon(&self, slot: Slot, now: u64) -> bool {
        let queue = &self.queues[slot];
        let until_done = self.tunables.slice_idle.saturating_mul(queue.dispatched.into());
        queue.slice_new || now.saturating_add(until_done) > queue.slice_end
    }
}
