//! The possible values of each byte of a region, from the requests and replies of its clients.
//!
//! Concurrent requests may take effect in any order. A write that was answered before another began
//! is overwritten once the other is answered. After a crash the same holds for durable writes:
//! those with FUA, and those followed by a flush that began after their reply and was answered
//! itself.

use std::cell::RefCell;
use std::rc::Rc;

/// The history of a region that several clients share.
pub type SharedHistory = Rc<RefCell<History>>;

/// The changes of a region. Times are those of its own clock, which ticks with every event.
#[derive(Debug)]
pub struct History {
    /// The offset of the region on the export.
    pub start: u64,
    /// The offset of the export on the disk.
    pub export_offset: u64,
    salt: u64,
    clock: u64,
    /// The content before all writes.
    first: Vec<u8>,
    writes: Vec<Write>,
    /// True for an export without storage, whose reads are always zeroes.
    is_null: bool,
}

/// A requested change.
#[derive(Debug)]
struct Write {
    start: u64,
    end: u64,
    what: Content,
    begun: u64,
    /// The time of the reply. A request without a reply may take effect at any time.
    ended: Option<u64>,
    /// True if the change was acknowledged, so that it has taken effect.
    certain: bool,
    durable: bool,
}

/// The content that a change writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Data derived from this number.
    Data(u64),
    /// Only zeroes.
    Zeroes,
    /// Zeroes, or the previous content.
    Trimmed,
}

/// The id of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeId(usize);

impl History {
    /// Creates the history of a region of zeroes.
    pub fn new(start: u64, length: usize, export_offset: u64, salt: u64, is_null: bool) -> History {
        History { start, export_offset, salt, clock: 1, first: vec![0; length], writes: Vec::new(), is_null }
    }

    /// Returns the length of the region in bytes.
    pub fn len(&self) -> u64 {
        self.first.len() as u64
    }

    /// Returns true if the region is empty.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Advances the clock and returns its time.
    pub fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Records a requested change; `offset` is relative to the export.
    pub fn begin(&mut self, offset: u64, length: u64, what: Content) -> ChangeId {
        let begun = self.tick();
        let start = offset - self.start;
        let what = if let Content::Data(_) = what { Content::Data(self.writes.len() as u64) } else { what };
        let write = Write { start, end: start + length, what, begun, ended: None, certain: false, durable: false };
        self.writes.push(write);
        ChangeId(self.writes.len() - 1)
    }

    /// Returns the data of a change of the kind [`Content::Data`].
    pub fn data(&self, change: ChangeId) -> Vec<u8> {
        let write = &self.writes[change.0];
        (write.start..write.end).map(|at| self.byte(write, at)).collect()
    }

    /// Records the reply to a change. After an error the change may have taken effect in parts.
    pub fn end(&mut self, change: ChangeId, well: bool, durable: bool) {
        let now = self.tick();
        let write = &mut self.writes[change.0];
        write.ended = Some(now);
        write.certain = well && write.what != Content::Trimmed;
        write.durable = durable && write.certain;
    }

    /// Records the success of a flush that began at this time.
    pub fn flushed(&mut self, begun: u64) {
        for write in &mut self.writes {
            write.durable |= write.certain && write.ended.is_some_and(|ended| ended < begun);
        }
    }

    /// Returns the number of changes that are durable.
    pub fn durable_changes(&self) -> u64 {
        self.writes.iter().filter(|write| write.durable).count() as u64
    }

    /// Checks the data of a read that began at `begun` and ends now.
    ///
    /// # Errors
    /// The first byte with an impossible value.
    pub fn check_read(&mut self, offset: u64, data: &[u8], begun: u64) -> Result<(), String> {
        if self.is_null {
            return if data.iter().all(|byte| *byte == 0) { Ok(()) } else { Err("not zeroes".to_owned()) };
        }
        self.tick();
        self.check(offset - self.start, data, &|write| write.certain && write.ended.is_some_and(|at| at < begun))
    }

