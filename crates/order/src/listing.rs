//! The answer of `hoistway order`: one serialisable record per name, in sorted order.

use std::borrow::Cow;
use std::path::PathBuf;

use rustix::fs::{major, minor};
use serde::Serialize;

use crate::error::PathError;
use crate::locate::{self, LocateSummary};
use crate::sort::{SortKey, sort};
use crate::tree::{EntryId, FileKind, FollowLinks, Placement, Tree, TreeFull};
use crate::walk;

/// Options of [`list`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ListOptions {
    /// The sort order.
    pub sort: SortKey,
    /// Which symbolic links are followed.
    pub follow: FollowLinks,
    /// List directories on other file systems, but do not enter them.
    pub one_file_system: bool,
    /// Write dirty data first, so that they have a disk offset.
    pub sync: bool,
    /// Number of threads that look up extents; 0 for one per processor and at most 4.
    pub threads: usize,
}

/// A sorted list of names.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The names.
    pub tree: Tree,
    /// The names in sorted order.
    pub order: Vec<EntryId>,
    /// Paths that could not be read or located.
    pub errors: Vec<PathError>,
    /// Counters of the extent lookup.
    pub located: LocateSummary,
}

/// Lists all names below `roots` in sorted order. Errors of single paths are part of the result.
///
/// For long lists with progress reports or memory limits, call [`walk::Walk`],
/// [`locate::locate`] and [`sort`] directly.
///
/// # Errors
/// [`TreeFull`] if there are too many names for one tree.
pub fn list(roots: &[PathBuf], options: &ListOptions) -> Result<Listing, TreeFull> {
    let (mut tree, mut errors) = (Tree::new(), Vec::new());
    let walking =
        walk::Options { one_file_system: options.one_file_system, follow: options.follow, ..walk::Options::default() };
    walk::walk(roots, &walking, &mut tree, &mut |error| errors.push(error))?;
    let mut located = LocateSummary::default();
    if options.sort.needs_placement() {
        let ids: Vec<EntryId> = tree.ids().collect();
        let locating = locate::Options { threads: options.threads, sync: options.sync, ..locate::Options::default() };
        located = locate::locate(&mut tree, &ids, &locating, &mut |error| errors.push(error));
    }
    let order = sort(&tree, options.sort);
    Ok(Listing { tree, order, errors, located })
}

impl Listing {
    /// Returns the records of all names in sorted order.
    pub fn records(&self) -> impl Iterator<Item = FileRecord<'static>> + '_ {
        self.order.iter().map(|id| {
            let mut path = Vec::new();
            self.tree.path_into(*id, &mut path);
            FileRecord::new(&self.tree, *id, &path).into_owned()
        })
    }
}

/// One name of a list: a line of `hoistway order --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileRecord<'a> {
    /// The path; bytes that are not UTF-8 are U+FFFD.
    pub path: Cow<'a, str>,
    /// All bytes of the path in hexadecimal digits, if the path is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_hex: Option<String>,
    /// The file type: "file", "directory", "symlink", "block-device", "character-device", "pipe"
    /// or "socket".
    pub kind: &'static str,
    /// The inode number.
    pub inode: u64,
    /// Major and minor device number of the file system, as in "8:1".
    pub device: String,
    /// "disk", "none" (no data on the disk) or "unknown".
    pub place: &'static str,
    /// Offset of the first data byte on the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

impl<'a> FileRecord<'a> {
    /// Creates the record of an entry. `path` is the path of the entry, see [`Tree::path_into`].
    ///
    /// # Panics
    /// If `id` belongs to another tree.
    pub fn new(tree: &Tree, id: EntryId, path: &'a [u8]) -> FileRecord<'a> {
        let entry = tree.entry(id);
        let text = String::from_utf8_lossy(path);
        let is_utf8 = matches!(text, Cow::Borrowed(_));
        let hex = || path.iter().map(|byte| format!("{byte:02x}")).collect();
        let (place, at) = match entry.placement {
            Placement::Offset(at) => ("disk", Some(at)),
            Placement::NoData => ("none", None),
            Placement::Unknown => ("unknown", None),
        };
        FileRecord {
            path: text,
            path_hex: (!is_utf8).then(hex),
            kind: kind_text(entry.kind),
            inode: entry.inode,
            device: device_text(entry.device),
            place,
            at,
        }
    }

    fn into_owned(self) -> FileRecord<'static> {
        FileRecord { path: Cow::Owned(self.path.into_owned()), ..self }
    }
}

/// Formats a device number as "major:minor".
pub fn device_text(device: u64) -> String {
    format!("{}:{}", major(device), minor(device))
}

fn kind_text(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symlink",
        FileKind::BlockDevice => "block-device",
        FileKind::CharacterDevice => "character-device",
        FileKind::Fifo => "pipe",
        FileKind::Socket => "socket",
    }
}
