//! Creates a tree of files: its shape, the order in which files are created and deleted, and their
//! final blocks.

use hoistway_units::sort;
use rand::RngExt;
use rand::seq::SliceRandom;

use super::directory_builder::{DirectoryBuilder, Name};
use super::geometry::{Inode, ROOT_INODE};
use super::sizes::SizeLaw;
use super::tree::{Directory, Node, Tree, TreeFile};
use super::{CreatedFile, File, FileSystem};
use crate::workload::distribution::standard_normal;
use crate::workload::mix;

/// Greatest depth of a directory below the tree's root.
const DEPTH_MAX: u32 = 7;
/// Spread of the number of files per directory: the standard deviation of its logarithm.
const FILES_DEVIATION: f64 = 1.2;

/// The parameters of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeParameters {
    pub files: u32,
    /// Number of directories, including the tree's root: at least 1.
    pub directories: u32,
    pub sizes: SizeLaw,
    /// Number of ageing rounds; each deletes a third of the files and writes them anew. 0 is a tree
    /// that was written once, in the order of its names.
    pub rounds: u32,
    /// If true, a single file with as many bytes is created too.
    pub single: bool,
}

/// Creates the tree. Returns `None` if the disk has no room for it.
pub(super) fn grow(fs: &mut FileSystem, growth: &TreeParameters) -> Option<(Tree, Vec<File>)> {
    let mut grower = Grower::new(fs, growth);
    grower.make_directories()?;
    let mut order = grower.in_order_of_names();
    if growth.rounds > 0 {
        order.shuffle(&mut grower.fs.rng);
    }
    for file in &order {
        grower.create(*file)?;
    }
    for _ in 0..growth.rounds {
        order.shuffle(&mut grower.fs.rng);
        let third = &order[..order.len().div_ceil(3)];
        for file in third {
            grower.delete(*file);
        }
        for file in third {
            grower.create(*file)?;
        }
    }
    grower.finish(growth.single)
}

struct Grower<'a> {
    fs: &'a mut FileSystem,
    folders: Vec<PendingDirectory>,
    files: Vec<PendingFile>,
}

/// A directory under construction.
struct PendingDirectory {
    name: u64,
    parent: Option<u32>,
    inode: Inode,
    folder: DirectoryBuilder,
    blocks: Vec<u64>,
}

/// A file of the tree, which may exist already.
struct PendingFile {
    name: u64,
    directory: u32,
    bytes: u64,
    made: Option<(Inode, CreatedFile)>,
}

impl<'a> Grower<'a> {
    /// Draws the shape: each directory below a random one that is not too deep, files distributed
    /// by drawn weights.
    fn new(fs: &'a mut FileSystem, growth: &TreeParameters) -> Self {
        let rng = &mut fs.rng;
        let indexed = fs.allocator.geometry.config.directory_index;
        let mut depths: Vec<u32> = Vec::new();
        let mut folders: Vec<PendingDirectory> = Vec::new();
        let mut sums: Vec<f64> = Vec::new();
        for number in 0..growth.directories.max(1) {
            let parent = (number > 0).then(|| {
                let mut parent = rng.random_range(0..number);
                while depths[parent as usize] >= DEPTH_MAX {
                    parent = folders[parent as usize].parent.unwrap_or(0);
                }
                parent
            });
            depths.push(parent.map_or(0, |parent| depths[parent as usize] + 1));
            let weight = (FILES_DEVIATION * standard_normal(rng)).exp();
            sums.push(sums.last().copied().unwrap_or(0.0) + weight);
            let (name, inode) = (rng.random(), ROOT_INODE);
            folders.push(PendingDirectory {
                name,
                parent,
                inode,
                folder: DirectoryBuilder::new(indexed),
                blocks: Vec::new(),
            });
        }
        let total = sums.last().copied().unwrap_or(1.0);
        let files = (0..growth.files).map(|_| {
            let ticket = total * crate::workload::distribution::unit(rng);
            let directory = sums.partition_point(|sum| *sum <= ticket).min(sums.len() - 1) as u32;
            PendingFile { name: rng.random(), directory, bytes: growth.sizes.draw(rng), made: None }
        });
        let files = files.collect();
        Grower { fs, folders, files }
    }

