//! The directory tree that stands for a machine.

use std::path::{Path, PathBuf};

/// A directory that stands for `/`: `sys`, `proc`, `run`, `etc` and `dev` lie below it, in the form
/// that the kernel and udev give them.
///
/// ```
/// use hoistway_machine::Root;
/// let copied = Root::at("/srv/copies/db1");
/// assert_eq!(copied.path("/sys/block").to_str(), Some("/srv/copies/db1/sys/block"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// The running machine: `/`.
    pub fn machine() -> Root {
        Root(PathBuf::from("/"))
    }

    /// Another tree: a copy of another machine's files, or one that a test has made.
    pub fn at(path: impl Into<PathBuf>) -> Root {
        Root(path.into())
    }

    /// Returns true for the running machine. Only there do system calls agree with the files.
    pub fn is_machine(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// The path below the root of an absolute path of the machine.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.0.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// The machine's own path of a path below the root: the inverse of [`Root::path`].
    pub fn machine_path(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.0).map_or_else(|_| path.to_path_buf(), |below| Path::new("/").join(below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_machine_goes_below_the_root_and_back() {
        let root = Root::at("/srv/copy");
        let below = root.path("/sys/block/sda");
        assert_eq!(below, Path::new("/srv/copy/sys/block/sda"));
        assert_eq!(root.machine_path(&below), Path::new("/sys/block/sda"));
        assert_eq!(Root::machine().path("/sys"), Path::new("/sys"));
    }
}
