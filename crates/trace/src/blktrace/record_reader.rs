//! Parses the records of one file.

use super::record::{Decoded, Fields, MAGIC_BASE, Version};
use super::{CPU_MAX, MAGIC};
use crate::batch::{Batch, EVENTS_A_BATCH};
use crate::notices::NoticeCollector;
use crate::source::{InputPosition, ReadError};
use crate::stream::Stream;

/// Size of the read buffer in bytes: more than the longest record with its payload.
const BUFFER_BYTES: usize = 256 << 10;
/// Maximum number of consecutive bytes without a record; more means that the input is no trace.
const GARBAGE_BYTES_MAX: u64 = 16 << 20;
/// Length of the shortest record in bytes.
const RECORD_BYTES_MIN: usize = 48;

/// Reads the records of a file in file order.
pub(super) struct RecordReader {
    stream: Stream,
    buffer: Vec<u8>,
    /// Start of the bytes in the buffer that were not parsed yet.
    start: usize,
    /// End of the bytes in the buffer that were not parsed yet.
    end: usize,
    /// Offset of the buffer in the input.
    offset: u64,
    at_end: bool,
    /// True if the records are big-endian; None before the first record.
    is_big: Option<bool>,
    /// Number of bytes without a record since the last record.
    garbage_bytes: u64,
    /// Skipped bytes: total, number of places, and offset of the first.
    skipped: (u64, u64, u64),
    /// The error that ended the file, returned after the events before it.
    failed: Option<ReadError>,
    findings: Findings,
}

/// Findings during parsing.
struct Findings {
    notices: NoticeCollector,
    /// Time of the last record of each CPU, in ns.
    last_ns: Vec<u64>,
    /// Number of times that the clock of a CPU ran backwards.
    backwards: u64,
    /// Offset of the first such record.
    backwards_first: u64,
    /// Largest step backwards in ns.
    backwards_ns_max: u64,
}

/// Reason for the end of a parsing step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// The batch is full.
    Full,
    /// The buffer ends within a record of this many bytes.
    Short(usize),
    /// The next bytes are no record.
    Garbage,
}

impl RecordReader {
    /// Creates a reader of an input.
    pub fn new(stream: Stream) -> RecordReader {
        let notices = NoticeCollector::new(&stream.name);
        RecordReader {
            stream,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            offset: 0,
            at_end: false,
            is_big: None,
            garbage_bytes: 0,
            skipped: (0, 0, 0),
            failed: None,
            findings: Findings { notices, last_ns: Vec::new(), backwards: 0, backwards_first: 0, backwards_ns_max: 0 },
        }
    }

    /// The notices about the file.
    pub fn notices(&mut self) -> &mut NoticeCollector {
        &mut self.findings.notices
    }

    /// Adds about [`EVENTS_A_BATCH`] events to a batch; none at the end.
    ///
    /// # Errors
    /// Fails with the error of the operating system, or if the input holds no records.
    pub fn fill(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let before = batch.len();
        match self.fill_up(batch) {
            Err(error) if batch.len() > before => {
                self.failed = Some(error);
                Ok(())
            }
            filled => filled,
        }
    }

    fn fill_up(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let full = batch.len() + EVENTS_A_BATCH;
        while batch.len() < full {
            let Some(is_big) = self.byte_order()? else { return Ok(()) };
            let unread = self.buffer.get(self.start..self.end).unwrap_or_default();
            let at = self.offset + self.start as u64;
            let (taken, stop) = if is_big {
                take::<true>(unread, at, full, batch, &mut self.findings)
            } else {
                take::<false>(unread, at, full, batch, &mut self.findings)
            };
            self.start += taken;
            if taken > 0 {
                self.garbage_bytes = 0;
            }
            match stop {
                Stop::Full => break,
                Stop::Short(_) if !self.at_end => self.read()?,
                Stop::Short(bytes) => {
                    self.end_within_record(bytes);
                    return Ok(());
                }
                Stop::Garbage => self.skip_garbage(is_big)?,
            }
        }
        Ok(())
    }

