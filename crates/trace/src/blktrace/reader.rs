//! Merges the files of all CPUs by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use super::order::Ordered;
use super::record_reader::RecordReader;
use crate::batch::{Batch, EVENTS_A_BATCH};
use crate::event::{Action, Event};
use crate::source::{DeferredError, Notice, ReadError, Source};
use crate::stream::Stream;

/// Reads a trace of blktrace: the files of its CPUs, or one file with the records of all CPUs.
///
/// Files are merged by time as blkparse does: a file keeps its order whatever its times are; among
/// records of the same time, the file that was read last comes first. Memory is independent of the
/// length of the trace: 256 KiB for each file and some thousands of events.
///
/// Damage is skipped and reported in [`Source::notices`]: garbage between records, an incomplete
/// last record, unknown actions, clocks that run backwards.
pub struct Reader {
    files: Vec<CpuFile>,
    /// The next event of each file that has not ended.
    next: BinaryHeap<Reverse<Next>>,
    /// The last assigned turn. Among files with the same time, the smallest turn comes first.
    turn: i64,
    is_begun: bool,
    /// The error of a file, returned after the events that were read before it.
    failed: DeferredError,
}

/// Position of a file in the merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    time_ns: u64,
    turn: i64,
    file: usize,
}

/// One file of the merge.
struct CpuFile {
    source: Ordered,
    batch: Batch,
    at: usize,
}

impl Reader {
    /// Creates a reader of the files of a trace. Reading starts with the first [`Source::next`].
    pub fn new(streams: Vec<Stream>) -> Reader {
        let file = |stream| CpuFile { source: Ordered::new(RecordReader::new(stream)), batch: Batch::new(), at: 0 };
        Reader {
            files: streams.into_iter().map(file).collect(),
            next: BinaryHeap::new(),
            turn: 0,
            is_begun: false,
            failed: DeferredError::default(),
        }
    }

    /// Sorts the files in the initial order of blkparse: the earliest first; among equal times the
    /// first file, then the others from the last to the second.
    fn begin(&mut self) {
        let mut order: Vec<Next> = Vec::new();
        for file in 0..self.files.len() {
            let Some(time_ns) = self.time_ns(file) else { continue };
            let next = Next { time_ns, turn: 0, file };
            let at = match order.first() {
                None => 0,
                Some(first) if time_ns < first.time_ns => 0,
                Some(_) => 1 + order.iter().skip(1).take_while(|other| other.time_ns < time_ns).count(),
            };
            order.insert(at, next);
        }
        let turns = (0i64..).zip(order);
        self.next = turns.map(|(turn, next)| Reverse(Next { turn, ..next })).collect();
    }

    /// Returns the time of a file's next event; None at its end.
    fn time_ns(&mut self, file: usize) -> Option<u64> {
        let file = self.files.get_mut(file)?;
        if file.at >= file.batch.len() {
            file.at = 0;
            if let Err(error) = file.source.next(&mut file.batch) {
                file.batch.clear();
                self.failed.set(error);
            }
        }
        file.batch.events().get(file.at).map(|event| event.time_ns)
    }

    /// Returns the batches of a single file unchanged.
    fn alone(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        match self.files.first_mut() {
            Some(file) => file.source.next(batch),
            None => Ok(()),
        }
    }
}

impl Source for Reader {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        if self.files.len() == 1 {
            return self.alone(batch);
        }
        if !self.is_begun {
            self.is_begun = true;
            self.begin();
        }
        while batch.len() < EVENTS_A_BATCH && !self.failed.is_set() {
            let Some(Reverse(Next { file: index, mut turn, .. })) = self.next.pop() else { break };
            let Some(file) = self.files.get_mut(index) else { break };
            let limit = self.next.peek().map_or((u64::MAX, i64::MAX), |Reverse(next)| (next.time_ns, next.turn));
            if file.copy(batch, turn, limit) {
                self.turn -= 1;
                turn = self.turn;
            }
            if let Some(time_ns) = self.time_ns(index) {
                self.next.push(Reverse(Next { time_ns, turn, file: index }));
            }
        }
        self.failed.report_after(batch).inspect_err(|_| self.next.clear())
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.files.iter_mut().flat_map(|file| file.source.notices()).collect()
    }
}

impl CpuFile {
    /// Copies events up to the next event of another file, and at least one. Returns true if one of
    /// them takes a turn.
    fn copy(&mut self, to: &mut Batch, turn: i64, limit: (u64, i64)) -> bool {
        let mut took_turn = false;
        let mut copied = 0;
        for event in self.batch.events().get(self.at..).unwrap_or_default() {
            // After an event that takes a turn, this file precedes all others of the same time.
            let turn = if took_turn { i64::MIN } else { turn };
            if copied > 0 && ((event.time_ns, turn) > limit || to.len() >= EVENTS_A_BATCH) {
                break;
            }
            to.push_from(event, &self.batch);
            took_turn |= takes_turn(event);
            copied += 1;
        }
        self.at += copied;
        took_turn
    }
}

/// Returns true if the event takes a turn in the merge. blkparse consumes notes that it does not
/// print without a turn.
fn takes_turn(event: &Event) -> bool {
    !event.action.is_note() || event.action == Action::Message && event.cgroup == 0
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reader of {} files", self.files.len())
    }
}
