//! The parameters with which the host's file system is created.

use crate::error::SimError;

/// An ext-like file system: the parameters of `mke2fs`, and the differences between ext3 and ext4.
///
/// Blocks are of 4 KiB, so that a block group, whose bitmap is one block, has 128 MiB. Defaults are
/// those of mke2fs(8) and of the mount options described in ext4(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystemConfig {
    /// Bytes of an inode: 128 or 256.
    pub inode_bytes: u32,
    /// Bytes of the disk per inode, 4096 to 4194304 (`mke2fs -i`).
    pub bytes_per_inode: u32,
    /// Number of groups whose bitmaps and inode tables are together at the head of the first of
    /// them, 1 to 64 (`flex_bg`). With 1, each group has its own at its head.
    pub flex_groups: u32,
    /// Files are mapped by extents, and blocks are allocated many at a time (ext4); if not, by
    /// indirect blocks, and one by one (ext3).
    pub extents: bool,
    /// Directories of more than one block have an index by hash; if not, the lookup of a name reads
    /// all blocks before it.
    pub directory_index: bool,
    /// Blocks of the inode table that are read together, a power of two up to 1024
    /// (`inode_readahead_blks`). With 0 or 1, each block is read alone.
    pub inode_read_ahead_blocks: u32,
}

impl FileSystemConfig {
    /// ext2, and ext3 before 2006: directories are searched from their beginning.
    pub const fn ext2() -> Self {
        FileSystemConfig { directory_index: false, ..FileSystemConfig::ext3() }
    }

    /// ext3 as mke2fs made it from 2006 on, with indexed directories.
    pub const fn ext3() -> Self {
        FileSystemConfig {
            inode_bytes: 128,
            bytes_per_inode: 16384,
            flex_groups: 1,
            extents: false,
            directory_index: true,
            inode_read_ahead_blocks: 0,
        }
    }

    /// ext4 as mke2fs made it from 2008 on, mounted with its defaults.
    pub const fn ext4() -> Self {
        FileSystemConfig {
            inode_bytes: 256,
            bytes_per_inode: 16384,
            flex_groups: 16,
            extents: true,
            directory_index: true,
            inode_read_ahead_blocks: 32,
        }
    }

    /// Checks that each field is in its documented range.
    ///
    /// # Errors
    /// [`SimError::Host`] for the first setting that is out of range.
    pub fn check(&self) -> Result<(), SimError> {
        let ahead = self.inode_read_ahead_blocks;
        let checks = [
            ("inode_bytes", self.inode_bytes, matches!(self.inode_bytes, 128 | 256), "128 or 256"),
            (
                "bytes_per_inode",
                self.bytes_per_inode,
                (4096..=4_194_304).contains(&self.bytes_per_inode),
                "4096 to 4194304",
            ),
            ("flex_groups", self.flex_groups, (1..=64).contains(&self.flex_groups), "1 to 64"),
            (
                "inode_read_ahead_blocks",
                ahead,
                ahead <= 1024 && (ahead == 0 || ahead.is_power_of_two()),
                "0, or a power of two up to 1024",
            ),
        ];
        match checks.into_iter().find(|(_, _, valid, _)| !valid) {
            Some((name, value, _, range)) => Err(SimError::Host { name, value: u64::from(value), range }),
            None => Ok(()),
        }
    }
}

/// ext4, the file system of the published measurements of archives and of most hosts since.
impl Default for FileSystemConfig {
    fn default() -> Self {
        FileSystemConfig::ext4()
    }
}
