//! Block groups: the positions of bitmaps, inode tables and data.

use super::config::FileSystemConfig;
use crate::host::page::PAGE_BYTES;

/// Bytes of a block: the size of a page.
pub(crate) const BLOCK_BYTES: u64 = PAGE_BYTES;
/// Blocks of a group: one bit for each in a bitmap of one block.
pub(crate) const GROUP_BLOCKS: u64 = BLOCK_BYTES * 8;
/// Group descriptors in a block; each takes 32 bytes.
const DESCRIPTORS_IN_BLOCK: u64 = BLOCK_BYTES / 32;

/// The number of an inode, from 1.
pub(crate) type Inode = u32;
/// Inode number of the root directory.
pub(crate) const ROOT_INODE: Inode = 2;
/// The first inode number of an ordinary file; the file system reserves those below.
pub(crate) const FIRST_INODE: Inode = 11;

/// The layout that follows from the size of the disk and the parameters of mke2fs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub config: FileSystemConfig,
    pub groups: u32,
    pub inodes_per_group: u32,
}

impl Geometry {
    /// Lays out whole groups on a disk of this many blocks. A remainder of less than a group (128
    /// MiB) stays unused. Returns `None` if the disk is smaller than one group.
    pub fn new(config: FileSystemConfig, blocks: u64) -> Option<Geometry> {
        let bytes = GROUP_BLOCKS * BLOCK_BYTES;
        let per_block = BLOCK_BYTES as u32 / config.inode_bytes;
        // The inode table takes whole blocks, and its bitmap one block.
        let wanted = (bytes / u64::from(config.bytes_per_inode)) as u32;
        let inodes_per_group = wanted.next_multiple_of(per_block).min(GROUP_BLOCKS as u32);
        // Inode numbers have 32 bits.
        let most = u64::from(u32::MAX / inodes_per_group);
        let groups = (blocks / GROUP_BLOCKS).min(most) as u32;
        (groups > 0).then_some(Geometry { config, groups, inodes_per_group })
    }

    /// The first block of a group.
    pub fn start(&self, group: u32) -> u64 {
        u64::from(group) * GROUP_BLOCKS
    }

    /// The group of an inode.
    pub fn group_of(&self, inode: Inode) -> u32 {
        (inode - 1) / self.inodes_per_group
    }

    /// The block of the inode table that holds an inode. A higher inode number is never in a lower
    /// block.
    pub fn inode_block(&self, inode: Inode) -> u64 {
        let index = (inode - 1) % self.inodes_per_group;
        self.table(self.group_of(inode)) + u64::from(index / self.inodes_in_block())
    }

    /// The blocks that are read together with an inode's block: first block and length. They form
    /// an aligned window within the part of the table that the group's first `used` inodes take.
    pub fn read_ahead(&self, inode: Inode, used: u32) -> (u64, u64) {
        let block = self.inode_block(inode);
        let window = u64::from(self.config.inode_read_ahead_blocks);
        if window < 2 {
            return (block, 1);
        }
        let table = self.table(self.group_of(inode));
        let end = table + u64::from(used.max(1).div_ceil(self.inodes_in_block()));
        let first = (block & !(window - 1)).max(table);
        let last = ((block & !(window - 1)) + window).min(end).max(block + 1);
        (first, last - first)
    }

    /// Blocks of one group's inode table.
    pub fn table_blocks(&self) -> u64 {
        u64::from(self.inodes_per_group / self.inodes_in_block())
    }

    /// The blocks that the file system reserves in a group: first block and length of each run.
    pub fn own_blocks(&self, group: u32) -> Vec<(u64, u64)> {
        let mut runs = vec![(self.start(group), self.copy_blocks(group))];
        let first = self.flex_first(group);
        if first == group {
            let members = u64::from(self.config.flex_groups.min(self.groups - first));
            runs.push((self.bitmaps(first), 2 * members + members * self.table_blocks()));
        }
        runs.retain(|(_, blocks)| *blocks > 0);
        runs
    }

    /// The first block of a group's inode table: after the bitmaps of all groups of its flex group.
    fn table(&self, group: u32) -> u64 {
        let first = self.flex_first(group);
        let members = u64::from(self.config.flex_groups.min(self.groups - first));
        self.bitmaps(first) + 2 * members + u64::from(group - first) * self.table_blocks()
    }

