//! Mounted file systems and swap devices, from `/proc/PID/mountinfo` and `/proc/swaps`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use crate::device_number::DeviceNumber;
use crate::files::{list_names, read_bytes};
use crate::root::Root;

/// A mount: one line of `mountinfo` (proc(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountEntry {
    /// The mount id, as `mnt_id` of `/proc/PID/fdinfo/FD` has it.
    pub id: u64,
    /// The device number that `stat` returns for files of this file system.
    pub number: DeviceNumber,
    /// The mount point.
    pub mount_point: PathBuf,
    /// The file system type: `ext4`.
    pub file_system: String,
    /// The mount source: a device node, or any word.
    pub source: PathBuf,
}

/// Lists the mounts that a process sees, in the order of `mountinfo`: the last of several at one
/// mount point covers the others. `process` is a process id or `self`. Empty if the file cannot be
/// read; lines of another form are skipped.
pub fn mounts(root: &Root, process: &str) -> Vec<MountEntry> {
    let table = read_bytes(&root.path(format!("/proc/{process}/mountinfo"))).unwrap_or_default();
    table.split(|byte| *byte == b'\n').filter_map(parse_mount).collect()
}

/// Parses `36 35 98:0 /root /mount/point options [optional ...] - type source options`.
fn parse_mount(line: &[u8]) -> Option<MountEntry> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let number = std::str::from_utf8(fields.nth(1)?).ok()?.parse().ok()?;
    let mount_point = unescape(fields.nth(1)?);
    // Any number of optional fields stands between the mount's options and the dash.
    fields.find(|field| *field == b"-")?;
    let file_system = String::from_utf8_lossy(fields.next()?).into_owned();
    Some(MountEntry { id, number, mount_point, file_system, source: unescape(fields.next()?) })
}

/// The mount that a path belongs to: the one with the longest mount point that is a prefix of the
/// path.
pub(crate) fn mount_of<'a>(mounts: &'a [MountEntry], path: &Path) -> Option<&'a MountEntry> {
    // `max_by_key` returns the last of equals, which covers the others.
    let holding = mounts.iter().filter(|mount| path.starts_with(&mount.mount_point));
    holding.max_by_key(|mount| mount.mount_point.components().count())
}

/// A swap area of the machine: one line of `/proc/swaps` (proc(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapArea {
    /// The path of the device node or swap file.
    pub path: PathBuf,
    /// True for a block device, false for a swap file.
    pub is_device: bool,
}

/// Lists the swap areas of the machine. Empty if the file cannot be read; lines of another form are
/// skipped.
pub fn swap_areas(root: &Root) -> Vec<SwapArea> {
    let text = read_bytes(&root.path("/proc/swaps")).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
        let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
        let (path, kind) = (unescape(fields.next()?), fields.next()?);
        Some(SwapArea { path, is_device: kind == b"partition" })
    });
    lines.collect()
}

/// The member devices of each mounted btrfs, by the kernel's names: a mount names only one of them.
pub(crate) fn btrfs_members(root: &Root) -> Vec<Vec<String>> {
    let directory = root.path("/sys/fs/btrfs");
    let groups = list_names(&directory).into_iter().map(|uuid| list_names(&directory.join(uuid).join("devices")));
    groups.filter(|devices| !devices.is_empty()).collect()
}

/// Decodes a path in which blanks, tabs, line ends and backslashes are octal: `\040`. A path need
/// not be UTF-8.
fn unescape(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail.get(..3).filter(|_| first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_is_parsed_with_optional_fields_and_escapes() {
        let line =
            br"36 35 98:0 /mnt1 /mnt/my\040disk rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue";
        let mount = parse_mount(line).unwrap();
        assert_eq!((mount.id, mount.number), (36, "98:0".parse().unwrap()));
        assert_eq!(mount.mount_point.to_str(), Some("/mnt/my disk"));
        assert_eq!((mount.file_system.as_str(), mount.source.to_str()), ("ext3", Some("/dev/root")));
        for garbage in ["", "36 35 98:0 /", "36 35 x / / - ext4 /dev/sda", "a - b", r"1 2 8:1 / /\9 - x"] {
            assert!(parse_mount(garbage.as_bytes()).is_none(), "{garbage}");
        }
    }

    #[test]
    fn a_path_belongs_to_the_longest_mount_point_and_the_last_of_equals() {
        let mount = |at: &str, minor| MountEntry {
            id: 1,
            number: DeviceNumber { major: 8, minor },
            mount_point: at.into(),
            file_system: "ext4".into(),
            source: "/dev/x".into(),
        };
        let mounts = [mount("/", 1), mount("/srv", 2), mount("/srv/data", 3), mount("/srv/data", 4)];
        let found = |path| mount_of(&mounts, Path::new(path)).unwrap().number.minor;
        assert_eq!(["/etc/passwd", "/srv/x", "/srv/database", "/srv/data/y", "/srv/data"].map(found), [1, 2, 2, 4, 4]);
    }

    #[test]
    fn octal_escapes_are_decoded_and_other_backslashes_stay() {
        let read = |text: &str| unescape(text.as_bytes());
        assert_eq!(
            [r"a\040b", r"a\134b", r"a\", r"a\99", r"\0"].map(read),
            ["a b", r"a\b", r"a\", r"a\99", r"\0"].map(PathBuf::from)
        );
        let bytes = unescape(b"caf\xe9\\040x").into_os_string().into_vec();
        assert_eq!(bytes, b"caf\xe9 x");
    }

    #[test]
    fn swap_devices_and_swap_files_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        let table = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
                     /dev/sda2                               partition\t8388604\t\t0\t\t-2\n\
                     /my\\040swap                              file\t\t1048572\t\t0\t\t-3\n\nx\n";
        std::fs::write(folder.path().join("proc/swaps"), table).unwrap();
        let area = |path: &str, is_device| SwapArea { path: path.into(), is_device };
        assert_eq!(swap_areas(&Root::at(folder.path())), [area("/dev/sda2", true), area("/my swap", false)]);
    }

    #[test]
    fn the_mounts_of_the_running_machine_are_read() {
        let proc = mounts(&Root::machine(), "self").into_iter().rfind(|mount| mount.mount_point == Path::new("/proc"));
        assert_eq!(proc.map(|mount| mount.file_system), Some("proc".into()));
        assert_eq!(mounts(&Root::at("/nothing/here"), "self"), []);
    }
}
