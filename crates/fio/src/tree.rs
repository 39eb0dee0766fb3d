//! Types of the options `hoistway_tree` and `hoistway_walk`, which fio itself does not have: trees of files, and their orders.

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
    /// How often a third of the files was deleted and written anew since, 0 to 100; 0 is a tree that was written once, in the
    /// order of its names.
    pub rounds: u32,
    /// Percent of the disk that other files take, which have come and gone as often, 0 to 95. Default 80 with rounds, 0 without.
    pub full_percent: u8,
    /// The kind of file system, when the job says it.
    pub kind: Option<FileSystemKind>,
}

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileSystemKind {
    /// Indirect blocks, and inodes read one by one.
    Ext3,
    /// Extents, and inodes read ahead.
    Ext4,
}

/// In which order a tree is read: `hoistway_walk`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Walk {
    /// Directory by directory, each in the order in which its names are read: as `tar` does.
    #[default]
    Readdir,
    /// Directory by directory, each in the order of names.
    Name,
    /// All directories and inodes first, in the order of inode numbers as far as they are known; then files by inode number.
    Inode,
    /// The same; then files by their first block.
    Block,
    /// The same; then all blocks of all files in the order in which they lie, whosever they are.
    Sweep,
    /// One file in one piece that has as many bytes.
    Single,
    /// Files in a random order, each looked up by its whole path.
    Random,
}
