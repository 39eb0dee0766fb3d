//! Locates inodes and file data on an ext4 device: reads superblock, group descriptors and inodes.
//!
//! Offsets follow "ext4 Data Structures and Algorithms" in the Linux documentation (the chapters on
//! the superblock, on block group descriptors, on index nodes and on their contents).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const SUPERBLOCK_AT: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 1024;
const MAGIC: u16 = 0xEF53;
/// `s_feature_incompat`, `meta_bg`: each meta group stores its own descriptors.
const META_BG: u32 = 0x10;
/// `s_feature_incompat`, `64bit`: `s_desc_size` is the size of a descriptor.
const WIDE: u32 = 0x80;
/// `s_feature_ro_compat`, `uninit_bg` or `metadata_csum`: descriptors have a count of unused
/// inodes.
const UNUSED_COUNT: u32 = 0x10 | 0x400;
/// `s_feature_ro_compat`, `sparse_super`: only some groups have a superblock backup.
const FEW_SUPERBLOCKS: u32 = 0x1;
/// Inode numbers have 32 bits.
const INODES_MAX: u64 = u32::MAX as u64;
/// `bg_flags`: all inodes of the group are unused.
const INODES_UNUSED: u16 = 0x1;
/// `i_mode`: mask of the file type, and the value for regular files.
const KIND: u16 = 0xF000;
const REGULAR: u16 = 0x8000;
/// `i_flags`: the inode has an extent tree.
const HAS_EXTENTS: u32 = 0x8_0000;
/// `eh_magic`: magic number of an extent tree node.
const EXTENTS_MAGIC: u16 = 0xF30A;
/// `ee_len`: a larger value marks an unwritten extent.
const WRITTEN_BLOCKS_MAX: u16 = 1 << 15;
/// Largest number of extents in an inode.
const EXTENTS_IN_INODE: u16 = 4;
/// Offset of `i_block` in an inode, and size of an extent tree entry, in bytes.
const EXTENTS_AT: usize = 0x28;
const EXTENT_BYTES: usize = 12;
/// Linux reads an inode table in aligned units of this many blocks (`inode_readahead_blks`) and one
/// more block, as recordings of Linux 6.18 show.
const READ_AHEAD_BLOCKS: u64 = 32;

/// Why inode tables cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Ext4Error {
    /// Reading the device or image failed.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The device has no ext4 file system, or its superblock is damaged.
    #[error("is not ext4: {0}")]
    NotExt4(String),
}

impl Ext4Error {
    fn descriptor_overflow() -> Ext4Error {
        Ext4Error::NotExt4("the group descriptors are beyond the largest possible device".to_owned())
    }
}

/// The locations of all inode tables of an ext4 file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InodeTables {
    /// Block size in bytes.
    pub block_bytes: u64,
    /// Inode size in bytes.
    pub inode_bytes: u64,
    /// Number of inodes per block group.
    pub inodes_per_group: u64,
    /// The inode table of each block group.
    pub tables: Vec<InodeTable>,
}

/// The inode table of one block group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InodeTable {
    /// First block of the table on the device.
    pub first_block: u64,
    /// Number of leading blocks that contain inodes that were ever used.
    pub used_blocks: u64,
}

impl InodeTables {
    /// Reads the table locations from a device or image.
    ///
    /// # Errors
    /// [`Ext4Error`] if the device cannot be read or has no valid superblock.
    pub fn read(device: &File) -> Result<InodeTables, Ext4Error> {
        let mut superblock = [0; SUPERBLOCK_BYTES];
        device.read_exact_at(&mut superblock, SUPERBLOCK_AT)?;
        let descriptors = Descriptors::parse(&superblock)?;
        let mut bytes = vec![0; descriptors.block_bytes as usize];
        let mut tables = Vec::new();
        let mut block = None;
        for group in 0..descriptors.groups {
            let place = descriptors.descriptor_offset(group).ok_or_else(Ext4Error::descriptor_overflow)?;
            let (of, at) = (place / descriptors.block_bytes, (place % descriptors.block_bytes) as usize);
            if block != Some(of) {
                device.read_exact_at(&mut bytes, of * descriptors.block_bytes)?;
                block = Some(of);
            }
            tables.push(descriptors.table(&bytes[at..at + descriptors.bytes as usize]));
        }
        let Descriptors { block_bytes, inode_bytes, inodes_per_group, .. } = descriptors;
        Ok(InodeTables { block_bytes, inode_bytes, inodes_per_group, tables })
    }

