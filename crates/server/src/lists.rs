//! The lists of connections that the server keeps: those with output, those that wait for memory,
//! those with a deadline. A list alone knows which connections are in it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hoistway_reactor::ConnId;

use crate::budget::{HolderId, Wait};

/// Values by connection. A later connection of the same slot replaces the value.
#[derive(Debug)]
struct BySlot<T>(Vec<Option<(u32, T)>>);

impl<T> Default for BySlot<T> {
    fn default() -> Self {
        BySlot(Vec::new())
    }
}

impl<T: Copy> BySlot<T> {
    fn get(&self, id: ConnId) -> Option<T> {
        let (generation, value) = (*self.0.get(id.slot as usize)?)?;
        (generation == id.generation).then_some(value)
    }

    fn insert(&mut self, id: ConnId, value: T) {
        let slot = id.slot as usize;
        if self.0.len() <= slot {
            self.0.resize(slot + 1, None);
        }
        self.0[slot] = Some((id.generation, value));
    }

    fn remove(&mut self, id: ConnId) -> Option<T> {
        let value = self.get(id)?;
        self.0[id.slot as usize] = None;
        Some(value)
    }
}

/// The connections with output, in the order in which they send at the end of the turn.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    order: VecDeque<ConnId>,
    members: BySlot<()>,
}

impl Senders {
    /// Lets a connection send at the end of the turn.
    pub(crate) fn schedule(&mut self, id: ConnId) {
        if !self.contains(id) {
            self.members.insert(id, ());
            self.order.push_back(id);
        }
    }

    pub(crate) fn contains(&self, id: ConnId) -> bool {
        self.members.get(id).is_some()
    }

    /// Takes the first connection out.
    pub(crate) fn take_first(&mut self) -> Option<ConnId> {
        let id = self.order.pop_front()?;
        self.members.remove(id);
        Some(id)
    }
}

/// A queue of connections that wait for memory, first come, first served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryQueue {
    /// For memory that the connections' own tenant holds. They do not delay other tenants.
    OfTenant(HolderId),
    /// For memory of other tenants.
    Common,
}

impl MemoryQueue {
    /// The queue for what a request of a tenant waits for; `None` if it waits for its own
    /// connection.
    pub(crate) fn of(wait: Wait, holder: Option<HolderId>) -> Option<MemoryQueue> {
        match (wait, holder) {
            (Wait::Own, _) => None,
            (Wait::Tenant, Some(holder)) => Some(MemoryQueue::OfTenant(holder)),
            (Wait::Tenant | Wait::Others, _) => Some(MemoryQueue::Common),
        }
    }
}

/// The connections that wait for memory. Each is in one queue at most.
#[derive(Debug, Default)]
pub(crate) struct MemoryWaiters {
    common: VecDeque<ConnId>,
    of_tenants: BTreeMap<HolderId, VecDeque<ConnId>>,
    members: BySlot<()>,
}

impl MemoryWaiters {
    /// Adds a connection to the end of a queue, unless it is in one.
    pub(crate) fn add(&mut self, id: ConnId, queue: MemoryQueue) {
        if self.members.get(id).is_some() {
            return;
        }
        self.members.insert(id, ());
        match queue {
            MemoryQueue::Common => self.common.push_back(id),
            MemoryQueue::OfTenant(holder) => self.of_tenants.entry(holder).or_default().push_back(id),
        }
    }

    /// The first connection of a queue.
    pub(crate) fn first(&self, queue: MemoryQueue) -> Option<ConnId> {
        match queue {
            MemoryQueue::Common => self.common.front().copied(),
            MemoryQueue::OfTenant(holder) => self.of_tenants.get(&holder)?.front().copied(),
        }
    }

    /// Removes the first connection of a queue.
    pub(crate) fn remove_first(&mut self, queue: MemoryQueue) {
        let first = match queue {
            MemoryQueue::Common => self.common.pop_front(),
            MemoryQueue::OfTenant(holder) => {
                let Some(waiting) = self.of_tenants.get_mut(&holder) else { return };
                let first = waiting.pop_front();
                if waiting.is_empty() {
                    self.of_tenants.remove(&holder);
                }
                first
            }
        };
        if let Some(id) = first {
            self.members.remove(id);
        }
    }

    /// The tenants with a queue.
    pub(crate) fn tenants(&self) -> Vec<HolderId> {
        self.of_tenants.keys().copied().collect()
    }

    /// Removes the queue of a tenant whose last connection has ended.
    pub(crate) fn forget(&mut self, holder: HolderId) {
        self.of_tenants.remove(&holder);
    }

