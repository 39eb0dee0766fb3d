//! The peak rate of the device and whether it has its own queue, from which budgets and durations
//! follow.

use crate::collections::Count;

/// The fixed-point shift of rates in sectors a microsecond.
const RATE_SHIFT: u32 = 16;
/// The minimum number of requests of a valid interval.
const REQUESTS_MIN: u64 = 32;
/// The minimum length of a valid interval, in ns.
const LENGTH_NS_MIN: u64 = 300_000_000;
/// The maximum length of an interval, in ns.
const LENGTH_NS_MAX: u64 = 1_000_000_000;
/// The pause without requests that ends an interval, in ns.
const PAUSE_NS_MAX: u64 = 100_000_000;
/// The time after a completion in which the device counts as busy, in ns.
const BUSY_NS: u64 = 2_000_000;
/// The maximum plausible rate: 20 sectors a microsecond (10 GB/s).
const RATE_MAX: u64 = 20 << RATE_SHIFT;

/// The estimate of the device's peak rate, from the requests dispatched in an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// Sectors a microsecond, times 2^16; at least 1.
    pub rate: u64,
    /// Requests of the current interval; 0 if there is none.
    requests: u64,
    /// Requests that were adjacent to the previous one and kept the device busy.
    sequential: u64,
    sectors: u64,
    /// The size of the largest recent request, in sectors.
    sectors_max: u64,
    first_ns: u64,
    last_ns: u64,
    length_ns: u64,
    /// The time of the last completion, in ns.
    pub completed_ns: u64,
}

/// A dispatched request as input of the estimate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dispatched {
    pub sectors: u32,
    /// Whether it is far from the previous one.
    pub far: bool,
    /// Requests in the device before it.
    pub in_flight: u32,
}

impl Rate {
    pub fn new(rate: u64) -> Rate {
        Rate {
            rate,
            requests: 0,
            sequential: 0,
            sectors: 0,
            sectors_max: 0,
            first_ns: 0,
            last_ns: 0,
            length_ns: 0,
            completed_ns: 0,
        }
    }

    /// Counts a dispatched request. Returns true if the rate has changed.
    pub fn dispatched(&mut self, request: Dispatched, now_ns: u64) -> bool {
        let size = u64::from(request.sectors);
        let mut changed = false;
        if self.requests == 0 {
            self.open(size, now_ns);
        } else if now_ns.saturating_sub(self.last_ns) > PAUSE_NS_MAX && request.in_flight == 0 {
            changed = self.close();
            self.open(size, now_ns);
        } else {
            self.requests.increment();
            let busy = request.in_flight > 0 || now_ns.saturating_sub(self.completed_ns) < BUSY_NS;
            if busy && !request.far {
                self.sequential.increment();
            }
            self.sectors = self.sectors.saturating_add(size);
            self.sectors_max = if self.requests.is_multiple_of(32) { size } else { self.sectors_max.max(size) };
            self.length_ns = now_ns.saturating_sub(self.first_ns);
            if self.length_ns >= LENGTH_NS_MAX {
                changed = self.close();
                self.open(size, now_ns);
            }
        }
        self.last_ns = now_ns;
        changed
    }

    /// Handles a completion. Returns true if the rate has changed. A long pause, in which even the
    /// largest request would have been slow, ends the interval, because the device was idle.
    pub fn completed(&mut self, now_ns: u64) -> bool {
        let since_us = now_ns.saturating_sub(self.completed_ns) / 1000;
        let slow = (self.sectors_max << RATE_SHIFT) / since_us.max(1) < 64;
        let changed = since_us > BUSY_NS / 1000 && slow && self.close();
        self.completed_ns = now_ns;
        changed
    }

    /// The sectors that the device transfers in this many milliseconds.
    pub fn sectors_in_ms(&self, ms: u64) -> u64 {
        self.rate.saturating_mul(1000).saturating_mul(ms) >> RATE_SHIFT
    }

    fn open(&mut self, size: u64, now_ns: u64) {
        (self.requests, self.sequential) = (1, 0);
        (self.sectors, self.sectors_max) = (size, size);
        self.first_ns = now_ns;
    }

