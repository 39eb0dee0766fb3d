//! The pages of the ring buffer of one CPU, and the records in them.

use std::io::{self, Read as _, SeekFrom};
use std::ops::Range;

use super::compression::{Compression, UNPACKED_BYTES_MAX};
use super::layout::{CpuPlace, Layout, PageFields};
use super::{Error, Losses, ReadSeek};

/// Bits of a page's `commit` that are the length of its data.
const COMMIT_LENGTH: u64 = (1 << 27) - 1;
/// The bit of `commit` of a page before which events were lost.
const COMMIT_MISSED: u64 = 1 << 31;
/// Types of records that are no events, in the lower five bits of a record's head.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Number of bits of an absolute time; the upper bits are those of the time before.
const STAMP_BITS: u32 = 59;

/// Reads the records of one CPU.
#[derive(Debug)]
pub(super) struct CpuData {
    place: CpuPlace,
    is_big_endian: bool,
    page_bytes: usize,
    fields: PageFields,
    /// Position of the next page, or of the next chunk of compressed pages, in the file.
    position: u64,
    /// Number of chunks that were not read; None before the first.
    chunks_left: Option<u32>,
    /// The current page, or the chunk with the current page.
    bytes: Vec<u8>,
    /// Pages in `bytes` that were not begun.
    pages: Range<usize>,
    /// Part of the current page that was not read.
    unread: Range<usize>,
    time: u64,
    record: Range<usize>,
}

impl CpuData {
    /// Creates a reader at the first page of a CPU.
    pub fn new(place: &CpuPlace, layout: &Layout) -> CpuData {
        CpuData {
            place: *place,
            is_big_endian: layout.is_big_endian,
            page_bytes: layout.page_bytes,
            fields: layout.page.clone(),
            position: place.offset,
            chunks_left: None,
            bytes: Vec::new(),
            pages: 0..0,
            unread: 0..0,
            time: 0,
            record: 0..0,
        }
    }

    /// Number of the CPU.
    pub fn number(&self) -> u32 {
        self.place.number
    }

    /// Reading of the clock at the current record.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Contents of the current record.
    pub fn record(&self) -> &[u8] {
        self.bytes.get(self.record.clone()).unwrap_or_default()
    }

    /// Goes to the next record. Returns false at the end.
    pub fn advance(&mut self, file: &mut (dyn ReadSeek + Send), losses: &mut Losses) -> Result<bool, Error> {
        loop {
            if self.next_in_page() {
                return Ok(true);
            }
            if self.pages.is_empty() && !self.read_pages(file, losses)? {
                return Ok(false);
            }
            self.begin_page(losses);
        }
    }

    /// Goes to the next event of the current page.
    fn next_in_page(&mut self) -> bool {
        while let Some(head) = self.word(self.unread.start) {
            let (kind, delta) = if self.is_big_endian {
                (head >> 27, u64::from(head & 0x7FF_FFFF))
            } else {
                (head & 0x1F, u64::from(head >> 5))
            };
            let start = self.unread.start + 4;
            let extra = self.word(start);
            let (data, end) = match (kind, extra) {
                (PADDING, _) if delta == 0 => break,
                // A discarded event: its time counts, its contents do not.
                (PADDING, Some(bytes)) => (None, start + bytes as usize),
                (TIME_EXTEND, Some(high)) => {
                    self.time = self.time.wrapping_add(delta + (u64::from(high) << 27));
                    self.unread.start = start + 4;
                    continue;
                }
                (TIME_STAMP, Some(high)) => {
                    let stamp = u64::from(high) << 27 | delta;
                    self.time = self.time >> STAMP_BITS << STAMP_BITS | stamp & ((1 << STAMP_BITS) - 1);
                    self.unread.start = start + 4;
                    continue;
                }
                // The length includes the word that has it.
                (0, Some(bytes @ 4..)) => {
                    let end = start + bytes as usize;
                    (Some(start + 4..end), end.next_multiple_of(4))
                }
                (1..PADDING, _) => {
                    let end = start + kind as usize * 4;
                    (Some(start..end), end)
                }
                _ => break,
            };
            self.time = self.time.wrapping_add(delta);
            if end > self.unread.end {
                break;
            }
            self.unread.start = end;
            if let Some(data) = data {
                self.record = data;
                return true;
            }
        }
        self.unread = 0..0;
        false
    }

