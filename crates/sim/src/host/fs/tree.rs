//! A tree of files as it lies on the disk: data, whether it was grown here or read from somewhere.

use super::geometry::{Geometry, Inode};

/// Blocks of a directory without an index that are read together when a name is looked up in it.
const LINEAR_READ_BLOCKS: usize = 8;

/// A tree of directories and files.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub geometry: Geometry,
    /// How many inodes of each group are used or have been.
    pub used_inodes: Vec<u32>,
    /// The first is the tree's root; parents stand before their children.
    pub directories: Vec<Directory>,
    pub files: Vec<TreeFile>,
    /// The world's number of the first file; the others follow.
    pub first_file: u32,
    /// The world's number of a file that has as many bytes as all of them, in one piece.
    pub single: Option<u32>,
    /// Bytes of all files.
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Directory {
    pub inode: Inode,
    pub parent: Option<u32>,
    /// Its blocks on the disk.
    pub blocks: Vec<u64>,
    /// Whether its first block is an index of the others.
    pub indexed: bool,
    /// In the order in which they are read.
    pub entries: Vec<Entry>,
}

/// A name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub node: Node,
    /// Which of the directory's blocks holds it.
    pub block: u32,
    /// Names are in the order of these numbers.
    pub name: u64,
}

/// What a name stands for: its place among the tree's directories or files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Directory(u32),
    File(u32),
}

/// A file, but for its bytes and extents, which the world's files have.
#[derive(Clone, Debug)]
pub(crate) struct TreeFile {
    pub inode: Inode,
    pub directory: u32,
    /// The entry in its directory.
    pub entry: u32,
    /// Blocks that say where the data lies, as far as the inode does not: each is needed for the pages from one on.
    pub mapping: Box<[Mapping]>,
}

/// A block of extents or of block numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The first page of the file that it tells of.
    pub page: u64,
    pub block: u64,
}

/// Blocks of metadata that a process wants, and has to have before it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetadataRead {
    /// The first block on the disk, and how many.
    pub first: u64,
    pub blocks: u64,
    /// What is read along without being waited for: it has the block in it.
    pub ahead: (u64, u64),
}

impl MetadataRead {
    fn of(first: u64, blocks: u64) -> MetadataRead {
        MetadataRead { first, blocks, ahead: (first, blocks) }
    }

    pub fn of_block(block: u64) -> MetadataRead {
        MetadataRead::of(block, 1)
    }
}

impl Tree {
    pub fn inode(&self, node: Node) -> Inode {
        match node {
            Node::Directory(directory) => self.directories[directory as usize].inode,
            Node::File(file) => self.files[file as usize].inode,
        }
    }

    /// Reading an inode.
    pub fn stat(&self, inode: Inode) -> MetadataRead {
        let block = self.geometry.inode_block(inode);
        let group = self.geometry.group_of(inode);
        let used = self.used_inodes.get(group as usize).copied().unwrap_or(0);
        MetadataRead { first: block, blocks: 1, ahead: self.geometry.read_ahead(inode, used) }
    }

    /// Looking a name up in a directory: its index and the block that holds the name, or all blocks up to that one.
    pub fn look_up(&self, directory: u32, entry: u32, reads: &mut Vec<MetadataRead>) {
        let directory = &self.directories[directory as usize];
        let block = directory.entries[entry as usize].block as usize;
        if directory.indexed {
            reads.extend([0, block].map(|block| MetadataRead::of_block(directory.blocks[block])));
            return;
        }
        for batch in directory.blocks[..=block].chunks(LINEAR_READ_BLOCKS) {
            reads.extend(runs(batch).map(|(first, blocks)| MetadataRead::of(first, blocks)));
        }
    }

    /// Looking a whole path up, from the root, which is known: what is read for each directory on the way, and the file's inode.
    pub fn look_up_path(&self, file: u32, reads: &mut Vec<MetadataRead>) {
        let TreeFile { inode, directory, entry, .. } = self.files[file as usize];
        let mut way = vec![(directory, entry)];
        let mut at = directory;
        while let Some(parent) = self.directories[at as usize].parent {
            let entries = &self.directories[parent as usize].entries;
            let entry = entries.iter().position(|entry| entry.node == Node::Directory(at)).unwrap_or(0);
            way.push((parent, entry as u32));
            at = parent;
        }
        for (directory, entry) in way.into_iter().rev() {
            reads.push(self.stat(self.directories[directory as usize].inode));
            self.look_up(directory, entry, reads);
        }
        reads.push(self.stat(inode));
    }

    /// Reading a directory through: its blocks in the order in which their names come.
    pub fn read_directory(&self, directory: u32, reads: &mut Vec<MetadataRead>) {
        let directory = &self.directories[directory as usize];
        let mut last = None;
        if directory.indexed || directory.entries.is_empty() {
            reads.extend(directory.blocks.first().map(|block| MetadataRead::of_block(*block)));
        }
        for entry in &directory.entries {
            if last != Some(entry.block) {
                last = Some(entry.block);
                reads.push(MetadataRead::of_block(directory.blocks[entry.block as usize]));
            }
        }
    }

    /// The mapping blocks that are needed for pages of a file, from `from` on and before `to`.
    pub fn mapping(&self, file: u32, from: u64, to: u64) -> impl Iterator<Item = MetadataRead> + '_ {
        let wanted = move |mapping: &&Mapping| mapping.page >= from && mapping.page < to;
        self.files[file as usize].mapping.iter().filter(wanted).map(|mapping| MetadataRead::of_block(mapping.block))
    }
}

/// Blocks that lie side by side.
fn runs(blocks: &[u64]) -> impl Iterator<Item = (u64, u64)> + '_ {
    blocks.chunk_by(|one, next| *next == one + 1).map(|run| (run[0], run.len() as u64))
}
