//! The uses of a file or block device that a second writer would destroy: mounted file systems,
//! swap, volumes and arrays, loop devices.
//!
//! Commands open a file or block device that they write to in place by [`open_unused`] only. It
//! belongs to this crate because the facts are in sysfs and procfs, and because the server, the
//! replay, recordings and archives all depend on it.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::device::{BlockDevice, Mount, Opener};
use crate::device_number::DeviceNumber;
use crate::devices::{device_of_mount, device_of_node, devices, openers};
use crate::files::list_names;
use crate::kind::Kind;
use crate::mounts::{mounts, swap_areas};
use crate::process::ProcessFiles;
use crate::root::Root;

/// The number of attempts to open a block device exclusively while nothing in sysfs or procfs uses
/// it: udev's programs open devices for moments, and the kernel may still complete the I/O of a
/// killed process (io_uring).
const OPEN_TRIES: u32 = 20;
const OPEN_PAUSE: Duration = Duration::from_millis(50);
/// The file system type of a mount of `hoistway mount`.
const HOISTWAY_MOUNT: &str = "fuse.hoistway";
/// The largest number of processes that a message names.
const OPENERS_SHOWN_MAX: usize = 3;

/// A use of a file or block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// A file system on the device is mounted.
    Mounted {
        /// The node of the device, of a partition of it, or of its disk.
        device: PathBuf,
        /// The mount point and the file system type.
        mount: Mount,
        /// A `hoistway mount` covers the mount point.
        below_hoistway: bool,
    },
    /// A file system on the device is mounted in another mount namespace, as in a container.
    MountedElsewhere {
        /// The node of the device.
        device: PathBuf,
        /// The mount point and the file system type in that namespace.
        mount: Mount,
        /// A process of that namespace.
        process: Opener,
    },
    /// The machine swaps to the device or file.
    Swap {
        /// The device node or the file.
        area: PathBuf,
    },
    /// The device is part of a volume or an array.
    Member {
        /// The node of the member.
        device: PathBuf,
        /// The node of the volume or array.
        holder: PathBuf,
        /// The name of a volume, or the level of an array.
        label: Option<String>,
        /// The first mount point of the volume or array.
        mounted_at: Option<PathBuf>,
    },
    /// A loop device has the file or device as its backing file.
    BehindLoop {
        /// The node of the loop device.
        device: PathBuf,
        /// The first mount point of the loop device or of a partition of it.
        mounted_at: Option<PathBuf>,
    },
    /// The kernel reports exclusive use, and neither sysfs nor procfs shows by what.
    Exclusive {
        /// The node of the device.
        device: PathBuf,
        /// Processes that have the device open.
        openers: Vec<Opener>,
    },
}

/// A file or block device that is not written to because it is in use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: writing to it would destroy data: {}", with_path(path, found), found.remedy())]
pub struct InUse {
    /// The path as given.
    pub path: PathBuf,
    /// The use.
    pub found: Box<Use>,
}

