//! What was asked for itself, so that it is found once.

use std::os::fd::BorrowedFd;

use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::Stat;

use super::Once;
use crate::reach;
use crate::tree::Kind;

/// The file system and number of an inode.
type Identity = (u64, u64);

/// What was asked for.
#[derive(Default)]
pub struct Roots {
    directories: FxHashSet<Identity>,
    /// Names of what is no directory, by the directory that they lie in: a file's own number would leave out its other names.
    others: FxHashMap<Identity, Vec<Vec<u8>>>,
    /// The paths, in their plain form, where these decide.
    paths: Option<Paths>,
}

#[derive(Default)]
struct Paths {
    plain: FxHashSet<Vec<u8>>,
    /// Whether one of them lies in another: a walk looks for them only then.
    are_nested: bool,
}

impl Roots {
    /// What is asked for is the same if this is.
    pub fn new(once: Once) -> Roots {
        Roots { paths: (once == Once::Path).then(Paths::default), ..Roots::default() }
    }

    /// Takes a path that was asked for, and answers whether it is the first time.
    pub fn is_new(&mut self, base: Option<BorrowedFd<'_>>, path: &[u8], kind: Kind, stat: &Stat) -> bool {
        if let Some(paths) = &mut self.paths {
            return paths.plain.insert(plain(path));
        }
        if kind == Kind::Directory {
            return self.directories.insert((stat.st_dev, stat.st_ino));
        }
        let slash = path.iter().rposition(|byte| *byte == b'/');
        let (directory, name): (&[u8], &[u8]) = match slash {
            None => (b".", path),
            Some(0) => (b"/", &path[1..]),
            Some(slash) => (&path[..slash], &path[slash + 1..]),
        };
        let Some(directory) = reach::identity(base, directory) else { return true };
        let names = self.others.entry(directory).or_default();
        let is_new = !names.iter().any(|known| known == name);
        if is_new {
            names.push(name.to_vec());
        }
        is_new
    }

    /// Whether what a walk found was asked for itself.
    pub fn has(&self, directory: Identity, name: &[u8], kind: Kind, found: Identity) -> bool {
        if kind == Kind::Directory {
            // A single root that is found again lies within itself, which the walk tells.
            return self.directories.len() > 1 && self.directories.contains(&found);
        }
        !self.others.is_empty()
            && self.others.get(&directory).is_some_and(|names| names.iter().any(|known| known == name))
    }

    /// All that was asked for is there.
    pub fn are_all(&mut self) {
        if let Some(Paths { plain, are_nested }) = &mut self.paths {
            *are_nested = plain.len() > 1 && plain.iter().any(|path| above(path).any(|above| plain.contains(above)));
        }
    }

    /// Whether a path that a walk found may have been asked for itself, and paths decide that.
    pub fn may_have_paths(&self) -> bool {
        self.paths.as_ref().is_some_and(|paths| paths.are_nested)
    }

    /// Whether a path was asked for itself.
    pub fn has_path(&self, path: &[u8]) -> bool {
        self.paths.as_ref().is_some_and(|paths| paths.plain.contains(&plain(path)))
    }
}

/// The directories above a path that is plain, as far as the path tells.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let top = if path.starts_with(b"/") { 1 } else { 0 };
    let slashes = path.iter().enumerate().skip(top).filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    std::iter::once(top).chain(slashes).filter(|ends| *ends < path.len()).map(|ends| &path[..ends])
}

/// A path without `.` and empty parts: what is left leads to the same, links or not.
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
