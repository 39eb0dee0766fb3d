//! An ext-like file system: block groups, inode tables, directories in hash order, extents or
//! indirect blocks, and the effects of years of use.
//!
//! The layout follows the public descriptions: R. Card, T. Ts'o & S. Tweedie, "Design and
//! implementation of the second extended filesystem" (1994); D. Phillips, "A directory index for
//! ext2" (2001); A. Mathur et al., "The new ext4 filesystem" (OLS 2007). Not modelled: resizing,
//! reserved blocks, quotas, extended attributes, preallocation, and indexes of more than one level
//! (directories of more than about 70,000 names). The hash of names is this crate's own: a real
//! file system keys its hash with a number drawn at its creation, so its order is arbitrary too.

mod age;
mod allocate;
mod bitmap;
pub(crate) mod config;
mod directory_builder;
mod geometry;
mod grow;
mod sizes;
pub(crate) mod tree;

use rand_pcg::Pcg64;

use super::files::{File, PlannedFile, is_device};
use crate::host::page::PAGE_SECTORS;
pub(crate) use age::Ageing;
use allocate::Allocator;
use config::FileSystemConfig;
use geometry::{BLOCK_BYTES, Geometry, Inode};
pub(crate) use grow::TreeParameters;
pub(crate) use sizes::SizeLaw;
use tree::{Mapping, Tree};

/// Block numbers of ext3: twelve in the inode, and 1024 in an indirect block.
const DIRECT_BLOCKS: u64 = 12;
const NUMBERS_IN_BLOCK: u64 = BLOCK_BYTES / 4;
/// Extents of ext4: four in the inode, and 340 of 12 bytes in a block, after a header of the same
/// size.
const EXTENTS_IN_INODE: usize = 4;
const EXTENTS_IN_BLOCK: usize = (BLOCK_BYTES as usize - 12) / 12;

/// A file system on a disk.
#[derive(Debug)]
pub(crate) struct FileSystem {
    allocator: Allocator,
    rng: Pcg64,
}

/// Runs of blocks (first block and length), and the mapping blocks that list them.
type Mapped = (Vec<(u64, u64)>, Vec<Mapping>);

/// A file that was created.
#[derive(Debug)]
struct CreatedFile {
    file: File,
    mapping: Vec<Mapping>,
}

impl FileSystem {
    /// Creates a file system over the disk. Returns `None` if the disk is smaller than one block
    /// group.
    pub fn new(
        config: FileSystemConfig,
        capacity_sectors: u64,
        ageing: Option<Ageing>,
        seed: u64,
        rng: Pcg64,
    ) -> Option<FileSystem> {
        let geometry = Geometry::new(config, capacity_sectors / PAGE_SECTORS)?;
        Some(FileSystem { allocator: Allocator::new(geometry, ageing, seed), rng })
    }

    /// Creates the jobs' large files, each directory in a group of its own; the disk itself is no
    /// file. Returns `None` if they do not fit.
    pub fn make_files(&mut self, wanted: &[PlannedFile], capacity_sectors: u64) -> Option<Vec<File>> {
        let mut directories: Vec<(&str, u32)> = Vec::new();
        let mut files = Vec::new();
        for wanted in wanted {
            if is_device(&wanted.name) {
                files.push(disk_itself(capacity_sectors));
                continue;
            }
            let name = wanted.name.rsplit_once('/').map_or("", |(directory, _)| directory);
            let known = directories.iter().find(|(known, _)| *known == name).map(|(_, group)| *group);
            let group = match known {
                Some(group) => group,
                None => {
                    let inode = self.allocator.directory_inode(None, &mut self.rng)?;
                    directories.push((name, self.allocator.geometry.group_of(inode)));
                    self.allocator.geometry.group_of(inode)
                }
            };
            let inode = self.allocator.file_inode(group)?;
            files.push(self.make_file(inode, wanted.bytes)?.file);
        }
        Some(files)
    }

    /// Creates a tree and returns its files in the tree's order; `None` if the disk has no room for
    /// it.
    pub fn grow(&mut self, growth: &TreeParameters) -> Option<(Tree, Vec<File>)> {
        grow::grow(self, growth)
    }

