//! Paths that somebody else found.

use std::ffi::OsStr;
use std::hash::{BuildHasher, Hasher};
use std::os::unix::ffi::OsStrExt;

use rustc_hash::{FxBuildHasher, FxHashMap};
use rustix::fs::FileType;

use super::{Options, fits, kind_of};
use crate::problem::{Doing, Problem};
use crate::reach;
use crate::tree::{Follow, Id, Tree, TreeFull};

/// What a list held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Paths that stand in it more than once, each time but the first: they are left out.
    pub twice: u64,
}

/// Adds paths from a list to `tree`, each as it is: what lies in a directory of the list has to be in the list itself. Paths that are not
/// there, or that nobody may look at, are told to `problem`. A path that stands in the list twice - the same bytes - is added once.
///
/// # Errors
/// [`TreeFull`] if there are more names than a tree takes.
pub fn list(
    paths: &mut dyn Iterator<Item = Vec<u8>>,
    options: &Options<'_>,
    tree: &mut Tree,
    problem: &mut dyn FnMut(Problem),
) -> Result<Listed, TreeFull> {
    tree.reach(options.base.clone(), options.follow);
    let mut listed = Listed::default();
    let mut known = Known::default();
    for path in paths {
        if known.has(&path, tree) {
            listed.twice += 1;
            continue;
        }
        let base = options.base.as_ref().map(std::os::fd::AsFd::as_fd);
        let looked = reach::stat(base, &path, options.follow != Follow::Never);
        match looked.and_then(|stat| fits(&path).map(|()| stat)) {
            Ok(stat) => {
                let kind = kind_of(FileType::from_raw_mode(stat.st_mode));
                if options.keep.is_none_or(|keep| keep(&path, kind)) {
                    let id = tree.add(None, OsStr::from_bytes(&path), kind, stat.st_ino, stat.st_dev)?;
                    known.add(&path, id);
                }
            }
            Err(errno) => problem(Problem::failed(path, None, Doing::Look, errno)),
        }
        if let Some(progress) = options.progress {
            progress(tree.len());
        }
    }
    Ok(listed)
}

/// The paths that were added, by their hashes; those whose hashes are the same stand one behind the other.
#[derive(Default)]
struct Known {
    by_hash: FxHashMap<u64, Id>,
}

impl Known {
    fn has(&self, path: &[u8], tree: &Tree) -> bool {
        let mut hash = hash(path);
        while let Some(id) = self.by_hash.get(&hash) {
            if tree.name(*id).as_bytes() == path {
                return true;
            }
            hash = hash.wrapping_add(1);
        }
        false
    }

    fn add(&mut self, path: &[u8], id: Id) {
        let mut hash = hash(path);
        while self.by_hash.contains_key(&hash) {
            hash = hash.wrapping_add(1);
        }
        self.by_hash.insert(hash, id);
    }
}

fn hash(path: &[u8]) -> u64 {
    let mut hasher = FxBuildHasher.build_hasher();
    hasher.write(path);
    hasher.finish()
}
