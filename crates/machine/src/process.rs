//! Processes, as far as their I/O follows from it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::device::{BlockDevice, Number};
use crate::mounts::{self, Mounted};
use crate::priority::{self, CpuPolicy, Priority, Who};
use crate::read::{by_node, place_of};
use crate::root::{Root, names, text};

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// What it is called.
    pub comm: String,
    /// Its command line, a word each; empty for the kernel's own.
    pub command: Vec<String>,
    /// Its user.
    pub uid: u32,
    /// Its control group, as [`cgroup_of`] has it.
    pub cgroup: String,
    /// How nice it is, -20 to 19.
    pub nice: i8,
    /// By which policy it is given the CPU.
    pub policy: CpuPolicy,
    /// Its I/O priority, perhaps unset. Files do not tell: of another tree than the machine's it is always unset.
    pub priority: Priority,
    /// Bytes that it had read from devices, and caused to be written, where this may be known (`/proc/PID/io`).
    pub moved_bytes: Option<(u64, u64)>,
}

/// Why a process cannot be told of.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It has gone, or there never was one.
    #[error("process {pid}: there is no such process")]
    None {
        /// Its number.
        pid: u32,
    },
    /// Its files cannot be read.
    #[error("process {pid}: {cause}")]
    Unreadable {
        /// Its number.
        pid: u32,
        /// Why.
        cause: io::Error,
    },
}

/// Reads what there is to know of a process or a thread.
///
/// # Errors
/// When it has gone.
pub fn process(root: &Root, pid: u32) -> Result<Process, ProcessError> {
    let folder = folder(root, pid);
    let read = |name: &str| text(&folder.join(name)).unwrap_or_default();
    let stat = fs::read_to_string(folder.join("stat")).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => ProcessError::None { pid },
        // What it says of a process that ends while it is read.
        _ if cause.raw_os_error() == Some(libc::ESRCH) => ProcessError::None { pid },
        _ => ProcessError::Unreadable { pid, cause },
    })?;
    let priority =
        if root.is_machine() { priority::get(Who::Process(pid)).unwrap_or_default() } else { Priority::UNSET };
    Ok(Process {
        pid,
        comm: read("comm"),
        command: read("cmdline").split('\0').filter(|word| !word.is_empty()).map(str::to_owned).collect(),
        uid: field(&read("status"), "Uid:").and_then(|uid| uid.parse().ok()).unwrap_or(0),
        cgroup: cgroup_of(&read("cgroup")).to_owned(),
        nice: nice_of(&stat),
        policy: policy_of(&stat),
        priority,
        moved_bytes: moved_bytes(&read("io")),
    })
}

fn folder(root: &Root, pid: u32) -> PathBuf {
    root.path(format!("/proc/{pid}"))
}

/// The path of `/proc/PID/cgroup` (cgroups(7)): of the unified hierarchy if it has one of its own, else of the controller `blkio` of version 1.
/// Where both exist, everything is at the root of the one that is not used.
pub fn cgroup_of(text: &str) -> &str {
    let (mut unified, mut blkio) = (None, None);
    for line in text.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        if controllers.is_empty() {
            unified = Some(path);
        } else if controllers.split(',').any(|controller| controller == "blkio") {
            blkio = Some(path);
        }
    }
    let unified_used = unified.filter(|path| *path != "/");
    unified_used.or(blkio).or(unified).unwrap_or_default()
}

/// The nice value: the 19th field of `/proc/PID/stat` (proc(5)); 0 where there is none. The second, the name in parentheses, may hold blanks and parentheses.
pub fn nice_of(stat: &str) -> i8 {
    field_of_stat(stat, 19).unwrap_or(0)
}

/// The policy: the 41st field of the same.
pub fn policy_of(stat: &str) -> CpuPolicy {
    match field_of_stat::<i32>(stat, 41) {
        Some(libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE) => CpuPolicy::Realtime,
        Some(libc::SCHED_IDLE) => CpuPolicy::Idle,
        _ => CpuPolicy::Normal,
    }
}

/// A field by its number in proc(5), from the third on.
fn field_of_stat<T: std::str::FromStr>(stat: &str, number: usize) -> Option<T> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_whitespace().nth(number - 3)?.parse().ok()
}

/// The first word behind a name at the beginning of a line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()
}

fn moved_bytes(io: &str) -> Option<(u64, u64)> {
    let bytes = |name| field(io, name)?.parse().ok();
    Some((bytes("read_bytes:")?, bytes("write_bytes:")?))
}

