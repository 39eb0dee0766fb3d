//! Cooperators: contexts that read adjacent sectors, or that were created for one job, share a
//! queue.

use super::raising::{INTERACTIVE, Raising};
use super::state::{Saved, Usage};
use super::{NEVER, SYNC, Scheduler, Tick, tick};
use crate::collections::{Count, tree::Descent};
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::Note;

/// The maximum distance of requests that count as adjacent, in sectors.
const CLOSE_SECTORS: u64 = 8 * 1024;
/// The time of service, in ms, after which a queue no longer begins to share.
const ESTABLISHED_MS: Tick = 100;
/// The maximum time between creations, in ms, of queues of the same job.
const SAME_JOB_MS: Tick = 180;
/// The time, in ms, after which it is known whether such queues are worth merging.
const STABLE_AFTER_MS: Tick = 600;

impl<H: HostTypes> Scheduler<H> {
    /// Returns true if a queue has been served for too long to begin to share.
    fn is_late(&self, slot: Slot, now: Tick) -> bool {
        let queue = &self.queues[slot];
        queue.service.served > 0 && now > queue.service.first_served.saturating_add(ESTABLISHED_MS)
    }

    /// The queue to use instead of `slot` for a context's request or bio at `sector`, or [`NIL`].
    pub(super) fn merge_test(&mut self, core: &QueueCore<H>, slot: Slot, sector: u64, context: Slot) -> Slot {
        let now = tick(core);
        let (link, queue) = (self.contexts[context].link, &self.queues[slot]);
        if queue.sharing.target != NIL {
            return self.last_target(slot);
        }
        let settled = now > queue.sharing.split_at.saturating_add(STABLE_AFTER_MS)
            && now > queue.created.saturating_add(STABLE_AFTER_MS);
        if !self.flash_queueing && queue.sync && link != NIL && !queue.is_fresh() && settled {
            return self.merge_for_job(slot, link, context);
        }
        if self.flash_queueing || self.is_late(slot, now) || self.busy_queues() == 1 {
            return NIL;
        }
        let served = self.in_service;
        let close = sector.abs_diff(self.position_in_service) <= CLOSE_SECTORS;
        if served != NIL
            && served != slot
            && close
            && self.group_of(slot) == self.group_of(served)
            && self.can_share_queue(slot, served, now)
        {
            let planned = self.plan_merge(slot, served);
            if planned != NIL {
                return planned;
            }
        }
        let found = self.find_close_queue(core, self.group_of(slot), sector);
        if found == NIL || found == slot || !self.can_share_queue(slot, found, now) {
            return NIL;
        }
        self.plan_merge(slot, found)
    }

    /// Carries out the planned merge with a queue created shortly before this one, unless idling is
    /// better.
    #[cold]
    #[inline(never)]
    fn merge_for_job(&mut self, slot: Slot, link: Slot, context: Slot) -> Slot {
        let users = self.queues[slot].sharing.users.min(self.queues[link].sharing.users);
        self.unlink(context);
        if users == 0 || self.idling_boosts(slot) {
            return NIL;
        }
        let planned = self.plan_merge(slot, link);
        if planned != NIL {
            self.mark_stable(context, planned);
        }
        planned
    }

    /// Marks a context and the context for which a queue was created as sharing permanently.
    fn mark_stable(&mut self, context: Slot, slot: Slot) {
        self.contexts[context].merged_permanently = true;
        let owner = self.queues[slot].sharing.owner;
        if owner != NIL {
            self.contexts[owner].merged_permanently = true;
        }
    }

    /// Returns true if two queues can share: neither is seeky, both are sync and of one class.
    fn can_share_queue(&self, slot: Slot, other: Slot, now: Tick) -> bool {
        let (one, two) = (&self.queues[slot], &self.queues[other]);
        let same_class = self.engine.entities[slot].class == self.engine.entities[other].class;
        let calm = !one.locality.is_seeky() && !two.locality.is_seeky();
        !self.is_late(other, now) && same_class && !self.is_idle_class(slot) && calm && one.sync && two.sync
    }

    /// The end of the chain of planned merges of a queue.
    fn last_target(&self, slot: Slot) -> Slot {
        let mut at = slot;
        while self.queues[at].sharing.target != NIL {
            at = self.queues[at].sharing.target;
        }
        at
    }

