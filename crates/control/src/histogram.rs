//! Latency histograms in text form: 8 buckets per octave, so that a client can subtract two
//! samples.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

/// The binary logarithm of the number of buckets per octave.
const STEPS_LOG2: u32 = 3;
/// The time in ns below which a bucket is one ns wide.
const LINEAR_NS: u64 = 1 << STEPS_LOG2;

/// The number of requests by latency: counts by the lower bounds of buckets, in ns. The width of a
/// bucket is at most an eighth of its lower bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    counts: BTreeMap<u64, u64>,
}

impl Latencies {
    /// Adds a recorded histogram in ns.
    pub fn add(&mut self, recorded: &Histogram<u64>) {
        for value in recorded.iter_recorded() {
            self.add_count(value.value_iterated_to(), value.count_since_last_iteration());
        }
    }

    /// Adds `count` requests with a latency of `ns`.
    pub fn add_count(&mut self, ns: u64, count: u64) {
        if count > 0 {
            let entry = self.counts.entry(floor(ns)).or_default();
            *entry = entry.saturating_add(count);
        }
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Latencies) {
        other.counts.iter().for_each(|(ns, count)| self.add_count(*ns, *count));
    }

    /// Returns the requests since `before`, an earlier sample of the same histogram.
    pub fn since(&self, before: &Latencies) -> Latencies {
        let mut since = Latencies::default();
        for (ns, count) in &self.counts {
            since.add_count(*ns, count.saturating_sub(before.counts.get(ns).copied().unwrap_or(0)));
        }
        since
    }

    /// Returns the number of requests.
    pub fn count(&self) -> u64 {
        self.counts.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns a percentile in ns, the middle of a bucket; `None` without requests.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        let wanted = (self.count() as f64 * percent / 100.0).ceil().max(1.0);
        let mut seen = 0.0;
        for (ns, count) in &self.counts {
            seen += *count as f64;
            if seen >= wanted {
                return Some(ns + width(*ns) / 2);
            }
        }
        None
    }

    /// Returns `NS:COUNT` for each bucket, separated by blanks.
    pub fn to_text(&self) -> String {
        let buckets: Vec<String> = self.counts.iter().map(|(ns, count)| format!("{ns}:{count}")).collect();
        buckets.join(" ")
    }

    /// Parses the form of [`to_text`](Self::to_text); `None` if it is invalid.
    pub fn from_text<'a>(buckets: impl IntoIterator<Item = &'a str>) -> Option<Latencies> {
        let mut latencies = Latencies::default();
        for bucket in buckets {
            let (ns, count) = bucket.split_once(':')?;
            latencies.add_count(ns.parse().ok()?, count.parse().ok()?);
        }
        Some(latencies)
    }
}

/// Returns the lower bound of the bucket of a time.
fn floor(ns: u64) -> u64 {
    ns - ns % width(ns)
}

/// Returns the width of the bucket of a time.
fn width(ns: u64) -> u64 {
    if ns < LINEAR_NS { 1 } else { 1 << (ns.ilog2() - STEPS_LOG2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_an_eighth_of_its_octave() {
        // 1000 is in 512..1024, whose eighths are 64 wide: 960..1024.
        assert_eq!((floor(1000), width(1000)), (960, 64));
        assert_eq!((floor(7), floor(8), floor(u64::MAX)), (7, 8, 0xF << 60));
        assert!(
            (1..100_000u64).all(|ns| floor(ns) <= ns && ns < floor(ns) + width(ns) && floor(floor(ns)) == floor(ns))
        );
    }

    #[test]
    fn percentiles_of_the_requests_between_two_samples() {
        let mut before = Latencies::default();
        before.add_count(1_000_000, 50);
        let mut after = before.clone();
        after.add_count(10_000, 99);
        after.add_count(80_000_000, 1);
        let since = after.since(&before);
        assert_eq!(since.count(), 100);
        // 10,000 is in 9216..10240; 80,000,000 in 75,497,472..83,886,080.
        assert_eq!((since.percentile_ns(50.0), since.percentile_ns(99.0)), (Some(9728), Some(9728)));
        assert_eq!(since.percentile_ns(100.0), Some(79_691_776));
        assert_eq!(Latencies::default().percentile_ns(50.0), None);
    }

    #[test]
    fn the_text_form_is_parsed_again() {
        let mut recorded = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 2).unwrap();
        [5, 700, 700, 123_456, 9_999_999_999].into_iter().for_each(|ns| recorded.record(ns).unwrap());
        let mut latencies = Latencies::default();
        latencies.add(&recorded);
        assert_eq!(latencies.count(), 5);
        assert_eq!(Latencies::from_text(latencies.to_text().split(' ')), Some(latencies));
        for wrong in ["", "1", "1:x", ":1", "1:2:3"] {
            assert_eq!(Latencies::from_text([wrong]), None, "{wrong:?}");
        }
    }
}
