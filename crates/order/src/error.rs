//! Errors that concern one path. The walk and the lookup of extents continue after them.

use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;

use hoistway_units::printable;
use rustix::io::Errno;
use serde::{Serialize, Serializer};

use crate::tree::EntryId;

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// `stat` of a path.
    Stat,
    /// Opening a file or a directory.
    Open,
    /// Reading the entries of a directory.
    ReadDirectory,
    /// Reading the extents of a file (`FS_IOC_FIEMAP`).
    MapExtents,
}

/// An error that concerns one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathError {
    /// The path in the form in which it would be listed.
    #[serde(serialize_with = "serialize_path")]
    pub path: Vec<u8>,
    /// The entry of the path in the tree; `None` if the path is not in the tree.
    #[serde(skip)]
    pub id: Option<EntryId>,
    /// The cause.
    pub error: WalkError,
}

/// Why a path cannot be listed, entered or located.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WalkError {
    /// A system call failed.
    Failed {
        /// The operation.
        operation: Operation,
        /// The error number of the system call.
        #[serde(serialize_with = "serialize_errno")]
        errno: Errno,
    },
    /// The path leads to another file than at the time of the walk.
    Replaced,
    /// A directory that contains itself through a mount or a followed link. The walk lists the
    /// directory and does not enter it.
    Loop,
    /// The file system does not report extents. Reported once per file system; no name is lost.
    NoExtentMap,
}

impl PathError {
    /// Creates an error for a failed system call.
    pub(crate) fn failed(
        path: Vec<u8>,
        id: impl Into<Option<EntryId>>,
        operation: Operation,
        errno: Errno,
    ) -> PathError {
        PathError { path, id: id.into(), error: WalkError::Failed { operation, errno } }
    }

    /// Returns true if the file was removed or replaced after the walk found it.
    pub fn is_gone(&self) -> bool {
        match self.error {
            WalkError::Failed { errno, .. } => errno == Errno::NOENT,
            WalkError::Replaced => true,
            WalkError::Loop | WalkError::NoExtentMap => false,
        }
    }

    /// Returns true if the error is a note only: all names are listed all the same.
    pub fn is_note(&self) -> bool {
        self.error == WalkError::NoExtentMap
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = printable::bytes(&self.path);
        match self.error {
            WalkError::Failed { operation, errno } => {
                let what = match operation {
                    Operation::Stat => "stat failed",
                    Operation::Open => "cannot be opened",
                    Operation::ReadDirectory => "the directory cannot be read",
                    Operation::MapExtents => "its extents cannot be read",
                };
                write!(f, "{path}: {what}: {}", io::Error::from(errno))
            }
            WalkError::Replaced => write!(f, "{path}: the file was replaced after the walk found it"),
            WalkError::Loop => write!(f, "{path}: the directory contains itself and is not entered again"),
            WalkError::NoExtentMap => {
                write!(f, "{path}: the file system does not report extents; its files are sorted by inode number")
            }
        }
    }
}

/// Serialises a path as escaped text.
pub(crate) fn serialize_path<S: Serializer>(path: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&printable::bytes(path))
}

/// Serialises an error number as the number of the system.
pub(crate) fn serialize_errno<S: Serializer>(errno: &Errno, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_i32(errno.raw_os_error())
}

/// Returns the bytes of a path.
pub(crate) fn bytes(path: &std::path::Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_path_error_names_path_and_cause() {
        let problem = PathError::failed(b"a/b".to_vec(), None, Operation::Open, Errno::ACCESS);
        assert_eq!(problem.to_string(), "a/b: cannot be opened: Permission denied (os error 13)");
        assert!(!problem.is_note());
    }
}
