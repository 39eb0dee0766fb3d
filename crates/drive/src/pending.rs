//! Commands in flight whose completion time is determined at submission.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::command::{Completion, Service, Status};

/// Commands by completion time. Commands with the same time complete in the order of submission.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending {
    heap: BinaryHeap<Reverse<(u64, u64, Slot)>>,
    submitted: u64,
}

/// A completion that is equal to every other: time and number alone order the heap.
#[derive(Debug, Clone, Copy)]
struct Slot(Completion);

impl Pending {
    pub(crate) fn add(&mut self, tag: u32, service: Service, status: Status) {
        self.submitted += 1;
        let completion = Completion { tag, service, status };
        self.heap.push(Reverse((service.finish_ns, self.submitted, Slot(completion))));
    }

    #[inline]
    pub(crate) fn next_event_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((finish_ns, ..))| *finish_ns)
    }

    #[inline]
    pub(crate) fn poll(&mut self, now_ns: u64) -> Option<Completion> {
        if self.next_event_ns()? > now_ns {
            return None;
        }
        self.heap.pop().map(|Reverse((_, _, Slot(completion)))| completion)
    }
}

impl PartialEq for Slot {
    fn eq(&self, _: &Slot) -> bool {
        true
    }
}

impl Eq for Slot {}

impl PartialOrd for Slot {
    fn partial_cmp(&self, other: &Slot) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slot {
    fn cmp(&self, _: &Slot) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}
