//! Mount points of this machine.

use hoistway_machine::{DeviceNumber, Root, mounts};
use rustc_hash::FxHashSet;

use crate::error::bytes;
use crate::open;

/// Returns device and inode number of each directory that contains a mount point. The directory
/// entry of a mount point has the inode number of the covered directory. Empty if the system has no
/// mount table.
pub fn directories_with_mounts() -> FxHashSet<(u64, u64)> {
    let mounts = mounts(&Root::machine(), "self");
    let directories: FxHashSet<Vec<u8>> =
        mounts.iter().filter_map(|mount| mount.mount_point.parent().map(bytes)).collect();
    directories.iter().filter_map(|directory| open::identity(None, directory)).collect()
}

/// Returns the type of the mounted file system of a device, such as `ext4`; `None` if no such mount
/// is known.
pub fn kind(device: u64) -> Option<String> {
    let number = DeviceNumber::from_stat(device);
    mounts(&Root::machine(), "self").into_iter().find(|mount| mount.number == number).map(|mount| mount.file_system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_a_mount_point_is_known() {
        let Ok(stat) = rustix::fs::stat("/") else { return };
        // Every Linux mounts /proc.
        assert!(directories_with_mounts().contains(&(stat.st_dev, stat.st_ino)));
    }

    #[test]
    fn the_file_system_type_of_a_device_is_known() {
        let Ok(stat) = rustix::fs::stat("/proc") else { return };
        assert_eq!(kind(stat.st_dev).as_deref(), Some("proc"));
        assert_eq!(kind(u64::MAX), None);
    }
}
