//! The threads that ask the gate, and how many of them are kept by what they asked for.
//!
//! What nobody has taken from the kernel waits in the order in which it came, whoever it is of. So one thread is always left to take it: the last one that is free gives its
//! work away, to io_uring or to a thread of the gate's.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Those who ask.
pub(super) struct Callers {
    /// How many there are.
    count: AtomicUsize,
    /// How many do what they asked for.
    busy: AtomicUsize,
}

impl Default for Callers {
    /// As many as there may be.
    fn default() -> Callers {
        Callers { count: AtomicUsize::new(usize::MAX), busy: AtomicUsize::new(0) }
    }
}

impl Callers {
    /// Says how many there are.
    pub fn set(&self, count: usize) {
        self.count.store(count, Ordering::Relaxed);
    }

    /// Has the caller do what it asked for; `None`: it is the last one that is free.
    #[inline]
    pub fn stay(&self) -> Option<Stay<'_>> {
        let stay = Stay(self);
        let busy = self.busy.fetch_add(1, Ordering::Relaxed) + 1;
        (busy < self.count.load(Ordering::Relaxed)).then_some(stay)
    }
}

/// A caller is kept until this is dropped.
pub(super) struct Stay<'a>(&'a Callers);

impl Drop for Stay<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_them_is_always_free() {
        let callers = Callers::default();
        callers.set(3);
        let first = callers.stay();
        let second = callers.stay();
        assert!(first.is_some() && second.is_some() && callers.stay().is_none());
        drop(first);
        assert!(callers.stay().is_some());
    }
}