    /// Creates all directories in the order of an archive: by name, each before its contents.
    fn make_directories(&mut self) -> Option<()> {
        for number in self.directories_by_name() {
            let parent = self.folders[number as usize].parent;
            let allocator = &mut self.fs.allocator;
            let group = parent.map(|parent| allocator.geometry.group_of(self.folders[parent as usize].inode));
            let inode = allocator.directory_inode(group, &mut self.fs.rng)?;
            let growing = &mut self.folders[number as usize];
            growing.inode = inode;
            let name = growing.name;
            self.give_blocks(number)?;
            if let Some(parent) = parent {
                self.enter(parent, name, Node::Directory(number))?;
            }
        }
        Some(())
    }

    fn directories_by_name(&self) -> Vec<u32> {
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.folders.len()];
        for (number, growing) in (0u32..).zip(&self.folders) {
            if let Some(parent) = growing.parent {
                children[parent as usize].push(number);
            }
        }
        let mut order = Vec::new();
        let mut stack = vec![0u32];
        while let Some(number) = stack.pop() {
            order.push(number);
            let below = &mut children[number as usize];
            sort::by_key(below, |child| u64::MAX - self.folders[*child as usize].name);
            stack.append(below);
        }
        order
    }

    /// All files, directory by directory, in the order of their names.
    fn in_order_of_names(&self) -> Vec<u32> {
        let mut place = vec![0u32; self.folders.len()];
        for (at, number) in (0u32..).zip(self.directories_by_name()) {
            place[number as usize] = at;
        }
        let mut order: Vec<u32> = (0..self.files.len() as u32).collect();
        let planned = |file: &u32| &self.files[*file as usize];
        sort::by_key(&mut order, |file| planned(file).name);
        sort::by_key(&mut order, |file| u64::from(place[planned(file).directory as usize]));
        order
    }

    fn create(&mut self, file: u32) -> Option<()> {
        let PendingFile { name, directory, bytes, .. } = self.files[file as usize];
        let group = self.fs.allocator.geometry.group_of(self.folders[directory as usize].inode);
        let inode = self.fs.allocator.file_inode(group)?;
        self.enter(directory, name, Node::File(file))?;
        let made = self.fs.make_file(inode, bytes)?;
        self.files[file as usize].made = Some((inode, made));
        Some(())
    }

    fn delete(&mut self, file: u32) {
        let planned = &mut self.files[file as usize];
        if let Some((inode, made)) = planned.made.take() {
            self.folders[planned.directory as usize].folder.remove(hash(planned.name), Node::File(file));
            self.fs.delete_file(inode, &made);
        }
    }

    /// Adds a name to a directory, which may need another block for it.
    fn enter(&mut self, directory: u32, name: u64, node: Node) -> Option<()> {
        self.folders[directory as usize].folder.insert(Name { name, hash: hash(name), node });
        self.give_blocks(directory)
    }

    fn give_blocks(&mut self, directory: u32) -> Option<()> {
        let growing = &mut self.folders[directory as usize];
        let geometry = self.fs.allocator.geometry;
        while growing.blocks.len() < growing.folder.blocks() {
            let start = geometry.start(geometry.group_of(growing.inode));
            let goal = growing.blocks.last().map_or(start, |block| block + 1);
            growing.blocks.push(self.fs.one_block(goal)?);
        }
        Some(())
    }

    fn finish(self, single: bool) -> Option<(Tree, Vec<File>)> {
        let geometry = self.fs.allocator.geometry;
        let bytes = self.files.iter().map(|planned| planned.bytes).sum();
        let single = match single {
            true => Some(self.fs.make_in_one_piece(geometry.group_of(self.folders[0].inode), bytes)?),
            false => None,
        };
        let directories: Vec<Directory> =
            self.folders.into_iter().map(|made| made.folder.finish(made.inode, made.parent, made.blocks)).collect();
        let mut entries = vec![0u32; self.files.len()];
        for directory in &directories {
            for (at, entry) in (0u32..).zip(&directory.entries) {
                if let Node::File(file) = entry.node {
                    entries[file as usize] = at;
                }
            }
        }
        let (mut files, mut laid_out) = (Vec::new(), Vec::new());
        for (planned, entry) in self.files.into_iter().zip(entries) {
            let (inode, made) = planned.made?;
            let mapping = made.mapping.into_boxed_slice();
            files.push(TreeFile { inode, directory: planned.directory, entry, mapping });
            laid_out.push(made.file);
        }
        let count = laid_out.len() as u32;
        laid_out.extend(single);
        let single = (laid_out.len() as u32 > count).then_some(count);
        let used_inodes = (0..geometry.groups).map(|group| self.fs.allocator.used_inodes(group)).collect();
        Some((Tree { geometry, used_inodes, directories, files, first_file: 0, single, bytes }, laid_out))
    }
}

