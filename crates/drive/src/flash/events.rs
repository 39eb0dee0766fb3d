//! The events of a flash drive in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event. The numbers are indices of commands and dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The controller has processed a command.
    Ready(u32),
    /// The data of a write have crossed the link.
    Arrived(u32),
    /// The operation of a die ends, unless the event number of the die has changed since.
    Die { die: u32, event_number: u32 },
    /// A flush completes.
    Flushed(u32),
}

/// Events by time; events of one time in the order of their creation.
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
