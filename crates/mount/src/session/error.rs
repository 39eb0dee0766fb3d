//! What can be in the way of a mount, and of its end.

use std::io;
use std::path::{Path, PathBuf};

/// Why nothing was mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The source cannot be opened.
    #[error("the source {path}: {error}", path = path.display())]
    Source {
        /// It.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The source is a file.
    #[error("the source {path} is not a directory", path = .0.display())]
    SourceNotDirectory(PathBuf),
    /// There is nothing to mount at.
    #[error("the mount point {path}: {error}", path = path.display())]
    MountPoint {
        /// It.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The mount point is a file.
    #[error("the mount point {path} is not a directory", path = .0.display())]
    MountPointNotDirectory(PathBuf),
    /// Something is mounted there.
    #[error("{path} is a mount point already ({kind}, of {from}): unmount that first, or mount elsewhere", path = path.display())]
    Busy {
        /// Where.
        path: PathBuf,
        /// Its type.
        kind: String,
        /// What is mounted.
        from: String,
    },
    /// A mount whose program does not live any more is there.
    #[error("{path} is a mount whose program has died: `umount {path}` takes it away (`fusermount3 -u {path}` without root), or mount with --clean", path = path.display())]
    Dead {
        /// Where.
        path: PathBuf,
    },
    /// The mount would be seen in itself.
    #[error("the mount point {mount_point} lies in the source {source_path}, which would hold itself without end: mount elsewhere, or over {source_path} itself",
        mount_point = mount_point.display(), source_path = source_path.display())]
    Inside {
        /// Where it was to be mounted.
        mount_point: PathBuf,
        /// What.
        source_path: PathBuf,
    },
    /// The mount would hide its source.
    #[error("the source {source_path} lies below the mount point {mount_point}, which would hide it: mount elsewhere, or {mount_point} over itself",
        mount_point = mount_point.display(), source_path = source_path.display())]
    Covers {
        /// Where it was to be mounted.
        mount_point: PathBuf,
        /// What.
        source_path: PathBuf,
    },
    /// The kernel has no FUSE, or this process may not use it.
    #[error("cannot open /dev/fuse: {error}{hint}", error = .0, hint = device_hint(.0))]
    Device(io::Error),
    /// The system does not let us mount.
    #[error("cannot mount at {path}: {error}{hint}", path = path.display(), hint = mount_hint(error))]
    Mount {
        /// Where.
        path: PathBuf,
        /// What it says.
        error: io::Error,
    },
    /// The kernel and we do not come together, or there are no threads.
    #[error("the mount at {path} has not begun: {error}", path = path.display())]
    Begin {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Why a mount is there still.
#[derive(Debug, thiserror::Error)]
#[error("cannot unmount {path}: {error}", path = path.display())]
pub struct UnmountError {
    path: PathBuf,
    error: io::Error,
}

impl UnmountError {
    pub(super) fn new(path: &Path, error: impl Into<io::Error>) -> UnmountError {
        UnmountError { path: path.into(), error: error.into() }
    }
}

fn device_hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            " (`modprobe fuse` loads it; a container needs `--device /dev/fuse`)"
        }
        Some(libc::EACCES | libc::EPERM) => " (its mode or this container's rules keep this user out)",
        _ => "",
    }
}

fn mount_hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            " (mounting takes root; others need fusermount3, of the package fuse3, and a mount point of their own)"
        }
        Some(libc::ENOENT) => " (who is not root needs fusermount3, of the package fuse3)",
        _ => "",
    }
}
