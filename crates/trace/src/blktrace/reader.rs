//! The files of all CPUs, merged by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use super::lane::Lane;
use super::order::Ordered;
use crate::batch::{Batch, EVENTS_A_BATCH};
use crate::event::{Action, Event};
use crate::open::Stream;
use crate::source::{Notice, ReadError, Source};

/// Reads a trace of blktrace: the files of its CPUs, or one file with the records of all.
///
/// Files are merged by time as blkparse does it: what is in one file keeps its order, whatever its times; of records of the same time those come first that lie
/// in the file that was read from last. Memory does not grow with the trace: 256 KiB a file and some thousands of events.
///
/// Damage is passed over and told ([`Source::notices`]): garbage between records, a last record that is cut off, actions that are not known, clocks that run back.
pub struct Reader {
    tracks: Vec<Track>,
    /// The next event of each track that is not over.
    next: BinaryHeap<Reverse<Next>>,
    /// The last turn that was given: of tracks with the same time, that with the smallest comes first.
    turn: i64,
    is_begun: bool,
    /// What a file failed with, told behind what was read before.
    failed: Option<ReadError>,
}

/// A file's place among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    time_ns: u64,
    turn: i64,
    track: usize,
}

/// One file.
struct Track {
    source: Ordered,
    batch: Batch,
    at: usize,
}

impl Reader {
    /// Reads the files of a trace, one a CPU, or one. They are begun to be read with the first [`Source::next`].
    pub fn new(streams: Vec<Stream>) -> Reader {
        let track = |stream| Track { source: Ordered::new(Lane::new(stream)), batch: Batch::new(), at: 0 };
        Reader {
            tracks: streams.into_iter().map(track).collect(),
            next: BinaryHeap::new(),
            turn: 0,
            is_begun: false,
            failed: None,
        }
    }

    /// Puts the tracks into the order in which blkparse begins: the earliest first, and among equals the first file, behind it the last to the second.
    fn begin(&mut self) {
        let mut order: Vec<Next> = Vec::new();
        for track in 0..self.tracks.len() {
            let Some(time_ns) = self.time_ns(track) else { continue };
            let next = Next { time_ns, turn: 0, track };
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

    /// The time of a track's next event; none at its end.
    fn time_ns(&mut self, track: usize) -> Option<u64> {
        let track = self.tracks.get_mut(track)?;
        if track.at >= track.batch.len() {
            track.at = 0;
            if let Err(error) = track.source.next(&mut track.batch) {
                track.batch.clear();
                self.failed.get_or_insert(error);
            }
        }
        track.batch.events().get(track.at).map(|event| event.time_ns)
    }

    /// Only one file is left: its batches are handed on as they are.
    fn alone(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        match self.tracks.first_mut() {
            Some(track) => track.source.next(batch),
            None => Ok(()),
        }
    }
}

impl Source for Reader {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        if self.tracks.len() == 1 {
            return self.alone(batch);
        }
        if !self.is_begun {
            self.is_begun = true;
            self.begin();
        }
        while batch.len() < EVENTS_A_BATCH && self.failed.is_none() {
            let Some(Reverse(Next { track: index, mut turn, .. })) = self.next.pop() else { break };
            let Some(track) = self.tracks.get_mut(index) else { break };
            let limit = self.next.peek().map_or((u64::MAX, i64::MAX), |Reverse(next)| (next.time_ns, next.turn));
            if track.copy(batch, turn, limit) {
                self.turn -= 1;
                turn = self.turn;
            }
            if let Some(time_ns) = self.time_ns(index) {
                self.next.push(Reverse(Next { time_ns, turn, track: index }));
            }
        }
        match self.failed.take() {
            Some(error) if batch.is_empty() => {
                self.next.clear();
                Err(error)
            }
            failed => {
                self.failed = failed;
                Ok(())
            }
        }
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.tracks.iter_mut().flat_map(|track| track.source.notices()).collect()
    }
}

impl Track {
    /// Copies events up to the place of another track, and at least one: whether there was one among them that takes a turn.
    fn copy(&mut self, to: &mut Batch, turn: i64, limit: (u64, i64)) -> bool {
        let mut took_turn = false;
        let mut copied = 0;
        for event in self.batch.events().get(self.at..).unwrap_or_default() {
            // Behind one that took its turn, this track goes on before all others of the same time.
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

/// blkparse takes notes that it does not print away from a file before it looks at what comes next.
fn takes_turn(event: &Event) -> bool {
    !event.action.is_note() || event.action == Action::Message && event.cgroup == 0
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reader of {} files", self.tracks.len())
    }
}
