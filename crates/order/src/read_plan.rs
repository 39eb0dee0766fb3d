//! The reads that Linux issues to the disk when a program reads files in a given order.
//!
//! Three mechanisms are modelled. Directory blocks and inodes are read once and stay in the page
//! cache. An inode is read together with its neighbours in the inode table. File data are read
//! ahead, up to 128 KiB at a time.

pub mod text;
mod traversal;

use rustc_hash::FxHashSet;

use crate::ext4::InodeTables;
use crate::fiemap::{Extent, ExtentState};
use crate::tree::{EntryId, FileKind, Tree};

pub use traversal::{TwoPassSteps, listed_steps, tar_steps, two_pass_steps};

/// Page size in bytes, the unit of read-ahead.
const PAGE_BYTES: u64 = 4096;
/// Largest read-ahead of Linux in bytes with the default `read_ahead_kb`.
pub const READ_AHEAD_BYTES: u64 = 128 << 10;
/// Block size of a tar archive in bytes.
const TAR_BLOCK_BYTES: u64 = 512;

/// The disk layout of a tree: the extents of each file and directory.
#[derive(Clone, Debug, Default)]
pub struct TreeLayout {
    /// Names, types and inode numbers. The contents of a directory are in directory order.
    pub tree: Tree,
    data: Vec<Data>,
    extents: Vec<Extent>,
    /// Inode tables of the file system. Without tables, plans contain no reads of inodes and
    /// directories.
    pub inodes: Option<InodeTables>,
}

/// Length and extents of one name.
#[derive(Clone, Copy, Debug, Default)]
struct Data {
    bytes: u64,
    begins: usize,
    extents: u32,
}

/// One operation of a program on a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadStep {
    /// Reads a directory.
    List(EntryId),
    /// Reads the inode.
    Stat(EntryId),
    /// Reads the data of a file from start to end.
    Data(EntryId),
}

/// The sizes in which a program reads files, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPattern {
    /// Chunks of this size from the start of the file on.
    Chunks(u64),
    /// Records of this size, as tar uses. A record also contains a header of 512 bytes per name, so
    /// that the first chunk of a file is the free part of the current record.
    TarRecords(u64),
}

impl ReadPattern {
    /// GNU tar with its default blocking factor of 20.
    pub const GNU_TAR: ReadPattern = ReadPattern::TarRecords(20 * TAR_BLOCK_BYTES);
    /// Chunks as large as the read-ahead.
    pub const LARGE: ReadPattern = ReadPattern::Chunks(READ_AHEAD_BYTES);
}

/// A read of the disk. Units are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiskRead {
    /// First byte on the device.
    pub at: u64,
    /// The length in bytes.
    pub bytes: u64,
}

/// A sequence of steps. The reads within one step are issued one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadPlan {
    reads: Vec<DiskRead>,
    /// Index after the last read of each step.
    ends: Vec<usize>,
}

impl TreeLayout {
    /// Creates a layout without extents.
    pub fn new(tree: Tree, inodes: Option<InodeTables>) -> TreeLayout {
        TreeLayout { data: vec![Data::default(); tree.len()], tree, extents: Vec::new(), inodes }
    }

    /// Sets length (bytes) and extents (in file order) of a name.
    ///
    /// # Panics
    /// If `id` belongs to another tree.
    pub fn set(&mut self, id: EntryId, bytes: u64, extents: &[Extent]) {
        self.data[id.index()] = Data { bytes, begins: self.extents.len(), extents: extents.len() as u32 };
        self.extents.extend_from_slice(extents);
    }

    /// Returns the length of a name's data in bytes; 0 if the length was not set.
    ///
    /// # Panics
    /// If `id` belongs to another tree.
    pub fn bytes(&self, id: EntryId) -> u64 {
        self.data[id.index()].bytes
    }

    /// Returns the extents of a name.
    ///
    /// # Panics
    /// If `id` belongs to another tree.
    pub fn extents(&self, id: EntryId) -> &[Extent] {
        let Data { begins, extents, .. } = self.data[id.index()];
        &self.extents[begins..begins + extents as usize]
    }

