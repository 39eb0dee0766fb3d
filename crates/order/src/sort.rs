//! The orders that names can be put into.

use crate::tree::{Entry, Id, Kind, Place, Tree};

/// What names are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum By {
    /// Where their data begin, as far as the file systems tell; the rest by the number of their inode.
    #[default]
    Auto,
    /// The same: for callers that want to hear of a file system that does not tell.
    Block,
    /// The number of their inode.
    Inode,
    /// Their paths, part by part and byte by byte: what is in a directory comes right after it.
    Name,
    /// As the directories have them, what is in a directory right after it: the order in which most programs read a tree.
    None,
}

/// All names of a tree in an order.
///
/// By block and by inode directories come first, each before what is in it, so that whoever writes them elsewhere has a place for what follows. Then,
/// by block: what needs no data read (links, devices, empty files, data within the inode), by inode number; files whose place is not known, by inode
/// number; files by the place of their data. What lies on one file system comes together, in the order in which the file systems were met. Names
/// of the same file stand together; what is equal otherwise is in the order of paths, so that the same tree gives the same order always.
pub fn order(tree: &Tree, by: By) -> Vec<Id> {
    let ids = || tree.ids();
    match by {
        By::Auto | By::Block => sorted(tree, ids(), |entry| match entry.place {
            Place::Nowhere => (0, entry.inode),
            Place::Unknown => (1, entry.inode),
            Place::At(at) => (2, at),
        }),
        By::Inode => sorted(tree, ids(), |entry| (0, entry.inode)),
        By::Name => nested(tree, true),
        By::None => nested(tree, false),
    }
}

/// Directories as they were found, then the rest by file system and key.
fn sorted(tree: &Tree, ids: impl Iterator<Item = Id>, key: impl Fn(&Entry) -> (u8, u64)) -> Vec<Id> {
    let mut order = Vec::new();
    let mut keyed: Vec<(u32, Id, u64)> = Vec::new();
    for id in ids {
        let entry = tree.entry(id);
        if entry.kind == Kind::Directory {
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

/// What is in a directory right after it.
fn nested(tree: &Tree, by_name: bool) -> Vec<Id> {
    let mut roots: Vec<Id> = tree.ids().filter(|id| tree.parent(*id).is_none()).collect();
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
    let mut waiting: Vec<Id> = roots.into_iter().rev().collect();
    while let Some(id) = waiting.pop() {
        order.push(id);
        let of = begins[id.index()] as usize..begins[id.index() + 1] as usize;
        waiting.extend(children[of].iter().rev());
    }
    order
}

/// What is in each directory: from `begins[id]` to `begins[id + 1]` among all that are in one.
fn children(tree: &Tree) -> (Vec<u32>, Vec<Id>) {
    let mut begins = vec![0u32; tree.len() + 2];
    let within = || tree.ids().filter_map(|id| Some((tree.parent(id)?.index(), id)));
    for (parent, _) in within() {
        begins[parent + 2] += 1;
    }
    for index in 2..begins.len() {
        begins[index] += begins[index - 1];
    }
    let mut children = vec![Id::FIRST; begins.last().copied().unwrap_or(0) as usize];
    for (parent, id) in within() {
        let next = &mut begins[parent + 1];
        children[*next as usize] = id;
        *next += 1;
    }
    begins.pop();
    (begins, children)
}

fn path(tree: &Tree, id: Id) -> Vec<u8> {
    let mut path = Vec::new();
    tree.path_into(id, &mut path);
    path
}

/// A path as it is compared: the end of a part comes before every letter.
fn parts(path: &[u8]) -> Vec<u8> {
    path.iter().map(|byte| if *byte == b'/' { 0 } else { *byte }).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    /// A tree of (path of directory or "", name, kind, inode, device, place); answers the paths in an order.
    fn ordered(entries: &[(&str, &str, Kind, u64, u64, Place)], by: By) -> Vec<String> {
        let mut tree = Tree::new();
        let mut known: Vec<(String, Id)> = Vec::new();
        for (directory, name, kind, inode, device, place) in entries {
            let parent = known.iter().find(|(path, _)| path == directory).map(|(_, id)| *id);
            let id = tree.add(parent, OsStr::new(name), *kind, *inode, *device).unwrap();
            tree.set_place(id, *place);
            let path = if directory.is_empty() { (*name).to_owned() } else { format!("{directory}/{name}") };
            known.push((path, id));
        }
        order(&tree, by).into_iter().map(|id| String::from_utf8(path(&tree, id)).unwrap()).collect()
    }

    use Kind::{Directory, File, Symlink};
    use Place::{At, Nowhere, Unknown};

    #[test]
    fn by_block_directories_lead_and_data_follow_from_front_to_back() {
        let entries = [
            ("", "top", Directory, 2, 1, Nowhere),
            ("top", "z", File, 10, 1, At(8192)),
            ("top", "y", File, 11, 1, At(4096)),
            ("top", "link", Symlink, 13, 1, Nowhere),
            ("top", "empty", File, 12, 1, Nowhere),
            ("top", "young", File, 9, 1, Unknown),
            ("top", "sub", Directory, 5, 1, Nowhere),
            ("top/sub", "x", File, 14, 1, At(0)),
        ];
        let expected = ["top", "top/sub", "top/empty", "top/link", "top/young", "top/sub/x", "top/y", "top/z"];
        assert_eq!(ordered(&entries, By::Auto), expected);
    }

    #[test]
    fn file_systems_stay_apart_in_the_order_in_which_they_were_met() {
        let entries = [("", "a", File, 10, 7, At(500)), ("", "b", File, 3, 2, At(100)), ("", "c", File, 4, 7, At(300))];
        assert_eq!(ordered(&entries, By::Block), ["c", "a", "b"]);
        assert_eq!(ordered(&entries, By::Inode), ["c", "a", "b"]);
    }

    #[test]
    fn names_of_one_file_stand_together_in_the_order_of_paths() {
        let entries = [
            ("", "d", Directory, 2, 1, Nowhere),
            ("d", "b", File, 9, 1, At(4096)),
            ("d", "other", File, 8, 1, At(4096)),
            ("d", "a", File, 9, 1, At(4096)),
        ];
        assert_eq!(ordered(&entries, By::Block), ["d", "d/other", "d/a", "d/b"]);
    }

    #[test]
    fn by_name_and_as_found_what_is_in_a_directory_comes_right_after_it() {
        let entries = [
            ("", "r", Directory, 2, 1, Nowhere),
            ("r", "b", Directory, 3, 1, Nowhere),
            ("r", "a", File, 9, 1, Unknown),
            ("r", "b-", File, 8, 1, Unknown),
            ("r/b", "z", File, 7, 1, Unknown),
            ("r/b", "y", File, 6, 1, Unknown),
        ];
        assert_eq!(ordered(&entries, By::Name), ["r", "r/a", "r/b", "r/b/y", "r/b/z", "r/b-"]);
        assert_eq!(ordered(&entries, By::None), ["r", "r/b", "r/b/z", "r/b/y", "r/a", "r/b-"]);
    }

    #[test]
    fn nothing_is_in_order() {
        for by in [By::Auto, By::Name, By::None] {
            assert!(order(&Tree::new(), by).is_empty());
        }
    }
}