    /// Checks the content of the whole region after a crash, which becomes the initial content.
    ///
    /// # Errors
    /// The first byte with an impossible value.
    pub fn check_crash(&mut self, data: &[u8]) -> Result<(), String> {
        self.check(0, data, &|write| write.durable)?;
        self.first.copy_from_slice(data);
        self.writes.clear();
        // Later data differ from all previous data.
        self.salt = self.salt.wrapping_add(self.clock).rotate_left(7);
        Ok(())
    }

    /// Resets the region to zeroes, as memory after the end of its server.
    pub fn forget(&mut self) {
        let zeroes = vec![0; self.first.len()];
        self.first.fill(0);
        self.writes.clear();
        let _ = self.check_crash(&zeroes);
    }

    /// Checks that every byte is of a change that no settled later change has overwritten.
    fn check(&self, start: u64, data: &[u8], settled: &dyn Fn(&Write) -> bool) -> Result<(), String> {
        let end = start + data.len() as u64;
        let touching: Vec<&Write> = self.writes.iter().filter(|write| write.start < end && start < write.end).collect();
        let mut edges: Vec<u64> = touching.iter().flat_map(|write| [write.start, write.end]).collect();
        edges.extend([start, end]);
        edges.retain(|edge| (start..=end).contains(edge));
        edges.sort_unstable();
        edges.dedup();
        for piece in edges.windows(2) {
            let (from, to) = (piece[0], piece[1]);
            let over = |write: &&&Write| write.start <= from && to <= write.end;
            let since = touching.iter().filter(over).filter(|write| settled(write)).map(|write| write.begun).max();
            let possible = |write: &&Write| write.ended.is_none_or(|ended| since.is_none_or(|since| ended >= since));
            let candidates: Vec<&Write> =
                touching.iter().filter(over).copied().filter(|write| possible(write)).collect();
            let first = since.is_none();
            let bytes = &data[(from - start) as usize..(to - start) as usize];
            self.check_piece(from, bytes, &candidates, first)?;
        }
        Ok(())
    }

    fn check_piece(&self, from: u64, bytes: &[u8], candidates: &[&Write], first: bool) -> Result<(), String> {
        let at = |index: usize| from + index as u64;
        let of_first = |index: usize| first && self.first[at(index) as usize] == bytes[index];
        let whole = |write: &&&Write| (0..bytes.len()).all(|index| self.byte(write, at(index)) == bytes[index]);
        if candidates.iter().rev().any(|write| whole(&write)) || (0..bytes.len()).all(of_first) {
            return Ok(());
        }
        // The bytes may be a mixture of concurrent changes.
        let wrong = (0..bytes.len()).find(|index| {
            let is = |write: &&Write| self.byte(write, at(*index)) == bytes[*index];
            !of_first(*index) && !candidates.iter().any(is)
        });
        let Some(index) = wrong else { return Ok(()) };
        let found = bytes[index];
        let known = self.writes.iter().position(|write| {
            let covered = (write.start..write.end).contains(&at(index));
            let run = (index + 8).min(bytes.len()).min(index + write.end.saturating_sub(at(index)) as usize);
            covered && (index..run).all(|index| self.byte(write, at(index)) == bytes[index])
        });
        let place = self.start + at(index);
        let candidates: Vec<String> = candidates.iter().map(|write| write.to_string()).collect();
        let origin = match known {
            Some(known) => format!("it has the value of change {known} ({})", self.writes[known]),
            None if found == 0 => "zero".to_owned(),
            None => "no change of this region".to_owned(),
        };
        Err(format!(
            "the byte at {place} of the export is {found:#04x}: {origin}; it may be{}: {}",
            if first { " the initial value, or" } else { "" },
            candidates.join("; ")
        ))
    }

