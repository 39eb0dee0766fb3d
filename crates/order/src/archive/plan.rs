//! In which order members are written.

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

/// All names of a tree in the order in which they are written.
///
/// In the order of the disk the files of a directory lie far from each other. GNU tar sets a directory's mode and times as soon as a member comes that does not lie in
/// it, and what is extracted later moves the time again, or is refused where the mode forbids it. So a directory with something in it stands there twice: all of them
/// at the front, from the top down, and all of them at the end, from the bottom up.
pub(super) fn plan(tree: &Tree, by: By, is_list: bool) -> Vec<Item> {
    let ids = order(tree, by);
    let nested = matches!(by, By::Name | By::None);
    let mut holds = vec![is_list; if nested { 0 } else { tree.len() }];
    if !nested {
        for id in tree.ids() {
            if let Some(parent) = tree.parent(id) {
                holds[parent.index()] = true;
            }
        }
    }
    let is_twice = |id: Id| holds.get(id.index()) == Some(&true) && tree.entry(id).kind == Kind::Directory;
    let mut items = Vec::with_capacity(ids.len());
    items.extend(ids.iter().map(|id| Item { id: *id, part: if is_twice(*id) { Part::Before } else { Part::Whole } }));
    items.extend(ids.iter().rev().filter(|id| is_twice(**id)).map(|id| Item { id: *id, part: Part::After }));
    items
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
        let by_block = plan(&tree, By::Block, false);
        assert_eq!(by_block.first(), Some(&item(top, Part::Before)));
        assert_eq!(by_block.last(), Some(&item(top, Part::After)));
        let at = |wanted| by_block.iter().position(|item| item.id == wanted).unwrap();
        assert!(at(empty) < at(near) && at(near) < at(far));
        assert_eq!(by_block.len(), 5);
        assert!(plan(&tree, By::Name, false).iter().all(|item| item.part == Part::Whole));
    }
}