    /// Plans that a queue's contexts use another queue. Returns the end of its chain, or [`NIL`]
    /// if a merge is impossible.
    #[cold]
    #[inline(never)]
    fn plan_merge(&mut self, slot: Slot, other: Slot) -> Slot {
        if self.queues[other].sharing.users == 0 {
            return NIL;
        }
        let mut at = other;
        while self.queues[at].sharing.target != NIL {
            if self.queues[at].sharing.target == slot {
                return NIL;
            }
            at = self.queues[at].sharing.target;
        }
        let (users, others) = (self.queues[slot].sharing.users, self.queues[at].sharing.users);
        if users == 0 || others == 0 || at == slot || self.group_of(slot) != self.group_of(at) {
            return NIL;
        }
        self.queues[slot].sharing.target = at;
        self.queues[at].sharing.users = others.saturating_add(users);
        at
    }

    /// Moves a context along the chain from its queue to `end`. Returns `end`.
    #[cold]
    #[inline(never)]
    pub(super) fn follow(&mut self, core: &mut QueueCore<H>, context: Slot, slot: Slot, end: Slot) -> Slot {
        let mut at = slot;
        while at != end && at != NIL {
            let next = self.queues[at].sharing.target;
            self.merge_queues(core, context, at, next);
            at = next;
        }
        end
    }

    /// Moves a context from its queue to another, which inherits the queue's raising and
    /// statistics.
    fn merge_queues(&mut self, core: &mut QueueCore<H>, context: Slot, from: Slot, to: Slot) {
        debug_assert!(from != to && to != NIL);
        self.save(from, tick(core));
        self.save(to, tick(core));
        if core::mem::take(&mut self.queues[from].habits.io_bound) {
            self.queues[to].habits.io_bound = true;
        }
        let waker = self.queues[from].wakers.waker;
        if waker != NIL && waker != to && self.queues[to].wakers.waker == NIL {
            self.set_waker(to, waker);
            self.queues[to].wakers.candidate = (NIL, 0);
        }
        self.transfer_raising(from, to);
        core.note(|_| Note::QueuesMerged { queue: self.name(from), into: self.name(to) });
        self.set_queue(context, SYNC, to);
        if self.queues[to].usage == Usage::Single {
            self.queues[to].usage = Usage::Shared;
        }
        self.queues[to].sharing.owner = NIL;
        self.queues[from].sharing.owner = NIL;
        let group = self.group_of(from);
        if self.groups[group].newest == from {
            self.groups[group].newest = to;
        }
        self.release(core, from);
    }

    fn transfer_raising(&mut self, from: Slot, to: Slot) {
        let (coefficient, one) = (self.coefficient(from), self.queues[from]);
        if coefficient <= 1 {
            return;
        }
        if self.coefficient(to) == 1 {
            let queue = &mut self.queues[to];
            queue.raising = Raising { served: queue.raising.served, ..one.raising };
            if queue.is_busy() {
                self.raised_busy.increment();
            }
            self.engine.entities[to].coefficient = coefficient;
            self.engine.entities[to].pending = true;
        }
        self.engine.entities[from].coefficient = 1;
        self.engine.entities[from].pending = true;
        if one.is_busy() {
            self.raised_busy.decrement();
        }
    }

    /// Saves a queue's state for its context, which is about to share.
    fn save(&mut self, slot: Slot, now: Tick) {
        let (queue, entity) = (self.queues[slot], self.engine.entities[slot]);
        if queue.sharing.owner == NIL {
            return;
        }
        let mut saved = Saved {
            weight: entity.base,
            coefficient: entity.coefficient,
            raising: queue.raising,
            habits: queue.habits,
            injection: queue.injection,
            burst: queue.burst,
        };
        if queue.is_fresh() && !queue.is_in_large_burst() && self.tunables.low_latency {
            // The queue is merged before it was busy: its first request would have raised it.
            let served = self.contexts[queue.sharing.owner].saved.raising.served;
            saved.raising = Raising { at: now, length: self.interactive_ms(), interactive_at: NEVER, served };
            saved.coefficient = INTERACTIVE;
        }
        self.contexts[queue.sharing.owner].saved = saved;
    }