    /// Returns what a connection waits for because another one is ahead of it.
    pub(crate) fn ahead_of(&self, id: ConnId, holder: Option<HolderId>) -> Option<Wait> {
        let is_behind = |queue: MemoryQueue| self.first(queue).is_some_and(|first| first != id);
        if holder.is_some_and(|holder| is_behind(MemoryQueue::OfTenant(holder))) {
            return Some(Wait::Tenant);
        }
        // The first connection of a tenant's queue waits in the common queue like all others.
        is_behind(MemoryQueue::Common).then_some(Wait::Others)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.common.is_empty() && self.of_tenants.is_empty()
    }

    /// Number of connections in the common queue.
    #[cfg(test)]
    pub(crate) fn common_len(&self) -> usize {
        self.common.len()
    }
}

/// The times in ns at which connections are closed unless they make progress: one for each
/// connection at most.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    in_order: BTreeSet<(u64, ConnId)>,
    of: BySlot<u64>,
}

impl Deadlines {
    /// Gives a connection a deadline, in place of any earlier one.
    pub(crate) fn set(&mut self, id: ConnId, at_ns: u64) {
        self.clear(id);
        self.in_order.insert((at_ns, id));
        self.of.insert(id, at_ns);
    }

    /// Removes the deadline of a connection.
    pub(crate) fn clear(&mut self, id: ConnId) {
        if let Some(at_ns) = self.of.remove(id) {
            self.in_order.remove(&(at_ns, id));
        }
    }

    /// The deadline of a connection.
    pub(crate) fn get(&self, id: ConnId) -> Option<u64> {
        self.of.get(id)
    }

    /// The first deadline.
    pub(crate) fn first(&self) -> Option<u64> {
        self.in_order.first().map(|(at_ns, _)| *at_ns)
    }

    /// Removes a deadline that has passed and returns its connection.
    pub(crate) fn take_expired(&mut self, now_ns: u64) -> Option<ConnId> {
        let (at_ns, id) = *self.in_order.first()?;
        if at_ns > now_ns {
            return None;
        }
        self.clear(id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ConnId = ConnId { slot: 0, generation: 0 };
    const B: ConnId = ConnId { slot: 3, generation: 7 };
    /// The next connection in the slot of [`B`].
    const B_AGAIN: ConnId = ConnId { slot: 3, generation: 8 };

    #[test]
    fn a_connection_sends_once_a_turn_and_may_send_again_after_that() {
        let mut senders = Senders::default();
        for id in [B, A, B] {
            senders.schedule(id);
        }
        assert_eq!(senders.take_first(), Some(B));
        assert!(!senders.contains(B) && senders.contains(A));
        senders.schedule(B);
        assert_eq!([senders.take_first(), senders.take_first(), senders.take_first()], [Some(A), Some(B), None]);
        senders.schedule(B);
        assert!(!senders.contains(B_AGAIN), "another connection in the same slot");
    }

    #[test]
    fn a_connection_waits_in_one_queue() {
        let mut waiters = MemoryWaiters::default();
        let of_tenant = MemoryQueue::OfTenant(4);
        waiters.add(A, of_tenant);
        waiters.add(A, MemoryQueue::Common);
        assert_eq!((waiters.first(of_tenant), waiters.first(MemoryQueue::Common)), (Some(A), None));
        assert_eq!(waiters.ahead_of(B, Some(4)), Some(Wait::Tenant));
        assert_eq!((waiters.ahead_of(A, Some(4)), waiters.ahead_of(B, Some(5))), (None, None));
        waiters.remove_first(of_tenant);
        assert!(waiters.is_empty() && waiters.tenants().is_empty());
        waiters.add(A, MemoryQueue::Common);
        assert_eq!(waiters.ahead_of(B, None), Some(Wait::Others));
        assert_eq!(MemoryQueue::of(Wait::Own, Some(4)), None);
        assert_eq!(MemoryQueue::of(Wait::Tenant, Some(4)), Some(of_tenant));
        assert_eq!(MemoryQueue::of(Wait::Others, Some(4)), Some(MemoryQueue::Common));
    }

    #[test]
    fn a_connection_has_one_deadline() {
        let mut deadlines = Deadlines::default();
        deadlines.set(A, 50);
        deadlines.set(B, 30);
        deadlines.set(A, 20);
        assert_eq!((deadlines.first(), deadlines.get(A), deadlines.get(B_AGAIN)), (Some(20), Some(20), None));
        assert_eq!((deadlines.take_expired(19), deadlines.take_expired(20)), (None, Some(A)));
        assert_eq!((deadlines.get(A), deadlines.take_expired(29), deadlines.take_expired(40)), (None, None, Some(B)));
        deadlines.set(B, 60);
        deadlines.clear(B);
        assert_eq!(deadlines.first(), None);
    }
}
