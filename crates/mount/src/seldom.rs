//! Lines of the log about what may happen with each request: a crowd of clients must not fill a disk with them.

use std::sync::atomic::{AtomicU64, Ordering};

/// One kind of them is logged no more often than this: once a minute.
const EVERY_NS: u64 = 60_000_000_000;

/// One kind of lines.
pub(crate) struct Seldom {
    /// The next one may be logged then; 0: at once.
    from_ns: AtomicU64,
    /// So many were not, since the last one was.
    left_out: AtomicU64,
}

impl Seldom {
    /// None was logged yet.
    pub(crate) const fn new() -> Seldom {
        Seldom { from_ns: AtomicU64::new(0), left_out: AtomicU64::new(0) }
    }

    /// Something is to be logged. `None`: it is left out. Else it is logged, with how many were left out before it.
    pub(crate) fn line(&self, now_ns: u64) -> Option<u64> {
        let from_ns = self.from_ns.load(Ordering::Relaxed);
        let next_ns = now_ns.saturating_add(EVERY_NS);
        let is_due = now_ns >= from_ns;
        if is_due && self.from_ns.compare_exchange(from_ns, next_ns, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            return Some(self.left_out.swap(0, Ordering::Relaxed));
        }
        self.left_out.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_logged_once_a_minute_and_says_how_many_were_left_out() {
        let seldom = Seldom::new();
        assert_eq!(seldom.line(5), Some(0));
        assert_eq!((0..10).filter_map(|n| seldom.line(5 + n)).count(), 0);
        assert_eq!(seldom.line(4 + EVERY_NS), None);
        assert_eq!(seldom.line(5 + EVERY_NS), Some(11));
        assert_eq!(seldom.line(5 + 2 * EVERY_NS), Some(0));
    }
}
