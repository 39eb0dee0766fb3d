//! Errors of mounting and unmounting.

use std::io;
use std::path::{Path, PathBuf};

/// An error that prevents a mount.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The source cannot be opened.
    #[error("the source {path}: {error}{hint}", path = path.display(), hint = source_hint(error))]
    Source {
        /// The path of the source.
        path: PathBuf,
        /// The system error.
        error: io::Error,
    },
    /// The source is a file.
    #[error("the source {path} is not a directory", path = .0.display())]
    SourceNotDirectory(PathBuf),
    /// The mount point cannot be accessed.
    #[error("the mount point {path}: {error}", path = path.display())]
    MountPoint {
        /// The path of the mount point.
        path: PathBuf,
        /// The system error.
        error: io::Error,
    },
    /// The mount point is a file.
    #[error("the mount point {path} is not a directory", path = .0.display())]
    MountPointNotDirectory(PathBuf),
    /// Another file system is mounted at the mount point.
    #[error("{path} is a mount point already ({kind}, of {from}): unmount that first, or mount elsewhere", path = path.display())]
    Busy {
        /// The path of the mount point.
        path: PathBuf,
        /// The type of the mounted file system.
        kind: String,
        /// The source of the mounted file system.
        from: String,
    },
    /// The mount point holds a dead mount: its server process no longer exists.
    #[error("{path} is a dead mount, whose process no longer exists: remove it with `umount {path}` (`fusermount3 -u {path}` without root), or mount with --clean", path = path.display())]
    Dead {
        /// The path of the mount point.
        path: PathBuf,
    },
    /// The mount point is inside the source, which would contain itself.
    #[error("the mount point {mount_point} is inside the source {source_path}, which would contain itself: mount elsewhere, or over {source_path} itself",
        mount_point = mount_point.display(), source_path = source_path.display())]
    Inside {
        /// The path of the mount point.
        mount_point: PathBuf,
        /// The path of the source.
        source_path: PathBuf,
    },
    /// The mount would hide its source.
    #[error("the source {source_path} is below the mount point {mount_point}, which would hide it: mount elsewhere, or {mount_point} over itself",
        mount_point = mount_point.display(), source_path = source_path.display())]
    Covers {
        /// The path of the mount point.
        mount_point: PathBuf,
        /// The path of the source.
        source_path: PathBuf,
    },
    /// `/dev/fuse` cannot be opened.
    #[error("cannot open /dev/fuse: {error}{hint}", error = .0, hint = device_hint(.0))]
    Device(io::Error),
    /// mount(2) or fusermount3 failed.
    #[error("cannot mount at {path}: {error}{hint}", path = path.display(), hint = mount_hint(error))]
    Mount {
        /// The path of the mount point.
        path: PathBuf,
        /// The system error.
        error: io::Error,
    },
    /// The FUSE handshake failed, or the session threads could not be started.
    #[error("the mount at {path} could not start: {error}", path = path.display())]
    Start {
        /// The path of the mount point.
        path: PathBuf,
        /// The system error.
        error: io::Error,
    },
}

/// An error that prevents an unmount.
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

fn source_hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => " (the mount needs Linux 4.11 or newer, which has statx(2))",
        _ => "",
    }
}

fn device_hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            " (`modprobe fuse` loads it; a container needs `--device /dev/fuse`)"
        }
        Some(libc::EACCES | libc::EPERM) => " (its mode or the rules of this container deny access to this user)",
        _ => "",
    }
}

fn mount_hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            " (mounting requires root, or fusermount3 of the package fuse3 and a mount point that belongs to the user)"
        }
        Some(libc::ENOENT) => " (users other than root need fusermount3, of the package fuse3)",
        _ => "",
    }
}
