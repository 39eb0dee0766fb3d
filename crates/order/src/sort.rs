//! Sort orders for the names of a tree.

use crate::tree::{Entry, EntryId, FileKind, Placement, Tree};

/// The sort key of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SortKey {
    /// Disk offset of the first data block. Files without a known offset are sorted by inode
    /// number.
    #[default]
    Auto,
    /// Same order as `Auto`. For callers that treat a file system without extent information as an
    /// error.
    Block,
    /// Inode number.
    Inode,
    /// Path, compared component by component and byte by byte. A directory precedes its contents.
    Name,
    /// Directory order (`readdir`). A directory precedes its contents. Most programs read a tree in
    /// this order.
    Readdir,
}

impl SortKey {
    /// Returns true if the order depends on the [`Placement`] of files.
    pub fn needs_placement(self) -> bool {
        matches!(self, SortKey::Auto | SortKey::Block)
    }
}

/// Returns all entries of a tree in sorted order.
///
/// With [`SortKey::Block`] and [`SortKey::Inode`], directories come first and each directory
/// precedes its contents, so that a program that copies the list can create the directories first.
/// The other entries follow by file system, in the order of discovery. Within one file system,
/// [`SortKey::Block`] has three groups:
///
/// 1. entries without data on the disk (links, devices, empty files, inline data), by inode number;
/// 2. files with an unknown offset, by inode number;
/// 3. all other files by the disk offset of their data.
///
/// Hard links of one file are adjacent. Ties are sorted by path, so that equal trees give equal
/// lists.
pub fn sort(tree: &Tree, by: SortKey) -> Vec<EntryId> {
    let ids = || tree.ids();
    match by {
        SortKey::Auto | SortKey::Block => sorted(tree, ids(), |entry| match entry.placement {
            Placement::NoData => (0, entry.inode),
            Placement::Unknown => (1, entry.inode),
            Placement::Offset(at) => (2, at),
        }),
        SortKey::Inode => sorted(tree, ids(), |entry| (0, entry.inode)),
        SortKey::Name => nested(tree, true),
        SortKey::Readdir => nested(tree, false),
    }
}

/// Returns directories in discovery order, then all other entries by file system and key.
fn sorted(tree: &Tree, ids: impl Iterator<Item = EntryId>, key: impl Fn(&Entry) -> (u8, u64)) -> Vec<EntryId> {
    let mut order = Vec::new();
    let mut keyed: Vec<(u32, EntryId, u64)> = Vec::new();
    for id in ids {
        let entry = tree.entry(id);
        if entry.kind == FileKind::Directory {
            order.push(id);
            continue;
        }
        let (class, key) = key(&entry);
        keyed.push((u32::from(tree.device_index(id)) << 8 | u32::from(class), id, key));
    }
    keyed.sort_unstable_by_key(|(class, id, key)| (*class, *key, *id));
    order.reserve_exact(keyed.len());
    for equal in keyed.chunk_by(|a, b| (a.0, a.2) == (b.0, b.2)) {
        let begins = order.len();
        order.extend(equal.iter().map(|(_, id, _)| *id));
        if equal.len() > 1 {
            order[begins..].sort_by_cached_key(|id| (tree.entry(*id).inode, parts(&path(tree, *id))));
        }
    }
    order
}

/// Returns each directory immediately followed by its contents.
fn nested(tree: &Tree, by_name: bool) -> Vec<EntryId> {
    let mut roots: Vec<EntryId> = tree.ids().filter(|id| tree.parent(*id).is_none()).collect();
    if by_name {
        roots.sort_by_cached_key(|id| parts(&path(tree, *id)));
    }
    let (begins, mut children) = children(tree);
    if by_name {
        for pair in begins.windows(2) {
            children[pair[0] as usize..pair[1] as usize].sort_unstable_by_key(|id| tree.name(*id));
        }
    }
    let mut order = Vec::with_capacity(tree.len());
    let mut waiting: Vec<EntryId> = roots.into_iter().rev().collect();
    while let Some(id) = waiting.pop() {
        order.push(id);
        let of = begins[id.index()] as usize..begins[id.index() + 1] as usize;
        waiting.extend(children[of].iter().rev());
    }
    order
}

