//! A token bucket in whole numbers: what it holds is counted in billionths of a unit, so that a rate a second is that many a nanosecond.

const PARTS: i128 = 1_000_000_000;

/// An account that fills at a rate up to a depth. Whoever draws more than there is waits for it, and all after them.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    rate_per_s: i128,
    depth: i128,
    content: i128,
    /// When the content was what it is: not before the last who drew were covered.
    at_ns: u64,
}

impl Bucket {
    /// An account into which `rate_per_s` units flow (at least 1), which holds `depth` of them, and `start` at time 0.
    pub(super) fn new(rate_per_s: u64, depth: u64, start: u64) -> Bucket {
        let parts = |units: u64| i128::from(units) * PARTS;
        Bucket { rate_per_s: i128::from(rate_per_s.max(1)), depth: parts(depth), content: parts(start), at_ns: 0 }
    }

    /// Draws `units` and answers when they were covered: at `now_ns`, or later. More than the account holds may be drawn.
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
        // 10 ms a unit once the three are gone.
        let at: Vec<u64> = (0..5).map(|_| bucket.draw(5, 1)).collect();
        assert_eq!(at, [5, 5, 5, 10_000_005, 20_000_005]);
    }

    #[test]
    fn idle_bucket_fills_up_to_its_depth_and_no_further() {
        let mut bucket = Bucket::new(100, 3, 0);
        // An hour would be 360,000 units.
        let hour_ns = 3_600_000_000_000;
        let at: Vec<u64> = (0..4).map(|_| bucket.draw(hour_ns, 1) - hour_ns).collect();
        assert_eq!(at, [0, 0, 0, 10_000_000]);
    }

    #[test]
    fn rate_that_divides_no_second_loses_nothing() {
        let mut bucket = Bucket::new(3, 1, 0);
        let last = (0..3_000_000).map(|_| bucket.draw(0, 1)).last();
        // A million seconds.
        assert_eq!(last, Some(1_000_000_000_000_000));
    }

    #[test]
    fn who_draws_more_than_the_depth_waits_for_all_of_it() {
        let mut bucket = Bucket::new(100, 3, 3);
        assert_eq!(bucket.draw(0, 10), 70_000_000);
        assert_eq!(bucket.draw(0, 1), 80_000_000);
    }
}
