//! Errors of write-back of which nobody was told yet.
//!
//! The kernel tells an error to everybody who had the file open when it came, and to who opens it later as long as nobody was told. Write-back by the mount waits for the disk by a
//! descriptor of its own, which counts as somebody: so it is remembered here for those who open the file after that.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::File;

/// So many files are remembered; of more than that some are forgotten, as the kernel forgets those of inodes that it has no room for.
const FILES_MAX: usize = 4096;

/// Files with an error that nobody was told of.
#[derive(Default)]
pub(super) struct Untold {
    of: Mutex<FxHashMap<File, i32>>,
    /// How many: mostly none, and then nobody has to look.
    count: AtomicUsize,
}

impl Untold {
    /// A file could not be written back. Says whether that is news.
    pub fn note(&self, file: File, errno: i32) -> bool {
        let mut of = self.lock();
        if of.len() >= FILES_MAX
            && let Some(some) = of.keys().next().copied()
        {
            of.remove(&some);
        }
        let is_new = of.insert(file, errno).is_none();
        self.count.store(of.len(), Ordering::Release);
        is_new
    }

    /// What who opens a file has to be told of it, as `errno` has it.
    pub fn of(&self, file: File) -> Option<i32> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.lock().get(&file).copied()
    }

    /// Somebody was told, or there is another file of this number by now.
    pub fn told(&self, file: File) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut of = self.lock();
        of.remove(&file);
        self.count.store(of.len(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<File, i32>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_there_until_somebody_was_told() {
        let untold = Untold::default();
        assert_eq!(untold.of((1, 2)), None);
        assert!(untold.note((1, 2), libc::EIO));
        assert!(!untold.note((1, 2), libc::ENOSPC), "that is no news");
        assert_eq!((untold.of((1, 2)), untold.of((1, 3))), (Some(libc::ENOSPC), None));
        untold.told((1, 2));
        assert_eq!(untold.of((1, 2)), None);
    }

    #[test]
    fn a_disk_full_of_errors_does_not_fill_the_memory() {
        let untold = Untold::default();
        for inode in 0..2 * FILES_MAX as u64 {
            untold.note((1, inode), libc::EIO);
        }
        assert_eq!(untold.lock().len(), FILES_MAX);
        assert_eq!(untold.of((1, 2 * FILES_MAX as u64 - 1)), Some(libc::EIO));
    }
}
