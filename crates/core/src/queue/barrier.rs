//! Barriers: a barrier's predecessors are done before it, its successors after, and the disk's cache is written out around it.
//!
//! Linux 2.6.16 to 2.6.36. When a barrier reaches the head of the dispatch list, the queue is drained and the barrier is carried
//! out as a sequence of stages: a flush, the barrier's data, another flush, as far as the device's mode needs them.

use super::RequestQueue;
use crate::bio::{Flags, Op};
use crate::collections::{NIL, Slot};
use crate::elevator::tables::HostTypes;
use crate::event::Event;
use crate::request::{Marks, Request, State};

/// How a device keeps barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderedMode {
    /// It does not: barriers are refused.
    None,
    /// By waiting until it is empty; with a cache, by flushing it before and after, or, with `fua`, by flushing before and
    /// writing the barrier itself through.
    Drain {
        /// The device has a write cache.
        flush: bool,
        /// It can write a single request through.
        fua: bool,
    },
    /// By ordered tags: the device itself keeps the order.
    Tag {
        /// The device has a write cache.
        flush: bool,
        /// It can write a single request through.
        fua: bool,
    },
}

impl OrderedMode {
    fn drains(self) -> bool {
        matches!(self, OrderedMode::Drain { .. })
    }

    /// Whether a flush goes before, one goes after, and the data is written through.
    fn steps(self) -> (bool, bool, bool) {
        match self {
            OrderedMode::None => (false, false, false),
            OrderedMode::Drain { flush, fua } | OrderedMode::Tag { flush, fua } => (flush || fua, flush && !fua, fua),
        }
    }
}

/// The stages of an ordered sequence, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Drain,
    PreFlush,
    Barrier,
    PostFlush,
    Done,
}

impl Stage {
    const ALL: [Stage; 4] = [Stage::Drain, Stage::PreFlush, Stage::Barrier, Stage::PostFlush];

    fn bit(self) -> u8 {
        match self {
            Stage::Drain => 1,
            Stage::PreFlush => 2,
            Stage::Barrier => 4,
            Stage::PostFlush => 8,
            Stage::Done => 16,
        }
    }
}

/// The ordered sequence that runs, if one does.
#[derive(Debug)]
pub(super) struct Sequence {
    /// The barrier as it was submitted, or [`NIL`]: no sequence runs.
    original: Slot,
    pre: Slot,
    post: Slot,
    done: u8,
    /// The colour of requests that arrive now: it changes with each barrier.
    colour: bool,
}

impl Default for Sequence {
    fn default() -> Self {
        Sequence { original: NIL, pre: NIL, post: NIL, done: 0, colour: false }
    }
}

impl Sequence {
    fn stage(&self) -> Stage {
        Stage::ALL.into_iter().find(|stage| self.done & stage.bit() == 0).unwrap_or(Stage::Done)
    }

    /// Colours a request that is inserted.
    pub fn colour(&mut self, flags: Flags, marks: &mut Marks) {
        if self.colour {
            marks.set(Marks::ORDERED_COLOUR);
        }
        if flags.has(Flags::BARRIER) {
            marks.set(Marks::HARD_BARRIER);
            self.colour = !self.colour;
        }
    }
}

impl<H: HostTypes> RequestQueue<H> {
    /// Appends a request to the dispatch list, behind everything that the elevator holds; nothing is sorted past it.
    pub(super) fn insert_back(&mut self, slot: Slot) {
        let request = &mut self.core.tables.requests[slot];
        request.marks.set(Marks::SOFT_BARRIER);
        let barrier = request.marks.has(Marks::HARD_BARRIER);
        if barrier {
            self.core.dispatch.set_boundary(&mut self.core.tables, slot);
        }
        self.core.tell(|core| Event::Insert(core.io(slot)));
        self.drain_elevator();
        self.core.tables.requests[slot].state = State::Dispatched;
        self.core.dispatch.push_back(&mut self.core.tables, slot);
        self.remove_plug();
        self.core.run_now();
    }

    /// Puts a request that the driver gave back at the head, or at its place in the running sequence.
    pub(super) fn insert_requeued(&mut self, slot: Slot) {
        let request = &mut self.core.tables.requests[slot];
        request.marks.set(Marks::SOFT_BARRIER);
        request.marks.clear(Marks::ACTIVATED);
        request.state = State::Dispatched;
        if self.ordered.original == NIL {
            return self.core.dispatch.push_front(&mut self.core.tables, slot);
        }
        let stage = self.stage_of(slot);
        self.core.dispatch.make_plain(&mut self.core.tables);
        let mut at = self.core.dispatch.head();
        while at != NIL && self.stage_of(at) < stage {
            at = self.core.dispatch.next(&self.core.tables, at);
        }
        self.core.dispatch.insert_before(&mut self.core.tables, at, slot);
    }

