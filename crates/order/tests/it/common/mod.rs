//! Temporary directories and walks over them.
#![allow(dead_code)]

pub mod image;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hoistway_order::walk::{self, Options};
use hoistway_order::{PathError, Tree};
use tempfile::TempDir;

/// A directory that is removed at the end of the test.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn root(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file and creates its parent directories.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
        fs::write(path, contents).expect("the file can be written");
    }
}

/// The result of a walk.
pub struct Walked {
    pub tree: Tree,
    pub problems: Vec<PathError>,
}

pub fn walked(roots: &[PathBuf], options: &Options<'_>) -> Walked {
    let (mut tree, mut problems) = (Tree::new(), Vec::new());
    walk::walk(roots, options, &mut tree, &mut |problem| problems.push(problem)).expect("there is room");
    Walked { tree, problems }
}

/// Returns all paths of a tree in discovery order.
pub fn paths(tree: &Tree) -> Vec<PathBuf> {
    let of = |id| {
        let mut path = Vec::new();
        tree.path_into(id, &mut path);
        PathBuf::from(OsStr::from_bytes(&path))
    };
    tree.ids().map(of).collect()
}

/// Returns a directory and all paths below it as the standard library finds them, sorted.
pub fn found(directory: &Path) -> Vec<PathBuf> {
    let mut all = vec![directory.to_owned()];
    let mut next = 0;
    while let Some(path) = all.get(next).cloned() {
        if fs::symlink_metadata(&path).expect("it is there").is_dir() {
            all.extend(fs::read_dir(&path).expect("it can be read").map(|entry| entry.expect("an entry").path()));
        }
        next += 1;
    }
    all.sort();
    all
}
