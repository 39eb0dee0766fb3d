//! A block device's directory in sysfs: for those who have its number or its name, and need a few words of it and no look at all the others.

use std::fs;
use std::path::{Path, PathBuf};

use crate::device::Number;
use crate::root::{Root, names, number, switch, text};

/// The kernel counts sizes and places in these, whatever the device's blocks are: bytes.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// The directory of a block device, a whole one or a partition.
///
/// ```
/// use hoistway_machine::{Entry, Root};
/// assert!(Entry::named(&Root::machine(), "nosuchdisk").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry(PathBuf);

impl Entry {
    /// That of a device by its number; none where the machine has no such block device.
    pub fn of(root: &Root, number: Number) -> Option<Entry> {
        fs::canonicalize(root.path(format!("/sys/dev/block/{number}"))).ok().map(Entry)
    }

    /// That of a device by the kernel's name: `sda1`.
    pub fn named(root: &Root, name: &str) -> Option<Entry> {
        let name = name.replace('/', "!");
        let is_name = !name.is_empty() && name != "." && name != "..";
        let path = is_name.then(|| root.path("/sys/class/block").join(name))?;
        fs::canonicalize(path).ok().map(Entry)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What sysfs calls the device: a slash in its name is an exclamation mark there.
    pub fn name(&self) -> String {
        self.0.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The device's node, as the kernel names it.
    pub fn node(&self) -> PathBuf {
        Path::new("/dev").join(spoken(&self.name()))
    }

    /// The device's number; none if it has gone meanwhile.
    pub fn number(&self) -> Option<Number> {
        text(&self.0.join("dev"))?.parse().ok()
    }

    /// In bytes.
    pub fn bytes(&self) -> Option<u64> {
        number::<u64>(&self.0.join("size"))?.checked_mul(SECTOR_BYTES)
    }

    /// Whether the kernel believes that it rotates; only a whole device tells.
    pub fn rotates(&self) -> Option<bool> {
        switch(&self.0.join("queue/rotational"))
    }

    /// Whether it is a part of another.
    pub fn is_partition(&self) -> bool {
        self.0.join("partition").exists()
    }

    /// The whole device: of a partition its disk, else the device itself.
    pub fn disk(&self) -> Entry {
        let disk = if self.is_partition() { self.0.parent() } else { None };
        Entry(disk.unwrap_or(&self.0).to_path_buf())
    }

    /// Where on its disk it begins, in bytes: a whole device at 0.
    pub fn start_bytes(&self) -> Option<u64> {
        if self.is_partition() { number::<u64>(&self.0.join("start"))?.checked_mul(SECTOR_BYTES) } else { Some(0) }
    }

    /// Its partitions.
    pub fn partitions(&self) -> Vec<Entry> {
        let all = names(&self.0).into_iter().map(|name| Entry(self.0.join(name)));
        all.filter(Entry::is_partition).collect()
    }

    /// The devices that are made of it: volumes, arrays.
    pub fn holders(&self) -> Vec<Entry> {
        let directory = self.0.join("holders");
        names(&directory)
            .into_iter()
            .filter_map(|name| fs::canonicalize(directory.join(name)).ok().map(Entry))
            .collect()
    }
}

/// A slash in a device's name is an exclamation mark in sysfs: `cciss!c0d0`.
pub(crate) fn spoken(name: &str) -> String {
    name.replace('!', "/")
}
