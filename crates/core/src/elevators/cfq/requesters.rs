//! What is kept of a process: which queues its requests go to, and what it was when that was looked up.

use super::process_queue::{ProcessQueue, ThinkTime};
use super::{ASYNC, Cfq, SYNC};
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::group::ROOT;
use crate::priority::{Class, NORMAL_LEVEL, Priority};

/// What is kept of a context, at its place. It means something once the context's history says that it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requester {
    /// Its group when its queues were looked up, or [`NIL`].
    pub group: Slot,
    /// Its priority as set when its queues were looked up.
    priority: Priority,
    /// Its async and its sync queue.
    pub queues: [Slot; 2],
    pub think: ThinkTime,
}

impl Default for Requester {
    fn default() -> Self {
        Requester { group: NIL, priority: Priority::UNSET, queues: [NIL; 2], think: ThinkTime::default() }
    }
}

impl<H: HostTypes> Cfq<H> {
    /// The queue that a process's requests go to, if it has one, or [`NIL`].
    pub(super) fn queue_of(&self, core: &QueueCore<H>, context: Slot, sync: bool) -> Slot {
        let [of_async, of_sync] = self.requesters[context].queues;
        match (core.tables.contexts[context].history.known, sync) {
            (false, _) => NIL,
            (_, false) => of_async,
            (_, true) => of_sync,
        }
    }

    /// The queue for a new request of a process; changes of its priority and group are noticed here. [`NIL`]: no room.
    pub(super) fn queue_for_request(&mut self, core: &mut QueueCore<H>, context: Slot, sync: bool) -> Slot {
        let history = &mut core.tables.contexts[context].history;
        if !history.known {
            history.known = true;
            let think = ThinkTime::since(core.counted_ns());
            self.requesters[context] = Requester { think, ..Requester::default() };
        }
        self.notice_priority(core, context);
        self.notice_group(core, context);
        let mut slot = self.queue_of(core, context, sync);
        if slot != NIL && self.queues[slot].coop && self.queues[slot].split_coop {
            slot = self.split(core, context, slot);
        }
        if slot == NIL {
            slot = self.get_queue(core, context, sync);
            let [of_async, of_sync] = &mut self.requesters[context].queues;
            *(if sync { of_sync } else { of_async }) = slot;
        } else if self.queues[slot].merge_into != NIL {
            slot = self.follow_merge(core, context, slot);
        }
        slot
    }

    /// A changed priority: the sync queue reads it at its next request. The async queue is looked up by the priority that the process
    /// had before, as in the kernel: so async requests follow a change late.
    fn notice_priority(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let priority = core.tables.contexts[context].priority;
        let requester = &self.requesters[context];
        if requester.priority == priority {
            return;
        }
        let [old, sync] = requester.queues;
        if old != NIL {
            self.unreference(core, old);
            let new = self.get_queue(core, context, false);
            self.requesters[context].queues[ASYNC] = new;
        }
        if sync != NIL {
            self.queues[sync].priority_changed = true;
        }
        self.requesters[context].priority = priority;
    }

    /// A changed group: the process gets other queues. (The kernel forgets here that a merge with another queue had counted the process
    /// in advance, so that the other queue's memory is never freed. That is mended: the table would fill up.)
    fn notice_group(&mut self, core: &mut QueueCore<H>, context: Slot) {
        let group = self.group_of(core, context);
        if self.requesters[context].group != group {
            self.drop_queues(core, context);
            self.requesters[context].group = group;
        }
    }

    pub(super) fn drop_queues(&mut self, core: &mut QueueCore<H>, context: Slot) {
        for queue in core::mem::replace(&mut self.requesters[context].queues, [NIL; 2]) {
            if queue != NIL {
                self.leave_queue(core, queue);
            }
        }
    }

    fn group_of(&self, core: &QueueCore<H>, context: Slot) -> Slot {
        if self.tunables.groups { core.tables.contexts[context].group } else { ROOT }
    }

    /// The process exits. What it shares with others loses the disk too, if it has it.
    pub(super) fn exit_queues(&mut self, core: &mut QueueCore<H>, context: Slot) {
        if !core.tables.contexts[context].history.known {
            return;
        }
        for queue in core::mem::replace(&mut self.requesters[context].queues, [NIL; 2]) {
            if queue == NIL {
                continue;
            }
            if queue == self.active {
                self.expire(core, false);
                self.kick(core);
            }
            self.leave_queue(core, queue);
        }
    }

