//! Where an ext4 keeps its inodes, read from its superblock and group descriptors, and where an inode says that its file's data begin.
//!
//! Offsets are those of "ext4 Data Structures and Algorithms" in the documentation of Linux (the chapters on the superblock, on block group
//! descriptors, on index nodes and on their contents).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const SUPERBLOCK_AT: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 1024;
const MAGIC: u16 = 0xEF53;
/// `s_feature_incompat`: descriptors lie in groups of their own.
const META_BG: u32 = 0x10;
/// `s_feature_incompat`: descriptors are as long as `s_desc_size` says.
const WIDE: u32 = 0x80;
/// `s_feature_ro_compat`: the descriptors tell how much of a table was never used (`uninit_bg` or `metadata_csum`).
const TELLS_UNUSED: u32 = 0x10 | 0x400;
/// `s_feature_ro_compat`: few groups have a copy of the superblock (`sparse_super`).
const FEW_SUPERBLOCKS: u32 = 0x1;
/// Inodes have numbers of 32 bits.
const INODES_MAX: u64 = u32::MAX as u64;
/// `bg_flags`: no inode of the group was ever used.
const INODES_UNUSED: u16 = 0x1;
/// `i_mode`: the bits that tell what it is, and those of a regular file.
const KIND: u16 = 0xF000;
const REGULAR: u16 = 0x8000;
/// `i_flags`: the data are told by extents.
const HAS_EXTENTS: u32 = 0x8_0000;
/// `eh_magic`: what extents begin with.
const EXTENTS_MAGIC: u16 = 0xF30A;
/// `ee_len`: an extent that is longer was never written to.
const WRITTEN_BLOCKS_MAX: u16 = 1 << 15;
/// So many extents have room in an inode.
const EXTENTS_IN_INODE: u16 = 4;
/// Where `i_block` begins in an inode, and how long an entry of it is.
const EXTENTS_AT: usize = 0x28;
const EXTENT_BYTES: usize = 12;
/// So many blocks of a table are read at once, unless the file system is mounted with another `inode_readahead_blks`; and the one behind them, as is seen in recordings
/// of Linux 6.18.
const READ_AHEAD_BLOCKS: u64 = 32;

/// Why the tables cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum Ext4Error {
    /// The device or image cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It holds something else, or its superblock is damaged.
    #[error("is no ext4: {0}")]
    NotExt4(String),
}

impl Ext4Error {
    fn beyond() -> Ext4Error {
        Ext4Error::NotExt4("descriptors of groups lie beyond all that a device can hold".to_owned())
    }
}

/// The inode tables of an ext4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InodeTables {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes of an inode.
    pub inode_bytes: u64,
    /// Inodes of a group.
    pub inodes_per_group: u64,
    /// The table of each group.
    pub tables: Vec<InodeTable>,
}

/// The table of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InodeTable {
    /// Its first block.
    pub first_block: u64,
    /// How many of its blocks hold an inode that was ever used.
    pub used_blocks: u64,
}

