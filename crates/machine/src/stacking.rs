//! How block devices are stacked: what a device is made of, and which queues order its requests.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

use crate::device::BlockDevice;
use crate::device_number::DeviceNumber;
use crate::devices::device_of_mount;
use crate::files::list_names;
use crate::kind::Kind;
use crate::mounts;
use crate::queue::Queue;
use crate::root::Root;

/// The device and everything that it is made of, each device once, the device itself first: a
/// partition leads to its disk, a volume or array to its members, a loop device to the device of
/// its backing file.
pub fn all_below<'a>(root: &Root, devices: &'a [BlockDevice], device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
    descend(root, devices, device, &|_| true)
}

/// The devices that a request passes until it is scheduled: as [`all_below`], but the paths of a
/// multipath device that [schedules for them](schedules_for_paths) are left out.
pub fn request_path<'a>(root: &Root, devices: &'a [BlockDevice], device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
    descend(root, devices, device, &|device| !schedules_for_paths(device))
}

/// Returns true for a multipath device that schedules requests itself (dm-multipath in its usual
/// mode). The schedulers of its paths are bypassed.
pub fn schedules_for_paths(device: &BlockDevice) -> bool {
    device.kind == Kind::Multipath && device.queue.as_ref().is_some_and(Queue::has_choice)
}

/// The multipath device above a path that [schedules for it](schedules_for_paths), if there is one.
pub fn scheduling_holder<'a>(devices: &'a [BlockDevice], device: &BlockDevice) -> Option<&'a BlockDevice> {
    devices.iter().find(|other| device.holders.contains(&other.name) && schedules_for_paths(other))
}

/// The hidden paths of a multipath NVMe drive: each has a queue with a scheduler of its own. Empty
/// for a drive with one path.
pub fn hidden_paths(root: &Root, device: &BlockDevice) -> Vec<String> {
    let Some((subsystem, name)) = device.name.rsplit_once('n').filter(|_| device.kind == Kind::Nvme) else {
        return Vec::new();
    };
    let is_path = |other: &String| {
        let controller = other.strip_prefix(subsystem).and_then(|rest| rest.strip_prefix('c')?.strip_suffix(name));
        controller.and_then(|rest| rest.strip_suffix('n')).is_some_and(|number| number.parse::<u32>().is_ok())
    };
    list_names(&root.path("/sys/block")).into_iter().filter(is_path).collect()
}

/// Walks the stack depth-first; `enters` says whether to go below a device.
fn descend<'a>(
    root: &Root,
    devices: &'a [BlockDevice],
    device: &'a BlockDevice,
    enters: &dyn Fn(&BlockDevice) -> bool,
) -> Vec<&'a BlockDevice> {
    let mut found: Vec<&BlockDevice> = Vec::new();
    let mut visited = BTreeSet::new();
    let mut pending = vec![device];
    while let Some(device) = pending.pop() {
        if !visited.insert(device.number) {
            continue;
        }
        found.push(device);
        if enters(device) {
            pending.extend(directly_below(root, devices, device).into_iter().rev());
        }
    }
    found
}

/// The devices one level below: the disk of a partition, the members of a volume or array, the
/// device that holds the backing file of a loop device.
pub fn directly_below<'a>(root: &Root, devices: &'a [BlockDevice], device: &BlockDevice) -> Vec<&'a BlockDevice> {
    let names = device.disk.iter().chain(&device.slaves);
    let named = names.filter_map(|name| devices.iter().find(|other| other.name == *name));
    named.chain(backing_device(root, devices, device)).collect()
}

/// The devices whose queues order the requests of a device last, each once: devices that are made
/// of no other, and multipath devices that schedule for their paths. A scheduler on a device above
/// these has no control over the order at the drive.
pub fn queues_below<'a>(root: &Root, devices: &'a [BlockDevice], device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
    let is_last = |device: &BlockDevice| schedules_for_paths(device) || is_bottom(root, devices, device);
    request_path(root, devices, device).into_iter().filter(|device| is_last(device)).collect()
}

/// The drives that hold the data of a device, each once. Each path of a multipath disk counts as a
/// drive.
pub fn drives_below<'a>(root: &Root, devices: &'a [BlockDevice], device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
    all_below(root, devices, device).into_iter().filter(|device| is_bottom(root, devices, device)).collect()
}

fn is_bottom(root: &Root, devices: &[BlockDevice], device: &BlockDevice) -> bool {
    device.queue.is_some() && device.slaves.is_empty() && backing_device(root, devices, device).is_none()
}

/// The device that holds the backing file of a loop device.
fn backing_device<'a>(root: &Root, devices: &'a [BlockDevice], device: &BlockDevice) -> Option<&'a BlockDevice> {
    let file = device.backing_file.as_ref().filter(|_| device.kind == Kind::Loop)?;
    let mounts = mounts::mounts(root, "self");
    if !root.is_machine() {
        return devices.get(device_of_mount(root, devices, mounts::mount_of(&mounts, file)?)?);
    }
    // The kernel's path may belong to another mount namespace or to a mount that is gone: only
    // `stat` of an existing file gives the device.
    let metadata = fs::metadata(file).ok()?;
    let is_node = metadata.file_type().is_block_device();
    let number = DeviceNumber::from_stat(if is_node { metadata.rdev() } else { metadata.dev() });
    let by_number = devices.iter().find(|device| device.number == number);
    let by_mount = || {
        let mount = mounts.iter().find(|mount| mount.number == number)?;
        devices.get(device_of_mount(root, devices, mount)?)
    };
    by_number.or_else(by_mount)
}