    /// A queue for a process's requests, made if there is none; it counts one reference more. [`NIL`]: no room.
    fn get_queue(&mut self, core: &mut QueueCore<H>, context: Slot, sync: bool) -> Slot {
        let group = self.group_of(core, context);
        let entry = &core.tables.contexts[context];
        let priority = self.requesters[context].priority.effective_under(entry.nice, entry.policy);
        if !sync {
            let shared = self.groups[group].async_queues.get(priority);
            if shared != NIL {
                self.reference(shared);
                return shared;
            }
        }
        let slot = self.free_queues.pop_front(&mut self.queues);
        if slot == NIL {
            return NIL;
        }
        let pid = if sync { entry.pid } else { 0 };
        self.queues[slot] = ProcessQueue {
            pid,
            sync,
            group,
            idle_window: sync,
            priority_changed: true,
            references: 1,
            ..ProcessQueue::default()
        };
        self.read_priority(core, slot, context);
        if !sync {
            // The group keeps it for all who come later.
            self.groups[group].async_queues.put(priority, slot);
            self.reference(slot);
        }
        slot
    }

    /// Reads a queue's priority from a process that uses it, if it has changed. Where the queue is filed does not change by it.
    pub(super) fn read_priority(&mut self, core: &QueueCore<H>, slot: Slot, context: Slot) {
        let queue = &mut self.queues[slot];
        if !queue.priority_changed {
            return;
        }
        queue.priority_changed = false;
        let entry = &core.tables.contexts[context];
        queue.priority = self.requesters[context].priority.effective_under(entry.nice, entry.policy);
        queue.original = queue.priority;
        if queue.is_idle_class() {
            queue.idle_window = false;
        }
    }

    /// While metadata is asked for, a queue below normal best effort counts as that: somebody of any priority may wait for it.
    pub(super) fn boost(&mut self, slot: Slot, metadata: bool) {
        let queue = &mut self.queues[slot];
        queue.priority = queue.original;
        if !metadata {
            return;
        }
        let class = if queue.is_idle_class() { Class::BestEffort } else { queue.class() };
        let level = queue.level().min(NORMAL_LEVEL);
        queue.priority = Priority::new(class, level).unwrap_or(queue.priority);
    }

    pub(super) fn reference(&mut self, slot: Slot) {
        if slot != NIL {
            self.queues[slot].references = self.queues[slot].references.saturating_add(1);
        }
    }

    pub(super) fn unreference(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        if slot == NIL {
            return;
        }
        let queue = &mut self.queues[slot];
        debug_assert!(queue.references > queue.allocated.saturating_sub(1));
        queue.references = queue.references.saturating_sub(1);
        if queue.references > 0 {
            return;
        }
        if self.active == slot {
            self.expire(core, false);
            self.kick(core);
        }
        debug_assert!(self.queues[slot].filed.is_none() && self.queues[slot].is_empty());
        self.free_queues.push_front(&mut self.queues, slot);
    }

    /// Whether no queue is left once processes and groups have let go of theirs: with all requests done, nothing else refers to one.
    pub(super) fn queues_all_come_back(&mut self, core: &mut QueueCore<H>) -> bool {
        for context in 0..self.requesters.capacity() {
            if core.tables.contexts[context].history.known {
                self.drop_queues(core, context);
            }
        }
        for group in 0..self.groups.capacity() {
            for queue in core::mem::take(&mut self.groups[group].async_queues).all() {
                self.unreference(core, queue);
            }
        }
        let (mut at, mut free) = (self.free_queues.head(), 0u32);
        while at != NIL {
            free = free.saturating_add(1);
            at = self.queues[at].free.next;
        }
        free == self.queues.capacity().min(self.places.capacity()).min(self.positions.capacity())
    }

    /// Lets go of what is kept for a group that nobody is in, and answers whether no request of it is left.
    pub(super) fn release_group(&mut self, core: &mut QueueCore<H>, group: Slot) -> bool {
        if self.groups[group].requests > 0 {
            return false;
        }
        // Processes that have left it and have not asked for anything since still point to its queues.
        for context in 0..self.requesters.capacity() {
            let known = core.tables.contexts[context].history.known;
            if known && self.requesters[context].group == group {
                self.drop_queues(core, context);
                self.requesters[context].group = NIL;
            }
        }
        for queue in core::mem::take(&mut self.groups[group].async_queues).all() {
            self.unreference(core, queue);
        }
        debug_assert_eq!(self.groups[group].queues, 0);
        true
    }
}

const _: () = assert!(ASYNC == 0 && SYNC == 1);
