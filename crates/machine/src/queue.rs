//! The queue of a block device: its scheduler, that one's tunables, and what else sysfs has of it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::device::Number;
use crate::entry::Entry;
use crate::mounts;
use crate::root::{Root, names, number, said, switch, text};

/// The queue of a whole device, from `/sys/block/NAME/queue` (the kernel's Documentation/ABI/stable/sysfs-block).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// Whether the kernel takes it for something that rotates. Virtual disks often say so and are not.
    pub rotational: Option<bool>,
    /// How it is zoned: `host-managed`, `host-aware`; none where it is not.
    pub zoned: Option<String>,
    /// The schedulers that can be chosen now; others may be in modules that are not loaded. Empty where the device has no choice to tell of.
    pub schedulers: Vec<String>,
    /// The one that is set.
    pub scheduler: Option<String>,
    /// What the present scheduler can be tuned by, by name.
    pub tunables: Vec<Attribute>,
    /// What else the queue can be asked, and some of it set, by name.
    pub settings: Vec<Attribute>,
    /// Hardware queues: how many CPUs can send at once without a common lock. None where the driver takes bios itself.
    pub hardware_queues: Option<u32>,
    /// Requests that the queue holds, for each hardware queue.
    pub nr_requests: Option<u32>,
    /// Requests that the device itself takes at once, where it says so (SCSI).
    pub device_depth: Option<u32>,
    /// What it does with writes, as the kernel believes.
    pub write_cache: Option<WriteCache>,
    /// Whether it can write past its cache.
    pub fua: Option<bool>,
    /// The largest range that it can be told is unused, in bytes; 0 where it cannot be told.
    pub discard_max_bytes: Option<u64>,
    /// The least that can be read or written, in bytes.
    pub logical_block_bytes: Option<u32>,
    /// The least that it writes without reading first, in bytes.
    pub physical_block_bytes: Option<u32>,
}

/// What a device does with writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteCache {
    /// It answers when they are in its cache; a flush makes them durable.
    Back,
    /// It answers when they are durable.
    Through,
}

/// A file of sysfs with a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attribute {
    /// The file's name: `slice_idle`, `read_ahead_kb`.
    pub name: String,
    /// What it says.
    pub value: String,
    /// Whether the kernel lets it be written, by root.
    pub writable: bool,
    /// Where it lies, from the device's directory: `queue/iosched/slice_idle`.
    #[serde(skip)]
    pub file: String,
}

impl Queue {
    /// Reads the queue of a device, if it has one.
    pub(crate) fn read(device: &Path) -> Option<Queue> {
        let directory = device.join("queue");
        if !directory.is_dir() {
            return None;
        }
        let (schedulers, scheduler) = choice(&text(&directory.join("scheduler")).unwrap_or_default());
        let mut settings = attributes(device, "queue");
        settings.retain(|attribute| attribute.name != "scheduler");
        // SCSI has the device's own depth beside its queue.
        settings.extend(attribute(device, "device/queue_depth"));
        let hardware_queues = names(&device.join("mq")).len();
        let number = |name: &str| number::<u32>(&directory.join(name));
        Some(Queue {
            rotational: switch(&directory.join("rotational")),
            zoned: said(&directory.join("zoned")).filter(|zoned| zoned != "none"),
            schedulers,
            scheduler,
            tunables: attributes(device, "queue/iosched"),
            settings,
            hardware_queues: u32::try_from(hardware_queues).ok().filter(|count| *count > 0),
            nr_requests: number("nr_requests"),
            device_depth: crate::root::number(&device.join("device/queue_depth")),
            write_cache: WriteCache::from_text(&text(&directory.join("write_cache")).unwrap_or_default()),
            fua: switch(&directory.join("fua")),
            discard_max_bytes: crate::root::number(&directory.join("discard_max_bytes")),
            logical_block_bytes: number("logical_block_size"),
            physical_block_bytes: number("physical_block_size"),
        })
    }

    /// Whether there is a scheduler to choose: a driver that takes bios itself (LVM, md, zram) has none.
    pub fn has_choice(&self) -> bool {
        self.schedulers.iter().any(|name| name != "none")
    }

    /// Requests that the device has at once at most, as far as it tells: its own depth, else what the queue hands on without a scheduler.
    pub fn depth(&self) -> Option<u32> {
        self.device_depth.or(self.nr_requests)
    }

    /// A setting by its name.
    pub fn setting(&self, name: &str) -> Option<&Attribute> {
        self.settings.iter().find(|attribute| attribute.name == name)
    }

    /// A tunable of the present scheduler by its name.
    pub fn tunable(&self, name: &str) -> Option<&Attribute> {
        self.tunables.iter().find(|attribute| attribute.name == name)
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

/// The directory in sysfs of the queue that requests to a device go to, below the root. A partition has its disk's; a file system without a device of its own
/// (btrfs, overlay) has that of what is mounted there.
pub fn queue_directory(root: &Root, number: Number) -> Option<PathBuf> {
    let mut number = number;
    if number.is_anonymous() {
        let mounts = mounts::mounts(root, "self");
        let source = mounts.into_iter().find(|mounted| mounted.number == number)?.source;
        number = Number::of_node(&root.path(source.strip_prefix("/dev").ok().map(|_| &source)?))?;
    }
    Some(Entry::of(root, number)?.disk().path().join("queue")).filter(|queue| queue.is_dir())
}

/// The schedulers of `none [mq-deadline] kyber`, and the one in brackets. One alone may stand without them.
pub(crate) fn choice(text: &str) -> (Vec<String>, Option<String>) {
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

/// The files of a directory that can be read, by name. Those that the device does not support say so by an error, and are left out.
fn attributes(device: &Path, directory: &str) -> Vec<Attribute> {
    names(&device.join(directory)).iter().filter_map(|name| attribute(device, &format!("{directory}/{name}"))).collect()
}

fn attribute(device: &Path, file: &str) -> Option<Attribute> {
    let path = device.join(file);
    let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mode = metadata.permissions().mode();
    if mode & 0o444 == 0 {
        return None;
    }
    let name = file.rsplit('/').next().unwrap_or(file).to_owned();
    Some(Attribute { name, value: text(&path)?, writable: mode & 0o200 != 0, file: file.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_that_is_set_stands_in_brackets_or_alone() {
        let told = |text| {
            let (all, current) = choice(text);
            (all.join(","), current)
        };
        assert_eq!(
            told("none [mq-deadline] kyber bfq"),
            ("none,mq-deadline,kyber,bfq".into(), Some("mq-deadline".into()))
        );
        assert_eq!(told("none"), ("none".into(), Some("none".into())));
        assert_eq!(told("[none] "), ("none".into(), Some("none".into())));
        assert_eq!(told(""), (String::new(), None));
        assert_eq!(told("noop deadline"), ("noop,deadline".into(), None));
    }

    #[test]
    fn there_is_a_choice_where_there_is_more_than_none() {
        let queue = |text| Queue { schedulers: choice(text).0, ..Queue::default() };
        assert!(queue("[none] bfq").has_choice() && queue("[bfq]").has_choice());
        assert!(!queue("none").has_choice() && !queue("").has_choice());
    }
}
