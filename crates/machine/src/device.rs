//! Block devices.

use std::path::PathBuf;

use serde::Serialize;

use crate::device_number::DeviceNumber;
use crate::files::read_switch;
use crate::identity::Identity;
use crate::kind::Kind;
use crate::queue::Queue;

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
        read_switch(&self.sysfs.join("device/ncq_prio_enable"))
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
