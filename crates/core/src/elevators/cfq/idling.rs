//! Idling: when the disk is kept idle and for which queues, and the statistics behind it.

use super::{Cfq, SMALL_SECTORS};
use crate::bio::{Flags, Op};
use crate::clock::Timer;
use crate::collections::{Count, NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::Note;

/// The distance from the previous request above which a request counts as a seek, in sectors.
const SEEK_SECTORS: u64 = 800;
/// The size below which a request counts as small on a non-rotational device, in sectors.
const SMALL_SECTORS_FLASH: u32 = 64;
/// The number of queued requests from which a queue counts as deep.
const DEEP: u32 = 4;
/// The number of in-flight requests from which a device counts as having its own queue.
const HW_QUEUE_MIN: u32 = 5;
/// The number of completions under load before that decision.
const HW_QUEUE_SAMPLES: u32 = 50;

/// The detection of a device queue.
#[derive(Debug, Default)]
pub(super) struct HwQueue {
    queues: Option<bool>,
    depth_max: u32,
    samples: u32,
}

impl HwQueue {
    /// Returns true if the device has its own queue, or it is not known yet.
    pub fn may_queue(&self) -> bool {
        self.queues != Some(false)
    }
}

impl<H: HostTypes> Cfq<H> {
    /// Samples the number of in-flight requests before a completion is counted.
    pub(super) fn sample_device_queue(&mut self) {
        let in_driver = self.in_driver;
        self.hw_queue.depth_max = self.hw_queue.depth_max.max(in_driver);
        if self.hw_queue.queues == Some(true) || (self.queued <= HW_QUEUE_MIN && in_driver <= HW_QUEUE_MIN) {
            return;
        }
        // A queue with idling may have too few requests to fill any device.
        let queue = &self.queues[self.active];
        let few = queue.dispatched.saturating_add(queue.queued) < HW_QUEUE_MIN && in_driver < HW_QUEUE_MIN;
        if self.active != NIL && queue.idle_window && few {
            return;
        }
        self.hw_queue.samples.increment();
        if self.hw_queue.samples > HW_QUEUE_SAMPLES {
            self.hw_queue.queues = Some(self.hw_queue.depth_max >= HW_QUEUE_MIN);
        }
    }

    /// Returns true if the disk would be kept idle for this queue if it had no requests: because of
    /// its own statistics, or because it is the last of those that share the idling.
    pub(super) fn should_idle(&self, core: &QueueCore<H>, slot: Slot) -> bool {
        let (queue, wait) = (&self.queues[slot], self.tunables.slice_idle);
        if wait == 0 || queue.is_idle_class() {
            return false;
        }
        if queue.idle_window && (core.rotational || !self.hw_queue.may_queue()) {
            return true;
        }
        self.tree_of(slot).is_some_and(|tree| tree.count == 1 && queue.sync && !tree.think.is_above(wait))
    }

    /// Returns true if the disk waits for the active queue, which is empty and has time left: by a
    /// timer, or for its in-flight requests.
    pub(super) fn waits_for_request(&mut self, core: &mut QueueCore<H>, now: u64) -> bool {
        if core.timers.armed_for(Timer::Idle).is_some() {
            return true;
        }
        let queue = &mut self.queues[self.active];
        let more_left_than_used = queue.slice_end.wrapping_sub(now) > now.wrapping_sub(queue.slice_start);
        if queue.is_seeky() && queue.idle_window && (queue.slice_new || more_left_than_used) {
            // A seeky queue that was deep for some time: idling for it would be useless.
            queue.deep = false;
            queue.idle_window = false;
        }
        self.queues[self.active].dispatched > 0 && self.should_idle(core, self.active)
    }

    /// Begins to keep the disk idle for the active queue, if idling is useful for it or its group.
    pub(super) fn arm_idle(&mut self, core: &mut QueueCore<H>) {
        let (slot, now) = (self.active, core.counted_ns());
        let group_idle = self.tunables.group_idle;
        if !core.rotational && self.hw_queue.may_queue() && group_idle == 0 {
            return;
        }
        let for_group = !self.should_idle(core, slot);
        if for_group && group_idle == 0 {
            return;
        }
        let queue = &self.queues[slot];
        let context = self.active_context;
        if queue.dispatched > 0 || context == NIL || !core.tables.contexts[context].is_running() {
            return;
        }
        let left = queue.slice_end.saturating_sub(now);
        if self.contexts[context].think.mean().is_some_and(|mean| left < mean) {
            return;
        }
        let tree_thinks_long = self.tree_of(slot).is_some_and(|tree| tree.think.is_above(group_idle));
        if for_group && (self.groups[queue.group].queues > 1 || tree_thinks_long) {
            return;
        }
        let wait = if for_group { group_idle } else { self.tunables.slice_idle };
        let until = now.saturating_add(core.clock.counted_length(wait));
        let pid = queue.pid;
        self.queues[slot].wait_request = true;
        core.arm_at_ktime(Timer::Idle, until);
        core.note(|core| Note::IdleArmed { queue: pid, until_ns: core.clock.host_ns(until) });
    }

    /// Extends the slice of the last queue of a group that has no requests at the end of its slice.
    /// If it were removed, the group would lose its position.
    pub(super) fn extend_slice(&mut self, core: &mut QueueCore<H>) {
        let now = core.counted_ns();
        let queue = &self.queues[self.active];
        let group = &self.groups[queue.group];
        let (slice_idle, group_idle) = (self.tunables.slice_idle, self.tunables.group_idle);
        if !queue.is_empty() || group.queues > 1 || group.think.is_above(group_idle) {
            return;
        }
        let left = queue.slice_end.saturating_sub(now);
        let context = self.active_context;
        let thinks_longer = context != NIL && self.contexts[context].think.mean().is_some_and(|mean| left < mean);
        if queue.slice_used(now) || thinks_longer || left <= core.clock.ns_of_ticks(1) {
            let longer = if slice_idle > 0 { slice_idle } else { group_idle };
            let queue = &mut self.queues[self.active];
            queue.slice_end = now.saturating_add(longer);
            queue.wait_busy = true;
        }
    }

    /// The wait for the active queue's next request timed out.
    pub(super) fn idle_over(&mut self, core: &mut QueueCore<H>) {
        if self.active != NIL {
            let queue = &mut self.queues[self.active];
            let pid = queue.pid;
            core.note(|_| Note::IdleTimeout { queue: pid });
            let in_time = !queue.slice_used(core.counted_ns());
            if queue.must_dispatch || (in_time && self.busy_queues > 0 && !queue.is_empty()) {
                return self.kick(core);
            }
            if in_time && self.busy_queues == 0 {
                return;
            }
            if in_time {
                queue.deep = false;
            }
            self.expire(core, false);
        }
        self.kick(core);
    }

    /// Updates the statistics with a new request.
    pub(super) fn update_history(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot) {
        let now = core.counted_ns();
        let entry = &core.tables.requests[request];
        let (slice_idle, group_idle) = (self.tunables.slice_idle, self.tunables.group_idle);
        let queue = &mut self.queues[slot];
        let group = &mut self.groups[queue.group];
        let context = &mut self.contexts[entry.context];
        if queue.sync {
            context.think.sample(now, slice_idle);
            if let Some((class, kind)) = queue.filed {
                group.tree_mut(class, kind).think.sample(now, slice_idle);
            }
        }
        if self.tunables.groups {
            group.think.sample(now, group_idle);
        }
        let far = queue.last_position > 0 && entry.sector.abs_diff(queue.last_position) > SEEK_SECTORS;
        let seeks = if core.rotational { far } else { entry.sectors < SMALL_SECTORS_FLASH };
        queue.seek_history = (queue.seek_history << 1) | u32::from(seeks);
        queue.last_position = entry.end();
        if !queue.sync || queue.is_idle_class() {
            return;
        }
        if queue.queued >= DEEP {
            queue.deep = true;
        }
        // Slot NIL reads as a read request.
        let next = &core.tables.requests[queue.next];
        let writes_no_more = next.op == Op::Write && next.flags.has(Flags::SYNC) && !next.flags.has(Flags::IDLE);
        let gone = !core.tables.contexts[entry.context].is_running();
        if writes_no_more || gone || slice_idle == 0 || (!queue.deep && queue.is_seeky()) {
            queue.idle_window = false;
        } else if let Some(mean) = context.think.mean() {
            queue.idle_window = mean <= slice_idle;
        }
    }

    /// Handles a request of the active queue for which the disk was kept idle: it is dispatched at
    /// once, unless it is small and no other queue has requests; then more may be merged into it
    /// first.
    pub(super) fn awaited_request_arrived(&mut self, core: &mut QueueCore<H>, slot: Slot, request: Slot) {
        let queue = &mut self.queues[slot];
        if !queue.wait_request {
            return;
        }
        let pid = queue.pid;
        core.note(|_| Note::IdleHit { queue: pid });
        if core.tables.requests[request].sectors > SMALL_SECTORS || self.busy_queues > 1 {
            queue.wait_request = false;
            core.timers.cancel(Timer::Idle);
            core.run_now();
        } else {
            queue.must_dispatch = true;
        }
    }
}
