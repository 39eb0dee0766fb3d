//! One file of records, as it comes.

use super::record::{Fields, MAGIC_BASE, Told, Version};
use super::{CPU_MAX, MAGIC};
use crate::batch::{Batch, EVENTS_A_BATCH};
use crate::notices::Notices;
use crate::open::Stream;
use crate::source::{Place, ReadError};

/// What is read at a time, in bytes: more than the longest record with its payload.
const BUFFER_BYTES: usize = 256 << 10;
/// After so many bytes in a row without a record, the input is no trace, or none any more.
const GARBAGE_BYTES_MAX: u64 = 16 << 20;
/// The shortest record, in bytes.
const RECORD_BYTES_MIN: usize = 48;

/// A file on its way in.
pub(super) struct Lane {
    stream: Stream,
    buffer: Vec<u8>,
    /// What is in the buffer and was not taken: from here...
    start: usize,
    /// ... to here.
    end: usize,
    /// Where in the input the buffer begins.
    offset: u64,
    at_end: bool,
    /// Whether its records are big-endian, once one has been seen.
    is_big: Option<bool>,
    /// Bytes without a record since the last.
    garbage_bytes: u64,
    /// All of them, in how many places, and where first.
    passed: (u64, u64, u64),
    /// What ended it, told behind the events that were read before.
    failed: Option<ReadError>,
    seen: Seen,
}

/// What was noticed while records were taken.
struct Seen {
    notices: Notices,
    /// The time of each CPU's last record, in ns.
    last_ns: Vec<u64>,
    /// How often a CPU's clock ran back, where first, and how far at most in ns.
    backwards: u64,
    backwards_first: u64,
    backwards_ns_max: u64,
}

/// Why no more records were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// The batch is full.
    Full,
    /// What is left is the beginning of a record of so many bytes.
    Short(usize),
    /// What comes now is no record.
    Garbage,
}

impl Lane {
    /// The records of an input.
    pub fn new(stream: Stream) -> Lane {
        let notices = Notices::new(&stream.name);
        Lane {
            stream,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            offset: 0,
            at_end: false,
            is_big: None,
            garbage_bytes: 0,
            passed: (0, 0, 0),
            failed: None,
            seen: Seen { notices, last_ns: Vec::new(), backwards: 0, backwards_first: 0, backwards_ns_max: 0 },
        }
    }

    /// What was noticed.
    pub fn notices(&mut self) -> &mut Notices {
        &mut self.seen.notices
    }

