//! A token bucket, in bytes and ns, without rounding.

const SECOND_NS: u64 = 1_000_000_000;

/// A bucket that fills at `rate` bytes a second up to `depth` bytes. It can be in debt: a request larger than the bucket is served
/// when the bucket is full, and paid off afterwards.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    /// Bytes a second, at most 10^10.
    pub rate: u64,
    /// Bytes.
    pub depth: u64,
    /// Whole bytes at `stamp_ns` ...
    tokens: i64,
    /// ... and what there is beyond them, in 10^-9 bytes.
    fraction: u64,
    stamp_ns: u64,
}

impl Bucket {
    /// A full bucket.
    pub fn full(rate: u64, depth: u64, now_ns: u64) -> Bucket {
        Bucket { rate, depth, tokens: signed(depth), fraction: 0, stamp_ns: now_ns }
    }

    /// Changes rate and depth; what has come in so far came at the old rate.
    pub fn change(&mut self, rate: u64, depth: u64, now_ns: u64) {
        self.refill(now_ns);
        (self.rate, self.depth) = (rate, depth);
        self.cap();
    }

    /// Takes in what has come since the last time. A clock that went back counts as one that stood.
    pub fn refill(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.stamp_ns);
        self.stamp_ns = self.stamp_ns.max(now_ns);
        // 10^10 bytes/s * 10^9 ns and a fraction below 10^9 stay below 2^64.
        let part = self.rate.saturating_mul(elapsed_ns % SECOND_NS).saturating_add(self.fraction);
        let bytes = self.rate.saturating_mul(elapsed_ns / SECOND_NS).saturating_add(part / SECOND_NS);
        self.tokens = self.tokens.saturating_add(signed(bytes));
        self.fraction = part % SECOND_NS;
        self.cap();
    }

    /// Whether a request of this size is within the reservation, as of the last refill.
    pub fn holds(&self, bytes: u64) -> bool {
        self.tokens >= signed(bytes.min(self.depth))
    }

    /// Pays for a request, into debt if it must be.
    pub fn take(&mut self, bytes: u64) {
        self.tokens = self.tokens.saturating_sub(signed(bytes));
        debug_assert!(self.tokens <= signed(self.depth));
    }

    /// When a request of this size is within the reservation, in ns; never with a rate of 0.
    pub fn holds_at(&self, bytes: u64) -> u64 {
        let missing = signed(bytes.min(self.depth)).saturating_sub(self.tokens);
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

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_larger_than_the_bucket_is_paid_off_afterwards() {
        let mut bucket = Bucket::full(1_000_000, 1_000_000, 0);
        assert!(bucket.holds(2_000_000), "a full bucket is all that it takes");
        bucket.take(2_000_000);
        assert_eq!(bucket.holds_at(2_000_000), 2 * SECOND_NS, "from -1 MB to 1 MB at 1 MB/s");
    }

    #[test]
    fn no_byte_is_lost_however_often_it_is_looked_at() {
        // 3 bytes a second, looked at every 7 ns: after 10^9 of these ns it has 3 bytes, at once and not before.
        let mut bucket = Bucket::full(3, 5, 0);
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
        let mut bucket = Bucket::full(10_000_000_000, 1 << 50, 5);
        bucket.take(1 << 41);
        bucket.refill(u64::MAX);
        bucket.refill(3);
        assert!(bucket.holds(1 << 50));
    }
}
