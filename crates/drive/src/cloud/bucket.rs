//! A token bucket in integers. The content is in billionths of a token, so a rate a second is that
//! many billionths a nanosecond.

const PARTS: i128 = 1_000_000_000;

/// A bucket that fills at a rate up to its capacity. A draw beyond the content waits, and so do all
/// later draws.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    rate_per_s: i128,
    depth: i128,
    content: i128,
    /// The time of the content, at the earliest the time at which the last draw was covered.
    at_ns: u64,
}

impl Bucket {
    /// Creates a bucket with a rate of at least 1, a capacity of `depth` and `start` tokens at time
    /// 0.
    pub(super) fn new(rate_per_s: u64, depth: u64, start: u64) -> Bucket {
        let parts = |units: u64| i128::from(units) * PARTS;
        Bucket { rate_per_s: i128::from(rate_per_s.max(1)), depth: parts(depth), content: parts(start), at_ns: 0 }
    }

    /// Draws `units` and returns the time at which they are covered: `now_ns` or later. A draw may
    /// exceed the capacity.
    pub(super) fn draw(&mut self, now_ns: u64, units: u64) -> u64 {
        if now_ns > self.at_ns {
            let inflow = i128::from(now_ns - self.at_ns) * self.rate_per_s;
            self.content = (self.content + inflow).min(self.depth);
            self.at_ns = now_ns;
        }
        self.content -= i128::from(units) * PARTS;
        if self.content < 0 {
            let wait_ns = (-self.content + self.rate_per_s - 1) / self.rate_per_s;
            self.content += wait_ns * self.rate_per_s;
            self.at_ns = self.at_ns.saturating_add(u64::try_from(wait_ns).unwrap_or(u64::MAX));
        }
        self.at_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_bucket_covers_its_depth_at_once_and_then_its_rate() {
        let mut bucket = Bucket::new(100, 3, 3);
        // 10 ms for each token after the first three.
        let at: Vec<u64> = (0..5).map(|_| bucket.draw(5, 1)).collect();
        assert_eq!(at, [5, 5, 5, 10_000_005, 20_000_005]);
    }

    #[test]
    fn idle_bucket_fills_up_to_its_depth_and_no_further() {
        let mut bucket = Bucket::new(100, 3, 0);
        // An hour would yield 360,000 tokens.
        let hour_ns = 3_600_000_000_000;
        let at: Vec<u64> = (0..4).map(|_| bucket.draw(hour_ns, 1) - hour_ns).collect();
        assert_eq!(at, [0, 0, 0, 10_000_000]);
    }

    #[test]
    fn rate_that_does_not_divide_a_second_loses_no_token() {
        let mut bucket = Bucket::new(3, 1, 0);
        let last = (0..3_000_000).map(|_| bucket.draw(0, 1)).last();
        // A million seconds.
        assert_eq!(last, Some(1_000_000_000_000_000));
    }

    #[test]
    fn draw_beyond_the_depth_waits_for_all_of_it() {
        let mut bucket = Bucket::new(100, 3, 3);
        assert_eq!(bucket.draw(0, 10), 70_000_000);
        assert_eq!(bucket.draw(0, 1), 80_000_000);
    }
}
