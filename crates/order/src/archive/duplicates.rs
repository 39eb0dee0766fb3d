//! Equal member names of different paths: `-C base . -C over .` stores one tree over another.

use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};

use super::names::{MemberNames, hashes, same};
use crate::tree::{EntryId, FileKind, Tree};

/// Selects one of several files with the same member name: that of the last root. Extraction in
/// command line order would leave that file; in disk order any file could come last.
#[derive(Debug, Default)]
pub(super) struct DuplicateNames {
    /// Maps a replaced name to its replacement or to one nearer to it.
    stands: FxHashMap<EntryId, EntryId>,
    /// Names that replace others.
    standing: FxHashSet<EntryId>,
    /// Names that are not archived: all replaced names except directories that a directory
    /// replaces.
    left_out: FxHashSet<EntryId>,
    /// Directories that contain another root.
    above: FxHashSet<EntryId>,
    /// Number of left-out names that are other files than their replacements.
    pub replaced: u64,
}

impl DuplicateNames {
    /// Compares all names of a tree if duplicates are possible. Needs 16 bytes a name while it
    /// runs.
    pub fn of(tree: &Tree, absolute: bool) -> DuplicateNames {
        let roots: Vec<EntryId> = tree.ids().filter(|id| tree.parent(*id).is_none()).collect();
        let mut duplicates = DuplicateNames::default();
        if may_meet(tree, &roots, absolute) {
            duplicates.find(tree, &roots, absolute);
            duplicates.leave_out(tree);
        }
        duplicates
    }

    /// Returns the replacement of a name; for most names the name itself.
    pub fn standing_for(&self, id: EntryId) -> EntryId {
        std::iter::successors(Some(id), |id| self.stands.get(id).copied()).last().unwrap_or(id)
    }

    /// Returns true if a name replaces others.
    pub fn stands(&self, id: EntryId) -> bool {
        self.standing.contains(&id)
    }

    /// Returns true if a name is not archived.
    pub fn is_left_out(&self, id: EntryId) -> bool {
        self.left_out.contains(&id)
    }

    /// Returns true if a directory contains another root.
    pub fn is_above(&self, id: EntryId) -> bool {
        self.above.contains(&id)
    }

    fn find(&mut self, tree: &Tree, roots: &[EntryId], absolute: bool) {
        // A hash table with linear probing.
        let mut known: FxHashMap<u64, EntryId> = FxHashMap::default();
        let (mut names, mut others) = (MemberNames::new(tree, absolute), MemberNames::new(tree, absolute));
        let (mut path, mut other_path) = (Vec::new(), Vec::new());
        for id in tree.ids() {
            let name = names.of(id, &mut path);
            let mut hash = hashes(name).last().unwrap_or_default();
            loop {
                match known.entry(hash) {
                    Entry::Vacant(place) => {
                        place.insert(id);
                        break;
                    }
                    Entry::Occupied(mut place) => {
                        let other = *place.get();
                        if same(name, others.of(other, &mut other_path)) {
                            let is_later = (root_of(tree, id), id) > (root_of(tree, other), other);
                            let (before, last) = if is_later { (other, id) } else { (id, other) };
                            self.stands.insert(before, last);
                            place.insert(last);
                            break;
                        }
                        hash = hash.wrapping_add(1);
                    }
                }
            }
        }
        for root in roots {
            let name = names.of(*root, &mut path);
            let depth = hashes(name).count();
            self.above.extend(hashes(name).take(depth - 1).filter_map(|hash| known.get(&hash).copied()));
        }
        self.standing = self.stands.keys().map(|id| self.standing_for(*id)).collect();
    }

