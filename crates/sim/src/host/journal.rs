//! The journal of a file system: what a transaction is, and what of it goes to the disk when.
//!
//! After S. Tweedie, "Journaling the Linux ext2fs filesystem" (LinuxExpo 1998), and A. Mathur et
//! al., "The new ext4 filesystem" (OLS 2007), in ordered mode: data goes to its place before the
//! metadata that tells of it goes to the journal.

use std::collections::BTreeMap;

/// How a file system journals its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalConfig {
    /// A transaction is committed so many ms after its first change, 1 to 3600000 (`commit=`).
    /// Default 5000.
    pub commit_interval_ms: u64,
    /// The commit block is a barrier: the drive's cache is flushed before and after it
    /// (`barrier=`).
    pub barriers: bool,
    /// A commit writes all that is dirty of every file that was written to (ext3); if not, only of
    /// those that grew: the others have no blocks that are new (ext4).
    pub all_data: bool,
}

impl JournalConfig {
    /// ext3 before Linux 3.1: no barriers.
    pub const fn ext3() -> Self {
        JournalConfig { commit_interval_ms: 5000, barriers: false, all_data: true }
    }

    /// ext4.
    pub const fn ext4() -> Self {
        JournalConfig { commit_interval_ms: 5000, barriers: true, all_data: false }
    }
}

/// The journal's length in blocks of 4 KiB: 128 MiB, mke2fs's choice for all but small disks.
pub(crate) const JOURNAL_BLOCKS: u64 = 32768;

/// Changes of metadata that go to the disk together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transaction {
    /// Transactions are numbered from 1.
    pub id: u64,
    /// Files whose inodes have changed, and whether they grew.
    pub files: BTreeMap<u32, bool>,
}

impl Transaction {
    /// A file's inode has changed. Returns true if it is the transaction's first change.
    pub fn add(&mut self, file: u32, grows: bool) -> bool {
        let is_first = self.files.is_empty();
        *self.files.entry(file).or_insert(false) |= grows;
        is_first
    }

    /// Blocks in the journal, the commit block left out: a descriptor, and for each file its inode;
    /// for one that grew also the bitmap and the group descriptor from which its blocks were taken.
    pub fn log_blocks(&self) -> u64 {
        1 + self.files.values().map(|grows| if *grows { 3 } else { 1 }).sum::<u64>()
    }
}

/// A place in the journal, which goes round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    /// Its first block on the disk.
    start: u64,
    blocks: u64,
    next: u64,
}

impl Log {
    /// The journal of a disk of so many blocks: it ends in its middle, where later versions of
    /// mke2fs put it.
    pub fn new(disk_blocks: u64) -> Log {
        let middle = disk_blocks / 2;
        let blocks = JOURNAL_BLOCKS.min(middle).max(1);
        Log { start: middle.saturating_sub(blocks), blocks, next: 0 }
    }

    /// Takes so many blocks: runs of first block on the disk and length, two where the end is
    /// passed.
    pub fn take(&mut self, blocks: u64) -> Vec<(u64, u64)> {
        let mut left = blocks.min(self.blocks);
        let mut runs = Vec::new();
        while left > 0 {
            let count = left.min(self.blocks - self.next);
            runs.push((self.start + self.next, count));
            self.next = (self.next + count) % self.blocks;
            left -= count;
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_has_an_inode_a_file_and_two_blocks_more_for_one_that_grew() {
        let mut transaction = Transaction::default();
        assert!(transaction.add(3, false));
        assert!(!transaction.add(4, true) && !transaction.add(4, false));
        assert_eq!(transaction.log_blocks(), 1 + 1 + 3);
    }

    #[test]
    fn the_log_goes_round() {
        let mut log = Log::new(1 << 20);
        assert_eq!(log.take(4), [((1 << 19) - 32768, 4)]);
        log.take(32760);
        assert_eq!(log.take(6), [((1 << 19) - 4, 4), ((1 << 19) - 32768, 2)]);
    }
}