impl InodeTables {
    /// Reads them from a device or image.
    ///
    /// # Errors
    /// [`Ext4Error`].
    pub fn read(device: &File) -> Result<InodeTables, Ext4Error> {
        let mut superblock = [0; SUPERBLOCK_BYTES];
        device.read_exact_at(&mut superblock, SUPERBLOCK_AT)?;
        let descriptors = Descriptors::told_by(&superblock)?;
        let mut bytes = vec![0; descriptors.block_bytes as usize];
        let mut tables = Vec::new();
        let mut block = None;
        for group in 0..descriptors.groups {
            let place = descriptors.place(group).ok_or_else(Ext4Error::beyond)?;
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

    /// The block in which an inode lies; `None` if there is no such inode.
    pub fn block(&self, inode: u64) -> Option<u64> {
        let (table, block) = self.place(inode)?;
        table.first_block.checked_add(block)
    }

    /// The blocks, from the first up to but not including the second, that Linux reads when it needs an inode of which nothing is in memory: those
    /// around it, as far as they were ever used. `None` if there is no such inode.
    pub fn window(&self, inode: u64) -> Option<(u64, u64)> {
        let (table, block) = self.place(inode)?;
        // Windows are aligned on the disk, not in the table.
        let begins = (table.first_block + block) / READ_AHEAD_BLOCKS * READ_AHEAD_BLOCKS;
        let ends = (begins + READ_AHEAD_BLOCKS + 1).min(table.first_block + table.used_blocks.max(block + 1));
        Some((begins.max(table.first_block), ends))
    }

    /// Where an inode lies on the device, in bytes; `None` if there is no such inode, or if it was never used.
    pub fn byte(&self, inode: u64) -> Option<u64> {
        let (table, block) = self.place(inode)?;
        let within = (inode - 1) % self.inodes_per_group * self.inode_bytes % self.block_bytes;
        let begins = table.first_block.checked_add(block)?.checked_mul(self.block_bytes)?;
        (block < table.used_blocks).then_some(begins.checked_add(within)?)
    }

    /// An inode's table, and its block there.
    fn place(&self, inode: u64) -> Option<(InodeTable, u64)> {
        let number = inode.checked_sub(1)?;
        let table = self.tables.get(usize::try_from(number / self.inodes_per_group).ok()?)?;
        // What lies so far out is nowhere: sums of these numbers are numbers of bytes, too.
        if table.first_block > u64::MAX / self.block_bytes / 2 {
            return None;
        }
        Some((*table, number % self.inodes_per_group * self.inode_bytes / self.block_bytes))
    }
}

/// The block of the device in which a file's data begin, as these bytes of its inode tell (at least 128 are needed): the first that was ever written to. `None` where the
/// inode alone does not tell: it is none of a regular file, its data may be in memory alone or within it, or its extents lie elsewhere.
pub fn first_block(inode: &[u8]) -> Option<u64> {
    let at = |entry: u16| EXTENTS_AT + EXTENT_BYTES * usize::from(entry);
    if inode.len() < at(EXTENTS_IN_INODE + 1) {
        return None;
    }
    let (mode, links, flags) = (half(inode, 0), half(inode, 0x1A), word(inode, 0x20));
    let (magic, extents, depth) = (half(inode, at(0)), half(inode, at(0) + 2), half(inode, at(0) + 6));
    let is_told = mode & KIND == REGULAR && links > 0 && flags & HAS_EXTENTS != 0 && magic == EXTENTS_MAGIC;
    if !is_told || depth > 0 || !(1..=EXTENTS_IN_INODE).contains(&extents) {
        return None;
    }
    let mut reached = 0;
    for at in (1..=extents).map(at) {
        let (logical, blocks) = (u64::from(word(inode, at)), half(inode, at + 4));
        if logical != reached {
            // What was written there may be in memory still.
            return None;
        }
        if blocks <= WRITTEN_BLOCKS_MAX {
            return Some(u64::from(word(inode, at + 8)) | u64::from(half(inode, at + 6)) << 32);
        }
        reached += u64::from(blocks - WRITTEN_BLOCKS_MAX);
    }
    None
}

/// What the superblock says of the descriptors.
struct Descriptors {
    block_bytes: u64,
    inode_bytes: u64,
    inodes_per_group: u64,
    blocks_per_group: u64,
    groups: u64,
    first_data_block: u64,
    bytes: u64,
    /// From which group on they lie in their own groups, if they do.
    own_groups_from: Option<u64>,
    tells_unused: bool,
    /// Copies of the superblock are in few groups alone.
    few_superblocks: bool,
}

impl Descriptors {
    fn told_by(superblock: &[u8; SUPERBLOCK_BYTES]) -> Result<Descriptors, Ext4Error> {
        let wrong = |what: String| Err(Ext4Error::NotExt4(what));
        let magic = half(superblock, 0x38);
        if magic != MAGIC {
            return wrong(format!("the superblock's magic number is {magic:#06x}; it would be {MAGIC:#06x}"));
        }
        let shift = word(superblock, 0x18);
        if shift > 6 {
            return wrong(format!("a block of 2^{} bytes; 2^10 to 2^16 are possible", u64::from(shift) + 10));
        }
        let incompatible = word(superblock, 0x60);
        let wide = incompatible & WIDE != 0;
        let high_blocks = if wide { u64::from(word(superblock, 0x150)) } else { 0 };
        let blocks = u64::from(word(superblock, 0x04)) | high_blocks << 32;
        let blocks_per_group = u64::from(word(superblock, 0x20));
        let inodes_per_group = u64::from(word(superblock, 0x28));
        // Revision 0 had inodes of 128 bytes and did not say so.
        let inode_bytes = if word(superblock, 0x4C) == 0 { 128 } else { u64::from(half(superblock, 0x58)) };
        let block_bytes = 1024 << shift;
        if blocks_per_group == 0 || inodes_per_group == 0 || !(128..=block_bytes).contains(&inode_bytes) {
            return wrong(format!(
                "{blocks_per_group} blocks and {inodes_per_group} inodes of {inode_bytes} bytes in a group"
            ));
        }
        let bytes = if wide { u64::from(half(superblock, 0xFE)) } else { 32 };
        if !(32..=block_bytes).contains(&bytes) {
            return wrong(format!("group descriptors of {bytes} bytes; 32 to {block_bytes} are possible"));
        }
        let first_data_block = u64::from(word(superblock, 0x14));
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
                .then(|| u64::from(word(superblock, 0x104)) * (block_bytes / bytes)),
            tells_unused: word(superblock, 0x64) & TELLS_UNUSED != 0,
            few_superblocks: word(superblock, 0x64) & FEW_SUPERBLOCKS != 0,
        })
    }

