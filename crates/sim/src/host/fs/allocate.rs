//! Allocation of blocks and inodes in block groups.
//!
//! Directories are spread by the rules of the Orlov allocator ("The Orlov block allocator", LWN,
//! 2002): top-level directories far apart, others near their parents while there is room. The inode
//! of a file is in the group of its directory. Its blocks follow the last ones of the file, or
//! start in the group of its inode.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::age::{Ageing, age_group};
use super::bitmap::{WORDS, next_run, set};
use super::geometry::{FIRST_INODE, GROUP_BLOCKS, Geometry, Inode};
use crate::workload::{mix, stream};

/// With extents, the number of groups that are searched for one run for a whole file before the
/// file is divided.
const GROUPS_TRIED: u32 = 16;

/// The free space of the file system.
#[derive(Debug)]
pub(crate) struct Allocator {
    pub geometry: Geometry,
    groups: Vec<Group>,
    ageing: Option<Ageing>,
    seed: u64,
    directories: u64,
    free_blocks: u64,
    free_inodes: u64,
}

#[derive(Debug)]
struct Group {
    /// A bit for each used block; created at the first access to the group.
    map: Option<Box<[u64; WORDS]>>,
    free_blocks: u32,
    free_inodes: u32,
    directories: u32,
    /// Inodes of deleted files, lowest last; and the first inode that was never used.
    returned: Vec<u32>,
    next_inode: u32,
}

impl Allocator {
    /// Creates the free space of a fresh or an aged file system.
    pub fn new(geometry: Geometry, ageing: Option<Ageing>, seed: u64) -> Allocator {
        let mut groups = Vec::new();
        for group in 0..geometry.groups {
            let own: u64 = geometry.own_blocks(group).iter().map(|(_, blocks)| blocks).sum();
            let free = GROUP_BLOCKS.saturating_sub(own);
            // The final fill of a group is known before its bitmap exists.
            let left = ageing.map_or(free, |ageing| free * u64::from(100 - ageing.full_percent) / 100);
            let reserved = if group == 0 { FIRST_INODE - 1 } else { 0 };
            groups.push(Group {
                map: None,
                free_blocks: left as u32,
                free_inodes: geometry.inodes_per_group - reserved,
                directories: 0,
                returned: Vec::new(),
                next_inode: reserved,
            });
        }
        let free_blocks = groups.iter().map(|group| u64::from(group.free_blocks)).sum();
        let free_inodes = groups.iter().map(|group| u64::from(group.free_inodes)).sum();
        Allocator { geometry, groups, ageing, seed, directories: 0, free_blocks, free_inodes }
    }

    /// Allocates an inode for a directory. Its parent is in group `parent`; `None` for a top-level
    /// directory. Returns `None` without a free inode.
    pub fn directory_inode(&mut self, parent: Option<u32>, rng: &mut Pcg64) -> Option<Inode> {
        let count = self.geometry.groups;
        let mean_blocks = self.free_blocks / u64::from(count);
        let mean_inodes = self.free_inodes / u64::from(count);
        let chosen = match parent {
            None => {
                let first = rng.random_range(0..count);
                let fit = |group: &Group| {
                    u64::from(group.free_inodes) >= mean_inodes && u64::from(group.free_blocks) >= mean_blocks
                };
                let around = (0..count).map(|step| (first + step) % count);
                around
                    .filter(|group| fit(&self.groups[*group as usize]))
                    .min_by_key(|group| self.directories_in(*group))
            }
            Some(parent) => {
                let quarter = u64::from(self.geometry.inodes_per_group) / 4;
                let inodes_min = mean_inodes.saturating_sub(quarter);
                let blocks_min = mean_blocks.saturating_sub(GROUP_BLOCKS / 4);
                let most = self.directories / u64::from(count) + u64::from(self.geometry.inodes_per_group) / 16;
                let fit = |group: &Group| {
                    u64::from(group.directories) < most
                        && u64::from(group.free_inodes) >= inodes_min.max(1)
                        && u64::from(group.free_blocks) >= blocks_min.max(1)
                };
                (0..count).map(|step| (parent + step) % count).find(|group| fit(&self.groups[*group as usize]))
            }
        };
        // If no group is good enough, the first with a free inode is taken.
        let from = chosen.unwrap_or(parent.unwrap_or(0));
        let group = self.group_with_inode(from)?;
        self.groups[group as usize].directories += 1;
        self.directories += 1;
        Some(self.take_inode(group))
    }

