//! Block devices and their numbers.

use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::identity::Identity;
use crate::kind::Kind;
use crate::queue::Queue;

/// A device number, `MAJOR:MINOR`, as `stat` and traces contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// The number of the driver.
    pub major: u32,
    /// The number of the device among those of the driver.
    pub minor: u32,
}

impl DeviceNumber {
    /// Decodes `st_dev` or `st_rdev` of `stat`.
    pub fn from_stat(number: u64) -> DeviceNumber {
        DeviceNumber { major: rustix::fs::major(number), minor: rustix::fs::minor(number) }
    }

    /// Encodes the number as `st_dev` and `st_rdev` of `stat`.
    pub fn to_stat(self) -> u64 {
        rustix::fs::makedev(self.major, self.minor)
    }

    /// The number of a block device node; `None` if the path is no such node.
    pub fn from_node(path: &Path) -> Option<DeviceNumber> {
        let found = fs::metadata(path).ok()?;
        found.file_type().is_block_device().then(|| DeviceNumber::from_stat(found.rdev()))
    }

    /// Returns true for the number of a file system without a block device, such as btrfs or tmpfs.
    pub fn is_anonymous(self) -> bool {
        self.major == 0
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// A text is no device number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the number of a device is written MAJOR:MINOR, as in 8:0")]
pub struct DeviceNumberError;

impl FromStr for DeviceNumber {
    type Err = DeviceNumberError;

    fn from_str(text: &str) -> Result<DeviceNumber, DeviceNumberError> {
        let (major, minor) = text.split_once(':').ok_or(DeviceNumberError)?;
        Ok(DeviceNumber {
            major: major.parse().map_err(|_| DeviceNumberError)?,
            minor: minor.parse().map_err(|_| DeviceNumberError)?,
        })
    }
}

impl Serialize for DeviceNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A block device: a whole one, or a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockDevice {
    /// The kernel's name: `sda`, `nvme0n1p2`, `dm-0`.
    pub name: String,
    /// The device node: `/dev/sda`.
    pub path: PathBuf,
    /// The device number.
    pub number: DeviceNumber,
    /// The kind of device, from its driver.
    pub kind: Kind,
    /// The name below `/dev/mapper`, or the level of an array, as `raid1`.
    pub label: Option<String>,
    /// The size in bytes; 0 without a medium or a backing file.
    pub bytes: u64,
    /// True if the medium is removable, according to the device.
    pub removable: bool,
    /// True if the device refuses writes.
    pub read_only: bool,
    /// Vendor, model and serial number as the device reports them.
    pub identity: Identity,
    /// The queue with its scheduler; `None` for a partition, which uses the queue of its disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The disk of a partition.
    pub disk: Option<String>,
    /// The names of the partitions.
    pub partitions: Vec<String>,
    /// The volumes and arrays that contain the device. Those of its partitions are not repeated.
    pub holders: Vec<String>,
    /// The devices that a volume or array is made of.
    pub slaves: Vec<String>,
    /// The backing file of a loop device.
    pub backing_file: Option<PathBuf>,
    /// The mount points.
    pub mounts: Vec<Mount>,
    /// True if the machine swaps to the device.
    pub swap: bool,
    /// The directory in sysfs, below the root.
    #[serde(skip)]
    pub sysfs: PathBuf,
    /// Properties in udev's database: names and values.
    #[serde(skip)]
    pub(crate) udev: Vec<(String, String)>,
}

impl BlockDevice {
    /// Returns true if the device has a medium: not a loop device without a file, an idle network
    /// device or an empty optical drive.
    pub fn is_present(&self) -> bool {
        self.bytes > 0
    }

    /// True if the kernel forwards the class realtime to a SATA disk, which then prefers those
    /// commands; `None` if the device does not support that.
    pub fn forwards_priority(&self) -> Option<bool> {
        crate::files::read_switch(&self.sysfs.join("device/ncq_prio_enable"))
    }

    /// A property in udev's database, as `ID_SERIAL`.
    pub fn udev(&self, name: &str) -> Option<&str> {
        self.udev.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A mount point of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// The path of the mount point.
    pub at: PathBuf,
    /// The file system type: `ext4`.
    pub file_system: String,
}

/// A process that has a device open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Opener {
    /// The process id.
    pub pid: u32,
    /// The command name.
    pub comm: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_number_is_parsed_and_formatted() {
        assert_eq!("259:3".parse(), Ok(DeviceNumber { major: 259, minor: 3 }));
        assert_eq!(DeviceNumber { major: 8, minor: 1 }.to_string(), "8:1");
        for garbage in ["", "8", "8:", ":1", "8:1:2", "a:b", "-1:2"] {
            assert_eq!(garbage.parse::<DeviceNumber>(), Err(DeviceNumberError), "{garbage}");
        }
    }
}
