//! What lies on what.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

use crate::device::{BlockDevice, Number};
use crate::kind::Kind;
use crate::mounts;
use crate::queue::Queue;
use crate::read::place_of;
use crate::root::{Root, names};

/// The devices that a device is made of, itself first and its disks last: partitions lead to their disks, volumes and arrays to what they are made of, a loop
/// device to what its file lies on. Each stands there once.
pub fn all_below<'a>(root: &Root, devices: &'a [BlockDevice], device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
    down(root, devices, device, &|_| true)
}

/// The same, no farther than requests are put in order: what [`schedules_for_paths`] is the last on its way.
pub fn way_down<'a>(root: &Root, devices: &'a [BlockDevice], device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
    down(root, devices, device, &|device| !schedules_for_paths(device))
}

/// Whether a device hands its requests to paths past their schedulers: several paths to one disk with a queue above them (dm-multipath in its usual mode)
/// are scheduled there, and what is set on the paths counts for nothing.
pub fn schedules_for_paths(device: &BlockDevice) -> bool {
    device.kind == Kind::Multipath && device.queue.as_ref().is_some_and(Queue::has_choice)
}

/// The paths of an NVMe drive with several, which the kernel hides: requests to the drive go to one of these, and each has a queue with a scheduler of its own.
/// None of a drive with one path, which is its own.
pub fn hidden_paths(root: &Root, device: &BlockDevice) -> Vec<String> {
    let Some((subsystem, name)) = device.name.rsplit_once('n').filter(|_| device.kind == Kind::Nvme) else {
        return Vec::new();
    };
    let is_path = |other: &String| {
        let controller = other.strip_prefix(subsystem).and_then(|rest| rest.strip_prefix('c')?.strip_suffix(name));
        controller.and_then(|rest| rest.strip_suffix('n')).is_some_and(|number| number.parse::<u32>().is_ok())
    };
    names(&root.path("/sys/block")).into_iter().filter(is_path).collect()
}

fn down<'a>(
    root: &Root,
    devices: &'a [BlockDevice],
    device: &'a BlockDevice,
    goes_on: &dyn Fn(&BlockDevice) -> bool,
) -> Vec<&'a BlockDevice> {
    let mut found: Vec<&BlockDevice> = Vec::new();
    let mut met = BTreeSet::new();
    let mut waiting = vec![device];
    while let Some(device) = waiting.pop() {
        if !met.insert(device.number) {
            continue;
        }
        found.push(device);
        if goes_on(device) {
            waiting.extend(directly_below(root, devices, device).into_iter().rev());
        }
    }
    found
}

/// What a device is made of, one step down: a partition of its disk, a volume of others, a loop device of what its file lies on.
pub fn directly_below<'a>(root: &Root, devices: &'a [BlockDevice], device: &BlockDevice) -> Vec<&'a BlockDevice> {
    let names = device.disk.iter().chain(&device.slaves);
    let named = names.filter_map(|name| devices.iter().find(|other| other.name == *name));
    named.chain(under_file(root, devices, device)).collect()
}

/// The devices whose queues requests to a device end in, each once: those that are made of no other, or schedule for those that they are made of. A scheduler
/// that is set on one above them sorts for nobody's arm.
pub fn queues_below<'a>(root: &Root, devices: &'a [BlockDevice], device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
    let is_last = |device: &BlockDevice| schedules_for_paths(device) || is_bottom(root, devices, device);
    way_down(root, devices, device).into_iter().filter(|device| is_last(device)).collect()
}

/// The drives that a device's data lie on, each once, as far as they are seen: of a disk with several paths every path is one.
pub fn drives_below<'a>(root: &Root, devices: &'a [BlockDevice], device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
    all_below(root, devices, device).into_iter().filter(|device| is_bottom(root, devices, device)).collect()
}

fn is_bottom(root: &Root, devices: &[BlockDevice], device: &BlockDevice) -> bool {
    device.queue.is_some() && device.slaves.is_empty() && under_file(root, devices, device).is_none()
}

/// What the file of a loop device lies on.
fn under_file<'a>(root: &Root, devices: &'a [BlockDevice], device: &BlockDevice) -> Option<&'a BlockDevice> {
    let file = device.backing_file.as_ref().filter(|_| device.kind == Kind::Loop)?;
    let mounts = mounts::mounts(root, "self");
    if !root.is_machine() {
        return devices.get(place_of(root, devices, mounts::mount_of(&mounts, file)?)?);
    }
    // The kernel's path may be another mount namespace's, or one of a mount that is gone: only a file that is there tells where it lies.
    let metadata = fs::metadata(file).ok()?;
    let is_node = metadata.file_type().is_block_device();
    let number = Number::of_stat(if is_node { metadata.rdev() } else { metadata.dev() });
    let by_number = devices.iter().find(|device| device.number == number);
    by_number.or_else(|| devices.get(place_of(root, devices, mounts.iter().find(|mount| mount.number == number)?)?))
}
