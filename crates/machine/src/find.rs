//! Finds a block device by a name, a number, a path, or a file on the device.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::device::BlockDevice;
use crate::device_number::DeviceNumber;
use crate::devices::{DevicesError, device_of_mount, device_of_node, devices};
use crate::mounts::{self, MountEntry};
use crate::root::Root;

/// No device was found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// There is no device of this name, and no such file.
    #[error("there is no block device `{text}`; there are {}", names.join(", "))]
    None {
        /// The name.
        text: String,
        /// The names of all whole devices.
        names: Vec<String>,
    },
    /// The file is on a file system without a block device: in memory, on a network.
    #[error("{}: the file is on no block device but on {file_system} at {}", path.display(), at.display())]
    NoDevice {
        /// The file.
        path: PathBuf,
        /// The file system type.
        file_system: String,
        /// The mount point of the file system.
        at: PathBuf,
    },
    /// The file cannot be examined, or its device is not among the devices of sysfs.
    #[error("{}: {what}", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// The devices cannot be listed.
    #[error(transparent)]
    Devices(#[from] DevicesError),
}

/// Finds a device by the kernel's name (`sda`), the device mapper's (`vg-root`), a device number
/// (`8:0`), a node or a link to one (`/dev/disk/by-id/...`), or a file or directory on the device.
/// A device name takes precedence over a file of the same name.
///
/// # Errors
/// [`FindError`] if there is no such device, or the file is on no block device.
pub fn find(root: &Root, text: &str) -> Result<BlockDevice, FindError> {
    let mut all = devices(root)?;
    let found = find_index(root, &all, text)?;
    Ok(all.swap_remove(found))
}

fn find_index(root: &Root, devices: &[BlockDevice], text: &str) -> Result<usize, FindError> {
    let node = if text.starts_with('/') { PathBuf::from(text) } else { Path::new("/dev").join(text) };
    let mapped = Path::new("/dev/mapper").join(text);
    let by_name = device_of_node(root, devices, &node).or_else(|| device_of_node(root, devices, &mapped));
    if let Some(found) = by_name.or_else(|| by_number(devices, text)) {
        return Ok(found);
    }
    match if root.is_machine() { by_stat(root, devices, text) } else { by_mount(root, devices, text) } {
        Some(found) => found,
        None => {
            let names = devices.iter().filter(|device| device.disk.is_none() && device.is_present());
            Err(FindError::None { text: text.to_owned(), names: names.map(|device| device.name.clone()).collect() })
        }
    }
}

fn by_number(devices: &[BlockDevice], text: &str) -> Option<usize> {
    let number: DeviceNumber = text.parse().ok()?;
    devices.iter().position(|device| device.number == number)
}

/// Finds the device of a file by `stat`; `None` if there is no such file.
fn by_stat(root: &Root, devices: &[BlockDevice], text: &str) -> Option<Result<usize, FindError>> {
    let path = Path::new(text);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(Err(FindError::Unknown { path: path.into(), what: error.to_string() })),
    };
    let file_type = metadata.file_type();
    if file_type.is_char_device() {
        return Some(Err(FindError::Unknown { path: path.into(), what: "this is a character device".to_owned() }));
    }
    let number = DeviceNumber::from_stat(if file_type.is_block_device() { metadata.rdev() } else { metadata.dev() });
    if let Some(found) = devices.iter().position(|device| device.number == number) {
        return Some(Ok(found));
    }
    let mounts = mounts::mounts(root, "self");
    let Some(mount) = mounts.iter().find(|mount| mount.number == number && !file_type.is_block_device()) else {
        let what = format!("its device {number} is not among those of /sys/block");
        return Some(Err(FindError::Unknown { path: path.into(), what }));
    };
    Some(of_mount(root, devices, path, mount))
}

/// Finds the device of a path by the mounts of a tree that is not the running machine. The file
/// itself need not be in the tree.
fn by_mount(root: &Root, devices: &[BlockDevice], text: &str) -> Option<Result<usize, FindError>> {
    let path = Path::new(text);
    if !path.is_absolute() || path.starts_with("/dev") {
        return None;
    }
    let mounts = mounts::mounts(root, "self");
    let mount = mounts::mount_of(&mounts, path)?;
    Some(of_mount(root, devices, path, mount))
}

fn of_mount(root: &Root, devices: &[BlockDevice], path: &Path, mount: &MountEntry) -> Result<usize, FindError> {
    device_of_mount(root, devices, mount).ok_or_else(|| FindError::NoDevice {
        path: path.into(),
        file_system: mount.file_system.clone(),
        at: mount.mount_point.clone(),
    })
}
