//! What the drive has to do, by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something to do; numbers are those of commands and dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The controller is through with a command.
    Ready(u32),
    /// A write's data have crossed the link.
    Arrived(u32),
    /// What a die does ends, unless its plan has changed since.
    Die { die: u32, plan: u32 },
    /// A flush is over.
    Flushed(u32),
}

/// Events by time, and at one time in the order of their making.
#[derive(Debug, Clone, Default)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    made: u64,
}

impl Events {
    pub(super) fn add(&mut self, at_ns: u64, event: Event) {
        self.made += 1;
        self.heap.push(Reverse((at_ns, self.made, event)));
    }

    #[inline]
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    pub(super) fn pop(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|Reverse((at_ns, _, event))| (at_ns, event))
    }
}
