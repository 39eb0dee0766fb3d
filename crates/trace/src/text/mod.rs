//! What the readers of texts share: a line at a time, errors that name it, and a tail that may be cut.

mod clock;
mod fields;
mod requests;
#[cfg(test)]
pub(crate) mod test;

pub(crate) use clock::{Epoch, Head, decide_epoch, decide_unit};
pub use clock::{TimeUnit, time_ns};
pub(crate) use fields::{Fields, decimal_ns, device_of, number, pid_of, shown, take_rwbs};
pub(crate) use requests::{Request, Requests};

use std::fmt;

use crate::batch::{Batch, EVENTS_A_BATCH};
use crate::lines::Lines;
use crate::notices::Notices;
use crate::open::Stream;
use crate::source::{Notice, Place, ReadError, Source};

/// So many bytes may pass without a record: prefaces are a few KiB, and what goes on for longer is no trace.
const BARREN_BYTES_MAX: u64 = 16 << 20;

/// One format of lines.
pub(crate) trait LineFormat {
    /// Takes a line in, and says whether there was a record in it.
    ///
    /// # Errors
    /// What is wrong with the line, with the value that stands there and what would be right.
    fn line(&mut self, line: &[u8], out: &mut Taken<'_>) -> Result<bool, String>;

    /// The text is over: what was held back comes out, at most about a batch of it; to be called until it says that nothing is left.
    fn end(&mut self, _out: &mut Taken<'_>) -> bool {
        true
    }
}

/// Where a line's events and remarks go.
pub(crate) struct Taken<'a> {
    pub batch: &'a mut Batch,
    pub notices: &'a mut Notices,
    /// The line that is taken in.
    pub place: Place,
}

/// A text of one format, as a source.
pub(crate) struct Text<F> {
    lines: Lines,
    format: F,
    notices: Notices,
    /// What was found after events that had to be handed out first.
    pending: Option<ReadError>,
    /// Bytes since the last record.
    barren_bytes: u64,
    records: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reading,
    Ending,
    Over,
}

impl<F: LineFormat> Text<F> {
    /// Reads an input in a format.
    pub fn new(stream: Stream, format: F) -> Text<F> {
        let notices = Notices::new(&stream.name);
        let lines = Lines::new(stream);
        Text { lines, format, notices, pending: None, barren_bytes: 0, records: 0, state: State::Reading }
    }

    /// What was assumed before the first line was read.
    pub fn tell(&mut self, what: impl Into<String>) {
        self.notices.tell(Place::All, what);
    }

    /// Reads one line; false at the end.
    fn read_line(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        let Some(line) = self.lines.next()? else { return Ok(false) };
        let (place, whole, bytes) = (Place::Line(line.number), line.whole, line.bytes.len() as u64);
        let mut out = Taken { batch, notices: &mut self.notices, place };
        match self.format.line(line.bytes, &mut out) {
            Ok(true) => {
                self.records += 1;
                self.barren_bytes = 0;
            }
            Ok(false) => self.barren_bytes += bytes + 1,
            Err(what) if !whole && self.records > 0 => {
                self.notices.tell(place, format!("the last line is cut and was left out: {what}"));
            }
            Err(what) => return Err(self.bad(place, what)),
        }
        if self.barren_bytes > BARREN_BYTES_MAX {
            let what =
                format!("{} MiB without a record up to here: this is no trace of the format", BARREN_BYTES_MAX >> 20);
            return Err(self.bad(place, what));
        }
        Ok(true)
    }

    fn bad(&self, place: Place, what: String) -> ReadError {
        ReadError::Bad { file: self.lines.name().to_owned(), place, what }
    }

    fn end(&mut self, batch: &mut Batch) {
        let mut out = Taken { batch, notices: &mut self.notices, place: Place::All };
        if self.format.end(&mut out) {
            self.notices.end();
            self.state = State::Over;
        }
    }
}

impl<F: LineFormat> Source for Text<F> {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        if let Some(error) = self.pending.take() {
            self.state = State::Over;
            return Err(error);
        }
        while batch.len() < EVENTS_A_BATCH && self.state == State::Reading {
            match self.read_line(batch) {
                Ok(true) => {}
                Ok(false) => self.state = State::Ending,
                Err(error) => {
                    // What was read before is worth having: it goes first.
                    while self.state != State::Over {
                        self.end(batch);
                    }
                    if batch.is_empty() {
                        return Err(error);
                    }
                    self.pending = Some(error);
                }
            }
        }
        while batch.len() < EVENTS_A_BATCH && self.state == State::Ending {
            self.end(batch);
        }
        Ok(())
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.notices.take()
    }
}

impl<F> fmt::Debug for Text<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({}:{})", self.lines.name(), self.lines.number())
    }
}