    /// Returns the device block that contains an inode; `None` if the inode number is invalid.
    pub fn block(&self, inode: u64) -> Option<u64> {
        let (table, block) = self.table_of(inode)?;
        table.first_block.checked_add(block)
    }

    /// Returns the range of blocks (end exclusive) that Linux reads for an inode with a cold cache:
    /// the aligned unit around the inode, without blocks that were never used. `None` if the inode
    /// number is invalid.
    pub fn window(&self, inode: u64) -> Option<(u64, u64)> {
        let (table, block) = self.table_of(inode)?;
        // The units are aligned on the device, not in the table.
        let begins = (table.first_block + block) / READ_AHEAD_BLOCKS * READ_AHEAD_BLOCKS;
        let ends = (begins + READ_AHEAD_BLOCKS + 1).min(table.first_block + table.used_blocks.max(block + 1));
        Some((begins.max(table.first_block), ends))
    }

    /// Returns the byte offset of an inode on the device; `None` if the inode number is invalid or
    /// the inode was never used.
    pub fn byte(&self, inode: u64) -> Option<u64> {
        let (table, block) = self.table_of(inode)?;
        let within = (inode - 1) % self.inodes_per_group * self.inode_bytes % self.block_bytes;
        let begins = table.first_block.checked_add(block)?.checked_mul(self.block_bytes)?;
        (block < table.used_blocks).then_some(begins.checked_add(within)?)
    }

    /// Returns the table of an inode and the block within that table.
    fn table_of(&self, inode: u64) -> Option<(InodeTable, u64)> {
        let number = inode.checked_sub(1)?;
        let table = self.tables.get(usize::try_from(number / self.inodes_per_group).ok()?)?;
        // Larger block numbers would overflow when converted to bytes.
        if table.first_block > u64::MAX / self.block_bytes / 2 {
            return None;
        }
        Some((*table, number % self.inodes_per_group * self.inode_bytes / self.block_bytes))
    }
}

/// Returns the device block of the first written extent of a file, given the bytes of its inode (at
/// least 128). `None` if the inode does not have the answer: it is not a regular file, its data are
/// inline or may be in memory only, or its extent tree has several levels.
pub fn first_block(inode: &[u8]) -> Option<u64> {
    let at = |entry: u16| EXTENTS_AT + EXTENT_BYTES * usize::from(entry);
    if inode.len() < at(EXTENTS_IN_INODE + 1) {
        return None;
    }
    let (mode, links, flags) = (u16_at(inode, 0), u16_at(inode, 0x1A), u32_at(inode, 0x20));
    let (magic, extents, depth) = (u16_at(inode, at(0)), u16_at(inode, at(0) + 2), u16_at(inode, at(0) + 6));
    let has_extent_list = mode & KIND == REGULAR && links > 0 && flags & HAS_EXTENTS != 0 && magic == EXTENTS_MAGIC;
    if !has_extent_list || depth > 0 || !(1..=EXTENTS_IN_INODE).contains(&extents) {
        return None;
    }
    let mut reached = 0;
    for at in (1..=extents).map(at) {
        let (logical, blocks) = (u64::from(u32_at(inode, at)), u16_at(inode, at + 4));
        if logical != reached {
            // The data of this hole may be in memory only.
            return None;
        }
        if blocks <= WRITTEN_BLOCKS_MAX {
            return Some(u64::from(u32_at(inode, at + 8)) | u64::from(u16_at(inode, at + 6)) << 32);
        }
        reached += u64::from(blocks - WRITTEN_BLOCKS_MAX);
    }
    None
}

/// Location and size of the group descriptors, from the superblock.
struct Descriptors {
    block_bytes: u64,
    inode_bytes: u64,
    inodes_per_group: u64,
    blocks_per_group: u64,
    groups: u64,
    first_data_block: u64,
    bytes: u64,
    /// First group whose descriptors are in its own meta group.
    own_groups_from: Option<u64>,
    has_unused_count: bool,
    /// True if only some groups have a superblock backup.
    few_superblocks: bool,
}

