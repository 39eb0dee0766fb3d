//! Which device is traced.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::CaptureError;

/// A block device that the kernel can trace, whole or a partition.
#[derive(Clone, Debug)]
pub struct Traced {
    /// What it was called.
    pub path: PathBuf,
    /// The kernel's name: `sda`, `nvme0n1p2`.
    pub name: String,
    /// Its number.
    pub major: u32,
    /// The same.
    pub minor: u32,
    /// Its directory in sysfs.
    pub(super) sysfs: PathBuf,
    /// Numbers, as `stat` has them, of itself, its disk and the partitions of either: file systems on them send it requests.
    pub(super) family: Vec<u64>,
    /// The numbers in traces, `major << 20 | minor`, of itself and its disk: what its events are of.
    pub(super) traced_as: Vec<u32>,
    /// Of a partition: its sectors on the disk, of 512 bytes.
    pub(super) sectors: Option<Range<u64>>,
}

impl Traced {
    /// Finds a device by its path, or by its name in `/dev`.
    ///
    /// # Errors
    /// When there is none, it is something else, or the kernel cannot trace it.
    pub fn find(path: &Path) -> Result<Traced, CaptureError> {
        let bad = |what: String| CaptureError::Device { path: path.into(), what };
        let in_dev = Path::new("/dev").join(path);
        let there = if !path.exists() && in_dev.exists() { in_dev.as_path() } else { path };
        let metadata = fs::metadata(there).map_err(|error| bad(error.to_string()))?;
        if !metadata.file_type().is_block_device() {
            let device = block_of(metadata.dev()).and_then(|sysfs| Some(sysfs.file_name()?.to_str()?.to_owned()));
            let lies = device.map_or_else(String::new, |name| format!(" (it lies on /dev/{name})"));
            return Err(bad(format!("this is no block device{lies}; /dev/sda, sda or a partition would be right")));
        }
        let (major, minor) = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
        let sysfs = block_of(metadata.rdev()).ok_or_else(|| bad("it has no directory in /sys/dev/block".to_owned()))?;
        let name = sysfs.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if !sysfs.join("trace").is_dir() {
            let what =
                "the kernel cannot trace it: it was built without CONFIG_BLK_DEV_IO_TRACE, or the device has no queue";
            return Err(bad(what.to_owned()));
        }
        let is_partition = sysfs.join("partition").exists();
        let disk = if is_partition { sysfs.parent().unwrap_or(&sysfs) } else { &sysfs };
        let own = (major, minor);
        let traced_as = [Some(own), number_of(disk)].into_iter().flatten();
        let whole_and_parts: Vec<PathBuf> = std::iter::once(disk.to_path_buf()).chain(children(disk)).collect();
        // What lies on top: volumes of LVM, crypt and RAID.
        let holders = whole_and_parts.iter().flat_map(|directory| holders(directory));
        let family = whole_and_parts.iter().cloned().chain(holders).filter_map(|directory| number_of(&directory));
        let family = family.map(|(major, minor)| rustix::fs::makedev(major, minor)).collect();
        let traced_as = traced_as.map(|(major, minor)| major << 20 | minor & 0xf_ffff).collect();
        let sectors = if is_partition { sectors_of(&sysfs) } else { None };
        Ok(Traced { path: path.into(), name, major, minor, sysfs: sysfs.clone(), family, traced_as, sectors })
    }

    /// How many requests it has completed since the machine came up, if the kernel counts them.
    pub fn requests_done(&self) -> Option<u64> {
        let text = fs::read_to_string(self.sysfs.join("stat")).ok()?;
        let fields: Vec<u64> = text.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        // Reads, writes, discards and flushes (the kernel's Documentation/block/stat.rst).
        Some([0, 4, 11, 15].iter().filter_map(|at| fields.get(*at)).sum())
    }

    /// Whether a file lies on it, so that writing the file makes requests.
    pub fn holds(&self, path: &Path) -> bool {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::metadata(directory).is_ok_and(|metadata| self.family.contains(&metadata.dev()))
    }

    /// A file of its directory `trace` in sysfs.
    pub(super) fn trace_file(&self, name: &str) -> PathBuf {
        self.sysfs.join("trace").join(name)
    }
}

/// The directory in sysfs of a block device.
fn block_of(number: u64) -> Option<PathBuf> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()
}

/// The directories of partitions.
fn children(disk: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(disk).map(|entries| entries.flatten().map(|entry| entry.path()));
    entries.map(|paths| paths.filter(|path| path.join("partition").exists()).collect()).unwrap_or_default()
}

/// The directories of devices that are made of this one.
fn holders(device: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(device.join("holders"));
    entries.map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

/// Where a partition lies on its disk.
fn sectors_of(sysfs: &Path) -> Option<Range<u64>> {
    let number = |name: &str| fs::read_to_string(sysfs.join(name)).ok()?.trim().parse::<u64>().ok();
    let start = number("start")?;
    Some(start..start.checked_add(number("size")?)?)
}

/// A device's number, as its directory in sysfs says: `8:1`.
fn number_of(sysfs: &Path) -> Option<(u32, u32)> {
    let text = fs::read_to_string(sysfs.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
