//! What is mounted where, and what is swapped to.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use crate::device::Number;
use crate::root::{Root, bytes, names, text};

/// A line of `mountinfo` (proc(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// The mount's own number, as `fdinfo` of files that were opened by it has it (`mnt_id`).
    pub id: u64,
    /// The number that `stat` has of files on it.
    pub number: Number,
    /// Where.
    pub at: PathBuf,
    /// The sort of file system: `ext4`.
    pub file_system: String,
    /// What was mounted: a device's node, or any word.
    pub source: PathBuf,
}

/// What a process sees mounted; `self` is this one. The last of several at one place is the one that is seen. Where the system does not tell, nothing.
pub fn mounts(root: &Root, process: &str) -> Vec<Mounted> {
    let table = bytes(&root.path(format!("/proc/{process}/mountinfo"))).unwrap_or_default();
    table.split(|byte| *byte == b'\n').filter_map(mounted).collect()
}

/// `36 35 98:0 /root /place options [optional ...] - type source options`.
fn mounted(line: &[u8]) -> Option<Mounted> {
    let mut words = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let number = std::str::from_utf8(words.nth(1)?).ok()?.parse().ok()?;
    let at = path(words.nth(1)?);
    // Behind a mount's options any number of fields stand before the dash.
    words.find(|word| *word == b"-")?;
    let file_system = String::from_utf8_lossy(words.next()?).into_owned();
    Some(Mounted { id, number, at, file_system, source: path(words.next()?) })
}

/// The mount that a path lies on: the longest that it begins with.
pub(crate) fn mount_of<'a>(mounts: &'a [Mounted], path: &Path) -> Option<&'a Mounted> {
    // The last of those at one place covers the others.
    mounts.iter().filter(|mount| path.starts_with(&mount.at)).max_by_key(|mount| mount.at.components().count())
}

/// The nodes that the machine swaps to, from `/proc/swaps`. Files are not among them.
pub(crate) fn swaps(root: &Root) -> Vec<PathBuf> {
    let text = text(&root.path("/proc/swaps")).unwrap_or_default();
    let lines = text.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (name, sort) = (fields.next()?, fields.next()?);
        (sort == "partition").then(|| path(name.as_bytes()))
    });
    lines.collect()
}

/// The groups of devices that one btrfs each is made of, by the kernel's names: a mount tells only one of them.
pub(crate) fn btrfs_groups(root: &Root) -> Vec<Vec<String>> {
    let directory = root.path("/sys/fs/btrfs");
    let groups = names(&directory).into_iter().map(|uuid| names(&directory.join(uuid).join("devices")));
    groups.filter(|devices| !devices.is_empty()).collect()
}

/// A path, in which blanks, tabs, line ends and backslashes are written as `\040` and so on. It need not be UTF-8.
fn path(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, behind)) = rest.split_first() {
        let octal = behind.get(..3).filter(|_| first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[3..];
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_is_read_with_its_optional_fields_and_escapes() {
        let line =
            br"36 35 98:0 /mnt1 /mnt/my\040disk rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue";
        let mounted = mounted(line).unwrap();
        assert_eq!((mounted.id, mounted.number), (36, "98:0".parse().unwrap()));
        assert_eq!(mounted.at.to_str(), Some("/mnt/my disk"));
        assert_eq!((mounted.file_system.as_str(), mounted.source.to_str()), ("ext3", Some("/dev/root")));
        for garbage in ["", "36 35 98:0 /", "36 35 x / / - ext4 /dev/sda", "a - b", r"1 2 8:1 / /\9 - x"] {
            assert!(super::mounted(garbage.as_bytes()).is_none(), "{garbage}");
        }
    }

    #[test]
    fn a_path_lies_on_the_longest_mount_and_the_last_of_these() {
        let at = |at: &str, minor| Mounted {
            id: 1,
            number: Number { major: 8, minor },
            at: at.into(),
            file_system: "ext4".into(),
            source: "/dev/x".into(),
        };
        let mounts = [at("/", 1), at("/srv", 2), at("/srv/data", 3), at("/srv/data", 4)];
        let of = |path| mount_of(&mounts, Path::new(path)).unwrap().number.minor;
        assert_eq!(["/etc/passwd", "/srv/x", "/srv/database", "/srv/data/y", "/srv/data"].map(of), [1, 2, 2, 4, 4]);
    }

    #[test]
    fn escapes_that_are_none_stay() {
        let read = |text: &str| path(text.as_bytes());
        assert_eq!(
            [r"a\040b", r"a\134b", r"a\", r"a\99", r"\0"].map(read),
            ["a b", r"a\b", r"a\", r"a\99", r"\0"].map(PathBuf::from)
        );
    }

    #[test]
    fn what_this_machine_has_mounted_is_read() {
        let proc = mounts(&Root::machine(), "self").into_iter().rfind(|mounted| mounted.at == Path::new("/proc"));
        assert_eq!(proc.map(|mounted| mounted.file_system), Some("proc".into()));
        assert_eq!(mounts(&Root::at("/nothing/here"), "self"), []);
    }
}
