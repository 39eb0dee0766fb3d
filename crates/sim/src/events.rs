//! The queue of future events, in the order of time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::world::Task;

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// A processor has spent the CPU time of a task.
    CpuDone(Task),
    /// A task's pause is over.
    Wake(Task),
    /// A process has the completion of a direct request.
    Answered(u32),
    /// The flusher checks for old pages.
    FlushTick,
    /// The commit interval of a transaction is over.
    JournalTick(u64),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at_ns: u64,
    /// Sequence number; no two are equal.
    order: u64,
    what: EventKind,
}

/// The future events. Their order is total: by time, then by the order in which they were
/// scheduled.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Entry>,
    scheduled: u64,
}

/// The end of virtual time, after 146 years: later events are moved to this time.
pub(crate) const HORIZON_NS: u64 = 1 << 62;

impl Events {
    pub fn schedule(&mut self, at_ns: u64, what: EventKind) {
        let at_ns = at_ns.min(HORIZON_NS);
        self.scheduled += 1;
        self.heap.push(Entry { at_ns, order: self.scheduled, what });
    }

    /// Time of the next event.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|entry| entry.at_ns)
    }

    #[inline]
    pub fn pop(&mut self) -> Option<(u64, EventKind)> {
        self.heap.pop().map(|entry| (entry.at_ns, entry.what))
    }
}

impl Ord for Entry {
    /// Reversed, because the heap yields its greatest entry.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at_ns, other.order).cmp(&(self.at_ns, self.order))
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::ProcessId;

    #[test]
    fn events_of_one_instant_keep_the_order_of_scheduling() {
        let task = |number| Task::Process(ProcessId(number));
        let mut events = Events::default();
        for (at_ns, number) in [(7, 1), (5, 2), (7, 3), (5, 4)] {
            events.schedule(at_ns, EventKind::Wake(task(number)));
        }
        let order: Vec<_> = std::iter::from_fn(|| events.pop()).collect();
        let wanted = [(5, 2), (5, 4), (7, 1), (7, 3)].map(|(at_ns, number)| (at_ns, EventKind::Wake(task(number))));
        assert_eq!(order, wanted);
    }
}