    /// Creates a context's sync queue; on flash with queueing, possibly the one of the same job.
    #[cold]
    #[inline(never)]
    pub(super) fn create(&mut self, core: &mut QueueCore<H>, context: Slot) -> Slot {
        let slot = self.create_own(core, context);
        if slot == NIL {
            return NIL;
        }
        let group = self.group_of(slot);
        let newest = self.groups[group].newest;
        let (one, other) = (&self.engine.entities[slot], &self.engine.entities[newest]);
        let alike = newest != NIL
            && self.queues[newest].created.saturating_add(STABLE_AFTER_MS) >= self.queues[slot].created
            && one.class == other.class
            && self.level(slot) == self.level(newest);
        if !alike {
            self.groups[group].newest = slot;
        } else if self.queues[newest].created.saturating_add(SAME_JOB_MS) >= self.queues[slot].created {
            if self.flash_queueing {
                let planned = self.plan_merge(slot, newest);
                if planned != NIL {
                    self.mark_stable(context, planned);
                    self.queues[slot].sharing.owner = context;
                    return self.follow(core, context, slot, planned);
                }
            } else {
                self.unlink(context);
                self.contexts[context].link = newest;
                self.queues[newest].sharing.links.increment();
            }
        }
        slot
    }

    /// Creates a new sync queue for a context.
    pub(super) fn create_own(&mut self, core: &mut QueueCore<H>, context: Slot) -> Slot {
        let slot = self.make_queue(core, context, true);
        if slot != NIL {
            self.queues[slot].sharing.users = 1;
            self.set_queue(context, SYNC, slot);
        }
        slot
    }

    /// Adds a queue to its group's index of positions, by its next request.
    pub(super) fn index(&mut self, core: &QueueCore<H>, slot: Slot) {
        self.unindex(slot);
        let next = self.queues[slot].next;
        if next == NIL || self.is_idle_class(slot) || self.is_late(slot, tick(core)) {
            return;
        }
        let (group, sector) = (self.group_of(slot), core.tables.requests[next].sector);
        let end = self.descend(core, group, sector);
        if end.found != NIL {
            return;
        }
        if let Some(state) = self.groups.get_mut(group) {
            state.index.insert_at(&mut self.index_nodes, end, slot, sector);
            self.queues[slot].locality.indexed = group;
        }
    }

    /// Removes a queue from its group's index, if it is in it.
    pub(super) fn unindex(&mut self, slot: Slot) {
        let group = core::mem::replace(&mut self.queues[slot].locality.indexed, NIL);
        if let Some(state) = self.groups.get_mut(group) {
            state.index.remove(&mut self.index_nodes, slot);
        }
    }

    /// Updates the key of a queue whose next request has changed, without moving it in the index.
    pub(super) fn mark_index(&mut self, core: &QueueCore<H>, slot: Slot) {
        let queue = &self.queues[slot];
        if queue.locality.indexed != NIL && queue.next != NIL {
            self.index_nodes[slot].set_key(core.tables.requests[queue.next].sector);
        }
    }

    /// Searches the position of a sector in a group's index. Front merges do not move queues in the
    /// index, so the search compares current positions.
    fn descend(&self, core: &QueueCore<H>, group: Slot, sector: u64) -> Descent {
        let up_to_date = |slot, next| next == core.tables.requests[self.queues[slot].next].sector;
        self.groups[group].index.descend(&self.index_nodes, sector, up_to_date)
    }

    /// A queue of a group whose next request is close to a sector, or [`NIL`].
    fn find_close_queue(&self, core: &QueueCore<H>, group: Slot, sector: u64) -> Slot {
        let Descent { found, last, .. } = self.descend(core, group, sector);
        if found != NIL || last == NIL {
            return found;
        }
        let node = &self.index_nodes[last];
        if node.key().abs_diff(sector) <= CLOSE_SECTORS {
            return last;
        }
        let other = if node.key() < sector { node.next() } else { node.prev() };
        let far = self.index_nodes[other].key().abs_diff(sector) > CLOSE_SECTORS;
        if other == NIL || far { NIL } else { other }
    }
}
