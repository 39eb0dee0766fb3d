//! Walks through a tree of files: the order in which metadata blocks and parts of files are read.
//!
//! `readdir` is the order of `tar`: read a directory, then take each name in that order, and read
//! the file or descend into the directory. `archive` is the same with tar's reads: headers and
//! contents fill one record after the other, and a read ends with its record. `block` is the
//! two-pass order of C. Lunde's qtar. The first pass reads all directories and inodes in one sweep
//! over inode numbers, which new directories join. The second pass reads the files by the position
//! of their first blocks.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use hoistway_fio::Walk;
use hoistway_units::sort;
use rand::seq::SliceRandom;

use super::stream;
use crate::host::files::File;
use crate::host::fs::tree::{MetadataRead, Node, Tree};
use crate::host::page::{PAGE_BYTES, PAGE_SECTORS};

/// The length of a header in an archive of tar, to which contents are padded too.
const HEADER_BYTES: u64 = 512;

/// The next step of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The walk needs metadata blocks.
    Metadata(MetadataRead),
    /// The walk reads bytes of one of the world's files, and opens the file at its first read.
    Read { file: u32, offset: u64, bytes: u64, opens: bool },
}

/// A process's walk through a tree.
#[derive(Clone, Debug)]
pub(crate) struct Walker {
    tree: Arc<Tree>,
    order: Walk,
    /// The bytes of an archive's current record that are filled.
    filled: u64,
    /// The largest read in bytes, and the greatest distance of read-ahead in pages.
    read_bytes: u64,
    ahead_pages: u64,
    /// Index of the file that stands for the disk.
    disk: u32,
    /// Passes to make, and passes begun.
    passes: u64,
    pass: u64,
    seed: u64,
    metadata: VecDeque<MetadataRead>,
    reading: Option<Reading>,
    phase: Phase,
}

#[derive(Clone, Debug)]
enum Phase {
    /// Descending into directories; the last one is the current one.
    Down(Vec<InDirectory>),
    /// Descending into directories, whose files are read afterwards, each by its path.
    Find {
        stack: Vec<InDirectory>,
        found: Vec<u32>,
    },
    /// Inodes that are known but not visited, and the inode number that the sweep has reached.
    Collect {
        pending: BTreeSet<(u32, Node)>,
        at: u32,
        found: Vec<u32>,
    },
    /// Files from the last to the first; with `by_path`, each is looked up by its path.
    Files {
        left: Vec<u32>,
        by_path: bool,
    },
    /// Runs of blocks on the disk, from the last to the first.
    Blocks(Vec<(u64, u64)>),
    End,
}

#[derive(Clone, Debug)]
struct InDirectory {
    directory: u32,
    /// Entries still to visit, from the last to the first.
    left: Vec<u32>,
}

/// The part of a file that is being read.
#[derive(Clone, Copy, Debug)]
struct Reading {
    file: u32,
    /// Index of the file in the tree; `None` for the disk and the single file.
    of_tree: Option<u32>,
    offset: u64,
    end: u64,
    opened: bool,
    /// First page whose mapping blocks have not been read.
    mapped: u64,
}

impl Walker {
    /// Creates a walk with reads of `read_bytes` bytes; `disk` is the index of the file that stands
    /// for the disk.
    pub fn new(tree: Arc<Tree>, order: Walk, read_bytes: u64, ahead_pages: u64, disk: u32, passes: u64) -> Walker {
        Walker {
            tree,
            order,
            filled: 0,
            read_bytes: read_bytes.max(1),
            ahead_pages,
            disk,
            passes,
            pass: 0,
            seed: 0,
            metadata: VecDeque::new(),
            reading: None,
            phase: Phase::End,
        }
    }

    /// Sets the seed of random orders.
    pub fn with_seed(self, seed: u64) -> Walker {
        Walker { seed, ..self }
    }

    /// Returns true if the walk reads one of the world's files or its metadata.
    pub fn uses(&self, file: u32) -> bool {
        let first = self.tree.first_file;
        let count = self.tree.files.len() as u32 + u32::from(self.tree.single.is_some());
        file == self.disk || (first..first + count).contains(&file)
    }

    pub fn disk(&self) -> u32 {
        self.disk
    }

