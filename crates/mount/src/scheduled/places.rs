//! Where on the disk requests go: from the extents of files, which are kept, so that an elevator sorts by where data lie.
//!
//! What has no place yet - data that are in memory alone, holes - is given one that stays: behind what lies before it in the file, else where its inode
//! lies, else a place that follows from the inode's number. Requests of one file are then near each other, which is all that can be said of them.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hoistway_order::ext4::InodeTables;
use hoistway_order::{ExtentReader, ExtentState};
use rustc_hash::FxHashMap;
use rustix::fs::fstat;
use slab::Slab;

use super::disks::{Lies, SPACE_BYTES};
use crate::Backing;

/// So many extents of a file are kept at most; of a file with more, those behind what was asked for last.
const EXTENTS_A_FILE: usize = 16_384;
/// So many extents of all files of a file system are kept: 48 MiB.
const EXTENTS_MAX: usize = 2 << 20;
/// So many files are known at most, with and without extents: 16 MiB of table.
const FILES_MAX: usize = 128 << 10;
/// Extents that may have changed are asked for again no sooner than after so long: 200 ms.
const AGAIN_NS: u64 = 200_000_000;
/// The extents of larger files may lie outside of their inodes: 16 MiB.
const LARGE_BYTES: i64 = 16 << 20;
/// Files without a place begin at multiples of this, so that one is not mistaken for the end of another: 64 MiB.
const APART_BYTES: u64 = 64 << 20;

/// Where the files of a file system lie.
pub(super) struct Places {
    /// Where it begins on the disk, and how long that is, in bytes.
    offset: u64,
    disk_bytes: u64,
    inodes: Option<InodeTables>,
    /// Whether extents tell places on the disk.
    asks: bool,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    files: FxHashMap<u64, usize>,
    slab: Slab<Layout>,
    /// The file used last, and the one not used for longest.
    newest: usize,
    oldest: usize,
    extents: usize,
}

const NONE: usize = usize::MAX;

/// What is known of a file.
struct Layout {
    inode: u64,
    /// In the order of the file: first byte, first byte on the file system, bytes.
    extents: Box<[(u64, u64, u64)]>,
    /// The bytes of the file of which they are all.
    from: u64,
    to: u64,
    /// It may have changed since.
    is_stale: bool,
    asked_ns: u64,
    before: usize,
    after: usize,
}

impl Places {
    pub fn new(lies: &Lies) -> Places {
        Places {
            offset: lies.offset,
            disk_bytes: lies.disk.bytes.max(1 << 20),
            inodes: lies.volume.as_ref().filter(|_| lies.kind.starts_with("ext")).and_then(|node| {
                // Who may not read the device does without.
                InodeTables::read(&File::open(node).ok()?).ok()
            }),
            asks: lies.disk.has_places,
            known: Mutex::new(Known { newest: NONE, oldest: NONE, ..Known::default() }),
        }
    }

    /// Whether inode tables could be read.
    pub fn knows_inodes(&self) -> bool {
        self.inodes.is_some()
    }

    /// Where a byte of a file lies on the disk, such that `length` bytes behind it lie on the disk, too. The file system is asked if it takes that.
    pub fn of_data(&self, backing: &Backing, offset: u64, length: u64, now_ns: u64) -> u64 {
        if self.known(backing, offset, now_ns).1 {
            self.learn(backing, offset, now_ns);
        }
        self.within(self.known(backing, offset, now_ns).0, length)
    }

    /// The same, for who may not wait for the disk: as far as it is known, and whether it has to be asked for, by [`Places::learn`], when it is the asker's turn. Files
    /// that are not large are asked about at once, if the asker has the time for it, by `begin`: where they lie is in their inodes, and these are in memory.
    pub fn of_data_now<T>(
        &self,
        backing: &Backing,
        (offset, length): (u64, u64),
        begin: impl FnOnce() -> Option<T>,
        now_ns: u64,
    ) -> (u64, bool) {
        let (mut place, mut learns) = self.known(backing, offset, now_ns);
        if learns
            && let Some(_kept) = begin()
            && fstat(backing).is_ok_and(|told| told.st_size <= LARGE_BYTES)
        {
            self.learn(backing, offset, now_ns);
            (place, learns) = (self.known(backing, offset, now_ns).0, false);
        }
        (self.within(place, length), learns)
    }

    /// Asks the file system where a byte of a file and what is behind it lie, unless somebody else has done so. It may read the disk for that.
    pub fn learn(&self, backing: &Backing, offset: u64, now_ns: u64) {
        if self.known(backing, offset, now_ns).1 {
            let file = asked(backing, offset, now_ns);
            self.lock().insert(file);
        }
    }

    /// Where an inode lies, with `length` bytes behind it.
    pub fn of_inode(&self, inode: u64, length: u64) -> u64 {
        let told = self.inodes.as_ref().and_then(|inodes| Some(inodes.block(inode)? * inodes.block_bytes));
        let place = told.map_or_else(|| self.derived(inode), |at| self.offset.saturating_add(at));
        self.within(place, length)
    }

