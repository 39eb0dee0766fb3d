//! The device that a person means.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::device::{BlockDevice, Number};
use crate::mounts;
use crate::read::{DevicesError, by_node, devices, place_of};
use crate::root::Root;

/// Why no device was found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No device goes by this name, and there is no such file.
    #[error("there is no block device `{text}`; there are {}", names.join(", "))]
    None {
        /// What was asked for.
        text: String,
        /// The names of all whole devices.
        names: Vec<String>,
    },
    /// A file that lies on no block device: in memory, on a network.
    #[error("{}: it lies on no block device but on {file_system} at {}", path.display(), at.display())]
    NoDevice {
        /// The file.
        path: PathBuf,
        /// The sort of file system.
        file_system: String,
        /// Where that is mounted.
        at: PathBuf,
    },
    /// A file that is there and cannot be asked, or whose device is not to be seen.
    #[error("{}: {what}", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The devices cannot be listed.
    #[error(transparent)]
    Devices(#[from] DevicesError),
}

/// Finds the device that is meant by the kernel's name (`sda`), the device mapper's (`vg-root`), a number (`8:0`), a node or one of its links
/// (`/dev/disk/by-id/...`), or by a file or directory that lies on it. A name of a device comes before a file of the same name.
///
/// # Errors
/// When there is none, or what was named lies on no block device.
pub fn find(root: &Root, text: &str) -> Result<BlockDevice, FindError> {
    let mut all = devices(root)?;
    let found = place(root, &all, text)?;
    Ok(all.swap_remove(found))
}

fn place(root: &Root, devices: &[BlockDevice], text: &str) -> Result<usize, FindError> {
    let node = if text.starts_with('/') { PathBuf::from(text) } else { Path::new("/dev").join(text) };
    let mapped = Path::new("/dev/mapper").join(text);
    let by_name = by_node(root, devices, &node).or_else(|| by_node(root, devices, &mapped));
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
    let number: Number = text.parse().ok()?;
    devices.iter().position(|device| device.number == number)
}

/// By asking the file itself; nothing if there is no such file.
fn by_stat(root: &Root, devices: &[BlockDevice], text: &str) -> Option<Result<usize, FindError>> {
    let path = Path::new(text);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(Err(FindError::Unknown { path: path.into(), what: error.to_string() })),
    };
    let sort = metadata.file_type();
    if sort.is_char_device() {
        return Some(Err(FindError::Unknown { path: path.into(), what: "this is a character device".to_owned() }));
    }
    let number = Number::of_stat(if sort.is_block_device() { metadata.rdev() } else { metadata.dev() });
    if let Some(found) = devices.iter().position(|device| device.number == number) {
        return Some(Ok(found));
    }
    let mounts = mounts::mounts(root, "self");
    let Some(mounted) = mounts.iter().find(|mounted| mounted.number == number && !sort.is_block_device()) else {
        let what = format!("its device {number} is not among those of /sys/block");
        return Some(Err(FindError::Unknown { path: path.into(), what }));
    };
    Some(on_mount(root, devices, path, mounted))
}

/// By what is mounted above it, in a tree that is no running machine's: whether the file exists there nobody knows.
fn by_mount(root: &Root, devices: &[BlockDevice], text: &str) -> Option<Result<usize, FindError>> {
    let path = Path::new(text);
    if !path.is_absolute() || path.starts_with("/dev") {
        return None;
    }
    let mounts = mounts::mounts(root, "self");
    let mounted = mounts::mount_of(&mounts, path)?;
    Some(on_mount(root, devices, path, mounted))
}

fn on_mount(root: &Root, devices: &[BlockDevice], path: &Path, mounted: &mounts::Mounted) -> Result<usize, FindError> {
    place_of(root, devices, mounted).ok_or_else(|| FindError::NoDevice {
        path: path.into(),
        file_system: mounted.file_system.clone(),
        at: mounted.at.clone(),
    })
}
