//! What the kernel asks the disk for when files are read in some order.
//!
//! Three things stand between a program's reads and the disk: a directory's blocks and an inode are in memory once they were read; an inode comes
//! with its neighbours in the table; a file is read ahead, up to 128 KiB at a time.

pub mod text;
mod ways;

use rustc_hash::FxHashSet;

use crate::ext4::InodeTables;
use crate::fiemap::{At, Extent};
use crate::tree::{Id, Kind, Tree};

pub use ways::{Passes, as_listed, as_tar, in_passes};

/// Bytes of a page, the unit of what is read ahead.
const PAGE_BYTES: u64 = 4096;
/// The longest read-ahead of Linux, unless `read_ahead_kb` says otherwise.
pub const READ_AHEAD_BYTES: u64 = 128 << 10;
/// What a tar archive is made of.
const TAR_BLOCK_BYTES: u64 = 512;

/// Where everything of a tree lies.
#[derive(Clone, Debug, Default)]
pub struct Laid {
    /// Names, kinds and inodes; within a directory in the order in which it is read.
    pub tree: Tree,
    data: Vec<Data>,
    extents: Vec<Extent>,
    /// Where inodes lie, if that is known: without it inodes and directories cost nothing.
    pub inodes: Option<InodeTables>,
}

/// A name's data: how many bytes, and which extents.
#[derive(Clone, Copy, Debug, Default)]
struct Data {
    bytes: u64,
    begins: usize,
    extents: u32,
}

/// One thing that a program does with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Reads a directory.
    List(Id),
    /// Asks for what is in the inode.
    Stat(Id),
    /// Reads a file from its beginning to its end.
    Data(Id),
}

/// How a program reads files; sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// So much at once, from the beginning on.
    Pieces(u64),
    /// As tar does: into records of so many bytes that hold 512 bytes about each name as well, so that a file's first piece is what a record has room for.
    Records(u64),
}

impl Reading {
    /// GNU tar's, with its usual blocking factor of 20.
    pub const GNU_TAR: Reading = Reading::Records(20 * TAR_BLOCK_BYTES);
    /// As much at once as is read ahead.
    pub const LARGE: Reading = Reading::Pieces(READ_AHEAD_BYTES);
}

/// A read that the disk is asked for. Units are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read {
    /// Where it begins on the device.
    pub at: u64,
    /// How much.
    pub bytes: u64,
}

/// The reads of one step after the other; those of one step wait for each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    reads: Vec<Read>,
    /// Behind the last read of each step.
    ends: Vec<usize>,
}

impl Laid {
    /// Where `tree` lies, of which nothing is known yet.
    pub fn new(tree: Tree, inodes: Option<InodeTables>) -> Laid {
        Laid { data: vec![Data::default(); tree.len()], tree, extents: Vec::new(), inodes }
    }

    /// Sets the length of a name's data, in bytes, and where they lie, by ascending `logical`.
    ///
    /// # Panics
    /// If `id` is another tree's.
    pub fn set(&mut self, id: Id, bytes: u64, extents: &[Extent]) {
        self.data[id.index()] = Data { bytes, begins: self.extents.len(), extents: extents.len() as u32 };
        self.extents.extend_from_slice(extents);
    }

    /// The length of a name's data, in bytes; 0 where nothing was set.
    ///
    /// # Panics
    /// If `id` is another tree's.
    pub fn bytes(&self, id: Id) -> u64 {
        self.data[id.index()].bytes
    }

    /// Where they lie.
    ///
    /// # Panics
    /// If `id` is another tree's.
    pub fn extents(&self, id: Id) -> &[Extent] {
        let Data { begins, extents, .. } = self.data[id.index()];
        &self.extents[begins..begins + extents as usize]
    }

    /// Regular files, in the order in which they were found.
    pub fn files(&self) -> impl Iterator<Item = Id> + '_ {
        self.tree.ids().filter(|id| self.tree.entry(*id).kind == Kind::File)
    }

    /// The lowest first byte of any file's data, or 0.
    pub fn lowest(&self) -> u64 {
        let extents = self.files().flat_map(|id| self.extents(id)).filter(|extent| extent.at == At::Disk);
        extents.map(|extent| extent.physical).min().unwrap_or(0)
    }

    /// What the disk is asked for by the steps, when nothing is in memory at first.
    pub fn plan(&self, steps: &[Step], reading: Reading) -> Plan {
        let mut plan = Plan::default();
        let mut held = Held::default();
        let mut archived = 0;
        for step in steps {
            match *step {
                Step::List(id) => self.read_directory(id, &mut held, &mut plan),
                Step::Stat(id) => {
                    archived += TAR_BLOCK_BYTES;
                    self.read_inode(id, &mut held, &mut plan);
                }
                Step::Data(id) => {
                    let piece = match reading {
                        Reading::Pieces(bytes) => bytes,
                        Reading::Records(bytes) => bytes - archived.checked_rem(bytes).unwrap_or(0),
                    };
                    archived += self.bytes(id).next_multiple_of(TAR_BLOCK_BYTES);
                    file_reads(self.bytes(id), self.extents(id), piece, &mut plan.reads);
                }
            }
            plan.ends.push(plan.reads.len());
        }
        plan
    }

    /// Directories are metadata: block by block, and kept.
    fn read_directory(&self, id: Id, held: &mut Held, plan: &mut Plan) {
        let Some(tables) = &self.inodes else { return };
        let block_bytes = tables.block_bytes;
        for extent in self.extents(id).iter().filter(|extent| extent.at == At::Disk) {
            for at in (extent.physical..extent.physical + extent.bytes).step_by(block_bytes as usize) {
                if held.blocks.insert(at / block_bytes) {
                    plan.reads.push(Read { at, bytes: block_bytes });
                }
            }
        }
    }

    /// The inode's block comes with those around it that are not in memory, as far as they lie together.
    fn read_inode(&self, id: Id, held: &mut Held, plan: &mut Plan) {
        let Some(tables) = &self.inodes else { return };
        let inode = self.tree.entry(id).inode;
        let (Some(block), Some((begins, ends))) = (tables.block(inode), tables.window(inode)) else { return };
        if held.blocks.contains(&block) {
            return;
        }
        let mut missing: Option<(u64, u64)> = None;
        for block in begins..ends {
            if !held.blocks.insert(block) {
                plan.reads.extend(missing.take().map(|run| run_of_blocks(run, tables.block_bytes)));
                continue;
            }
            let (first, _) = *missing.get_or_insert((block, block));
            missing = Some((first, block + 1));
        }
        plan.reads.extend(missing.map(|run| run_of_blocks(run, tables.block_bytes)));
    }
}

