//! Signals of the process: the handler counts them, and the engine returns them as events.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level;

use crate::engine::{Event, Signal};
use crate::wake::Waker;

/// The handled signals, in the order of their events if several are pending: a reload that was
/// requested before the end is not refused because of the end.
const HANDLED: [(i32, Signal); 4] =
    [(SIGHUP, Signal::Reload), (SIGCHLD, Signal::Child), (SIGTERM, Signal::Terminate), (SIGINT, Signal::Terminate)];

/// Handlers of signals, until this value is dropped. The default action is not restored.
#[derive(Debug)]
pub(crate) struct Signals {
    /// Signals received, in the order of [`HANDLED`].
    counts: Arc<[AtomicU32; HANDLED.len()]>,
    handlers: Vec<SigId>,
}

impl Signals {
    /// Installs the handlers; each signal wakes the engine.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub fn catch(waker: &Waker) -> std::io::Result<Signals> {
        let counts: Arc<[AtomicU32; HANDLED.len()]> = Arc::default();
        let mut signals = Signals { counts: counts.clone(), handlers: Vec::new() };
        for (index, (number, _)) in HANDLED.iter().enumerate() {
            let (counts, waker) = (counts.clone(), waker.clone());
            let count = move || {
                counts[index].fetch_add(1, Ordering::Release);
                let one = 1u64.to_ne_bytes();
                // SAFETY: write(2) may be called in a handler (signal-safety(7)), and the closure
                // keeps the descriptor open.
                unsafe { libc::write(waker.as_raw_fd(), one.as_ptr().cast(), one.len()) };
            };
            // SAFETY: the closure increments an atomic integer and writes to a descriptor, both of
            // which are async-signal-safe.
            signals.handlers.push(unsafe { low_level::register(*number, count) }?);
        }
        Ok(signals)
    }

    /// Appends an event for each signal received since the last call.
    pub fn take(&self, events: &mut Vec<Event>) {
        for (index, (_, signal)) in HANDLED.iter().enumerate() {
            for _ in 0..self.counts[index].swap(0, Ordering::AcqRel) {
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
