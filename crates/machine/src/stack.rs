//! What lies on what.

use std::collections::BTreeSet;

use crate::device::BlockDevice;
use crate::kind::Kind;
use crate::mounts;
use crate::read::place_of;
use crate::root::Root;

/// The devices that a device is made of, itself first and its disks last: partitions lead to their disks, volumes and arrays to what they are made of, a loop
/// device to what its file lies on. Each stands there once.
pub fn all_below<'a>(root: &Root, devices: &'a [BlockDevice], device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
    let mut found: Vec<&BlockDevice> = Vec::new();
    let mut met = BTreeSet::new();
    let mut waiting = vec![device];
    while let Some(device) = waiting.pop() {
        if !met.insert(device.number) {
            continue;
        }
        found.push(device);
        waiting.extend(directly_below(root, devices, device).into_iter().rev());
    }
    found
}

/// What a device is made of, one step down: a partition of its disk, a volume of others, a loop device of what its file lies on.
pub fn directly_below<'a>(root: &Root, devices: &'a [BlockDevice], device: &BlockDevice) -> Vec<&'a BlockDevice> {
    let names = device.disk.iter().chain(&device.slaves);
    let named = names.filter_map(|name| devices.iter().find(|other| other.name == *name));
    named.chain(under_file(root, devices, device)).collect()
}

/// The devices whose queues requests to a device end in, each once: those that are made of no other. A scheduler that is set on one above them sorts for
/// nobody's arm.
pub fn queues_below<'a>(root: &Root, devices: &'a [BlockDevice], device: &'a BlockDevice) -> Vec<&'a BlockDevice> {
    let below = all_below(root, devices, device);
    let is_last = |device: &BlockDevice| {
        device.queue.is_some() && device.slaves.is_empty() && under_file(root, devices, device).is_none()
    };
    below.into_iter().filter(|device| is_last(device)).collect()
}

/// What the file of a loop device lies on.
fn under_file<'a>(root: &Root, devices: &'a [BlockDevice], device: &BlockDevice) -> Option<&'a BlockDevice> {
    let file = device.backing_file.as_ref().filter(|_| device.kind == Kind::Loop)?;
    let mounts = mounts::mounts(root, "self");
    let mounted = mounts::mount_of(&mounts, file)?;
    devices.get(place_of(root, devices, mounted)?)
}
