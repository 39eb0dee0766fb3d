//! A block device, as the kernel tells of it.

use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::identity::Identity;
use crate::kind::Kind;
use crate::queue::Queue;

/// The number of a device: what `stat` and traces call it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    /// The driver's.
    pub major: u32,
    /// The driver's for this device.
    pub minor: u32,
}

impl Number {
    /// A number as `stat` has it in `st_dev` and `st_rdev`.
    pub fn of_stat(number: u64) -> Number {
        Number { major: rustix::fs::major(number), minor: rustix::fs::minor(number) }
    }

    /// The same as `stat` has it.
    pub fn as_stat(self) -> u64 {
        rustix::fs::makedev(self.major, self.minor)
    }

    /// The number of the block device whose node a path is; none where it is no such node.
    pub fn of_node(path: &Path) -> Option<Number> {
        let found = fs::metadata(path).ok()?;
        found.file_type().is_block_device().then(|| Number::of_stat(found.rdev()))
    }

    /// Whether it is of a file system without a device of its own, as btrfs and tmpfs have it.
    pub fn is_anonymous(self) -> bool {
        self.major == 0
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// The text is no number of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the number of a device is written MAJOR:MINOR, as in 8:0")]
pub struct NumberError;

impl FromStr for Number {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Number, NumberError> {
        let (major, minor) = text.split_once(':').ok_or(NumberError)?;
        Ok(Number { major: major.parse().map_err(|_| NumberError)?, minor: minor.parse().map_err(|_| NumberError)? })
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A block device: a whole one, or a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockDevice {
    /// The kernel's name: `sda`, `nvme0n1p2`, `dm-0`.
    pub name: String,
    /// Its node: `/dev/sda`.
    pub path: PathBuf,
    /// Its number.
    pub number: Number,
    /// What sort of thing it is.
    pub kind: Kind,
    /// Of a device of the device mapper: the name under `/dev/mapper`; of an array: its level, as `raid1`.
    pub label: Option<String>,
    /// Its size in bytes; 0 where there is no medium, or nothing is attached.
    pub bytes: u64,
    /// What can be taken out, or says so.
    pub removable: bool,
    /// Writes are refused.
    pub read_only: bool,
    /// What it says it is.
    pub identity: Identity,
    /// The queue with its scheduler; a partition has its disk's, which is not repeated here.
    pub queue: Option<Queue>,
    /// Of a partition: the disk that it is part of.
    pub disk: Option<String>,
    /// Its partitions.
    pub partitions: Vec<String>,
    /// The devices that are made of it: volumes, arrays. Those made of its partitions are theirs.
    pub holders: Vec<String>,
    /// The devices that it is made of.
    pub slaves: Vec<String>,
    /// Of a loop device: the file that it shows.
    pub backing_file: Option<PathBuf>,
    /// Where it is mounted.
    pub mounts: Vec<Mount>,
    /// Whether the machine swaps to it.
    pub swap: bool,
    /// Where it lies in sysfs, below the root.
    #[serde(skip)]
    pub sysfs: PathBuf,
    /// What udev keeps of it: names and values.
    #[serde(skip)]
    pub(crate) udev: Vec<(String, String)>,
}

impl BlockDevice {
    /// Whether something is there: a loop device without a file, an idle network device and a drive without a disk are not.
    pub fn is_present(&self) -> bool {
        self.bytes > 0
    }

    /// Whether the class realtime is passed on to a SATA disk, which then serves it first itself; none where it cannot be.
    pub fn passes_priority_on(&self) -> Option<bool> {
        crate::root::switch(&self.sysfs.join("device/ncq_prio_enable"))
    }

    /// What udev keeps under a name, as `ID_SERIAL`.
    pub fn udev(&self, name: &str) -> Option<&str> {
        self.udev.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Where a file system is mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// The mount point.
    pub at: PathBuf,
    /// The sort of file system: `ext4`.
    pub file_system: String,
}

/// A process that has a device open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Opener {
    /// Its number.
    pub pid: u32,
    /// What it is called.
    pub comm: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_it_is_written() {
        assert_eq!("259:3".parse(), Ok(Number { major: 259, minor: 3 }));
        assert_eq!(Number { major: 8, minor: 1 }.to_string(), "8:1");
        for garbage in ["", "8", "8:", ":1", "8:1:2", "a:b", "-1:2"] {
            assert_eq!(garbage.parse::<Number>(), Err(NumberError), "{garbage}");
        }
    }
}
