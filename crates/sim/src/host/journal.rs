//! The journal of a file system: transactions, their blocks in the log, and its parameters.
//!
//! After S. Tweedie, "Journaling the Linux ext2fs filesystem" (LinuxExpo 1998), and A. Mathur et
//! al., "The new ext4 filesystem" (OLS 2007), in ordered mode: data is written to its final place
//! before the metadata that refers to the data is written to the journal.

use std::collections::BTreeMap;

/// The parameters of a journal of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalConfig {
    /// Time in ms from the first change of a transaction to its commit, 1 to 3600000 (`commit=`).
    /// Default 5000.
    pub commit_interval_ms: u64,
    /// The commit block is a barrier: the drive's cache is flushed before and after it
    /// (`barrier=`).
    pub barriers: bool,
    /// If true, a commit first writes the dirty pages of every written file (ext3). If false, only
    /// those of files that grew, because other files have no new blocks (ext4).
    pub all_data: bool,
}

impl JournalConfig {
    /// ext3 before Linux 3.1: no barriers.
    pub const fn ext3() -> Self {
        JournalConfig { commit_interval_ms: 5000, barriers: false, all_data: true }
    }

    /// ext4 with its defaults: barriers, and data of files that grew.
    pub const fn ext4() -> Self {
        JournalConfig { commit_interval_ms: 5000, barriers: true, all_data: false }
    }
}

/// The journal's length in blocks of 4 KiB: 128 MiB, mke2fs's choice for all but small disks.
pub(crate) const JOURNAL_BLOCKS: u64 = 32768;

/// Changes of metadata that are written to the disk together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transaction {
    /// Number of the transaction, from 1.
    pub id: u64,
    /// Files whose inodes have changed; true for files that grew.
    pub files: BTreeMap<u32, bool>,
}

impl Transaction {
    /// Adds the change of a file's inode. Returns true for the first change of the transaction.
    pub fn add(&mut self, file: u32, grows: bool) -> bool {
        let is_first = self.files.is_empty();
        *self.files.entry(file).or_insert(false) |= grows;
        is_first
    }

    /// Number of blocks in the journal without the commit block: a descriptor and the inode of each
    /// file. A file that grew adds a bitmap and a group descriptor.
    pub fn log_blocks(&self) -> u64 {
        1 + self.files.values().map(|grows| if *grows { 3 } else { 1 }).sum::<u64>()
    }
}

/// The circular log, with the position of the next block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    /// First block of the log on the disk.
    start: u64,
    blocks: u64,
    next: u64,
}

impl Log {
    /// Creates the log of a disk of `blocks` blocks. The log ends in the middle of the disk, as
    /// with later versions of mke2fs.
    pub fn new(disk_blocks: u64) -> Log {
        let middle = disk_blocks / 2;
        let blocks = JOURNAL_BLOCKS.min(middle).max(1);
        Log { start: middle.saturating_sub(blocks), blocks, next: 0 }
    }

    /// Takes the next blocks of the log. Returns runs of first block on the disk and length: two if
    /// they pass the end of the log.
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
    fn a_transaction_has_an_inode_per_file_and_two_more_blocks_per_grown_file() {
        let mut transaction = Transaction::default();
        assert!(transaction.add(3, false));
        assert!(!transaction.add(4, true) && !transaction.add(4, false));
        assert_eq!(transaction.log_blocks(), 1 + 1 + 3);
    }

    #[test]
    fn the_log_is_circular() {
        let mut log = Log::new(1 << 20);
        assert_eq!(log.take(4), [((1 << 19) - 32768, 4)]);
        log.take(32760);
        assert_eq!(log.take(6), [((1 << 19) - 4, 4), ((1 << 19) - 32768, 2)]);
    }
}
