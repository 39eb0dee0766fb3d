//! Adds a given list of paths to a tree.

use std::ffi::OsStr;
use std::hash::{BuildHasher, Hasher};
use std::os::unix::ffi::OsStrExt;

use rustc_hash::{FxBuildHasher, FxHashMap};
use rustix::fs::FileType;

use super::{Options, fits, kind_of};
use crate::error::{Operation, PathError};
use crate::open;
use crate::tree::{EntryId, FollowLinks, Tree, TreeFull};

/// Counters of one list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListSummary {
    /// Repeated paths, which were left out.
    pub duplicates: u64,
}

/// Adds the given paths to `tree` without entering directories. Paths that cannot be read are
/// passed to `on_error`. A path that occurs duplicates, byte by byte, is added once.
///
/// # Errors
/// [`TreeFull`] if the tree cannot store another name.
pub fn list(
    paths: &mut dyn Iterator<Item = Vec<u8>>,
    options: &Options<'_>,
    tree: &mut Tree,
    on_error: &mut dyn FnMut(PathError),
) -> Result<ListSummary, TreeFull> {
    tree.set_base(options.base.clone(), options.follow);
    let mut listed = ListSummary::default();
    let mut known = PathIndex::default();
    for path in paths {
        if known.has(&path, tree) {
            listed.duplicates += 1;
            continue;
        }
        let base = options.base.as_ref().map(std::os::fd::AsFd::as_fd);
        let found = open::stat(base, &path, options.follow != FollowLinks::Never);
        match found.and_then(|stat| fits(&path).map(|()| stat)) {
            Ok(stat) => {
                let kind = kind_of(FileType::from_raw_mode(stat.st_mode));
                if options.filter.is_none_or(|filter| filter(&path, kind)) {
                    let id = tree.add(None, OsStr::from_bytes(&path), kind, stat.st_ino, stat.st_dev)?;
                    known.add(&path, id);
                }
            }
            Err(errno) => on_error(PathError::failed(path, None, Operation::Stat, errno)),
        }
        if let Some(progress) = options.progress {
            progress(tree.len());
        }
    }
    Ok(listed)
}

/// Hash table of the added paths, with linear probing.
#[derive(Default)]
struct PathIndex {
    by_hash: FxHashMap<u64, EntryId>,
}

impl PathIndex {
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

    fn add(&mut self, path: &[u8], id: EntryId) {
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
