//! The flush machinery of the block layer, beside the request queue: what makes written data safe
//! from the drive's volatile cache.
//!
//! A bio asks for safety with two flags: PREFLUSH (the cache is flushed before the data) and FUA
//! (the data are on the medium when the bio completes). [`FlushRules`] says how a block layer
//! executes them.
//!
//! From 2.6.37 on a bio that needs a flush becomes a sequence of up to three steps: PREFLUSH, DATA,
//! POSTFLUSH. A drive without FUA gets a flush after the data instead. One flush is in the drive at
//! a time; the sequences that need one meanwhile share the next, which is issued when that one
//! ends. The steps bypass the elevator: the driver takes them before the dispatch list. A bio whose
//! flags need no flush goes through the elevator as every other bio does.
//!
//! Sources: the kernels' Documentation/block/writeback_cache_control.rst; J. Corbet, "The end of
//! block barriers", LWN, August 2010; the order of commit blocks in traces of guests
//! (docs/guest.md).

use std::collections::VecDeque;

use hoistway_core::{Bio, BlockLayer};

use super::super::slab::Slab;
use crate::config::Flushes;

/// The execution of PREFLUSH and FUA by a block layer on a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushRules {
    /// The drive reports no volatile cache (`write through`): a completed write is safe, an empty
    /// flush completes at once, and the flags are dropped.
    WriteThrough {
        /// The block layer has barriers, which order requests on such a drive, too.
        barriers: bool,
    },
    /// Barriers (up to 2.6.36): the request queue of the core is drained around a flush.
    Barriers,
    /// Sequences of steps (2.6.37 and later).
    Sequences {
        /// The drive takes writes with FUA.
        fua: bool,
    },
}

impl FlushRules {
    /// Returns the rules of a block layer on a drive that reports a volatile cache (`cached`) and
    /// takes writes with FUA (`fua`).
    pub fn of(flushes: Flushes, layer: BlockLayer, cached: bool, fua: bool) -> FlushRules {
        let barriers = match (flushes, layer) {
            (Flushes::Barriers, _) => true,
            (Flushes::Sequences, _) => false,
            (Flushes::Layer, BlockLayer::V2_6_18 | BlockLayer::V2_6_24 | BlockLayer::V2_6_29) => true,
            (Flushes::Layer, BlockLayer::V3_4 | BlockLayer::V4_19 | BlockLayer::V6_1) => false,
        };
        match (cached, barriers) {
            (false, barriers) => FlushRules::WriteThrough { barriers },
            (true, true) => FlushRules::Barriers,
            (true, false) => FlushRules::Sequences { fua },
        }
    }

    /// Returns true if the drive reports a volatile cache (`queue/write_cache`: `write back`).
    pub fn has_volatile_cache(self) -> bool {
        !matches!(self, FlushRules::WriteThrough { .. })
    }
}

/// Set in the token of a bio that is the data of a sequence, with the number of the sequence in the
/// lower half. Tokens of other bios do not have the bit.
const SEQUENCE_BIT: u64 = 1 << 63;

/// Returns the sequence whose data the bio with this token is.
#[inline]
pub(super) fn sequence_of(token: u64) -> Option<u32> {
    (token & SEQUENCE_BIT != 0).then_some(token as u32)
}

/// A command that the driver takes before the dispatch list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadyStep {
    Flush,
    /// The data of a sequence.
    Data(u32),
}

/// A bio with at least one flush.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    bio: Bio,
    /// True if a flush follows the data.
    flushes_after: bool,
}

/// A step that a flush completes.
#[derive(Clone, Copy, Debug)]
enum Waiter {
    /// A flush without data, with the token of its bio.
    Empty(u64),
    /// The PREFLUSH of a sequence.
    Before(u32),
    /// The POSTFLUSH of a sequence.
    After(u32),
}

/// The sequences of a device, and its flushes.
#[derive(Debug)]
pub(super) struct FlushMachine {
    sequences: Slab<Sequence>,
    /// Steps that share the next flush.
    waiting: Vec<Waiter>,
    /// Steps that share the flush under way; empty if none is under way.
    served: Vec<Waiter>,
    ready: VecDeque<ReadyStep>,
    /// True if data go to the request queue after their PREFLUSH. False if they bypass it.
    queues_data: bool,
    /// Data that the host submits to the request queue next.
    due: VecDeque<u32>,
    /// Number of sequences whose data are in the request queue.
    queued: u32,
}