/// What is in memory of the metadata.
#[derive(Default)]
struct Held {
    blocks: FxHashSet<u64>,
}

fn run_of_blocks((first, end): (u64, u64), block_bytes: u64) -> Read {
    Read { at: first * block_bytes, bytes: (end - first) * block_bytes }
}

/// Appends what is read of a file of `bytes` that a program reads from beginning to end, `piece` bytes at a time: windows that double up to
/// [`READ_AHEAD_BYTES`], the first of them by the first piece, cut where the file's extents end. Holes are not read, nor what is not on the
/// disk.
pub fn file_reads(bytes: u64, extents: &[Extent], piece: u64, reads: &mut Vec<Read>) {
    let longest = READ_AHEAD_BYTES / PAGE_BYTES;
    let pages = bytes.div_ceil(PAGE_BYTES);
    let mut window = first_window(piece.min(bytes).div_ceil(PAGE_BYTES), longest);
    let mut page = 0;
    let mut extents = extents.iter().copied().filter(|extent| extent.at == At::Disk).peekable();
    while page < pages {
        let end = (page + window).min(pages) * PAGE_BYTES;
        let mut from = page * PAGE_BYTES;
        while let Some(extent) = extents.peek().copied().filter(|extent| extent.logical < end) {
            let extent_end = extent.logical + extent.bytes;
            from = from.max(extent.logical);
            if from < extent_end {
                let at = extent.physical + (from - extent.logical);
                reads.push(Read { at, bytes: extent_end.min(end) - from });
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

/// The first window for a reader that wants so many pages: the rule of Linux since 2.6.23 (F. Wu and others, "On the design of a new Linux readahead
/// framework", 2008).
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

impl Plan {
    /// A plan of reads that do not wait for each other.
    pub fn of(reads: Vec<Read>) -> Plan {
        Plan { ends: (1..=reads.len()).collect(), reads }
    }

    /// Appends a step that waits for one read after the other.
    pub fn push(&mut self, reads: impl IntoIterator<Item = Read>) {
        self.reads.extend(reads);
        self.ends.push(self.reads.len());
    }

    /// One file of so many bytes, in one piece from `at` on.
    pub fn contiguous(at: u64, bytes: u64) -> Plan {
        let extent = Extent::on_disk(0, at, bytes.next_multiple_of(PAGE_BYTES));
        let mut reads = Vec::new();
        file_reads(bytes, &[extent], READ_AHEAD_BYTES, &mut reads);
        Plan { ends: vec![reads.len()], reads }
    }

    /// All reads, in their order.
    pub fn reads(&self) -> &[Read] {
        &self.reads
    }

    /// The reads of each step.
    pub fn steps(&self) -> impl Iterator<Item = &[Read]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begins, ends)| &self.reads[begins..*ends])
    }

    /// The same reads in one sweep of the head.
    pub fn sweep(&self) -> Plan {
        let mut reads = self.reads.clone();
        reads.sort_unstable();
        Plan::of(reads)
    }

    /// The same reads in one sweep, with all that lies between them where that is at most `gap` bytes; what lies together is one read of at most `longest` bytes.
    pub fn read_through(&self, longest: u64, gap: u64) -> Plan {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for read in self.sweep().reads {
            match runs.last_mut() {
                Some((_, end)) if read.at <= *end + gap => *end = (*end).max(read.at + read.bytes),
                _ => runs.push((read.at, read.at + read.bytes)),
            }
        }
        let longest = longest.max(1);
        let cut = |(begins, ends): (u64, u64)| {
            (begins..ends).step_by(longest as usize).map(move |at| Read { at, bytes: longest.min(ends - at) })
        };
        Plan::of(runs.into_iter().flat_map(cut).collect())
    }

    /// How far the head goes between reads.
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

/// How far the head goes between reads: from where one ends to where the next begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distance {
    /// All distances together.
    pub bytes: u64,
    /// How many are not 0.
    pub seeks: u64,
    /// How many of those lead back.
    pub backward: u64,
}

#[cfg(test)]
mod tests;