    /// Allocates an inode for a file in a directory of this group: in the group, or in groups at
    /// growing distances.
    pub fn file_inode(&mut self, parent: u32) -> Option<Inode> {
        let count = self.geometry.groups;
        let has_room = |group: u32| {
            let group = &self.groups[group as usize];
            group.free_inodes > 0 && group.free_blocks > 0
        };
        let (mut group, mut stride) = (parent, 1);
        while !has_room(group) && stride < count {
            group = (group + stride) % count;
            stride *= 2;
        }
        if !has_room(group) {
            group = self.group_with_inode(parent)?;
        }
        Some(self.take_inode(group))
    }

    /// Frees an inode.
    pub fn return_inode(&mut self, inode: Inode) {
        let index = (inode - 1) % self.geometry.inodes_per_group;
        let group = &mut self.groups[self.geometry.group_of(inode) as usize];
        let at = group.returned.partition_point(|other| *other > index);
        group.returned.insert(at, index);
        group.free_inodes += 1;
        self.free_inodes += 1;
    }

    /// Number of inodes of a group that have ever been used: the table after them is empty.
    pub fn used_inodes(&self, group: u32) -> u32 {
        self.groups[group as usize].next_inode
    }

    /// Allocates `blocks` blocks at `goal` or near it, and adds the runs to `runs`. Returns true if
    /// there were enough.
    pub fn allocate(&mut self, goal: u64, blocks: u64, runs: &mut Vec<(u64, u64)>) -> bool {
        if blocks > self.free_blocks {
            return false;
        }
        let mut left = blocks;
        let goal = goal.min(self.geometry.start(self.geometry.groups) - 1);
        if self.geometry.config.extents {
            left = self.allocate_extents(goal, left, runs);
        }
        self.allocate_next(goal, left, runs) == 0
    }

    /// Allocates `blocks` blocks in unused groups from the group of `goal` on: contiguous except
    /// for the reserved blocks of the groups. Returns true if there are such groups.
    pub fn allocate_unused(&mut self, goal: u64, blocks: u64, runs: &mut Vec<(u64, u64)>) -> bool {
        let (home, count) = ((goal / GROUP_BLOCKS) as u32, self.geometry.groups);
        let room = |group: u32| {
            let own: u64 = self.geometry.own_blocks(group).iter().map(|(_, blocks)| blocks).sum();
            GROUP_BLOCKS.saturating_sub(own)
        };
        let (mut first, mut found) = (home, 0);
        for group in home..count {
            match self.groups[group as usize].map {
                Some(_) => (first, found) = (group + 1, 0),
                None => found += room(group),
            }
            if found >= blocks {
                let ageing = self.ageing.take();
                (first..=group).for_each(|group| self.touch(group));
                self.ageing = ageing;
                return self.allocate_next(self.geometry.start(first), blocks, runs) == 0;
            }
        }
        false
    }

    /// Frees blocks.
    pub fn free(&mut self, first: u64, blocks: u64) {
        let (mut block, end) = (first, first + blocks);
        while block < end {
            let group = (block / GROUP_BLOCKS) as u32;
            let count = (self.geometry.start(group + 1) - block).min(end - block);
            let offset = block % GROUP_BLOCKS;
            let state = &mut self.groups[group as usize];
            if let Some(map) = &mut state.map {
                set(map, offset, count, false);
            }
            state.free_blocks += count as u32;
            self.free_blocks += count;
            block += count;
        }
    }

    /// The lengths of all runs of free blocks in the groups that have a bitmap.
    #[cfg(test)]
    pub fn free_runs(&self) -> Vec<u64> {
        let mut lengths = Vec::new();
        for map in self.groups.iter().filter_map(|group| group.map.as_ref()) {
            let mut at = 0;
            while let Some((start, length)) = next_run(map, at) {
                lengths.push(length);
                at = start + length;
            }
        }
        lengths
    }

    /// Allocates with extents: in one run after the goal, anywhere in its group, or in the next
    /// groups. Files larger than a group take whole runs in their order. Returns the number of
    /// blocks that remain.
    fn allocate_extents(&mut self, goal: u64, blocks: u64, runs: &mut Vec<(u64, u64)>) -> u64 {
        let mut left = blocks;
        let mut goal = goal;
        while left > 0 {
            // Least length of a run: at most the length of a group after its tables.
            let wanted = left.min(GROUP_BLOCKS / 4);
            let Some((first, length)) = self.find_run(goal, wanted) else { return left };
            let taken = length.min(left);
            self.take(first, taken);
            runs.push((first, taken));
            left -= taken;
            goal = (first + taken) % self.geometry.start(self.geometry.groups);
        }
        0
    }

