//! What each byte of a region may be, given all that its clients have asked for and been answered.
//!
//! Requests that are under way at the same time may take effect in any order, those that follow
//! each other may not: a write that was answered before another began is gone once the other was
//! answered. After a crash the same holds with "was answered" replaced by "was answered and is
//! durable": by FUA, or by a flush that began after the answer and was answered itself.

use std::cell::RefCell;
use std::rc::Rc;

/// A region that clients share, and what was done to it.
pub type SharedHistory = Rc<RefCell<History>>;

/// What was done to a region. Times are those of its own clock, which ticks with every event.
#[derive(Debug)]
pub struct History {
    /// Where the region begins on the export.
    pub start: u64,
    /// Where the export begins on the disk.
    pub export_offset: u64,
    salt: u64,
    clock: u64,
    /// What the bytes were before all writes.
    first: Vec<u8>,
    writes: Vec<Write>,
    /// Reads are always zeroes: there is nothing behind the export.
    is_null: bool,
}

/// A change that was asked for.
#[derive(Debug)]
struct Write {
    start: u64,
    end: u64,
    what: Content,
    begun: u64,
    /// When it was answered; a request whose answer never came may still take effect at any time.
    ended: Option<u64>,
    /// It was answered, and well: it is not only possible but has happened.
    certain: bool,
    durable: bool,
}

/// What a change makes of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Data of this number.
    Data(u64),
    /// Zeroes.
    Zeroes,
    /// Zeroes, or what was there before.
    Trimmed,
}

/// Names a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeId(usize);

impl History {
    /// A region of zeroes.
    pub fn new(start: u64, length: usize, export_offset: u64, salt: u64, is_null: bool) -> History {
        History { start, export_offset, salt, clock: 1, first: vec![0; length], writes: Vec::new(), is_null }
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.first.len() as u64
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Now, on its clock.
    pub fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// A change is asked for; `offset` is on the export.
    pub fn begin(&mut self, offset: u64, length: u64, what: Content) -> ChangeId {
        let begun = self.tick();
        let start = offset - self.start;
        let what = if let Content::Data(_) = what { Content::Data(self.writes.len() as u64) } else { what };
        let write = Write { start, end: start + length, what, begun, ended: None, certain: false, durable: false };
        self.writes.push(write);
        ChangeId(self.writes.len() - 1)
    }

    /// The data that a change of the kind [`Content::Data`] consists of.
    pub fn data(&self, change: ChangeId) -> Vec<u8> {
        let write = &self.writes[change.0];
        (write.start..write.end).map(|at| self.byte(write, at)).collect()
    }

    /// A change was answered. With an error it may have happened, wholly or in part, or not.
    pub fn end(&mut self, change: ChangeId, well: bool, durable: bool) {
        let now = self.tick();
        let write = &mut self.writes[change.0];
        write.ended = Some(now);
        write.certain = well && write.what != Content::Trimmed;
        write.durable = durable && write.certain;
    }

    /// A flush that began at this time was answered well.
    pub fn flushed(&mut self, begun: u64) {
        for write in &mut self.writes {
            write.durable |= write.certain && write.ended.is_some_and(|ended| ended < begun);
        }
    }

    /// How many changes are known to be durable.
    pub fn durable_changes(&self) -> u64 {
        self.writes.iter().filter(|write| write.durable).count() as u64
    }

    /// Checks what a read that began at `begun` has brought, just now.
    ///
    /// # Errors
    /// Says which byte cannot be what it is.
    pub fn check_read(&mut self, offset: u64, data: &[u8], begun: u64) -> Result<(), String> {
        if self.is_null {
            return if data.iter().all(|byte| *byte == 0) { Ok(()) } else { Err("not zeroes".to_owned()) };
        }
        self.tick();
        self.check(offset - self.start, data, &|write| write.certain && write.ended.is_some_and(|at| at < begun))
    }

    /// Checks what is there after a crash, all of the region, and takes it for the beginning.
    ///
    /// # Errors
    /// Says which byte cannot be what it is.
    pub fn check_crash(&mut self, data: &[u8]) -> Result<(), String> {
        self.check(0, data, &|write| write.durable)?;
        self.first.copy_from_slice(data);
        self.writes.clear();
        // What is written from now on looks different from all before.
        self.salt = self.salt.wrapping_add(self.clock).rotate_left(7);
        Ok(())
    }

    /// All is zeroes again, as memory is after the server that held it.
    pub fn forget(&mut self) {
        let zeroes = vec![0; self.first.len()];
        self.first.fill(0);
        self.writes.clear();
        let _ = self.check_crash(&zeroes);
    }

    /// Every byte must be of a change that was not followed by a settled one: one that is known to
    /// have come later.
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
        // It may be mixed of several that were under way at the same time.
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
            Some(known) => format!("it looks like change {known} ({})", self.writes[known]),
            None if found == 0 => "zero".to_owned(),
            None => "no change of this region".to_owned(),
        };
        Err(format!(
            "the byte at {place} of the export is {found:#04x}: {origin}; it may be{}: {}",
            if first { " what it was at first, or" } else { "" },
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
        assert!(error.contains("byte at 1050") && error.contains("looks like change 0"), "{error}");
        assert!(history.check_read(1000, &[0; 10], begun).is_err());
        assert_eq!(history.check_read(1150, &[0; 10], begun), Ok(()));
    }

    #[test]
    fn what_is_under_way_may_or_may_not_be_seen_even_in_parts() {
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
    fn after_a_crash_what_was_durable_is_there_and_nothing_older() {
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
    fn a_flush_covers_only_what_was_answered_before_it_began() {
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
