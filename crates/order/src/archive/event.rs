//! Events of an archive run: written members and warnings.

use std::fmt;
use std::io;

use rustix::io::Errno;

use super::header::FormatError;

/// An event of an archive run. Events are reported in the order of the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveEvent {
    /// The name of a member that was written.
    Member(Vec<u8>),
    /// A path with a warning. The run continues.
    Warning(Vec<u8>, ArchiveWarning),
}

/// The severity of a warning. It determines the exit code, as for GNU tar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A note without effect on the exit code.
    Note,
    /// The archive is complete but differs from the current tree: exit code 1.
    Differs,
    /// The archive lacks a file or an attribute: exit code 2.
    Error,
}

/// A warning about one path. The texts are those of GNU tar where other programs parse them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveWarning {
    /// The file was removed after the walk.
    Removed,
    /// The inode changed while the file was read.
    Changed,
    /// The file became shorter while it was read. The archive contains zeros instead.
    Shrank {
        /// Number of missing bytes.
        bytes: u64,
    },
    /// The file cannot be opened.
    Open(Errno),
    /// The file cannot be read. The archive contains zeros instead.
    Read {
        /// Offset of the failed read.
        at: u64,
        /// The error number of the system call.
        errno: Errno,
    },
    /// The target of the link cannot be read.
    ReadLink(Errno),
    /// The extended attributes cannot be read. The archive contains the file without them.
    Attributes(Errno),
    /// Sockets cannot be archived.
    Socket,
    /// The file is the archive that is being written.
    Itself,
    /// The archive format cannot represent the file.
    Format(FormatError),
}

impl ArchiveWarning {
    /// Returns the severity of the warning.
    pub fn severity(&self) -> Severity {
        match self {
            ArchiveWarning::Socket | ArchiveWarning::Itself => Severity::Note,
            ArchiveWarning::Removed | ArchiveWarning::Changed | ArchiveWarning::Shrank { .. } => Severity::Differs,
            ArchiveWarning::Open(_)
            | ArchiveWarning::Read { .. }
            | ArchiveWarning::ReadLink(_)
            | ArchiveWarning::Attributes(_)
            | ArchiveWarning::Format(_) => Severity::Error,
        }
    }

    /// Returns the warning for a failed `open`. A missing file counts as removed.
    pub fn opening(errno: Errno) -> ArchiveWarning {
        if errno == Errno::NOENT { ArchiveWarning::Removed } else { ArchiveWarning::Open(errno) }
    }
}

impl fmt::Display for ArchiveWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArchiveWarning::Removed => f.write_str("File removed before we read it"),
            ArchiveWarning::Changed => f.write_str("file changed as we read it"),
            ArchiveWarning::Shrank { bytes } => write!(f, "File shrank by {bytes} bytes; padding with zeros"),
            ArchiveWarning::Open(errno) => write!(f, "Cannot open: {}", error_text(*errno)),
            ArchiveWarning::Read { at, errno } => {
                write!(f, "Read error at byte {at}: {}; padding with zeros", error_text(*errno))
            }
            ArchiveWarning::ReadLink(errno) => write!(f, "Cannot readlink: {}", error_text(*errno)),
            ArchiveWarning::Attributes(errno) => {
                write!(f, "Cannot read its extended attributes: {}", error_text(*errno))
            }
            ArchiveWarning::Socket => f.write_str("socket ignored"),
            ArchiveWarning::Itself => f.write_str("archive cannot contain itself; not dumped"),
            ArchiveWarning::Format(error) => error.fmt(f),
        }
    }
}

/// Returns the system's text for an error number, without the number.
pub fn error_text(errno: Errno) -> String {
    let text = io::Error::from(errno).to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_have_the_texts_that_programs_parse() {
        assert_eq!(ArchiveWarning::Open(Errno::ACCESS).to_string(), "Cannot open: Permission denied");
        assert_eq!(ArchiveWarning::Shrank { bytes: 7 }.to_string(), "File shrank by 7 bytes; padding with zeros");
        assert_eq!(ArchiveWarning::opening(Errno::NOENT), ArchiveWarning::Removed);
    }

    #[test]
    fn a_missing_file_is_more_severe_than_a_changed_one() {
        assert!(ArchiveWarning::Open(Errno::ACCESS).severity() > ArchiveWarning::Changed.severity());
        assert!(ArchiveWarning::Removed.severity() > ArchiveWarning::Socket.severity());
    }
}
