//! Latency histograms, and the changes of depths that follow from them.

use super::domain::{Domain, PerDomain};
use crate::collections::Count;

/// The number of latency classes, each a quarter of the target. The last one has no upper bound.
const BUCKETS: usize = 8;
/// The number of classes that meet the target.
const GOOD_BUCKETS: u32 = 4;
/// The number of samples from which a percentile is computed at once.
const SAMPLES_MIN: u32 = 500;
/// The time after which fewer samples suffice, in ms.
pub(super) const WINDOW_MS: u64 = 1000;

/// The kinds of latencies.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// From submission to completion.
    Total,
    /// From the driver to completion.
    Device,
}

/// The samples of one domain.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    total: [u32; BUCKETS],
    device: [u32; BUCKETS],
    /// The tick from which fewer samples suffice, or 0. The kinds share it: usually the device's
    /// percentile is due first and uses up the window, and the total one restarts it. So with
    /// steady traffic the total one needs its 500 samples.
    window_end: u64,
    /// The total percentile of a time without congestion, to be used once.
    saved: Option<u32>,
}

/// The samples of all measured domains.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latencies(PerDomain<Samples>);

/// A change of a domain's depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub domain: Domain,
    /// The new depth in quarters of the current one.
    pub quarters: u32,
}

impl Latencies {
    /// Adds a request's total and device latency, in ns, for a domain with this target.
    pub fn add(&mut self, domain: Domain, target_ns: u64, total_ns: u64, device_ns: u64) {
        let samples = &mut self.0[domain];
        for (buckets, latency_ns) in [(&mut samples.total, total_ns), (&mut samples.device, device_ns)] {
            if let Some(count) = buckets.get_mut(bucket(latency_ns, target_ns)) {
                count.increment();
            }
        }
    }

    /// Evaluates the samples; `window` is a second in ticks. A domain that meets its target loses
    /// depth only while another one is slow in the device; one that misses it gains depth.
    pub fn evaluate(&mut self, now: u64, window: u64, mut change: impl FnMut(Change)) {
        let mut congested = false;
        for domain in Domain::MEASURED {
            let device = self.0[domain].percentile(Kind::Device, 90, now, window);
            congested |= device.is_some_and(|bucket| bucket >= GOOD_BUCKETS);
        }
        for domain in Domain::MEASURED {
            let samples = &mut self.0[domain];
            let mut total = samples.percentile(Kind::Total, 99, now, window);
            if congested {
                total = total.or(samples.saved.take());
                samples.saved = None;
            } else if total.is_some() {
                samples.saved = total;
            }
            match total {
                Some(bucket) if congested || bucket >= GOOD_BUCKETS => {
                    change(Change { domain, quarters: bucket.saturating_add(1) });
                }
                _ => {}
            }
        }
    }
}

impl Samples {
    /// The class that `percent` percent of the samples do not exceed, if there are enough samples,
    /// which are then discarded.
    fn percentile(&mut self, kind: Kind, percent: u32, now: u64, window: u64) -> Option<u32> {
        let buckets = match kind {
            Kind::Total => &mut self.total,
            Kind::Device => &mut self.device,
        };
        let count = buckets.iter().fold(0u32, |sum, count| sum.saturating_add(*count));
        if count == 0 {
            return None;
        }
        if self.window_end == 0 {
            self.window_end = now.saturating_add(window).max(1);
        }
        if count < SAMPLES_MIN && now < self.window_end {
            return None;
        }
        self.window_end = 0;
        let mut rest = count.saturating_mul(percent).div_ceil(100);
        let mut found = BUCKETS.saturating_sub(1) as u32;
        for (bucket, count) in (0u32..).zip(buckets.iter().take(BUCKETS - 1)) {
            if *count >= rest {
                found = bucket;
                break;
            }
            rest = rest.saturating_sub(*count);
        }
        *buckets = [0; BUCKETS];
        Some(found)
    }
}

/// The class of a latency: the first quarter of the target is 0, the fourth 3.
fn bucket(latency_ns: u64, target_ns: u64) -> usize {
    let quarter_ns = (target_ns / 4).max(1);
    let below_ns = latency_ns.saturating_sub(1);
    if below_ns < quarter_ns {
        // On a fast device this is the usual case: no division.
        return 0;
    }
    let quarters = below_ns.checked_div(quarter_ns).unwrap_or(0);
    quarters.min(BUCKETS as u64 - 1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const TARGET_NS: u64 = 2_000_000;

    #[test]
    fn a_class_is_a_quarter_of_the_target_and_the_target_itself_is_met() {
        let classes =
            [(0, 0), (500_000, 0), (500_001, 1), (2_000_000, 3), (2_000_001, 4), (3_500_000, 6), (3_500_001, 7)];
        for (latency_ns, class) in classes {
            assert_eq!(bucket(latency_ns, TARGET_NS), class, "{latency_ns} ns");
        }
        assert_eq!(bucket(u64::MAX, 0), 7, "a target of 0 is missed");
    }

    #[test]
    fn the_percentile_is_the_class_of_the_sample_of_that_rank() {
        // ceil(500 * 99 / 100) = 495: the 495th of 500 samples.
        for (slow, class) in [(5, 0), (6, 6)] {
            let mut samples = Samples { total: [500 - slow, 0, 0, 0, 0, 0, slow, 0], ..Samples::default() };
            assert_eq!(samples.percentile(Kind::Total, 99, 10, 1000), Some(class));
            assert_eq!(samples.total, [0; BUCKETS]);
        }
    }

    fn evaluate(latencies: &mut Latencies, now: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        latencies.evaluate(now, 1000, |change| changes.push(change));
        changes
    }

    #[test]
    fn few_samples_are_evaluated_after_a_second() {
        let mut latencies = Latencies::default();
        for _ in 0..30 {
            latencies.add(Domain::Read, TARGET_NS, 10 * TARGET_NS, 10 * TARGET_NS);
        }
        assert_eq!(evaluate(&mut latencies, 100), []);
        assert_eq!(evaluate(&mut latencies, 1099), []);
        // The device's percentile uses up the window and shows congestion; the total one restarts
        // it.
        assert_eq!(evaluate(&mut latencies, 1100), []);
        for now in [1200, 2099] {
            assert_eq!(evaluate(&mut latencies, now), []);
        }
        assert_eq!(evaluate(&mut latencies, 2100), [Change { domain: Domain::Read, quarters: 8 }]);
    }

    #[test]
    fn a_domain_within_its_target_is_throttled_while_another_is_slow_in_the_device() {
        let mut latencies = Latencies::default();
        for _ in 0..500 {
            latencies.add(Domain::Read, TARGET_NS, TARGET_NS / 2 + 1, 1);
        }
        assert_eq!(evaluate(&mut latencies, 100), [], "no domain is slow: the reads' class, 2, is saved");
        for _ in 0..500 {
            latencies.add(Domain::Write, TARGET_NS, 6 * TARGET_NS, 6 * TARGET_NS / 4);
        }
        let both = [Change { domain: Domain::Read, quarters: 3 }, Change { domain: Domain::Write, quarters: 8 }];
        assert_eq!(evaluate(&mut latencies, 200), both);
        for _ in 0..500 {
            latencies.add(Domain::Write, TARGET_NS, 6 * TARGET_NS, 6 * TARGET_NS / 4);
        }
        assert_eq!(evaluate(&mut latencies, 300), both[1..], "what was saved is used once");
    }
}