    /// Adds about [`EVENTS_A_BATCH`] events to a batch; none at the end.
    ///
    /// # Errors
    /// The system's, and an input that holds no records.
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
                take::<true>(unread, at, full, batch, &mut self.seen)
            } else {
                take::<false>(unread, at, full, batch, &mut self.seen)
            };
            self.start += taken;
            if taken > 0 {
                self.garbage_bytes = 0;
            }
            match stop {
                Stop::Full => break,
                Stop::Short(_) if !self.at_end => self.read()?,
                Stop::Short(bytes) => {
                    self.cut_off(bytes);
                    return Ok(());
                }
                Stop::Garbage => self.pass_garbage(is_big)?,
            }
        }
        Ok(())
    }

    /// The byte order of the records, found out with the first; none at the end of the input.
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
                    return Err(self.bad(format!("records of version {version} begin here; versions 7 and 8 are read")));
                }
                self.is_big = Some(is_big);
                return Ok(Some(is_big));
            }
            // Something may stand before the first record: the nearest in either byte order is looked for.
            let nearest = [false, true].into_iter().filter_map(|is_big| find(unread, is_big)).min();
            self.pass(nearest)?;
        }
    }

    /// Goes on to the next record after something that is none.
    fn pass_garbage(&mut self, is_big: bool) -> Result<(), ReadError> {
        let unread = self.buffer.get(self.start..self.end).unwrap_or_default();
        let next = find(unread, is_big);
        self.pass(next)
    }

    /// Passes over what comes before the next record, or, if there is none, over all but what may be the beginning of one.
    fn pass(&mut self, next: Option<usize>) -> Result<(), ReadError> {
        let unread = self.end - self.start;
        let known = next.unwrap_or(if self.at_end { unread } else { unread.saturating_sub(3) });
        let passed = usize::try_from(GARBAGE_BYTES_MAX - self.garbage_bytes).map_or(known, |room| known.min(room));
        self.count_passed(passed);
        self.start += passed;
        if self.is_big.is_none() && self.at_end && next.is_none() || passed < known {
            return Err(self.no_record());
        }
        if next.is_none() && !self.at_end {
            self.read()?;
        }
        Ok(())
    }

    fn count_passed(&mut self, passed: usize) {
        let (bytes, places, first) = &mut self.passed;
        if self.garbage_bytes == 0 && passed > 0 {
            *first = if *places == 0 { self.offset + self.start as u64 } else { *first };
            *places += 1;
        }
        *bytes += passed as u64;
        self.garbage_bytes += passed as u64;
    }

    fn no_record(&self) -> ReadError {
        let bytes = self.garbage_bytes;
        self.bad(format!(
            "no record of blktrace in {bytes} bytes: each begins with {MAGIC:#x} (version 7) or 0x65617408"
        ))
    }

    fn bad(&self, what: String) -> ReadError {
        let place = Place::Byte((self.offset + self.start as u64).saturating_sub(self.garbage_bytes));
        ReadError::Bad { file: self.stream.name.clone(), place, what }
    }

    /// The input ended, perhaps within a record of so many bytes.
    fn cut_off(&mut self, bytes: usize) {
        let rest = self.end - self.start;
        if rest > 0 && self.garbage_bytes > 0 && rest < 4 {
            // Too short to be told from what stands before it, which is no record.
            self.count_passed(rest);
        } else if rest > 0 {
            let what = format!("the last record is cut off: {rest} bytes of {bytes}");
            self.seen.notices.tell(Place::Byte(self.offset + self.start as u64), what);
        }
        self.start = self.end;
        self.finish();
    }

    fn finish(&mut self) {
        if self.seen.backwards > 0 {
            let Seen { backwards, backwards_ns_max, .. } = self.seen;
            let times = if backwards == 1 { "once".into() } else { format!("{backwards} times") };
            let what = format!(
                "the clock of a CPU ran back {times}, by {backwards_ns_max} ns at most: records stay in the order of the file"
            );
            self.seen.notices.tell(Place::Byte(self.seen.backwards_first), what);
            self.seen.backwards = 0;
        }
        if let (bytes @ 1.., places, first) = std::mem::take(&mut self.passed) {
            let what = format!(
                "what is no record was passed over (bytes: {bytes}, places: {places}); a record begins with 0x65617407 or 0x65617408"
            );
            self.seen.notices.tell(Place::Byte(first), what);
        }
        self.seen.notices.end();
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

impl Seen {
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

/// Takes records until the batch has `full` events: how many bytes they were, and why it was left at that.
fn take<const BIG: bool>(bytes: &[u8], at: u64, full: usize, batch: &mut Batch, seen: &mut Seen) -> (usize, Stop) {
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
            seen.clock(&fields, here);
        }
        if fields.tell::<BIG>(&record[record_bytes..], batch) == Told::Unknown {
            let number = fields.number();
            let what = "records of an action that is not known were left out";
            seen.notices.count(what, Place::Byte(here), || format!("action {number} of {:#x}", fields.action));
        }
        if fields.has_zone_categories() {
            let what = "categories of zones are not kept";
            seen.notices.count(what, Place::Byte(here), || format!("action {:#x}", fields.action));
        }
        rest = behind;
    };
    (bytes.len() - rest.len(), stop)
}

fn magic_of<const BIG: bool>(bytes: &[u8; 4]) -> u32 {
    if BIG { u32::from_be_bytes(*bytes) } else { u32::from_le_bytes(*bytes) }
}

/// The record that begins here, if it is one and all of it is here but for its payload.
#[inline]
fn fields_of<const BIG: bool>(bytes: &[u8]) -> Option<(usize, Fields)> {
    let record = bytes.first_chunk::<48>()?;
    match magic_of::<BIG>(record.first_chunk()?) {
        MAGIC => Some((48, Fields::of_v7::<BIG>(record))),
        magic if magic == MAGIC + 1 => Some((64, Fields::of_v8::<BIG>(bytes.first_chunk::<64>()?))),
        _ => None,
    }
}

/// Where the next record may begin behind the first byte.
fn find(bytes: &[u8], is_big: bool) -> Option<usize> {
    let needle: &[u8] = if is_big { b"eat" } else { b"tae" };
    memchr::memmem::find_iter(bytes, needle).find_map(|found| {
        let at = if is_big { found } else { found.checked_sub(1)? };
        let magic = bytes.get(at..)?.first_chunk::<4>()?;
        let magic = if is_big { u32::from_be_bytes(*magic) } else { u32::from_le_bytes(*magic) };
        (at > 0 && version_of(magic).is_some()).then_some(at)
    })
}