impl FlushMachine {
    /// Creates the machinery of an idle device.
    pub fn new(queues_data: bool) -> FlushMachine {
        FlushMachine {
            sequences: Slab::new(),
            waiting: Vec::new(),
            served: Vec::new(),
            ready: VecDeque::new(),
            queues_data,
            due: VecDeque::new(),
            queued: 0,
        }
    }

    /// Adds a flush without data.
    pub fn add_flush(&mut self, token: u64) {
        self.waiting.push(Waiter::Empty(token));
        self.issue_flush();
    }

    /// Adds a bio with a flush before its data, after them, or both.
    pub fn add_sequence(&mut self, bio: Bio, flushes_before: bool, flushes_after: bool) {
        let sequence = self.sequences.insert(Sequence { bio, flushes_after });
        if flushes_before {
            self.waiting.push(Waiter::Before(sequence));
            self.issue_flush();
        } else {
            self.issue_data(sequence);
        }
    }

    /// Returns true if the driver has a step to take.
    #[inline]
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes the next step for the driver.
    #[inline]
    pub fn next_step(&mut self) -> Option<ReadyStep> {
        self.ready.pop_front()
    }

    /// Takes the next bio for the request queue. Its token is that of the sequence.
    pub fn next_due(&mut self) -> Option<Bio> {
        let sequence = self.due.pop_front()?;
        self.queued += 1;
        Some(Bio { token: SEQUENCE_BIT | u64::from(sequence), ..self.data_of(sequence) })
    }

    /// Returns true if data of a sequence are in the request queue.
    #[inline]
    pub fn has_queued_data(&self) -> bool {
        self.queued > 0
    }

    /// The bio with the data of a sequence.
    pub fn data_of(&mut self, sequence: u32) -> Bio {
        self.sequences.get_mut(sequence).bio
    }

    /// Records the end of the flush under way. The tokens of bios that are complete, or that failed
    /// with it, are added to `tokens`.
    pub fn end_flush(&mut self, failed: bool, tokens: &mut Vec<u64>) {
        for waiter in std::mem::take(&mut self.served) {
            match waiter {
                Waiter::Empty(token) => tokens.push(token),
                Waiter::Before(sequence) if !failed => self.issue_data(sequence),
                Waiter::Before(sequence) | Waiter::After(sequence) => {
                    tokens.push(self.sequences.remove(sequence).bio.token);
                }
            }
        }
        self.issue_flush();
    }

    /// Records that the data of a sequence, which bypassed the request queue, are in the drive.
    pub fn end_data(&mut self, sequence: u32, failed: bool, tokens: &mut Vec<u64>) {
        if self.sequences.get_mut(sequence).flushes_after && !failed {
            self.waiting.push(Waiter::After(sequence));
            self.issue_flush();
        } else {
            tokens.push(self.sequences.remove(sequence).bio.token);
        }
    }

    /// Records that the data of a sequence, which went through the request queue, are in the drive.
    pub fn end_queued_data(&mut self, sequence: u32, failed: bool, tokens: &mut Vec<u64>) {
        self.queued -= 1;
        self.end_data(sequence, failed, tokens);
    }

    fn issue_data(&mut self, sequence: u32) {
        match self.queues_data {
            true => self.due.push_back(sequence),
            false => self.ready.push_back(ReadyStep::Data(sequence)),
        }
    }

    /// Issues a flush for all waiting steps, unless one is under way.
    fn issue_flush(&mut self) {
        if self.served.is_empty() && !self.waiting.is_empty() {
            std::mem::swap(&mut self.served, &mut self.waiting);
            self.ready.push_back(ReadyStep::Flush);
        }
    }
}

#[cfg(test)]
mod tests {
    use hoistway_core::{Capacity, ElevatorStorage, Kind, NoSink, Op, Owned, Priority, QueueConfig, RequestQueue};
    use hoistway_core::{ContextId, Storage};

    use super::*;

    fn context() -> ContextId {
        let capacity = Capacity::default();
        let (storage, elevator) = (Storage::owned(capacity), ElevatorStorage::owned(Kind::Noop, capacity));
        let mut queue: RequestQueue<Owned<NoSink>> =
            RequestQueue::new(QueueConfig::default(), storage, elevator, NoSink, 0);
        queue.create_context(1, Priority::UNSET, 0).expect("room for a context")
    }

    fn write(token: u64) -> Bio {
        Bio::new(token, context(), Op::Write, 8 * token, 8)
    }

    fn steps(machine: &mut FlushMachine) -> Vec<ReadyStep> {
        std::iter::from_fn(|| machine.next_step()).collect()
    }

