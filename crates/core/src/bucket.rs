//! A token bucket, in tokens and ns, without rounding.

const SECOND_NS: u64 = 1_000_000_000;

/// A bucket that fills at a rate of tokens a second, up to its depth. A token is a byte, or an operation: whatever the rate counts.
///
/// A request that costs c tokens goes when the bucket holds min(c, depth), and takes c: one that costs more than the bucket is deep goes when
/// the bucket is full, and leaves it in debt, which the next ones pay off. So over any time t no more than rate * t + depth + one request
/// goes, and whoever always asks gets no less than rate * t less one request. Nothing is rounded: what comes in is counted to 10^-9 tokens.
///
/// Both reservations and limits are reckoned with it: what a reservation's bucket holds is promised, what a limit's does not hold waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenBucket {
    rate: u64,
    depth: u64,
    /// Whole tokens at `stamp_ns` ...
    tokens: i64,
    /// ... and what there is beyond them, in 10^-9 tokens.
    fraction: u64,
    stamp_ns: u64,
}

impl TokenBucket {
    /// The greatest rate, in tokens a second.
    pub const RATE_MAX: u64 = 10_000_000_000;
    /// The greatest depth, in tokens.
    pub const DEPTH_MAX: u64 = 1 << 50;

    /// A full bucket. The rate is in tokens a second, up to [`RATE_MAX`](Self::RATE_MAX) (with 0 nothing ever comes in), the depth in
    /// tokens, up to [`DEPTH_MAX`](Self::DEPTH_MAX) (with 0 each request is paid off before the next goes); more is taken as that.
    pub fn full(rate: u64, depth: u64, now_ns: u64) -> TokenBucket {
        let (rate, depth) = (rate.min(Self::RATE_MAX), depth.min(Self::DEPTH_MAX));
        TokenBucket { rate, depth, tokens: signed(depth), fraction: 0, stamp_ns: now_ns }
    }

    /// The rate, in tokens a second.
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// The depth, in tokens.
    pub fn depth(&self) -> u64 {
        self.depth
    }

    /// Changes rate and depth; what has come in so far came at the old rate, and what does not fit is lost.
    pub fn change(&mut self, rate: u64, depth: u64, now_ns: u64) {
        self.refill(now_ns);
        (self.rate, self.depth) = (rate.min(Self::RATE_MAX), depth.min(Self::DEPTH_MAX));
        self.cap();
    }

    /// Takes in what has come since the last time. A clock that went back counts as one that stood.
    pub fn refill(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.stamp_ns);
        self.stamp_ns = self.stamp_ns.max(now_ns);
        // 10^10 tokens/s * 10^9 ns and a fraction below 10^9 stay below 2^64.
        let part = self.rate.saturating_mul(elapsed_ns % SECOND_NS).saturating_add(self.fraction);
        let tokens = self.rate.saturating_mul(elapsed_ns / SECOND_NS).saturating_add(part / SECOND_NS);
        self.tokens = self.tokens.saturating_add(signed(tokens));
        self.fraction = part % SECOND_NS;
        self.cap();
    }

    /// Whether a request of this cost may go, as of the last refill.
    pub fn holds(&self, cost: u64) -> bool {
        self.tokens >= signed(cost.min(self.depth))
    }

    /// Pays for a request, into debt if it must be.
    pub fn take(&mut self, cost: u64) {
        self.tokens = self.tokens.saturating_sub(signed(cost));
        debug_assert!(self.tokens <= signed(self.depth));
    }

    /// When a request of this cost may go, in ns, if nothing else is taken before: not before the last refill, and never (`u64::MAX`) with
    /// a rate of 0.
    pub fn holds_at(&self, cost: u64) -> u64 {
        let missing = signed(cost.min(self.depth)).saturating_sub(self.tokens);
        if missing <= 0 {
            return self.stamp_ns;
        }
        if self.rate == 0 {
            return u64::MAX;
        }
        let (mut seconds, mut rest) =
            (missing.unsigned_abs() / self.rate.max(1), missing.unsigned_abs() % self.rate.max(1));
        if rest == 0 && seconds > 0 {
            // So that the fraction is taken off something.
            (seconds, rest) = (seconds.saturating_sub(1), self.rate);
        }
        let part_ns = rest.saturating_mul(SECOND_NS).saturating_sub(self.fraction).div_ceil(self.rate.max(1));
        self.stamp_ns.saturating_add(seconds.saturating_mul(SECOND_NS)).saturating_add(part_ns)
    }

    fn cap(&mut self) {
        if self.tokens >= signed(self.depth) {
            self.tokens = signed(self.depth);
            self.fraction = 0;
        }
    }
}

fn signed(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_larger_than_the_bucket_is_paid_off_afterwards() {
        let mut bucket = TokenBucket::full(1_000_000, 1_000_000, 0);
        assert!(bucket.holds(2_000_000), "a full bucket is all that it takes");
        bucket.take(2_000_000);
        assert_eq!(bucket.holds_at(2_000_000), 2 * SECOND_NS, "from -1 MB to 1 MB at 1 MB/s");
    }

    #[test]
    fn no_byte_is_lost_however_often_it_is_looked_at() {
        // 3 bytes a second, looked at every 7 ns: after 10^9 of these ns it has 3 bytes, at once and not before.
        let mut bucket = TokenBucket::full(3, 5, 0);
        bucket.take(5);
        assert_eq!(bucket.holds_at(3), SECOND_NS);
        for step in 1..=1000u64 {
            bucket.refill(step * 999_999);
        }
        bucket.refill(SECOND_NS - 1);
        assert!(!bucket.holds(3) && bucket.holds_at(3) == SECOND_NS, "{bucket:?}");
        bucket.refill(SECOND_NS);
        assert!(bucket.holds(3));
    }

    #[test]
    fn a_bucket_saturates_and_a_clock_that_goes_back_stands() {
        let mut bucket = TokenBucket::full(10_000_000_000, 1 << 50, 5);
        bucket.take(1 << 41);
        bucket.refill(u64::MAX);
        bucket.refill(3);
        assert!(bucket.holds(1 << 50));
    }

    #[test]
    fn a_limit_of_operations_lets_its_burst_go_and_then_one_each_period() {
        // 100 operations a second, 5 at once: the 6th 10 ms after the first five, and so on.
        let mut bucket = TokenBucket::full(100, 5, 0);
        let mut went_at = std::vec::Vec::new();
        for _ in 0..8 {
            let at_ns = bucket.holds_at(1);
            bucket.refill(at_ns);
            assert!(bucket.holds(1));
            bucket.take(1);
            went_at.push(at_ns / 1_000_000);
        }
        assert_eq!(went_at, [0, 0, 0, 0, 0, 10, 20, 30]);
    }

    #[test]
    fn what_goes_at_once_has_no_room_in_a_bucket_of_depth_0() {
        let mut bucket = TokenBucket::full(1000, 0, 0);
        assert!(bucket.holds(500));
        bucket.take(500);
        assert!(!bucket.holds(1) && bucket.holds_at(1) == SECOND_NS / 2);
        bucket.refill(SECOND_NS);
        assert!(bucket.holds(500), "paid off, and nothing saved");
        bucket.take(1);
        assert!(!bucket.holds(1));
    }
}
