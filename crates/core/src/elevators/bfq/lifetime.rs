//! Creation, references and end of queues.

use super::bursts::Membership;
use super::habits::Habits;
use super::raising::{Raising, SoftStart};
use super::state::{ContextState, Phase, Queue, Service};
use super::wf2q::Removal;
use super::{ASYNC, SYNC, Scheduler, tick};
use crate::collections::{Count, NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::priority::{Class, Priority};

/// The number of entries examined for a reusable queue when none is free.
const RECLAIM_STEPS: u32 = 64;

/// The weight of a queue: 80 for level 0 down to 10 for level 7.
pub(crate) fn weight_of(priority: Priority) -> u32 {
    let level = if priority.class() == Class::Idle { 7 } else { u32::from(priority.level()) };
    8u32.saturating_sub(level).saturating_mul(10)
}

impl<H: HostTypes> Scheduler<H> {
    /// The level from which a queue's weight follows.
    pub(super) fn level(&self, slot: Slot) -> u8 {
        8u32.saturating_sub(self.engine.entities[slot].base / 10) as u8
    }

    /// The name of a queue in events.
    pub(super) fn name(&self, slot: Slot) -> u32 {
        self.queues[slot].pid
    }

    /// Creates a queue without users in a context's group, of its priority; [`NIL`] if there is no
    /// room.
    pub(super) fn make_queue(&mut self, core: &QueueCore<H>, context: Slot, sync: bool) -> Slot {
        let mut slot = self.free_queues.pop_front(&mut self.queues);
        if slot == NIL {
            self.reclaim();
            slot = self.free_queues.pop_front(&mut self.queues);
        }
        if slot == NIL {
            return NIL;
        }
        let (now_ns, now) = (core.ktime_ns(), tick(core));
        self.queues[slot] = Queue {
            generation: self.queues[slot].generation.wrapping_add(1),
            pid: if sync { core.tables.contexts[context].pid } else { 0 },
            phase: if sync { Phase::Fresh } else { Phase::Idle },
            sync,
            created: now,
            service: Service { budget_max: self.budget_safe().saturating_mul(2) / 3, ..Service::default() },
            raising: Raising { at: now, ..Raising::default() },
            soft: SoftStart { earliest: now, ..SoftStart::default() },
            habits: Habits::begun(now_ns, sync),
            ..Queue::default()
        };
        let (priority, group) = (self.contexts[context].priority, self.contexts[context].group.0);
        let class = priority.class().rank();
        self.engine.init_queue(slot, group, class, weight_of(priority), 0);
        self.groups[group].members.push_back(&mut self.queues, slot);
        slot
    }

    /// The async queue for a context's group and priority, created if necessary.
    pub(super) fn async_queue(&mut self, core: &QueueCore<H>, context: Slot) -> Slot {
        let ContextState { priority, group: (group, _), .. } = self.contexts[context];
        let known = self.groups[group].async_queues.get(priority);
        if known != NIL {
            return known;
        }
        let slot = self.make_queue(core, context, false);
        if slot != NIL {
            self.groups[group].async_queues.put(priority, slot);
            // The group's own reference keeps it permanently.
            self.queues[slot].sharing.users = 1;
        }
        slot
    }

    /// Assigns a context to another queue, or to none, without changing the counts of users.
    pub(super) fn set_queue(&mut self, context: Slot, kind: usize, queue: Slot) {
        let Some(place) = self.contexts[context].queues.get_mut(kind) else { return };
        let old = core::mem::replace(place, queue);
        if old != NIL && old != queue && self.queues[old].sharing.owner == context {
            self.queues[old].sharing.owner = NIL;
        }
        if queue != NIL && self.contexts[context].link == queue {
            self.unlink(context);
        }
    }

    /// Adds a user to a queue.
    pub(super) fn add_user(&mut self, slot: Slot) {
        self.queues[slot].sharing.users.increment();
    }

    /// Cancels a context's planned merge.
    pub(super) fn unlink(&mut self, context: Slot) {
        let link = core::mem::replace(&mut self.contexts[context].link, NIL);
        if link != NIL {
            self.queues[link].sharing.links.decrement();
            self.end_if_unused(link);
        }
    }

    /// Ends a context's use of a queue.
    pub(super) fn release(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        let queue = &self.queues[slot];
        if queue.is_busy() && queue.requests.is_empty() && self.in_service != slot {
            self.leave_busy(core, slot, Removal::Empty);
        }
        let group = self.group_of(slot);
        if self.groups[group].newest == slot {
            self.groups[group].newest = NIL;
        }
        self.queues[slot].sharing.users.decrement();
        self.end_if_unused(slot);
    }

    /// Removes one user from each queue to which this one's contexts were to move.
    pub(super) fn release_targets(&mut self, slot: Slot) {
        let mut at = self.queues[slot].sharing.target;
        while at != NIL {
            let next = self.queues[at].sharing.target;
            self.queues[at].sharing.users.decrement();
            self.end_if_unused(at);
            at = next;
        }
    }

    /// Handles the exit of a context: it releases its queues. The queue in service expires.
    pub(super) fn context_exits(&mut self, core: &mut QueueCore<H>, context: Slot) {
        self.unlink(context);
        for kind in [SYNC, ASYNC] {
            let slot = self.contexts[context].queues.get(kind).copied().unwrap_or(NIL);
            if slot == NIL {
                continue;
            }
            self.set_queue(context, kind, NIL);
            if self.in_service == slot {
                self.close(core, slot, crate::event::Expiry::TimedOut);
                if self.queued > 0 {
                    core.kick();
                }
            }
            self.release_targets(slot);
            self.release(core, slot);
        }
    }

    /// Frees queues that the engine has forgotten and that have no users.
    #[inline(never)]
    pub(super) fn free_forgotten(&mut self) {
        loop {
            let slot = self.engine.take_forgotten();
            if slot == NIL {
                return;
            }
            self.end_if_unused(slot);
        }
    }

    /// Frees a queue without users, requests and state in the engine.
    pub(super) fn end_if_unused(&mut self, slot: Slot) {
        if self.is_unused(slot) && self.engine.is_out(slot) && !self.engine.entities[slot].weighed {
            self.end_queue(slot);
        }
    }

    fn is_unused(&self, slot: Slot) -> bool {
        let queue = &self.queues[slot];
        let needed = (queue.sharing.users | queue.allocated | queue.sharing.links) > 0 || queue.is_busy();
        queue.exists() && !needed && self.in_service != slot
    }

    #[cold]
    #[inline(never)]
    fn end_queue(&mut self, slot: Slot) {
        debug_assert!(self.queues[slot].requests.is_empty() && self.queues[slot].in_flight == 0);
        debug_assert!(self.in_service != slot);
        self.unindex(slot);
        if self.queues[slot].burst == Membership::Current {
            self.leave_burst(slot);
            if self.queues[slot].sharing.owner != NIL {
                self.burst.size.decrement();
            }
        }
        self.leave_wakers(slot);
        if self.done_queue == slot {
            self.done_queue = NIL;
        }
        let group = self.group_of(slot);
        if self.groups[group].newest == slot {
            self.groups[group].newest = NIL;
        }
        self.engine.forget_entirely(slot);
        self.groups[group].members.remove(&mut self.queues, slot);
        self.queues[slot] = Queue { generation: self.queues[slot].generation, ..Queue::default() };
        self.free_queues.push_back(&mut self.queues, slot);
    }

    /// Frees a queue that is kept only for its past service, if there is no free entry. The kernel
    /// has no such limit. A fixed number of entries is examined in round-robin order. If none of
    /// them can be freed, the request bypasses the queues, and the next search continues behind
    /// them.
    fn reclaim(&mut self) {
        let count = self.queues.capacity();
        for _ in 0..RECLAIM_STEPS.min(count) {
            let slot = self.reclaim_at;
            self.reclaim_at = if slot.saturating_add(1) >= count { 0 } else { slot.saturating_add(1) };
            if self.is_unused(slot) {
                return self.end_queue(slot);
            }
        }
    }
}
