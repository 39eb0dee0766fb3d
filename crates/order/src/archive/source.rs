//! Opening what a walk found, and seeing to it that nobody put another way in its place.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;

use crate::reach;
use crate::tree::{Follow, Id, Tree};

/// A file or a place that was opened, and what it is.
pub(super) struct Source {
    pub fd: OwnedFd,
    pub stat: Stat,
}

/// Opens what lies at a path of the tree: the file that was found there, or what has taken its place.
///
/// The path is walked by the kernel at once, which is cheap; where that ends at another file than the one that was found, somebody may have put a symbolic link in
/// the place of a directory to have a file archived under the name of another. So the path is walked again, part by part, and no link is followed.
pub(super) fn open(tree: &Tree, id: Id, path: &[u8], follow: Follow, flags: OFlags) -> Result<Source, Errno> {
    let base = tree.base(id);
    let flags = flags | if tree.is_followed(id) { OFlags::empty() } else { OFlags::NOFOLLOW };
    let fd = quietly(flags, |flags| reach::open(base, path, flags))?;
    let stat = fstat(&fd)?;
    let entry = tree.entry(id);
    let is_found = (stat.st_ino, stat.st_dev) == (entry.inode, entry.device);
    if is_found || entry.parent.is_none() || follow == Follow::Always {
        return Ok(Source { fd, stat });
    }
    drop(fd);
    let directory = tree.open_parent(id)?;
    let fd = quietly(flags, |flags| openat(&directory, tree.name(id), flags, Mode::empty()))?;
    let stat = fstat(&fd)?;
    Ok(Source { fd, stat })
}

/// Opens without moving the time of access, if it is opened for reading.
fn quietly(flags: OFlags, open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    if flags.contains(OFlags::PATH) {
        return open(flags);
    }
    reach::quietly(flags, open)
}