    /// Determines the names that are not archived. A directory precedes its contents.
    fn leave_out(&mut self, tree: &Tree) {
        let is_directory = |id: EntryId| tree.entry(id).kind == FileKind::Directory;
        for id in tree.ids() {
            let stands = self.standing_for(id);
            // The contents of a replaced directory are left out with it.
            let goes_with = tree.parent(id).is_some_and(|parent| self.left_out.contains(&parent));
            let is_replaced = stands != id && !(is_directory(id) && is_directory(stands));
            if !goes_with && !is_replaced {
                continue;
            }
            self.left_out.insert(id);
            let (one, other) = (tree.entry(id), tree.entry(stands));
            self.replaced += u64::from(goes_with || (one.inode, one.device) != (other.inode, other.device));
        }
    }
}

/// Returns true if two names can be equal: two roots have the same name, or one is inside another.
fn may_meet(tree: &Tree, roots: &[EntryId], absolute: bool) -> bool {
    let mut names = MemberNames::new(tree, absolute);
    let mut path = Vec::new();
    let mut root_hashes = FxHashSet::default();
    for root in roots {
        let hash = hashes(names.of(*root, &mut path)).last();
        if !root_hashes.insert(hash) {
            return true;
        }
    }
    root_hashes.len() > 1
        && roots.iter().any(|root| {
            let name = names.of(*root, &mut path);
            let depth = hashes(name).count();
            hashes(name).take(depth - 1).any(|hash| root_hashes.contains(&Some(hash)))
        })
}

fn root_of(tree: &Tree, id: EntryId) -> EntryId {
    std::iter::successors(Some(id), |id| tree.parent(*id)).last().unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    /// Creates a tree of (index of the parent, name, kind); each entry is a separate file.
    fn tree(entries: &[(Option<usize>, &str, FileKind)]) -> (Tree, Vec<EntryId>) {
        let mut tree = Tree::new();
        let mut ids: Vec<EntryId> = Vec::new();
        for (parent, name, kind) in entries {
            let inode = ids.len() as u64 + 1;
            ids.push(tree.add(parent.map(|parent| ids[parent]), OsStr::new(name), *kind, inode, 1).unwrap());
        }
        (tree, ids)
    }

    use FileKind::{Directory, File};

    #[test]
    fn the_file_of_the_last_root_replaces_all_others() {
        let over = [(None, ".", Directory), (Some(0), "f", File), (None, "./", Directory), (Some(2), "f", File)];
        let (tree, ids) = tree(&over);
        let duplicates = DuplicateNames::of(&tree, false);
        assert_eq!((duplicates.standing_for(ids[0]), duplicates.standing_for(ids[1])), (ids[2], ids[3]));
        assert!(duplicates.is_left_out(ids[1]) && !duplicates.is_left_out(ids[3]));
        assert!(!duplicates.is_left_out(ids[0]), "a directory stands where the first of them stood");
        assert_eq!(duplicates.replaced, 1);
    }

    #[test]
    fn the_contents_of_a_directory_are_left_out_with_it_if_a_file_has_its_name() {
        let entries = [
            (None, "d", Directory),
            (Some(0), "s", Directory),
            (Some(1), "f", File),
            (None, "/d", File),
            (None, "e", File),
        ];
        let (tree, ids) = tree(&entries);
        let duplicates = DuplicateNames::of(&tree, false);
        let out: Vec<bool> = ids.iter().map(|id| duplicates.is_left_out(*id)).collect();
        assert_eq!(out, [true, true, true, false, false]);
        assert_eq!(duplicates.replaced, 3);
        assert_eq!(DuplicateNames::of(&tree, true).left_out.len(), 0, "with absolute names they are two");
    }

    #[test]
    fn a_root_is_inside_the_directory_that_has_its_path() {
        let (tree, ids) = tree(&[(None, "d/e/f", File), (None, "d", Directory), (Some(1), "e", Directory)]);
        let duplicates = DuplicateNames::of(&tree, false);
        assert!(duplicates.is_above(ids[1]) && duplicates.is_above(ids[2]) && !duplicates.is_above(ids[0]));
        assert_eq!(duplicates.replaced, 0);
    }
}
