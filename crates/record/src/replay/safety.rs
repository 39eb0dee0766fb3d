//! Checks that a target of writes is not in use.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hoistway_machine::{DeviceNumber, MountEntry, Root, SysfsDevice, mounts, swap_areas};

/// The reason for which a target must not be overwritten.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {what}: refusing to overwrite it", path = .path.display())]
pub struct InUse {
    /// The path as given.
    pub path: PathBuf,
    /// The use of the target.
    pub what: String,
}

/// Checks that a file or block device is not mounted, is no swap space, belongs to no volume or
/// RAID, and is not behind a loop device. A missing file is not in use.
///
/// # Errors
/// The target is in use.
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
    let root = Root::machine();
    let own = SysfsDevice::of(&root, DeviceNumber::from_stat(number));
    let all = std::iter::once((own.clone(), number)).chain(relatives(own.as_ref()));
    let mounts = mounts(&root, "self");
    let swap_areas = swap_areas(&root);
    for (entry, number) in all {
        let name = entry.as_ref().map_or(path.to_path_buf(), SysfsDevice::node);
        let name = name.display();
        if let Some(place) = mounted_at(&mounts, number) {
            return Some(format!("{name} is mounted at {}", place.display()));
        }
        if swap_areas.iter().any(|area| is_device(&area.path, number)) {
            return Some(format!("{name} is swap space"));
        }
        if let Some(holder) = entry.iter().flat_map(SysfsDevice::holders).next() {
            return Some(format!("{name} is part of {}", holder.name()));
        }
    }
    // The kernel's answer covers other mount namespaces and file systems of several devices, which
    // the checks above do not see.
    match OpenOptions::new().read(true).custom_flags(libc::O_EXCL | libc::O_NONBLOCK).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Some(
            "the kernel reports exclusive use (it is mounted in another namespace, or part of a larger device)"
                .to_owned(),
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
            return Some(format!(
                "it is behind the loop device {}",
                device.file_name().map_or_else(String::new, |name| format!("/dev/{}", name.display()))
            ));
        }
    }
    let is_swap = swap_areas(&Root::machine()).iter().any(|area| area.path == path);
    is_swap.then(|| "it is swap space".to_owned())
}

/// Returns the partitions of a disk, or the disk of a partition: a write to one changes the other.
fn relatives(entry: Option<&SysfsDevice>) -> impl Iterator<Item = (Option<SysfsDevice>, u64)> {
    let disk = entry.filter(|entry| entry.is_partition()).map(SysfsDevice::disk);
    let parts = entry.map(SysfsDevice::partitions).unwrap_or_default();
    disk.into_iter().chain(parts).filter_map(|entry| Some((Some(entry.clone()), entry.number()?.to_stat())))
}

/// Returns the mount point of a device, found by its number or by its node.
fn mounted_at(mounts: &[MountEntry], number: u64) -> Option<&Path> {
    let is_it = |mount: &&MountEntry| mount.number.to_stat() == number || is_device(&mount.source, number);
    mounts.iter().find(is_it).map(|mount| mount.mount_point.as_path())
}

fn is_device(path: &Path, number: u64) -> bool {
    path.is_absolute() && DeviceNumber::from_node(path).is_some_and(|node| node.to_stat() == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_is_found_by_the_device_number() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("proc/self")).unwrap();
        let table =
            "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n30 22 0:25 / /data rw - btrfs /dev/nothing rw\n";
        fs::write(folder.path().join("proc/self/mountinfo"), table).unwrap();
        let mounts = mounts(&Root::at(folder.path()), "self");
        assert_eq!(mounted_at(&mounts, rustix::fs::makedev(8, 1)), Some(Path::new("/")));
        assert_eq!(mounted_at(&mounts, rustix::fs::makedev(8, 2)), None);
    }

    #[test]
    fn an_unused_file_and_a_missing_file_are_free() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("disk");
        assert!(check_unused(&file).is_ok());
        fs::write(&file, "x").unwrap();
        assert!(check_unused(&file).is_ok());
    }
}
