//! Finding everything under some paths, directories by inode number in one-way sweeps.
//!
//! A file system of the ext family lays inodes out by number, so that directories read in the order of their numbers are read in one sweep of the arm. One
//! that is discovered ahead of the sweep joins it; one that lies behind waits for the next. What is in a directory is known from the directory
//! alone (`d_ino`, `d_type`); inodes are asked only where it does not tell, or where something is mounted.

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

pub use list::{Listed, list};
use roots::Roots;

use crate::mounts;
use crate::problem::{self, Doing, Problem, Trouble};
use crate::reach;
use crate::tree::{Follow, Id, Kind, Tree, TreeFull};

/// How much of a directory is read at once, in bytes: some 800 names of 40 letters.
const BUFFER_BYTES: usize = 64 << 10;
/// In so many directories of a file system the number of one file is compared with what its inode says.
const COMPARED: u32 = 3;

/// Told a path and what it is, answers whether it is kept.
pub type Keep<'a> = &'a dyn Fn(&[u8], Kind) -> bool;

/// What is looked for, and how.
#[derive(Clone, Default)]
pub struct Options<'a> {
    /// Directories on other file systems than what was asked for are listed and not entered.
    pub one_file_system: bool,
    /// Which symbolic links are followed.
    pub follow: Follow,
    /// What is found once where it is asked for twice, or lies in a directory that is asked for as well.
    pub once: Once,
    /// Where relative paths begin; `None` for the working directory.
    pub base: Option<Arc<OwnedFd>>,
    /// Told each path and what it is; what it answers `false` for is left out, a directory with all that is in it.
    pub keep: Option<Keep<'a>>,
    /// Told now and then how many names there are.
    pub progress: Option<&'a dyn Fn(usize)>,
}

/// What counts as the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Once {
    /// The same directory, or the same name in it, whatever paths lead there.
    #[default]
    File,
    /// The same path, but for `.` and slashes: for who keeps files by their paths.
    Path,
}

/// Adds all that there is under `roots` to `tree`: the roots themselves, and in each directory what it holds, in the order in which the
/// directory has it. A directory comes before what is in it. Paths that something is wrong with are told to `problem`; the rest goes on.
///
/// What is asked for twice, or is asked for and lies in a directory that is asked for as well, is found once, under the path that it was
/// asked for by; [`Options::once`] says what is the same.
///
/// # Errors
/// [`TreeFull`] if there are more names than a tree takes.
pub fn walk(
    roots: &[PathBuf],
    options: &Options<'_>,
    tree: &mut Tree,
    problem: &mut dyn FnMut(Problem),
) -> Result<(), TreeFull> {
    let mut walk = Walk::new(roots, options, tree, problem)?;
    while walk.more(usize::MAX, tree, problem)? {}
    Ok(())
}

/// A walk that can be taken in parts.
pub struct Walk<'a> {
    options: &'a Options<'a>,
    /// The directories that are still to be read: by file system in the order in which these were met, by inode number.
    pending: BTreeMap<u16, BTreeSet<(u64, Id)>>,
    /// Where the sweep is.
    swept: (u16, u64),
    reading: Option<Reading>,
    roots: Roots,
    /// Directories in which something is mounted.
    mounts: FxHashSet<(u64, u64)>,
    /// For each file system how often directories told the numbers of inodes rightly; `None` once they did not.
    told: FxHashMap<u64, Option<u32>>,
    buffer: Box<[MaybeUninit<u8>]>,
    path: Vec<u8>,
}

/// A directory of which a part is read.
struct Reading {
    id: Id,
    fd: OwnedFd,
    device: u64,
    inode: u64,
}

