//! An eventfd by which other threads end the wait of an engine.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Ends the wait of the engine or ring that it belongs to, from any thread.
#[derive(Clone, Debug)]
pub struct Waker {
    eventfd: Arc<OwnedFd>,
}

impl Waker {
    /// Creates an eventfd that is closed on exec.
    pub(crate) fn new(flags: EventfdFlags) -> io::Result<Waker> {
        Ok(Waker { eventfd: Arc::new(eventfd(0, EventfdFlags::CLOEXEC | flags)?) })
    }

    /// Ends the current wait, or the next one if no thread waits.
    pub fn wake(&self) {
        // The write fails only if the counter would overflow; a wake-up is pending then.
        let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}

impl AsRawFd for Waker {
    fn as_raw_fd(&self) -> RawFd {
        self.eventfd.as_raw_fd()
    }
}