    /// Ends the interval. Its weight grows with its length and its sequential part.
    #[cold]
    #[inline(never)]
    fn close(&mut self) -> bool {
        let requests = core::mem::take(&mut self.requests);
        if requests < REQUESTS_MIN || self.length_ns < LENGTH_NS_MIN {
            return false;
        }
        let length_ns = self.length_ns.max(self.completed_ns.saturating_sub(self.first_ns));
        let seen = (self.sectors << RATE_SHIFT) / (length_ns / 1000).max(1);
        let mixed = self.sequential < requests.saturating_mul(3) / 4;
        if (mixed && seen <= self.rate) || seen > RATE_MAX {
            return false;
        }
        let ninths = self.sequential.saturating_mul(9) / requests.max(1);
        let weight = (ninths.saturating_mul(length_ns) / LENGTH_NS_MAX).min(8);
        let divisor = 10u64.saturating_sub(weight).max(1);
        let kept = self.rate.saturating_mul(divisor.saturating_sub(1)) / divisor;
        self.rate = kept.saturating_add(seen / divisor).max(1);
        true
    }
}

/// The minimum of queued and in-flight requests of a sample.
const LOADED: u32 = 3;
/// The number of samples of a decision.
const SAMPLES: u32 = 32;

/// The detection of a device queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queueing {
    /// Whether the device has its own queue, if known. A positive result is permanent.
    pub queues: Option<bool>,
    in_flight_max: u32,
    samples: u32,
}

impl Queueing {
    /// The maximum number of requests recently in flight.
    pub fn in_flight_max(&self) -> u32 {
        self.in_flight_max
    }

    /// Handles a completion. `in_flight` still counts the request; `loaded` is false if the queue
    /// in service sends few requests. Returns true after a new decision.
    pub fn sample(&mut self, in_flight: u32, queued: u32, loaded: bool) -> bool {
        self.in_flight_max = self.in_flight_max.max(in_flight);
        if self.queues == Some(true) || in_flight.saturating_add(queued) <= LOADED || !loaded {
            return false;
        }
        self.samples.increment();
        if self.samples <= SAMPLES {
            return false;
        }
        self.queues = Some(self.in_flight_max > LOADED);
        (self.in_flight_max, self.samples) = (0, 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Dispatches `count` requests of 512 sectors, one every 10 ms, each completed at once.
    fn run(rate: &mut Rate, count: u64, far: bool) -> bool {
        let mut changed = false;
        for number in 0..count {
            let now_ns = number * 10 * MS;
            changed |= rate.dispatched(Dispatched { sectors: 512, far, in_flight: 0 }, now_ns);
            changed |= rate.completed(now_ns + 9 * MS);
        }
        changed
    }

    #[test]
    fn a_second_of_sequential_requests_counts_for_half() {
        // The 101st request ends the interval after 1 s: 101 * 512 * 2^16 / 1000000 us = 3389. All
        // requests but the first are adjacent to the previous one: 9 * 100 / 101 = 8 parts. 9333 /
        // 2 + 3389 / 2 = 4666 + 1694.
        let mut rate = Rate::new(9333);
        assert!(!run(&mut rate, 100, false));
        assert_eq!(rate.rate, 9333);
        let mut rate = Rate::new(9333);
        assert!(run(&mut rate, 101, false));
        assert_eq!(rate.rate, 6360);
    }

    #[test]
    fn slow_seeks_do_not_lower_the_measured_rate() {
        let mut rate = Rate::new(9333);
        assert!(!run(&mut rate, 101, true));
        assert_eq!(rate.rate, 9333);
    }

    #[test]
    fn a_device_has_a_queue_if_one_of_33_loaded_samples_has_four_requests_in_flight() {
        let mut queueing = Queueing::default();
        for _ in 0..32 {
            assert!(!queueing.sample(4, 0, true));
            assert!(!queueing.sample(3, 0, true), "three are no load");
        }
        assert!(queueing.sample(2, 2, true));
        assert_eq!(queueing.queues, Some(true));
        assert!(!queueing.sample(1, 9, true), "a positive result is permanent");
    }
}
