//! Bursts: many queues created at once belong to one large job and are not raised individually.

use super::{Scheduler, Tick};
use crate::collections::{Count, List, NIL, Slot};
use crate::elevator::tables::HostTypes;
use crate::group::ROOT;

/// The gap between creations, in ms, after which another burst begins.
const GAP_MS: Tick = 180;
/// The number of members that makes a burst large.
const LARGE: u32 = 8;
/// The time after a split, in ms, in which a queue does not count as new.
const SPLIT_MS: Tick = 10;

/// What a queue has to do with bursts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Membership {
    #[default]
    None,
    /// It belongs to the current burst.
    Current,
    /// It belongs to a large burst and is not raised.
    Large,
}

/// The list of the queues of the current burst.
#[derive(Debug)]
pub(super) struct InBurst;

/// The current burst.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    pub members: List<InBurst>,
    pub size: u32,
    pub large: bool,
    last: Tick,
    /// The group of the burst's queues.
    group: Slot,
}

impl Default for Burst {
    fn default() -> Self {
        Burst { members: List::default(), size: 0, large: false, last: 0, group: ROOT }
    }
}

impl<H: HostTypes> Scheduler<H> {
    /// Handles the first request of a new queue.
    #[inline(never)]
    pub(super) fn track_burst(&mut self, slot: Slot, now: Tick) {
        let queue = &self.queues[slot];
        if queue.burst != Membership::None || now <= queue.sharing.split_at.saturating_add(SPLIT_MS) {
            return;
        }
        let group = self.group_of(slot);
        if now > self.burst.last.saturating_add(GAP_MS) || group != self.burst.group {
            self.burst.large = false;
            self.end_burst(Membership::None);
            self.burst.size = 0;
            if self.busy_queues() == 0 {
                self.join_burst(slot);
                self.burst.size = 1;
            }
            self.burst.group = group;
        } else if self.burst.large {
            self.queues[slot].burst = Membership::Large;
        } else {
            self.burst.size.increment();
            if self.burst.size == LARGE {
                self.burst.large = true;
                self.end_burst(Membership::Large);
                self.queues[slot].burst = Membership::Large;
            } else {
                self.join_burst(slot);
            }
        }
        self.burst.last = now;
    }

    /// Adds a queue to the burst.
    pub(super) fn join_burst(&mut self, slot: Slot) {
        debug_assert!(self.queues[slot].burst == Membership::None);
        self.queues[slot].burst = Membership::Current;
        self.burst.members.push_front(&mut self.queues, slot);
    }

    /// Ends a queue's membership of a burst.
    #[inline(never)]
    pub(super) fn leave_burst(&mut self, slot: Slot) {
        if core::mem::take(&mut self.queues[slot].burst) == Membership::Current {
            self.burst.members.remove(&mut self.queues, slot);
        }
    }

    /// Empties the list of the burst's queues, and sets their membership.
    fn end_burst(&mut self, membership: Membership) {
        loop {
            let slot = self.burst.members.pop_front(&mut self.queues);
            if slot == NIL {
                return;
            }
            self.queues[slot].burst = membership;
        }
    }
}