/// A device that a process uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Use {
    /// The device's name: a partition, a volume, a disk.
    pub device: String,
    /// Files on it that the process has open, the device itself included.
    pub open_files: u32,
    /// Its working directory lies there.
    pub working_directory: bool,
    /// Its program lies there.
    pub program: bool,
}

/// The devices that a process uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Uses {
    /// Those whose files it has open first, the more the earlier.
    pub devices: Vec<Use>,
    /// Whether its open files could be seen: others' are root's to see.
    pub all_seen: bool,
}

/// Finds the devices that a process uses: by its open files, its working directory, its program.
pub fn uses(root: &Root, devices: &[BlockDevice], pid: u32) -> Uses {
    let folder = folder(root, pid);
    let mounts = mounts::mounts(root, &pid.to_string());
    let mounts = if mounts.is_empty() { mounts::mounts(root, "self") } else { mounts };
    let mut found: Vec<Use> = Vec::new();
    let mut note = |link: &Path, note: fn(&mut Use)| {
        let Some(device) = device_of_link(root, devices, &mounts, link) else { return };
        let place = found.iter().position(|used| used.device == device.name).unwrap_or_else(|| {
            let device = device.name.clone();
            found.push(Use { device, open_files: 0, working_directory: false, program: false });
            found.len() - 1
        });
        note(&mut found[place]);
    };
    for descriptor in names(&folder.join("fd")) {
        note(&folder.join("fd").join(descriptor), |used| used.open_files += 1);
    }
    note(&folder.join("cwd"), |used| used.working_directory = true);
    note(&folder.join("exe"), |used| used.program = true);
    found.sort_by_key(|used| (std::cmp::Reverse(used.open_files), !used.working_directory));
    Uses { devices: found, all_seen: fs::read_dir(folder.join("fd")).is_ok() }
}

/// The device of what a link of `/proc/PID` leads to. The machine's own are asked; of another tree the link's text tells, and what is mounted there.
fn device_of_link<'a>(
    root: &Root,
    devices: &'a [BlockDevice],
    mounts: &[Mounted],
    link: &Path,
) -> Option<&'a BlockDevice> {
    let target = fs::read_link(link).ok()?;
    // Sockets and pipes are no paths.
    if !target.is_absolute() {
        return None;
    }
    let by_number = |number: Number| devices.iter().find(|device| device.number == number);
    if let Some(metadata) = fs::metadata(link).ok().filter(|_| root.is_machine()) {
        let is_device = rustix::fs::FileType::from_raw_mode(metadata.mode()).is_block_device();
        let number = Number::of_stat(if is_device { metadata.rdev() } else { metadata.dev() });
        if let Some(device) = by_number(number) {
            return Some(device);
        }
        let mounted = mounts.iter().find(|mounted| mounted.number == number)?;
        return devices.get(place_of(root, devices, mounted)?);
    }
    if target.starts_with("/dev") {
        return devices.get(by_node(root, devices, &target)?);
    }
    devices.get(place_of(root, devices, mounts::mount_of(mounts, &target)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_group_is_the_one_in_use() {
        assert_eq!(cgroup_of("0::/user.slice/a:b\n"), "/user.slice/a:b");
        assert_eq!(cgroup_of("5:blkio:/docker/x\n2:cpu,cpuacct:/y\n0::/\n"), "/docker/x");
        assert_eq!(cgroup_of("5:blkio:/docker/x\n0::/z\n"), "/z");
        assert_eq!(cgroup_of("0::/\n"), "/");
        assert_eq!(cgroup_of(""), "");
    }

    #[test]
    fn nice_and_policy_are_found_behind_any_name() {
        let rest = "1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 25 -5 1 0 99 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0 5 0 0 0";
        let stat = format!("12 (a) b (c)) S {rest}");
        assert_eq!((nice_of(&stat), policy_of(&stat)), (-5, CpuPolicy::Idle));
        assert_eq!((nice_of("nonsense"), policy_of("nonsense")), (0, CpuPolicy::Normal));
        assert_eq!((nice_of("1 (x) S"), policy_of("1 (x) S")), (0, CpuPolicy::Normal));
    }

    #[test]
    fn this_process_is_told_of() {
        let own = process(&Root::machine(), std::process::id()).expect("it is there");
        assert!(!own.comm.is_empty() && !own.command.is_empty());
        assert_eq!(own.uid, rustix::process::getuid().as_raw());
    }

    #[test]
    fn a_process_that_is_gone_is_named() {
        assert_eq!(
            process(&Root::machine(), 5_000_000).unwrap_err().to_string(),
            "process 5000000: there is no such process"
        );
    }
}
