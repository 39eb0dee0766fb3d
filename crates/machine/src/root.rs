//! The tree that stands for the machine.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// What is read of one file at most, in bytes: attributes are a page, `mountinfo` of a machine with thousands of mounts is larger.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A directory that stands for `/`: below it lie `sys`, `proc`, `run`, `etc` and `dev` as the kernel and udev have them.
///
/// ```
/// use hoistway_machine::Root;
/// let copied = Root::at("/srv/copies/db1");
/// assert_eq!(copied.path("/sys/block").to_str(), Some("/srv/copies/db1/sys/block"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// This machine.
    pub fn machine() -> Root {
        Root(PathBuf::from("/"))
    }

    /// Another tree: a copy of another machine's, or one that a test has made.
    pub fn at(path: impl Into<PathBuf>) -> Root {
        Root(path.into())
    }

    /// Whether it is this machine: only then do system calls tell of what the files do.
    pub fn is_machine(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Where an absolute path of the machine lies.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.0.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// What a place below the root is called on the machine itself.
    pub fn own(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.0).map_or_else(|_| path.to_path_buf(), |below| Path::new("/").join(below))
    }
}

/// What a file holds, without the blanks around it; nothing if it cannot be read. What is no UTF-8 is replaced.
pub(crate) fn text(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&bytes(path)?).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
}

/// What a file holds, as it stands there.
pub(crate) fn bytes(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The same as text, of a file that says something.
pub(crate) fn said(path: &Path) -> Option<String> {
    text(path).filter(|text| !text.is_empty())
}

/// A number that is alone in a file.
pub(crate) fn number<N: std::str::FromStr>(path: &Path) -> Option<N> {
    text(path)?.parse().ok()
}

/// A switch: 0 or 1.
pub(crate) fn switch(path: &Path) -> Option<bool> {
    match text(path)?.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// The names in a directory, in the order that people count in: `sd2` before `sd10`. None if there is no such directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory)
        .map(|entries| entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<_>>());
    let mut names = entries.unwrap_or_default();
    names.sort_by(|one, other| compare(one, other));
    names
}

/// Compares names by their words and their numbers: of `sda2` and `sda10` the first is the lesser.
pub(crate) fn compare(one: &str, other: &str) -> std::cmp::Ordering {
    let (one_parts, other_parts) = (parts(one), parts(other));
    one_parts.cmp(&other_parts).then_with(|| one.cmp(other))
}

/// A part of a name: a word, how many letters a disk has behind it, which, and the number that follows.
type Part = (String, usize, String, u64);

/// A name's parts. `sda` comes before `sda1`, and `sdaa` behind `sdz`.
fn parts(name: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let word_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(word_end);
        let digits_end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
        let (digits, behind) = behind.split_at(digits_end);
        // Without a number comes before any; a number that is too large to be one comes last.
        let number =
            if digits.is_empty() { 0 } else { digits.parse::<u64>().unwrap_or(u64::MAX - 1).saturating_add(1) };
        // Disks are lettered as the columns of a sheet are: two letters come behind one.
        let lettered = ["sd", "vd", "xvd"].iter().find_map(|begin| Some((*begin, word.strip_prefix(begin)?)));
        let (begin, letters) = lettered.unwrap_or((word, ""));
        parts.push((begin.to_owned(), letters.len(), letters.to_owned(), number));
        rest = behind;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_that_people_count_in() {
        let mut names = ["sdaa", "sda10", "sdb", "sda2", "sda", "nvme0n1p2", "nvme0n1", "dm-10", "dm-9", "sdz"];
        names.sort_by(|one, other| compare(one, other));
        assert_eq!(names, ["dm-9", "dm-10", "nvme0n1", "nvme0n1p2", "sda", "sda2", "sda10", "sdb", "sdz", "sdaa"]);
    }

    #[test]
    fn a_path_of_the_machine_lies_below_the_root_and_is_called_as_before() {
        let root = Root::at("/srv/copy");
        let below = root.path("/sys/block/sda");
        assert_eq!(below, Path::new("/srv/copy/sys/block/sda"));
        assert_eq!(root.own(&below), Path::new("/sys/block/sda"));
        assert_eq!(Root::machine().path("/sys"), Path::new("/sys"));
    }
}
