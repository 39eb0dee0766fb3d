//! A token bucket that counts in tokens and ns without rounding errors.

const SECOND_NS: u64 = 1_000_000_000;

/// A bucket that fills at a rate of tokens a second, up to its depth. A token is a byte or an
/// operation.
///
/// A request of c tokens may go when the bucket holds min(c, depth), and takes c tokens. A request
/// larger than the depth goes when the bucket is full and leaves a debt, which is paid off before
/// the next request goes. So in any time t at most rate * t + depth + one request goes, and a
/// permanent backlog receives at least rate * t less one request. Inflow is counted to 10^-9
/// tokens.
///
/// Reservations and limits both use the bucket. A reservation guarantees what the bucket holds; a
/// limit delays what the bucket does not hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenBucket {
    rate: u64,
    depth: u64,
    /// Whole tokens at `stamp_ns`; negative for a debt.
    tokens: i64,
    /// The fraction beyond the whole tokens, in 10^-9 tokens.
    fraction: u64,
    stamp_ns: u64,
}

impl TokenBucket {
    /// The greatest rate, in tokens a second.
    pub const RATE_MAX: u64 = 10_000_000_000;
    /// The greatest depth, in tokens.
    pub const DEPTH_MAX: u64 = 1 << 50;

    /// Creates a full bucket. `rate` is in tokens a second, up to [`RATE_MAX`](Self::RATE_MAX); 0
    /// never refills. `depth` is in tokens, up to [`DEPTH_MAX`](Self::DEPTH_MAX); with 0 each
    /// request is paid off before the next one goes. Larger values are clamped.
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

    /// Changes rate and depth. The time until now counts at the old rate; tokens beyond the new
    /// depth are lost.
    pub fn change(&mut self, rate: u64, depth: u64, now_ns: u64) {
        self.refill(now_ns);
        (self.rate, self.depth) = (rate.min(Self::RATE_MAX), depth.min(Self::DEPTH_MAX));
        self.clamp_to_depth();
    }

    /// Adds the tokens since the last refill. A clock that goes back counts as one that stands
    /// still.
    pub fn refill(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.stamp_ns);
        self.stamp_ns = self.stamp_ns.max(now_ns);
        // 10^10 tokens/s * 10^9 ns and a fraction below 10^9 stay below 2^64.
        let part = self.rate.saturating_mul(elapsed_ns % SECOND_NS).saturating_add(self.fraction);
        let tokens = self.rate.saturating_mul(elapsed_ns / SECOND_NS).saturating_add(part / SECOND_NS);
        self.tokens = self.tokens.saturating_add(signed(tokens));
        self.fraction = part % SECOND_NS;
        self.clamp_to_depth();
    }

    /// Returns true if a request of this cost may go, as of the last refill.
    pub fn holds(&self, cost: u64) -> bool {
        self.tokens >= signed(cost.min(self.depth))
    }

    /// Takes the cost of a request, leaving a debt if necessary.
    pub fn take(&mut self, cost: u64) {
        self.tokens = self.tokens.saturating_sub(signed(cost));
        debug_assert!(self.tokens <= signed(self.depth));
    }

    /// Returns the time in ns from which a request of this cost may go if no other request takes
    /// tokens. The result is never before the last refill; it is `u64::MAX` if the rate is 0.
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
            // Borrow one second so that the fraction can be subtracted.
            (seconds, rest) = (seconds.saturating_sub(1), self.rate);
        }
        let part_ns = rest.saturating_mul(SECOND_NS).saturating_sub(self.fraction).div_ceil(self.rate.max(1));
        self.stamp_ns.saturating_add(seconds.saturating_mul(SECOND_NS)).saturating_add(part_ns)
    }

    fn clamp_to_depth(&mut self) {
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
        assert!(bucket.holds(2_000_000), "a full bucket suffices for a request of any size");
        bucket.take(2_000_000);
        assert_eq!(bucket.holds_at(2_000_000), 2 * SECOND_NS, "from -1 MB to 1 MB at 1 MB/s");
    }

    #[test]
    fn no_byte_is_lost_however_often_the_bucket_is_refilled() {
        // 3 bytes a second, refilled at odd intervals: after exactly 10^9 ns it holds 3 bytes.
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
    fn a_bucket_saturates_and_a_clock_that_goes_back_adds_nothing() {
        let mut bucket = TokenBucket::full(10_000_000_000, 1 << 50, 5);
        bucket.take(1 << 41);
        bucket.refill(u64::MAX);
        bucket.refill(3);
        assert!(bucket.holds(1 << 50));
    }

    #[test]
    fn a_limit_of_operations_allows_its_burst_and_then_one_operation_a_period() {
        // 100 operations a second, depth 5: five at once, the sixth after 10 ms, and so on.
        let mut bucket = TokenBucket::full(100, 5, 0);
        let mut dispatched_at = std::vec::Vec::new();
        for _ in 0..8 {
            let at_ns = bucket.holds_at(1);
            bucket.refill(at_ns);
            assert!(bucket.holds(1));
            bucket.take(1);
            dispatched_at.push(at_ns / 1_000_000);
        }
        assert_eq!(dispatched_at, [0, 0, 0, 0, 0, 10, 20, 30]);
    }

    #[test]
    fn a_bucket_of_depth_0_delays_the_next_request_until_the_last_is_paid() {
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
