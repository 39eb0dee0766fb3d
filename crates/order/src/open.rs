//! Opens entries of a tree by path. A path longer than `PATH_MAX` is opened in several steps.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use crate::error::{Operation, WalkError};
use crate::tree::{EntryId, Tree};

/// Length of the longest path that one system call accepts, in bytes, without the final zero byte
/// that `PATH_MAX` includes.
pub const PATH_BYTES_MAX: usize = 4095;

/// An open file.
#[derive(Debug)]
pub struct OpenedFile {
    /// The file descriptor.
    pub fd: OwnedFd,
    /// The result of `fstat` after the file was opened.
    pub stat: Stat,
}

impl Tree {
    /// Opens a file for reading and checks that the file is the one that the walk found.
    ///
    /// The access time stays unchanged where the system allows that. A named pipe is opened without
    /// waiting for a writer. `flags` are added to the open flags (`O_DIRECTORY`, `O_PATH`).
    ///
    /// # Errors
    /// [`WalkError::Failed`] with the error number, [`WalkError::Replaced`] if the path leads to
    /// another file now.
    ///
    /// # Panics
    /// If `id` belongs to another tree.
    pub fn open(&self, id: EntryId, flags: OFlags) -> Result<OpenedFile, WalkError> {
        let mut path = Vec::new();
        self.path_into(id, &mut path);
        let failed = |errno| WalkError::Failed { operation: Operation::Open, errno };
        let fd = quietly(flags | self.open_flags(id), |flags| open(self.base(id), &path, flags)).map_err(failed)?;
        let stat = fstat(&fd).map_err(failed)?;
        let entry = self.entry(id);
        if (stat.st_ino, stat.st_dev) != (entry.inode, entry.device) {
            return Err(WalkError::Replaced);
        }
        Ok(OpenedFile { fd, stat })
    }

    /// Opens the parent directory of an entry without following links below the given root.
    pub(crate) fn open_parent(&self, id: EntryId) -> Result<OwnedFd, Errno> {
        let mut above: Vec<EntryId> = std::iter::successors(self.parent(id), |id| self.parent(*id)).collect();
        let place = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = above.pop().ok_or(Errno::NOENT)?;
        let mut directory = open(self.base(top), self.name(top).as_bytes(), place)?;
        for id in above.into_iter().rev() {
            directory = match openat(directory.as_fd(), self.name(id), place | OFlags::NOFOLLOW, Mode::empty()) {
                // The directory was replaced after the walk.
                Err(Errno::NOTDIR | Errno::LOOP) => return Err(Errno::NOENT),
                opened => opened?,
            };
        }
        Ok(directory)
    }

    /// Returns the open flags for files of this tree.
    pub(crate) fn open_flags(&self, id: EntryId) -> OFlags {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        if self.is_followed(id) { flags } else { flags | OFlags::NOFOLLOW }
    }
}

/// Opens with `O_NOATIME`; repeats without that flag if the caller does not own the file.
pub fn quietly(flags: OFlags, open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        opened => opened,
    }
}

/// Opens a path of any length. A relative path starts in `base`.
pub fn open(base: Option<BorrowedFd<'_>>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    near(base, path, |directory, rest| openat(directory, rest, flags, Mode::empty()))
}

/// Calls `stat` for a path of any length. A relative path starts in `base`.
pub fn stat(base: Option<BorrowedFd<'_>>, path: &[u8], follow: bool) -> Result<Stat, Errno> {
    let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    near(base, path, |directory, rest| statat(directory, rest, flags))
}

/// Returns device and inode number of the file that a path leads to. Follows links.
pub fn identity(base: Option<BorrowedFd<'_>>, path: &[u8]) -> Option<(u64, u64)> {
    let found = stat(base, path, true).ok()?;
    Some((found.st_dev, found.st_ino))
}

/// Calls `then` with a directory and a path relative to this directory that is at most
/// [`PATH_BYTES_MAX`] long.
fn near<T>(
    base: Option<BorrowedFd<'_>>,
    path: &[u8],
    then: impl FnOnce(BorrowedFd<'_>, &[u8]) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let mut rest = path;
    let mut directory: Option<OwnedFd> = None;
    loop {
        let at = directory.as_ref().map(AsFd::as_fd).or(base).unwrap_or(CWD);
        if rest.len() <= PATH_BYTES_MAX {
            return then(at, rest);
        }
        let slash = rest[..=PATH_BYTES_MAX].iter().rposition(|byte| *byte == b'/').filter(|slash| *slash > 0);
        let slash = slash.ok_or(Errno::NAMETOOLONG)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let next = openat(at, &rest[..slash], flags, Mode::empty())?;
        rest = below(&rest[slash..]);
        directory = Some(next);
    }
}

/// Returns a path without its leading slashes, or `.` if the path has slashes only.
fn below(path: &[u8]) -> &[u8] {
    path.iter().position(|byte| *byte != b'/').map_or(b".", |begins| &path[begins..])
}
