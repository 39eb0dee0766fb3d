//! Barriers: earlier requests complete before a barrier, later ones after it, and the disk's cache
//! is flushed around it.
//!
//! This follows Linux 2.6.16 to 2.6.36. When a barrier reaches the head of the dispatch list, the
//! queue is drained. The barrier is then executed as a sequence of stages: a flush, the barrier's
//! data, another flush, as far as the device's mode needs them.

use super::RequestQueue;
use crate::bio::{Flags, Op};
use crate::collections::{NIL, Slot};
use crate::elevator::tables::HostTypes;
use crate::event::Event;
use crate::request::{Marks, Request, State};

/// The device's support for barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderedMode {
    /// None: barriers are refused.
    None,
    /// Draining: the device is emptied before the barrier. A write cache is flushed before and
    /// after, or, with `fua`, flushed before and bypassed by the barrier itself.
    Drain {
        /// The device has a write cache.
        flush: bool,
        /// The device supports forced unit access.
        fua: bool,
    },
    /// Ordered tags: the device itself keeps the order.
    Tag {
        /// The device has a write cache.
        flush: bool,
        /// The device supports forced unit access.
        fua: bool,
    },
}

impl OrderedMode {
    fn drains(self) -> bool {
        matches!(self, OrderedMode::Drain { .. })
    }

    /// Returns whether there is a flush before, whether there is one after, and whether the data is
    /// written with FUA.
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

/// The ordered sequence in progress, if any.
#[derive(Debug)]
pub(super) struct Sequence {
    /// The submitted barrier; [`NIL`] if no sequence is in progress.
    original: Slot,
    pre: Slot,
    post: Slot,
    done: u8,
    /// The colour of newly arriving requests, which changes with each barrier.
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

    /// Sets the colour of a request at its insertion.
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
    /// Appends a request to the dispatch list, behind all requests of the elevator. Dispatch
    /// sorting does not pass it.
    pub(super) fn insert_back(&mut self, slot: Slot) {
        let request = &mut self.core.tables.requests[slot];
        request.marks.set(Marks::SOFT_BARRIER);
        let barrier = request.marks.has(Marks::HARD_BARRIER);
        if barrier {
            self.core.dispatch.set_boundary(&mut self.core.tables, slot);
        }
        self.core.emit(|core| Event::Insert(core.io(slot)));
        self.drain_elevator();
        self.core.tables.requests[slot].state = State::Dispatched;
        self.core.dispatch.push_back(&mut self.core.tables, slot);
        self.remove_plug();
        self.core.run_now();
    }

    /// Returns true if a barrier is being executed.
    pub(super) fn is_sequence_under_way(&self) -> bool {
        self.ordered.original != NIL
    }

    /// Puts a requeued request at the head, or at its position in the running sequence.
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

    /// The request to issue in place of `head`: itself, the first step of the sequence that it
    /// starts, or [`NIL`].
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

    /// Continues a sequence that waited for the device to be empty.
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

    /// Completes a step of the sequence, and the barrier after the last step.
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
                // The driver takes the proxy instead of the barrier, so the proxy takes over the
                // boundary.
                _ => self.core.dispatch.transfer_boundary(barrier, step),
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

    /// Makes a request of the sequence from the reserved ones: a flush, or the barrier's proxy.
    fn make_step(&mut self, barrier: Slot, stage: Stage, fua: bool) -> Slot {
        let original = self.core.tables.requests[barrier];
        let drains = self.config.ordered.drains();
        let slot = self.take_free_request();
        debug_assert!(slot != NIL, "three requests are reserved");
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
            // Ordered tags need the flag; a drained device does not.
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
