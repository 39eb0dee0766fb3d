//! Sorts a file with the records of several CPUs, which are nearly in order of time because the
//! buffers of the CPUs are emptied in turn.

use super::record_reader::RecordReader;
use crate::batch::Batch;
use crate::source::{InputPosition, Notice, ReadError};

/// Minimum number of records of lookahead. Records that are further out of position stay late.
const WINDOW: usize = 16_384;

/// Returns the records of a file: by time if they are of several CPUs, in file order if they are of
/// one.
pub(super) struct Ordered {
    reader: RecordReader,
    state: State,
    /// Events that were read and not returned.
    buffered: Batch,
    /// Indices of `buffered` in order of time.
    order: Vec<u32>,
    /// Buffer for events that stay in `buffered`.
    spare: Batch,
    /// Time of the last returned event, in ns.
    last_ns: u64,
    was_sorted: bool,
    /// Number of records that came late, reported at the end.
    late: u64,
    /// The error that ended the file, returned after the buffered events.
    failed: Option<ReadError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was read.
    New,
    /// All records so far are of this CPU.
    One(u32),
    /// Records are of several CPUs.
    Several,
    /// Records are of several CPUs, and the file was read to its end.
    Over,
}

impl Ordered {
    /// Creates a sorter for a file.
    pub fn new(reader: RecordReader) -> Ordered {
        Ordered {
            reader,
            state: State::New,
            buffered: Batch::new(),
            order: Vec::new(),
            spare: Batch::new(),
            last_ns: 0,
            was_sorted: false,
            late: 0,
            failed: None,
        }
    }

    /// Takes the notices about the file.
    pub fn notices(&mut self) -> Vec<Notice> {
        self.reader.notices().take()
    }

    /// Replaces the contents of the batch by the next events; none at the end.
    pub fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        if self.state == State::New {
            self.begin();
        }
        if self.buffered.is_empty()
            && let Some(error) = self.failed.take()
        {
            return Err(error);
        }
        if let State::One(cpu) = self.state {
            if self.buffered.is_empty() {
                self.reader.fill(&mut self.buffered)?;
            }
            if self.buffered.events().iter().all(|event| event.cpu == cpu) {
                std::mem::swap(&mut self.buffered, batch);
                self.last_ns = batch.events().last().map_or(self.last_ns, |event| event.time_ns);
                return Ok(());
            }
            self.state = State::Several;
        }
        self.sort(batch);
        Ok(())
    }

    /// Reads a window of records and determines whether they are of one CPU.
    fn begin(&mut self) {
        self.read_ahead(WINDOW);
        let mut cpus = self.buffered.events().iter().map(|event| event.cpu);
        let first = cpus.next().unwrap_or_default();
        let is_of_one = cpus.all(|cpu| cpu == first);
        if is_of_one || self.state == State::New {
            self.state = if is_of_one { State::One(first) } else { State::Several };
        }
    }

    /// Reads until `count` events are buffered, or to the end.
    fn read_ahead(&mut self, count: usize) {
        while self.buffered.len() < count {
            let before = self.buffered.len();
            self.failed = self.reader.fill(&mut self.buffered).err();
            if self.buffered.len() == before {
                self.state = State::Over;
                break;
            }
        }
    }

    fn sort(&mut self, batch: &mut Batch) {
        if self.state == State::Several {
            self.read_ahead(2 * WINDOW);
        }
        let events = self.buffered.events();
        let returned = if self.state == State::Over { events.len() } else { WINDOW.min(events.len()) };
        self.order.clear();
        self.order.extend(0..events.len() as u32);
        let is_sorted = events.is_sorted_by_key(|event| event.time_ns);
        if !is_sorted {
            self.order.sort_by_key(|index| events.get(*index as usize).map_or(0, |event| event.time_ns));
        }
        self.spare.clear();
        for (position, index) in self.order.iter().enumerate() {
            let Some(event) = events.get(*index as usize) else { continue };
            if position >= returned {
                self.spare.push_from(event, &self.buffered);
                continue;
            }
            self.late += u64::from(event.time_ns < self.last_ns && event.has_moment());
            self.last_ns = self.last_ns.max(event.time_ns);
            batch.push_from(event, &self.buffered);
        }
        std::mem::swap(&mut self.buffered, &mut self.spare);
        self.report(is_sorted);
    }

    fn report(&mut self, is_sorted: bool) {
        let notices = self.reader.notices();
        if !is_sorted && !self.was_sorted {
            self.was_sorted = true;
            let what = format!(
                "the records of several CPUs alternate in this file: they were sorted by time within windows of {WINDOW} records"
            );
            notices.add(InputPosition::All, what);
        }
        if self.buffered.is_empty() && self.late > 0 {
            let late = std::mem::take(&mut self.late);
            let what = format!("{late} records are out of position by more than {WINDOW} records: they come late");
            notices.add(InputPosition::All, what);
        }
    }
}
