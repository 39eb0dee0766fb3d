//! Signals that the server heeds: counted when they come, told when the engine is awake.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level;

use crate::engine::{Event, Signal};

const HEEDED: [(i32, Signal); 4] =
    [(SIGTERM, Signal::Terminate), (SIGINT, Signal::Terminate), (SIGHUP, Signal::Reload), (SIGCHLD, Signal::Child)];

/// Signals that are caught as long as this is there. (The default action does not come back.)
#[derive(Debug)]
pub(crate) struct Signals {
    /// How many came, in the order of `HEEDED`.
    counts: Arc<[AtomicU32; HEEDED.len()]>,
    handlers: Vec<SigId>,
}

impl Signals {
    /// Catches them; each wakes the engine through this eventfd.
    pub fn catch(wake: &Arc<OwnedFd>) -> std::io::Result<Signals> {
        let counts: Arc<[AtomicU32; HEEDED.len()]> = Arc::default();
        let mut signals = Signals { counts: counts.clone(), handlers: Vec::new() };
        for (place, (number, _)) in HEEDED.iter().enumerate() {
            let (counts, wake) = (counts.clone(), wake.clone());
            let count = move || {
                counts[place].fetch_add(1, Ordering::Release);
                let one = 1u64.to_ne_bytes();
                // SAFETY: write(2) may be called in a handler (signal-safety(7)); the descriptor is
                // open as long as this closure is there.
                unsafe { libc::write(wake.as_raw_fd(), one.as_ptr().cast(), one.len()) };
            };
            // SAFETY: the closure adds to a number and writes to a descriptor: nothing that a
            // handler must not do.
            signals.handlers.push(unsafe { low_level::register(*number, count) }?);
        }
        Ok(signals)
    }

    /// Tells what came.
    pub fn tell(&self, events: &mut Vec<Event>) {
        for (place, (_, signal)) in HEEDED.iter().enumerate() {
            for _ in 0..self.counts[place].swap(0, Ordering::AcqRel) {
                events.push(Event::Signal(*signal));
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            low_level::unregister(handler);
        }
    }
}
