//! What other programs extract from an archive is the tree that it was made of; and what becomes of files that change meanwhile.

mod faults;
mod file_systems;
mod listed;
mod tree;

use std::io::Write;
use std::path::Path;

use hoistway_order::archive::{self, ArchiveEvent, ArchiveSummary, Options};
use hoistway_order::{FileKind, PathError, SortKey, Tree, locate, walk};

/// An archive of what lies in a folder, under the name `t`, and what was told meanwhile.
pub fn archive_of(folder: &Path, options: &Options<'_>) -> (Vec<u8>, Vec<ArchiveEvent>) {
    let mut out = Vec::new();
    let (_, told) = archive_into(folder, options, &mut out);
    (out, told)
}

/// The same into a writer.
pub fn archive_into(folder: &Path, options: &Options<'_>, out: &mut dyn Write) -> (ArchiveSummary, Vec<ArchiveEvent>) {
    let tree = walked(folder, options);
    let mut told = Vec::new();
    let written = archive::write(&tree, options, out, &mut |what| told.push(what)).expect("it can be written");
    (written, told)
}

/// The tree of a folder, each path beginning with `t` as seen from the folder above.
pub fn walked(folder: &Path, options: &Options<'_>) -> Tree {
    let base = std::fs::File::open(folder).expect("the folder is there");
    let walking =
        walk::Options { follow: options.follow, base: Some(std::sync::Arc::new(base.into())), ..Default::default() };
    let mut tree = Tree::new();
    let mut problem = |problem: PathError| panic!("{problem}");
    walk::walk(&["t".into()], &walking, &mut tree, &mut problem).expect("a small tree");
    if matches!(options.by, SortKey::Auto | SortKey::Block) {
        let files: Vec<_> = tree.ids().filter(|id| tree.entry(*id).kind == FileKind::File).collect();
        locate::locate(&mut tree, &files, &locate::Options { sync: true, ..Default::default() }, &mut |_| {});
    }
    tree
}

/// Whether a test can be run here; why not is said aloud.
pub fn is_possible(what: &str, it_is: bool) -> bool {
    if !it_is {
        eprintln!("SKIPPED: {what}");
    }
    it_is
}

/// Whether we may do everything.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a program is installed.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .chain([Path::new("/usr/sbin").to_owned()])
        .any(|folder| folder.join(program).is_file());
    is_possible(&format!("{program} is not installed"), found)
}
