//! Which disk a file system lies on, and where on it: from sysfs and from the table of mounts.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{major, makedev, minor};

use crate::Backing;

/// How large a queue's space of places is where no device tells its size: 1 PiB.
pub(super) const SPACE_BYTES: u64 = 1 << 50;
const SECTOR_BYTES: u64 = 512;

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
    let (kind, source) = mount.clone().unwrap_or_default();
    if major(backing.device) != 0
        && let Some((disk, offset, volume)) = of_number(backing.device)
    {
        return Lies { disk, offset, kind, volume: Some(volume) };
    }
    // Btrfs and its kin give each volume a number of its own: what it is mounted from tells the device. Where its bytes lie on that is its own affair.
    if let Some((disk, _, _)) = number_of_node(Path::new(&source)).and_then(of_number) {
        return Lies { disk, offset: 0, kind, volume: None };
    }
    Lies { disk: without_device(backing.device, &kind, &source), offset: 0, kind, volume: None }
}

/// A device by its name or its node: the whole of it, if a partition is named.
///
/// # Errors
/// When there is none.
pub(super) fn named(name: &str) -> Result<Disk, DiskError> {
    let unknown = || DiskError::Unknown(name.to_owned());
    let plain = name.strip_prefix("/dev/").unwrap_or(name);
    let number = if name.starts_with('/') { number_of_node(Path::new(name)) } else { None };
    let number = match number {
        Some(number) => number,
        None if plain.contains('/') => return Err(unknown()),
        None => {
            text(&format!("/sys/class/block/{plain}/dev")).and_then(|text| parse_number(&text)).ok_or_else(unknown)?
        }
    };
    of_number(number).map(|(disk, ..)| disk).ok_or_else(unknown)
}

/// A block device by its number: the whole device, where on it the volume of this number begins, and the volume's node.
fn of_number(number: u64) -> Option<(Disk, u64, PathBuf)> {
    let link = format!("/sys/dev/block/{}:{}", major(number), minor(number));
    let volume = fs::canonicalize(link).ok()?;
    let volume_name = volume.file_name()?.to_string_lossy().into_owned();
    let is_partition = volume.join("partition").exists();
    let whole = if is_partition { volume.parent()?.to_path_buf() } else { volume.clone() };
    let offset = if is_partition { number_at(&volume.join("start"))?.saturating_mul(SECTOR_BYTES) } else { 0 };
    let name = whole.file_name()?.to_string_lossy().into_owned();
    let disk = Disk {
        number: text(&whole.join("dev")).and_then(|text| parse_number(&text))?,
        bytes: number_at(&whole.join("size")).unwrap_or(0).saturating_mul(SECTOR_BYTES).max(1 << 20),
        rotates: number_at(&whole.join("queue/rotational")).unwrap_or(0) == 1,
        // The kernel writes a slash in a name as `!`.
        node: Path::new("/dev").join(name.replace('!', "/")),
        name,
        has_places: true,
    };
    Some((disk, offset, Path::new("/dev").join(volume_name.replace('!', "/"))))
}

fn without_device(number: u64, kind: &str, source: &str) -> Disk {
    let kind = if kind.is_empty() { "unknown" } else { kind };
    Disk {
        name: format!("{kind}-{}.{}", major(number), minor(number)),
        number,
        bytes: SPACE_BYTES,
        rotates: false,
        node: PathBuf::from(if source.is_empty() { kind } else { source }),
        has_places: false,
    }
}

/// Kind and source of the mount that a file was reached by.
fn mount_of(backing: &Backing) -> Option<(String, String)> {
    let told = text(&format!("/proc/self/fdinfo/{}", backing.fd.as_raw_fd()))?;
    let number = told.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().to_owned();
    let table = fs::read("/proc/self/mountinfo").ok()?;
    let table = String::from_utf8_lossy(&table);
    let line = table.lines().find(|line| line.split(' ').next() == Some(number.as_str()))?;
    kind_and_source(line)
}

/// Behind any number of optional fields and a dash stand kind and source (proc_pid_mountinfo(5)).
fn kind_and_source(line: &str) -> Option<(String, String)> {
    let mut fields = line.split(' ').skip_while(|field| *field != "-").skip(1);
    Some((fields.next()?.to_owned(), fields.next()?.replace("\\040", " ")))
}

fn number_of_node(path: &Path) -> Option<u64> {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    let found = fs::metadata(path).ok()?;
    found.file_type().is_block_device().then(|| found.rdev())
}

fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn number_at(path: &Path) -> Option<u64> {
    text(path)?.trim().parse().ok()
}

fn parse_number(text: &str) -> Option<u64> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(makedev(major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn kind_and_source_stand_behind_the_dash() {
        let line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:7 - ext4 /dev/my\\040disk rw,errors=continue";
        assert_eq!(kind_and_source(line), Some(("ext4".into(), "/dev/my disk".into())));
        assert_eq!(kind_and_source("36 35 98:0 / /"), None);
    }

    #[test]
    fn a_file_system_without_a_device_has_a_queue_of_its_own() {
        let Ok(folder) = fs::File::open("/dev/shm") else {
            eprintln!("skipped: there is no /dev/shm");
            return;
        };
        let told = folder.metadata().expect("it is open");
        let lies = find(&Backing::new(folder.into(), told.dev(), told.ino()));
        if major(told.dev()) != 0 {
            eprintln!("skipped: /dev/shm lies on a device here");
            return;
        }
        assert!(!lies.disk.has_places && lies.disk.bytes == SPACE_BYTES, "{lies:?}");
        assert!(lies.disk.name.ends_with(&format!("-{}.{}", major(told.dev()), minor(told.dev()))), "{lies:?}");
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
