//! What is mounted, and where.

use hoistway_machine::{DeviceNumber, Root, mounts};
use rustc_hash::FxHashSet;

use crate::problem::bytes;
use crate::reach;

/// The directories with a place in them that something is mounted on, by file system and number: there a directory tells the number of what
/// lies under the mount. Where the system does not tell, none.
pub fn directories_with_mounts() -> FxHashSet<(u64, u64)> {
    let mounts = mounts(&Root::machine(), "self");
    let directories: FxHashSet<Vec<u8>> =
        mounts.iter().filter_map(|mount| mount.mount_point.parent().map(bytes)).collect();
    directories.iter().filter_map(|directory| reach::identity(None, directory)).collect()
}

/// What kind of file system (`ext4`) is mounted from a device; `None` where the system does not tell.
pub fn kind(device: u64) -> Option<String> {
    let number = DeviceNumber::from_stat(device);
    mounts(&Root::machine(), "self").into_iter().find(|mount| mount.number == number).map(|mount| mount.file_system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_something_is_mounted_on_makes_its_directory_known() {
        let Ok(stat) = rustix::fs::stat("/") else { return };
        // Every Linux has /proc.
        assert!(directories_with_mounts().contains(&(stat.st_dev, stat.st_ino)));
    }

    #[test]
    fn a_device_s_file_system_is_known_by_its_kind() {
        let Ok(stat) = rustix::fs::stat("/proc") else { return };
        assert_eq!(kind(stat.st_dev).as_deref(), Some("proc"));
        assert_eq!(kind(u64::MAX), None);
    }
}
