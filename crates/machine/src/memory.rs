//! The memory of the machine, from `/proc/meminfo`.

use procfs_core::{FromBufRead as _, Meminfo};

use crate::files::read_bytes;
use crate::root::Root;

/// Returns the memory of the machine in bytes; `None` if `/proc/meminfo` cannot be read.
pub fn memory_bytes(root: &Root) -> Option<u64> {
    let text = read_bytes(&root.path("/proc/meminfo"))?;
    Meminfo::from_buf_read(&*text).ok().map(|memory| memory.mem_total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_running_machine_is_read() {
        assert!(memory_bytes(&Root::machine()).is_some_and(|bytes| bytes > 16 << 20));
        assert_eq!(memory_bytes(&Root::at("/nothing/here")), None);
    }
}
