//! Descriptors of recently looked-up inodes.
//!
//! A process that opens a name looks it up first and opens the inode then. A program outside the
//! mount may remove the file between the two requests. The descriptor of the lookup is therefore
//! kept for a while, so that the inode exists until it is opened. This matters only for inodes that
//! are reached by file handles.

use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::locks::lock;

/// Number of locks.
const SHARDS: usize = 64;
/// Maximum number of descriptors of a shard.
const SHARD_MAX: usize = 16;

/// The descriptors, each with the number of its node.
#[derive(Debug)]
pub(super) struct RecentDescriptors {
    shards: Vec<Mutex<Shard>>,
    /// Maximum number of descriptors of a shard.
    shard_max: AtomicUsize,
}

/// Descriptors that were added since the last call of [`RecentDescriptors::age`], and older ones.
#[derive(Debug, Default)]
struct Shard {
    young: Vec<(u64, OwnedFd)>,
    old: Vec<(u64, OwnedFd)>,
}

impl RecentDescriptors {
    pub(super) fn new() -> RecentDescriptors {
        RecentDescriptors {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            shard_max: AtomicUsize::new(SHARD_MAX),
        }
    }

    /// Sets the maximum number of descriptors.
    pub(super) fn limit(&self, descriptors: u64) {
        let shard_max = usize::try_from(descriptors / SHARDS as u64).unwrap_or(SHARD_MAX);
        self.shard_max.store(shard_max.min(SHARD_MAX), Ordering::Relaxed);
    }

    /// Keeps the descriptor of an inode that was looked up. The oldest ones are closed.
    pub(super) fn keep(&self, number: u64, fd: OwnedFd) {
        let half = self.shard_max.load(Ordering::Relaxed) / 2;
        let mut shard = self.shard(number);
        if half == 0 || shard.young.iter().any(|(other, _)| *other == number) {
            return;
        }
        let mut closed = Vec::new();
        if shard.young.len() >= half {
            let young = std::mem::take(&mut shard.young);
            closed = std::mem::replace(&mut shard.old, young);
        }
        shard.young.push((number, fd));
        // A close that frees blocks takes time.
        drop(shard);
        drop(closed);
    }

    /// Closes the descriptor of an inode.
    pub(super) fn remove(&self, number: u64) {
        let Shard { young, old } = &mut *self.shard(number);
        for list in [young, old] {
            list.retain(|(other, _)| *other != number);
        }
    }

    /// Closes the descriptors that were added before the previous call.
    pub(super) fn age(&self) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            let young = std::mem::take(&mut shard.young);
            let closed = std::mem::replace(&mut shard.old, young);
            drop(shard);
            drop(closed);
        }
    }

    fn shard(&self, number: u64) -> std::sync::MutexGuard<'_, Shard> {
        lock(&self.shards[(number ^ number >> 6) as usize % SHARDS])
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, metadata};
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    /// Returns the number of kept descriptors of a file, which is not open otherwise.
    fn kept(recent: &RecentDescriptors, number: u64) -> usize {
        let shard = recent.shard(number);
        shard.young.iter().chain(&shard.old).filter(|(other, _)| *other == number).count()
    }

    fn null() -> OwnedFd {
        File::open("/dev/null").expect("it is there").into()
    }

    #[test]
    fn descriptors_are_kept_until_newer_ones_take_their_place() {
        let recent = RecentDescriptors::new();
        // Numbers of one shard.
        let numbers: Vec<u64> = (0..).filter(|number| (number ^ number >> 6) % 64 == 0).take(17).collect();
        for number in &numbers {
            recent.keep(*number, null());
            assert_eq!(kept(&recent, *number), 1);
        }
        let kept: usize = numbers.iter().map(|number| kept(&recent, *number)).sum();
        assert!((8..=16).contains(&kept), "{kept} are kept");
    }

    #[test]
    fn a_forgotten_or_aged_inode_holds_no_descriptor() {
        let recent = RecentDescriptors::new();
        for number in [1, 2] {
            recent.keep(number, null());
        }
        recent.remove(1);
        assert_eq!((kept(&recent, 1), kept(&recent, 2)), (0, 1));
        recent.age();
        assert_eq!(kept(&recent, 2), 1, "it may be younger than an interval");
        recent.age();
        assert_eq!(kept(&recent, 2), 0);
    }

    #[test]
    fn a_file_with_a_kept_descriptor_keeps_its_inode() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        let (first, second) = (directory.path().join("first"), directory.path().join("second"));
        let recent = RecentDescriptors::new();
        let file = File::create(&first).expect("it is created");
        let inode = metadata(&first).expect("it is there").ino();
        recent.keep(inode, file.into());
        std::fs::remove_file(&first).expect("it is removed");
        File::create(&second).expect("it is created");
        assert_ne!(metadata(&second).expect("it is there").ino(), inode);
    }

    #[test]
    fn a_low_limit_keeps_none() {
        let recent = RecentDescriptors::new();
        recent.limit(64);
        recent.keep(1, null());
        assert_eq!(kept(&recent, 1), 0);
    }
}