    /// Where the data of a file lie may have changed.
    pub fn changed(&self, inode: u64) {
        let mut known = self.lock();
        if let Some(file) = known.files.get(&inode).copied().and_then(|at| known.slab.get_mut(at)) {
            file.is_stale = true;
        }
    }

    /// Whether a file may have changed since it was asked about.
    #[cfg(test)]
    pub fn is_stale(&self, inode: u64) -> bool {
        let known = self.lock();
        known.files.get(&inode).and_then(|at| known.slab.get(*at)).is_none_or(|file| file.is_stale)
    }

    /// Where a byte lies as far as it is known, and whether the file system has to be asked.
    fn known(&self, backing: &Backing, offset: u64, now_ns: u64) -> (u64, bool) {
        if !self.asks {
            return (self.derived(backing.inode).wrapping_add(offset), false);
        }
        let mut known = self.lock();
        if let Some(at) = known.files.get(&backing.inode).copied() {
            known.use_now(at);
            if let Some(file) = known.slab.get(at) {
                return (self.place(file, offset), file.is_to_be_asked(offset, now_ns));
            }
        }
        (self.of_inode(backing.inode, 0).saturating_add(offset), true)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, file: &Layout, offset: u64) -> u64 {
        let behind = file.extents.partition_point(|(first, ..)| *first <= offset);
        let on_file_system = match behind.checked_sub(1).and_then(|at| file.extents.get(at)) {
            // Within the extent, or behind its end: there the file system would put what follows.
            Some((first, physical, _)) => physical + (offset - first),
            None => match file.extents.first() {
                Some((first, physical, _)) => physical.saturating_sub(first - offset),
                None => return self.of_inode(file.inode, 0).saturating_add(offset),
            },
        };
        self.offset.saturating_add(on_file_system)
    }

    /// A place that follows from a number, and is as good as any.
    fn derived(&self, inode: u64) -> u64 {
        let mixed = inode.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slots = (self.disk_bytes.min(SPACE_BYTES) / APART_BYTES).max(1);
        ((u128::from(mixed) * u128::from(slots)) >> 64) as u64 * APART_BYTES
    }

    /// On the disk, in whole sectors, with room behind it.
    fn within(&self, place: u64, length: u64) -> u64 {
        let room = self.disk_bytes.saturating_sub(length.next_multiple_of(4096)).max(1);
        let place = if place > room { place % room } else { place };
        place & !511
    }
}

impl Layout {
    /// Whether the file system has to be asked before it is known where a byte lies.
    fn is_to_be_asked(&self, offset: u64, now_ns: u64) -> bool {
        let covers = (self.from..self.to).contains(&offset);
        (!covers || self.is_stale) && now_ns.saturating_sub(self.asked_ns) >= if covers { AGAIN_NS } else { 0 }
    }
}

/// Asks the file system. What it does not tell is empty, and is asked for again when something has changed.
fn asked(backing: &Backing, offset: u64, now_ns: u64) -> Layout {
    let mut extents = Vec::new();
    let (mut from, mut to) = (0, u64::MAX);
    let told = ExtentReader::default().for_each_from(backing.fd.as_fd(), 0, |extent| {
        if extent.state == ExtentState::Written || extent.state == ExtentState::Unwritten {
            extents.push((extent.logical, extent.physical, extent.bytes));
        }
        extents.len() < EXTENTS_A_FILE
    });
    let end_of = |extents: &[(u64, u64, u64)]| extents.last().map_or(u64::MAX, |(first, _, bytes)| first + bytes);
    if extents.len() >= EXTENTS_A_FILE {
        to = end_of(&extents);
        if offset >= to {
            extents.clear();
            let _ = ExtentReader::default().for_each_from(backing.fd.as_fd(), offset, |extent| {
                if extent.state == ExtentState::Written || extent.state == ExtentState::Unwritten {
                    extents.push((extent.logical, extent.physical, extent.bytes));
                }
                extents.len() < EXTENTS_A_FILE
            });
            from = offset.min(extents.first().map_or(offset, |(first, ..)| *first));
            to = if extents.len() < EXTENTS_A_FILE { u64::MAX } else { end_of(&extents) };
        }
    }
    if told.is_err() {
        extents.clear();
    }
    Layout {
        inode: backing.inode,
        extents: extents.into(),
        from,
        to,
        is_stale: false,
        asked_ns: now_ns,
        before: NONE,
        after: NONE,
    }
}

