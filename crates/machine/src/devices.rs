//! Reads all block devices of a machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::device::{BlockDevice, Mount, Opener};
use crate::files::{compare_names, list_names, read_nonempty, read_number, read_switch, read_text};
use crate::identity::{Identity, UdevRecord};
use crate::kind::Kind;
use crate::mounts::{self, MountEntry};
use crate::process::ProcessFiles;
use crate::queue::Queue;
use crate::root::Root;
use crate::sysfs::{SECTOR_BYTES, kernel_name};

/// The devices cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum DevicesError {
    /// There is no sysfs, as in some containers.
    #[error("{}: {cause}; the kernel's sysfs has to be mounted at /sys", path.display())]
    NoSysfs {
        /// The directory that is missing.
        path: PathBuf,
        /// Why it cannot be read.
        cause: io::Error,
    },
}

/// Reads all block devices: whole devices in natural order of their names, each followed by its
/// partitions. A device that vanishes meanwhile is left out, and so are devices that the kernel
/// hides (the paths of a multipath NVMe drive). A property that cannot be read is absent.
///
/// # Errors
/// [`DevicesError::NoSysfs`] if `/sys/block` cannot be read.
pub fn devices(root: &Root) -> Result<Vec<BlockDevice>, DevicesError> {
    let block = root.path("/sys/block");
    fs::read_dir(&block).map_err(|cause| DevicesError::NoSysfs { path: block.clone(), cause })?;
    let mut devices = Vec::new();
    for name in list_names(&block) {
        let directory = fs::canonicalize(block.join(&name)).ok();
        let Some(disk) = directory.and_then(|sysfs| read_whole(root, &name, sysfs)) else { continue };
        let partitions: Vec<_> = disk.partitions.iter().filter_map(|name| read_partition(root, &disk, name)).collect();
        devices.push(disk);
        devices.extend(partitions);
    }
    add_mounts_and_swap(root, &mut devices);
    Ok(devices)
}

fn read_whole(root: &Root, name: &str, sysfs: PathBuf) -> Option<BlockDevice> {
    if read_switch(&sysfs.join("hidden")) == Some(true) {
        return None;
    }
    let mapper_uuid = read_nonempty(&sysfs.join("dm/uuid"));
    let kind = Kind::of(name, mapper_uuid.as_deref());
    let mut device = read_common(root, name, sysfs, kind)?;
    let sysfs = &device.sysfs;
    device.label = read_nonempty(&sysfs.join("dm/name")).or_else(|| read_nonempty(&sysfs.join("md/level")));
    device.removable = read_switch(&sysfs.join("removable")).unwrap_or(false);
    device.queue = Queue::read(sysfs);
    let mut partitions = list_names(sysfs);
    partitions.retain(|name| sysfs.join(name).join("partition").is_file());
    // Partition numbers count from the front of the disk; names need not.
    partitions.sort_by_key(|name| read_number::<u32>(&sysfs.join(name).join("partition")).unwrap_or(u32::MAX));
    device.partitions = partitions.iter().map(|name| kernel_name(name)).collect();
    device.slaves = list_names(&sysfs.join("slaves")).iter().map(|name| kernel_name(name)).collect();
    device.backing_file = read_nonempty(&sysfs.join("loop/backing_file")).map(PathBuf::from);
    Some(device)
}

fn read_partition(root: &Root, disk: &BlockDevice, name: &str) -> Option<BlockDevice> {
    let sysfs_name = name.replace('/', "!");
    let mut device = read_common(root, &sysfs_name, disk.sysfs.join(&sysfs_name), Kind::Partition)?;
    device.disk = Some(disk.name.clone());
    device.removable = disk.removable;
    Some(device)
}

