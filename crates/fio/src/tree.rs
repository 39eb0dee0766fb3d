//! Types of the options `hoistway_tree` and `hoistway_walk`, which fio itself does not have: trees
//! of files, and their orders.

/// A tree of files that a job walks through: `hoistway_tree`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TreeSpec {
    /// Files, 1 to 1,000,000; at most 4,000,000 over all rounds, the first writing included.
    pub files: u32,
    /// Directories, the tree's root included, 1 to 1,000,000.
    pub directories: u32,
    /// The median of the files' sizes, 1 byte to 1 GiB.
    pub median_bytes: u64,
    /// The mean of the files' sizes, up to 1 GiB; at least the median. Sizes are lognormal.
    pub mean_bytes: u64,
    /// Number of ageing rounds, 0 to 100: each deletes a third of the files and writes them anew. 0
    /// is a tree that was written once, in the order of its names.
    pub rounds: u32,
    /// Percent of the disk that other files fill after ageing of their own, 0 to 95. Default 80
    /// with rounds, 0 without.
    pub full_percent: u8,
    /// True if each clone of the job has a tree of its own.
    pub own: bool,
    /// The kind of file system, if the job sets it.
    pub kind: Option<FileSystemKind>,
}

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileSystemKind {
    /// As ext3, with directories that are searched from their beginning, and without a journal.
    Ext2,
    /// Indirect blocks, and inodes read one by one.
    Ext3,
    /// Extents, and inodes read ahead.
    Ext4,
}

/// The order in which a tree is read: `hoistway_walk`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Walk {
    /// Directory by directory, each in the order of its entries.
    #[default]
    Readdir,
    /// As `Readdir`, in reads that fill records of `bs` with headers and contents, as in `tar`.
    Archive,
    /// Directory by directory, each sorted by name.
    Name,
    /// First all directories, each in the order of its entries, and then the files in the order in
    /// which they were found, each looked up by its whole path: `find | xargs`.
    Find,
    /// First all directories and inodes in the order of known inode numbers, then the files by
    /// inode number.
    Inode,
    /// First all directories and inodes as in `Inode`, then the files by their first block.
    Block,
    /// First all directories and inodes as in `Inode`, then all blocks of all files in disk order.
    Sweep,
    /// A single contiguous file with as many bytes.
    Single,
    /// Files in a random order, each looked up by its whole path.
    Random,
}