impl Descriptors {
    fn parse(superblock: &[u8; SUPERBLOCK_BYTES]) -> Result<Descriptors, Ext4Error> {
        let wrong = |what: String| Err(Ext4Error::NotExt4(what));
        let magic = u16_at(superblock, 0x38);
        if magic != MAGIC {
            return wrong(format!("the superblock's magic number is {magic:#06x}; expected {MAGIC:#06x}"));
        }
        let shift = u32_at(superblock, 0x18);
        if shift > 6 {
            return wrong(format!("a block of 2^{} bytes; 2^10 to 2^16 are possible", u64::from(shift) + 10));
        }
        let incompatible = u32_at(superblock, 0x60);
        let wide = incompatible & WIDE != 0;
        let high_blocks = if wide { u64::from(u32_at(superblock, 0x150)) } else { 0 };
        let blocks = u64::from(u32_at(superblock, 0x04)) | high_blocks << 32;
        let blocks_per_group = u64::from(u32_at(superblock, 0x20));
        let inodes_per_group = u64::from(u32_at(superblock, 0x28));
        // Revision 0 has inodes of 128 bytes and no size field.
        let inode_bytes = if u32_at(superblock, 0x4C) == 0 { 128 } else { u64::from(u16_at(superblock, 0x58)) };
        let block_bytes = 1024 << shift;
        if blocks_per_group == 0 || inodes_per_group == 0 || !(128..=block_bytes).contains(&inode_bytes) {
            return wrong(format!(
                "{blocks_per_group} blocks and {inodes_per_group} inodes of {inode_bytes} bytes in a group"
            ));
        }
        let bytes = if wide { u64::from(u16_at(superblock, 0xFE)) } else { 32 };
        if !(32..=block_bytes).contains(&bytes) {
            return wrong(format!("group descriptors of {bytes} bytes; 32 to {block_bytes} are possible"));
        }
        let first_data_block = u64::from(u32_at(superblock, 0x14));
        let groups = blocks.saturating_sub(first_data_block).div_ceil(blocks_per_group);
        if groups.checked_mul(inodes_per_group).is_none_or(|inodes| inodes > INODES_MAX) {
            return wrong(format!("{groups} groups of {inodes_per_group} inodes; {INODES_MAX} inodes are possible"));
        }
        Ok(Descriptors {
            block_bytes,
            inode_bytes,
            inodes_per_group,
            blocks_per_group,
            groups,
            first_data_block,
            bytes,
            own_groups_from: (incompatible & META_BG != 0)
                .then(|| u64::from(u32_at(superblock, 0x104)) * (block_bytes / bytes)),
            has_unused_count: u32_at(superblock, 0x64) & UNUSED_COUNT != 0,
            few_superblocks: u32_at(superblock, 0x64) & FEW_SUPERBLOCKS != 0,
        })
    }

    /// Returns the byte offset of a group descriptor; `None` if it exceeds 64 bits.
    fn descriptor_offset(&self, group: u64) -> Option<u64> {
        let a_block = self.block_bytes / self.bytes;
        let block = match self.own_groups_from {
            Some(from) if group >= from => {
                let first = group / a_block * a_block;
                // The first block of that group, after the superblock backup if it has one.
                let copies = u64::from(!self.few_superblocks || has_superblock(first));
                first.checked_mul(self.blocks_per_group)?.checked_add(self.first_data_block + copies)?
            }
            // Behind the block of the superblock.
            _ => SUPERBLOCK_AT / self.block_bytes + 1 + group / a_block,
        };
        block.checked_mul(self.block_bytes)?.checked_add(group % a_block * self.bytes)
    }

    fn table(&self, descriptor: &[u8]) -> InodeTable {
        let wide = self.bytes >= 64;
        let high = |at: usize| if wide { u64::from(u32_at(descriptor, at)) } else { 0 };
        let blocks_of = |inodes: u64| (inodes * self.inode_bytes).div_ceil(self.block_bytes);
        let first_block = u64::from(u32_at(descriptor, 0x08)) | high(0x28) << 32;
        let unused = if self.has_unused_count {
            u64::from(u16_at(descriptor, 0x1C)) | if wide { u64::from(u16_at(descriptor, 0x32)) << 16 } else { 0 }
        } else {
            0
        };
        let none = self.has_unused_count && u16_at(descriptor, 0x12) & INODES_UNUSED != 0;
        let used = if none { 0 } else { self.inodes_per_group.saturating_sub(unused) };
        InodeTable { first_block, used_blocks: blocks_of(used) }
    }
}