    /// Allocates blocks for the file of an inode, and the mapping blocks that list them.
    fn make_file(&mut self, inode: Inode, bytes: u64) -> Option<CreatedFile> {
        let geometry = self.allocator.geometry;
        let goal = geometry.start(geometry.group_of(inode));
        let blocks = bytes.div_ceil(BLOCK_BYTES);
        let (runs, mapping) = match geometry.config.extents {
            true => self.map_by_extents(goal, blocks)?,
            false => self.map_by_numbers(goal, blocks)?,
        };
        Some(CreatedFile { file: file_of(bytes, &runs), mapping })
    }

    /// Creates a file in one piece at or after a group, or before the group if necessary; if no
    /// such place exists, in as few pieces as possible. The file is open already, so no metadata of
    /// it is read.
    fn make_in_one_piece(&mut self, group: u32, bytes: u64) -> Option<File> {
        let blocks = bytes.div_ceil(BLOCK_BYTES);
        let mut runs = Vec::new();
        let start = self.allocator.geometry.start(group);
        let unused = self.allocator.allocate_unused(start, blocks, &mut runs);
        if !unused && !self.allocator.allocate_unused(0, blocks, &mut runs) {
            self.allocator.allocate(start, blocks, &mut runs).then_some(())?;
        }
        Some(file_of(bytes, &runs))
    }

    fn map_by_extents(&mut self, goal: u64, blocks: u64) -> Option<Mapped> {
        let mut runs = Vec::new();
        if !self.allocator.allocate(goal, blocks, &mut runs) {
            return None;
        }
        let mut mapping = Vec::new();
        if runs.len() > EXTENTS_IN_INODE {
            let mut page = 0;
            for extents in runs.chunks(EXTENTS_IN_BLOCK) {
                mapping.push(Mapping { page, block: self.one_block(goal)? });
                page += extents.iter().map(|(_, blocks)| blocks).sum::<u64>();
            }
        }
        Some((runs, mapping))
    }

    /// Maps a file through indirect blocks: twelve direct blocks, then an indirect block before the
    /// blocks that it lists, and so on. From the second indirect block on, a double-indirect block
    /// lists 1024 of them. The third level works like the second.
    fn map_by_numbers(&mut self, goal: u64, blocks: u64) -> Option<Mapped> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        let mut mapping = Vec::new();
        let (mut goal, mut page) = (goal, 0);
        while page < blocks {
            let piece = match page {
                0 => DIRECT_BLOCKS,
                _ => NUMBERS_IN_BLOCK,
            };
            if page >= DIRECT_BLOCKS {
                let number = (page - DIRECT_BLOCKS) / NUMBERS_IN_BLOCK;
                let levels = if number % NUMBERS_IN_BLOCK == 1 { 2 } else { 1 };
                for _ in 0..levels {
                    let block = self.one_block(goal)?;
                    mapping.push(Mapping { page, block });
                    goal = block + 1;
                }
            }
            let piece = piece.min(blocks - page);
            if !self.allocator.allocate(goal, piece, &mut runs) {
                return None;
            }
            goal = runs.last().map_or(goal, |(first, blocks)| first + blocks);
            page += piece;
        }
        Some((runs, mapping))
    }

    /// Frees a file's inode and blocks.
    fn delete_file(&mut self, inode: Inode, made: &CreatedFile) {
        self.allocator.return_inode(inode);
        for (sector, sectors) in made.file.runs() {
            self.allocator.free(sector / PAGE_SECTORS, sectors / PAGE_SECTORS);
        }
        for mapping in &made.mapping {
            self.allocator.free(mapping.block, 1);
        }
    }

    fn one_block(&mut self, goal: u64) -> Option<u64> {
        let mut runs = Vec::new();
        if !self.allocator.allocate(goal, 1, &mut runs) {
            return None;
        }
        runs.first().map(|(first, _)| *first)
    }
}

/// Creates a file from these runs of blocks.
fn file_of(bytes: u64, runs: &[(u64, u64)]) -> File {
    let mut file = File::empty(bytes);
    for (first, blocks) in runs {
        file.append(first * PAGE_SECTORS, blocks * PAGE_SECTORS);
    }
    file
}

