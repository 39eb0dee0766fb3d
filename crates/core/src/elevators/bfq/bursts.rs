//! Bursts: many queues that are made at once belong to one large job, whose parts do not each deserve a raise.

use super::Bfq;
use super::state::{InBurst, Queue, Tick};
use crate::collections::{List, NIL, Slot};
use crate::elevator::tables::HostTypes;
use crate::group::ROOT;

/// A queue that begins this long after the last one begins another burst, in ms.
const GAP_MS: Tick = 180;
/// So many members make it large.
const LARGE: u32 = 8;
/// A queue that got its own requests back so lately is not new, in ms.
const SPLIT_MS: Tick = 10;

/// The present burst.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    pub members: List<InBurst>,
    pub size: u32,
    pub large: bool,
    last: Tick,
    /// The group that it happens in.
    group: Slot,
}

impl Default for Burst {
    fn default() -> Self {
        Burst { members: List::default(), size: 0, large: false, last: 0, group: ROOT }
    }
}

impl<H: HostTypes> Bfq<H> {
    /// A new queue is about to get its first request.
    pub(super) fn notice_burst(&mut self, slot: Slot, now: Tick) {
        let queue = &self.queues[slot];
        if queue.in_burst || queue.large_burst || now <= queue.split_at.saturating_add(SPLIT_MS) {
            return;
        }
        let group = self.group_of(slot);
        if now > self.burst.last.saturating_add(GAP_MS) || group != self.burst.group {
            self.burst.large = false;
            self.scatter(false);
            self.burst.size = 0;
            if self.busy_queues() == 0 {
                self.join_burst(slot);
                self.burst.size = 1;
            }
            self.burst.group = group;
        } else if self.burst.large {
            self.queues[slot].large_burst = true;
        } else {
            self.burst.size = self.burst.size.saturating_add(1);
            if self.burst.size == LARGE {
                self.burst.large = true;
                self.scatter(true);
                self.queues[slot].large_burst = true;
            } else {
                self.join_burst(slot);
            }
        }
        self.burst.last = now;
    }

    /// Puts a queue among those of the burst.
    pub(super) fn join_burst(&mut self, slot: Slot) {
        debug_assert!(!self.queues[slot].in_burst);
        self.queues[slot].in_burst = true;
        self.burst.members.push_front::<Queue, _>(&mut self.queues, slot);
    }

    /// Takes it out from among them.
    pub(super) fn leave_burst(&mut self, slot: Slot) {
        if core::mem::take(&mut self.queues[slot].in_burst) {
            self.burst.members.remove::<Queue, _>(&mut self.queues, slot);
        }
    }

    /// Empties the list of the burst's queues; perhaps they turn out to be of a large one.
    fn scatter(&mut self, large: bool) {
        loop {
            let slot = self.burst.members.pop_front::<Queue, _>(&mut self.queues);
            if slot == NIL {
                return;
            }
            self.queues[slot].in_burst = false;
            self.queues[slot].large_burst |= large;
        }
    }
}
