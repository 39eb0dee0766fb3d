//! The members of an archive in writing order.

use rustc_hash::FxHashSet;

use super::duplicates::DuplicateNames;
use crate::sort::{SortKey, sort};
use crate::tree::{EntryId, FileKind, Tree};

/// A name of the tree and its part at one position of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedMember {
    pub id: EntryId,
    pub part: Pass,
}

/// Which part of a name is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// The whole name; it has no other member.
    Only,
    /// The directory before its contents, so that extraction can create the files in it.
    First,
    /// The directory after its contents, so that extraction sets its times last.
    Final,
}

/// The members of a tree in writing order.
#[derive(Debug)]
pub(super) struct MemberPlan {
    pub items: Vec<PlannedMember>,
    /// Files that are left out because a later root has a file with the same member name.
    pub replaced: u64,
}

/// Returns the members of a tree in writing order.
///
/// In disk order, the files of a directory are scattered over the archive. GNU tar sets mode and
/// times of a directory as soon as a member outside of the directory follows. A later file in the
/// directory changes the time again, or is refused because of the mode. Therefore each directory
/// with contents has two members: one at the start of the archive, from the top down, and one at
/// the end, from the bottom up.
pub(super) fn plan(tree: &Tree, by: SortKey, is_list: bool, absolute: bool) -> MemberPlan {
    let duplicates = DuplicateNames::of(tree, absolute);
    let nested = matches!(by, SortKey::Name | SortKey::Readdir);
    let mut holds = vec![is_list; if nested { 0 } else { tree.len() }];
    if !nested {
        for id in tree.ids().filter(|id| !duplicates.is_left_out(*id)) {
            if let Some(parent) = tree.parent(id) {
                holds[duplicates.standing_for(parent).index()] = true;
            }
            holds[id.index()] |= duplicates.is_above(id);
        }
    }
    let is_twice = |id: EntryId| holds.get(id.index()) == Some(&true) && tree.entry(id).kind == FileKind::Directory;
    let mut items = Vec::with_capacity(tree.len());
    // A directory that replaces others is written at the position of the first one, before its
    // contents; in nested orders each time.
    let mut put = FxHashSet::default();
    for id in sort(tree, by) {
        let stands = duplicates.standing_for(id);
        if duplicates.is_left_out(id) || (!nested && duplicates.stands(stands) && !put.insert(stands)) {
            continue;
        }
        items.push(PlannedMember { id: stands, part: if is_twice(stands) { Pass::First } else { Pass::Only } });
    }
    for at in (0..items.len()).rev().filter(|_| !nested) {
        let PlannedMember { id, part } = items[at];
        if part == Pass::First {
            items.push(PlannedMember { id, part: Pass::Final });
        }
    }
    MemberPlan { items, replaced: duplicates.replaced }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::tree::Placement;

    #[test]
    fn directories_with_contents_are_at_both_ends() {
        let mut tree = Tree::new();
        let top = tree.add(None, OsStr::new("t"), FileKind::Directory, 2, 1).unwrap();
        let far = tree.add(Some(top), OsStr::new("far"), FileKind::File, 9, 1).unwrap();
        let near = tree.add(Some(top), OsStr::new("near"), FileKind::File, 10, 1).unwrap();
        let empty = tree.add(Some(top), OsStr::new("empty"), FileKind::Directory, 3, 1).unwrap();
        tree.set_placement(far, Placement::Offset(8192));
        tree.set_placement(near, Placement::Offset(4096));
        let item = |id, part| PlannedMember { id, part };
        let by_block = plan(&tree, SortKey::Block, false, false).items;
        assert_eq!(by_block.first(), Some(&item(top, Pass::First)));
        assert_eq!(by_block.last(), Some(&item(top, Pass::Final)));
        let at = |wanted| by_block.iter().position(|item| item.id == wanted).unwrap();
        assert!(at(empty) < at(near) && at(near) < at(far));
        assert_eq!(by_block.len(), 5);
        assert!(plan(&tree, SortKey::Name, false, false).items.iter().all(|item| item.part == Pass::Only));
    }
    #[test]
    fn the_last_root_wins_for_any_placement_on_the_disk() {
        let mut tree = Tree::new();
        let mut put = |parent, name: &str, kind, inode, at| {
            let id = tree.add(parent, OsStr::new(name), kind, inode, 1).unwrap();
            tree.set_placement(id, Placement::Offset(at));
            id
        };
        let base = put(None, ".", FileKind::Directory, 2, 0);
        let base_d = put(Some(base), "d", FileKind::Directory, 3, 0);
        let below = put(Some(base_d), "below", FileKind::File, 4, 4096);
        let replaced = put(Some(base), "f", FileKind::File, 5, 8192);
        let over = put(None, ".", FileKind::Directory, 6, 0);
        let over_d = put(Some(over), "d", FileKind::Directory, 7, 0);
        let file = put(Some(over), "f", FileKind::File, 8, 0);
        for by in [SortKey::Block, SortKey::Name] {
            let MemberPlan { items, replaced: count } = plan(&tree, by, false, false);
            assert_eq!(count, 1);
            assert!(items.iter().all(|item| ![base, base_d, replaced].contains(&item.id)), "{items:?}");
            assert!([over, over_d, file, below].iter().all(|id| items.iter().any(|item| item.id == *id)), "{items:?}");
        }
        let items = plan(&tree, SortKey::Block, false, false).items;
        let directories = [(over, Pass::First), (over_d, Pass::First)].map(|(id, part)| PlannedMember { id, part });
        assert_eq!(items[..2], directories);
        let directories = [(over_d, Pass::Final), (over, Pass::Final)].map(|(id, part)| PlannedMember { id, part });
        assert_eq!(items[4..], directories);
    }
}
