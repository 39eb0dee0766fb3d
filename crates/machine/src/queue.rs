//! The queue of a block device: scheduler, tunables and settings.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::attribute_info::{AttributeInfo, setting_info, tunable_infos};
use crate::device_number::DeviceNumber;
use crate::files::{list_names, read_nonempty, read_number, read_switch, read_text};
use crate::mounts;
use crate::root::Root;
use crate::sysfs::SysfsDevice;

/// The queue of a whole device, from `/sys/block/NAME/queue`. Source: the kernel's
/// Documentation/ABI/stable/sysfs-block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// True if the kernel takes the device for a rotating disk. Virtual disks often report true
    /// over flash.
    pub rotational: Option<bool>,
    /// The zone model: `host-managed` or `host-aware`; `None` without zones.
    pub zoned: Option<String>,
    /// The available schedulers; more may be in modules that are not loaded. Empty if the device
    /// has no scheduler file.
    pub schedulers: Vec<String>,
    /// The active scheduler.
    pub scheduler: Option<String>,
    /// The tunables of the active scheduler, by name.
    pub tunables: Vec<Attribute>,
    /// The other attributes of the queue, by name, read-only ones included.
    pub settings: Vec<Attribute>,
    /// The number of hardware queues; `None` for a driver that takes bios itself.
    pub hardware_queues: Option<u32>,
    /// The requests that the queue holds, for each hardware queue.
    pub nr_requests: Option<u32>,
    /// The requests that the device takes at once, where it reports that (SCSI).
    pub device_depth: Option<u32>,
    /// The write cache policy, as the kernel assumes it.
    pub write_cache: Option<WriteCache>,
    /// True if the device supports writes that bypass its cache (FUA).
    pub fua: Option<bool>,
    /// The largest discard in bytes; 0 without discard support.
    pub discard_max_bytes: Option<u64>,
    /// The smallest addressable unit, in bytes.
    pub logical_block_bytes: Option<u32>,
    /// The smallest unit that is written without reading first, in bytes.
    pub physical_block_bytes: Option<u32>,
}

/// A write cache policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteCache {
    /// A write completes when the data is in the volatile cache; a flush makes it durable.
    Back,
    /// A write completes when the data is durable.
    Through,
}

/// An attribute of a queue: a file in sysfs and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attribute {
    /// The file's name: `slice_idle`, `read_ahead_kb`.
    pub name: String,
    /// The content of the file.
    pub value: String,
    /// True if root may write the file.
    pub writable: bool,
    /// The path below the device's directory: `queue/iosched/slice_idle`.
    #[serde(skip)]
    pub file: String,
    /// Unit, range and meaning; `None` for an undescribed attribute.
    #[serde(flatten)]
    pub info: Option<AttributeInfo>,
}

impl Queue {
    /// Reads the queue of a whole device; `None` if the device has none.
    pub fn of(device: &SysfsDevice) -> Option<Queue> {
        Queue::read(device.path())
    }

    /// Reads the queue of a device; `None` if the device has none.
    pub(crate) fn read(device: &Path) -> Option<Queue> {
        let directory = device.join("queue");
        if !directory.is_dir() {
            return None;
        }
        let (schedulers, scheduler) = parse_schedulers(&read_text(&directory.join("scheduler")).unwrap_or_default());
        let tunables = tunable_infos(scheduler.as_deref().unwrap_or("none"));
        let tunable = |name: &str| tunables.iter().find(|info| info.name == name).copied();
        let setting = |name: &str| setting_info(name).copied();
        let mut settings = attributes(device, "queue", &setting);
        settings.retain(|attribute| attribute.name != "scheduler");
        // SCSI reports the depth of the device outside of the queue directory.
        settings.extend(attribute(device, "device/queue_depth", &setting));
        let hardware_queues = list_names(&device.join("mq")).len();
        let number = |name: &str| read_number::<u32>(&directory.join(name));
        Some(Queue {
            rotational: read_switch(&directory.join("rotational")),
            zoned: read_nonempty(&directory.join("zoned")).filter(|zoned| zoned != "none"),
            schedulers,
            scheduler,
            tunables: attributes(device, "queue/iosched", &tunable),
            settings,
            hardware_queues: u32::try_from(hardware_queues).ok().filter(|count| *count > 0),
            nr_requests: number("nr_requests"),
            device_depth: read_number(&device.join("device/queue_depth")),
            write_cache: WriteCache::from_text(&read_text(&directory.join("write_cache")).unwrap_or_default()),
            fua: read_switch(&directory.join("fua")),
            discard_max_bytes: read_number(&directory.join("discard_max_bytes")),
            logical_block_bytes: number("logical_block_size"),
            physical_block_bytes: number("physical_block_size"),
        })
    }

