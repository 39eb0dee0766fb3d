//! In which order members are written.

use rustc_hash::FxHashSet;

use super::twins::Twins;
use crate::sort::{By, order};
use crate::tree::{Id, Kind, Tree};

/// One name of the tree and what is written of it here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub id: Id,
    pub part: Part,
}

/// What is written of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All there is: there is no other item of this name.
    Whole,
    /// A directory, so that those who extract have it before what lies in it.
    Before,
    /// A directory, so that those who extract set its times when nothing is put into it any more.
    After,
}

/// What is written of a tree, in order.
#[derive(Debug)]
pub(super) struct Plan {
    pub items: Vec<Item>,
    /// Files that are left out because others of the same name were asked for later.
    pub replaced: u64,
}

/// All names of a tree in the order in which they are written.
///
/// In the order of the disk the files of a directory lie far from each other. GNU tar sets a directory's mode and times as soon as a member comes that does not lie in
/// it, and what is extracted later moves the time again, or is refused where the mode forbids it. So a directory with something in it stands there twice: all of them
/// at the front, from the top down, and all of them at the end, from the bottom up.
pub(super) fn plan(tree: &Tree, by: By, is_list: bool, absolute: bool) -> Plan {
    let twins = Twins::of(tree, absolute);
    let nested = matches!(by, By::Name | By::None);
    let mut holds = vec![is_list; if nested { 0 } else { tree.len() }];
    if !nested {
        for id in tree.ids().filter(|id| !twins.is_left_out(*id)) {
            if let Some(parent) = tree.parent(id) {
                holds[twins.standing_for(parent).index()] = true;
            }
            holds[id.index()] |= twins.is_above(id);
        }
    }
    let is_twice = |id: Id| holds.get(id.index()) == Some(&true) && tree.entry(id).kind == Kind::Directory;
    let mut items = Vec::with_capacity(tree.len());
    // Directories that stand for others have been put where the first of these stood, before what is in it; in nested orders each time.
    let mut put = FxHashSet::default();
    for id in order(tree, by) {
        let stands = twins.standing_for(id);
        if twins.is_left_out(id) || (!nested && twins.stands(stands) && !put.insert(stands)) {
            continue;
        }
        items.push(Item { id: stands, part: if is_twice(stands) { Part::Before } else { Part::Whole } });
    }
    for at in (0..items.len()).rev().filter(|_| !nested) {
        let Item { id, part } = items[at];
        if part == Part::Before {
            items.push(Item { id, part: Part::After });
        }
    }
    Plan { items, replaced: twins.replaced }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::tree::Place;

    #[test]
    fn directories_with_something_in_them_stand_at_both_ends() {
        let mut tree = Tree::new();
        let top = tree.add(None, OsStr::new("t"), Kind::Directory, 2, 1).unwrap();
        let far = tree.add(Some(top), OsStr::new("far"), Kind::File, 9, 1).unwrap();
        let near = tree.add(Some(top), OsStr::new("near"), Kind::File, 10, 1).unwrap();
        let empty = tree.add(Some(top), OsStr::new("empty"), Kind::Directory, 3, 1).unwrap();
        tree.set_place(far, Place::At(8192));
        tree.set_place(near, Place::At(4096));
        let item = |id, part| Item { id, part };
        let by_block = plan(&tree, By::Block, false, false).items;
        assert_eq!(by_block.first(), Some(&item(top, Part::Before)));
        assert_eq!(by_block.last(), Some(&item(top, Part::After)));
        let at = |wanted| by_block.iter().position(|item| item.id == wanted).unwrap();
        assert!(at(empty) < at(near) && at(near) < at(far));
        assert_eq!(by_block.len(), 5);
        assert!(plan(&tree, By::Name, false, false).items.iter().all(|item| item.part == Part::Whole));
    }
    #[test]
    fn a_tree_over_another_one_wins_wherever_its_files_lie() {
        let mut tree = Tree::new();
        let mut put = |parent, name: &str, kind, inode, at| {
            let id = tree.add(parent, OsStr::new(name), kind, inode, 1).unwrap();
            tree.set_place(id, Place::At(at));
            id
        };
        let base = put(None, ".", Kind::Directory, 2, 0);
        let base_d = put(Some(base), "d", Kind::Directory, 3, 0);
        let below = put(Some(base_d), "below", Kind::File, 4, 4096);
        let replaced = put(Some(base), "f", Kind::File, 5, 8192);
        let over = put(None, ".", Kind::Directory, 6, 0);
        let over_d = put(Some(over), "d", Kind::Directory, 7, 0);
        let file = put(Some(over), "f", Kind::File, 8, 0);
        for by in [By::Block, By::Name] {
            let Plan { items, replaced: count } = plan(&tree, by, false, false);
            assert_eq!(count, 1);
            assert!(items.iter().all(|item| ![base, base_d, replaced].contains(&item.id)), "{items:?}");
            assert!([over, over_d, file, below].iter().all(|id| items.iter().any(|item| item.id == *id)), "{items:?}");
        }
        let items = plan(&tree, By::Block, false, false).items;
        let directories = [(over, Part::Before), (over_d, Part::Before)].map(|(id, part)| Item { id, part });
        assert_eq!(items[..2], directories);
        let directories = [(over_d, Part::After), (over, Part::After)].map(|(id, part)| Item { id, part });
        assert_eq!(items[4..], directories);
    }
}
