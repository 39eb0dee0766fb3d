//! A tree of files as laid out on the disk: plain data, grown here or read from elsewhere.

use super::geometry::{Geometry, Inode};

/// Blocks of a directory without an index that one lookup reads together.
const LINEAR_READ_BLOCKS: usize = 8;

/// A tree of directories and files.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub geometry: Geometry,
    /// Number of inodes of each group that are or were in use.
    pub used_inodes: Vec<u32>,
    /// The directories; the first is the tree's root, and parents come before their children.
    pub directories: Vec<Directory>,
    pub files: Vec<TreeFile>,
    /// Index of the tree's first file among the world's files; the others follow.
    pub first_file: u32,
    /// Index among the world's files of a contiguous file with as many bytes as all files of the
    /// tree.
    pub single: Option<u32>,
    /// Sum of the sizes of all files, in bytes.
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Directory {
    pub inode: Inode,
    pub parent: Option<u32>,
    /// The directory's blocks on the disk.
    pub blocks: Vec<u64>,
    /// True if the first block is an index of the others.
    pub indexed: bool,
    /// The entries, in the order in which they are read.
    pub entries: Vec<Entry>,
}

/// A name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub node: Node,
    /// Index of the directory's block that holds the name.
    pub block: u32,
    /// The name as a number. Names sort by these numbers.
    pub name: u64,
}

/// The target of a name: an index among the tree's directories or files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Directory(u32),
    File(u32),
}

/// A file of the tree, without its bytes and extents, which the world's files hold.
#[derive(Clone, Debug)]
pub(crate) struct TreeFile {
    pub inode: Inode,
    pub directory: u32,
    /// Index of the entry in its directory.
    pub entry: u32,
    /// Mapping blocks that do not fit into the inode; each is needed from one page of the file on.
    pub mapping: Box<[Mapping]>,
}

/// A mapping block: extents, or block numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The first page of the file that the block maps.
    pub page: u64,
    pub block: u64,
}

/// Blocks of metadata that a process needs before it continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetadataRead {
    /// The first block on the disk, and the number of blocks.
    pub first: u64,
    pub blocks: u64,
    /// Window that is read along without waiting: first block and length. The needed blocks are
    /// part of it, unless they were read before.
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

    /// The read for an inode.
    pub fn stat(&self, inode: Inode) -> MetadataRead {
        let block = self.geometry.inode_block(inode);
        let group = self.geometry.group_of(inode);
        let used = self.used_inodes.get(group as usize).copied().unwrap_or(0);
        MetadataRead { first: block, blocks: 1, ahead: self.geometry.read_ahead(inode, used) }
    }

    /// The reads for the lookup of a name: the index and the block of the name, or all blocks up to
    /// that one.
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

    /// The reads for the lookup of a whole path from the cached root: those of each directory on
    /// the way, and the file's inode.
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

    /// The reads for a whole directory: its blocks in the order of their names.
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

    /// The mapping blocks for the pages of a file from `from` up to but not including `to`.
    pub fn mapping(&self, file: u32, from: u64, to: u64) -> impl Iterator<Item = MetadataRead> + '_ {
        let wanted = move |mapping: &&Mapping| mapping.page >= from && mapping.page < to;
        self.files[file as usize].mapping.iter().filter(wanted).map(|mapping| MetadataRead::of_block(mapping.block))
    }
}

/// Groups blocks into contiguous runs: first block and length.
fn runs(blocks: &[u64]) -> impl Iterator<Item = (u64, u64)> + '_ {
    blocks.chunk_by(|one, next| *next == one + 1).map(|run| (run[0], run.len() as u64))
}
