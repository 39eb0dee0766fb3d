//! Disk addresses of requests, from a cache of file extents, so that an elevator sorts by position.
//!
//! Data without a disk address (delayed allocation, holes) get a stable estimate: after the
//! preceding extent of the file, else near the inode, else an address derived from the inode
//! number.
//! Requests of one file are then close together, which is the best available information.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hoistway_order::ext4::InodeTables;
use hoistway_order::{ExtentReader, ExtentState};
use rustc_hash::FxHashMap;
use rustix::fs::fstat;
use slab::Slab;

use super::disks::{Placement, SPACE_BYTES};
use crate::Backing;

/// Maximum number of cached extents of a file. A file with more keeps those from the last requested
/// offset on.
const EXTENTS_PER_FILE: usize = 16_384;
/// Maximum number of cached extents of a file system, which take 48 MiB.
const EXTENTS_MAX: usize = 2 << 20;
/// Maximum number of cached files, with or without extents, which take 16 MiB.
const FILES_MAX: usize = 128 << 10;
/// Number of extents and of files of a file system that an idle mount keeps, which take 4 MiB.
const IDLE_EXTENTS: usize = 64 << 10;
const IDLE_FILES: usize = 16 << 10;
/// Minimum time in ns between two queries of the extents of a changed file: 200 ms.
const REQUERY_NS: u64 = 200_000_000;
/// Size in bytes up to which a file's extents are most likely stored in its inode: 16 MiB.
const LARGE_BYTES: i64 = 16 << 20;
/// Alignment in bytes of derived addresses, so that one file is not taken for the continuation of
/// another: 64 MiB.
const FILE_SPACING_BYTES: u64 = 64 << 20;

/// The extent cache of a file system.
pub(super) struct ExtentCache {
    /// Offset of the file system on the disk, in bytes.
    offset: u64,
    /// Size of the disk in bytes.
    disk_bytes: u64,
    /// The inode tables of an ext file system on a readable device.
    inodes: Option<InodeTables>,
    /// True if extents of this file system are addresses on the disk.
    maps_extents: bool,
    cached: Mutex<Cache>,
}

struct Cache {
    files: FxHashMap<u64, usize>,
    slab: Slab<FileExtents>,
    /// The most and the least recently used file.
    newest: usize,
    oldest: usize,
    /// Number of cached extents of all files.
    extents: usize,
}

const NONE: usize = usize::MAX;

impl Default for Cache {
    fn default() -> Cache {
        Cache { files: FxHashMap::default(), slab: Slab::new(), newest: NONE, oldest: NONE, extents: 0 }
    }
}

/// The cached extents of a file.
struct FileExtents {
    inode: u64,
    generation: u64,
    /// First byte in the file, first byte on the file system, and length in bytes, in file order.
    extents: Box<[(u64, u64, u64)]>,
    /// First byte and end (exclusive) of the range of the file that the extents cover.
    from: u64,
    to: u64,
    /// The file may have changed since the query.
    is_stale: bool,
    queried_ns: u64,
    newer: usize,
    older: usize,
}

impl ExtentCache {
    /// Creates an empty cache, and reads the inode tables of an ext file system.
    pub fn new(placement: &Placement) -> ExtentCache {
        ExtentCache {
            offset: placement.offset,
            disk_bytes: placement.disk.bytes.max(1 << 20),
            inodes: placement.volume.as_ref().filter(|_| placement.kind.starts_with("ext")).and_then(|node| {
                // Reading the device requires permission; without it inodes have no address.
                InodeTables::read(&File::open(node).ok()?).ok()
            }),
            maps_extents: placement.disk.maps_extents,
            cached: Mutex::default(),
        }
    }

    /// Returns true if the inode tables could be read.
    pub fn has_inode_tables(&self) -> bool {
        self.inodes.is_some()
    }

    /// Returns the disk address of a byte of a file, with at least `length` bytes of the disk
    /// after it. Queries the file system if needed, which may read from the disk.
    pub fn address_of_data(&self, backing: &Backing, offset: u64, length: u64, now_ns: u64) -> u64 {
        if self.cached(backing, offset, now_ns).1 {
            self.query(backing, offset, now_ns);
        }
        self.clamp(self.cached(backing, offset, now_ns).0, length)
    }

