//! The blocks of a region that random requests of different sizes have not touched.

use std::collections::BTreeMap;

/// Free blocks of a region: the touched ones are kept as runs, which are as few as the requests.
#[derive(Clone, Debug)]
pub(crate) struct FreeBlocks {
    blocks: u64,
    /// First block and end of each run of touched blocks; no two runs touch each other.
    taken: BTreeMap<u64, u64>,
}

impl FreeBlocks {
    /// Creates the state in which all of `blocks` blocks are free.
    pub fn new(blocks: u64) -> FreeBlocks {
        FreeBlocks { blocks: blocks.max(1), taken: BTreeMap::new() }
    }

    /// The first free block from `from` on, or else from the start, and the number of free blocks
    /// from there. `None` if no block is free.
    pub fn find(&self, from: u64) -> Option<(u64, u64)> {
        self.find_behind(from).or_else(|| self.find_behind(0))
    }

    /// Frees all blocks.
    pub fn clear(&mut self) {
        self.taken.clear();
    }

    fn find_behind(&self, from: u64) -> Option<(u64, u64)> {
        let covering = self.taken.range(..=from).next_back().map(|(_, end)| *end).filter(|end| *end > from);
        let start = covering.unwrap_or(from);
        let end = self.taken.range(start..).next().map_or(self.blocks, |(start, _)| *start);
        (start < self.blocks).then(|| (start, end - start))
    }

    /// Takes free blocks.
    pub fn take(&mut self, start: u64, count: u64) {
        let (mut start, mut end) = (start, start.saturating_add(count));
        if let Some((before, before_end)) = self.taken.range(..=start).next_back().map(|(s, e)| (*s, *e))
            && before_end >= start
        {
            (start, end) = (before, end.max(before_end));
        }
        while let Some((behind, behind_end)) = self.taken.range(start..=end).next().map(|(s, e)| (*s, *e)) {
            self.taken.remove(&behind);
            end = end.max(behind_end);
        }
        self.taken.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_blocks_are_found_around_the_end_until_all_are_taken() {
        let mut free = FreeBlocks::new(10);
        assert_eq!(free.find(4), Some((4, 6)));
        free.take(4, 2);
        assert_eq!([free.find(4), free.find(5), free.find(1)], [Some((6, 4)), Some((6, 4)), Some((1, 3))]);
        free.take(6, 4);
        assert_eq!(free.find(7), Some((0, 4)));
        free.take(0, 4);
        assert_eq!(free.taken, BTreeMap::from([(0, 10)]));
        assert_eq!(free.find(7), None);
        free.clear();
        assert_eq!(free.find(7), Some((7, 3)));
    }
}
