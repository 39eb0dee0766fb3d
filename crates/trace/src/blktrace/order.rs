//! Files that hold the records of several CPUs: nearly in the order of time, as each CPU's buffer was emptied in turn.

use super::lane::Lane;
use crate::batch::Batch;
use crate::source::{Notice, Place, ReadError};

/// So many records are looked ahead, at least: what is further from its place than that stays behind.
const WINDOW: usize = 16_384;

/// The records of one file in the order of time, if they are of several CPUs; in that of the file, if they are of one.
pub(super) struct Ordered {
    lane: Lane,
    state: State,
    /// What was read and not handed out.
    held: Batch,
    /// Its order.
    order: Vec<u32>,
    /// Memory for what stays behind.
    spare: Batch,
    /// The time of what was handed out last, in ns.
    last_ns: u64,
    was_sorted: bool,
    /// Records that came late, of which is told once, at the end.
    late: u64,
    /// What ended the file, told behind what was held.
    failed: Option<ReadError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was read yet.
    New,
    /// All records were of this CPU so far.
    One(u32),
    /// They are of several.
    Several,
    /// Several, and all is read.
    Over,
}

impl Ordered {
    /// Those of a file.
    pub fn new(lane: Lane) -> Ordered {
        Ordered {
            lane,
            state: State::New,
            held: Batch::new(),
            order: Vec::new(),
            spare: Batch::new(),
            last_ns: 0,
            was_sorted: false,
            late: 0,
            failed: None,
        }
    }

    /// What was noticed.
    pub fn notices(&mut self) -> Vec<Notice> {
        self.lane.notices().take()
    }

    /// Replaces what is in the batch by the next events; none at the end.
    pub fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        if self.state == State::New {
            self.begin();
        }
        if self.held.is_empty()
            && let Some(error) = self.failed.take()
        {
            return Err(error);
        }
        if let State::One(cpu) = self.state {
            if self.held.is_empty() {
                self.lane.fill(&mut self.held)?;
            }
            if self.held.events().iter().all(|event| event.cpu == cpu) {
                std::mem::swap(&mut self.held, batch);
                self.last_ns = batch.events().last().map_or(self.last_ns, |event| event.time_ns);
                return Ok(());
            }
            self.state = State::Several;
        }
        self.sort(batch);
        Ok(())
    }

    /// Reads a window, to see whether it is of one CPU.
    fn begin(&mut self) {
        self.read_ahead(WINDOW);
        let mut cpus = self.held.events().iter().map(|event| event.cpu);
        let first = cpus.next().unwrap_or_default();
        let is_of_one = cpus.all(|cpu| cpu == first);
        if is_of_one || self.state == State::New {
            self.state = if is_of_one { State::One(first) } else { State::Several };
        }
    }

    /// Reads until so many are held, or to the end.
    fn read_ahead(&mut self, count: usize) {
        while self.held.len() < count {
            let before = self.held.len();
            self.failed = self.lane.fill(&mut self.held).err();
            if self.held.len() == before {
                self.state = State::Over;
                break;
            }
        }
    }

    fn sort(&mut self, batch: &mut Batch) {
        if self.state == State::Several {
            self.read_ahead(2 * WINDOW);
        }
        let events = self.held.events();
        let handed_out = if self.state == State::Over { events.len() } else { WINDOW.min(events.len()) };
        self.order.clear();
        self.order.extend(0..events.len() as u32);
        let is_sorted = events.is_sorted_by_key(|event| event.time_ns);
        if !is_sorted {
            self.order.sort_by_key(|index| events.get(*index as usize).map_or(0, |event| event.time_ns));
        }
        self.spare.clear();
        for (place, index) in self.order.iter().enumerate() {
            let Some(event) = events.get(*index as usize) else { continue };
            if place >= handed_out {
                self.spare.push_from(event, &self.held);
                continue;
            }
            self.late += u64::from(event.time_ns < self.last_ns && event.has_moment());
            self.last_ns = self.last_ns.max(event.time_ns);
            batch.push_from(event, &self.held);
        }
        std::mem::swap(&mut self.held, &mut self.spare);
        self.tell(is_sorted);
    }

    fn tell(&mut self, is_sorted: bool) {
        let notices = self.lane.notices();
        if !is_sorted && !self.was_sorted {
            self.was_sorted = true;
            let what = format!(
                "the records of several CPUs lie in this file in turns: they were sorted by time within windows of {WINDOW} records"
            );
            notices.tell(Place::All, what);
        }
        if self.held.is_empty() && self.late > 0 {
            let late = std::mem::take(&mut self.late);
            let what = format!("{late} records are further from their place than {WINDOW} records: they come late");
            notices.tell(Place::All, what);
        }
    }
}
