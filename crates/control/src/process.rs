//! The figures of the process itself, from `/proc/self` and its control group.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use procfs_core::process::Stat;
use procfs_core::{FromBufRead as _, FromRead as _, ProcessCGroups};
use rustix::process::{Resource, getrlimit};

/// The file system of control groups, version 2.
const CGROUPS: &str = "/sys/fs/cgroup";

/// The figures of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessFacts {
    /// The start, in seconds since 1970.
    pub started_s: f64,
    /// The CPU time in user and kernel mode since the start, in seconds.
    pub cpu_s: f64,
    /// The resident memory in bytes.
    pub resident_bytes: u64,
    /// The address space in bytes.
    pub virtual_bytes: u64,
    /// The limit of the address space (`ulimit -v`) in bytes; `None` if it is unlimited.
    pub virtual_bytes_max: Option<u64>,
    /// The number of open file descriptors.
    pub open_fds: u64,
    /// The limit of open file descriptors; `None` if it is unlimited.
    pub open_fds_max: Option<u64>,
    /// The number of threads.
    pub threads: u64,
    /// The smallest limit of memory of the process's control group and of those above it, in bytes;
    /// `None` without one, and under control groups of version 1.
    pub memory_bytes_max: Option<u64>,
}

/// Reads the figures of this process. `None` if `/proc` is not mounted.
pub(crate) fn read() -> Option<ProcessFacts> {
    let stat = Stat::from_file("/proc/self/stat").ok()?;
    let ticks_per_s = rustix::param::clock_ticks_per_second().max(1) as f64;
    let groups = fs::read("/proc/self/cgroup").unwrap_or_default();
    Some(ProcessFacts {
        started_s: boot_s(&fs::read_to_string("/proc/stat").ok()?)? as f64 + stat.starttime as f64 / ticks_per_s,
        cpu_s: stat.utime.saturating_add(stat.stime) as f64 / ticks_per_s,
        resident_bytes: stat.rss.saturating_mul(rustix::param::page_size() as u64),
        virtual_bytes: stat.vsize,
        virtual_bytes_max: getrlimit(Resource::As).current,
        open_fds: open_fds(Path::new("/proc/self/fd"))?,
        open_fds_max: getrlimit(Resource::Nofile).current,
        threads: u64::try_from(stat.num_threads).unwrap_or(0),
        memory_bytes_max: memory_limit(Path::new(CGROUPS), &groups),
    })
}

/// Returns the time in ms since 1970.
pub(crate) fn unix_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the start of the machine in seconds since 1970, from the text of `/proc/stat`.
fn boot_s(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// Returns the number of open descriptors. From Linux 6.2 on it is the size of the directory
/// (proc_pid_fd(5)); a list of 16,384 descriptors would take milliseconds.
fn open_fds(directory: &Path) -> Option<u64> {
    match fs::metadata(directory).ok()?.len() {
        // One more is open while the directory is read.
        0 => Some((fs::read_dir(directory).ok()?.count() as u64).saturating_sub(1)),
        count => Some(count),
    }
}

/// Returns the smallest limit of memory from the process's control group up to the root. `groups`
/// is the content of `/proc/self/cgroup`.
fn memory_limit(root: &Path, groups: &[u8]) -> Option<u64> {
    let groups = ProcessCGroups::from_buf_read(groups).ok()?;
    let unified = groups.0.into_iter().find(|group| group.hierarchy == 0)?;
    let path = PathBuf::from(unified.pathname);
    let limit = |group: &Path| -> Option<u64> {
        let file = root.join(group.strip_prefix("/").ok()?).join("memory.max");
        // The file has the word `max` if there is no limit.
        fs::read_to_string(file).ok()?.trim().parse().ok()
    };
    path.ancestors().filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_this_process() {
        let facts = read().expect("/proc is mounted");
        let now_s = unix_ms() as f64 / 1000.0;
        assert!(facts.started_s < now_s + 1.0 && facts.started_s > now_s - 86_400.0, "{facts:?} at {now_s}");
        assert!(facts.resident_bytes >= 1 << 20 && facts.virtual_bytes > facts.resident_bytes, "{facts:?}");
        assert!(facts.threads >= 1 && facts.open_fds >= 3 && facts.cpu_s >= 0.0, "{facts:?}");
        let ballast = vec![1u8; 64 << 20];
        let more = read().expect("/proc is mounted");
        assert!(more.resident_bytes >= facts.resident_bytes + (32 << 20), "{facts:?} {more:?} {}", ballast.len());
    }

    #[test]
    fn open_descriptors_are_counted_by_the_size_of_the_directory_or_by_its_entries() {
        let directory = tempfile::tempdir().expect("a directory");
        (0..5).for_each(|name| fs::write(directory.path().join(name.to_string()), "").expect("a file"));
        let size = fs::metadata(directory.path()).expect("a directory").len();
        assert_eq!(open_fds(directory.path()), Some(if size == 0 { 4 } else { size }));
        let own = open_fds(Path::new("/proc/self/fd")).expect("/proc is mounted");
        let listed = fs::read_dir("/proc/self/fd").expect("/proc is mounted").count() as u64;
        assert!(own.abs_diff(listed) <= 32, "{own} and {listed}: other tests open files");
    }

    #[test]
    fn the_limit_of_memory_is_the_smallest_on_the_way_to_the_root() {
        let root = tempfile::tempdir().expect("a directory");
        let unit = root.path().join("system.slice/hoistway.service");
        fs::create_dir_all(&unit).expect("a directory");
        let groups = b"1:name=systemd:/x\n0::/system.slice/hoistway.service\n";
        assert_eq!(memory_limit(root.path(), groups), None, "no controller of memory");
        fs::write(unit.join("memory.max"), "max\n").expect("a file");
        assert_eq!(memory_limit(root.path(), groups), None);
        fs::write(root.path().join("system.slice/memory.max"), "2147483648\n").expect("a file");
        assert_eq!(memory_limit(root.path(), groups), Some(2 << 30));
        fs::write(unit.join("memory.max"), "1073741824\n").expect("a file");
        assert_eq!(memory_limit(root.path(), groups), Some(1 << 30));
        assert_eq!(memory_limit(root.path(), b"5:memory:/system.slice/hoistway.service\n"), None, "version 1");
    }

    #[test]
    fn the_start_of_the_machine_is_read_from_the_line_btime() {
        assert_eq!(boot_s("cpu  1 2\nbtime 1692972606\nprocesses 9\n"), Some(1_692_972_606));
        assert_eq!(boot_s("cpu  1 2\n"), None);
    }
}