    /// Returns true if a scheduler can be chosen. A driver that takes bios itself (LVM, md, zram)
    /// has none.
    pub fn has_choice(&self) -> bool {
        self.schedulers.iter().any(|name| name != "none")
    }

    /// The requests that the device has at once at most: its own depth if known, else
    /// `nr_requests`.
    pub fn depth(&self) -> Option<u32> {
        self.device_depth.or(self.nr_requests)
    }

    /// A setting of the queue by name.
    pub fn setting(&self, name: &str) -> Option<&Attribute> {
        self.settings.iter().find(|attribute| attribute.name == name)
    }

    /// A tunable of the active scheduler by name.
    pub fn tunable(&self, name: &str) -> Option<&Attribute> {
        self.tunables.iter().find(|attribute| attribute.name == name)
    }
}

impl Attribute {
    /// The value with its unit: `8 ms`.
    pub fn with_unit(&self) -> String {
        self.info.map_or_else(|| self.value.clone(), |info| info.with_unit(&self.value))
    }
}

impl WriteCache {
    fn from_text(text: &str) -> Option<WriteCache> {
        match text {
            "write back" => Some(WriteCache::Back),
            "write through" => Some(WriteCache::Through),
            _ => None,
        }
    }
}

/// The queue directory in sysfs for a device number, below the root. A partition has the queue of
/// its disk; a file system without a device number of its own (btrfs, overlay) has the queue of the
/// mounted device.
pub fn queue_directory(root: &Root, number: DeviceNumber) -> Option<PathBuf> {
    let mut number = number;
    if number.is_anonymous() {
        let mounts = mounts::mounts(root, "self");
        let source = mounts.into_iter().find(|mount| mount.number == number)?.source;
        number = DeviceNumber::from_node(&root.path(source.strip_prefix("/dev").ok().map(|_| &source)?))?;
    }
    Some(SysfsDevice::of(root, number)?.disk().path().join("queue")).filter(|queue| queue.is_dir())
}

/// Parses `none [mq-deadline] kyber`: all schedulers, and the active one in brackets. A single
/// scheduler needs no brackets.
pub(crate) fn parse_schedulers(text: &str) -> (Vec<String>, Option<String>) {
    let mut current = None;
    let mut all = Vec::new();
    for word in text.split_whitespace() {
        let name = word.trim_matches(['[', ']']);
        if word.starts_with('[') {
            current = Some(name.to_owned());
        }
        all.push(name.to_owned());
    }
    if current.is_none() && all.len() == 1 {
        current = all.first().cloned();
    }
    (all, current)
}

/// Looks up the description of an attribute.
type InfoByName<'a> = dyn Fn(&str) -> Option<AttributeInfo> + 'a;

/// The readable files of a directory, by name. Attributes that the device does not support return
/// an error and are left out.
fn attributes(device: &Path, directory: &str, info: &InfoByName<'_>) -> Vec<Attribute> {
    list_names(&device.join(directory))
        .iter()
        .filter_map(|name| attribute(device, &format!("{directory}/{name}"), info))
        .collect()
}

fn attribute(device: &Path, file: &str, info: &InfoByName<'_>) -> Option<Attribute> {
    let path = device.join(file);
    let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mode = metadata.permissions().mode();
    if mode & 0o444 == 0 {
        return None;
    }
    let name = file.rsplit('/').next().unwrap_or(file).to_owned();
    let (value, writable, info) = (read_text(&path)?, mode & 0o200 != 0, info(&name));
    Some(Attribute { name, value, writable, file: file.to_owned(), info })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_active_scheduler_is_in_brackets_or_alone() {
        let parsed = |text| {
            let (all, current) = parse_schedulers(text);
            (all.join(","), current)
        };
        assert_eq!(
            parsed("none [mq-deadline] kyber bfq"),
            ("none,mq-deadline,kyber,bfq".into(), Some("mq-deadline".into()))
        );
        assert_eq!(parsed("none"), ("none".into(), Some("none".into())));
        assert_eq!(parsed("[none] "), ("none".into(), Some("none".into())));
        assert_eq!(parsed(""), (String::new(), None));
        assert_eq!(parsed("noop deadline"), ("noop,deadline".into(), None));
    }

    #[test]
    fn a_scheduler_can_be_chosen_if_there_is_more_than_none() {
        let queue = |text| Queue { schedulers: parse_schedulers(text).0, ..Queue::default() };
        assert!(queue("[none] bfq").has_choice() && queue("[bfq]").has_choice());
        assert!(!queue("none").has_choice() && !queue("").has_choice());
    }
}