impl Known {
    fn insert(&mut self, file: Layout) {
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

    fn remove(&mut self, at: usize) {
        self.unlink(at);
        let Some(file) = self.slab.try_remove(at) else { return };
        self.extents -= file.extents.len();
        self.files.remove(&file.inode);
    }

    fn use_now(&mut self, at: usize) {
        if self.newest != at {
            self.unlink(at);
            self.link(at);
        }
    }

    fn link(&mut self, at: usize) {
        let second = std::mem::replace(&mut self.newest, at);
        if let Some(file) = self.slab.get_mut(at) {
            (file.before, file.after) = (NONE, second);
        }
        match self.slab.get_mut(second) {
            Some(file) => file.before = at,
            None => self.oldest = at,
        }
    }

    fn unlink(&mut self, at: usize) {
        let Some(file) = self.slab.get(at) else { return };
        let (before, after) = (file.before, file.after);
        match self.slab.get_mut(before) {
            Some(file) => file.after = after,
            None => self.newest = after,
        }
        match self.slab.get_mut(after) {
            Some(file) => file.before = before,
            None => self.oldest = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduled::disks::Disk;

    fn places(has_places: bool) -> Places {
        let disk = Disk { name: "d".into(), number: 0, bytes: 1 << 40, rotates: true, node: "d".into(), has_places };
        Places::new(&Lies { disk, offset: 1 << 20, kind: "ext4".into(), volume: None })
    }

    fn layout(inode: u64, extents: &[(u64, u64, u64)]) -> Layout {
        let extents = extents.into();
        Layout { inode, extents, from: 0, to: u64::MAX, is_stale: false, asked_ns: 0, before: NONE, after: NONE }
    }

    #[test]
    fn a_byte_lies_where_its_extent_does_and_the_partition_begins() {
        let places = places(true);
        let file = layout(1, &[(0, 1 << 30, 8192), (16384, 5 << 30, 4096)]);
        assert_eq!(places.place(&file, 4096), (1 << 20) + (1 << 30) + 4096);
        assert_eq!(places.place(&file, 16384), (1 << 20) + (5 << 30));
        assert_eq!(places.place(&file, 12288), (1 << 20) + (1 << 30) + 12288, "a hole follows what is before it");
        assert_eq!(places.place(&file, 1 << 20), (1 << 20) + (5 << 30) + (1 << 20) - 16384, "and so does the end");
    }

    #[test]
    fn what_has_no_place_is_given_one_that_stays_and_keeps_a_file_together() {
        let places = places(false);
        let backing = |inode| Backing::new(File::open("/").expect("the root").into(), 0, inode);
        let at = |inode, offset| places.of_data(&backing(inode), offset, 4096, 0);
        assert_eq!(at(7, 0), at(7, 0));
        assert_eq!(at(7, 1 << 20), at(7, 0) + (1 << 20));
        assert_ne!(at(7, 0), at(8, 0));
        assert!(at(7, 1 << 62) < 1 << 40, "on the disk, wherever the file ends");
    }

    #[test]
    fn the_file_not_used_for_longest_is_forgotten_first() {
        let mut known = Known { newest: NONE, oldest: NONE, ..Known::default() };
        for inode in 0..FILES_MAX as u64 {
            known.insert(layout(inode, &[(0, 0, 1)]));
        }
        let first = known.files[&0];
        known.use_now(first);
        known.insert(layout(u64::MAX, &[]));
        assert!(known.files.contains_key(&0) && !known.files.contains_key(&1));
        assert_eq!((known.slab.len(), known.extents), (FILES_MAX, FILES_MAX - 1));
        known.insert(layout(5, &vec![(0, 0, 1); EXTENTS_MAX]));
        assert_eq!(known.extents, EXTENTS_MAX, "all others with extents have made room");
        assert!(known.files.contains_key(&5) && known.slab.len() <= 2);
    }

    #[test]
    fn a_large_file_is_asked_about_when_it_is_its_turn_and_a_small_one_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let places = places(true);
        for (inode, bytes, waits) in [(5, 4096, false), (6, LARGE_BYTES as u64 + 1, true)] {
            let file = File::create(folder.path().join(inode.to_string())).expect("it is ours");
            file.set_len(bytes).expect("it has holes");
            let backing = Backing::new(file.into(), 0, inode);
            assert!(places.of_data_now(&backing, (0, 4096), || None::<()>, 0).1, "who has no time for it asks nobody");
            let (place, learns) = places.of_data_now(&backing, (0, 4096), || Some(()), 0);
            assert_eq!((place, learns), (places.of_inode(inode, 4096), waits), "near its inode until it is known");
            assert_eq!(places.lock().files.contains_key(&inode), !waits, "nobody has asked");
            places.learn(&backing, 0, 0);
            assert!(!places.of_data_now(&backing, (0, 4096), || Some(()), 0).1, "it is known from then on");
        }
    }

    #[test]
    fn a_file_that_has_changed_is_asked_about_again_but_not_at_once() {
        let mut file = layout(1, &[]);
        assert!(!file.is_to_be_asked(0, u64::MAX));
        file.is_stale = true;
        assert!(!file.is_to_be_asked(0, AGAIN_NS - 1));
        assert!(file.is_to_be_asked(0, AGAIN_NS));
        file.to = 4096;
        assert!(file.is_to_be_asked(4096, 1), "what is not known yet has to be");
    }
}