    /// Returns the disk address as far as it is cached, for a caller that must not wait for the
    /// disk. The flag is true if [`ExtentCache::query`] has to be called after dispatch. The
    /// extents of a small file are queried at once if `occupy_thread` returns a permit: they are in
    /// its inode, which is in memory.
    pub fn address_of_data_now<T>(
        &self,
        backing: &Backing,
        (offset, length): (u64, u64),
        occupy_thread: impl FnOnce() -> Option<T>,
        now_ns: u64,
    ) -> (u64, bool) {
        let (mut address, mut must_query) = self.cached(backing, offset, now_ns);
        if must_query
            && let Some(_permit) = occupy_thread()
            && fstat(backing).is_ok_and(|status| status.st_size <= LARGE_BYTES)
        {
            self.query(backing, offset, now_ns);
            (address, must_query) = (self.cached(backing, offset, now_ns).0, false);
        }
        (self.clamp(address, length), must_query)
    }

    /// Queries the extents of a file from `offset` on, unless they are cached. May read from the
    /// disk.
    pub fn query(&self, backing: &Backing, offset: u64, now_ns: u64) {
        if self.cached(backing, offset, now_ns).1 {
            let file = query_extents(backing, offset, now_ns);
            self.lock().insert(file);
        }
    }

    /// Returns the disk address of an inode, with at least `length` bytes of the disk after it.
    pub fn address_of_inode(&self, inode: u64, length: u64) -> u64 {
        let found = self.inodes.as_ref().and_then(|inodes| Some(inodes.block(inode)? * inodes.block_bytes));
        let address = found.map_or_else(|| self.hashed(inode), |at| self.offset.saturating_add(at));
        self.clamp(address, length)
    }

    /// Marks the cached extents of a file as stale.
    pub fn mark_stale(&self, inode: u64) {
        let mut cached = self.lock();
        if let Some(file) = cached.files.get(&inode).copied().and_then(|at| cached.slab.get_mut(at)) {
            file.is_stale = true;
        }
    }

    /// Drops the least recently used files beyond those that an idle mount keeps.
    pub fn shrink(&self) {
        self.lock().shrink(IDLE_EXTENTS, IDLE_FILES);
    }

    /// Returns true if the extents of a file are stale or not cached.
    #[cfg(test)]
    pub fn is_stale(&self, inode: u64) -> bool {
        let cached = self.lock();
        cached.files.get(&inode).and_then(|at| cached.slab.get(*at)).is_none_or(|file| file.is_stale)
    }

    /// Returns the disk address as far as it is cached, and whether the file system has to be
    /// queried.
    fn cached(&self, backing: &Backing, offset: u64, now_ns: u64) -> (u64, bool) {
        if !self.maps_extents {
            return (self.hashed(backing.inode).wrapping_add(offset), false);
        }
        let mut cached = self.lock();
        if let Some(at) = cached.files.get(&backing.inode).copied() {
            cached.touch(at);
            // Those of an earlier file with the same inode number say nothing.
            if let Some(file) = cached.slab.get(at).filter(|file| file.generation == backing.generation) {
                return (self.address(file, offset), file.needs_query(offset, now_ns));
            }
        }
        (self.address_of_inode(backing.inode, 0).saturating_add(offset), true)
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self, file: &FileExtents, offset: u64) -> u64 {
        let behind = file.extents.partition_point(|(first, ..)| *first <= offset);
        let file_system_address = match behind.checked_sub(1).and_then(|at| file.extents.get(at)) {
            // Within the extent, or after its end, where the file system would continue the file.
            Some((first, physical, _)) => physical + (offset - first),
            None => match file.extents.first() {
                Some((first, physical, _)) => physical.saturating_sub(first - offset),
                None => return self.address_of_inode(file.inode, 0).saturating_add(offset),
            },
        };
        self.offset.saturating_add(file_system_address)
    }

    /// Derives an address from an inode number by hashing.
    fn hashed(&self, inode: u64) -> u64 {
        let hash = inode.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slots = (self.disk_bytes.min(SPACE_BYTES) / FILE_SPACING_BYTES).max(1);
        ((u128::from(hash) * u128::from(slots)) >> 64) as u64 * FILE_SPACING_BYTES
    }

    /// Clamps an address to whole sectors on the disk with `length` bytes after it.
    fn clamp(&self, address: u64, length: u64) -> u64 {
        let room = self.disk_bytes.saturating_sub(length.next_multiple_of(4096)).max(1);
        let address = if address > room { address % room } else { address };
        address & !511
    }
}

impl FileExtents {
    /// Returns true if the extents have to be queried before the address of a byte is reliable.
    fn needs_query(&self, offset: u64, now_ns: u64) -> bool {
        let covers = (self.from..self.to).contains(&offset);
        (!covers || self.is_stale) && now_ns.saturating_sub(self.queried_ns) >= if covers { REQUERY_NS } else { 0 }
    }
}

