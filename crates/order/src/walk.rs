//! Finds all names below the given paths.
//!
//! File systems of the ext family store inodes by number. Directories that are read in the order of
//! their inode numbers are read in one sweep of the disk arm. A directory that is discovered ahead
//! of the sweep joins it; a directory behind it waits for the next sweep. Inode number and type of
//! an entry come from its directory (`d_ino`, `d_type`). An inode is read only if the directory
//! does not have the type, or if something is mounted in the directory.

mod list;
mod roots;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, RawDirEntry, Stat, fstat, openat, statat};
use rustix::io::Errno;

pub use list::{ListSummary, list};
use roots::Roots;

use crate::error::{self, Operation, PathError, WalkError};
use crate::mounts;
use crate::open;
use crate::tree::{EntryId, FileKind, FollowLinks, Tree, TreeFull};

/// Size of the directory buffer in bytes: about 800 names of 40 letters.
const BUFFER_BYTES: usize = 64 << 10;
/// Number of entries per file system whose `d_ino` is compared with `stat` before `d_ino` is
/// trusted.
const VERIFIED_MIN: u32 = 3;

/// Decides from path and file type whether a name is kept.
pub type Filter<'a> = &'a dyn Fn(&[u8], FileKind) -> bool;

/// Options of a walk.
#[derive(Clone, Default)]
pub struct Options<'a> {
    /// List directories on other file systems, but do not enter them.
    pub one_file_system: bool,
    /// Which symbolic links are followed.
    pub follow: FollowLinks,
    /// What counts as a duplicate of a root.
    pub once: DedupBy,
    /// Directory in which relative paths start; `None` for the working directory.
    pub base: Option<Arc<OwnedFd>>,
    /// Names for which the filter returns false are left out; directories with all their contents.
    pub filter: Option<Filter<'a>>,
    /// Called now and then with the number of names.
    pub progress: Option<&'a dyn Fn(usize)>,
}

/// What counts as the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DedupBy {
    /// The same directory, or the same name in the same directory, by any path.
    #[default]
    File,
    /// The same path except for `.` and repeated slashes. For callers that identify files by path.
    Path,
}

/// Adds all names below `roots` to `tree`: the roots and the contents of each directory in
/// directory order. A directory precedes its contents. Paths with errors are passed to `on_error`;
/// the walk continues.
///
/// A name that is reachable from several roots is added once, under the root that names it.
/// [`Options::once`] defines what counts as the same name.
///
/// # Errors
/// [`TreeFull`] if the tree cannot store another name.
pub fn walk(
    roots: &[PathBuf],
    options: &Options<'_>,
    tree: &mut Tree,
    on_error: &mut dyn FnMut(PathError),
) -> Result<(), TreeFull> {
    let mut walk = Walk::new(roots, options, tree, on_error)?;
    while walk.read_batch(usize::MAX, tree, on_error)? {}
    Ok(())
}

/// A walk that adds names in several calls.
pub struct Walk<'a> {
    options: &'a Options<'a>,
    /// Directories to read, by file system in the order of discovery and by inode number.
    pending: BTreeMap<u16, BTreeSet<(u64, EntryId)>>,
    /// File system and inode number of the current position of the sweep.
    swept: (u16, u64),
    reading: Option<Reading>,
    roots: Roots,
    /// Directories that contain mount points.
    mounts: FxHashSet<(u64, u64)>,
    /// Number of correct `d_ino` values seen per file system; `None` after a wrong one.
    verified: FxHashMap<u64, Option<u32>>,
    buffer: Box<[MaybeUninit<u8>]>,
    path: Vec<u8>,
}

/// A directory that is partly read.
struct Reading {
    id: EntryId,
    fd: OwnedFd,
    device: u64,
    inode: u64,
}

