//! The binary records.

use super::operation;
use crate::batch::{Batch, EVENTS_A_BATCH};
use crate::event::DeviceId;
use crate::notices::NoticeCollector;
use crate::source::{InputPosition, Notice, ReadError, Source};
use crate::stream::Stream;
use crate::text::{LineOutput, Request, RequestSorter};

/// Number of records that are examined to detect the format.
const RECORDS_EXAMINED: usize = 64;
/// Maximum number of damaged records in a row; more means another format.
const DAMAGED_MAX: u64 = 4096;

/// Version of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// Without response times.
    One,
    /// With response times.
    Two,
}

/// The fields of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    version: u16,
    command: u16,
    bytes: u32,
    block: u64,
    time_us: u64,
    response_us: Option<u64>,
}

impl Version {
    /// Detects the version: all records at the beginning have its number, and the first is a read
    /// or write.
    pub fn of(head: &[u8]) -> Option<Version> {
        [Version::One, Version::Two].into_iter().find(|version| {
            let records: Vec<Record> = head
                .chunks_exact(version.bytes())
                .take(RECORDS_EXAMINED)
                .filter_map(|bytes| version.record(bytes))
                .collect();
            let is_right = |record: &Record| record.version >> 8 == version.number();
            records.first().is_some_and(|first| operation(first.command).is_some()) && records.iter().all(is_right)
        })
    }

    /// Length of a record in bytes.
    const fn bytes(self) -> usize {
        match self {
            Version::One => 32,
            Version::Two => 40,
        }
    }

    /// Number of the version in the records.
    pub const fn number(self) -> u16 {
        match self {
            Version::One => 1,
            Version::Two => 2,
        }
    }

    fn record(self, bytes: &[u8]) -> Option<Record> {
        let half = |at: usize| bytes.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes);
        let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let long = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let (command, version, length, response_us) = match self {
            Version::One => (half(12)?, half(14)?, word(4)?, None),
            Version::Two => (half(0)?, half(2)?, word(8)?, Some(long(32)?)),
        };
        Some(Record { version, command, bytes: length, block: long(16)?, time_us: long(24)?, response_us })
    }
}

/// Reads binary records.
pub(crate) struct Reader {
    stream: Stream,
    version: Version,
    notices: NoticeCollector,
    requests: RequestSorter,
    /// Bytes that were read and not parsed.
    unread: Vec<u8>,
    position: u64,
    damaged: u64,
    at_end: bool,
    is_over: bool,
    pending: Option<ReadError>,
}

impl Reader {
    /// Creates a reader for records of a version.
    pub fn new(stream: Stream, version: Version) -> Reader {
        let notices = NoticeCollector::new(&stream.name);
        Reader {
            stream,
            version,
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

    /// Reads a buffer and takes its whole records.
    fn read_records(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut buffer = vec![0; 64 << 10];
        let read = self.stream.read_some(&mut buffer)?;
        self.at_end = read == 0;
        self.unread.extend_from_slice(buffer.get(..read).unwrap_or_default());
        let whole = self.unread.len() / self.version.bytes() * self.version.bytes();
        let records: Vec<u8> = self.unread.drain(..whole).collect();
        records.chunks_exact(self.version.bytes()).try_for_each(|bytes| self.take(bytes, batch))?;
        if self.at_end && !self.unread.is_empty() {
            let what =
                format!("the last record is incomplete: {} of {} bytes", self.unread.len(), self.version.bytes());
            self.notices.add(InputPosition::Byte(self.position), what);
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8], batch: &mut Batch) -> Result<(), ReadError> {
        let position = InputPosition::Byte(self.position);
        self.position += bytes.len() as u64;
        let Some(record) = self.version.record(bytes) else { return Ok(()) };
        let mut out = LineOutput { batch, notices: &mut self.notices, position };
        let bad = |file: &str, what: String| ReadError::Bad { file: file.to_owned(), position, what };
        if record.version >> 8 != self.version.number() {
            let what = || format!("version {:#06x} instead of {:#04x}xx", record.version, self.version.number());
            out.notices.count("damaged records were skipped", position, what);
            self.damaged += 1;
            if self.damaged > DAMAGED_MAX {
                let what = format!("more than {DAMAGED_MAX} damaged records in a row, here {}", what());
                return Err(bad(&self.stream.name, what));
            }
            return Ok(());
        }
        self.damaged = 0;
        let Some(op) = operation(record.command) else {
            let kind = "SCSI commands other than reads, writes and unmaps are left out";
            out.notices.count(kind, position, || format!("command {:#04x}", record.command));
            return Ok(());
        };
        let request = Request {
            time_ns: record.time_us.saturating_mul(1000),
            response_ns: record.response_us.map(|us| us.saturating_mul(1000)),
            device: DeviceId(0),
            op,
            offset: record.block.saturating_mul(512),
            bytes: u64::from(record.bytes),
            ..Request::default()
        };
        self.requests.take(&request, &mut out).map_err(|what| bad(&self.stream.name, what))
    }
}

impl Source for Reader {
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
