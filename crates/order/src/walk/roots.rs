//! Duplicate detection for the roots of a walk.

use std::os::fd::BorrowedFd;

use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::Stat;

use super::DedupBy;
use crate::open;
use crate::tree::FileKind;

/// Device and inode number.
type Identity = (u64, u64);

/// The roots of a walk.
#[derive(Default)]
pub struct Roots {
    directories: FxHashSet<Identity>,
    /// Names of other roots by the identity of their parent. The identity of the file itself would
    /// also match its hard links.
    others: FxHashMap<Identity, Vec<Vec<u8>>>,
    /// The normalised paths, if duplicates are identified by path.
    paths: Option<Paths>,
}

#[derive(Default)]
struct Paths {
    plain: FxHashSet<Vec<u8>>,
    /// True if one root is below another. Only then does the walk compare paths.
    are_nested: bool,
}

impl Roots {
    /// Creates an empty set with the given notion of a duplicate.
    pub fn new(once: DedupBy) -> Roots {
        Roots { paths: (once == DedupBy::Path).then(Paths::default), ..Roots::default() }
    }

    /// Adds a root. Returns true if it is new.
    pub fn is_new(&mut self, base: Option<BorrowedFd<'_>>, path: &[u8], kind: FileKind, stat: &Stat) -> bool {
        if let Some(paths) = &mut self.paths {
            return paths.plain.insert(plain(path));
        }
        if kind == FileKind::Directory {
            return self.directories.insert((stat.st_dev, stat.st_ino));
        }
        let slash = path.iter().rposition(|byte| *byte == b'/');
        let (directory, name): (&[u8], &[u8]) = match slash {
            None => (b".", path),
            Some(0) => (b"/", &path[1..]),
            Some(slash) => (&path[..slash], &path[slash + 1..]),
        };
        let Some(directory) = open::identity(base, directory) else { return true };
        let names = self.others.entry(directory).or_default();
        let is_new = !names.iter().any(|known| known == name);
        if is_new {
            names.push(name.to_vec());
        }
        is_new
    }

    /// Returns true if a name that the walk found is also a root.
    pub fn has(&self, directory: Identity, name: &[u8], kind: FileKind, found: Identity) -> bool {
        if kind == FileKind::Directory {
            // A single root that is found again contains itself; the walk reports that.
            return self.directories.len() > 1 && self.directories.contains(&found);
        }
        !self.others.is_empty()
            && self.others.get(&directory).is_some_and(|names| names.iter().any(|known| known == name))
    }

    /// Completes the set: all roots were added.
    pub fn complete(&mut self) {
        if let Some(Paths { plain, are_nested }) = &mut self.paths {
            *are_nested = plain.len() > 1 && plain.iter().any(|path| above(path).any(|above| plain.contains(above)));
        }
    }

    /// Returns true if a path below a root may be another root, compared by path.
    pub fn may_have_paths(&self) -> bool {
        self.paths.as_ref().is_some_and(|paths| paths.are_nested)
    }

    /// Returns true if a path is a root.
    pub fn has_path(&self, path: &[u8]) -> bool {
        self.paths.as_ref().is_some_and(|paths| paths.plain.contains(&plain(path)))
    }
}

/// Returns the ancestors of a normalised path, as far as the path names them.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let top = if path.starts_with(b"/") { 1 } else { 0 };
    let slashes = path.iter().enumerate().skip(top).filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    std::iter::once(top).chain(slashes).filter(|ends| *ends < path.len()).map(|ends| &path[..ends])
}

/// Removes `.` and empty components from a path. The result leads to the same file, even through
/// links.
fn plain(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    if path.starts_with(b"/") {
        plain.push(b'/');
    }
    for part in path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")) {
        if !matches!(plain.last(), None | Some(b'/')) {
            plain.push(b'/');
        }
        plain.extend_from_slice(part);
    }
    plain
}
