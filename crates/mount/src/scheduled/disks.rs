//! The block device below a file system and the file system's offset on it, from sysfs and the
//! mount table.

use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use hoistway_machine::{DeviceNumber, MountEntry, ProcessFiles, Root, SysfsDevice, mounts};

use crate::Backing;

/// Size in bytes of the address space of a queue without a block device: 1 PiB.
pub(super) const SPACE_BYTES: u64 = 1 << 50;
/// Minimum size in bytes of a disk, whatever the device reports.
const DISK_BYTES_MIN: u64 = 1 << 20;

/// The disk that a queue schedules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    /// The kernel's name (`sda`), or a synthetic name (`tmpfs-0.45`) for a file system without a
    /// device.
    pub name: String,
    /// Device number (`st_rdev`) of the whole disk; `st_dev` for a file system without a device.
    pub number: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// True for a rotational disk.
    pub rotates: bool,
    /// The device node, or the mount source of a file system without a device.
    pub node: PathBuf,
    /// True if extents are disk addresses: the file system is on this device alone.
    pub maps_extents: bool,
}

/// The placement of a file system on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    /// The disk.
    pub disk: Disk,
    /// Offset of the file system on the disk, in bytes.
    pub offset: u64,
    /// The file system type (`ext4`); empty if unknown.
    pub kind: String,
    /// The device node of the partition or volume.
    pub volume: Option<PathBuf>,
}

/// An error that makes a configured device unusable.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// No block device has this name.
    #[error("there is no block device `{0}`: `ls /sys/class/block` lists them, and `auto` finds it")]
    Unknown(String),
}

/// Finds the placement of a file's file system.
pub(super) fn placement_of(backing: &Backing) -> Placement {
    #[cfg(feature = "simulated")]
    if let Some(host) = super::system::simulated::host() {
        let (bytes, rotates) = host.disk(backing.device);
        let (name, kind) = (format!("disk{}", backing.device), "simulated".to_owned());
        let disk =
            Disk { name, number: backing.device, bytes, rotates, node: PathBuf::from(&kind), maps_extents: false };
        return Placement { disk, offset: 0, kind, volume: None };
    }
    let mount = mount_of(backing);
    let (kind, source) = mount.map(|mount| (mount.file_system, mount.source)).unwrap_or_default();
    let number = DeviceNumber::from_stat(backing.device);
    if !number.is_anonymous()
        && let Some((disk, offset, volume)) = by_number(number)
    {
        return Placement { disk, offset, kind, volume: Some(volume) };
    }
    // btrfs and similar file systems have an anonymous number per volume. The mount source names
    // the device; offsets on it are internal to the file system.
    if let Some((disk, _, _)) = DeviceNumber::from_node(&source).and_then(by_number) {
        return Placement { disk, offset: 0, kind, volume: None };
    }
    Placement { disk: without_device(number, &kind, source), offset: 0, kind, volume: None }
}

/// Finds a disk by name or device node; a partition gives its whole disk.
///
/// # Errors
/// No block device has this name.
pub(super) fn find_by_name(name: &str) -> Result<Disk, DiskError> {
    let unknown = || DiskError::Unknown(name.to_owned());
    let kernel_name = name.strip_prefix("/dev/").unwrap_or(name);
    let number = match name.starts_with('/').then(|| DeviceNumber::from_node(Path::new(name))).flatten() {
        Some(number) => number,
        None if kernel_name.contains('/') => return Err(unknown()),
        None => {
            SysfsDevice::named(&Root::machine(), kernel_name).and_then(|entry| entry.number()).ok_or_else(unknown)?
        }
    };
    by_number(number).map(|(disk, ..)| disk).ok_or_else(unknown)
}

/// Finds a block device by number. Returns the whole disk, the offset of the volume on it in bytes,
/// and the device node of the volume.
fn by_number(number: DeviceNumber) -> Option<(Disk, u64, PathBuf)> {
    let volume = SysfsDevice::of(&Root::machine(), number)?;
    let whole = volume.disk();
    let disk = Disk {
        name: whole.name(),
        number: whole.number()?.to_stat(),
        bytes: whole.bytes().unwrap_or(0).max(DISK_BYTES_MIN),
        rotates: whole.rotates().unwrap_or(false),
        node: whole.node(),
        maps_extents: true,
    };
    Some((disk, volume.start_bytes()?, volume.node()))
}

fn without_device(number: DeviceNumber, kind: &str, source: PathBuf) -> Disk {
    let kind = if kind.is_empty() { "unknown" } else { kind };
    Disk {
        name: format!("{kind}-{}.{}", number.major, number.minor),
        number: number.to_stat(),
        bytes: SPACE_BYTES,
        rotates: false,
        node: if source.as_os_str().is_empty() { PathBuf::from(kind) } else { source },
        maps_extents: false,
    }
}

/// Returns the mount through which a file was opened.
fn mount_of(backing: &Backing) -> Option<MountEntry> {
    let id = ProcessFiles::own().mount_id(backing.fd.as_raw_fd())?;
    mounts(&Root::machine(), "self").into_iter().find(|mount| mount.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn a_file_system_without_a_device_has_a_queue_of_its_own() {
        let Ok(folder) = fs::File::open("/dev/shm") else {
            eprintln!("skipped: there is no /dev/shm");
            return;
        };
        let info = folder.metadata().expect("it is open");
        let placement = placement_of(&Backing::new(folder.into(), info.dev(), info.ino()));
        let number = DeviceNumber::from_stat(info.dev());
        if !number.is_anonymous() {
            eprintln!("skipped: /dev/shm is on a device here");
            return;
        }
        assert!(!placement.disk.maps_extents && placement.disk.bytes == SPACE_BYTES, "{placement:?}");
        assert!(placement.disk.name.ends_with(&format!("-{}.{}", number.major, number.minor)), "{placement:?}");
    }

    #[test]
    fn an_unknown_device_is_named_in_the_error() {
        for name in ["nosuchdisk", "/dev/nosuchdisk", "/dev/null", "../../etc"] {
            assert_eq!(find_by_name(name).expect_err("it is none").to_string().split('`').nth(1), Some(name));
        }
    }

    #[test]
    fn every_device_of_this_machine_is_found_by_its_name() {
        let Ok(devices) = fs::read_dir("/sys/class/block") else { return };
        for device in devices.flatten() {
            let name = device.file_name().to_string_lossy().into_owned();
            let disk = find_by_name(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(name.starts_with(&disk.name), "{name} is {disk:?} or a part of it");
        }
    }
}
