//! Write-back errors that no handle has reported.
//!
//! The kernel reports a write-back error to each handle that was open when the error occurred, and
//! to later ones as long as no handle has reported it (errseq). Write-back by the mount waits on a
//! description of its own, which counts as a report. The error is therefore kept here for handles
//! that are opened later.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::FileKey;

/// Maximum number of files with a recorded error. Beyond it an arbitrary one is dropped, as the
/// kernel drops those of evicted inodes.
const FILES_MAX: usize = 4096;

/// Files with an unreported write-back error.
#[derive(Default)]
pub(super) struct UnreportedErrors {
    errors: Mutex<FxHashMap<FileKey, FileError>>,
    /// Number of files, most often 0, in which case the lock is not needed.
    count: AtomicUsize,
}

/// The error of a file.
#[derive(Clone, Copy)]
struct FileError {
    /// Distinguishes the file from later ones with its inode number.
    generation: u64,
    errno: i32,
}

impl UnreportedErrors {
    /// Records an error of an inode of this generation. Returns true if the file had none.
    pub fn record(&self, file: FileKey, generation: u64, errno: i32) -> bool {
        let mut errors = self.lock();
        if errors.len() >= FILES_MAX
            && let Some(dropped) = errors.keys().next().copied()
        {
            errors.remove(&dropped);
        }
        let is_new =
            errors.insert(file, FileError { generation, errno }).is_none_or(|before| before.generation != generation);
        self.count.store(errors.len(), Ordering::Release);
        is_new
    }

    /// Returns the error (`errno`) that a new handle of an inode of this generation has to report.
    pub fn get(&self, file: FileKey, generation: u64) -> Option<i32> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.lock().get(&file).filter(|error| error.generation == generation).map(|error| error.errno)
    }

    /// Drops the error of a file: it was reported, or another file has the inode number.
    pub fn clear(&self, file: FileKey) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut errors = self.lock();
        errors.remove(&file);
        self.count.store(errors.len(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<FileKey, FileError>> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_kept_until_it_is_reported() {
        let unreported = UnreportedErrors::default();
        assert_eq!(unreported.get((1, 2), 7), None);
        assert!(unreported.record((1, 2), 7, libc::EIO));
        assert!(!unreported.record((1, 2), 7, libc::ENOSPC), "not the first error");
        assert_eq!((unreported.get((1, 2), 7), unreported.get((1, 3), 7)), (Some(libc::ENOSPC), None));
        unreported.clear((1, 2));
        assert_eq!(unreported.get((1, 2), 7), None);
    }

    #[test]
    fn a_later_file_with_the_inode_number_does_not_get_the_error() {
        let unreported = UnreportedErrors::default();
        unreported.record((1, 2), 7, libc::EIO);
        assert_eq!(unreported.get((1, 2), 8), None);
        assert!(unreported.record((1, 2), 8, libc::ENOSPC), "the first error of the later file");
        assert_eq!((unreported.get((1, 2), 7), unreported.get((1, 2), 8)), (None, Some(libc::ENOSPC)));
    }

    #[test]
    fn the_number_of_recorded_errors_is_limited() {
        let unreported = UnreportedErrors::default();
        for inode in 0..2 * FILES_MAX as u64 {
            unreported.record((1, inode), 0, libc::EIO);
        }
        assert_eq!(unreported.lock().len(), FILES_MAX);
        assert_eq!(unreported.get((1, 2 * FILES_MAX as u64 - 1), 0), Some(libc::EIO));
    }
}