/// The hash of a name: 31 bits.
fn hash(name: u64) -> u32 {
    (mix(name) >> 33) as u32
}

#[cfg(test)]
mod tests {
    use super::super::{Ageing, FileSystemConfig};
    use super::*;
    use rand_pcg::Pcg64;

    /// As many as the Linux sources had in 2008, divided by ten.
    fn growth(rounds: u32) -> TreeParameters {
        let sizes = SizeLaw { median_bytes: 5000, mean_bytes: 14_500 };
        TreeParameters { files: 2250, directories: 150, sizes, rounds, single: false }
    }

    fn grown(config: FileSystemConfig, rounds: u32) -> (Tree, Vec<File>) {
        let ageing = (rounds > 0).then_some(Ageing { rounds, full_percent: 80 });
        let mut fs = FileSystem::new(config, 64 << 21, ageing, 1, Pcg64::new(3, 2)).unwrap();
        fs.grow(&growth(rounds)).unwrap()
    }

    fn blocks_of(tree: &Tree, files: &[File]) -> Vec<u64> {
        let data =
            files.iter().flat_map(|file| file.runs()).flat_map(|(first, length)| first / 8..(first + length) / 8);
        let directories = tree.directories.iter().flat_map(|directory| directory.blocks.iter().copied());
        let mapping = tree.files.iter().flat_map(|file| file.mapping.iter().map(|mapping| mapping.block));
        data.chain(directories).chain(mapping).collect()
    }

    #[test]
    fn every_block_and_every_inode_has_one_owner() {
        for config in [FileSystemConfig::ext3(), FileSystemConfig::ext4()] {
            for rounds in [0, 3] {
                let (tree, files) = grown(config, rounds);
                let mut blocks = blocks_of(&tree, &files);
                let pages: u64 = files.iter().map(File::pages).sum();
                assert!(blocks.len() as u64 > pages);
                blocks.sort_unstable();
                assert!(blocks.windows(2).all(|pair| pair[0] < pair[1]));
                let mut inodes: Vec<u32> = tree.files.iter().map(|file| file.inode).collect();
                inodes.extend(tree.directories.iter().map(|directory| directory.inode));
                inodes.sort_unstable();
                assert!(inodes.windows(2).all(|pair| pair[0] < pair[1]));
                // No file overlaps the blocks that the file system reserves.
                let own = (0..tree.geometry.groups).flat_map(|group| tree.geometry.own_blocks(group));
                let taken = |(first, length): (u64, u64)| blocks.iter().any(|at| (first..first + length).contains(at));
                assert!(!own.into_iter().any(taken));
            }
        }
    }

    #[test]
    fn a_directory_is_not_read_in_the_order_of_its_inodes() {
        let (tree, _) = grown(FileSystemConfig::ext4(), 0);
        let directory = tree.directories.iter().max_by_key(|directory| directory.entries.len()).unwrap();
        let inodes: Vec<u32> = directory.entries.iter().map(|entry| tree.inode(entry.node)).collect();
        let falls = inodes.windows(2).filter(|pair| pair[0] > pair[1]).count();
        // In a random order, every second step goes back.
        assert!(inodes.len() > 50 && falls * 3 > inodes.len(), "{falls} of {}", inodes.len());
        let mut by_name = directory.entries.clone();
        by_name.retain(|entry| matches!(entry.node, Node::File(_)));
        by_name.sort_by_key(|entry| entry.name);
        // On a fresh file system, names were created in their order.
        assert!(by_name.windows(2).all(|pair| tree.inode(pair[0].node) < tree.inode(pair[1].node)));
    }

