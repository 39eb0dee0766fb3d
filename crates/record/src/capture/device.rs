//! Finds the device to capture.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use hoistway_machine::{Attribute, DeviceNumber, Queue, Root, SysfsDevice, WriteCache};
use hoistway_trace::queue_settings::{QueueSettings, SchedulerSettings};

use super::CaptureError;

/// The size of a sector in traces, in bytes.
const SECTOR_BYTES: u64 = 512;

/// The attributes of a queue that a recording stores.
const STORED_SETTINGS: [&str; 11] = [
    "fua",
    "logical_block_size",
    "max_sectors_kb",
    "nomerges",
    "nr_requests",
    "physical_block_size",
    "queue_depth",
    "read_ahead_kb",
    "rotational",
    "rq_affinity",
    "wbt_lat_usec",
];

/// A block device that the kernel can trace, whole or a partition.
#[derive(Clone, Debug)]
pub struct TracedDevice {
    /// The path as given by the caller.
    pub path: PathBuf,
    /// The kernel's name: `sda`, `nvme0n1p2`.
    pub name: String,
    /// The major device number.
    pub major: u32,
    /// The minor device number.
    pub minor: u32,
    /// The whole device.
    pub(super) disk: Option<SysfsDevice>,
    /// The directory of the device in sysfs.
    pub(super) sysfs: PathBuf,
    /// The device numbers, as of `stat`, of the device, its disk and the partitions of either: file
    /// systems on them send it requests.
    pub(super) family: Vec<u64>,
    /// The numbers in traces, `major << 20 | minor`, of the device and its disk.
    pub(super) traced_as: Vec<u32>,
    /// The sectors of a partition on its disk, of 512 bytes.
    pub(super) sectors: Option<Range<u64>>,
}

impl TracedDevice {
    /// Finds a device by its path, or by its name in `/dev`.
    ///
    /// # Errors
    /// The device does not exist, is no block device, or cannot be traced by the kernel.
    pub fn find(path: &Path) -> Result<TracedDevice, CaptureError> {
        let bad = |what: String| CaptureError::Device { path: path.into(), what };
        let in_dev = Path::new("/dev").join(path);
        let there = if !path.exists() && in_dev.exists() { in_dev.as_path() } else { path };
        let metadata = fs::metadata(there).map_err(|error| bad(error.to_string()))?;
        if !metadata.file_type().is_block_device() {
            let device = entry(DeviceNumber::from_stat(metadata.dev())).map(|entry| entry.name());
            let hint = device.map_or_else(String::new, |name| format!(" (the file is on /dev/{name})"));
            return Err(bad(format!(
                "this is not a block device{hint}; use a device such as /dev/sda, sda or a partition"
            )));
        }
        let own = DeviceNumber::from_stat(metadata.rdev());
        let entry = entry(own).ok_or_else(|| bad("it has no directory in /sys/dev/block".to_owned()))?;
        if !entry.path().join("trace").is_dir() {
            let what =
                "the kernel cannot trace it: it was built without CONFIG_BLK_DEV_IO_TRACE, or the device has no queue";
            return Err(bad(what.to_owned()));
        }
        let disk = entry.disk();
        let traced_as = [Some(own), disk.number()].into_iter().flatten();
        let whole_and_parts: Vec<SysfsDevice> = std::iter::once(disk.clone()).chain(disk.partitions()).collect();
        // Adds the devices above: volumes of LVM, crypt and RAID.
        let holders = whole_and_parts.iter().flat_map(SysfsDevice::holders);
        let family = whole_and_parts.iter().cloned().chain(holders).filter_map(|entry| entry.number());
        let family = family.map(DeviceNumber::to_stat).collect();
        let traced_as = traced_as.map(|number| number.major << 20 | number.minor & 0xf_ffff).collect();
        let sectors = if entry.is_partition() { sectors_of(&entry) } else { None };
        let (name, sysfs) = (entry.name(), entry.path().to_path_buf());
        Ok(TracedDevice {
            path: path.into(),
            name,
            major: own.major,
            minor: own.minor,
            disk: Some(disk),
            sysfs,
            family,
            traced_as,
            sectors,
        })
    }

    /// Returns the number of requests completed since boot, if the kernel counts them.
    pub fn requests_done(&self) -> Option<u64> {
        let text = fs::read_to_string(self.sysfs.join("stat")).ok()?;
        let fields: Vec<u64> = text.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        // Reads, writes, discards and flushes (the kernel's Documentation/block/stat.rst).
        Some([0, 4, 11, 15].iter().filter_map(|at| fields.get(*at)).sum())
    }

    /// Reads the scheduler, its tunables, and the settings of the queue of the disk. The result is
    /// empty for a device without a queue of requests.
    pub fn queue_settings(&self) -> QueueSettings {
        let Some(queue) = self.disk.as_ref().and_then(Queue::of) else { return QueueSettings::default() };
        let values = |attributes: &[Attribute], wanted: &dyn Fn(&str) -> bool| {
            let wanted = attributes.iter().filter(|attribute| wanted(&attribute.name));
            wanted.map(|attribute| (attribute.name.clone(), attribute.value.clone())).collect()
        };
        let tunables = values(&queue.tunables, &|_| true);
        let mut settings = QueueSettings {
            schedulers: queue.scheduler.map(|name| SchedulerSettings { name, tunables }).into_iter().collect(),
            queue: values(&queue.settings, &|name| STORED_SETTINGS.contains(&name)),
        };
        let write_cache = queue.write_cache.map(|policy| match policy {
            WriteCache::Back => "back",
            WriteCache::Through => "through",
        });
        let hardware_queues = queue.hardware_queues.map(|count| count.to_string());
        let more = [("write_cache", write_cache.map(str::to_owned)), ("hardware_queues", hardware_queues)];
        let more = more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        settings.queue.extend(more);
        settings
    }

    /// Returns true if the file is on the device, so that writing the file makes requests.
    pub fn holds(&self, path: &Path) -> bool {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::metadata(directory).is_ok_and(|metadata| self.family.contains(&metadata.dev()))
    }

    /// Returns the path of a file of its directory `trace` in sysfs.
    pub(super) fn trace_file(&self, name: &str) -> PathBuf {
        self.sysfs.join("trace").join(name)
    }
}

fn entry(number: DeviceNumber) -> Option<SysfsDevice> {
    SysfsDevice::of(&Root::machine(), number)
}

/// Returns the range of a partition on its disk.
fn sectors_of(partition: &SysfsDevice) -> Option<Range<u64>> {
    let (start, bytes) = (partition.start_bytes()?, partition.bytes()?);
    Some(start / SECTOR_BYTES..start.checked_add(bytes)? / SECTOR_BYTES)
}