    /// Where the descriptor of a group lies, in bytes; `None` if that is farther out than anything can be.
    fn place(&self, group: u64) -> Option<u64> {
        let a_block = self.block_bytes / self.bytes;
        let block = match self.own_groups_from {
            Some(from) if group >= from => {
                let first = group / a_block * a_block;
                // The first block of that group, behind a copy of the superblock if it has one.
                let copies = u64::from(!self.few_superblocks || has_superblock(first));
                first.checked_mul(self.blocks_per_group)?.checked_add(self.first_data_block + copies)?
            }
            // Behind the block that the superblock lies in.
            _ => SUPERBLOCK_AT / self.block_bytes + 1 + group / a_block,
        };
        block.checked_mul(self.block_bytes)?.checked_add(group % a_block * self.bytes)
    }

    fn table(&self, descriptor: &[u8]) -> InodeTable {
        let wide = self.bytes >= 64;
        let high = |at: usize| if wide { u64::from(word(descriptor, at)) } else { 0 };
        let blocks_of = |inodes: u64| (inodes * self.inode_bytes).div_ceil(self.block_bytes);
        let first_block = u64::from(word(descriptor, 0x08)) | high(0x28) << 32;
        let unused = if self.tells_unused {
            u64::from(half(descriptor, 0x1C)) | if wide { u64::from(half(descriptor, 0x32)) << 16 } else { 0 }
        } else {
            0
        };
        let none = self.tells_unused && half(descriptor, 0x12) & INODES_UNUSED != 0;
        let used = if none { 0 } else { self.inodes_per_group.saturating_sub(unused) };
        InodeTable { first_block, used_blocks: blocks_of(used) }
    }
}

/// Groups with a copy of the superblock where few have one: the first two, and powers of 3, 5 and 7.
fn has_superblock(group: u64) -> bool {
    let is_power = |base: u64| std::iter::successors(Some(base), |at| at.checked_mul(base)).any(|at| at == group);
    group <= 1 || [3, 5, 7].into_iter().any(is_power)
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from(half(bytes, at)) | u32::from(half(bytes, at + 2)) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> InodeTables {
        // 8192 inodes of 256 bytes are 512 blocks; group 1's table lies right behind, as with flex_bg.
        let table = |first_block, used_blocks| InodeTable { first_block, used_blocks };
        InodeTables {
            block_bytes: 4096,
            inode_bytes: 256,
            inodes_per_group: 8192,
            tables: vec![table(1057, 512), table(1569, 40)],
        }
    }

    #[test]
    fn an_inode_s_window_is_the_aligned_32_blocks_around_it_and_the_next_one() {
        // Inode 1001 is number 1000: block 62 of the table, 1119 of the disk, between 1088 and 1120.
        assert_eq!(tables().window(1001), Some((1088, 1121)));
    }

    #[test]
    fn a_window_ends_where_the_table_does_and_where_nothing_was_ever_used() {
        assert_eq!(tables().window(1), Some((1057, 1089)));
        // The last block of the first table: nothing of the second.
        assert_eq!(tables().window(8192), Some((1568, 1569)));
        // Block 39 of the second table, 1608; used up to 1609.
        assert_eq!(tables().window(8192 + 39 * 16 + 1), Some((1600, 1609)));
        assert_eq!(tables().window(0), None);
        assert_eq!(tables().window(3 * 8192), None);
    }

    #[test]
    fn an_inode_lies_where_its_number_says_and_one_that_was_never_used_nowhere() {
        assert_eq!(tables().byte(1), Some(1057 * 4096));
        assert_eq!(tables().byte(8192 + 18), Some(1570 * 4096 + 256));
        assert_eq!(tables().byte(8192 + 40 * 16 + 1), None);
        assert_eq!(tables().byte(0), None);
    }

    /// An inode of a regular file with these extents: blocks, and the first of them.
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
    fn data_begin_with_the_first_extent_that_was_written_to() {
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
    fn what_an_inode_does_not_tell_alone_is_left_to_the_file_system() {
        let told = inode(0, &[(8, 4711)]);
        assert_eq!(first_block(&inode(1, &[(8, 4711)])), None, "a tree of extents");
        assert_eq!(first_block(&told[..99]), None, "cut off");
        let mut hole = told.clone();
        hole[0x34] = 1;
        assert_eq!(first_block(&hole), None, "what comes before may be in memory alone");
        for (at, what) in [(0x01, "kind"), (0x1A, "links"), (0x22, "flags"), (0x28, "magic")] {
            let mut other = told.clone();
            other[at] = 0;
            assert_eq!(first_block(&other), None, "{what}");
        }
    }

    #[test]
    fn what_is_no_ext4_is_refused() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let told = InodeTables::read(&file).unwrap_err().to_string();
        assert_eq!(told, "is no ext4: the superblock's magic number is 0x0000; it would be 0xef53");
        file.set_len(100).unwrap();
        assert!(matches!(InodeTables::read(&file), Err(Ext4Error::Read(_))));
    }
}