    #[test]
    fn files_are_near_their_directory_and_top_directories_far_apart() {
        let mut fs = FileSystem::new(FileSystemConfig::ext3(), 64 << 21, None, 1, Pcg64::new(3, 2)).unwrap();
        let one = fs.grow(&growth(0)).unwrap().0;
        let other = fs.grow(&growth(0)).unwrap().0;
        let group = |inode| one.geometry.group_of(inode);
        let near = one.files.iter().filter(|file| {
            let directory = &one.directories[file.directory as usize];
            group(file.inode) == group(directory.inode)
        });
        assert!(near.count() * 10 > one.files.len() * 9);
        assert_ne!(group(one.directories[0].inode), group(other.directories[0].inode));
    }

    #[test]
    fn an_aged_tree_is_in_pieces_and_in_no_order() {
        let pieces = |files: &[File]| files.iter().map(|file| file.runs().count()).sum::<usize>() as f64 / 2250.0;
        let ((fresh, fresh_files), (aged, aged_files)) =
            (grown(FileSystemConfig::ext3(), 0), grown(FileSystemConfig::ext3(), 3));
        assert!(pieces(&fresh_files) < 1.1, "{}", pieces(&fresh_files));
        assert!(pieces(&aged_files) > 1.2, "{}", pieces(&aged_files));
        assert_eq!(fresh.bytes, fresh_files.iter().map(|file| file.bytes).sum::<u64>());
        assert_eq!(aged.files.len(), 2250);
    }

    #[test]
    fn an_open_reads_directory_inode_index_leaf_and_file_inode() {
        let sizes = SizeLaw { median_bytes: 300, mean_bytes: 300 };
        let one = TreeParameters { files: 300, directories: 1, sizes, rounds: 0, single: true };
        let mut fs = FileSystem::new(FileSystemConfig::ext3(), 64 << 21, None, 1, Pcg64::new(3, 2)).unwrap();
        let (tree, files) = fs.grow(&one).unwrap();
        let mut reads = Vec::new();
        tree.look_up_path(7, &mut reads);
        // The directory's inode, the index, one of two leaves, the file's inode.
        let directory = &tree.directories[0];
        let blocks: Vec<u64> = reads.iter().map(|read| read.first).collect();
        let leaf = directory.blocks[directory.entries[tree.files[7].entry as usize].block as usize];
        let inode = |inode| tree.geometry.inode_block(inode);
        assert_eq!(blocks, [inode(directory.inode), directory.blocks[0], leaf, inode(tree.files[7].inode)]);
        assert_eq!((files.len(), tree.single, files[300].bytes), (301, Some(300), 90_000));
        reads.clear();
        tree.read_directory(0, &mut reads);
        assert_eq!(reads.len(), 3);
    }

    #[test]
    fn without_an_index_the_blocks_before_a_name_are_read_together() {
        let config = FileSystemConfig { directory_index: false, ..FileSystemConfig::ext3() };
        let sizes = SizeLaw { median_bytes: 300, mean_bytes: 300 };
        let one = TreeParameters { files: 600, directories: 1, sizes, rounds: 0, single: false };
        let mut fs = FileSystem::new(config, 64 << 21, None, 1, Pcg64::new(3, 2)).unwrap();
        let (tree, _) = fs.grow(&one).unwrap();
        let entry = tree.directories[0].entries.iter().position(|entry| entry.block == 2).unwrap();
        let mut reads = Vec::new();
        tree.look_up(0, entry as u32, &mut reads);
        assert_eq!(reads.iter().map(|read| read.blocks).sum::<u64>(), 3);
    }
}