impl<'a> Walk<'a> {
    /// Starts a walk and adds the roots.
    ///
    /// # Errors
    /// [`TreeFull`] if the tree cannot store another name.
    pub fn new(
        roots: &[PathBuf],
        options: &'a Options<'a>,
        tree: &mut Tree,
        on_error: &mut dyn FnMut(PathError),
    ) -> Result<Walk<'a>, TreeFull> {
        let mut walk = Walk {
            options,
            pending: BTreeMap::new(),
            swept: (0, 0),
            reading: None,
            roots: Roots::new(options.once),
            mounts: mounts::directories_with_mounts(),
            verified: FxHashMap::default(),
            buffer: vec![MaybeUninit::uninit(); BUFFER_BYTES].into_boxed_slice(),
            path: Vec::new(),
        };
        tree.set_base(options.base.clone(), options.follow);
        for root in roots {
            walk.add_root(error::bytes(root), tree, on_error)?;
        }
        walk.roots.complete();
        Ok(walk)
    }

    /// Adds about `names` more names, at most a few hundred beyond that. Returns true if names
    /// remain.
    ///
    /// # Errors
    /// [`TreeFull`] if the tree cannot store another name.
    pub fn read_batch(
        &mut self,
        names: usize,
        tree: &mut Tree,
        on_error: &mut dyn FnMut(PathError),
    ) -> Result<bool, TreeFull> {
        let until = tree.len().saturating_add(names);
        while tree.len() < until {
            let Some(reading) = self.reading.take().or_else(|| self.open_next(tree, on_error)) else {
                return Ok(false);
            };
            if self.read_some(&reading, tree, on_error)? {
                self.reading = Some(reading);
            }
            if let Some(progress) = self.options.progress {
                progress(tree.len());
            }
        }
        Ok(self.reading.is_some() || !self.pending.is_empty())
    }

    /// Removes all names from the tree except the directories to read and their ancestors.
    pub fn discard_finished(&mut self, tree: &mut Tree) {
        let mut keep: Vec<EntryId> = self.pending.values().flatten().map(|(_, id)| *id).collect();
        keep.extend(self.reading.as_ref().map(|reading| reading.id));
        keep.sort_unstable();
        let new_ids = tree.retain(&keep);
        let new_id = |id: &EntryId| keep.binary_search(id).map_or(*id, |index| new_ids[index]);
        for directories in self.pending.values_mut() {
            *directories = directories.iter().map(|(inode, id)| (*inode, new_id(id))).collect();
        }
        if let Some(reading) = &mut self.reading {
            reading.id = new_id(&reading.id);
        }
    }

    fn add_root(
        &mut self,
        path: Vec<u8>,
        tree: &mut Tree,
        on_error: &mut dyn FnMut(PathError),
    ) -> Result<(), TreeFull> {
        let base = self.options.base.as_ref().map(|base| base.as_fd());
        let found = open::stat(base, &path, self.options.follow != FollowLinks::Never);
        let found = found.and_then(|stat| fits(&path).map(|()| stat));
        let stat = match found {
            Ok(stat) => stat,
            Err(errno) => {
                on_error(PathError::failed(path, None, Operation::Stat, errno));
                return Ok(());
            }
        };
        let kind = kind_of(FileType::from_raw_mode(stat.st_mode));
        if !self.options.filter.is_none_or(|filter| filter(&path, kind)) || !self.roots.is_new(base, &path, kind, &stat)
        {
            return Ok(());
        }
        let id = tree.add(None, OsStr::from_bytes(&path), kind, stat.st_ino, stat.st_dev)?;
        if kind == FileKind::Directory {
            self.add_pending(id, tree);
        }
        Ok(())
    }

    /// Adds a directory to the pending directories.
    fn add_pending(&mut self, id: EntryId, tree: &Tree) {
        let directories = self.pending.entry(tree.device_index(id)).or_default();
        directories.insert((tree.entry(id).inode, id));
    }

    /// Opens the next directory of the sweep.
    fn open_next(&mut self, tree: &mut Tree, on_error: &mut dyn FnMut(PathError)) -> Option<Reading> {
        loop {
            let id = self.next()?;
            tree.path_into(id, &mut self.path);
            match open_directory(tree, id, &self.path, self.options.follow) {
                Ok((fd, stat)) => {
                    if let Some(reading) = self.enter(id, fd, &stat, tree, on_error) {
                        return Some(reading);
                    }
                }
                Err(errno) => on_error(PathError::failed(self.path.clone(), id, Operation::Open, errno)),
            }
        }
    }

    /// Removes and returns the next pending directory: on the same file system the next inode
    /// number, else the lowest one; then the next file system.
    fn next(&mut self) -> Option<EntryId> {
        let (device, inode) = self.swept;
        let device = if self.pending.contains_key(&device) { device } else { *self.pending.keys().next()? };
        let directories = self.pending.get_mut(&device)?;
        let ahead = directories.range((inode, EntryId::FIRST)..).next().copied();
        let found = ahead.or_else(|| directories.first().copied())?;
        directories.remove(&found);
        if directories.is_empty() {
            self.pending.remove(&device);
        }
        self.swept = (device, found.0);
        Some(found.1)
    }

    /// Decides whether an open directory is read now.
    fn enter(
        &mut self,
        id: EntryId,
        fd: OwnedFd,
        stat: &Stat,
        tree: &mut Tree,
        on_error: &mut dyn FnMut(PathError),
    ) -> Option<Reading> {
        let before = tree.entry(id);
        if (stat.st_ino, stat.st_dev) != (before.inode, before.device) {
            // A mount point. If the tree accepts no further file system, the entry keeps its old
            // identity.
            let _ = tree.set_identity(id, stat.st_ino, stat.st_dev);
        }
        let entry = tree.entry(id);
        let above = entry.parent.map(|parent| tree.entry(parent));
        if self.options.one_file_system && above.is_some_and(|above| above.device != entry.device) {
            return None;
        }
        let mut above = entry.parent;
        while let Some(ancestor) = above {
            let of = tree.entry(ancestor);
            if (of.inode, of.device) == (entry.inode, entry.device) {
                on_error(PathError { path: self.path.clone(), id: Some(id), error: WalkError::Loop });
                return None;
            }
            above = of.parent;
        }
        if entry.device != before.device {
            // The directory joins the sweep of its own file system.
            self.add_pending(id, tree);
            return None;
        }
        Some(Reading { id, fd, device: entry.device, inode: entry.inode })
    }

    /// Reads one buffer of directory entries. Returns true if entries may remain.
    fn read_some(
        &mut self,
        reading: &Reading,
        tree: &mut Tree,
        on_error: &mut dyn FnMut(PathError),
    ) -> Result<bool, TreeFull> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut directory = RawDir::new(&reading.fd, &mut buffer);
        let mut more = false;
        let mut added = Ok(());
        loop {
            match directory.next() {
                None => break,
                Some(Err(errno)) => {
                    // A directory that was removed while it was open has no entries.
                    if errno != Errno::NOENT {
                        tree.path_into(reading.id, &mut self.path);
                        on_error(PathError::failed(self.path.clone(), reading.id, Operation::ReadDirectory, errno));
                    }
                    break;
                }
                Some(Ok(entry)) => {
                    added = self.found(reading, &entry, tree, on_error);
                }
            }
            if added.is_err() || directory.is_buffer_empty() {
                more = true;
                break;
            }
        }
        self.buffer = buffer;
        added.map(|()| more)
    }

    /// Adds one directory entry.
    fn found(
        &mut self,
        reading: &Reading,
        entry: &RawDirEntry<'_>,
        tree: &mut Tree,
        on_error: &mut dyn FnMut(PathError),
    ) -> Result<(), TreeFull> {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            return Ok(());
        }
        let found = match self.identify(reading, name, entry.file_type(), entry.ino()) {
            Ok(found) => found,
            Err(errno) => {
                // A file that vanished before `stat` counts as never seen.
                if errno != Errno::NOENT || self.options.follow == FollowLinks::Always {
                    self.path_of(reading.id, name, tree);
                    on_error(PathError::failed(self.path.clone(), None, Operation::Stat, errno));
                }
                return Ok(());
            }
        };
        let Identified { kind, inode, device } = found;
        let follows = self.options.follow == FollowLinks::Always;
        if self.roots.may_have_paths() {
            self.path_of(reading.id, name, tree);
            if self.roots.has_path(&self.path) {
                return Ok(());
            }
        }
        if !follows && self.roots.has((reading.device, reading.inode), name.to_bytes(), kind, (device, inode)) {
            return Ok(());
        }
        if let Some(keep) = self.options.filter {
            self.path_of(reading.id, name, tree);
            if !keep(&self.path, kind) {
                return Ok(());
            }
        }
        let id = tree.add(Some(reading.id), OsStr::from_bytes(name.to_bytes()), kind, inode, device)?;
        if kind == FileKind::Directory {
            self.add_pending(id, tree);
        }
        Ok(())
    }

    /// Returns type and identity of a name: from the directory entry if that is trusted, else from
    /// `stat`.
    fn identify(&mut self, reading: &Reading, name: &CStr, kind: FileType, inode: u64) -> Result<Identified, Errno> {
        let follows =
            self.options.follow == FollowLinks::Always && matches!(kind, FileType::Symlink | FileType::Unknown);
        let verified = self.verified.get(&reading.device).copied().unwrap_or(Some(0));
        let trusted = verified.is_some() && !self.mounts.contains(&(reading.device, reading.inode));
        if trusted && !follows && kind != FileType::Unknown && verified.is_some_and(|verified| verified >= VERIFIED_MIN)
        {
            return Ok(Identified { kind: kind_of(kind), inode, device: reading.device });
        }
        let flags = if follows { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let stat_with = |flags| statat(reading.fd.as_fd(), name, flags | AtFlags::NO_AUTOMOUNT);
        let stat = match stat_with(flags) {
            // A dangling link is listed as a link.
            Err(Errno::NOENT) if follows => stat_with(AtFlags::SYMLINK_NOFOLLOW),
            found => found,
        }?;
        if trusted && !follows && kind != FileType::Directory && stat.st_dev == reading.device {
            let verified = if stat.st_ino == inode { verified.map(|verified| verified + 1) } else { None };
            self.verified.insert(reading.device, verified);
        }
        Ok(Identified { kind: kind_of(FileType::from_raw_mode(stat.st_mode)), inode: stat.st_ino, device: stat.st_dev })
    }

    fn path_of(&mut self, directory: EntryId, name: &CStr, tree: &Tree) {
        tree.path_into(directory, &mut self.path);
        if self.path.last() != Some(&b'/') {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name.to_bytes());
    }
}

