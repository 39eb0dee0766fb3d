//! Which disk a file system lies on, and where on it: from sysfs and from the table of mounts.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use hoistway_machine::{DeviceNumber, MountEntry, Root, SysfsDevice, mounts};

use crate::Backing;

/// How large a queue's space of places is where no device tells its size: 1 PiB.
pub(super) const SPACE_BYTES: u64 = 1 << 50;
/// The least that a disk is taken for, in bytes, whatever it says.
const DISK_BYTES_MIN: u64 = 1 << 20;

/// What requests of a file system queue for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    /// The kernel's name (`sda`), or a name of the file system's own (`tmpfs-0.45`) where there is no device.
    pub name: String,
    /// The number of the whole device, as `st_rdev` has it; of a file system without one its own.
    pub number: u64,
    /// In bytes.
    pub bytes: u64,
    /// Whether an arm moves in it.
    pub rotates: bool,
    /// The device's node, or what the file system is mounted from.
    pub node: PathBuf,
    /// Where places are known on it: there is a device, and the file system lies on it alone.
    pub has_places: bool,
}

/// Where a file system lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lies {
    /// On which disk.
    pub disk: Disk,
    /// Where its own first byte is there.
    pub offset: u64,
    /// The kind of file system (`ext4`), if the system tells.
    pub kind: String,
    /// The node of the partition or volume that it lies on.
    pub volume: Option<PathBuf>,
}

/// Why a device that was named cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// There is none of this name.
    #[error("there is no block device `{0}`: `ls /sys/class/block` lists them, and `auto` finds it")]
    Unknown(String),
}

/// Where the file system of a file lies, as far as the system tells.
pub(super) fn find(backing: &Backing) -> Lies {
    let mount = mount_of(backing);
    let (kind, source) = mount.map(|mount| (mount.file_system, mount.source)).unwrap_or_default();
    let number = DeviceNumber::from_stat(backing.device);
    if !number.is_anonymous()
        && let Some((disk, offset, volume)) = of_number(number)
    {
        return Lies { disk, offset, kind, volume: Some(volume) };
    }
    // Btrfs and its kin give each volume a number of its own: what it is mounted from tells the device. Where its bytes lie on that is its own affair.
    if let Some((disk, _, _)) = DeviceNumber::from_node(&source).and_then(of_number) {
        return Lies { disk, offset: 0, kind, volume: None };
    }
    Lies { disk: without_device(number, &kind, source), offset: 0, kind, volume: None }
}

/// A device by its name or its node: the whole of it, if a partition is named.
///
/// # Errors
/// When there is none.
pub(super) fn named(name: &str) -> Result<Disk, DiskError> {
    let unknown = || DiskError::Unknown(name.to_owned());
    let plain = name.strip_prefix("/dev/").unwrap_or(name);
    let number = match name.starts_with('/').then(|| DeviceNumber::from_node(Path::new(name))).flatten() {
        Some(number) => number,
        None if plain.contains('/') => return Err(unknown()),
        None => SysfsDevice::named(&Root::machine(), plain).and_then(|entry| entry.number()).ok_or_else(unknown)?,
    };
    of_number(number).map(|(disk, ..)| disk).ok_or_else(unknown)
}

/// A block device by its number: the whole device, where on it the volume of this number begins, and the volume's node.
fn of_number(number: DeviceNumber) -> Option<(Disk, u64, PathBuf)> {
    let volume = SysfsDevice::of(&Root::machine(), number)?;
    let whole = volume.disk();
    let disk = Disk {
        name: whole.name(),
        number: whole.number()?.to_stat(),
        bytes: whole.bytes().unwrap_or(0).max(DISK_BYTES_MIN),
        rotates: whole.rotates().unwrap_or(false),
        node: whole.node(),
        has_places: true,
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
        has_places: false,
    }
}

/// The mount that a file was reached by.
fn mount_of(backing: &Backing) -> Option<MountEntry> {
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{}", backing.fd.as_raw_fd())).ok()?;
    let id: u64 = told.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()?;
    mounts(&Root::machine(), "self").into_iter().find(|mount| mount.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn a_file_system_without_a_device_has_a_queue_of_its_own() {
        let Ok(folder) = fs::File::open("/dev/shm") else {
            eprintln!("skipped: there is no /dev/shm");
            return;
        };
        let told = folder.metadata().expect("it is open");
        let lies = find(&Backing::new(folder.into(), told.dev(), told.ino()));
        let number = DeviceNumber::from_stat(told.dev());
        if !number.is_anonymous() {
            eprintln!("skipped: /dev/shm lies on a device here");
            return;
        }
        assert!(!lies.disk.has_places && lies.disk.bytes == SPACE_BYTES, "{lies:?}");
        assert!(lies.disk.name.ends_with(&format!("-{}.{}", number.major, number.minor)), "{lies:?}");
    }

    #[test]
    fn a_device_that_is_not_there_is_told_by_its_name() {
        for name in ["nosuchdisk", "/dev/nosuchdisk", "/dev/null", "../../etc"] {
            assert_eq!(named(name).expect_err("it is none").to_string().split('`').nth(1), Some(name));
        }
    }

    #[test]
    fn every_device_of_this_machine_is_found_by_its_name() {
        let Ok(devices) = fs::read_dir("/sys/class/block") else { return };
        for device in devices.flatten() {
            let name = device.file_name().to_string_lossy().into_owned();
            let disk = named(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(name.starts_with(&disk.name), "{name} is {disk:?} or a part of it");
        }
    }
}