    /// The first of the bitmaps at the head of this flex group.
    fn bitmaps(&self, first: u32) -> u64 {
        self.start(first) + self.copy_blocks(first)
    }

    fn flex_first(&self, group: u32) -> u32 {
        group - group % self.config.flex_groups
    }

    /// Blocks of the superblock copy and the descriptors of all groups; present in groups 0, 1 and
    /// powers of 3, 5 and 7 (`sparse_super`).
    fn copy_blocks(&self, group: u32) -> u64 {
        let is_power = |base: u32| {
            let mut power = base;
            while power < group {
                power = power.saturating_mul(base);
            }
            power == group
        };
        match group < 2 || [3, 5, 7].into_iter().any(is_power) {
            true => 1 + u64::from(self.groups).div_ceil(DESCRIPTORS_IN_BLOCK),
            false => 0,
        }
    }

    fn inodes_in_block(&self) -> u32 {
        BLOCK_BYTES as u32 / self.config.inode_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_of_a_higher_inode_is_never_lower() {
        for config in [FileSystemConfig::ext3(), FileSystemConfig::ext4()] {
            let geometry = Geometry::new(config, 40 * GROUP_BLOCKS + 7).unwrap();
            let last = geometry.groups * geometry.inodes_per_group;
            let blocks: Vec<u64> = (1..=last).map(|inode| geometry.inode_block(inode)).collect();
            assert!(blocks.windows(2).all(|pair| pair[0] <= pair[1]), "{config:?}");
            // A block of the table holds 32 inodes of 128 bytes, or 16 of 256.
            assert_eq!(blocks.iter().filter(|block| **block == blocks[0]).count() as u32, 4096 / config.inode_bytes);
        }
    }

    #[test]
    fn a_group_of_ext3_begins_with_its_bitmaps_and_its_table() {
        let geometry = Geometry::new(FileSystemConfig::ext3(), 40 * GROUP_BLOCKS).unwrap();
        // 128 MiB / 16 KiB = 8192 inodes of 128 bytes: 256 blocks. Group 2 has no copy of the
        // superblock, group 3 has.
        assert_eq!((geometry.inodes_per_group, geometry.table_blocks()), (8192, 256));
        assert_eq!(geometry.own_blocks(2), [(2 * GROUP_BLOCKS, 258)]);
        assert_eq!(geometry.own_blocks(3), [(3 * GROUP_BLOCKS, 2), (3 * GROUP_BLOCKS + 2, 258)]);
        assert_eq!(geometry.inode_block(2 * 8192 + 33), 2 * GROUP_BLOCKS + 3);
    }

    #[test]
    fn sixteen_groups_of_ext4_keep_their_tables_together() {
        let geometry = Geometry::new(FileSystemConfig::ext4(), 40 * GROUP_BLOCKS).unwrap();
        // 16 of each bitmap, then 16 tables of 512 blocks. The last flex group has the 8 groups
        // that are left.
        assert_eq!(geometry.own_blocks(16), [(16 * GROUP_BLOCKS, 32 + 16 * 512)]);
        assert_eq!(geometry.own_blocks(32), [(32 * GROUP_BLOCKS, 16 + 8 * 512)]);
        assert_eq!(geometry.own_blocks(18), []);
        assert_eq!(geometry.inode_block(17 * 8192 + 1), 16 * GROUP_BLOCKS + 32 + 512);
    }

    #[test]
    fn inode_read_ahead_is_an_aligned_window_of_used_inodes() {
        let geometry = Geometry::new(FileSystemConfig::ext4(), 40 * GROUP_BLOCKS).unwrap();
        let table = geometry.inode_block(1);
        let inode = 1 + 16 * 40;
        let (first, blocks) = geometry.read_ahead(inode, 8192);
        assert_eq!((first % 32, blocks, geometry.inode_block(inode) - first < 32), (0, 32, true));
        // Ten inodes are in use: one block of the table.
        assert_eq!(geometry.read_ahead(3, 10), (table, 1));
        let none = Geometry::new(FileSystemConfig::ext3(), 40 * GROUP_BLOCKS).unwrap();
        assert_eq!(none.read_ahead(100, 8192).1, 1);
    }
}
