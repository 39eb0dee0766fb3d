//! Common parts of the text readers: line by line, with errors that name the line, and tolerance
//! for an incomplete last line.

mod clock;
mod device_names;
mod durations;
mod fields;
mod request_lines;
mod request_sorter;
#[cfg(test)]
pub(crate) mod test_support;

pub(crate) use clock::{Epoch, Head, decide_epoch, decide_unit};
pub use clock::{TimeUnit, time_ns};
pub(crate) use device_names::{DeviceNames, NamedDevices, device_of_numbers};
pub(crate) use durations::{CompletionClock, InventedOffsets};
pub(crate) use fields::{Fields, decimal_ns, device_of, number, parse_rwbs, pid_of, shown};
pub(crate) use request_lines::{RequestFormat, RequestLines, Units, read_or_write};
pub(crate) use request_sorter::{Request, RequestSorter};

use std::fmt;

use crate::batch::{Batch, EVENTS_A_BATCH};
use crate::lines::Lines;
use crate::notices::NoticeCollector;
use crate::source::{InputPosition, Notice, ReadError, Source};
use crate::stream::Stream;

/// Maximum number of bytes without a record. Prefaces have a few KiB; more means another format.
const BYTES_WITHOUT_RECORD_MAX: u64 = 16 << 20;

/// Parser of the lines of one format.
pub(crate) trait LineFormat {
    /// Parses a line. Returns true if the line contains a record.
    ///
    /// # Errors
    /// Fails on an invalid line; the message contains the value and the expected form.
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, String>;

    /// Ends the text: emits buffered events, about one batch for each call. Returns true if no
    /// events are left.
    fn end(&mut self, _out: &mut LineOutput<'_>) -> bool {
        true
    }
}

/// Receives the events and notices of a line.
pub(crate) struct LineOutput<'a> {
    pub batch: &'a mut Batch,
    pub notices: &'a mut NoticeCollector,
    /// Position of the current line.
    pub position: InputPosition,
}

/// Reads a text of one format as a source.
pub(crate) struct TextSource<F> {
    lines: Lines,
    format: F,
    notices: NoticeCollector,
    /// An error found after events that must be returned first.
    pending: Option<ReadError>,
    /// Bytes since the last record.
    bytes_without_record: u64,
    records: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reading,
    Ending,
    Over,
}

impl<F: LineFormat> TextSource<F> {
    /// Creates a source for an input.
    pub fn new(stream: Stream, format: F) -> TextSource<F> {
        let notices = NoticeCollector::new(&stream.name);
        let lines = Lines::new(stream);
        TextSource { lines, format, notices, pending: None, bytes_without_record: 0, records: 0, state: State::Reading }
    }

    /// Adds a notice about the whole input.
    pub fn add_notice(&mut self, what: impl Into<String>) {
        self.notices.add(InputPosition::All, what);
    }

    /// Reads one line. Returns false at the end.
    fn read_line(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        let Some(line) = self.lines.next()? else { return Ok(false) };
        let (position, whole, bytes) = (InputPosition::Line(line.number), line.whole, line.bytes.len() as u64);
        let mut out = LineOutput { batch, notices: &mut self.notices, position };
        match self.format.line(line.bytes, &mut out) {
            Ok(true) => {
                self.records += 1;
                self.bytes_without_record = 0;
            }
            Ok(false) => self.bytes_without_record += bytes + 1,
            Err(what) if !whole && self.records > 0 => {
                self.notices.add(position, format!("the last line is incomplete and was skipped: {what}"));
            }
            Err(what) => return Err(self.bad(position, what)),
        }
        if self.bytes_without_record > BYTES_WITHOUT_RECORD_MAX {
            let what = format!(
                "{} MiB without a record up to here: the input does not have this format",
                BYTES_WITHOUT_RECORD_MAX >> 20
            );
            return Err(self.bad(position, what));
        }
        Ok(true)
    }

    fn bad(&self, position: InputPosition, what: String) -> ReadError {
        ReadError::Bad { file: self.lines.name().to_owned(), position, what }
    }

    fn end(&mut self, batch: &mut Batch) {
        let mut out = LineOutput { batch, notices: &mut self.notices, position: InputPosition::All };
        if self.format.end(&mut out) {
            self.notices.end();
            self.state = State::Over;
        }
    }
}

impl<F: LineFormat> Source for TextSource<F> {
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
                    // Events before the error are returned first.
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

impl<F> fmt::Debug for TextSource<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TextSource({}:{})", self.lines.name(), self.lines.number())
    }
}