/// The disk as a file of whole pages.
pub(crate) fn disk_itself(capacity_sectors: u64) -> File {
    let sectors = capacity_sectors / PAGE_SECTORS * PAGE_SECTORS;
    let mut file = File::empty(sectors * 512);
    file.append(0, sectors);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_system(config: FileSystemConfig, ageing: Option<Ageing>) -> FileSystem {
        FileSystem::new(config, 64 << 21, ageing, 1, Pcg64::new(1, 2)).unwrap()
    }

    fn wanted(name: &str, mib: u64) -> PlannedFile {
        PlannedFile { name: name.into(), bytes: mib << 20, declared_at: ("test.fio".into(), 1) }
    }

    fn sectors(file: &File) -> u64 {
        file.runs().map(|(_, sectors)| sectors).sum()
    }

    #[test]
    fn a_large_file_on_a_fresh_file_system_has_few_extents() {
        let mut fs = file_system(FileSystemConfig::ext4(), None);
        let files = fs.make_files(&[wanted("a", 1024), wanted("/dev/sda", 0)], 64 << 21).unwrap();
        assert_eq!((sectors(&files[0]), files[0].bytes), (1024 << 11, 1 << 30));
        assert!(files[0].runs().count() <= 4, "{} pieces", files[0].runs().count());
        assert_eq!(sectors(&files[1]), 64 << 21);
    }

    #[test]
    fn a_file_that_does_not_fit_is_refused() {
        let mut fs = file_system(FileSystemConfig::ext4(), None);
        assert!(fs.make_files(&[wanted("a", 70 << 10)], 64 << 21).is_none());
        assert!(FileSystem::new(FileSystemConfig::ext3(), 1000, None, 1, Pcg64::new(1, 2)).is_none());
    }

    #[test]
    fn ext3_lists_blocks_after_the_twelfth_in_mapping_blocks_before_them() {
        let mut fs = file_system(FileSystemConfig::ext3(), None);
        let inode = fs.allocator.file_inode(2).unwrap();
        let small = fs.make_file(inode, 12 * 4096).unwrap();
        assert_eq!((small.mapping.len(), small.file.runs().count()), (0, 1));
        // 12 blocks, an indirect block, 1024 blocks, two indirect blocks, the last block.
        let large = fs.make_file(inode, 1037 * 4096).unwrap();
        let pages: Vec<u64> = large.mapping.iter().map(|mapping| mapping.page).collect();
        assert_eq!(pages, [12, 1036, 1036]);
        let (first, _) = large.file.runs().next().unwrap();
        assert_eq!(large.mapping[0].block, first / 8 + 12);
        assert_eq!(sectors(&large.file), 1037 * 8);
    }

    #[test]
    fn deleted_files_free_their_blocks_and_inodes() {
        let mut fs = file_system(FileSystemConfig::ext3(), None);
        let inode = fs.allocator.file_inode(2).unwrap();
        let made = fs.make_file(inode, 5 << 20).unwrap();
        let runs = |fs: &FileSystem| fs.allocator.free_runs();
        let with_file: u64 = runs(&fs).iter().sum();
        fs.delete_file(inode, &made);
        // 1280 blocks of data: 12 are listed in the inode, 1024 in an indirect block, the rest
        // through a double-indirect block.
        assert_eq!(runs(&fs).iter().sum::<u64>() - with_file, 1280 + 3);
        assert_eq!(runs(&fs).len(), 1);
        assert_eq!(fs.allocator.file_inode(2), Some(inode));
    }

    #[test]
    fn a_contiguous_file_is_contiguous_on_an_aged_file_system_too() {
        let ageing = Ageing { rounds: 3, full_percent: 80 };
        let mut fs = file_system(FileSystemConfig::ext4(), Some(ageing));
        fs.make_files(&[wanted("a", 64)], 64 << 21).unwrap();
        let file = fs.make_in_one_piece(17, 300 << 20).unwrap();
        assert_eq!((file.runs().count(), sectors(&file)), (1, 300 << 11));
        // Larger than all remaining groups.
        assert!(fs.make_in_one_piece(17, 70 << 30).is_none());
    }

    #[test]
    fn ageing_fragments_free_space_and_files() {
        let ageing = Ageing { rounds: 3, full_percent: 80 };
        let pieces = |ageing| {
            let mut fs = file_system(FileSystemConfig::ext4(), ageing);
            let files = fs.make_files(&[wanted("a", 64)], 64 << 21).unwrap();
            let runs = fs.allocator.free_runs();
            (files[0].runs().count(), runs.iter().sum::<u64>() / runs.len() as u64)
        };
        let (fresh, used) = (pieces(None), pieces(Some(ageing)));
        assert_eq!(fresh.0, 1);
        assert!(used.0 > 20, "{} pieces", used.0);
        // Free runs of 100 MiB and more, and of half a megabyte.
        assert!(fresh.1 > 10_000 && used.1 < 200, "{} and {} blocks", fresh.1, used.1);
    }
}
