//! Opening what was found: by its path, in pieces where the path is longer than the kernel takes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use crate::problem::{Doing, Trouble};
use crate::tree::{Id, Tree};

/// The longest path that the kernel takes at once, in bytes, without the zero at its end (`PATH_MAX` counts it).
pub const PATH_BYTES_MAX: usize = 4095;

/// A file that was opened.
#[derive(Debug)]
pub struct Opened {
    /// The file.
    pub fd: OwnedFd,
    /// What it is now: it was asked for to see whether it is still the same file.
    pub stat: Stat,
}

impl Tree {
    /// Opens a file for reading, without moving its time of access where the system allows that, and sees to it that it is the file that was
    /// found. A named pipe is opened without waiting for its other end; `flags` are added (`O_DIRECTORY`, `O_PATH`).
    ///
    /// # Errors
    /// [`Trouble::Failed`] with what the system said, [`Trouble::Replaced`] if the path leads to another file by now.
    ///
    /// # Panics
    /// If `id` is another tree's.
    pub fn open(&self, id: Id, flags: OFlags) -> Result<Opened, Trouble> {
        let mut path = Vec::new();
        self.path_into(id, &mut path);
        let failed = |errno| Trouble::Failed { doing: Doing::Open, errno };
        let fd = quietly(flags | self.open_flags(id), |flags| open(self.base(id), &path, flags)).map_err(failed)?;
        let stat = fstat(&fd).map_err(failed)?;
        let entry = self.entry(id);
        if (stat.st_ino, stat.st_dev) != (entry.inode, entry.device) {
            return Err(Trouble::Replaced);
        }
        Ok(Opened { fd, stat })
    }

    /// The directory that a name lies in, reached without following a link below what was asked for.
    pub(crate) fn open_parent(&self, id: Id) -> Result<OwnedFd, Errno> {
        let mut above: Vec<Id> = std::iter::successors(self.parent(id), |id| self.parent(*id)).collect();
        let place = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = above.pop().ok_or(Errno::NOENT)?;
        let mut directory = open(self.base(top), self.name(top).as_bytes(), place)?;
        for id in above.into_iter().rev() {
            directory = match openat(directory.as_fd(), self.name(id), place | OFlags::NOFOLLOW, Mode::empty()) {
                // It is another directory's name by now, or nobody's.
                Err(Errno::NOTDIR | Errno::LOOP) => return Err(Errno::NOENT),
                opened => opened?,
            };
        }
        Ok(directory)
    }

    /// What all files are opened with.
    pub(crate) fn open_flags(&self, id: Id) -> OFlags {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        if self.is_followed(id) { flags } else { flags | OFlags::NOFOLLOW }
    }
}

/// Opens without moving the time of access: only a file's owner may.
pub fn quietly(flags: OFlags, open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        opened => opened,
    }
}

/// Opens a path of any length; a relative one begins in `base`.
pub fn open(base: Option<BorrowedFd<'_>>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    near(base, path, |directory, rest| openat(directory, rest, flags, Mode::empty()))
}

/// What a path of any length is; a relative one begins in `base`.
pub fn stat(base: Option<BorrowedFd<'_>>, path: &[u8], follow: bool) -> Result<Stat, Errno> {
    let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    near(base, path, |directory, rest| statat(directory, rest, flags))
}

/// The file system and number of what a path leads to, also through a link.
pub fn identity(base: Option<BorrowedFd<'_>>, path: &[u8]) -> Option<(u64, u64)> {
    let found = stat(base, path, true).ok()?;
    Some((found.st_dev, found.st_ino))
}

/// Calls `then` with a directory and what is left of the path there, which the kernel takes.
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

/// The path without the slashes that it begins with; the directory itself if nothing else is left.
fn below(path: &[u8]) -> &[u8] {
    path.iter().position(|byte| *byte != b'/').map_or(b".", |begins| &path[begins..])
}
