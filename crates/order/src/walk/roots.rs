//! What was asked for itself, so that it is found once.

use std::os::fd::BorrowedFd;

use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::Stat;

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
}

impl Roots {
    /// Takes a path that was asked for, and answers whether it is the first time.
    pub fn is_new(&mut self, base: Option<BorrowedFd<'_>>, path: &[u8], kind: Kind, stat: &Stat) -> bool {
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
}