/// Queries the file system. A failed query gives no extents and is repeated when the file has
/// changed.
fn query_extents(backing: &Backing, offset: u64, now_ns: u64) -> FileExtents {
    let mut extents = Vec::new();
    let (mut from, mut to) = (0, u64::MAX);
    let found = ExtentReader::default().for_each_from(backing.fd.as_fd(), 0, |extent| {
        if extent.state == ExtentState::Written || extent.state == ExtentState::Unwritten {
            extents.push((extent.logical, extent.physical, extent.bytes));
        }
        extents.len() < EXTENTS_PER_FILE
    });
    let end_of = |extents: &[(u64, u64, u64)]| extents.last().map_or(u64::MAX, |(first, _, bytes)| first + bytes);
    if extents.len() >= EXTENTS_PER_FILE {
        to = end_of(&extents);
        if offset >= to {
            extents.clear();
            let _ = ExtentReader::default().for_each_from(backing.fd.as_fd(), offset, |extent| {
                if extent.state == ExtentState::Written || extent.state == ExtentState::Unwritten {
                    extents.push((extent.logical, extent.physical, extent.bytes));
                }
                extents.len() < EXTENTS_PER_FILE
            });
            from = offset.min(extents.first().map_or(offset, |(first, ..)| *first));
            to = if extents.len() < EXTENTS_PER_FILE { u64::MAX } else { end_of(&extents) };
        }
    }
    if found.is_err() {
        extents.clear();
    }
    FileExtents {
        inode: backing.inode,
        generation: backing.generation,
        extents: extents.into(),
        from,
        to,
        is_stale: false,
        queried_ns: now_ns,
        newer: NONE,
        older: NONE,
    }
}

impl Cache {
    fn insert(&mut self, file: FileExtents) {
        if let Some(at) = self.files.get(&file.inode).copied() {
            self.remove(at);
        }
        self.extents += file.extents.len();
        let inode = file.inode;
        let at = self.slab.insert(file);
        self.files.insert(inode, at);
        self.link(at);
        while (self.extents > EXTENTS_MAX || self.slab.len() > FILES_MAX) && self.oldest != at {
            let oldest = self.oldest;
            self.remove(oldest);
        }
    }

    /// Drops the least recently used files until the cache has at most `extents` extents of `files`
    /// files, and releases the memory of those dropped.
    fn shrink(&mut self, extents: usize, files: usize) {
        while self.oldest != NONE && (self.extents > extents || self.slab.len() > files) {
            let oldest = self.oldest;
            self.remove(oldest);
        }
        if self.slab.capacity() > (4 * self.slab.len()).max(IDLE_FILES) {
            // A slab shrinks only to its last entry.
            let mut before = std::mem::take(self);
            while let Some(file) = before.slab.try_remove(before.oldest) {
                before.oldest = file.newer;
                self.insert(file);
            }
        }
    }

    fn remove(&mut self, at: usize) {
        self.unlink(at);
        let Some(file) = self.slab.try_remove(at) else { return };
        self.extents -= file.extents.len();
        self.files.remove(&file.inode);
    }

    fn touch(&mut self, at: usize) {
        if self.newest != at {
            self.unlink(at);
            self.link(at);
        }
    }

    fn link(&mut self, at: usize) {
        let second = std::mem::replace(&mut self.newest, at);
        if let Some(file) = self.slab.get_mut(at) {
            (file.newer, file.older) = (NONE, second);
        }
        match self.slab.get_mut(second) {
            Some(file) => file.newer = at,
            None => self.oldest = at,
        }
    }

