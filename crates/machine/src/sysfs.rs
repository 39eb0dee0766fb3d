//! The directory of one block device in sysfs, found by number or name without a scan of all
//! devices.

use std::fs;
use std::path::{Path, PathBuf};

use crate::device_number::DeviceNumber;
use crate::files::{list_names, read_number, read_switch, read_text};
use crate::root::Root;

/// The unit of sizes and offsets in sysfs, in bytes, whatever the block size of the device.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// The directory of a whole block device or a partition in sysfs.
///
/// ```
/// use hoistway_machine::{SysfsDevice, Root};
/// assert!(SysfsDevice::named(&Root::machine(), "nosuchdisk").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysfsDevice(PathBuf);

impl SysfsDevice {
    /// Finds a device by its number; `None` if the machine has no such block device.
    pub fn of(root: &Root, number: DeviceNumber) -> Option<SysfsDevice> {
        fs::canonicalize(root.path(format!("/sys/dev/block/{number}"))).ok().map(SysfsDevice)
    }

    /// Finds a device by the kernel's name: `sda1`.
    pub fn named(root: &Root, name: &str) -> Option<SysfsDevice> {
        let name = name.replace('/', "!");
        let is_valid = !name.is_empty() && name != "." && name != "..";
        let path = is_valid.then(|| root.path("/sys/class/block").join(name))?;
        fs::canonicalize(path).ok().map(SysfsDevice)
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The name in sysfs, where an exclamation mark stands for a slash.
    pub fn name(&self) -> String {
        self.0.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The device node, by the kernel's name.
    pub fn node(&self) -> PathBuf {
        Path::new("/dev").join(kernel_name(&self.name()))
    }

    /// The device number; `None` if the device has vanished.
    pub fn number(&self) -> Option<DeviceNumber> {
        read_text(&self.0.join("dev"))?.parse().ok()
    }

    /// The size in bytes.
    pub fn bytes(&self) -> Option<u64> {
        read_number::<u64>(&self.0.join("size"))?.checked_mul(SECTOR_BYTES)
    }

    /// True if the kernel takes the device for a rotating disk; `None` for a partition.
    pub fn rotates(&self) -> Option<bool> {
        read_switch(&self.0.join("queue/rotational"))
    }

    /// Returns true for a partition.
    pub fn is_partition(&self) -> bool {
        self.0.join("partition").exists()
    }

    /// The whole device: the disk of a partition, else the device itself.
    pub fn disk(&self) -> SysfsDevice {
        let disk = if self.is_partition() { self.0.parent() } else { None };
        SysfsDevice(disk.unwrap_or(&self.0).to_path_buf())
    }

    /// The offset of a partition on its disk, in bytes; 0 for a whole device.
    pub fn start_bytes(&self) -> Option<u64> {
        if self.is_partition() { read_number::<u64>(&self.0.join("start"))?.checked_mul(SECTOR_BYTES) } else { Some(0) }
    }

    /// The partitions of the device.
    pub fn partitions(&self) -> Vec<SysfsDevice> {
        let all = list_names(&self.0).into_iter().map(|name| SysfsDevice(self.0.join(name)));
        all.filter(SysfsDevice::is_partition).collect()
    }

    /// The volumes and arrays that contain the device.
    pub fn holders(&self) -> Vec<SysfsDevice> {
        let directory = self.0.join("holders");
        list_names(&directory)
            .into_iter()
            .filter_map(|name| fs::canonicalize(directory.join(name)).ok().map(SysfsDevice))
            .collect()
    }
}

/// The kernel's name of a device from its name in sysfs, where `!` stands for `/`: `cciss!c0d0`.
pub(crate) fn kernel_name(name: &str) -> String {
    name.replace('!', "/")
}
