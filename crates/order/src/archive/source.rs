//! Opens files for archiving, safe against replaced path components.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;

use crate::open;
use crate::tree::{EntryId, FollowLinks, Tree};

/// An open file and its `stat`.
pub(super) struct Source {
    pub fd: OwnedFd,
    pub stat: Stat,
}

/// Opens the file at a path of the tree: the file that the walk found, or its replacement.
///
/// The kernel resolves the path in one step, which is cheap. If the result is another file, a link
/// may have replaced a directory of the path, to have a file archived under the name of another.
/// The path is then resolved component by component without following links.
pub(super) fn open(tree: &Tree, id: EntryId, path: &[u8], follow: FollowLinks, flags: OFlags) -> Result<Source, Errno> {
    let base = tree.base(id);
    let flags = flags | if tree.is_followed(id) { OFlags::empty() } else { OFlags::NOFOLLOW };
    let fd = quietly(flags, |flags| open::open(base, path, flags))?;
    let stat = fstat(&fd)?;
    let entry = tree.entry(id);
    let is_found = (stat.st_ino, stat.st_dev) == (entry.inode, entry.device);
    if is_found || entry.parent.is_none() || follow == FollowLinks::Always {
        return Ok(Source { fd, stat });
    }
    drop(fd);
    let directory = tree.open_parent(id)?;
    let fd = quietly(flags, |flags| openat(&directory, tree.name(id), flags, Mode::empty()))?;
    let stat = fstat(&fd)?;
    Ok(Source { fd, stat })
}

/// Opens without an access time update, unless the flags contain `O_PATH`.
fn quietly(flags: OFlags, open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    if flags.contains(OFlags::PATH) {
        return open(flags);
    }
    open::quietly(flags, open)
}
