//! Device numbers.

use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;
use std::str::FromStr;

use serde::{Serialize, Serializer};

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