    /// Starts the next pass. Returns false if there is none.
    pub fn begin_pass(&mut self) -> bool {
        if self.pass >= self.passes {
            return false;
        }
        self.pass += 1;
        let tree = self.tree.clone();
        self.metadata.clear();
        self.filled = 0;
        self.phase = match self.order {
            Walk::Readdir | Walk::Archive | Walk::Name => {
                self.stat(Node::Directory(0));
                Phase::Down(vec![self.enter(0)])
            }
            Walk::Find => {
                self.stat(Node::Directory(0));
                Phase::Find { stack: vec![self.enter(0)], found: Vec::new() }
            }
            Walk::Inode | Walk::Block | Walk::Sweep => {
                let root = (tree.inode(Node::Directory(0)), Node::Directory(0));
                Phase::Collect { pending: BTreeSet::from([root]), at: 0, found: Vec::new() }
            }
            Walk::Single => {
                self.reading = tree.single.map(|file| Reading::new(file, None, 0, tree.bytes));
                Phase::End
            }
            Walk::Random => {
                let mut left: Vec<u32> = (0..tree.files.len() as u32).collect();
                left.shuffle(&mut stream(self.seed, self.pass, 12));
                Phase::Files { left, by_path: true }
            }
        };
        true
    }

    /// The next step; `None` at the end of the pass. `files` are the world's files.
    pub fn next(&mut self, files: &[File]) -> Option<Step> {
        loop {
            if let Some(read) = self.metadata.pop_front() {
                return Some(Step::Metadata(read));
            }
            if let Some(step) = self.go_on_reading() {
                return Some(step);
            }
            match std::mem::replace(&mut self.phase, Phase::End) {
                Phase::Down(stack) => self.phase = self.walk_down(stack, files),
                Phase::Find { stack, found } => self.phase = self.find(stack, found),
                Phase::Collect { pending, at, found } => self.phase = self.collect(pending, at, found, files),
                Phase::Files { mut left, by_path } => {
                    let file = left.pop()?;
                    if by_path {
                        let mut reads = Vec::new();
                        self.tree.look_up_path(file, &mut reads);
                        self.metadata.extend(reads);
                    }
                    self.open(file, files);
                    self.phase = Phase::Files { left, by_path };
                }
                Phase::Blocks(mut left) => {
                    let (first, blocks) = left.pop()?;
                    let (start, end) = (first * PAGE_BYTES, (first + blocks) * PAGE_BYTES);
                    self.reading = Some(Reading::new(self.disk, None, start, end));
                    self.phase = Phase::Blocks(left);
                }
                Phase::End => return None,
            }
        }
    }

    /// The next read of the open file, after the mapping blocks that it needs.
    fn go_on_reading(&mut self) -> Option<Step> {
        let is_archive = self.order == Walk::Archive;
        let reading = self.reading.as_mut()?;
        if reading.offset >= reading.end {
            self.reading = None;
            self.filled = self.filled.next_multiple_of(HEADER_BYTES) % self.read_bytes;
            return None;
        }
        let room = if is_archive { self.read_bytes - self.filled } else { self.read_bytes };
        let bytes = room.min(reading.end - reading.offset);
        if let Some(file) = reading.of_tree {
            // Read-ahead needs the mapping of the pages in its window.
            let to = (reading.offset + bytes).div_ceil(PAGE_BYTES) + self.ahead_pages;
            let reads = self.tree.mapping(file, reading.mapped, to);
            self.metadata.extend(reads);
            reading.mapped = reading.mapped.max(to);
            if let Some(read) = self.metadata.pop_front() {
                return Some(Step::Metadata(read));
            }
        }
        let opens = !std::mem::replace(&mut reading.opened, true);
        let step = Step::Read { file: reading.file, offset: reading.offset, bytes, opens };
        reading.offset += bytes;
        self.filled = (self.filled + bytes) % self.read_bytes;
        Some(step)
    }

    /// Visits the next name of the current directory.
    fn walk_down(&mut self, mut stack: Vec<InDirectory>, files: &[File]) -> Phase {
        let Some(here) = stack.last_mut() else { return Phase::End };
        let Some(entry) = here.left.pop() else {
            stack.pop();
            return Phase::Down(stack);
        };
        let directory = here.directory;
        let node = self.tree.directories[directory as usize].entries[entry as usize].node;
        let mut reads = Vec::new();
        self.tree.look_up(directory, entry, &mut reads);
        self.metadata.extend(reads);
        self.stat(node);
        self.filled = (self.filled + HEADER_BYTES) % self.read_bytes;
        match node {
            Node::File(file) => self.open(file, files),
            Node::Directory(below) => stack.push(self.enter(below)),
        }
        Phase::Down(stack)
    }

    /// Takes the next name of the current directory: a file is noted, a directory is entered. The
    /// directory has the kind of each name, so no inode of a file is read.
    fn find(&mut self, mut stack: Vec<InDirectory>, mut found: Vec<u32>) -> Phase {
        let Some(here) = stack.last_mut() else {
            // Files are taken from the last to the first.
            found.reverse();
            return Phase::Files { left: found, by_path: true };
        };
        let directory = here.directory;
        match here.left.pop() {
            None => {
                stack.pop();
            }
            Some(entry) => match self.tree.directories[directory as usize].entries[entry as usize].node {
                Node::File(file) => found.push(file),
                below @ Node::Directory(index) => {
                    let mut reads = Vec::new();
                    self.tree.look_up(directory, entry, &mut reads);
                    self.metadata.extend(reads);
                    self.stat(below);
                    stack.push(self.enter(index));
                }
            },
        }
        Phase::Find { stack, found }
    }

