//! Preemption of the active queue.

use super::Cfq;
use super::queue::Kind;
use super::workload::FilingPosition;
use crate::bio::Flags;
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::Note;

impl<H: HostTypes> Cfq<H> {
    /// Returns true if the queue of a new request preempts the active queue.
    pub(super) fn should_preempt(&self, core: &QueueCore<H>, slot: Slot, request: Slot) -> bool {
        let (new, active) = (&self.queues[slot], &self.queues[self.active]);
        let entry = &core.tables.requests[request];
        if self.active == NIL || new.is_idle_class() {
            return false;
        }
        if active.is_idle_class() {
            return true;
        }
        if active.is_real_time() && !new.is_real_time() {
            return false;
        }
        if entry.is_sync() && !active.sync && !active.must_dispatch {
            return true;
        }
        if !self.is_within(core, active.group, new.group) {
            return false;
        }
        if active.slice_used(core.counted_ns()) || (new.is_real_time() && !active.is_real_time()) {
            return true;
        }
        // Queues that share the idling take turns without waiting for each other.
        let together = self.serving_kind == Kind::SyncNoIdle && new.kind() == Kind::SyncNoIdle;
        if together && active.is_empty() {
            return true;
        }
        if entry.flags.has(Flags::META) && active.metadata == 0 {
            return true;
        }
        if active.is_empty() && !self.should_idle(core, self.active) {
            return true;
        }
        active.wait_request && self.is_close(entry.sector)
    }

    pub(super) fn preempt(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        let active = &self.queues[self.active];
        let (queue, victim, victim_kind) = (self.queues[slot].pid, active.pid, active.kind());
        core.note(|_| Note::Preempt { queue, victim });
        self.expire(core, true);
        let new = &self.queues[slot];
        if victim_kind != new.kind() {
            // Otherwise its group would continue with the victim's kind of queues.
            self.groups[new.group].saved_slice = 0;
        }
        self.file(core, slot, FilingPosition::Front);
        let new = &mut self.queues[slot];
        new.slice_end = 0;
        new.slice_new = true;
    }
}