impl<'a> Walk<'a> {
    /// Begins a walk: adds the roots.
    ///
    /// # Errors
    /// [`TreeFull`].
    pub fn new(
        roots: &[PathBuf],
        options: &'a Options<'a>,
        tree: &mut Tree,
        problem: &mut dyn FnMut(Problem),
    ) -> Result<Walk<'a>, TreeFull> {
        let mut walk = Walk {
            options,
            pending: BTreeMap::new(),
            swept: (0, 0),
            reading: None,
            roots: Roots::new(options.once),
            mounts: mounts::directories_with_mounts(),
            told: FxHashMap::default(),
            buffer: vec![MaybeUninit::uninit(); BUFFER_BYTES].into_boxed_slice(),
            path: Vec::new(),
        };
        tree.reach(options.base.clone(), options.follow);
        for root in roots {
            walk.add_root(problem::bytes(root), tree, problem)?;
        }
        walk.roots.are_all();
        Ok(walk)
    }

    /// Adds about `names` more names, or a few hundred beyond that, and answers whether there is more.
    ///
    /// # Errors
    /// [`TreeFull`].
    pub fn more(&mut self, names: usize, tree: &mut Tree, problem: &mut dyn FnMut(Problem)) -> Result<bool, TreeFull> {
        let until = tree.len().saturating_add(names);
        while tree.len() < until {
            let Some(reading) = self.reading.take().or_else(|| self.open_next(tree, problem)) else {
                return Ok(false);
            };
            if self.read_some(&reading, tree, problem)? {
                self.reading = Some(reading);
            }
            if let Some(progress) = self.options.progress {
                progress(tree.len());
            }
        }
        Ok(self.reading.is_some() || !self.pending.is_empty())
    }

    /// Makes the tree forget all but the directories that are still to be read, and those above them.
    pub fn forget(&mut self, tree: &mut Tree) {
        let mut keep: Vec<Id> = self.pending.values().flatten().map(|(_, id)| *id).collect();
        keep.extend(self.reading.as_ref().map(|reading| reading.id));
        keep.sort_unstable();
        let called = tree.retain(&keep);
        let now = |id: &Id| keep.binary_search(id).map_or(*id, |place| called[place]);
        for directories in self.pending.values_mut() {
            *directories = directories.iter().map(|(inode, id)| (*inode, now(id))).collect();
        }
        if let Some(reading) = &mut self.reading {
            reading.id = now(&reading.id);
        }
    }

    fn add_root(&mut self, path: Vec<u8>, tree: &mut Tree, problem: &mut dyn FnMut(Problem)) -> Result<(), TreeFull> {
        let base = self.options.base.as_ref().map(|base| base.as_fd());
        let looked = reach::stat(base, &path, self.options.follow != Follow::Never);
        let looked = looked.and_then(|stat| fits(&path).map(|()| stat));
        let stat = match looked {
            Ok(stat) => stat,
            Err(errno) => {
                problem(Problem::failed(path, None, Doing::Look, errno));
                return Ok(());
            }
        };
        let kind = kind_of(FileType::from_raw_mode(stat.st_mode));
        if !self.options.keep.is_none_or(|keep| keep(&path, kind)) || !self.roots.is_new(base, &path, kind, &stat) {
            return Ok(());
        }
        let id = tree.add(None, OsStr::from_bytes(&path), kind, stat.st_ino, stat.st_dev)?;
        if kind == Kind::Directory {
            self.wait(id, tree);
        }
        Ok(())
    }

    /// Lets a directory wait for the sweep.
    fn wait(&mut self, id: Id, tree: &Tree) {
        let directories = self.pending.entry(tree.device_index(id)).or_default();
        directories.insert((tree.entry(id).inode, id));
    }

    /// Opens the directory that the sweep comes to next.
    fn open_next(&mut self, tree: &mut Tree, problem: &mut dyn FnMut(Problem)) -> Option<Reading> {
        loop {
            let id = self.next()?;
            tree.path_into(id, &mut self.path);
            match open_directory(tree, id, &self.path, self.options.follow) {
                Ok((fd, stat)) => {
                    if let Some(reading) = self.enter(id, fd, &stat, tree, problem) {
                        return Some(reading);
                    }
                }
                Err(errno) => problem(Problem::failed(self.path.clone(), id, Doing::Open, errno)),
            }
        }
    }

    /// The next in the sweep: on the same file system the next number from here on, then the least; then the next file system.
    fn next(&mut self) -> Option<Id> {
        let (device, inode) = self.swept;
        let device = if self.pending.contains_key(&device) { device } else { *self.pending.keys().next()? };
        let directories = self.pending.get_mut(&device)?;
        let ahead = directories.range((inode, Id::FIRST)..).next().copied();
        let found = ahead.or_else(|| directories.first().copied())?;
        directories.remove(&found);
        if directories.is_empty() {
            self.pending.remove(&device);
        }
        self.swept = (device, found.0);
        Some(found.1)
    }

    /// Decides whether a directory that was opened is read now.
    fn enter(
        &mut self,
        id: Id,
        fd: OwnedFd,
        stat: &Stat,
        tree: &mut Tree,
        problem: &mut dyn FnMut(Problem),
    ) -> Option<Reading> {
        let before = tree.entry(id);
        if (stat.st_ino, stat.st_dev) != (before.inode, before.device) {
            // Something is mounted here. A tree that takes no more file systems keeps the number that it has.
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
                problem(Problem { path: self.path.clone(), id: Some(id), what: Trouble::Loop });
                return None;
            }
            above = of.parent;
        }
        if entry.device != before.device {
            // It joins the sweep of its own file system.
            self.wait(id, tree);
            return None;
        }
        Some(Reading { id, fd, device: entry.device, inode: entry.inode })
    }

    /// Reads as much of a directory as the buffer takes, and answers whether there may be more.
    fn read_some(
        &mut self,
        reading: &Reading,
        tree: &mut Tree,
        problem: &mut dyn FnMut(Problem),
    ) -> Result<bool, TreeFull> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut directory = RawDir::new(&reading.fd, &mut buffer);
        let mut more = false;
        let mut added = Ok(());
        loop {
            match directory.next() {
                None => break,
                Some(Err(errno)) => {
                    // A directory that was removed while it was open has nothing in it.
                    if errno != Errno::NOENT {
                        tree.path_into(reading.id, &mut self.path);
                        problem(Problem::failed(self.path.clone(), reading.id, Doing::Read, errno));
                    }
                    break;
                }
                Some(Ok(entry)) => {
                    added = self.found(reading, &entry, tree, problem);
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

    /// Adds one name of a directory.
    fn found(
        &mut self,
        reading: &Reading,
        entry: &RawDirEntry<'_>,
        tree: &mut Tree,
        problem: &mut dyn FnMut(Problem),
    ) -> Result<(), TreeFull> {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            return Ok(());
        }
        let looked = match self.look(reading, name, entry.file_type(), entry.ino()) {
            Ok(looked) => looked,
            Err(errno) => {
                // Files come and go; what went before it was looked at was never there.
                if errno != Errno::NOENT || self.options.follow == Follow::Always {
                    self.path_of(reading.id, name, tree);
                    problem(Problem::failed(self.path.clone(), None, Doing::Look, errno));
                }
                return Ok(());
            }
        };
        let Looked { kind, inode, device } = looked;
        let follows = self.options.follow == Follow::Always;
        if self.roots.may_have_paths() {
            self.path_of(reading.id, name, tree);
            if self.roots.has_path(&self.path) {
                return Ok(());
            }
        }
        if !follows && self.roots.has((reading.device, reading.inode), name.to_bytes(), kind, (device, inode)) {
            return Ok(());
        }
        if let Some(keep) = self.options.keep {
            self.path_of(reading.id, name, tree);
            if !keep(&self.path, kind) {
                return Ok(());
            }
        }
        let id = tree.add(Some(reading.id), OsStr::from_bytes(name.to_bytes()), kind, inode, device)?;
        if kind == Kind::Directory {
            self.wait(id, tree);
        }
        Ok(())
    }

    /// What a name is: as the directory has it where that is to be trusted, as its inode has it elsewhere.
    fn look(&mut self, reading: &Reading, name: &CStr, kind: FileType, inode: u64) -> Result<Looked, Errno> {
        let follows = self.options.follow == Follow::Always && matches!(kind, FileType::Symlink | FileType::Unknown);
        let told = self.told.get(&reading.device).copied().unwrap_or(Some(0));
        let trusted = told.is_some() && !self.mounts.contains(&(reading.device, reading.inode));
        if trusted && !follows && kind != FileType::Unknown && told.is_some_and(|told| told >= COMPARED) {
            return Ok(Looked { kind: kind_of(kind), inode, device: reading.device });
        }
        let flags = if follows { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let look = |flags| statat(reading.fd.as_fd(), name, flags | AtFlags::NO_AUTOMOUNT);
        let stat = match look(flags) {
            // A link that leads nowhere is itself.
            Err(Errno::NOENT) if follows => look(AtFlags::SYMLINK_NOFOLLOW),
            looked => looked,
        }?;
        if trusted && !follows && kind != FileType::Directory && stat.st_dev == reading.device {
            let told = if stat.st_ino == inode { told.map(|told| told + 1) } else { None };
            self.told.insert(reading.device, told);
        }
        Ok(Looked { kind: kind_of(FileType::from_raw_mode(stat.st_mode)), inode: stat.st_ino, device: stat.st_dev })
    }

    fn path_of(&mut self, directory: Id, name: &CStr, tree: &Tree) {
        tree.path_into(directory, &mut self.path);
        if self.path.last() != Some(&b'/') {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name.to_bytes());
    }
}

/// What a name turned out to be.
struct Looked {
    kind: Kind,
    inode: u64,
    device: u64,
}

/// Opens a directory by its path. Where that does not lead to what was found there, something is mounted, or somebody has put a link into the place of
/// a directory above it: then it is reached again part by part, by no links but those that are followed.
fn open_directory(tree: &Tree, id: Id, path: &[u8], follow: Follow) -> Result<(OwnedFd, Stat), Errno> {
    let flags = tree.open_flags(id) | OFlags::DIRECTORY;
    let fd = reach::quietly(flags, |flags| reach::open(tree.base(id), path, flags))?;
    let stat = fstat(&fd)?;
    let entry = tree.entry(id);
    let is_found = (stat.st_ino, stat.st_dev) == (entry.inode, entry.device);
    if is_found || entry.parent.is_none() || follow == Follow::Always {
        return Ok((fd, stat));
    }
    let parent = tree.open_parent(id)?;
    let fd = reach::quietly(flags, |flags| openat(&parent, tree.name(id), flags, Mode::empty()))?;
    let stat = fstat(&fd)?;
    Ok((fd, stat))
}

/// Whether a path can be kept.
fn fits(path: &[u8]) -> Result<(), Errno> {
    if u16::try_from(path.len()).is_ok() { Ok(()) } else { Err(Errno::NAMETOOLONG) }
}

fn kind_of(kind: FileType) -> Kind {
    match kind {
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::BlockDevice => Kind::BlockDevice,
        FileType::CharacterDevice => Kind::CharacterDevice,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::RegularFile | FileType::Unknown => Kind::File,
    }
}
