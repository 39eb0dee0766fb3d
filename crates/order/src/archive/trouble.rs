//! What is told while an archive is written.

use std::fmt;
use std::io;

use rustix::io::Errno;

use super::header::Unfit;

/// Something to tell while an archive is written, in the order of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A member was written: its name.
    Member(Vec<u8>),
    /// Something is wrong with a path, and the rest goes on.
    Trouble(Vec<u8>, Trouble),
}

/// How bad something is: what GNU tar ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing: it is only said.
    Note,
    /// The archive is whole and does not have what is in the tree by now: exit code 1.
    Differs,
    /// Something is not in the archive: exit code 2.
    Error,
}

/// What is wrong with a path. Its text is GNU tar's where programs look for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It was there when it was looked for.
    Removed,
    /// Its inode changed while it was read.
    Changed,
    /// It ended early; the archive has zeros in its place.
    Shrank {
        /// How many.
        bytes: u64,
    },
    /// It cannot be opened.
    Open(Errno),
    /// It cannot be read; the archive has zeros in its place.
    Read {
        /// Where.
        at: u64,
        /// Why.
        errno: Errno,
    },
    /// Its target cannot be read.
    ReadLink(Errno),
    /// Its extended attributes cannot be read; it is in the archive without them.
    Attributes(Errno),
    /// Sockets cannot be archived.
    Socket,
    /// It is the archive.
    Itself,
    /// The format cannot hold it.
    Unfit(Unfit),
}

impl Trouble {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        match self {
            Trouble::Socket | Trouble::Itself => Severity::Note,
            Trouble::Removed | Trouble::Changed | Trouble::Shrank { .. } => Severity::Differs,
            Trouble::Open(_)
            | Trouble::Read { .. }
            | Trouble::ReadLink(_)
            | Trouble::Attributes(_)
            | Trouble::Unfit(_) => Severity::Error,
        }
    }

    /// What opening answered: what is not there any more was taken away.
    pub fn opening(errno: Errno) -> Trouble {
        if errno == Errno::NOENT { Trouble::Removed } else { Trouble::Open(errno) }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Removed => f.write_str("File removed before we read it"),
            Trouble::Changed => f.write_str("file changed as we read it"),
            Trouble::Shrank { bytes } => write!(f, "File shrank by {bytes} bytes; padding with zeros"),
            Trouble::Open(errno) => write!(f, "Cannot open: {}", said(*errno)),
            Trouble::Read { at, errno } => write!(f, "Read error at byte {at}: {}; padding with zeros", said(*errno)),
            Trouble::ReadLink(errno) => write!(f, "Cannot readlink: {}", said(*errno)),
            Trouble::Attributes(errno) => write!(f, "Cannot read its extended attributes: {}", said(*errno)),
            Trouble::Socket => f.write_str("socket ignored"),
            Trouble::Itself => f.write_str("archive cannot contain itself; not dumped"),
            Trouble::Unfit(unfit) => unfit.fmt(f),
        }
    }
}

/// What the system says to an error, without its number.
pub fn said(errno: Errno) -> String {
    let text = io::Error::from(errno).to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_as_programs_look_for_it() {
        assert_eq!(Trouble::Open(Errno::ACCESS).to_string(), "Cannot open: Permission denied");
        assert_eq!(Trouble::Shrank { bytes: 7 }.to_string(), "File shrank by 7 bytes; padding with zeros");
        assert_eq!(Trouble::opening(Errno::NOENT), Trouble::Removed);
    }

    #[test]
    fn what_is_missing_is_worse_than_what_differs() {
        assert!(Trouble::Open(Errno::ACCESS).severity() > Trouble::Changed.severity());
        assert!(Trouble::Removed.severity() > Trouble::Socket.severity());
    }
}