/// Groups entries by parent: the children of `id` are `children[begins[id]..begins[id + 1]]`.
fn children(tree: &Tree) -> (Vec<u32>, Vec<EntryId>) {
    let mut begins = vec![0u32; tree.len() + 2];
    let within = || tree.ids().filter_map(|id| Some((tree.parent(id)?.index(), id)));
    for (parent, _) in within() {
        begins[parent + 2] += 1;
    }
    for index in 2..begins.len() {
        begins[index] += begins[index - 1];
    }
    let mut children = vec![EntryId::FIRST; begins.last().copied().unwrap_or(0) as usize];
    for (parent, id) in within() {
        let next = &mut begins[parent + 1];
        children[*next as usize] = id;
        *next += 1;
    }
    begins.pop();
    (begins, children)
}

fn path(tree: &Tree, id: EntryId) -> Vec<u8> {
    let mut path = Vec::new();
    tree.path_into(id, &mut path);
    path
}

/// Returns a sort key for a path: the end of a component sorts before every letter.
fn parts(path: &[u8]) -> Vec<u8> {
    path.iter().map(|byte| if *byte == b'/' { 0 } else { *byte }).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    /// Builds a tree of (parent path or "", name, kind, inode, device, placement) and returns the
    /// sorted paths.
    fn ordered(entries: &[(&str, &str, FileKind, u64, u64, Placement)], by: SortKey) -> Vec<String> {
        let mut tree = Tree::new();
        let mut known: Vec<(String, EntryId)> = Vec::new();
        for (directory, name, kind, inode, device, place) in entries {
            let parent = known.iter().find(|(path, _)| path == directory).map(|(_, id)| *id);
            let id = tree.add(parent, OsStr::new(name), *kind, *inode, *device).unwrap();
            tree.set_placement(id, *place);
            let path = if directory.is_empty() { (*name).to_owned() } else { format!("{directory}/{name}") };
            known.push((path, id));
        }
        sort(&tree, by).into_iter().map(|id| String::from_utf8(path(&tree, id)).unwrap()).collect()
    }

    use FileKind::{Directory, File, Symlink};
    use Placement::{NoData, Offset, Unknown};

    #[test]
    fn by_block_directories_lead_and_data_follow_from_front_to_back() {
        let entries = [
            ("", "top", Directory, 2, 1, NoData),
            ("top", "z", File, 10, 1, Offset(8192)),
            ("top", "y", File, 11, 1, Offset(4096)),
            ("top", "link", Symlink, 13, 1, NoData),
            ("top", "empty", File, 12, 1, NoData),
            ("top", "young", File, 9, 1, Unknown),
            ("top", "sub", Directory, 5, 1, NoData),
            ("top/sub", "x", File, 14, 1, Offset(0)),
        ];
        let expected = ["top", "top/sub", "top/empty", "top/link", "top/young", "top/sub/x", "top/y", "top/z"];
        assert_eq!(ordered(&entries, SortKey::Auto), expected);
    }

    #[test]
    fn file_systems_stay_apart_in_the_order_in_which_they_were_met() {
        let entries = [
            ("", "a", File, 10, 7, Offset(500)),
            ("", "b", File, 3, 2, Offset(100)),
            ("", "c", File, 4, 7, Offset(300)),
        ];
        assert_eq!(ordered(&entries, SortKey::Block), ["c", "a", "b"]);
        assert_eq!(ordered(&entries, SortKey::Inode), ["c", "a", "b"]);
    }

    #[test]
    fn names_of_one_file_stand_together_in_the_order_of_paths() {
        let entries = [
            ("", "d", Directory, 2, 1, NoData),
            ("d", "b", File, 9, 1, Offset(4096)),
            ("d", "other", File, 8, 1, Offset(4096)),
            ("d", "a", File, 9, 1, Offset(4096)),
        ];
        assert_eq!(ordered(&entries, SortKey::Block), ["d", "d/other", "d/a", "d/b"]);
    }

    #[test]
    fn by_name_and_by_readdir_a_directory_precedes_its_contents() {
        let entries = [
            ("", "r", Directory, 2, 1, NoData),
            ("r", "b", Directory, 3, 1, NoData),
            ("r", "a", File, 9, 1, Unknown),
            ("r", "b-", File, 8, 1, Unknown),
            ("r/b", "z", File, 7, 1, Unknown),
            ("r/b", "y", File, 6, 1, Unknown),
        ];
        assert_eq!(ordered(&entries, SortKey::Name), ["r", "r/a", "r/b", "r/b/y", "r/b/z", "r/b-"]);
        assert_eq!(ordered(&entries, SortKey::Readdir), ["r", "r/b", "r/b/z", "r/b/y", "r/a", "r/b-"]);
    }

    #[test]
    fn nothing_is_in_order() {
        for by in [SortKey::Auto, SortKey::Name, SortKey::Readdir] {
            assert!(sort(&Tree::new(), by).is_empty());
        }
    }
}