    fn unlink(&mut self, at: usize) {
        let Some(file) = self.slab.get(at) else { return };
        let (newer, older) = (file.newer, file.older);
        match self.slab.get_mut(newer) {
            Some(file) => file.older = older,
            None => self.newest = older,
        }
        match self.slab.get_mut(older) {
            Some(file) => file.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduled::disks::Disk;

    fn cache(maps_extents: bool) -> ExtentCache {
        let disk = Disk { name: "d".into(), number: 0, bytes: 1 << 40, rotates: true, node: "d".into(), maps_extents };
        ExtentCache::new(&Placement { disk, offset: 1 << 20, kind: "ext4".into(), volume: None })
    }

    fn extents_of(inode: u64, extents: &[(u64, u64, u64)]) -> FileExtents {
        let extents = extents.into();
        FileExtents {
            inode,
            generation: 0,
            extents,
            from: 0,
            to: u64::MAX,
            is_stale: false,
            queried_ns: 0,
            newer: NONE,
            older: NONE,
        }
    }

    #[test]
    fn an_address_adds_the_extent_and_the_offset_of_the_partition() {
        let cache = cache(true);
        let file = extents_of(1, &[(0, 1 << 30, 8192), (16384, 5 << 30, 4096)]);
        assert_eq!(cache.address(&file, 4096), (1 << 20) + (1 << 30) + 4096);
        assert_eq!(cache.address(&file, 16384), (1 << 20) + (5 << 30));
        assert_eq!(cache.address(&file, 12288), (1 << 20) + (1 << 30) + 12288, "a hole continues the extent before it");
        assert_eq!(
            cache.address(&file, 1 << 20),
            (1 << 20) + (5 << 30) + (1 << 20) - 16384,
            "and so does the end of the file"
        );
    }

    #[test]
    fn derived_addresses_are_stable_and_keep_a_file_together() {
        let cache = cache(false);
        let backing = |inode| Backing::new(File::open("/").expect("the root").into(), 0, inode);
        let at = |inode, offset| cache.address_of_data(&backing(inode), offset, 4096, 0);
        assert_eq!(at(7, 0), at(7, 0));
        assert_eq!(at(7, 1 << 20), at(7, 0) + (1 << 20));
        assert_ne!(at(7, 0), at(8, 0));
        assert!(at(7, 1 << 62) < 1 << 40, "the address is on the disk");
    }

    #[test]
    fn the_least_recently_used_file_is_evicted_first() {
        let mut cached = Cache::default();
        for inode in 0..FILES_MAX as u64 {
            cached.insert(extents_of(inode, &[(0, 0, 1)]));
        }
        let first = cached.files[&0];
        cached.touch(first);
        cached.insert(extents_of(u64::MAX, &[]));
        assert!(cached.files.contains_key(&0) && !cached.files.contains_key(&1));
        assert_eq!((cached.slab.len(), cached.extents), (FILES_MAX, FILES_MAX - 1));
        cached.insert(extents_of(5, &vec![(0, 0, 1); EXTENTS_MAX]));
        assert_eq!(cached.extents, EXTENTS_MAX, "all other files with extents were evicted");
        assert!(cached.files.contains_key(&5) && cached.slab.len() <= 2);
    }

    #[test]
    fn an_idle_cache_keeps_the_most_recently_used_files() {
        let mut cached = Cache::default();
        let files = FILES_MAX as u64;
        for inode in 0..files {
            cached.insert(extents_of(inode, &[(0, 0, 1)]));
        }
        let first = cached.files[&0];
        cached.touch(first);
        cached.shrink(IDLE_EXTENTS, IDLE_FILES);
        assert_eq!((cached.slab.len(), cached.extents), (IDLE_FILES, IDLE_FILES));
        assert!(cached.slab.capacity() < FILES_MAX / 2 && cached.files.capacity() < FILES_MAX / 2);
        let oldest = files - IDLE_FILES as u64 + 1;
        assert!(cached.files.contains_key(&oldest) && !cached.files.contains_key(&(oldest - 1)));
        cached.shrink(1, 1);
        assert!(cached.files.contains_key(&0), "it was used last");
        cached.shrink(0, 0);
        assert_eq!((cached.slab.len(), cached.extents, cached.newest, cached.oldest), (0, 0, NONE, NONE));
    }

    #[test]
    fn a_large_file_is_queried_after_dispatch_and_a_small_one_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = cache(true);
        for (inode, bytes, waits) in [(5, 4096, false), (6, LARGE_BYTES as u64 + 1, true)] {
            let file = File::create(folder.path().join(inode.to_string())).expect("it is ours");
            file.set_len(bytes).expect("it has holes");
            let backing = Backing::new(file.into(), 0, inode);
            assert!(
                cache.address_of_data_now(&backing, (0, 4096), || None::<()>, 0).1,
                "without a permit no query happens"
            );
            let (address, must_query) = cache.address_of_data_now(&backing, (0, 4096), || Some(()), 0);
            assert_eq!(
                (address, must_query),
                (cache.address_of_inode(inode, 4096), waits),
                "the estimate is near the inode"
            );
            assert_eq!(cache.lock().files.contains_key(&inode), !waits, "no query has happened");
            cache.query(&backing, 0, 0);
            assert!(!cache.address_of_data_now(&backing, (0, 4096), || Some(()), 0).1, "the extents are cached");
        }
    }

    #[test]
    fn a_changed_file_is_queried_again_after_a_minimum_time() {
        let mut file = extents_of(1, &[]);
        assert!(!file.needs_query(0, u64::MAX));
        file.is_stale = true;
        assert!(!file.needs_query(0, REQUERY_NS - 1));
        assert!(file.needs_query(0, REQUERY_NS));
        file.to = 4096;
        assert!(file.needs_query(4096, 1), "an uncovered offset is queried at once");
    }
}
