//! The memory of the machine, from `/proc/meminfo`, and of this process.

use procfs_core::{FromBufRead as _, Meminfo};

use rustix::process::{Resource, getrlimit};

use crate::files::{read_bytes, read_number, read_text};
use crate::root::Root;

/// Returns the memory of the machine in bytes; `None` if `/proc/meminfo` cannot be read.
pub fn memory_bytes(root: &Root) -> Option<u64> {
    let text = read_bytes(&root.path("/proc/meminfo"))?;
    Meminfo::from_buf_read(&*text).ok().map(|memory| memory.mem_total)
}

/// Returns the bytes that this process can still allocate: the available memory of the machine, the
/// limits of its control groups and of its address space (`ulimit -v`), whichever is less. `None`
/// if none of them is known.
pub fn available_bytes(root: &Root) -> Option<u64> {
    let text = read_bytes(&root.path("/proc/meminfo"));
    let memory = text.and_then(|text| Meminfo::from_buf_read(&*text).ok()?.mem_available);
    let address_space = getrlimit(Resource::As).current.filter(|_| root.is_machine());
    [memory, address_space, group_limit(root)].into_iter().flatten().min()
}

/// The smallest limit of the control groups that the process is in (`memory.max`), less what each
/// uses.
fn group_limit(root: &Root) -> Option<u64> {
    let groups = read_text(&root.path("/proc/self/cgroup"))?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut least: Option<u64> = None;
    for directory in std::path::Path::new(path).ancestors() {
        let directory = root.path("/sys/fs/cgroup").join(directory.strip_prefix("/").unwrap_or(directory));
        let Some(limit) = read_number::<u64>(&directory.join("memory.max")) else { continue };
        let used = read_number::<u64>(&directory.join("memory.current")).unwrap_or(0);
        let left = limit.saturating_sub(used);
        least = Some(least.map_or(left, |least| least.min(left)));
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_running_machine_is_read() {
        assert!(memory_bytes(&Root::machine()).is_some_and(|bytes| bytes > 16 << 20));
        assert_eq!(memory_bytes(&Root::at("/nothing/here")), None);
    }

    #[test]
    fn the_least_limit_of_the_groups_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        let root = Root::at(folder.path());
        assert_eq!(available_bytes(&root), None);
        let machine = std::fs::read_to_string("/proc/meminfo").expect("the memory of this machine");
        file("proc/meminfo", &machine);
        let all = memory_bytes(&root).expect("its memory");
        assert!(available_bytes(&root).is_some_and(|bytes| bytes > 5_000_000 && bytes <= all));
        file("proc/self/cgroup", "0::/a/b\n");
        file("sys/fs/cgroup/a/memory.max", "5000000\n");
        file("sys/fs/cgroup/a/memory.current", "1000000\n");
        file("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(available_bytes(&root), Some(4_000_000));
    }
}
