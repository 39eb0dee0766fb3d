//! The two deadline elevators' queues: reads and writes apart, each sorted by sector and by
//! deadline.

use super::direction::{READ, WRITE};
use super::sorted_fifo::SortedFifo;
use crate::bio::Op;
use crate::collections::{NIL, Slot};
use crate::elevator::queue_core::QueueCore;
use crate::elevator::tables::HostTypes;

/// Reads and writes, each with the position at which a batch of that direction continues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadWriteQueues {
    fifos: [SortedFifo; 2],
    /// The request after the last dispatched one, of reads and of writes, or [`NIL`].
    next: [Slot; 2],
}

impl Default for ReadWriteQueues {
    fn default() -> Self {
        ReadWriteQueues { fifos: [SortedFifo::default(); 2], next: [NIL; 2] }
    }
}

impl ReadWriteQueues {
    /// Returns whether reads and whether writes are queued.
    #[inline]
    pub fn waiting(&self) -> [bool; 2] {
        [!self.fifos[READ].is_empty(), !self.fifos[WRITE].is_empty()]
    }

    /// Returns true if no request is queued.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting() == [false; 2]
    }

    /// The queued requests of an operation's direction.
    #[inline]
    pub fn fifo(&self, op: Op) -> &SortedFifo {
        if op == Op::Read { &self.fifos[READ] } else { &self.fifos[WRITE] }
    }

    /// The queued requests of an operation's direction, to be changed.
    #[inline]
    pub fn fifo_mut(&mut self, op: Op) -> &mut SortedFifo {
        if op == Op::Read { &mut self.fifos[READ] } else { &mut self.fifos[WRITE] }
    }

    /// The queued requests of direction [`READ`] or [`WRITE`], and the request at which its batch
    /// continues, or [`NIL`].
    #[inline]
    pub fn direction(&self, direction: usize) -> (&SortedFifo, Slot) {
        if direction == READ { (&self.fifos[READ], self.next[READ]) } else { (&self.fifos[WRITE], self.next[WRITE]) }
    }

    /// The oldest read and the oldest write, each [`NIL`] if there is none.
    pub fn oldest(&self) -> [Slot; 2] {
        [self.fifos[READ].oldest(), self.fifos[WRITE].oldest()]
    }

    /// Forgets where the batches of both directions continue.
    #[inline]
    pub fn end_batches(&mut self) {
        self.next = [NIL; 2];
    }

    /// Continues batches behind `request` at its successor, if they were to continue at `request`.
    #[inline]
    pub fn skip<H: HostTypes>(&mut self, core: &QueueCore<H>, request: Slot) {
        for next in &mut self.next {
            if *next == request {
                *next = core.tables.nodes[request].next();
            }
        }
    }

    /// Moves `absorbed` out after it has become part of `request`, which takes over an earlier
    /// deadline.
    pub fn join<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot, absorbed: Slot) {
        let op = core.tables.requests[request].op;
        self.fifo_mut(op).inherit(core, request, absorbed);
        self.skip(core, absorbed);
        self.fifo_mut(op).remove(core, absorbed);
    }

    /// Moves a request to the dispatch list; the batch of its direction continues at its successor.
    #[inline]
    pub fn dispatch<H: HostTypes>(&mut self, core: &mut QueueCore<H>, request: Slot) {
        let op = core.tables.requests[request].op;
        let after = core.tables.nodes[request].next();
        if op == Op::Read {
            self.next[READ] = after;
        } else {
            self.next[WRITE] = after;
        }
        self.fifo_mut(op).remove(core, request);
        core.dispatch_append(request);
    }
}
