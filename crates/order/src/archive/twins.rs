//! Names that are the same in the archive though their paths are not: `-C base . -C over .` lays one tree over another.

use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};

use super::names::{Names, hashes, same};
use crate::tree::{Id, Kind, Tree};

/// Which of several names that are the same stands for all: the one that was asked for last. It is what would be left if all were extracted in the order in which they
/// were asked for, and in the order of the disk any of them may come last.
#[derive(Debug, Default)]
pub(super) struct Twins {
    /// For a name that another one stands for, that one, or one that is nearer to it.
    stands: FxHashMap<Id, Id>,
    /// Those that stand for others.
    standing: FxHashSet<Id>,
    /// What is not archived: everything but directories that a directory stands for.
    left_out: FxHashSet<Id>,
    /// Directories in which something else lies that was asked for itself.
    above: FxHashSet<Id>,
    /// How many of those that are left out are other files than those that stand for them.
    pub replaced: u64,
}

impl Twins {
    /// Compares the names of a tree, if any can be the same: 16 bytes a name meanwhile.
    pub fn of(tree: &Tree, absolute: bool) -> Twins {
        let roots: Vec<Id> = tree.ids().filter(|id| tree.parent(*id).is_none()).collect();
        let mut twins = Twins::default();
        if may_meet(tree, &roots, absolute) {
            twins.find(tree, &roots, absolute);
            twins.leave_out(tree);
        }
        twins
    }

    /// What is archived in the place of a name: itself, for most.
    pub fn standing_for(&self, id: Id) -> Id {
        std::iter::successors(Some(id), |id| self.stands.get(id).copied()).last().unwrap_or(id)
    }

    /// Whether a name stands for others.
    pub fn stands(&self, id: Id) -> bool {
        self.standing.contains(&id)
    }

    /// Whether a name is not archived.
    pub fn is_left_out(&self, id: Id) -> bool {
        self.left_out.contains(&id)
    }

    /// Whether something that was asked for itself lies in a directory.
    pub fn is_above(&self, id: Id) -> bool {
        self.above.contains(&id)
    }

    fn find(&mut self, tree: &Tree, roots: &[Id], absolute: bool) {
        // By hash; those whose hashes are the same stand one behind the other.
        let mut known: FxHashMap<u64, Id> = FxHashMap::default();
        let (mut names, mut others) = (Names::new(tree, absolute), Names::new(tree, absolute));
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

    /// Decides what is not archived. A directory comes before what is in it.
    fn leave_out(&mut self, tree: &Tree) {
        let is_directory = |id: Id| tree.entry(id).kind == Kind::Directory;
        for id in tree.ids() {
            let stands = self.standing_for(id);
            // What lies in a directory goes with it where something else has its name.
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

/// Whether two names can be the same: only where paths that were asked for have the same name, or one of them lies in another.
fn may_meet(tree: &Tree, roots: &[Id], absolute: bool) -> bool {
    let mut names = Names::new(tree, absolute);
    let mut path = Vec::new();
    let mut asked = FxHashSet::default();
    for root in roots {
        let hash = hashes(names.of(*root, &mut path)).last();
        if !asked.insert(hash) {
            return true;
        }
    }
    asked.len() > 1
        && roots.iter().any(|root| {
            let name = names.of(*root, &mut path);
            let depth = hashes(name).count();
            hashes(name).take(depth - 1).any(|hash| asked.contains(&Some(hash)))
        })
}

fn root_of(tree: &Tree, id: Id) -> Id {
    std::iter::successors(Some(id), |id| tree.parent(*id)).last().unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    /// A tree of (index of the directory, name, kind); each is a file of its own.
    fn tree(entries: &[(Option<usize>, &str, Kind)]) -> (Tree, Vec<Id>) {
        let mut tree = Tree::new();
        let mut ids: Vec<Id> = Vec::new();
        for (parent, name, kind) in entries {
            let inode = ids.len() as u64 + 1;
            ids.push(tree.add(parent.map(|parent| ids[parent]), OsStr::new(name), *kind, inode, 1).unwrap());
        }
        (tree, ids)
    }

    use Kind::{Directory, File};

    #[test]
    fn of_the_same_names_the_one_that_was_asked_for_last_stands_for_all() {
        let over = [(None, ".", Directory), (Some(0), "f", File), (None, "./", Directory), (Some(2), "f", File)];
        let (tree, ids) = tree(&over);
        let twins = Twins::of(&tree, false);
        assert_eq!((twins.standing_for(ids[0]), twins.standing_for(ids[1])), (ids[2], ids[3]));
        assert!(twins.is_left_out(ids[1]) && !twins.is_left_out(ids[3]));
        assert!(!twins.is_left_out(ids[0]), "a directory stands where the first of them stood");
        assert_eq!(twins.replaced, 1);
    }

    #[test]
    fn what_lies_in_a_directory_goes_with_it_where_a_file_has_its_name() {
        let entries = [
            (None, "d", Directory),
            (Some(0), "s", Directory),
            (Some(1), "f", File),
            (None, "/d", File),
            (None, "e", File),
        ];
        let (tree, ids) = tree(&entries);
        let twins = Twins::of(&tree, false);
        let out: Vec<bool> = ids.iter().map(|id| twins.is_left_out(*id)).collect();
        assert_eq!(out, [true, true, true, false, false]);
        assert_eq!(twins.replaced, 3);
        assert_eq!(Twins::of(&tree, true).left_out.len(), 0, "with absolute names they are two");
    }

    #[test]
    fn what_was_asked_for_itself_lies_in_the_directory_that_has_its_path() {
        let (tree, ids) = tree(&[(None, "d/e/f", File), (None, "d", Directory), (Some(1), "e", Directory)]);
        let twins = Twins::of(&tree, false);
        assert!(twins.is_above(ids[1]) && twins.is_above(ids[2]) && !twins.is_above(ids[0]));
        assert_eq!(twins.replaced, 0);
    }
}