    /// Returns all regular files in discovery order.
    pub fn files(&self) -> impl Iterator<Item = EntryId> + '_ {
        self.tree.ids().filter(|id| self.tree.entry(*id).kind == FileKind::File)
    }

    /// Returns the lowest data offset of all files, or 0 if there are no data.
    pub fn lowest(&self) -> u64 {
        let extents =
            self.files().flat_map(|id| self.extents(id)).filter(|extent| extent.state == ExtentState::Written);
        extents.map(|extent| extent.physical).min().unwrap_or(0)
    }

    /// Returns the reads of the given steps with a cold cache.
    pub fn plan(&self, steps: &[ReadStep], pattern: ReadPattern) -> ReadPlan {
        let mut plan = ReadPlan::default();
        let mut cache = MetadataCache::default();
        let mut archived = 0;
        for step in steps {
            match *step {
                ReadStep::List(id) => self.read_directory(id, &mut cache, &mut plan),
                ReadStep::Stat(id) => {
                    archived += TAR_BLOCK_BYTES;
                    self.read_inode(id, &mut cache, &mut plan);
                }
                ReadStep::Data(id) => {
                    let piece = match pattern {
                        ReadPattern::Chunks(bytes) => bytes,
                        ReadPattern::TarRecords(bytes) => bytes - archived.checked_rem(bytes).unwrap_or(0),
                    };
                    archived += self.bytes(id).next_multiple_of(TAR_BLOCK_BYTES);
                    file_reads(self.bytes(id), self.extents(id), piece, &mut plan.reads);
                }
            }
            plan.ends.push(plan.reads.len());
        }
        plan
    }

    /// Adds the reads of a directory: block by block, except blocks in the cache.
    fn read_directory(&self, id: EntryId, cache: &mut MetadataCache, plan: &mut ReadPlan) {
        let Some(tables) = &self.inodes else { return };
        let block_bytes = tables.block_bytes;
        for extent in self.extents(id).iter().filter(|extent| extent.state == ExtentState::Written) {
            for at in (extent.physical..extent.physical + extent.bytes).step_by(block_bytes as usize) {
                if cache.blocks.insert(at / block_bytes) {
                    plan.reads.push(DiskRead { at, bytes: block_bytes });
                }
            }
        }
    }

    /// Adds the reads of an inode: its block and the neighbouring blocks that are not in the cache.
    fn read_inode(&self, id: EntryId, cache: &mut MetadataCache, plan: &mut ReadPlan) {
        let Some(tables) = &self.inodes else { return };
        let inode = self.tree.entry(id).inode;
        let (Some(block), Some((begins, ends))) = (tables.block(inode), tables.window(inode)) else { return };
        if cache.blocks.contains(&block) {
            return;
        }
        let mut missing: Option<(u64, u64)> = None;
        for block in begins..ends {
            if !cache.blocks.insert(block) {
                plan.reads.extend(missing.take().map(|run| run_of_blocks(run, tables.block_bytes)));
                continue;
            }
            let (first, _) = *missing.get_or_insert((block, block));
            missing = Some((first, block + 1));
        }
        plan.reads.extend(missing.map(|run| run_of_blocks(run, tables.block_bytes)));
    }
}

/// The simulated page cache for metadata.
#[derive(Default)]
struct MetadataCache {
    blocks: FxHashSet<u64>,
}

fn run_of_blocks((first, end): (u64, u64), block_bytes: u64) -> DiskRead {
    DiskRead { at: first * block_bytes, bytes: (end - first) * block_bytes }
}

/// Appends the reads of a file of `bytes` bytes that a program reads sequentially in chunks of
/// `piece` bytes. The read-ahead window doubles up to [`READ_AHEAD_BYTES`], starting with a size
/// that follows from the first chunk. Windows are split at the end of an extent. Holes and
/// unwritten extents need no read.
pub fn file_reads(bytes: u64, extents: &[Extent], piece: u64, reads: &mut Vec<DiskRead>) {
    let longest = READ_AHEAD_BYTES / PAGE_BYTES;
    let pages = bytes.div_ceil(PAGE_BYTES);
    let mut window = first_window(piece.min(bytes).div_ceil(PAGE_BYTES), longest);
    let mut page = 0;
    let mut extents = extents.iter().copied().filter(|extent| extent.state == ExtentState::Written).peekable();
    while page < pages {
        let end = (page + window).min(pages) * PAGE_BYTES;
        let mut from = page * PAGE_BYTES;
        while let Some(extent) = extents.peek().copied().filter(|extent| extent.logical < end) {
            let extent_end = extent.logical + extent.bytes;
            from = from.max(extent.logical);
            if from < extent_end {
                let at = extent.physical + (from - extent.logical);
                reads.push(DiskRead { at, bytes: extent_end.min(end) - from });
            }
            if extent_end > end {
                break;
            }
            extents.next();
        }
        page += window;
        window = (window * 2).min(longest);
    }
}

