//! Returning unused memory to the system.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

/// Number of entries up to which the capacity of a map does not matter.
const SMALL_MAP: usize = 256;

/// Reduces the capacity of a map that holds far fewer entries than it once did.
pub(crate) fn shrink_map<K: Eq + Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>) {
    if map.capacity() > (4 * map.len()).max(SMALL_MAP) {
        map.shrink_to(2 * map.len());
    }
}

/// Returns the unused pages of the heap to the system. The C library otherwise keeps those between
/// allocations in use, in an arena for each few threads.
pub(crate) fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes an integer, and may run at any time on any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashMap;

    use super::*;

    #[test]
    fn only_a_map_that_is_mostly_empty_shrinks() {
        let mut map: FxHashMap<u32, u32> = (0..100_000).map(|number| (number, 1)).collect();
        let full = map.capacity();
        shrink_map(&mut map);
        assert_eq!(map.capacity(), full);
        map.retain(|number, _| *number < 1000);
        shrink_map(&mut map);
        assert!(map.capacity() < full / 20 && map.len() == 1000, "{}", map.capacity());
    }
}
