//! The session threads, and how many of them are occupied by requests.
//!
//! Requests that no thread has read from `/dev/fuse` wait in arrival order, regardless of priority.
//! One thread must therefore always be free to read: the last free thread passes its request to
//! io_uring or to a worker thread of the gate.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts of session threads.
pub(super) struct SessionThreads {
    /// All session threads.
    count: AtomicUsize,
    /// Session threads that carry out a request.
    busy: AtomicUsize,
}

impl Default for SessionThreads {
    /// Creates the counts for an unlimited number of threads.
    fn default() -> SessionThreads {
        SessionThreads { count: AtomicUsize::new(usize::MAX), busy: AtomicUsize::new(0) }
    }
}

impl SessionThreads {
    /// Sets the number of session threads.
    pub fn set(&self, count: usize) {
        self.count.store(count, Ordering::Relaxed);
    }

    /// Occupies the calling session thread, or returns `None` if it is the last free one.
    #[inline]
    pub fn try_occupy(&self) -> Option<WorkerPermit<'_>> {
        let permit = WorkerPermit(self);
        let busy = self.busy.fetch_add(1, Ordering::Relaxed) + 1;
        (busy < self.count.load(Ordering::Relaxed)).then_some(permit)
    }
}

/// Occupies a session thread until it is dropped.
pub(super) struct WorkerPermit<'a>(&'a SessionThreads);

impl Drop for WorkerPermit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_free_thread_gets_no_permit() {
        let session_threads = SessionThreads::default();
        session_threads.set(3);
        let first = session_threads.try_occupy();
        let second = session_threads.try_occupy();
        assert!(first.is_some() && second.is_some() && session_threads.try_occupy().is_none());
        drop(first);
        assert!(session_threads.try_occupy().is_some());
    }
}