    /// Detects the byte order of the records by the first record; None at the end of the input.
    fn byte_order(&mut self) -> Result<Option<bool>, ReadError> {
        if let Some(is_big) = self.is_big {
            return Ok(Some(is_big));
        }
        loop {
            while self.end - self.start < RECORD_BYTES_MIN && !self.at_end {
                self.read()?;
            }
            let unread = self.buffer.get(self.start..self.end).unwrap_or_default();
            if unread.is_empty() {
                self.finish();
                return Ok(None);
            }
            let Some(magic) = unread.first_chunk::<4>() else { return Err(self.no_record()) };
            for (is_big, magic) in [(false, u32::from_le_bytes(*magic)), (true, u32::from_be_bytes(*magic))] {
                if magic & !0xFF != MAGIC_BASE {
                    continue;
                }
                if version_of(magic).is_none() {
                    let version = magic & 0xFF;
                    return Err(
                        self.bad(format!("records of version {version} begin here; supported are versions 7 and 8"))
                    );
                }
                self.is_big = Some(is_big);
                return Ok(Some(is_big));
            }
            // The first record may follow other bytes: the nearest in either byte order counts.
            let nearest = [false, true].into_iter().filter_map(|is_big| find(unread, is_big)).min();
            self.skip(nearest)?;
        }
    }

    /// Skips to the next record.
    fn skip_garbage(&mut self, is_big: bool) -> Result<(), ReadError> {
        let unread = self.buffer.get(self.start..self.end).unwrap_or_default();
        let next = find(unread, is_big);
        self.skip(next)
    }

    /// Skips to the next record or, if none is found, all bytes except a possible beginning of one.
    fn skip(&mut self, next: Option<usize>) -> Result<(), ReadError> {
        let unread = self.end - self.start;
        let known = next.unwrap_or(if self.at_end { unread } else { unread.saturating_sub(3) });
        let skipped = usize::try_from(GARBAGE_BYTES_MAX - self.garbage_bytes).map_or(known, |room| known.min(room));
        self.count_skipped(skipped);
        self.start += skipped;
        if self.is_big.is_none() && self.at_end && next.is_none() || skipped < known {
            return Err(self.no_record());
        }
        if next.is_none() && !self.at_end {
            self.read()?;
        }
        Ok(())
    }

    fn count_skipped(&mut self, skipped: usize) {
        let (bytes, places, first) = &mut self.skipped;
        if self.garbage_bytes == 0 && skipped > 0 {
            *first = if *places == 0 { self.offset + self.start as u64 } else { *first };
            *places += 1;
        }
        *bytes += skipped as u64;
        self.garbage_bytes += skipped as u64;
    }

    fn no_record(&self) -> ReadError {
        let bytes = self.garbage_bytes;
        self.bad(format!(
            "no record of blktrace in {bytes} bytes: each begins with {MAGIC:#x} (version 7) or 0x65617408"
        ))
    }

    fn bad(&self, what: String) -> ReadError {
        let position = InputPosition::Byte((self.offset + self.start as u64).saturating_sub(self.garbage_bytes));
        ReadError::Bad { file: self.stream.name.clone(), position, what }
    }

    /// Handles the end of the input, possibly within a record of `bytes` bytes.
    fn end_within_record(&mut self, bytes: usize) {
        let rest = self.end - self.start;
        if rest > 0 && self.garbage_bytes > 0 && rest < 4 {
            // Too short to be distinguished from the garbage before it.
            self.count_skipped(rest);
        } else if rest > 0 {
            let what = format!("the last record is cut off: {rest} bytes of {bytes}");
            self.findings.notices.add(InputPosition::Byte(self.offset + self.start as u64), what);
        }
        self.start = self.end;
        self.finish();
    }

    fn finish(&mut self) {
        if self.findings.backwards > 0 {
            let Findings { backwards, backwards_ns_max, .. } = self.findings;
            let times = if backwards == 1 { "once".into() } else { format!("{backwards} times") };
            let what = format!(
                "the clock of a CPU ran backwards {times}, by at most {backwards_ns_max} ns: records keep the order of the file"
            );
            self.findings.notices.add(InputPosition::Byte(self.findings.backwards_first), what);
            self.findings.backwards = 0;
        }
        if let (bytes @ 1.., places, first) = std::mem::take(&mut self.skipped) {
            let what = format!(
                "bytes without a record were skipped (bytes: {bytes}, places: {places}); a record begins with 0x65617407 or 0x65617408"
            );
            self.findings.notices.add(InputPosition::Byte(first), what);
        }
        self.findings.notices.end();
    }