    /// Visits the next higher inode; after the highest one, the sweep starts at the bottom again.
    fn collect(&mut self, mut pending: BTreeSet<(u32, Node)>, at: u32, mut found: Vec<u32>, files: &[File]) -> Phase {
        let upwards = pending.range((at, Node::Directory(0))..).next().or_else(|| pending.first()).copied();
        let Some((inode, node)) = upwards else { return self.second_pass(found, files) };
        pending.remove(&(inode, node));
        self.stat(node);
        match node {
            Node::File(file) => {
                if self.order != Walk::Inode {
                    // The mapping of the file is read at once.
                    self.metadata.extend(self.tree.mapping(file, 0, u64::MAX));
                }
                found.push(file);
            }
            Node::Directory(directory) => {
                self.read_directory(directory);
                let entries = &self.tree.directories[directory as usize].entries;
                pending.extend(entries.iter().map(|entry| (self.tree.inode(entry.node), entry.node)));
            }
        }
        Phase::Collect { pending, at: inode, found }
    }

    fn second_pass(&self, mut found: Vec<u32>, files: &[File]) -> Phase {
        let file = |found: u32| &files[(self.tree.first_file + found) as usize];
        match self.order {
            Walk::Sweep => {
                let mut runs: Vec<(u64, u64)> = found
                    .iter()
                    .flat_map(|found| file(*found).runs())
                    .map(|(sector, sectors)| (sector / PAGE_SECTORS, sectors / PAGE_SECTORS))
                    .collect();
                runs.sort_unstable();
                runs.dedup_by(|next, run| {
                    let joins = run.0 + run.1 == next.0;
                    run.1 += if joins { next.1 } else { 0 };
                    joins
                });
                runs.reverse();
                Phase::Blocks(runs)
            }
            Walk::Block => {
                let first = |found: u32| file(found).runs().next().map_or(0, |(sector, _)| sector);
                sort::by_key(&mut found, |found| u64::MAX - first(*found));
                Phase::Files { left: found, by_path: false }
            }
            _ => {
                sort::by_key(&mut found, |found| u64::MAX - u64::from(self.tree.files[*found as usize].inode));
                Phase::Files { left: found, by_path: false }
            }
        }
    }

    /// Reads a whole directory and starts with its names.
    fn enter(&mut self, directory: u32) -> InDirectory {
        self.read_directory(directory);
        let entries = &self.tree.directories[directory as usize].entries;
        let mut left: Vec<u32> = (0..entries.len() as u32).collect();
        if self.order == Walk::Name {
            sort::by_key(&mut left, |entry| entries[*entry as usize].name);
        }
        left.reverse();
        InDirectory { directory, left }
    }

    fn read_directory(&mut self, directory: u32) {
        let mut reads = Vec::new();
        self.tree.read_directory(directory, &mut reads);
        self.metadata.extend(reads);
    }

    fn stat(&mut self, node: Node) {
        self.metadata.push_back(self.tree.stat(self.tree.inode(node)));
    }

    fn open(&mut self, file: u32, files: &[File]) {
        let number = self.tree.first_file + file;
        let bytes = files[number as usize].bytes;
        self.reading = Some(Reading::new(number, Some(file), 0, bytes));
    }
}