/// Returns true for groups with a superblock backup under `sparse_super`: 0, 1 and the powers of 3,
/// 5 and 7.
fn has_superblock(group: u64) -> bool {
    let is_power = |base: u64| std::iter::successors(Some(base), |at| at.checked_mul(base)).any(|at| at == group);
    group <= 1 || [3, 5, 7].into_iter().any(is_power)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> InodeTables {
        // 8192 inodes of 256 bytes need 512 blocks; the table of group 1 follows directly, as with
        // flex_bg.
        let table = |first_block, used_blocks| InodeTable { first_block, used_blocks };
        InodeTables {
            block_bytes: 4096,
            inode_bytes: 256,
            inodes_per_group: 8192,
            tables: vec![table(1057, 512), table(1569, 40)],
        }
    }

    #[test]
    fn an_inode_is_read_with_the_aligned_32_blocks_around_it_and_one_more() {
        // Inode 1001 has index 1000: block 62 of the table, device block 1119, between 1088 and
        // 1120.
        assert_eq!(tables().window(1001), Some((1088, 1121)));
    }

    #[test]
    fn a_window_ends_at_the_end_of_the_table_and_at_unused_blocks() {
        assert_eq!(tables().window(1), Some((1057, 1089)));
        // The last block of the first table, without blocks of the second.
        assert_eq!(tables().window(8192), Some((1568, 1569)));
        // Block 39 of the second table is device block 1608; blocks up to 1609 are used.
        assert_eq!(tables().window(8192 + 39 * 16 + 1), Some((1600, 1609)));
        assert_eq!(tables().window(0), None);
        assert_eq!(tables().window(3 * 8192), None);
    }

    #[test]
    fn the_offset_of_an_inode_follows_from_its_number() {
        assert_eq!(tables().byte(1), Some(1057 * 4096));
        assert_eq!(tables().byte(8192 + 18), Some(1570 * 4096 + 256));
        assert_eq!(tables().byte(8192 + 40 * 16 + 1), None);
        assert_eq!(tables().byte(0), None);
    }

    /// Builds an inode of a regular file with the given extents (length in blocks, first block).
    fn inode(depth: u8, extents: &[(u16, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        bytes[..2].copy_from_slice(&0o100_644u16.to_le_bytes());
        bytes[0x1A] = 1;
        bytes[0x20..0x24].copy_from_slice(&HAS_EXTENTS.to_le_bytes());
        bytes[0x28..0x2A].copy_from_slice(&EXTENTS_MAGIC.to_le_bytes());
        bytes[0x2A] = extents.len() as u8;
        bytes[0x2E] = depth;
        let mut logical = 0u32;
        for (at, (blocks, first)) in (0x34..).step_by(12).zip(extents) {
            bytes[at..at + 4].copy_from_slice(&logical.to_le_bytes());
            logical += u32::from(blocks % WRITTEN_BLOCKS_MAX);
            bytes[at + 4..at + 6].copy_from_slice(&blocks.to_le_bytes());
            bytes[at + 6..at + 8].copy_from_slice(&((first >> 32) as u16).to_le_bytes());
            bytes[at + 8..at + 12].copy_from_slice(&(*first as u32).to_le_bytes());
        }
        bytes
    }

    #[test]
    fn data_begin_with_the_first_written_extent() {
        let far = 7 << 32 | 99;
        for (extents, begins) in [
            (&[(8, 4711)][..], Some(4711)),
            (&[(32768, far)], Some(far)),
            (&[(32769, 5), (2, far), (1, 3)], Some(far)),
            (&[(32768 + 8, 5)], None),
            (&[], None),
        ] {
            assert_eq!(first_block(&inode(0, extents)), begins, "{extents:?}");
        }
    }

    #[test]
    fn an_inode_without_a_definite_answer_gives_none() {
        let complete = inode(0, &[(8, 4711)]);
        assert_eq!(first_block(&inode(1, &[(8, 4711)])), None, "a tree of extents");
        assert_eq!(first_block(&complete[..99]), None, "cut off");
        let mut hole = complete.clone();
        hole[0x34] = 1;
        assert_eq!(first_block(&hole), None, "what comes before may be in memory alone");
        for (at, what) in [(0x01, "kind"), (0x1A, "links"), (0x22, "flags"), (0x28, "magic")] {
            let mut other = complete.clone();
            other[at] = 0;
            assert_eq!(first_block(&other), None, "{what}");
        }
    }

    #[test]
    fn a_device_without_ext4_is_refused() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let error = InodeTables::read(&file).unwrap_err().to_string();
        assert_eq!(error, "is not ext4: the superblock's magic number is 0x0000; expected 0xef53");
        file.set_len(100).unwrap();
        assert!(matches!(InodeTables::read(&file), Err(Ext4Error::Read(_))));
    }
}
