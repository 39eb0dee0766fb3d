//! Cooperators: contexts that read adjacent sectors share a queue, and separate when one of them
//! strays.
//!
//! Candidate queues are in trees by the sector of their next request, one tree per level. A queue
//! is inserted when it is filed and when an arrival changes its next request, but the search
//! compares the current next requests, with which the nodes are marked. Which of two neighbours a
//! search meets therefore depends on the shape of the tree.

use super::{Cfq, SYNC};
use crate::collections::tree::Descent;
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;
use crate::event::Note;
use crate::priority::LEVELS;

/// The maximum distance from the head that counts as close, in sectors.
const CLOSE_SECTORS: u64 = 8192;
/// The number of trees.
pub(super) const POSITION_TREES: usize = LEVELS as usize;

impl<H: HostTypes> Cfq<H> {
    /// Returns true if a sector is close to the end of the last request that the driver took.
    pub(super) fn is_close(&self, sector: u64) -> bool {
        sector.abs_diff(self.last_position) <= CLOSE_SECTORS
    }

    /// Inserts a queue by its next request, or moves it. Of queues with the same next sector only
    /// one is in the tree.
    pub(super) fn position(&mut self, core: &QueueCore<H>, slot: Slot) {
        self.leave_positions(slot);
        let queue = &self.queues[slot];
        let level = queue.original.level();
        if queue.is_idle_class() || queue.next == NIL {
            return;
        }
        let sector = self.next_sector(core, slot);
        let end = self.search(core, level, sector);
        if end.found != NIL {
            return;
        }
        if let Some(tree) = self.position_trees.get_mut(usize::from(level)) {
            tree.insert_at(&mut self.positions, end, slot, sector);
            self.queues[slot].positioned = Some(level);
        }
    }

    pub(super) fn leave_positions(&mut self, slot: Slot) {
        let Some(level) = self.queues[slot].positioned.take() else { return };
        if let Some(tree) = self.position_trees.get_mut(usize::from(level)) {
            tree.remove(&mut self.positions, slot);
        }
    }

    /// Another queue whose next request is close to the end of this one's last request, or [`NIL`].
    pub(super) fn close_cooperator(&self, core: &QueueCore<H>, slot: Slot) -> Slot {
        let queue = &self.queues[slot];
        if queue.is_idle_class() || !queue.sync || queue.is_seeky() || self.groups[queue.group].queues == 1 {
            return NIL;
        }
        let close = self.closest(core, queue.original.level());
        let other = &self.queues[close];
        let fits = other.group == queue.group
            && other.sync
            && !other.is_seeky()
            && other.is_real_time() == queue.is_real_time()
            && close != slot;
        if fits { close } else { NIL }
    }

    fn closest(&self, core: &QueueCore<H>, level: u8) -> Slot {
        let head = self.last_position;
        let Descent { found, last, .. } = self.search(core, level, head);
        if found != NIL || last == NIL {
            return found;
        }
        let node = &self.positions[last];
        let sector = node.key();
        if self.is_close(sector) {
            return last;
        }
        let neighbour = if sector < head { node.next() } else { node.prev() };
        if neighbour != NIL && self.is_close(self.positions[neighbour].key()) { neighbour } else { NIL }
    }

    fn search(&self, core: &QueueCore<H>, level: u8, sector: u64) -> Descent {
        let tree = self.position_trees.get(usize::from(level)).copied().unwrap_or_default();
        tree.descend(&self.positions, sector, |slot, next| next == self.next_sector(core, slot))
    }

    /// Marks a queue's node with its changed next request, without moving it.
    pub(super) fn mark_position(&mut self, core: &QueueCore<H>, slot: Slot) {
        let queue = &self.queues[slot];
        if queue.positioned.is_some() && queue.next != NIL {
            self.positions[slot].set_key(core.tables.requests[queue.next].sector);
        }
    }

    fn next_sector(&self, core: &QueueCore<H>, slot: Slot) -> u64 {
        debug_assert!(self.queues[slot].next != NIL, "a queue in a tree of positions has requests");
        core.tables.requests[self.queues[slot].next].sector
    }

    /// Plans the merge of two queues: from their next sync request on, the contexts of the one
    /// with fewer requests use the other.
    pub(super) fn set_up_merge(&mut self, core: &mut QueueCore<H>, slot: Slot, other: Slot) {
        if self.queues[slot].merge_into != NIL {
            return;
        }
        let mut end = other;
        while self.queues[end].merge_into != NIL {
            end = self.queues[end].merge_into;
            if end == slot {
                return;
            }
        }
        let (users, other_users) = (self.queues[slot].users(), self.queues[end].users());
        if users == 0 || other_users == 0 || end == slot {
            return;
        }
        let (from, to) = if other_users >= users { (slot, end) } else { (end, slot) };
        // References of the contexts that will move are counted in advance.
        let moving = users.min(other_users);
        let queue = &mut self.queues[to];
        queue.references = queue.references.saturating_add(moving);
        self.queues[from].merge_into = to;
        let (queue, into) = (self.queues[from].pid, self.queues[to].pid);
        core.note(|_| Note::QueuesMerged { queue, into });
    }

    /// Moves a context to the queue into which its own is to be merged.
    pub(super) fn follow_merge(&mut self, core: &mut QueueCore<H>, context: Slot, slot: Slot) -> Slot {
        let to = self.queues[slot].merge_into;
        self.queues[to].coop = true;
        self.contexts[context].queues[SYNC] = to;
        self.unreference(core, slot);
        to
    }

    /// Splits a shared queue: the last context keeps it, any other gets [`NIL`] and needs a new
    /// queue.
    pub(super) fn split(&mut self, core: &mut QueueCore<H>, context: Slot, slot: Slot) -> Slot {
        let pid = core.tables.contexts[context].pid;
        core.note(|_| Note::QueueSplit { queue: pid });
        if self.queues[slot].users() == 1 {
            let queue = &mut self.queues[slot];
            queue.pid = pid;
            queue.coop = false;
            queue.split_coop = false;
            return slot;
        }
        self.contexts[context].queues[SYNC] = NIL;
        self.leave_queue(core, slot);
        NIL
    }

    /// Ends a context's use of a queue, and of the queues into which that one is to be merged.
    pub(super) fn leave_queue(&mut self, core: &mut QueueCore<H>, slot: Slot) {
        let mut at = self.queues[slot].merge_into;
        while at != NIL && at != slot {
            let next = self.queues[at].merge_into;
            self.unreference(core, at);
            at = next;
        }
        self.unreference(core, slot);
    }
}