impl Reading {
    fn new(file: u32, of_tree: Option<u32>, offset: u64, end: u64) -> Reading {
        Reading { file, of_tree, offset, end, opened: false, mapped: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fs::config::FileSystemConfig;
    use crate::host::fs::{Ageing, FileSystem, SizeLaw, TreeParameters};
    use rand_pcg::Pcg64;

    fn grown(rounds: u32) -> (Arc<Tree>, Vec<File>) {
        let ageing = (rounds > 0).then_some(Ageing { rounds, full_percent: 80 });
        let config = FileSystemConfig::ext3();
        let mut fs = FileSystem::new(config, 64 << 21, ageing, 1, Pcg64::new(3, 2)).unwrap();
        let sizes = SizeLaw { median_bytes: 5000, mean_bytes: 20_000 };
        let growth = TreeParameters { files: 1500, directories: 40, sizes, rounds, single: true };
        let (tree, files) = fs.grow(&growth).unwrap();
        (Arc::new(tree), files)
    }

    fn steps(tree: &Arc<Tree>, files: &[File], order: Walk) -> Vec<Step> {
        // The disk's index differs from that of every file.
        let mut walker = Walker::new(tree.clone(), order, 10_240, 32, 9999, 1);
        assert!(walker.begin_pass());
        let steps = std::iter::from_fn(|| walker.next(files)).collect();
        assert!(!walker.begin_pass());
        steps
    }

    /// The reads of each file, in the order of the walk.
    fn reads(steps: &[Step]) -> Vec<(u32, u64, u64)> {
        let read = |step: &Step| match *step {
            Step::Read { file, offset, bytes, .. } => Some((file, offset, bytes)),
            Step::Metadata(_) => None,
        };
        steps.iter().filter_map(read).collect()
    }

    #[test]
    fn every_walk_reads_every_byte_once() {
        let (tree, files) = grown(0);
        for order in [Walk::Readdir, Walk::Name, Walk::Inode, Walk::Block, Walk::Random] {
            let mut reads = reads(&steps(&tree, &files, order));
            reads.sort_unstable();
            let mut expected = Vec::new();
            for (number, file) in (0u32..).zip(&files[..1500]) {
                let chunks = (0..file.bytes).step_by(10_240);
                expected.extend(chunks.map(|offset| (number, offset, 10_240.min(file.bytes - offset))));
            }
            assert_eq!(reads, expected, "{order:?}");
        }
        let single: u64 = reads(&steps(&tree, &files, Walk::Single)).iter().map(|read| read.2).sum();
        assert_eq!(single, tree.bytes);
    }

    #[test]
    fn reads_of_an_archive_end_with_its_records() {
        let (tree, files) = grown(0);
        let [archive, readdir] = [Walk::Archive, Walk::Readdir].map(|order| reads(&steps(&tree, &files, order)));
        // The same files in the same order.
        let opened = |reads: &[(u32, u64, u64)]| {
            reads.iter().filter(|read| read.1 == 0).map(|read| read.0).collect::<Vec<u32>>()
        };
        assert_eq!(opened(&archive), opened(&readdir));
        let bytes = |reads: &[(u32, u64, u64)]| reads.iter().map(|read| read.2).sum::<u64>();
        assert_eq!(bytes(&archive), bytes(&readdir));
        assert!(archive.len() * 10 > readdir.len() * 11, "{} and {}", archive.len(), readdir.len());
        // A file that goes on after a read fills the record; the next read of it takes a whole one.
        let mut goes_on = archive.windows(2).filter(|pair| pair[0].0 == pair[1].0 && pair[0].1 > 0);
        assert!(goes_on.all(|pair| pair[0].2 == 10_240));
        let firsts = archive.iter().filter(|read| read.1 == 0 && files[read.0 as usize].bytes >= 10_240);
        assert!(firsts.clone().all(|read| read.2 % 512 == 0) && firsts.clone().any(|read| read.2 < 4096));
    }

    #[test]
    fn a_sweep_reads_every_block_once_and_upwards() {
        for rounds in [0, 3] {
            let (tree, files) = grown(rounds);
            let reads = reads(&steps(&tree, &files, Walk::Sweep));
            assert!(reads.windows(2).all(|pair| pair[0].1 + pair[0].2 <= pair[1].1));
            let blocks: u64 = files[..1500].iter().map(File::pages).sum();
            assert_eq!(reads.iter().map(|read| read.2).sum::<u64>(), blocks * 4096);
        }
    }

    #[test]
    fn files_come_by_name_by_inode_and_by_first_block() {
        let (tree, files) = grown(3);
        let first = |order| {
            let mut opened: Vec<u32> = reads(&steps(&tree, &files, order)).iter().map(|read| read.0).collect();
            opened.dedup();
            opened
        };
        let inode = |file: &u32| u64::from(tree.files[*file as usize].inode);
        let block = |file: &u32| files[*file as usize].runs().next().unwrap().0;
        let rises =
            |order: &[u32], key: &dyn Fn(&u32) -> u64| order.windows(2).all(|pair| key(&pair[0]) < key(&pair[1]));
        assert!(rises(&first(Walk::Inode), &inode));
        assert!(rises(&first(Walk::Block), &block));
        assert!(!rises(&first(Walk::Readdir), &inode) && !rises(&first(Walk::Name), &inode));
    }

    #[test]
    fn the_first_pass_looks_at_every_inode_and_reads_every_directory() {
        let (tree, files) = grown(0);
        let steps = steps(&tree, &files, Walk::Block);
        let metadata: Vec<u64> = steps
            .iter()
            .take_while(|step| matches!(step, Step::Metadata(_)))
            .filter_map(|step| if let Step::Metadata(read) = step { Some(read.first) } else { None })
            .collect();
        let inodes = tree.files.iter().map(|file| file.inode).chain(tree.directories.iter().map(|d| d.inode));
        assert!(inodes.into_iter().all(|inode| metadata.contains(&tree.geometry.inode_block(inode))));
        let blocks = tree.directories.iter().flat_map(|directory| &directory.blocks);
        assert!(blocks.into_iter().all(|block| metadata.contains(block)));
    }
}