/// Why a file or block device was not opened for writing.
#[derive(Debug, thiserror::Error)]
pub enum OpenUnusedError {
    /// It is in use.
    #[error(transparent)]
    InUse(#[from] InUse),
    /// The system refused the open.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// A file or block device that was opened by [`open_unused`].
#[derive(Debug)]
pub struct OpenedForWriting {
    /// The open file. A block device is open exclusively, unless its use was overridden: the kernel
    /// then refuses to mount it, to swap to it and to add it to a volume until the file is closed.
    pub file: File,
    /// The use that the caller overrode.
    pub overridden: Option<InUse>,
}

/// Opens a file or block device in place, unless it is in use; a block device is opened
/// exclusively. `options` has the access modes, `flags` are further flags of open(2). With `force`
/// a use is no error, and the caller warns of [`OpenedForWriting::overridden`].
///
/// # Errors
/// [`OpenUnusedError::InUse`] with the use, [`OpenUnusedError::System`] if the open fails.
pub fn open_unused(
    path: &Path,
    options: &OpenOptions,
    flags: i32,
    force: bool,
) -> Result<OpenedForWriting, OpenUnusedError> {
    let in_use = |found| InUse { path: path.to_owned(), found: Box::new(found) };
    let found = find_use(&Root::machine(), path).map(in_use);
    if let (Some(found), false) = (&found, force) {
        return Err(found.clone().into());
    }
    let open = |flags| options.clone().custom_flags(flags).open(path);
    let is_device = is_block_device(fs::metadata(path));
    if !is_device {
        let file = open(flags)?;
        if is_block_device(file.metadata()) {
            return Err(io::Error::other("it was replaced by a block device at the same moment: try again").into());
        }
        return Ok(OpenedForWriting { file, overridden: found });
    }
    let mut attempts = 1;
    loop {
        match open(flags | libc::O_EXCL) {
            Ok(file) => return Ok(OpenedForWriting { file, overridden: found }),
            Err(error) if error.raw_os_error() != Some(libc::EBUSY) => return Err(error.into()),
            Err(_) if found.is_some() || attempts == OPEN_TRIES => break,
            Err(_) => std::thread::sleep(OPEN_PAUSE),
        }
        attempts += 1;
    }
    let found = found.unwrap_or_else(|| in_use(hidden_use(&Root::machine(), path)));
    if !force {
        return Err(found.into());
    }
    Ok(OpenedForWriting { file: open(flags)?, overridden: Some(found) })
}

/// Creates or truncates a file for output, or opens a block device, unless it is in use.
///
/// # Errors
/// As [`open_unused`].
pub fn create_unused(path: &Path) -> Result<File, OpenUnusedError> {
    let mut options = OpenOptions::new();
    options.write(true);
    if !is_block_device(fs::metadata(path)) {
        options.create(true).truncate(true);
    }
    open_unused(path, &options, 0, false).map(|opened| opened.file)
}

fn is_block_device(metadata: io::Result<fs::Metadata>) -> bool {
    metadata.is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// Finds a use of a file or block device: of the device itself, of its partitions, of the disk of a
/// partition as a whole, and of the file behind a loop device. `None` also if the file is missing.
/// Exclusive use by the kernel that sysfs does not show is not found; [`open_unused`] finds it.
pub fn find_use(root: &Root, path: &Path) -> Option<Use> {
    let devices = devices(root).unwrap_or_default();
    let search = Search { root, devices: &devices };
    if !root.is_machine() {
        return match device_of_node(root, &devices, path) {
            Some(index) => search.use_of_device(&devices[index], &mut Vec::new()),
            None => search.use_of_file(path, &[]),
        };
    }
    let path = fs::canonicalize(path).ok()?;
    let Some(number) = DeviceNumber::from_node(&path) else { return search.use_of_file(&path, &[]) };
    match devices.iter().find(|device| device.number == number) {
        Some(device) => search.use_of_device(device, &mut Vec::new()),
        None => search.use_without_sysfs(&path, number),
    }
}

/// A search for uses among the devices of a machine.
struct Search<'a> {
    root: &'a Root,
    devices: &'a [BlockDevice],
}

impl Search<'_> {
    /// Finds a use of a device. `passed` are the loop devices by which the search has come here.
    fn use_of_device(&self, device: &BlockDevice, passed: &mut Vec<DeviceNumber>) -> Option<Use> {
        passed.push(device.number);
        let disk = device.disk.as_ref().and_then(|disk| self.named(disk));
        passed.extend(disk.map(|disk| disk.number));
        let partitions = self.devices.iter().filter(|other| other.disk.as_deref() == Some(device.name.as_str()));
        let overlapping = std::iter::once(device).chain(partitions).chain(disk);
        if let Some(found) = overlapping.into_iter().find_map(|one| self.direct_use(one, passed)) {
            return Some(found);
        }
        let behind = [Some(device), disk].into_iter().flatten().find_map(|one| one.backing_file.as_deref())?;
        match device_of_node(self.root, self.devices, behind).map(|index| &self.devices[index]) {
            Some(behind) if passed.contains(&behind.number) => None,
            Some(behind) => self.use_of_device(behind, passed),
            None => self.use_of_file(behind, passed),
        }
    }

    /// Finds a use of exactly this device.
    fn direct_use(&self, device: &BlockDevice, passed: &[DeviceNumber]) -> Option<Use> {
        let node = || device.path.clone();
        if let Some(mount) = device.mounts.first() {
            let below_hoistway = mounts(self.root, "self")
                .iter()
                .any(|other| other.file_system == HOISTWAY_MOUNT && other.mount_point == mount.at);
            return Some(Use::Mounted { device: node(), mount: mount.clone(), below_hoistway });
        }
        if device.swap {
            return Some(Use::Swap { area: node() });
        }
        let holder = device.holders.first().and_then(|holder| self.named(holder));
        let holder = holder.or_else(|| self.devices.iter().find(|other| other.slaves.contains(&device.name)));
        if let Some(holder) = holder {
            return Some(Use::Member {
                device: node(),
                holder: holder.path.clone(),
                label: holder.label.clone(),
                mounted_at: self.mounted_at(holder),
            });
        }
        self.loop_over(passed, |file| {
            device_of_node(self.root, self.devices, file).is_some_and(|index| self.devices[index].name == device.name)
        })
    }

    /// Finds a use of a regular file.
    fn use_of_file(&self, path: &Path, passed: &[DeviceNumber]) -> Option<Use> {
        if let Some(found) = self.loop_over(passed, |file| self.is_same_file(file, path)) {
            return Some(found);
        }
        let areas = swap_areas(self.root).into_iter();
        let area = areas.filter(|area| !area.is_device).find(|area| self.is_same_file(&area.path, path))?;
        Some(Use::Swap { area: area.path })
    }

    /// Finds a loop device whose backing file matches.
    fn loop_over(&self, passed: &[DeviceNumber], matches: impl Fn(&Path) -> bool) -> Option<Use> {
        let loops = self.devices.iter().filter(|device| device.kind == Kind::Loop && !passed.contains(&device.number));
        let device = loops.into_iter().find(|device| device.backing_file.as_deref().is_some_and(&matches))?;
        Some(Use::BehindLoop { device: device.path.clone(), mounted_at: self.mounted_at(device) })
    }

    /// Finds a mount of a device that is not in sysfs, as in some containers.
    fn use_without_sysfs(&self, path: &Path, number: DeviceNumber) -> Option<Use> {
        let entry = mounts(self.root, "self").into_iter().find(|entry| {
            entry.number == number || DeviceNumber::from_node(&self.root.path(&entry.source)) == Some(number)
        })?;
        let mount = Mount { at: entry.mount_point, file_system: entry.file_system };
        Some(Use::Mounted { device: path.to_owned(), mount, below_hoistway: false })
    }

    fn named(&self, name: &str) -> Option<&BlockDevice> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// Returns the first mount point of a device or of a partition of it.
    fn mounted_at(&self, device: &BlockDevice) -> Option<PathBuf> {
        let partitions = self.devices.iter().filter(|other| other.disk.as_deref() == Some(device.name.as_str()));
        let mut mounts = std::iter::once(device).chain(partitions).flat_map(|device| &device.mounts);
        mounts.next().map(|mount| mount.at.clone())
    }

    /// Returns true if two paths name one file, whatever its names and mounts.
    fn is_same_file(&self, one: &Path, other: &Path) -> bool {
        let identity =
            |path: &Path| fs::metadata(self.root.path(path)).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        match (identity(one), identity(other)) {
            (Some(one), Some(other)) => one == other,
            _ => one == other,
        }
    }
}

/// Finds what uses a device exclusively that [`find_use`] does not find: a mount in another mount
/// namespace, or processes that have it open.
fn hidden_use(root: &Root, path: &Path) -> Use {
    let devices = devices(root).unwrap_or_default();
    let number = DeviceNumber::from_node(path);
    let device = devices.iter().position(|device| Some(device.number) == number);
    if let Some(found) = find_use(root, path) {
        // It came into use since the first search.
        return found;
    }
    let Some(index) = device else { return Use::Exclusive { device: path.to_owned(), openers: Vec::new() } };
    let device = &devices[index];
    let is_overlapping = |other: &BlockDevice| {
        other.name == device.name
            || other.disk.as_deref() == Some(device.name.as_str())
            || device.disk.as_deref() == Some(other.name.as_str())
    };
    let mut namespaces = BTreeSet::new();
    let pids = list_names(&root.path("/proc")).into_iter().filter_map(|name| name.parse::<u32>().ok());
    for pid in pids {
        let namespace = fs::read_link(root.path(format!("/proc/{pid}/ns/mnt"))).ok();
        if namespace.is_none_or(|namespace| !namespaces.insert(namespace)) {
            continue;
        }
        for entry in mounts(root, &pid.to_string()) {
            let Some(mounted) = device_of_mount(root, &devices, &entry).map(|index| &devices[index]) else { continue };
            if is_overlapping(mounted) {
                let process = Opener { pid, comm: ProcessFiles::new(root, pid).comm() };
                let mount = Mount { at: entry.mount_point, file_system: entry.file_system };
                return Use::MountedElsewhere { device: mounted.path.clone(), mount, process };
            }
        }
    }
    let own = std::process::id();
    let openers = openers(root, device).into_iter().filter(|opener| opener.pid != own).collect();
    Use::Exclusive { device: device.path.clone(), openers }
}

/// Returns the text of a use after the path of the file, unless the text begins with that path.
fn with_path(path: &Path, found: &Use) -> String {
    let (path, text) = (path.display().to_string(), found.to_string());
    match text.strip_prefix(&path) {
        Some(rest) if rest.starts_with(' ') => text,
        _ => format!("{path}: {text}"),
    }
}

impl Use {
    /// Returns how to end the use.
    pub fn remedy(&self) -> String {
        match self {
            Use::Mounted { mount, .. } | Use::MountedElsewhere { mount, .. } => {
                format!("unmount {}, or only read", mount.at.display())
            }
            Use::Swap { area } => format!("swapoff {}, or only read", area.display()),
            Use::Member { holder, .. } => format!("stop {}, or write to it instead", holder.display()),
            Use::BehindLoop { device, .. } => format!("losetup -d {}, or only read", device.display()),
            Use::Exclusive { .. } => "end that use, or only read".to_owned(),
        }
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mounted = |at: &Option<PathBuf>| match at {
            Some(at) => format!(", which is mounted at {}", at.display()),
            None => String::new(),
        };
        match self {
            Use::Mounted { device, mount, below_hoistway } => {
                let (device, at) = (device.display(), mount.at.display());
                let below = if *below_hoistway { ", below a hoistway mount" } else { "" };
                write!(f, "{device} is mounted at {at} ({}{below})", mount.file_system)
            }
            Use::MountedElsewhere { device, mount, process } => {
                let (device, at, Opener { pid, comm }) = (device.display(), mount.at.display(), process);
                write!(f, "{device} is mounted at {at} ({}) for process {pid} ({comm})", mount.file_system)
            }
            Use::Swap { area } => write!(f, "{} is swap space", area.display()),
            Use::Member { device, holder, label, mounted_at } => {
                let label = label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
                let (device, holder) = (device.display(), holder.display());
                write!(f, "{device} is part of {holder}{label}{}", mounted(mounted_at))
            }
            Use::BehindLoop { device, mounted_at } => {
                write!(f, "it is behind the loop device {}{}", device.display(), mounted(mounted_at))
            }
            Use::Exclusive { device, openers } => {
                let named: Vec<String> = openers
                    .iter()
                    .take(OPENERS_SHOWN_MAX)
                    .map(|Opener { pid, comm }| format!("{pid} ({comm})"))
                    .collect();
                let by =
                    if named.is_empty() { String::new() } else { format!("; open in process {}", named.join(", ")) };
                write!(f, "the kernel reports exclusive use of {}{by}", device.display())
            }
        }
    }
}