    #[test]
    fn flushes_that_arrive_during_a_flush_share_the_next_one() {
        let mut machine = FlushMachine::new(false);
        let mut tokens = Vec::new();
        (1..=4).for_each(|token| machine.add_flush(token));
        assert_eq!(steps(&mut machine), [ReadyStep::Flush], "one is in the drive at a time");
        machine.end_flush(false, &mut tokens);
        assert_eq!((tokens.as_slice(), steps(&mut machine)), (&[1][..], vec![ReadyStep::Flush]));
        tokens.clear();
        machine.end_flush(false, &mut tokens);
        assert_eq!((tokens.as_slice(), steps(&mut machine)), (&[2, 3, 4][..], vec![]));
    }

    #[test]
    fn a_sequence_flushes_before_and_after_its_data() {
        let mut machine = FlushMachine::new(false);
        let mut tokens = Vec::new();
        machine.add_sequence(write(7), true, true);
        assert_eq!(steps(&mut machine), [ReadyStep::Flush]);
        machine.end_flush(false, &mut tokens);
        assert_eq!(steps(&mut machine), [ReadyStep::Data(0)]);
        machine.end_data(0, false, &mut tokens);
        assert_eq!((tokens.len(), steps(&mut machine)), (0, vec![ReadyStep::Flush]));
        machine.end_flush(false, &mut tokens);
        assert_eq!(tokens, [7]);
        assert!(machine.sequences.is_empty());
    }

    #[test]
    fn data_of_one_sequence_and_the_flush_of_another_are_independent() {
        let mut machine = FlushMachine::new(false);
        let mut tokens = Vec::new();
        machine.add_sequence(write(1), false, true);
        machine.add_flush(2);
        assert_eq!(steps(&mut machine), [ReadyStep::Data(0), ReadyStep::Flush]);
        // The data end during the flush, so they need the next one.
        machine.end_data(0, false, &mut tokens);
        assert!(tokens.is_empty() && steps(&mut machine).is_empty());
        machine.end_flush(false, &mut tokens);
        assert_eq!((tokens.as_slice(), steps(&mut machine)), (&[2][..], vec![ReadyStep::Flush]));
        machine.end_flush(false, &mut tokens);
        assert_eq!(tokens, [2, 1]);
    }

    #[test]
    fn a_failed_step_ends_its_sequence() {
        for fails_before in [true, false] {
            let mut machine = FlushMachine::new(false);
            let mut tokens = Vec::new();
            machine.add_sequence(write(3), true, true);
            assert_eq!(steps(&mut machine), [ReadyStep::Flush]);
            machine.end_flush(fails_before, &mut tokens);
            if !fails_before {
                assert_eq!(steps(&mut machine), [ReadyStep::Data(0)]);
                machine.end_data(0, true, &mut tokens);
            }
            assert_eq!((tokens.as_slice(), steps(&mut machine)), (&[3][..], vec![]), "{fails_before}");
            assert!(machine.sequences.is_empty());
        }
    }

    #[test]
    fn data_for_the_request_queue_carry_the_token_of_their_sequence() {
        let mut machine = FlushMachine::new(true);
        let mut tokens = Vec::new();
        machine.add_sequence(write(5), true, false);
        machine.next_step();
        machine.end_flush(false, &mut tokens);
        let bio = machine.next_due().expect("data for the queue");
        assert_eq!((bio.sector, sequence_of(bio.token)), (40, Some(0)));
        assert!(machine.has_queued_data() && !machine.is_ready() && sequence_of(5).is_none());
        machine.end_queued_data(0, false, &mut tokens);
        assert_eq!((tokens.as_slice(), machine.has_queued_data()), (&[5][..], false));
    }

    #[test]
    fn rules_follow_the_block_layer_and_the_cache_of_the_drive() {
        let of = |layer, cached, fua| FlushRules::of(Flushes::Layer, layer, cached, fua);
        assert_eq!(of(BlockLayer::V6_1, false, true), FlushRules::WriteThrough { barriers: false });
        assert_eq!(of(BlockLayer::V2_6_18, false, true), FlushRules::WriteThrough { barriers: true });
        assert_eq!(of(BlockLayer::V2_6_29, true, true), FlushRules::Barriers);
        assert_eq!(of(BlockLayer::V3_4, true, false), FlushRules::Sequences { fua: false });
        assert_eq!(of(BlockLayer::V6_1, true, true), FlushRules::Sequences { fua: true });
        let of_old = |flushes| FlushRules::of(flushes, BlockLayer::V2_6_18, true, false);
        assert_eq!(of_old(Flushes::Sequences), FlushRules::Sequences { fua: false });
    }
}
