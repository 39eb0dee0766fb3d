//! The state of BFQ: queues, contexts and groups.

use super::bursts::{InBurst, Membership};
use super::habits::{Habits, Locality};
use super::injection::InjectionLimit;
use super::raising::{Raising, SoftStart};
use super::wakers::{Wakers, Woken};
use super::{NEVER, Tick};
use crate::collections::{Link, LinkOf, List, NIL, Slot, Tree};
use crate::elevators::shared::async_queues::AsyncQueues;
use crate::elevators::shared::sorted_fifo::SortedFifo;
use crate::priority::Priority;

/// A queue of sync requests of one context or of several cooperators, or of all async requests of
/// one priority in a group.
///
/// Weight, class, and budget and service of the current turn are in the engine's entity of the same
/// number.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Queue {
    // What every request needs comes first, in 192 bytes.
    pub requests: SortedFifo,
    /// The request to serve next, or [`NIL`].
    pub next: Slot,
    /// Queued requests: async, sync.
    pub queued: [u32; 2],
    pub in_flight: u32,
    /// Its requests from insertion to completion.
    pub allocated: u32,
    pub phase: Phase,
    pub sync: bool,
    pub usage: Usage,
    pub burst: Membership,
    /// The oldest request was checked in this slot.
    pub oldest_checked: bool,
    /// `soft.earliest` is computed when its last request completes.
    pub soft_later: bool,
    pub sharing: Sharing,
    pub locality: Locality,
    pub habits: Habits,
    pub service: Service,
    pub raising: Raising,

    // The rest is for rarer events.
    pub soft: SoftStart,
    pub injection: InjectionLimit,
    pub wakers: Wakers,
    pub created: Tick,
    /// The number of queues that had this entry before.
    pub generation: u32,
    /// The process id for which it was made; 0 for async.
    pub pid: u32,
    pub burst_link: Link,
    /// The link in the list of its group's queues, or of free entries.
    pub member_link: Link,
}

const _: () = assert!(size_of::<Queue>() == 320 && core::mem::offset_of!(Queue, raising.at) < 192);

impl Default for Queue {
    fn default() -> Self {
        Queue {
            requests: SortedFifo::default(),
            next: NIL,
            queued: [0; 2],
            in_flight: 0,
            allocated: 0,
            phase: Phase::Free,
            sync: false,
            usage: Usage::Single,
            burst: Membership::None,
            oldest_checked: false,
            soft_later: false,
            sharing: Sharing::default(),
            locality: Locality::default(),
            habits: Habits::default(),
            service: Service::default(),
            raising: Raising::default(),
            soft: SoftStart::default(),
            injection: InjectionLimit::default(),
            wakers: Wakers::default(),
            created: 0,
            generation: 0,
            pid: 0,
            burst_link: Link::default(),
            member_link: Link::default(),
        }
    }
}

impl Queue {
    /// The number of queued requests.
    pub fn pending(&self) -> u32 {
        let [one, other] = self.queued;
        one.saturating_add(other)
    }

    /// Returns true if its entry is in use.
    pub fn exists(&self) -> bool {
        self.phase != Phase::Free
    }

    /// Returns true if it is scheduled: it has requests or is in service.
    pub fn is_busy(&self) -> bool {
        self.phase == Phase::Busy
    }

    /// Returns true if it has not been busy yet.
    pub fn is_fresh(&self) -> bool {
        self.phase == Phase::Fresh
    }

    /// Returns true if several contexts use it or have used it.
    pub fn is_shared(&self) -> bool {
        self.usage != Usage::Single
    }

    /// Returns true if it belongs to a large burst and is not raised.
    pub fn is_in_large_burst(&self) -> bool {
        self.burst == Membership::Large
    }
}

/// The phases of a queue's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The entry is free.
    Free,
    /// The queue has not been busy yet.
    Fresh,
    /// It has neither requests nor service.
    Idle,
    /// The same, and it left service only because it had no requests: the rest of its budget is
    /// kept for some time.
    RanEmpty,
    /// It is scheduled: it has requests or is in service.
    Busy,
}