    /// The request that may be issued in place of `head`: itself, the first step of the sequence that it starts, or [`NIL`].
    #[inline]
    pub(super) fn pass_ordered(&mut self, head: Slot) -> Slot {
        let barrier = self.core.tables.requests[head].marks.has(Marks::HARD_BARRIER);
        if self.ordered.original == NIL {
            if !barrier {
                return head;
            }
            self.start_sequence(head);
            let head = self.core.dispatch.head();
            return if self.may_pass(head) { head } else { NIL };
        }
        if self.may_pass(head) { head } else { NIL }
    }

    /// The device has run empty: a sequence that waited for that goes on.
    pub(super) fn drained(&mut self) {
        if self.ordered.original == NIL || self.ordered.stage() != Stage::Drain || self.core.in_flight > 0 {
            return;
        }
        let head = self.core.dispatch.head();
        if head == NIL || self.stage_of(head) > Stage::Drain {
            self.ordered.done |= Stage::Drain.bit();
            self.core.run_now();
        }
    }

    /// A step of the sequence is done; after the last one the barrier itself is.
    pub(super) fn finish_sequence_request(&mut self, slot: Slot, done: impl FnMut(u64)) {
        let stage = self.stage_of(slot);
        self.put_free_request(slot);
        self.ordered.done |= stage.bit();
        self.core.run_now();
        self.finish_sequence_if_done(done);
    }

    fn finish_sequence_if_done(&mut self, done: impl FnMut(u64)) {
        if self.ordered.stage() != Stage::Done {
            return;
        }
        let original = core::mem::replace(&mut self.ordered.original, NIL);
        self.core.tables.requests[original].marks.clear(Marks::HARD_BARRIER);
        self.finish(original, done);
    }

    fn start_sequence(&mut self, barrier: Slot) {
        self.core.dispatch.remove(&mut self.core.tables, barrier);
        let (pre, post, fua) = self.config.ordered.steps();
        let empty = self.core.tables.requests[barrier].sectors == 0;
        self.ordered.original = barrier;
        self.ordered.done = 0;
        for (stage, wanted) in
            [(Stage::PostFlush, post && !empty), (Stage::Barrier, !empty || !pre), (Stage::PreFlush, pre)]
        {
            let step = if wanted { self.make_step(barrier, stage, fua) } else { NIL };
            match stage {
                Stage::PreFlush => self.ordered.pre = step,
                Stage::PostFlush => self.ordered.post = step,
                // The stand-in is what passes the driver: it takes the boundary over.
                _ => self.core.dispatch.hand_boundary_over(barrier, step),
            }
            if step == NIL {
                self.ordered.done |= stage.bit();
            } else {
                self.core.dispatch.push_front(&mut self.core.tables, step);
            }
        }
        if !self.config.ordered.drains() || self.core.in_flight == 0 {
            self.ordered.done |= Stage::Drain.bit();
        }
    }

    /// A request of the sequence, from those kept in reserve: a flush, or the barrier's stand-in.
    fn make_step(&mut self, barrier: Slot, stage: Stage, fua: bool) -> Slot {
        let original = self.core.tables.requests[barrier];
        let drains = self.config.ordered.drains();
        let slot = self.take_free_request();
        debug_assert!(slot != NIL, "three requests are kept in reserve");
        let request = &mut self.core.tables.requests[slot];
        let generation = request.generation.wrapping_add(1);
        *request = Request { generation, state: State::Dispatched, ..Request::default() };
        request.token = original.token;
        request.context = original.context;
        request.submitted_ns = original.submitted_ns;
        if stage == Stage::Barrier && original.sectors > 0 {
            request.op = original.op;
            request.sector = original.sector;
            request.sectors = original.sectors;
            request.flags = original.flags.and(if fua { Flags::FUA } else { Flags::NONE });
        } else {
            request.op = Op::Flush;
            // A device that orders by tags is told so by this flag; one that is drained needs no telling.
            request.flags = if drains { Flags::NONE } else { Flags::BARRIER };
        }
        request.marks.set(Marks::SEQUENCE);
        request.marks.set(Marks::SOFT_BARRIER);
        slot
    }

    fn may_pass(&self, slot: Slot) -> bool {
        if slot == NIL {
            return false;
        }
        if self.config.ordered.drains() {
            return self.stage_of(slot) <= self.ordered.stage();
        }
        !self.core.tables.requests[slot].marks.has(Marks::HARD_BARRIER)
    }

    fn stage_of(&self, slot: Slot) -> Stage {
        if self.core.tables.requests[slot].marks.has(Marks::SEQUENCE) {
            return match slot {
                slot if slot == self.ordered.pre => Stage::PreFlush,
                slot if slot == self.ordered.post => Stage::PostFlush,
                _ => Stage::Barrier,
            };
        }
        let original = self.ordered.original;
        let colour = |slot: Slot| self.core.tables.requests[slot].marks.has(Marks::ORDERED_COLOUR);
        if original != NIL && colour(slot) == colour(original) { Stage::Drain } else { Stage::Done }
    }
}
