//! Archives: round trips through other programs, and files that change during the run.

mod faults;
mod file_systems;
mod listed;
mod tree;

use std::io::Write;
use std::path::Path;

use hoistway_order::archive::{self, ArchiveEvent, ArchiveSummary, Options};
use hoistway_order::{FileKind, PathError, SortKey, Tree, locate, walk};

/// Archives a directory under the name `t`. Returns the archive and all events.
pub fn archive_of(folder: &Path, options: &Options<'_>) -> (Vec<u8>, Vec<ArchiveEvent>) {
    let mut out = Vec::new();
    let (_, events) = archive_into(folder, options, &mut out);
    (out, events)
}

/// Archives a directory into a writer.
pub fn archive_into(folder: &Path, options: &Options<'_>, out: &mut dyn Write) -> (ArchiveSummary, Vec<ArchiveEvent>) {
    let tree = walked(folder, options);
    let mut events = Vec::new();
    let summary = archive::write(&tree, options, out, &mut |event| events.push(event)).expect("it can be written");
    (summary, events)
}

/// Walks a directory; each path begins with `t`.
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

/// Prints why a test cannot run.
pub fn is_possible(reason: &str, possible: bool) -> bool {
    if !possible {
        eprintln!("SKIPPED: {reason}");
    }
    possible
}

/// Returns true if the test runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns true if a program is installed.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .chain([Path::new("/usr/sbin").to_owned()])
        .any(|folder| folder.join(program).is_file());
    is_possible(&format!("{program} is not installed"), found)
}