/// How many contexts use a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    /// One, or an async queue.
    Single,
    /// Several contexts use it or have used it.
    Shared,
    /// The same, but they no longer read adjacent sectors: each gets its own queue again.
    Diverging,
}

/// The service of a queue: the time and budget of its slots, and what it received while busy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    /// In service: the timeout of its slot. Otherwise: the time at which its last request left,
    /// including requests in the device.
    pub timeout: Tick,
    /// The maximum from which its next budget follows, in sectors.
    pub budget_max: u64,
    /// Sectors charged since it became busy.
    pub served: u64,
    /// The time of the first service since then.
    pub first_served: Tick,
}

impl Default for Service {
    fn default() -> Self {
        Service { timeout: NEVER, budget_max: 0, served: 0, first_served: 0 }
    }
}

impl Service {
    /// Counts service.
    pub fn charge(&mut self, sectors: u64, now: Tick) {
        if self.served == 0 {
            self.first_served = now;
        }
        self.served = self.served.saturating_add(sectors);
    }
}

/// The users of a queue, and merges with other queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    /// References: contexts, planned merges, and the group of an async queue.
    pub users: u32,
    /// Contexts that may merge with it later.
    pub links: u32,
    /// The queue to which its contexts are to move, or [`NIL`].
    pub target: Slot,
    /// The only context that uses it, if known, or [`NIL`].
    pub owner: Slot,
    /// The time of its last split.
    pub split_at: Tick,
}

impl Default for Sharing {
    fn default() -> Self {
        Sharing { users: 0, links: 0, target: NIL, owner: NIL, split_at: NEVER }
    }
}

/// The state of a context.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContextState {
    /// Its async and its sync queue, or [`NIL`].
    pub queues: [Slot; 2],
    /// The last known priority.
    pub priority: Priority,
    /// The last known group, with its generation.
    pub group: (Slot, u32),
    /// A queue created shortly before its own, with which that may be merged, or [`NIL`].
    pub link: Slot,
    /// Its queue was merged for that reason and is not split again.
    pub merged_permanently: bool,
    /// Its requests from insertion to completion.
    pub requests: u32,
    /// The state of its own queue before it was merged into another.
    pub saved: Saved,
}

impl Default for ContextState {
    fn default() -> Self {
        ContextState {
            queues: [NIL; 2],
            priority: Priority::UNSET,
            group: (NIL, 0),
            link: NIL,
            merged_permanently: false,
            requests: 0,
            saved: Saved::default(),
        }
    }
}

/// A queue's state while its context shares another queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Saved {
    pub weight: u32,
    pub coefficient: u32,
    pub raising: Raising,
    pub habits: Habits,
    pub injection: InjectionLimit,
    pub burst: Membership,
}

/// The state of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupState {
    pub async_queues: AsyncQueues,
    /// The sync queue created last, or [`NIL`].
    pub newest: Slot,
    /// Queues by the position of their next request.
    pub index: Tree,
    /// All queues of the group.
    pub members: List<Member>,
}

impl Default for GroupState {
    fn default() -> Self {
        GroupState {
            async_queues: AsyncQueues::default(),
            newest: NIL,
            index: Tree::default(),
            members: List::default(),
        }
    }
}

impl LinkOf<Queue> for Woken {
    fn link(queue: &Queue) -> &Link {
        &queue.wakers.link
    }
    fn link_mut(queue: &mut Queue) -> &mut Link {
        &mut queue.wakers.link
    }
}

impl LinkOf<Queue> for InBurst {
    fn link(queue: &Queue) -> &Link {
        &queue.burst_link
    }
    fn link_mut(queue: &mut Queue) -> &mut Link {
        &mut queue.burst_link
    }
}

/// The list of a group's queues, or of free entries.
#[derive(Debug)]
pub(super) struct Member;

impl LinkOf<Queue> for Member {
    fn link(queue: &Queue) -> &Link {
        &queue.member_link
    }
    fn link_mut(queue: &mut Queue) -> &mut Link {
        &mut queue.member_link
    }
}
