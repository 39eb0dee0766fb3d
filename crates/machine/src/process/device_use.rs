//! The block devices that a process uses.

use std::cmp::Reverse;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Serialize;

use super::files::ProcessFiles;
use crate::device::BlockDevice;
use crate::device_number::DeviceNumber;
use crate::devices::{device_of_mount, device_of_node};
use crate::mounts::{self, MountEntry};
use crate::root::Root;

/// A device that a process uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceUse {
    /// The name of the device: a partition, a volume or a disk.
    pub device: String,
    /// Open files on the device; the open device node counts too.
    pub open_files: u32,
    /// True if the working directory is on the device.
    pub working_directory: bool,
    /// True if the executable is on the device.
    pub program: bool,
}

/// The devices that a process uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceUses {
    /// The devices, those with the most open files first.
    pub devices: Vec<DeviceUse>,
    /// False if the caller may not list the open files of the process.
    pub all_seen: bool,
}

/// Finds the devices that a process uses through open files, working directory and executable.
pub fn device_use(root: &Root, devices: &[BlockDevice], pid: u32) -> DeviceUses {
    let files = ProcessFiles::new(root, pid);
    let mounts = mounts::mounts(root, &pid.to_string());
    let mounts = if mounts.is_empty() { mounts::mounts(root, "self") } else { mounts };
    let mut found: Vec<DeviceUse> = Vec::new();
    let mut add = |link: &Path, note: fn(&mut DeviceUse)| {
        let Some(device) = device_of_link(root, devices, &mounts, link) else { return };
        let index = found.iter().position(|used| used.device == device.name).unwrap_or_else(|| {
            let device = device.name.clone();
            found.push(DeviceUse { device, open_files: 0, working_directory: false, program: false });
            found.len() - 1
        });
        note(&mut found[index]);
    };
    for descriptor in files.descriptors() {
        add(&descriptor, |used| used.open_files += 1);
    }
    add(&files.working_directory(), |used| used.working_directory = true);
    add(&files.executable(), |used| used.program = true);
    found.sort_by_key(|used| (Reverse(used.open_files), !used.working_directory));
    DeviceUses { devices: found, all_seen: files.may_list_descriptors() }
}

/// The device of the target of a link in `/proc/PID`. On the running machine `stat` follows the
/// link; in another tree the text of the link and the mounts of that tree give the device.
fn device_of_link<'a>(
    root: &Root,
    devices: &'a [BlockDevice],
    mounts: &[MountEntry],
    link: &Path,
) -> Option<&'a BlockDevice> {
    let target = fs::read_link(link).ok()?;
    // Sockets and pipes have no path.
    if !target.is_absolute() {
        return None;
    }
    let by_number = |number: DeviceNumber| devices.iter().find(|device| device.number == number);
    if let Some(metadata) = fs::metadata(link).ok().filter(|_| root.is_machine()) {
        let is_node = rustix::fs::FileType::from_raw_mode(metadata.mode()).is_block_device();
        let number = DeviceNumber::from_stat(if is_node { metadata.rdev() } else { metadata.dev() });
        if let Some(device) = by_number(number) {
            return Some(device);
        }
        let mount = mounts.iter().find(|mount| mount.number == number)?;
        return devices.get(device_of_mount(root, devices, mount)?);
    }
    if target.starts_with("/dev") {
        return devices.get(device_of_node(root, devices, &target)?);
    }
    devices.get(device_of_mount(root, devices, mounts::mount_of(mounts, &target)?)?)
}