/// Type and identity of a directory entry.
struct Identified {
    kind: FileKind,
    inode: u64,
    device: u64,
}

/// Opens a directory by its path. If the path leads to another directory than the walk found,
/// something is mounted there, or a link has replaced a directory of the path. The directory is
/// then opened component by component, without following such links.
fn open_directory(tree: &Tree, id: EntryId, path: &[u8], follow: FollowLinks) -> Result<(OwnedFd, Stat), Errno> {
    let flags = tree.open_flags(id) | OFlags::DIRECTORY;
    let fd = open::quietly(flags, |flags| open::open(tree.base(id), path, flags))?;
    let stat = fstat(&fd)?;
    let entry = tree.entry(id);
    let is_found = (stat.st_ino, stat.st_dev) == (entry.inode, entry.device);
    if is_found || entry.parent.is_none() || follow == FollowLinks::Always {
        return Ok((fd, stat));
    }
    let parent = tree.open_parent(id)?;
    let fd = open::quietly(flags, |flags| openat(&parent, tree.name(id), flags, Mode::empty()))?;
    let stat = fstat(&fd)?;
    Ok((fd, stat))
}

/// Checks that the tree can store a path.
fn fits(path: &[u8]) -> Result<(), Errno> {
    if u16::try_from(path.len()).is_ok() { Ok(()) } else { Err(Errno::NAMETOOLONG) }
}

fn kind_of(kind: FileType) -> FileKind {
    match kind {
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::BlockDevice => FileKind::BlockDevice,
        FileType::CharacterDevice => FileKind::CharacterDevice,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::RegularFile | FileType::Unknown => FileKind::File,
    }
}
