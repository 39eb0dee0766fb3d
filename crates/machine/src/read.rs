//! All block devices of a machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::device::{BlockDevice, Mount, Opener};
use crate::entry::{SECTOR_BYTES, spoken};
use crate::identity::{Identity, Udev};
use crate::kind::Kind;
use crate::mounts::{self, Mounted};
use crate::queue::Queue;
use crate::root::{Root, compare, names, number, said, switch, text};

/// Why the devices cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum DevicesError {
    /// There is no sysfs, as in some containers.
    #[error("{}: {cause}; the kernel's sysfs has to be mounted at /sys", path.display())]
    NoSysfs {
        /// Where it should be.
        path: PathBuf,
        /// Why it cannot be read.
        cause: io::Error,
    },
}

/// Reads all block devices: whole ones in the order of their names, each followed by its partitions. One that vanishes meanwhile is left out, as is what the
/// kernel hides (the paths of an NVMe drive with several); what cannot be read of one is absent from it.
///
/// # Errors
/// When there is no sysfs.
pub fn devices(root: &Root) -> Result<Vec<BlockDevice>, DevicesError> {
    let block = root.path("/sys/block");
    fs::read_dir(&block).map_err(|cause| DevicesError::NoSysfs { path: block.clone(), cause })?;
    let mut devices = Vec::new();
    for name in names(&block) {
        let Some(whole) = fs::canonicalize(block.join(&name)).ok().and_then(|sysfs| whole(root, &name, sysfs)) else {
            continue;
        };
        let parts = whole.partitions.iter().filter_map(|part| partition(root, &whole, part)).collect::<Vec<_>>();
        devices.push(whole);
        devices.extend(parts);
    }
    note_use(root, &mut devices);
    Ok(devices)
}

fn whole(root: &Root, name: &str, sysfs: PathBuf) -> Option<BlockDevice> {
    if switch(&sysfs.join("hidden")) == Some(true) {
        return None;
    }
    let mapper_uuid = said(&sysfs.join("dm/uuid"));
    let kind = Kind::of(name, mapper_uuid.as_deref());
    let mut device = any(root, name, sysfs, kind)?;
    let sysfs = &device.sysfs;
    device.label = said(&sysfs.join("dm/name")).or_else(|| said(&sysfs.join("md/level")));
    device.removable = switch(&sysfs.join("removable")).unwrap_or(false);
    device.queue = Queue::read(sysfs);
    let mut partitions = names(sysfs);
    partitions.retain(|name| sysfs.join(name).join("partition").is_file());
    // They count from the front of the disk, which their names do not always.
    partitions.sort_by_key(|name| number::<u32>(&sysfs.join(name).join("partition")).unwrap_or(u32::MAX));
    device.partitions = partitions.iter().map(|name| spoken(name)).collect();
    device.slaves = names(&sysfs.join("slaves")).iter().map(|name| spoken(name)).collect();
    device.backing_file = said(&sysfs.join("loop/backing_file")).map(PathBuf::from);
    Some(device)
}

fn partition(root: &Root, disk: &BlockDevice, name: &str) -> Option<BlockDevice> {
    let in_sysfs = name.replace('/', "!");
    let mut device = any(root, &in_sysfs, disk.sysfs.join(&in_sysfs), Kind::Partition)?;
    device.disk = Some(disk.name.clone());
    device.removable = disk.removable;
    Some(device)
}

/// What whole devices and partitions have in common; nothing if the device is not there any more.
fn any(root: &Root, name: &str, sysfs: PathBuf, kind: Kind) -> Option<BlockDevice> {
    let number_of = text(&sysfs.join("dev"))?.parse().ok()?;
    let name = spoken(name);
    let udev = Udev::read(root, number_of);
    let identity = match kind {
        Kind::Partition => Identity { links: udev.links.clone(), ..Identity::default() },
        kind => Identity::read(kind, &sysfs, &udev),
    };
    Some(BlockDevice {
        path: Path::new("/dev").join(&name),
        name,
        number: number_of,
        kind,
        label: None,
        bytes: number::<u64>(&sysfs.join("size")).unwrap_or(0).saturating_mul(SECTOR_BYTES),
        removable: false,
        read_only: switch(&sysfs.join("ro")).unwrap_or(false),
        identity,
        queue: None,
        disk: None,
        partitions: Vec::new(),
        holders: names(&sysfs.join("holders")).iter().map(|name| spoken(name)).collect(),
        slaves: Vec::new(),
        backing_file: None,
        mounts: Vec::new(),
        swap: false,
        udev: udev.values,
        sysfs,
    })
}

/// Notes on the devices what is mounted from them and swapped to.
fn note_use(root: &Root, devices: &mut [BlockDevice]) {
    let groups = mounts::btrfs_groups(root);
    for mounted in mounts::mounts(root, "self") {
        let Some(first) = place_of(root, devices, &mounted) else { continue };
        let name = devices[first].name.clone();
        let group = groups.iter().find(|group| mounted.file_system == "btrfs" && group.contains(&name));
        let mount = Mount { at: mounted.at, file_system: mounted.file_system };
        for (index, device) in devices.iter_mut().enumerate() {
            let is_one = index == first || group.is_some_and(|group| group.contains(&device.name));
            if is_one && !device.mounts.contains(&mount) {
                device.mounts.push(mount.clone());
            }
        }
    }
    for path in mounts::swaps(root) {
        if let Some(device) = by_node(root, devices, &path) {
            devices[device].swap = true;
        }
    }
}

/// The device that a mount is of: by its number, or by its source where that is a node.
pub(crate) fn place_of(root: &Root, devices: &[BlockDevice], mounted: &Mounted) -> Option<usize> {
    let by_number = devices.iter().position(|device| device.number == mounted.number);
    by_number.or_else(|| by_node(root, devices, &mounted.source))
}

/// The device of a node below `/dev`: by the kernel's name, by the device mapper's, by udev's links, and by where a link leads.
pub(crate) fn by_node(root: &Root, devices: &[BlockDevice], path: &Path) -> Option<usize> {
    let below = path.strip_prefix("/dev").ok()?.to_str()?;
    let is_it = |device: &BlockDevice| {
        device.name == below
            || below
                .strip_prefix("mapper/")
                .is_some_and(|name| device.label.as_deref() == Some(name) && device.kind != Kind::Md)
            || device.identity.links.iter().any(|link| link == below)
    };
    devices.iter().position(is_it).or_else(|| {
        let target = fs::canonicalize(root.path(path)).ok()?;
        let target = root.own(&target);
        devices.iter().position(|device| device.path == target)
    })
}

/// The processes that have a device open, as far as this one may see: root sees all, others their own.
pub fn openers(root: &Root, device: &BlockDevice) -> Vec<Opener> {
    let proc = root.path("/proc");
    let mut found = Vec::new();
    for name in names(&proc) {
        let Ok(pid) = name.parse::<u32>() else { continue };
        let process = proc.join(&name);
        let holds = names(&process.join("fd")).iter().any(|descriptor| {
            fs::read_link(process.join("fd").join(descriptor)).is_ok_and(|target| target == device.path)
        });
        if holds {
            found.push(Opener { pid, comm: text(&process.join("comm")).unwrap_or_default() });
        }
    }
    found.sort_by(|one, other| compare(&one.comm, &other.comm).then(one.pid.cmp(&other.pid)));
    found
}