/// Returns the first read-ahead window for a read of `wanted` pages. The rule is that of Linux
/// since 2.6.23 (F. Wu and others, "On the design of a new Linux readahead framework", 2008).
fn first_window(wanted: u64, longest: u64) -> u64 {
    let wanted = wanted.max(1).next_power_of_two();
    if wanted <= longest / 32 {
        wanted * 4
    } else if wanted <= longest / 4 {
        wanted * 2
    } else {
        longest
    }
}

impl ReadPlan {
    /// Creates a plan with one step per read.
    pub fn of(reads: Vec<DiskRead>) -> ReadPlan {
        ReadPlan { ends: (1..=reads.len()).collect(), reads }
    }

    /// Appends a step whose reads are issued one after the other.
    pub fn push(&mut self, reads: impl IntoIterator<Item = DiskRead>) {
        self.reads.extend(reads);
        self.ends.push(self.reads.len());
    }

    /// Creates the plan for one contiguous file of `bytes` bytes at device offset `at`.
    pub fn contiguous(at: u64, bytes: u64) -> ReadPlan {
        let extent = Extent::on_disk(0, at, bytes.next_multiple_of(PAGE_BYTES));
        let mut reads = Vec::new();
        file_reads(bytes, &[extent], READ_AHEAD_BYTES, &mut reads);
        ReadPlan { ends: vec![reads.len()], reads }
    }

    /// Returns all reads in order.
    pub fn reads(&self) -> &[DiskRead] {
        &self.reads
    }

    /// Returns the reads of each step.
    pub fn steps(&self) -> impl Iterator<Item = &[DiskRead]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begins, ends)| &self.reads[begins..*ends])
    }

    /// Returns the same reads sorted by offset, one step per read.
    pub fn sweep(&self) -> ReadPlan {
        let mut reads = self.reads.clone();
        reads.sort_unstable();
        ReadPlan::of(reads)
    }

    /// Returns a plan that reads the same ranges in one sweep. Gaps of at most `gap` bytes are read
    /// as well, and each read has at most `longest` bytes.
    pub fn read_through(&self, longest: u64, gap: u64) -> ReadPlan {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for read in self.sweep().reads {
            match runs.last_mut() {
                Some((_, end)) if read.at <= *end + gap => *end = (*end).max(read.at + read.bytes),
                _ => runs.push((read.at, read.at + read.bytes)),
            }
        }
        let longest = longest.max(1);
        let cut = |(begins, ends): (u64, u64)| {
            (begins..ends).step_by(longest as usize).map(move |at| DiskRead { at, bytes: longest.min(ends - at) })
        };
        ReadPlan::of(runs.into_iter().flat_map(cut).collect())
    }

    /// Returns the seek distance of the plan.
    pub fn distance(&self) -> Distance {
        let mut distance = Distance::default();
        let ends = self.reads.iter().map(|read| read.at + read.bytes);
        for (end, next) in ends.zip(self.reads.iter().skip(1)) {
            distance.bytes += next.at.abs_diff(end);
            distance.seeks += u64::from(next.at != end);
            distance.backward += u64::from(next.at < end);
        }
        distance
    }
}

/// The seeks of a plan. A seek is a read that does not start at the end of the previous read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distance {
    /// Sum of all seek distances in bytes.
    pub bytes: u64,
    /// Number of seeks.
    pub seeks: u64,
    /// Number of seeks towards lower offsets.
    pub backward: u64,
}

#[cfg(test)]
mod tests;