    fn read(&mut self) -> Result<(), ReadError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.offset += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        let read = self.stream.read_some(self.buffer.get_mut(self.end..).unwrap_or_default())?;
        self.at_end = read == 0;
        self.end += read;
        Ok(())
    }
}

impl Findings {
    #[inline]
    fn clock(&mut self, fields: &Fields, at: u64) {
        let cpu = fields.cpu as usize;
        if cpu >= self.last_ns.len() {
            self.last_ns.resize(cpu + 1, 0);
        }
        let Some(last_ns) = self.last_ns.get_mut(cpu) else { return };
        let before_ns = std::mem::replace(last_ns, fields.time_ns());
        if fields.time_ns() >= before_ns {
            return;
        }
        if self.backwards == 0 {
            self.backwards_first = at;
        }
        self.backwards += 1;
        self.backwards_ns_max = self.backwards_ns_max.max(before_ns - fields.time_ns());
    }
}

fn version_of(magic: u32) -> Option<Version> {
    [Version::V7, Version::V8].into_iter().find(|version| magic == MAGIC_BASE | version.number())
}

/// Parses records until the batch has `full` events. Returns the number of parsed bytes and the
/// reason for the end.
fn take<const BIG: bool>(
    bytes: &[u8],
    at: u64,
    full: usize,
    batch: &mut Batch,
    findings: &mut Findings,
) -> (usize, Stop) {
    let mut rest = bytes;
    let stop = loop {
        if batch.len() >= full {
            break Stop::Full;
        }
        let Some((record_bytes, fields)) = fields_of::<BIG>(rest) else {
            break match rest.first_chunk::<4>() {
                None => Stop::Short(RECORD_BYTES_MIN),
                Some(magic) => match version_of(magic_of::<BIG>(magic)) {
                    Some(version) => Stop::Short(version.record_bytes()),
                    None => Stop::Garbage,
                },
            };
        };
        let whole_bytes = record_bytes + usize::from(fields.payload_bytes);
        if fields.cpu > CPU_MAX {
            break Stop::Garbage;
        }
        let Some((record, behind)) = rest.split_at_checked(whole_bytes) else { break Stop::Short(whole_bytes) };
        let here = at + (bytes.len() - rest.len()) as u64;
        if fields.has_moment() {
            findings.clock(&fields, here);
        }
        if fields.decode::<BIG>(&record[record_bytes..], batch) == Decoded::Unknown {
            let number = fields.number();
            let what = "records of an unknown action were skipped";
            findings
                .notices
                .count(what, InputPosition::Byte(here), || format!("action {number} of {:#x}", fields.action));
        }
        if fields.has_zone_categories() {
            let what = "categories of zones are ignored";
            findings.notices.count(what, InputPosition::Byte(here), || format!("action {:#x}", fields.action));
        }
        rest = behind;
    };
    (bytes.len() - rest.len(), stop)
}

fn magic_of<const BIG: bool>(bytes: &[u8; 4]) -> u32 {
    if BIG { u32::from_be_bytes(*bytes) } else { u32::from_le_bytes(*bytes) }
}

/// Returns the length and fields of the record at the start of `bytes`, if it is complete except
/// for its payload.
#[inline]
fn fields_of<const BIG: bool>(bytes: &[u8]) -> Option<(usize, Fields)> {
    let record = bytes.first_chunk::<48>()?;
    match magic_of::<BIG>(record.first_chunk()?) {
        MAGIC => Some((48, Fields::of_v7::<BIG>(record))),
        magic if magic == MAGIC + 1 => Some((64, Fields::of_v8::<BIG>(bytes.first_chunk::<64>()?))),
        _ => None,
    }
}

/// Returns the offset of the next possible record after the first byte.
fn find(bytes: &[u8], is_big: bool) -> Option<usize> {
    let needle: &[u8] = if is_big { b"eat" } else { b"tae" };
    memchr::memmem::find_iter(bytes, needle).find_map(|found| {
        let at = if is_big { found } else { found.checked_sub(1)? };
        let magic = bytes.get(at..)?.first_chunk::<4>()?;
        let magic = if is_big { u32::from_be_bytes(*magic) } else { u32::from_le_bytes(*magic) };
        (at > 0 && version_of(magic).is_some()).then_some(at)
    })
}
