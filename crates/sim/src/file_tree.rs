//! Trees of small files on a simulated file system, and the reads of a program that archives them.
//!
//! ```
//! use hoistway_fio::Walk;
//! use hoistway_sim::FileSystemConfig;
//! use hoistway_sim::file_tree::{FileTree, FileTreeParameters, WalkRead};
//!
//! let parameters = FileTreeParameters {
//!     file_system: FileSystemConfig::ext4(),
//!     capacity_sectors: 16 << 21,
//!     files: 500,
//!     directories: 20,
//!     median_bytes: 5000,
//!     mean_bytes: 14_500,
//!     ageing_rounds: 0,
//!     seed: 1,
//! };
//! let tree = FileTree::create(&parameters).ok_or("the drive is too small")?;
//! let reads = tree.walk(Walk::Block, 128 << 10);
//! let files = reads.filter(|read| matches!(read, WalkRead::Data { offset: 0, .. })).count();
//! assert_eq!(files, 500);
//! # Ok::<(), &str>(())
//! ```

use std::sync::Arc;

use hoistway_fio::{JobFile, Walk};
use rand_pcg::Pcg64;

use crate::config::HostConfig;
use crate::error::SimError;
use crate::host::files::File;
use crate::host::fs::config::FileSystemConfig;
use crate::host::fs::tree::{Node, Tree};
use crate::host::fs::{Ageing, FileSystem, SizeLaw, TreeParameters};
use crate::host::page::PAGE_BYTES;
use crate::workload::plan::WorkloadPlan;
use crate::workload::walk::{Step, Walker};
use crate::world::layout;

/// Percentage to which other files fill an aged file system.
const AGED_FULL_PERCENT: u8 = 80;
/// File index of the disk itself in a walk. No file of a tree has this index.
const DISK: u32 = u32::MAX;

/// The parameters of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileTreeParameters {
    /// The file system.
    pub file_system: FileSystemConfig,
    /// Capacity of the drive, in sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Number of files.
    pub files: u32,
    /// Number of directories including the root of the tree, at least 1.
    pub directories: u32,
    /// Median of the lognormal distribution of sizes, in bytes.
    pub median_bytes: u64,
    /// Mean of the sizes, in bytes.
    pub mean_bytes: u64,
    /// Number of times that a third of all files is deleted and written anew, on a file system that
    /// is 80 % full. With 0, the tree is written to an empty file system in the order of its names.
    pub ageing_rounds: u32,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// A tree of files, placed on a drive.
#[derive(Clone, Debug)]
pub struct FileTree {
    tree: Arc<Tree>,
    files: Vec<File>,
}

/// A read of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkRead {
    /// Inodes, directories or mapping blocks.
    Metadata {
        /// The first block of 4 KiB on the drive.
        block: u64,
    },
    /// Bytes of a file.
    Data {
        /// Index of the file.
        file: u32,
        /// Offset in the file, in bytes.
        offset: u64,
        /// Length of the read, in bytes.
        bytes: u64,
        /// First sector of the file on the drive; 0 for a file without blocks.
        first_sector: u64,
    },
}

impl FileTree {
    /// Creates a file system and the tree on it. Returns `None` if the drive has no room for them.
    pub fn create(parameters: &FileTreeParameters) -> Option<FileTree> {
        let FileTreeParameters { files, directories, ageing_rounds: rounds, seed, .. } = *parameters;
        let ageing = (rounds > 0).then_some(Ageing { rounds, full_percent: AGED_FULL_PERCENT });
        let rng = Pcg64::new(seed.into(), 1);
        let mut fs = FileSystem::new(parameters.file_system, parameters.capacity_sectors, ageing, seed, rng)?;
        let sizes = SizeLaw { median_bytes: parameters.median_bytes, mean_bytes: parameters.mean_bytes };
        let (tree, files) = fs.grow(&TreeParameters { files, directories, sizes, rounds, single: false })?;
        Some(FileTree { tree: Arc::new(tree), files })
    }

    /// Returns the block of each inode of the tree, in the order of inode numbers.
    pub fn inode_blocks(&self) -> Vec<u64> {
        let files = (0..self.tree.files.len() as u32).map(Node::File);
        let directories = (0..self.tree.directories.len() as u32).map(Node::Directory);
        let mut inodes: Vec<_> = files.chain(directories).map(|node| self.tree.inode(node)).collect();
        inodes.sort_unstable();
        inodes.iter().map(|inode| self.tree.stat(*inode).first).collect()
    }

