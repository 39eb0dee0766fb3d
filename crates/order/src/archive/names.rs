//! Member names: paths without the components that would lead out of the extraction directory.

use std::hash::Hasher;
use std::os::unix::ffi::OsStrExt;

use rustc_hash::FxHasher;

use crate::tree::{EntryId, Tree};

/// Computes member names for the entries of a tree.
#[derive(Debug)]
pub(super) struct MemberNames<'a> {
    tree: &'a Tree,
    /// True if member names are the unchanged paths.
    absolute: bool,
    /// The last root and the length of its removed prefix.
    root: Option<(EntryId, usize)>,
}

impl<'a> MemberNames<'a> {
    pub fn new(tree: &'a Tree, absolute: bool) -> MemberNames<'a> {
        MemberNames { tree, absolute, root: None }
    }

    /// Writes the path of an entry into `path` and returns the part of it that is the member name.
    /// The name of a directory has no final slash unless its path has one.
    pub fn of<'p>(&mut self, id: EntryId, path: &'p mut Vec<u8>) -> &'p [u8] {
        self.tree.path_into(id, path);
        if self.absolute {
            return path;
        }
        let root = std::iter::successors(Some(id), |id| self.tree.parent(*id)).last().unwrap_or(id);
        let left_out = match self.root {
            Some((known, left_out)) if known == root => left_out,
            _ => unsafe_prefix(self.tree.name(root).as_bytes()),
        };
        self.root = Some((root, left_out));
        // The prefix of an entry below `..` is one slash longer than that of `..` itself.
        let name = &path[left_out.min(path.len())..];
        let name = &name[name.iter().take_while(|byte| **byte == b'/').count()..];
        if name.is_empty() { b"." } else { name }
    }
}

/// Returns true if two names are extracted to the same path: `./a//b` equals `a/b`.
pub(super) fn same(one: &[u8], other: &[u8]) -> bool {
    one == other || (one.starts_with(b"/") == other.starts_with(b"/") && parts(one).eq(parts(other)))
}

/// Returns the components of a name, without `.` and empty ones.
pub(crate) fn parts(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    name.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."))
}

/// Returns the hashes of all ancestors of a name from the top down, then that of the name itself.
/// Equal names have equal hashes.
pub(super) fn hashes(name: &[u8]) -> impl Iterator<Item = u64> {
    let mut hasher = FxHasher::default();
    hasher.write_u8(u8::from(name.starts_with(b"/")));
    let top = hasher.finish();
    std::iter::once(top).chain(parts(name).map(move |part| {
        hasher.write(part);
        hasher.write_u8(b'/');
        hasher.finish()
    }))
}

/// Returns the length of the prefix that an archive removes from a path: leading slashes, and
/// everything up to the last `..`.
pub fn unsafe_prefix(path: &[u8]) -> usize {
    let mut ends = 0;
    let mut at = 0;
    for part in path.split_inclusive(|byte| *byte == b'/') {
        at += part.len();
        if part == b"../" || part == b".." {
            ends = at;
        }
    }
    ends + path[ends..].iter().take_while(|byte| **byte == b'/').count()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::tree::FileKind;

    fn kept(path: &str) -> &str {
        &path[unsafe_prefix(path.as_bytes())..]
    }

    #[test]
    fn no_member_name_leads_out_of_the_extraction_directory() {
        assert_eq!(kept("/etc/passwd"), "etc/passwd");
        assert_eq!(kept("//etc"), "etc");
        assert_eq!(kept("../../a"), "a");
        assert_eq!(kept("a/../b/c"), "b/c");
        assert_eq!(kept("a/.."), "");
        assert_eq!(kept("..//x"), "x");
        assert_eq!(kept("/../x"), "x");
    }

    #[test]
    fn a_member_name_below_a_parent_directory_does_not_begin_with_a_slash() {
        let mut tree = Tree::new();
        for (root, absolute, wanted) in [
            ("..", false, "q/f"),
            ("a/..", false, "q/f"),
            ("../", false, "q/f"),
            ("/", false, "q/f"),
            ("..", true, "../q/f"),
            ("/", true, "/q/f"),
        ] {
            let root = tree.add(None, OsStr::new(root), FileKind::Directory, 1, 1).unwrap();
            let directory = tree.add(Some(root), OsStr::new("q"), FileKind::Directory, 2, 1).unwrap();
            let file = tree.add(Some(directory), OsStr::new("f"), FileKind::File, 3, 1).unwrap();
            let mut path = Vec::new();
            assert_eq!(MemberNames::new(&tree, absolute).of(file, &mut path), wanted.as_bytes());
        }
    }

    #[test]
    fn names_are_the_same_if_they_are_extracted_to_the_same_path() {
        for (one, other) in [("a/b", "./a//b"), ("a", "a/"), (".", ""), ("/a", "//a/.")] {
            assert!(same(one.as_bytes(), other.as_bytes()), "{one} {other}");
            assert_eq!(hashes(one.as_bytes()).last(), hashes(other.as_bytes()).last(), "{one} {other}");
        }
        for (one, other) in [("a/b", "ab"), ("/a", "a"), ("a/../b", "b"), ("a", "a/b")] {
            assert!(!same(one.as_bytes(), other.as_bytes()), "{one} {other}");
            assert_ne!(hashes(one.as_bytes()).last(), hashes(other.as_bytes()).last(), "{one} {other}");
        }
    }

    #[test]
    fn a_harmless_path_is_kept() {
        for path in ["a/b", "./a", ".", "..a/b", "a../b", "a/...", "a//b"] {
            assert_eq!(kept(path), path);
        }
    }
}