    fn word(&self, at: usize) -> Option<u32> {
        if at + 4 > self.unread.end {
            return None;
        }
        let bytes = self.bytes.get(at..at + 4)?.try_into().ok()?;
        Some(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Begins the next of the pages in memory.
    fn begin_page(&mut self, losses: &mut Losses) {
        let start = self.pages.start;
        let end = (start + self.page_bytes).min(self.pages.end);
        self.pages.start = end;
        let page = self.bytes.get(start..end).unwrap_or_default();
        let (Some(time), Some(commit)) =
            (number(page, self.fields.timestamp, 8, self.is_big_endian), self.commit(page))
        else {
            return;
        };
        let length = usize::try_from(commit & COMMIT_LENGTH).unwrap_or(usize::MAX);
        if length > page.len().saturating_sub(self.fields.data) {
            if losses.damaged_pages == 0 {
                losses.first_damaged = self.position.saturating_sub(page.len() as u64);
            }
            losses.damaged_pages += 1;
            return;
        }
        losses.overruns += u64::from(commit & COMMIT_MISSED != 0);
        self.time = time;
        self.unread = start + self.fields.data..start + self.fields.data + length;
    }

    fn commit(&self, page: &[u8]) -> Option<u64> {
        number(page, self.fields.commit, self.fields.commit_bytes, self.is_big_endian)
    }

    /// Reads the next page, or the next chunk of compressed pages. Returns false at the end.
    fn read_pages(&mut self, file: &mut (dyn ReadSeek + Send), losses: &mut Losses) -> Result<bool, Error> {
        let end = self.place.offset.saturating_add(self.place.bytes);
        if self.place.compression == Compression::None {
            let bytes = end.saturating_sub(self.position).min(self.page_bytes as u64) as usize;
            let mut page = std::mem::take(&mut self.bytes);
            page.resize(bytes, 0);
            let read = read_at(file, self.position, &mut page)?;
            losses.is_cut |= read < bytes;
            page.truncate(read);
            self.position += read as u64;
            self.pages = 0..read;
            self.bytes = page;
            return Ok(read > 0);
        }
        if self.place.bytes == 0 {
            return Ok(false);
        }
        let mut words = [0; 4];
        if self.chunks_left.is_none() {
            losses.is_cut |= read_at(file, self.position, &mut words)? < words.len();
            self.chunks_left = Some(self.number_of(words));
            self.position += 4;
        }
        let Some(left @ 1..) = self.chunks_left else { return Ok(false) };
        self.chunks_left = Some(left - 1);
        let mut sizes = [0; 8];
        if read_at(file, self.position, &mut sizes)? < sizes.len() {
            losses.is_cut = true;
            return Ok(false);
        }
        let [a, b, c, d, e, f, g, h] = sizes;
        let (packed, unpacked) = (self.number_of([a, b, c, d]), self.number_of([e, f, g, h]));
        let position = self.position;
        let bad = |what: String| Error::Bad { position, what };
        if packed as usize > UNPACKED_BYTES_MAX {
            return Err(bad(format!("a compressed chunk has {packed} bytes: {UNPACKED_BYTES_MAX} is the most")));
        }
        let mut chunk = Vec::new();
        file.seek(SeekFrom::Start(position + 8))?;
        io::Read::take(&mut *file, u64::from(packed)).read_to_end(&mut chunk)?;
        if chunk.len() < packed as usize {
            losses.is_cut = true;
            return Ok(false);
        }
        self.position = position + 8 + u64::from(packed);
        self.bytes = self.place.compression.unpack(&chunk, unpacked as usize).map_err(bad)?;
        self.pages = 0..self.bytes.len();
        Ok(true)
    }

    fn number_of(&self, bytes: [u8; 4]) -> u32 {
        if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }
}

/// Reads bytes at a position up to the end of the file; returns their number.
fn read_at(file: &mut (dyn ReadSeek + Send), position: u64, buffer: &mut [u8]) -> io::Result<usize> {
    file.seek(SeekFrom::Start(position))?;
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn number(page: &[u8], offset: usize, bytes: usize, is_big_endian: bool) -> Option<u64> {
    let bytes = page.get(offset..offset + bytes)?;
    let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    Some(if is_big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    const FIELDS: PageFields = PageFields { timestamp: 0, commit: 8, commit_bytes: 8, data: 16 };

    /// A page of 64 bytes with a time and records.
    fn page(time: u64, commit: u64, words: &[u32]) -> Vec<u8> {
        let mut page = [time.to_le_bytes(), commit.to_le_bytes()].concat();
        words.iter().for_each(|word| page.extend_from_slice(&word.to_le_bytes()));
        page.resize(64, 0);
        page
    }

    /// Times and first words of all records, and the losses.
    fn records(bytes: Vec<u8>) -> (Vec<(u64, u32)>, Losses) {
        let place = CpuPlace { number: 0, offset: 0, bytes: 1 << 20, compression: Compression::None };
        let layout = Layout { page_bytes: 64, page: FIELDS, ..Layout::default() };
        let (mut cpu, mut losses, mut found) = (CpuData::new(&place, &layout), Losses::default(), Vec::new());
        let mut file = Cursor::new(bytes);
        while cpu.advance(&mut file, &mut losses).unwrap() {
            found.push((cpu.time(), u32::from_le_bytes(cpu.record()[..4].try_into().unwrap())));
        }
        (found, losses)
    }

    #[test]
    fn times_are_the_sums_of_deltas_and_extensions() {
        let words = [
            10 << 5 | 1, // an event of one word, 10 later
            7,
            5 << 5 | TIME_EXTEND, // 5 + (2 << 27) later
            2,
            3 << 5 | PADDING, // a discarded event of two words, 3 later
            8,
            99,
            1 << 5, // an event of 8 bytes whose length is in a word
            12,
            8,
            8,
        ];
        let (found, _) = records(page(1000, 44, &words));
        assert_eq!(found, [(1010, 7), (1010 + 5 + (2 << 27) + 3 + 1, 8)]);
        let (found, _) = records(page(7 << 59 | 1, 16, &[4 << 5 | TIME_STAMP, 1, 1, 6]));
        assert_eq!(found, [(7 << 59 | 1 << 27 | 4, 6)], "an absolute time keeps the upper five bits");
    }

    #[test]
    fn damaged_pages_are_skipped_and_counted_and_lost_events_are_noticed() {
        let whole =
            [page(5, 8, &[1 << 5 | 1, 1]), page(6, 4000, &[1, 2]), page(9, 8 | COMMIT_MISSED, &[1, 3])].concat();
        let (found, losses) = records(whole);
        assert_eq!(found, [(6, 1), (9, 3)]);
        assert_eq!((losses.damaged_pages, losses.overruns), (1, 1));
        assert!(losses.is_cut, "the place of the CPU says 1 MiB");
    }

    #[test]
    fn a_record_that_ends_behind_its_page_ends_the_page() {
        let (found, _) = records([page(5, 8, &[28, 1]), page(6, 8, &[1, 2])].concat());
        assert_eq!(found, [(6, 2)]);
    }
}
