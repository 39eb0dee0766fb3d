//! A rate limit for log lines that any request may cause, so that clients cannot fill a disk with
//! them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Minimum interval between two lines of one kind: one minute.
const INTERVAL_NS: u64 = 60_000_000_000;

/// The rate limiter of one kind of log line.
#[derive(Debug)]
pub struct LogRateLimiter {
    /// Time from which the next line is allowed, in ns; 0 for at once.
    allowed_ns: AtomicU64,
    /// Lines suppressed since the last one that was logged.
    suppressed: AtomicU64,
}

impl Default for LogRateLimiter {
    fn default() -> Self {
        LogRateLimiter::new()
    }
}

impl LogRateLimiter {
    /// Creates a limiter that allows the first line.
    pub const fn new() -> LogRateLimiter {
        LogRateLimiter { allowed_ns: AtomicU64::new(0), suppressed: AtomicU64::new(0) }
    }

    /// Returns the number of lines suppressed since the last one if a line is allowed now, or
    /// `None` if this line is suppressed.
    pub fn allow(&self, now_ns: u64) -> Option<u64> {
        let allowed_ns = self.allowed_ns.load(Ordering::Relaxed);
        let next_ns = now_ns.saturating_add(INTERVAL_NS);
        let is_due = now_ns >= allowed_ns;
        if is_due && self.allowed_ns.compare_exchange(allowed_ns, next_ns, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            return Some(self.suppressed.swap(0, Ordering::Relaxed));
        }
        self.suppressed.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_minute_is_allowed_and_counts_the_suppressed_ones() {
        let limiter = LogRateLimiter::new();
        assert_eq!(limiter.allow(5), Some(0));
        assert_eq!((0..10).filter_map(|n| limiter.allow(5 + n)).count(), 0);
        assert_eq!(limiter.allow(4 + INTERVAL_NS), None);
        assert_eq!(limiter.allow(5 + INTERVAL_NS), Some(11));
        assert_eq!(limiter.allow(5 + 2 * INTERVAL_NS), Some(0));
    }
}