/// Reads what whole devices and partitions have in common; `None` if the device has vanished.
fn read_common(root: &Root, sysfs_name: &str, sysfs: PathBuf, kind: Kind) -> Option<BlockDevice> {
    let number = read_text(&sysfs.join("dev"))?.parse().ok()?;
    let name = kernel_name(sysfs_name);
    let udev = UdevRecord::read(root, number);
    let identity = match kind {
        Kind::Partition => Identity { links: udev.links.clone(), ..Identity::default() },
        kind => Identity::read(kind, &sysfs, &udev),
    };
    Some(BlockDevice {
        path: Path::new("/dev").join(&name),
        name,
        number,
        kind,
        label: None,
        bytes: read_number::<u64>(&sysfs.join("size")).unwrap_or(0).saturating_mul(SECTOR_BYTES),
        removable: false,
        read_only: read_switch(&sysfs.join("ro")).unwrap_or(false),
        identity,
        queue: None,
        disk: None,
        partitions: Vec::new(),
        holders: list_names(&sysfs.join("holders")).iter().map(|name| kernel_name(name)).collect(),
        slaves: Vec::new(),
        backing_file: None,
        mounts: Vec::new(),
        swap: false,
        udev: udev.values,
        sysfs,
    })
}

/// Fills in the mount points and swap use of all devices.
fn add_mounts_and_swap(root: &Root, devices: &mut [BlockDevice]) {
    let btrfs_members = mounts::btrfs_members(root);
    for entry in mounts::mounts(root, "self") {
        let Some(first) = device_of_mount(root, devices, &entry) else { continue };
        let name = devices[first].name.clone();
        let members = btrfs_members.iter().find(|members| entry.file_system == "btrfs" && members.contains(&name));
        let mount = Mount { at: entry.mount_point, file_system: entry.file_system };
        for (index, device) in devices.iter_mut().enumerate() {
            let is_member = index == first || members.is_some_and(|members| members.contains(&device.name));
            if is_member && !device.mounts.contains(&mount) {
                device.mounts.push(mount.clone());
            }
        }
    }
    for area in mounts::swap_areas(root).iter().filter(|area| area.is_device) {
        if let Some(device) = device_of_node(root, devices, &area.path) {
            devices[device].swap = true;
        }
    }
}

/// The index of the device that is mounted: found by its number, or by the mount source if that is
/// a node.
pub(crate) fn device_of_mount(root: &Root, devices: &[BlockDevice], mount: &MountEntry) -> Option<usize> {
    let by_number = devices.iter().position(|device| device.number == mount.number);
    by_number.or_else(|| device_of_node(root, devices, &mount.source))
}

/// The index of the device of a node below `/dev`: the kernel's name, the device mapper's name, one
/// of udev's links, or a link that leads to one of these.
pub(crate) fn device_of_node(root: &Root, devices: &[BlockDevice], path: &Path) -> Option<usize> {
    let name = path.strip_prefix("/dev").ok()?.to_str()?;
    let is_named = |device: &BlockDevice| {
        device.name == name
            || name
                .strip_prefix("mapper/")
                .is_some_and(|name| device.label.as_deref() == Some(name) && device.kind != Kind::Md)
            || device.identity.links.iter().any(|link| link == name)
    };
    devices.iter().position(is_named).or_else(|| {
        let target = fs::canonicalize(root.path(path)).ok()?;
        let target = root.machine_path(&target);
        devices.iter().position(|device| device.path == target)
    })
}

/// Lists the processes that have a device open, as far as the caller may see them: root sees all,
/// other users their own.
pub fn openers(root: &Root, device: &BlockDevice) -> Vec<Opener> {
    let pids = list_names(&root.path("/proc")).into_iter().filter_map(|name| name.parse::<u32>().ok());
    let mut found: Vec<Opener> = pids
        .filter_map(|pid| {
            let process = ProcessFiles::new(root, pid);
            let has_open = process.open_files().contains(&device.path);
            has_open.then(|| Opener { pid, comm: process.comm() })
        })
        .collect();
    found.sort_by(|one, other| compare_names(&one.comm, &other.comm).then(one.pid.cmp(&other.pid)));
    found
}
