//! The journal: changes that the remote has completed but not flushed, oldest first.
//!
//! A remote that crashes loses such changes. They are sent again in this order, so the newest
//! change of each byte is the last. Durable changes are kept too: otherwise an older change that is
//! sent again would replace them.

use std::collections::VecDeque;
use std::sync::Arc;

use hoistway_qos::RequestOp;
use hoistway_reactor::Buffer;

/// The memory of a change beside its data, in bytes.
const CHANGE_BYTES: u64 = 128;

/// The completed changes of a remote that are not flushed.
#[derive(Debug)]
pub(super) struct Journal {
    list: VecDeque<Change>,
    bytes: u64,
    /// The maximum number of bytes to keep; 0 keeps no changes.
    bytes_max: u64,
    /// The number of the last change, counted from 1.
    last: u64,
    /// The number of the last change that was flushed.
    flushed: u64,
}

/// A completed change.
#[derive(Clone, Debug)]
pub(super) struct Change {
    number: u64,
    pub op: RequestOp,
    pub from: u64,
    pub to: u64,
    /// The data of a write.
    pub data: Option<Arc<Buffer>>,
}

impl Change {
    fn bytes(&self) -> u64 {
        CHANGE_BYTES + self.data.as_ref().map_or(0, |data| data.len() as u64)
    }
}

impl Journal {
    pub fn new(bytes_max: u64) -> Journal {
        Journal { list: VecDeque::new(), bytes: 0, bytes_max, last: 0, flushed: 0 }
    }

    /// Adds a completed change.
    pub fn add(&mut self, op: RequestOp, (from, to): (u64, u64), data: Option<Arc<Buffer>>, is_durable: bool) {
        if self.bytes_max == 0 && is_durable {
            return;
        }
        self.last += 1;
        if self.bytes_max > 0 {
            let change = Change { number: self.last, op, from, to, data };
            self.bytes += change.bytes();
            self.list.push_back(change);
        }
    }

    /// Returns the number of the last change: a flush that is sent now covers it and all before.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Removes the changes that a flush covered.
    pub fn flushed(&mut self, last: u64) {
        self.flushed = self.flushed.max(last);
        while self.list.front().is_some_and(|change| change.number <= last) {
            self.bytes -= self.list.pop_front().map_or(0, |change| change.bytes());
        }
    }

    /// Removes all changes: they are lost.
    pub fn clear(&mut self) {
        self.flushed(self.last);
    }

    /// Returns true if a crash of the remote loses changes.
    pub fn is_dirty(&self) -> bool {
        self.last > self.flushed
    }

    /// Returns true if the changes are kept.
    pub fn keeps_changes(&self) -> bool {
        self.bytes_max > 0
    }

    /// Returns the changes, oldest first.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.list.iter()
    }

    /// Returns true if the journal is half full.
    pub fn wants_flush(&self) -> bool {
        self.bytes > self.bytes_max / 2
    }

    /// Returns true if no more changes fit.
    pub fn is_full(&self) -> bool {
        self.keeps_changes() && self.bytes >= self.bytes_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(bytes: usize) -> Option<Arc<Buffer>> {
        Some(Arc::new(Buffer::alone(bytes)))
    }

    #[test]
    fn a_flush_removes_the_changes_that_it_covers() {
        let mut journal = Journal::new(1 << 20);
        journal.add(RequestOp::Write, (0, 4096), data(4096), false);
        let covered = journal.last();
        journal.add(RequestOp::Trim, (8192, 12_288), None, false);
        journal.flushed(covered);
        assert_eq!(journal.changes().map(|change| change.from).collect::<Vec<_>>(), [8192]);
        assert!(journal.is_dirty());
        journal.flushed(journal.last());
        assert!(!journal.is_dirty() && journal.bytes == 0);
    }

    #[test]
    fn a_journal_asks_for_a_flush_before_it_is_full() {
        let mut journal = Journal::new(4 * (4096 + CHANGE_BYTES));
        let mut states = Vec::new();
        for _ in 0..4 {
            journal.add(RequestOp::Write, (0, 4096), data(4096), false);
            states.push((journal.wants_flush(), journal.is_full()));
        }
        assert_eq!(states, [(false, false), (false, false), (true, false), (true, true)]);
    }

    #[test]
    fn without_memory_only_the_fact_of_unflushed_changes_is_kept() {
        let mut journal = Journal::new(0);
        journal.add(RequestOp::Write, (0, 4096), data(4096), true);
        assert!(!journal.is_dirty(), "a durable change survives");
        journal.add(RequestOp::Write, (0, 4096), data(4096), false);
        assert!(journal.is_dirty() && !journal.is_full() && !journal.wants_flush());
        assert_eq!(journal.changes().count(), 0);
    }
}
