//! Binary inputs of records of a fixed length, each with a request.

use std::fmt;

use crate::batch::{Batch, EVENTS_A_BATCH};
use crate::notices::NoticeCollector;
use crate::source::{InputPosition, Notice, ReadError, Source};
use crate::stream::Stream;
use crate::text::{LineError, LineOutput, Request, RequestSorter};

/// Maximum number of damaged records in a row; more means another format.
const DAMAGED_MAX: u64 = 4096;
/// Number of bytes that are read at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// Parser of the records of one format.
pub trait RecordFormat {
    /// Length of the header before the first record in bytes.
    fn header_bytes(&self) -> usize {
        0
    }

    /// Length of a record in bytes; at least 1.
    fn record_bytes(&self) -> usize;

    /// Parses a record. Returns None for a record without a request on the disk.
    ///
    /// # Errors
    /// Fails on a damaged record.
    fn record(&mut self, bytes: &[u8], out: &mut LineOutput<'_>) -> Result<Option<Request>, LineError>;
}

/// Reads an input of records as a source. Damaged records are skipped with a notice, up to 4,096 in
/// a row.
pub struct RecordSource<F> {
    stream: Stream,
    format: F,
    notices: NoticeCollector,
    requests: RequestSorter,
    /// Bytes that were read and not parsed.
    unread: Vec<u8>,
    /// Position of the next byte to parse in the decompressed input.
    position: u64,
    /// Bytes of the header that were not skipped yet.
    header_bytes: usize,
    damaged: u64,
    at_end: bool,
    is_over: bool,
    pending: Option<ReadError>,
}

impl<F: RecordFormat> RecordSource<F> {
    /// Creates a source for an input.
    pub fn new(stream: Stream, format: F) -> RecordSource<F> {
        let notices = NoticeCollector::new(&stream.name);
        RecordSource {
            header_bytes: format.header_bytes(),
            stream,
            format,
            notices,
            requests: RequestSorter::default(),
            unread: Vec::new(),
            position: 0,
            damaged: 0,
            at_end: false,
            is_over: false,
            pending: None,
        }
    }

    /// Adds a notice about the whole input.
    pub fn add_notice(&mut self, what: impl Into<String>) {
        self.notices.add(InputPosition::All, what);
    }

    /// Reads a buffer and takes its whole records.
    fn read_records(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let read = self.stream.read_some(&mut buffer)?;
        self.at_end = read == 0;
        self.unread.extend_from_slice(buffer.get(..read).unwrap_or_default());
        let header = self.header_bytes.min(self.unread.len());
        self.unread.drain(..header);
        self.header_bytes -= header;
        self.position += header as u64;
        let record_bytes = self.format.record_bytes().max(1);
        let whole = self.unread.len() / record_bytes * record_bytes;
        let records: Vec<u8> = self.unread.drain(..whole).collect();
        records.chunks_exact(record_bytes).try_for_each(|bytes| self.take(bytes, batch))?;
        if self.at_end && !self.unread.is_empty() {
            let what = format!("the last record is incomplete: {} of {record_bytes} bytes", self.unread.len());
            self.notices.add(InputPosition::Byte(self.position), what);
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8], batch: &mut Batch) -> Result<(), ReadError> {
        let position = InputPosition::Byte(self.position);
        self.position += bytes.len() as u64;
        let mut out = LineOutput { batch, notices: &mut self.notices, position };
        let taken = match self.format.record(bytes, &mut out) {
            Ok(Some(request)) => self.requests.take(&request, &mut out),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        let bad = |what: String| Err(ReadError::Bad { file: self.stream.name.clone(), position, what });
        match taken {
            Ok(()) => {
                self.damaged = 0;
                Ok(())
            }
            Err(LineError::Input(what)) => bad(what),
            Err(LineError::Line(what)) => {
                self.damaged += 1;
                if self.damaged > DAMAGED_MAX {
                    return bad(format!("more than {DAMAGED_MAX} damaged records in a row, here {what}"));
                }
                self.notices.count("damaged records were skipped", position, || what);
                Ok(())
            }
        }
    }
}

impl<F: RecordFormat> Source for RecordSource<F> {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        while batch.len() < EVENTS_A_BATCH && !self.at_end && self.pending.is_none() {
            self.pending = self.read_records(batch).err();
        }
        // Events before an error are returned first.
        while (self.at_end || self.pending.is_some()) && !self.is_over && batch.len() < EVENTS_A_BATCH {
            let mut out = LineOutput { batch, notices: &mut self.notices, position: InputPosition::All };
            if self.requests.end(&mut out) {
                self.notices.end();
                self.is_over = true;
            }
        }
        if batch.is_empty()
            && let Some(error) = self.pending.take()
        {
            self.at_end = true;
            return Err(error);
        }
        Ok(())
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.notices.take()
    }
}

impl<F> fmt::Debug for RecordSource<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordSource({} at byte {})", self.stream.name, self.position)
    }
}

/// Returns the little-endian number of two bytes at a position of a record.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

/// Returns the little-endian number of four bytes at a position of a record.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

/// Returns the little-endian number of eight bytes at a position of a record.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}
