//! Common parts of the text readers: line by line, with errors that name the line. Lines that
//! cannot be read are skipped up to a limit (`skipped.rs`), for all formats alike.

mod clock;
mod durations;
mod fields;
mod names;
mod request_lines;
mod request_sorter;
mod skipped;
#[doc(hidden)]
pub mod test_support;
mod titled;

pub use clock::{Epoch, Head, date_ns, decide_epoch, decide_unit, ticks_ns};
pub use clock::{TimeUnit, time_ns};
pub use durations::{CompletionClock, InventedOffsets};
pub use fields::{Fields, Separator, decimal_ns, device_of, number, parse_rwbs, pid_of, shown};
pub use names::{NamedDevices, NamedProcesses, SharedNames, device_of_numbers};
pub use request_lines::{RequestFormat, RequestLines, Units, read_or_write};
pub use request_sorter::{Request, RequestSorter};
pub use skipped::LineError;
pub use titled::{TitledColumns, TitledRow, has_titles};

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::batch::{Batch, EVENTS_A_BATCH};
use crate::lines::Lines;
use crate::notices::NoticeCollector;
use crate::source::{InputPosition, Notice, ReadError, Source};
use crate::stream::Stream;
use skipped::SkippedLines;

/// Maximum number of bytes without a record. Prefaces have a few KiB; more means another format.
const BYTES_WITHOUT_RECORD_MAX: u64 = 16 << 20;

/// Parser of the lines of one format.
pub trait LineFormat {
    /// Parses a line. Returns true if the line contains a record.
    ///
    /// # Errors
    /// Fails on an invalid line; the message contains the value and the expected form.
    fn line(&mut self, line: &[u8], out: &mut LineOutput<'_>) -> Result<bool, LineError>;

    /// Ends the text: emits buffered events, about one batch for each call. Returns true if no
    /// events are left.
    fn end(&mut self, _out: &mut LineOutput<'_>) -> bool {
        true
    }
}

/// Receives the events and notices of a line.
pub struct LineOutput<'a> {
    /// Receives the events.
    pub batch: &'a mut Batch,
    /// Receives the notices.
    pub notices: &'a mut NoticeCollector,
    /// Position of the current line.
    pub position: InputPosition,
}

/// How a text is read.
#[derive(Clone, Debug, Default)]
pub struct TextOptions {
    /// Makes each line that cannot be read an error. Otherwise such lines are skipped, with notices
    /// of the first five and of their number. They are an error if none of the first 20 lines can
    /// be read, if they are more than 100 and more than 1 % of the lines so far, or if they are
    /// more than half of all lines.
    pub is_strict: bool,
    /// Set by the decompressor when the compressed input ends early; the last line is incomplete
    /// then, even if it can be read.
    pub cut: Option<Arc<AtomicBool>>,
}

/// Reads a text of one format as a source.
pub struct TextSource<F> {
    lines: Lines,
    format: F,
    notices: NoticeCollector,
    /// An error found after events that must be returned first.
    pending: Option<ReadError>,
    /// Bytes since the last record.
    bytes_without_record: u64,
    records: u64,
    skipped: SkippedLines,
    cut: Option<Arc<AtomicBool>>,
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
        TextSource {
            lines: Lines::new(stream),
            format,
            notices,
            pending: None,
            bytes_without_record: 0,
            records: 0,
            skipped: SkippedLines::default(),
            cut: None,
            state: State::Reading,
        }
    }

    /// Sets how the text is read.
    #[must_use]
    pub fn with_options(self, options: &TextOptions) -> TextSource<F> {
        TextSource { skipped: SkippedLines::new(options.is_strict), cut: options.cut.clone(), ..self }
    }

    /// Adds a notice about the whole input.
    pub fn add_notice(&mut self, what: impl Into<String>) {
        self.notices.add(InputPosition::All, what);
    }

    /// Reads one line. Returns false at the end.
    fn read_line(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        let Some(line) = self.lines.next_line()? else {
            return match self.skipped.end(self.records, &mut self.notices) {
                Ok(()) => Ok(false),
                Err((position, what)) => Err(self.bad(position, what)),
            };
        };
        let (position, whole, bytes) = (InputPosition::Line(line.number), line.whole, line.bytes.len() as u64);
        let is_cut = !whole && self.cut.as_ref().is_some_and(|cut| cut.load(Ordering::Relaxed));
        let mut out = LineOutput { batch, notices: &mut self.notices, position };
        let result = if is_cut {
            Err(LineError::Line("the compressed file ends in it".to_owned()))
        } else {
            self.format.line(line.bytes, &mut out)
        };
        let skipped = match result {
            Ok(true) => {
                self.records += 1;
                self.bytes_without_record = 0;
                return Ok(true);
            }
            Ok(false) => Ok(()),
            Err(LineError::Input(reason)) => Err((position, reason)),
            Err(LineError::Line(reason)) if is_cut || (!whole && self.records > 0) => {
                self.skipped.skip_last(position, &reason, &mut self.notices)
            }
            Err(LineError::Line(reason)) => self.skipped.skip(position, reason, self.records, &mut self.notices),
        };
        skipped.map_err(|(position, what)| self.bad(position, what))?;
        self.bytes_without_record += bytes + 1;
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

    fn skipped_lines(&self) -> u64 {
        self.skipped.count()
    }
}

impl fmt::Debug for LineOutput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LineOutput({:?}, {} events)", self.position, self.batch.len())
    }
}

impl<F> fmt::Debug for TextSource<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TextSource({}:{})", self.lines.name(), self.lines.number())
    }
}
