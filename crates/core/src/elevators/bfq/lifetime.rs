//! How queues come to be and end, and who points to them.

use super::state::{ASYNC, Process, Queue, SYNC};
use super::{Bfq, NEVER, tick};
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::priority::{Class, Priority};

/// So many places are looked at for a queue that can be done without, when there is no free one.
const RECLAIM_STEPS: u32 = 64;

/// The weight of a queue: 80 for level 0 down to 10 for level 7.
pub(crate) fn weight_of(priority: Priority) -> u32 {
    let level = if priority.class() == Class::Idle { 7 } else { u32::from(priority.level()) };
    8u32.saturating_sub(level).saturating_mul(10)
}

impl<H: HostTypes> Bfq<H> {
    /// The level that a queue's weight comes from.
    pub(super) fn level(&self, slot: Slot) -> u8 {
        8u32.saturating_sub(self.engine.entities[slot].base / 10) as u8
    }

    /// The name of a queue in events.
    pub(super) fn name(&self, slot: Slot) -> u32 {
        self.queues[slot].pid
    }

    /// Makes a queue in a process's group, of its priority; [`NIL`] if there is no room. Nobody uses it yet.
    pub(super) fn make_queue(&mut self, core: &QueueCore<H>, process: Slot, sync: bool) -> Slot {
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
            exists: true,
            sync,
            pid: if sync { core.tables.contexts[process].pid } else { 0 },
            budget_max: self.budget_safe().saturating_mul(2) / 3,
            fresh: sync,
            created: now,
            timeout: NEVER,
            raised_at: now,
            soft_start: now,
            // The next sample counts from after its making.
            last_end_ns: now_ns.saturating_add(1),
            observed_ns: now_ns,
            short_think: sync,
            io_bound: true,
            ..Queue::default()
        };
        let (priority, group) = (self.processes[process].priority, self.processes[process].group.0);
        let class = priority.class().rank();
        self.engine.init_queue(slot, group, class, weight_of(priority), 0);
        self.groups[group].members.push_back(&mut self.queues, slot);
        slot
    }

    /// The async queue for a process's group and priority, made if there is none.
    pub(super) fn async_queue(&mut self, core: &QueueCore<H>, process: Slot) -> Slot {
        let Process { priority, group: (group, _), .. } = self.processes[process];
        let known = self.groups[group].async_queues.get(priority);
        if known != NIL {
            return known;
        }
        let slot = self.make_queue(core, process, false);
        if slot != NIL {
            self.groups[group].async_queues.put(priority, slot);
            // Its group keeps it for good.
            self.queues[slot].users = 1;
        }
        slot
    }

    /// Points a process to another queue (or none). It counts as a user of neither by this.
    pub(super) fn point(&mut self, process: Slot, kind: usize, queue: Slot) {
        let Some(place) = self.processes[process].queues.get_mut(kind) else { return };
        let old = core::mem::replace(place, queue);
        if old != NIL && old != queue && self.queues[old].owner == process {
            self.queues[old].owner = NIL;
        }
        if queue != NIL && self.processes[process].link == queue {
            self.unlink(process);
        }
    }

    /// Counts one user more.
    pub(super) fn add_user(&mut self, slot: Slot) {
        self.queues[slot].users = self.queues[slot].users.saturating_add(1);
    }

    /// Drops a process's planned merge.
    pub(super) fn unlink(&mut self, process: Slot) {
        let link = core::mem::replace(&mut self.processes[process].link, NIL);
        if link != NIL {
            self.queues[link].links = self.queues[link].links.saturating_sub(1);
            self.end_if_unused(link);
        }
    }

    /// A process lets go of a queue that it used.
    pub(super) fn release(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        let queue = &self.queues[slot];
        if queue.busy && queue.requests.is_empty() && self.in_service != slot {
            self.leave_busy(core, slot, false);
        }
        let group = self.group_of(slot);
        if self.groups[group].newest == slot {
            self.groups[group].newest = NIL;
        }
        self.queues[slot].users = self.queues[slot].users.saturating_sub(1);
        self.end_if_unused(slot);
    }

    /// Takes one user from each queue that this one's processes were to use instead.
    pub(super) fn release_targets(&mut self, slot: Slot) {
        let mut at = self.queues[slot].target;
        while at != NIL {
            let next = self.queues[at].target;
            self.queues[at].users = self.queues[at].users.saturating_sub(1);
            self.end_if_unused(at);
            at = next;
        }
    }

    /// A process exits: it lets go of its queues. The one in service loses the disk.
    pub(super) fn process_exits(&mut self, core: &mut QueueCore<H>, process: Slot) {
        self.unlink(process);
        for kind in [SYNC, ASYNC] {
            let slot = self.processes[process].queues.get(kind).copied().unwrap_or(NIL);
            if slot == NIL {
                continue;
            }
            self.point(process, kind, NIL);
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

    /// Ends the queues that the engine has forgotten and nobody else needs.
    pub(super) fn sweep(&mut self) {
        loop {
            let slot = self.engine.take_forgotten();
            if slot == NIL {
                return;
            }
            self.end_if_unused(slot);
        }
    }

    /// Ends a queue that has neither users nor requests, and that the engine does not know.
    pub(super) fn end_if_unused(&mut self, slot: Slot) {
        if self.is_unused(slot) && self.engine.is_out(slot) && !self.engine.entities[slot].weighed {
            self.end_queue(slot);
        }
    }

    fn is_unused(&self, slot: Slot) -> bool {
        let queue = &self.queues[slot];
        let needed = queue.users > 0 || queue.allocated > 0 || queue.links > 0 || queue.busy;
        queue.exists && !needed && self.in_service != slot
    }

    fn end_queue(&mut self, slot: Slot) {
        debug_assert!(self.queues[slot].requests.is_empty() && self.queues[slot].in_flight == 0);
        debug_assert!(self.in_service != slot);
        self.unindex(slot);
        if self.queues[slot].in_burst {
            let (owner, burst) = (self.queues[slot].owner, &mut self.burst);
            self.queues[slot].in_burst = false;
            burst.members.remove::<Queue, _>(&mut self.queues, slot);
            if owner != NIL {
                burst.size = burst.size.saturating_sub(1);
            }
        }
        self.set_waker(slot, NIL);
        loop {
            let woken = self.queues[slot].woken.head();
            if woken == NIL {
                break;
            }
            self.set_waker(woken, NIL);
        }
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

    /// Names the queue that wakes this one: it is put first among those that it wakes.
    pub(super) fn set_waker(&mut self, slot: Slot, waker: Slot) {
        let old = core::mem::replace(&mut self.queues[slot].waker, waker);
        if old != NIL {
            let mut woken = self.queues[old].woken;
            woken.remove::<Queue, _>(&mut self.queues, slot);
            self.queues[old].woken = woken;
        }
        if waker != NIL {
            let mut woken = self.queues[waker].woken;
            woken.push_front::<Queue, _>(&mut self.queues, slot);
            self.queues[waker].woken = woken;
        }
    }

    /// There is no free queue: ends one that only the engine's memory of its service keeps. The kernel would have had room; a few places
    /// are looked at at a time, around the table. If none of them can be done without, there is no room, though there may be one
    /// further on: the request bypasses the queues, and the next try goes on from there.
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