    fn byte(&self, write: &Write, at: u64) -> u8 {
        match write.what {
            Content::Zeroes | Content::Trimmed => 0,
            Content::Data(number) => {
                let word = (self.salt ^ (number << 40) ^ (at >> 3)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let word = (word ^ word >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                (word >> (8 * (at & 7))) as u8
            }
        }
    }
}

impl std::fmt::Display for Write {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} over {}..{} of the region, begun {}", self.what, self.start, self.end, self.begun)?;
        match self.ended {
            Some(ended) => write!(f, ", answered {ended}")?,
            None => write!(f, ", not answered")?,
        }
        f.write_str(match (self.certain, self.durable) {
            (_, true) => ", durable",
            (true, false) => "",
            (false, false) => ", not certain",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: Content = Content::Data(0);

    fn history() -> History {
        History::new(1000, 4096, 0, 7, false)
    }

    #[test]
    fn a_read_sees_the_last_write_that_was_answered_before_it_began() {
        let mut history = history();
        let one = history.begin(1000, 100, DATA);
        history.end(one, true, false);
        let two = history.begin(1050, 100, DATA);
        history.end(two, true, false);
        let begun = history.tick();
        let (one, two) = (history.data(one), history.data(two));
        assert_eq!(history.check_read(1000, &one[..50], begun), Ok(()));
        assert_eq!(history.check_read(1050, &two, begun), Ok(()));
        let error = history.check_read(1000, &one, begun).unwrap_err();
        assert!(error.contains("byte at 1050") && error.contains("has the value of change 0"), "{error}");
        assert!(history.check_read(1000, &[0; 10], begun).is_err());
        assert_eq!(history.check_read(1150, &[0; 10], begun), Ok(()));
    }

    #[test]
    fn a_write_in_flight_may_be_visible_in_parts() {
        let mut history = history();
        let begun = history.tick();
        let one = history.begin(1000, 100, DATA);
        let mut data = history.data(one);
        assert_eq!(history.check_read(1000, &data, begun), Ok(()));
        assert_eq!(history.check_read(1000, &[0; 100], begun), Ok(()));
        data[30..60].fill(0);
        assert_eq!(history.check_read(1000, &data, begun), Ok(()));
        data[30] = 99;
        assert!(history.check_read(1000, &data, begun).is_err());
        history.end(one, true, false);
        assert_eq!(history.check_read(1000, &[0; 100], begun), Ok(()), "this read began before the write was answered");
    }

    #[test]
    fn after_a_crash_durable_data_are_present_and_no_older_data() {
        let make = |durable: [bool; 2], flushes: bool| {
            let mut history = history();
            for durable in durable {
                let change = history.begin(1000, 10, DATA);
                history.end(change, true, durable);
            }
            if flushes {
                let begun = history.tick();
                history.flushed(begun);
            }
            let data = [0, 1].map(|number| history.data(ChangeId(number)));
            let full = |bytes: &[u8]| [bytes, &vec![0; 4086][..]].concat();
            let is =
                |history: &mut History, bytes: &[u8]| history.check(0, &full(bytes), &|write| write.durable).is_ok();
            [is(&mut history, &[0; 10]), is(&mut history, &data[0]), is(&mut history, &data[1])]
        };
        assert_eq!(make([false, false], false), [true, true, true]);
        assert_eq!(make([true, false], false), [false, true, true]);
        assert_eq!(make([false, true], false), [false, false, true]);
        assert_eq!(make([false, false], true), [false, false, true]);
    }

    #[test]
    fn a_flush_covers_only_writes_answered_before_it_began() {
        let mut history = history();
        let one = history.begin(1000, 10, DATA);
        let begun = history.tick();
        history.end(one, true, false);
        history.flushed(begun);
        assert_eq!(history.check_crash(&vec![0; 4096]), Ok(()));
    }

    #[test]
    fn failed_and_trimmed_ranges_are_uncertain_until_they_are_written() {
        let mut history = history();
        let one = history.begin(1000, 10, DATA);
        history.end(one, true, false);
        let data = history.data(one);
        let trim = history.begin(1000, 10, Content::Trimmed);
        history.end(trim, true, true);
        let failed = history.begin(1000, 10, DATA);
        history.end(failed, false, false);
        let begun = history.tick();
        let third = history.data(failed);
        for bytes in [&data, &vec![0; 10], &third] {
            assert_eq!(history.check_read(1000, bytes, begun), Ok(()));
        }
        let zeroes = history.begin(1000, 10, Content::Zeroes);
        history.end(zeroes, true, false);
        let begun = history.tick();
        assert!(history.check_read(1000, &third, begun).is_err());
        assert_eq!(history.check_read(1000, &[0; 10], begun), Ok(()));
    }
}