    /// Returns the reads of one pass over the tree, in the order in which the walk waits for them.
    /// A read has at most `read_bytes` bytes, and so has the read-ahead of the host.
    pub fn walk(&self, order: Walk, read_bytes: u64) -> impl Iterator<Item = WalkRead> + '_ {
        let mut walker = Walker::new(self.tree.clone(), order, read_bytes, read_bytes / PAGE_BYTES, DISK, 1);
        walker.begin_pass();
        std::iter::from_fn(move || walker.next(&self.files)).map(|step| match step {
            Step::Metadata(read) => WalkRead::Metadata { block: read.first },
            Step::Read { file, offset, bytes, .. } => {
                let first_run = self.files.get(file as usize).and_then(|file| file.runs().next());
                WalkRead::Data { file, offset, bytes, first_sector: first_run.map_or(0, |(sector, _)| sector) }
            }
        })
    }
}

/// The directories and files of a tree, so that a program can create them on a real file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeListing {
    /// Paths of the directories below the root of the tree, each after its parent, sorted by name.
    pub directories: Vec<String>,
    /// Paths and lengths in bytes of the files, directory by directory, sorted by name. A fresh
    /// tree is written in this order.
    pub files: Vec<(String, u64)>,
}

/// Lists the trees that a simulation of `jobs` with this seed creates.
///
/// # Errors
/// [`SimError`] if the jobs cannot be simulated on a drive of this size.
pub fn listings(
    jobs: &JobFile,
    host: &HostConfig,
    drive_sectors: u64,
    seed: u64,
) -> Result<Vec<TreeListing>, SimError> {
    let capacity_sectors = host.partition_sectors(drive_sectors);
    let plan = WorkloadPlan::new(jobs, capacity_sectors * 512, seed)?;
    let placed = layout::lay_out(&plan, host, capacity_sectors, seed)?;
    Ok(placed.trees.iter().map(|tree| list(tree, &placed.files)).collect())
}

/// Lists a tree, directory by directory.
fn list(tree: &Tree, files: &[File]) -> TreeListing {
    let mut listing = TreeListing::default();
    let mut stack = vec![(0u32, String::new())];
    while let Some((directory, path)) = stack.pop() {
        let mut entries = tree.directories[directory as usize].entries.clone();
        entries.sort_by_key(|entry| entry.name);
        let mut subdirectories = Vec::new();
        for entry in entries {
            // Twelve hexadecimal digits are as long as a simulated name, and sort the same way.
            let name = format!("{path}{:012x}", entry.name >> 16);
            match entry.node {
                Node::File(file) => listing.files.push((name, files[(tree.first_file + file) as usize].bytes)),
                Node::Directory(directory) => subdirectories.push((directory, format!("{name}/"))),
            }
        }
        if directory > 0 {
            listing.directories.push(path.trim_end_matches('/').to_owned());
        }
        stack.extend(subdirectories.into_iter().rev());
    }
    listing
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_listing_has_every_file_after_its_directory_and_follows_the_seed() {
        let text = "[tree]\nhoistway_tree=files=300,dirs=20\nbs=10k\n\n[other]\nfilename=x\nsize=1m\nrw=read\n";
        let loader = |path: &str, _: &str| Err(std::io::Error::other(path.to_owned()));
        let jobs = hoistway_fio::parse(text, "tree.fio", &|_| None, &loader).unwrap();
        let host = HostConfig { partition_mib: 1024, ..HostConfig::default() };
        let list = |seed| listings(&jobs, &host, 64 << 21, seed).unwrap();
        let [one] = list(1).try_into().unwrap();
        assert_eq!((one.directories.len(), one.files.len()), (19, 300));
        let mut known = BTreeSet::from([""]);
        for directory in &one.directories {
            assert!(known.contains(directory.rsplit_once('/').map_or("", |(parent, _)| parent)), "{directory}");
            assert!(known.insert(directory), "{directory}");
        }
        assert!(
            one.files.iter().all(|(path, _)| known.contains(path.rsplit_once('/').map_or("", |(parent, _)| parent)))
        );
        assert_eq!(one.files.iter().map(|(path, _)| path).collect::<BTreeSet<_>>().len(), 300);
        assert_eq!(list(1), std::slice::from_ref(&one));
        assert_ne!(list(2), [one]);
    }
}
