//! What a file is called in the archive: its path without what would lead out of the place where it is extracted.

use std::hash::Hasher;
use std::os::unix::ffi::OsStrExt;

use rustc_hash::FxHasher;

use crate::tree::{Id, Tree};

/// What names of a tree are called in the archive.
#[derive(Debug)]
pub(super) struct Names<'a> {
    tree: &'a Tree,
    /// Whether they are called what their paths are.
    absolute: bool,
    /// The path that was asked for last, and how much is left out at its front.
    root: Option<(Id, usize)>,
}

impl<'a> Names<'a> {
    pub fn new(tree: &'a Tree, absolute: bool) -> Names<'a> {
        Names { tree, absolute, root: None }
    }

    /// Puts a path on the disk into `path`, and answers the part of it that is the name in the archive; a directory's has no slash at its end unless the path
    /// has.
    pub fn of<'p>(&mut self, id: Id, path: &'p mut Vec<u8>) -> &'p [u8] {
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
        // What lies in `..` has a slash there that `..` itself has not.
        let name = &path[left_out.min(path.len())..];
        let name = &name[name.iter().take_while(|byte| **byte == b'/').count()..];
        if name.is_empty() { b"." } else { name }
    }
}

/// Whether two names are the same when they are extracted: `./a//b` is `a/b`.
pub(super) fn same(one: &[u8], other: &[u8]) -> bool {
    one == other || (one.starts_with(b"/") == other.starts_with(b"/") && parts(one).eq(parts(other)))
}

/// The parts of a name that matter.
pub(crate) fn parts(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    name.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."))
}

/// Hashes of a name and of all directories above it, from the top down; the last one is the name's own. Names that are the same have the same.
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

/// How many bytes at the front of a path an archive leaves out: slashes, and everything up to the last `..`.
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
    use crate::tree::Kind;

    fn kept(path: &str) -> &str {
        &path[unsafe_prefix(path.as_bytes())..]
    }

    #[test]
    fn nothing_leads_out_of_where_it_is_extracted() {
        assert_eq!(kept("/etc/passwd"), "etc/passwd");
        assert_eq!(kept("//etc"), "etc");
        assert_eq!(kept("../../a"), "a");
        assert_eq!(kept("a/../b/c"), "b/c");
        assert_eq!(kept("a/.."), "");
        assert_eq!(kept("..//x"), "x");
        assert_eq!(kept("/../x"), "x");
    }

    #[test]
    fn what_lies_in_a_directory_above_does_not_begin_with_a_slash() {
        let mut tree = Tree::new();
        for (root, absolute, wanted) in [
            ("..", false, "q/f"),
            ("a/..", false, "q/f"),
            ("../", false, "q/f"),
            ("/", false, "q/f"),
            ("..", true, "../q/f"),
            ("/", true, "/q/f"),
        ] {
            let root = tree.add(None, OsStr::new(root), Kind::Directory, 1, 1).unwrap();
            let directory = tree.add(Some(root), OsStr::new("q"), Kind::Directory, 2, 1).unwrap();
            let file = tree.add(Some(directory), OsStr::new("f"), Kind::File, 3, 1).unwrap();
            let mut path = Vec::new();
            assert_eq!(Names::new(&tree, absolute).of(file, &mut path), wanted.as_bytes());
        }
    }

    #[test]
    fn names_are_the_same_if_they_are_extracted_to_the_same_place() {
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
    fn what_is_harmless_is_kept() {
        for path in ["a/b", "./a", ".", "..a/b", "a../b", "a/...", "a//b"] {
            assert_eq!(kept(path), path);
        }
    }
}