    /// Finds a run of at least `blocks` blocks at the goal, after the goal, in its group, or in the
    /// next groups.
    fn find_run(&mut self, goal: u64, wanted: u64) -> Option<(u64, u64)> {
        let home = (goal / GROUP_BLOCKS) as u32;
        let behind = (home, goal % GROUP_BLOCKS);
        let count = self.geometry.groups;
        let others = (0..GROUPS_TRIED.min(count)).map(|step| ((home + step) % count, 0));
        for (group, from) in std::iter::once(behind).chain(others) {
            if u64::from(self.groups[group as usize].free_blocks) < wanted {
                continue;
            }
            let start = self.geometry.start(group);
            let map = self.map(group);
            let mut at = from;
            while let Some((first, length)) = next_run(map, at) {
                if length >= wanted {
                    return Some((start + first, length));
                }
                at = first + length;
            }
        }
        None
    }

    /// Allocates the next free blocks from the goal on in runs of any length, once around the disk.
    /// Returns the number of blocks that remain.
    fn allocate_next(&mut self, goal: u64, blocks: u64, runs: &mut Vec<(u64, u64)>) -> u64 {
        let mut left = blocks;
        let home = (goal / GROUP_BLOCKS) as u32;
        let count = self.geometry.groups;
        for step in 0..=count {
            let group = (home + step) % count;
            let start = self.geometry.start(group);
            let mut at = if step == 0 { goal - start } else { 0 };
            while left > 0 {
                let Some((first, length)) = next_run(self.map(group), at) else { break };
                let taken = length.min(left);
                self.take(start + first, taken);
                runs.push((start + first, taken));
                left -= taken;
                at = first + taken;
            }
            if left == 0 {
                break;
            }
        }
        left
    }

    /// Marks free blocks of one group as used.
    fn take(&mut self, first: u64, blocks: u64) {
        let group = (first / GROUP_BLOCKS) as u32;
        set(self.map(group), first % GROUP_BLOCKS, blocks, true);
        self.groups[group as usize].free_blocks -= blocks as u32;
        self.free_blocks -= blocks;
    }

    /// The bitmap of a group. The first access creates it, with the blocks of other files.
    fn map(&mut self, group: u32) -> &mut [u64; WORDS] {
        if self.groups[group as usize].map.is_none() {
            self.touch(group);
        }
        self.groups[group as usize].map.get_or_insert_with(|| Box::new([u64::MAX; WORDS]))
    }

    fn touch(&mut self, group: u32) {
        let mut map = Box::new([0; WORDS]);
        // The tables of a flex group may be longer than the group in which they start.
        let first = group - group % self.geometry.config.flex_groups;
        for (start, blocks) in (first..=group).flat_map(|member| self.geometry.own_blocks(member)) {
            let (from, end) = (start.max(self.geometry.start(group)), start + blocks);
            let end = end.min(self.geometry.start(group + 1));
            if from < end {
                set(&mut map, from % GROUP_BLOCKS, end - from, true);
            }
        }
        if let Some(ageing) = self.ageing {
            let mut rng = stream(mix(self.seed), u64::from(group), 11);
            age_group(&mut map, ageing, &mut rng);
        }
        let free: u32 = map.iter().map(|word| word.count_zeros()).sum();
        let state = &mut self.groups[group as usize];
        self.free_blocks = self.free_blocks - u64::from(state.free_blocks) + u64::from(free);
        state.free_blocks = free;
        state.map = Some(map);
    }

    fn directories_in(&self, group: u32) -> u32 {
        self.groups[group as usize].directories
    }

    fn group_with_inode(&self, from: u32) -> Option<u32> {
        let count = self.geometry.groups;
        (0..count).map(|step| (from + step) % count).find(|group| self.groups[*group as usize].free_inodes > 0)
    }

    /// Takes the lowest free inode of a group with free inodes.
    fn take_inode(&mut self, group: u32) -> Inode {
        let state = &mut self.groups[group as usize];
        let index = state.returned.pop().unwrap_or_else(|| {
            state.next_inode += 1;
            state.next_inode - 1
        });
        state.free_inodes -= 1;
        self.free_inodes -= 1;
        group * self.geometry.inodes_per_group + index + 1
    }
}
