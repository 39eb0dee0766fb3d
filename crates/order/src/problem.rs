//! What went wrong with one path while the rest went on.

use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;

use crate::tree::Id;

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// To find out what a path is.
    Look,
    /// To open a file or a directory.
    Open,
    /// To read a directory.
    Read,
    /// To ask the file system where its data lie.
    Place,
}

/// One path that something is wrong with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The path, as it would be listed.
    pub path: Vec<u8>,
    /// Its name in the tree, if it is there.
    pub id: Option<Id>,
    /// What is wrong.
    pub what: Trouble,
}

/// What is wrong with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The system refused.
    Failed {
        /// What was tried.
        doing: Doing,
        /// What the system said.
        errno: Errno,
    },
    /// The path leads to another file than when it was found.
    Replaced,
    /// A directory that lies within itself, by a mount or by links that are followed; it is listed and not entered.
    Loop,
    /// The file system of this path does not tell where data lie: told once a file system. Nothing is lost.
    NoPlaces,
}

impl Problem {
    /// Something that the system refused.
    pub(crate) fn failed(path: Vec<u8>, id: impl Into<Option<Id>>, doing: Doing, errno: Errno) -> Problem {
        Problem { path, id: id.into(), what: Trouble::Failed { doing, errno } }
    }

    /// Whether the file is not there any more, or another one is in its place.
    pub fn is_gone(&self) -> bool {
        match self.what {
            Trouble::Failed { errno, .. } => errno == Errno::NOENT,
            Trouble::Replaced => true,
            Trouble::Loop | Trouble::NoPlaces => false,
        }
    }

    /// Whether it is only said: everything is listed all the same.
    pub fn is_note(&self) -> bool {
        self.what == Trouble::NoPlaces
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = shown(&self.path);
        match self.what {
            Trouble::Failed { doing, errno } => {
                let what = match doing {
                    Doing::Look => "cannot be looked at",
                    Doing::Open => "cannot be opened",
                    Doing::Read => "the directory cannot be read",
                    Doing::Place => "its place on the disk cannot be asked for",
                };
                write!(f, "{path}: {what}: {}", io::Error::from(errno))
            }
            Trouble::Replaced => write!(f, "{path}: another file has taken its place since it was found"),
            Trouble::Loop => write!(f, "{path}: this directory lies within itself; it is not entered again"),
            Trouble::NoPlaces => {
                write!(f, "{path}: its file system does not tell where data lie; its files are ordered by inode number")
            }
        }
    }
}

/// A path for people: what is not UTF-8, and what would move the cursor, as `\xff`.
pub fn shown(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\n' => text.push_str("\\n"),
                letter if letter.is_control() => text.extend(letter.escape_default()),
                letter => text.push(letter),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// The bytes of a path.
pub(crate) fn bytes(path: &std::path::Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_on_one_line_whatever_its_bytes() {
        assert_eq!(shown(b"a\nb\xff\x1b[2J\xc3\xa9"), "a\\nb\\xff\\u{1b}[2J\u{e9}");
    }

    #[test]
    fn a_problem_names_path_and_cause() {
        let problem = Problem::failed(b"a/b".to_vec(), None, Doing::Open, Errno::ACCESS);
        assert_eq!(problem.to_string(), "a/b: cannot be opened: Permission denied (os error 13)");
        assert!(!problem.is_note());
    }
}
