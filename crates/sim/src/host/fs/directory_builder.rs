//! A directory under construction: its blocks, and the block that holds each name.
//!
//! With an index, a name goes to the block of its hash; a full block is split at the median hash,
//! as a B-tree's leaf is. Without an index, a name goes to the first block with room. A directory
//! never shrinks.

use hoistway_units::sort;

use super::tree::{Directory, Entry, Node};

/// Entries in a block. An entry has 8 bytes before its name; names of 12 bytes, about the mean of
/// source files, make 20, and a block of 4 KiB holds 204.
const ENTRIES_IN_BLOCK: usize = 204;

/// A directory that still changes.
#[derive(Debug)]
pub(super) struct DirectoryBuilder {
    indexed: bool,
    leaves: Vec<Leaf>,
}

/// A block of names.
#[derive(Debug)]
struct Leaf {
    /// The lowest hash of this block.
    from: u32,
    /// Position in the order in which blocks were added.
    number: u32,
    names: Vec<Name>,
}

/// A name in a directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    /// The name as a number. Names sort by these numbers.
    pub name: u64,
    pub hash: u32,
    pub node: Node,
}

impl DirectoryBuilder {
    pub fn new(indexed: bool) -> DirectoryBuilder {
        DirectoryBuilder { indexed, leaves: vec![Leaf { from: 0, number: 0, names: Vec::new() }] }
    }

    pub fn insert(&mut self, name: Name) {
        let at = self.leaf_for(name.hash);
        let number = self.leaves.len() as u32;
        let leaf = &mut self.leaves[at];
        leaf.names.push(name);
        if leaf.names.len() <= ENTRIES_IN_BLOCK {
            return;
        }
        sort::by_key(&mut leaf.names, |name| u64::from(name.hash));
        let upper = leaf.names.split_off(leaf.names.len() / 2);
        let from = upper.first().map_or(u32::MAX, |name| name.hash);
        self.leaves.insert(at + 1, Leaf { from, number, names: upper });
    }

    pub fn remove(&mut self, hash: u32, node: Node) {
        // Equal hashes may be on both sides of a split, and without an index a name may be in any
        // block.
        for leaf in &mut self.leaves {
            if let Some(at) = leaf.names.iter().position(|name| name.hash == hash && name.node == node) {
                leaf.names.swap_remove(at);
                return;
            }
        }
    }

    /// Number of the directory's blocks; the index is one of them if the names fill more than a
    /// block.
    pub fn blocks(&self) -> usize {
        self.leaves.len() + self.leaves_from()
    }

    /// Produces the directory as it is read: in the order of hashes with an index, otherwise in the
    /// order of its blocks.
    pub fn finish(self, inode: u32, parent: Option<u32>, blocks: Vec<u64>) -> Directory {
        let first = self.leaves_from() as u32;
        let indexed = self.indexed;
        let mut entries = Vec::new();
        for mut leaf in self.leaves {
            if indexed {
                sort::by_key(&mut leaf.names, |name| name.name);
                sort::by_key(&mut leaf.names, |name| u64::from(name.hash));
            }
            let block = first + leaf.number;
            entries.extend(leaf.names.iter().map(|name| Entry { node: name.node, block, name: name.name }));
        }
        Directory { inode, parent, blocks, indexed: first > 0, entries }
    }

    fn leaf_for(&mut self, hash: u32) -> usize {
        if self.indexed {
            return self.leaves.partition_point(|leaf| leaf.from <= hash).saturating_sub(1);
        }
        if let Some(at) = self.leaves.iter().position(|leaf| leaf.names.len() < ENTRIES_IN_BLOCK) {
            return at;
        }
        let number = self.leaves.len() as u32;
        self.leaves.push(Leaf { from: 0, number, names: Vec::new() });
        self.leaves.len() - 1
    }

    fn leaves_from(&self) -> usize {
        usize::from(self.indexed && self.leaves.len() > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::mix;

    fn folder(indexed: bool, names: u32) -> DirectoryBuilder {
        let mut folder = DirectoryBuilder::new(indexed);
        for number in 0..names {
            let hash = (mix(u64::from(number)) >> 33) as u32;
            folder.insert(Name { name: u64::from(number), hash, node: Node::File(number) });
        }
        folder
    }

    #[test]
    fn a_full_block_of_names_is_split_under_an_index() {
        assert_eq!(folder(true, 204).blocks(), 1);
        // The index, and two halves.
        assert_eq!(folder(true, 205).blocks(), 3);
        assert_eq!(folder(false, 205).blocks(), 2);
        let directory = folder(true, 3000).finish(11, None, Vec::new());
        assert_eq!(directory.entries.len(), 3000);
        // Split leaves are 69 % full on average (ln 2): 3000 / (204 * 0.69) = 21.
        let leaves = directory.entries.iter().map(|entry| entry.block).max().unwrap();
        assert!((17..=27).contains(&leaves), "{leaves}");
    }

    #[test]
    fn names_are_read_in_hash_order_with_an_index_and_in_creation_order_without() {
        let numbers = |indexed| {
            let directory = folder(indexed, 500).finish(11, None, Vec::new());
            directory.entries.iter().map(|entry| entry.name).collect::<Vec<u64>>()
        };
        assert_eq!(numbers(false), (0..500).collect::<Vec<u64>>());
        let hashed: Vec<u64> = numbers(true);
        assert!(hashed.windows(2).all(|pair| mix(pair[0]) >> 33 <= mix(pair[1]) >> 33));
    }

    #[test]
    fn removed_names_leave_their_block() {
        let mut folder = folder(true, 300);
        for number in 0..300 {
            folder.remove((mix(u64::from(number)) >> 33) as u32, Node::File(number));
        }
        assert_eq!(folder.blocks(), 3);
        assert_eq!(folder.finish(11, None, Vec::new()).entries, []);
    }
}
