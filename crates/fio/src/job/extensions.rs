//! hoistway's own options, which fio does not have: trees of files and their orders, journals,
//! reservations.

use super::option::{Subject, option};
use crate::values::{Fault, Value, one_of, put};

#[rustfmt::skip]
pub(crate) const SUBJECT: Subject = Subject {
    heading: "hoistway's own",
    options: &[
        option("hoistway_tree", &[], |job, v| put(&mut job.hoistway.tree, tree(v).map(Some)), "`linux`, or parts such as `files=1000,age=3`", "none", "The job walks through a tree of files instead of files of its own."),
        option("hoistway_walk", &[], |job, v| put(&mut job.hoistway.walk, v.word(WALKS)), "`readdir`, `archive`, `name`, `find`, `inode`, `block`, `sweep`, `single`, `random`", "`readdir`", "The order of the walk."),
        option("hoistway_journal", &[], |job, v| put(&mut job.hoistway.journal, v.word(JOURNALS).map(Some)), "`ext3`, `ext4`", "none", "The files of all jobs are on a file system that journals its metadata."),
        option("hoistway_reserve", &[], |job, v| put(&mut job.hoistway.reserve, v.count(1).map(Some)), "a size a second", "none", "The bandwidth that each clone reserves, under elevators that take reservations."),
    ],
};

/// hoistway's own options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// The tree of files that the job walks through, instead of files of its own.
    pub tree: Option<TreeSpec>,
    /// The order of the walk.
    pub walk: Walk,
    /// The journal of the file system of all jobs.
    pub journal: Option<FileSystemKind>,
    /// Bandwidth that each clone of the job reserves, in bytes a second, if the elevator takes
    /// reservations.
    pub reserve: Option<u64>,
}

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

/// A tree like that of Linux 2.6.26: as many files, with sizes that add up to about 330 MB.
const LINUX: TreeSpec = TreeSpec {
    files: 22_500,
    directories: 1_400,
    median_bytes: 5_000,
    mean_bytes: 14_500,
    rounds: 0,
    full_percent: 0,
    own: false,
    kind: None,
};
/// Most files: each takes some 600 bytes of memory in a walk.
const MAX_FILES: u64 = 1_000_000;
/// Most files times rounds: each takes some microseconds to lay out.
const MAX_WRITTEN: u64 = 4_000_000;
const FILE_SYSTEMS: &[(&str, FileSystemKind)] =
    &[("ext2", FileSystemKind::Ext2), ("ext3", FileSystemKind::Ext3), ("ext4", FileSystemKind::Ext4)];
const KEYS: &[&str] = &["linux", "files", "dirs", "median", "mean", "age", "full", "fs", "own"];
const HELP: &str =
    "hoistway_tree=linux, or as in hoistway_tree=files=1000,dirs=50,median=4k,mean=16k,age=3,full=80,fs=ext3";

/// Parses a list of `linux` and `key=value` parts, separated by commas.
fn tree(v: Value) -> Result<TreeSpec, Fault> {
    let mut spec = LINUX;
    let mut full = None;
    for part in v.text.split(',').map(str::trim) {
        let Some((key, value)) = part.split_once('=') else {
            match part {
                "linux" => continue,
                "own" => {
                    spec.own = true;
                    continue;
                }
                other if KEYS.contains(&other) => {
                    return Err(Fault::with_help(format!("`{other}` has no value"), HELP));
                }
                other => return Err(one_of(other, KEYS)),
            }
        };
        let number = |least: u64, most: u64| {
            v.part(value.trim())
                .count_within(least..=most)
                .map_err(|fault| Fault { message: format!("{}: {}", key.trim(), fault.message), ..fault })
        };
        match key.trim() {
            "files" => spec.files = number(1, MAX_FILES)? as u32,
            "dirs" => spec.directories = number(1, 1_000_000)? as u32,
            "median" => spec.median_bytes = number(1, 1 << 30)?,
            "mean" => spec.mean_bytes = number(1, 1 << 30)?,
            "age" => spec.rounds = number(0, 100)? as u32,
            "full" => full = Some(number(0, 95)? as u8),
            "fs" => spec.kind = Some(v.part(value.trim()).word(FILE_SYSTEMS)?),
            other => return Err(one_of(other, KEYS)),
        }
    }
    if spec.mean_bytes < spec.median_bytes {
        let message = format!("the mean of {} bytes is below the median of {}", spec.mean_bytes, spec.median_bytes);
        return Err(Fault::with_help(message, "a lognormal law has its mean above its median: give mean= too"));
    }
    let written = u64::from(spec.files) * (u64::from(spec.rounds) + 1);
    if written > MAX_WRITTEN {
        let message = format!("{} files in {} rounds of ageing are too much to lay out", spec.files, spec.rounds);
        let most = (MAX_WRITTEN / u64::from(spec.files)).saturating_sub(1);
        return Err(Fault::with_help(message, format!("so many files take age={most} at most")));
    }
    spec.full_percent = full.unwrap_or(if spec.rounds > 0 { 80 } else { 0 });
    Ok(spec)
}

const JOURNALS: &[(&str, FileSystemKind)] = &[("ext3", FileSystemKind::Ext3), ("ext4", FileSystemKind::Ext4)];
const WALKS: &[(&str, Walk)] = &[
    ("readdir", Walk::Readdir),
    ("archive", Walk::Archive),
    ("name", Walk::Name),
    ("find", Walk::Find),
    ("inode", Walk::Inode),
    ("block", Walk::Block),
    ("sweep", Walk::Sweep),
    ("single", Walk::Single),
    ("random", Walk::Random),
];
