//! Whether anybody else uses what is about to be written over.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Why something must not be written to.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {what}: it is not written to", path = .path.display())]
pub struct InUse {
    /// What was named.
    pub path: PathBuf,
    /// Who uses it.
    pub what: String,
}

/// Checks that a file or block device is not mounted, no swap space, no part of a volume or RAID, and not behind a loop device. What is not there is not in use.
///
/// # Errors
/// Who uses it.
pub fn check_unused(path: &Path) -> Result<(), InUse> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    let what =
        if metadata.file_type().is_block_device() { use_of_device(path, metadata.rdev()) } else { use_of_file(path) };
    match what {
        Some(what) => Err(InUse { path: path.into(), what }),
        None => Ok(()),
    }
}

fn use_of_device(path: &Path, number: u64) -> Option<String> {
    let directory = sysfs(number);
    let own = vec![(directory.clone(), number)];
    let all: Vec<(Option<PathBuf>, u64)> = own.into_iter().chain(relatives(directory.as_deref())).collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    for (directory, number) in &all {
        let name = name_of(directory.as_deref(), path);
        if let Some(place) = mounted_at(&mounts, *number) {
            return Some(format!("{name} is mounted at {place}"));
        }
        if swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()).any(|swap| is_device(swap, *number))
        {
            return Some(format!("{name} is swap space"));
        }
        let holders = directory.as_deref().and_then(|directory| fs::read_dir(directory.join("holders")).ok());
        if let Some(holder) = holders.and_then(|mut holders| holders.next()?.ok()) {
            return Some(format!("{name} is part of {}", holder.file_name().display()));
        }
    }
    // The kernel knows best: other mount namespaces, and file systems of several devices, do not show above.
    match OpenOptions::new().read(true).custom_flags(libc::O_EXCL | libc::O_NONBLOCK).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Some(
            "the kernel says that somebody has it for himself (mounted elsewhere, or part of something)".to_owned(),
        ),
        _ => None,
    }
}

fn use_of_file(path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    let loops = fs::read_dir("/sys/block").ok()?.flatten().map(|entry| entry.path());
    for device in loops {
        let Ok(backing) = fs::read_to_string(device.join("loop/backing_file")) else { continue };
        if Path::new(backing.trim_end_matches('\n')) == path {
            return Some(format!("it is behind the loop device {}", name_of(Some(&device), &device)));
        }
    }
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let is_swap =
        swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()).any(|swap| Path::new(swap) == path);
    is_swap.then(|| "it is swap space".to_owned())
}

/// The partitions of a disk, or the disk of a partition: what is written to one is written to the other.
fn relatives(directory: Option<&Path>) -> Vec<(Option<PathBuf>, u64)> {
    let Some(directory) = directory else { return Vec::new() };
    let disk = if directory.join("partition").exists() { directory.parent().map(Path::to_path_buf) } else { None };
    let parts = fs::read_dir(directory).map(|entries| entries.flatten().map(|entry| entry.path()));
    let parts: Vec<PathBuf> =
        parts.map(|paths| paths.filter(|path| path.join("partition").exists()).collect()).unwrap_or_default();
    let numbered = disk.into_iter().chain(parts).filter_map(|path| {
        let number = fs::read_to_string(path.join("dev")).ok()?;
        let (major, minor) = number.trim().split_once(':')?;
        let number = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
        Some((Some(path), number))
    });
    numbered.collect()
}

fn sysfs(number: u64) -> Option<PathBuf> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()
}

/// Where a device is mounted, from `mountinfo` (proc(5): the third field is the device, the fifth the place; the second behind the lone `-` is the source).
fn mounted_at(mounts: &str, number: u64) -> Option<String> {
    let text = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    mounts.lines().find_map(|line| {
        let (before, behind) = line.split_once(" - ")?;
        let mut fields = before.split(' ');
        let is_it = fields.nth(2)? == text || behind.split(' ').nth(1).is_some_and(|source| is_device(source, number));
        // Two fields farther.
        is_it.then(|| fields.nth(1).unwrap_or("an unknown place").to_owned())
    })
}

fn is_device(path: &str, number: u64) -> bool {
    let metadata: io::Result<fs::Metadata> = fs::metadata(path);
    path.starts_with('/')
        && metadata.is_ok_and(|metadata| metadata.file_type().is_block_device() && metadata.rdev() == number)
}

fn name_of(directory: Option<&Path>, path: &Path) -> String {
    let name = directory.and_then(Path::file_name);
    name.map_or_else(|| path.display().to_string(), |name| format!("/dev/{}", name.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_mount_is_found_by_the_devices_number() {
        let mounts =
            "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n30 22 0:25 / /data rw - btrfs /dev/nothing rw\n";
        assert_eq!(mounted_at(mounts, rustix::fs::makedev(8, 1)).as_deref(), Some("/"));
        assert_eq!(mounted_at(mounts, rustix::fs::makedev(8, 2)), None);
    }

    #[test]
    fn a_file_of_ones_own_is_free_and_so_is_one_that_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("disk");
        assert!(check_unused(&file).is_ok());
        fs::write(&file, "x").unwrap();
        assert!(check_unused(&file).is_ok());
    }
}
