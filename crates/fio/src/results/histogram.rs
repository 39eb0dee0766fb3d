//! Latency histograms with fio's bins.
//!
//! The bins were observed by running fio 3.33 with `json+`: every latency below 128 ns has its own
//! bin, and each doubling above that has 64 bins of equal width. A bin is printed as its middle, so
//! a value is known to within 1/128.

use super::{Bins, LatencyReport, Percentiles};

/// Values below this have a bin each.
const EXACT_NS: u64 = 128;
/// Bins for each doubling, as a power of two.
const SPLIT_BITS: u32 = 6;

/// Latencies of requests, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    min_ns: u64,
    max_ns: u64,
    n: u64,
    mean_ns: f64,
    /// Sum of squared distances from the mean (Welford 1962).
    squares: f64,
    bins: Bins,
}

impl Histogram {
    /// Counts a latency.
    pub fn record(&mut self, latency_ns: u64) {
        self.min_ns = if self.n == 0 { latency_ns } else { self.min_ns.min(latency_ns) };
        self.max_ns = self.max_ns.max(latency_ns);
        self.n += 1;
        let distance = latency_ns as f64 - self.mean_ns;
        self.mean_ns += distance / self.n as f64;
        self.squares += distance * (latency_ns as f64 - self.mean_ns);
        *self.bins.0.entry(bin_ns(latency_ns)).or_default() += 1;
    }

    /// Adds the counts of another histogram (Chan, Golub & LeVeque 1979).
    pub fn merge(&mut self, other: &Histogram) {
        if other.n == 0 {
            return;
        }
        self.min_ns = if self.n == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        let (mine, theirs) = (self.n as f64, other.n as f64);
        let distance = other.mean_ns - self.mean_ns;
        self.squares += other.squares + distance * distance * mine * theirs / (mine + theirs);
        self.mean_ns += distance * theirs / (mine + theirs);
        self.n += other.n;
        for (bin, count) in &other.bins.0 {
            *self.bins.0.entry(*bin).or_default() += count;
        }
    }

    /// The number of latencies.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// The mean, in nanoseconds; 0 without latencies.
    pub fn mean_ns(&self) -> f64 {
        self.mean_ns
    }

    /// The standard deviation of the sample, in nanoseconds; 0 below two latencies.
    pub fn stddev_ns(&self) -> f64 {
        if self.n < 2 { 0.0 } else { (self.squares / (self.n - 1) as f64).sqrt() }
    }

    /// The latency (the middle of its bin) that `percentile` percent of the requests do not exceed;
    /// 0 without latencies.
    pub fn percentile_ns(&self, percentile: f64) -> u64 {
        let wanted = percentile / 100.0 * self.n as f64;
        let mut seen = 0;
        for (bin, count) in &self.bins.0 {
            seen += count;
            if seen as f64 >= wanted {
                return *bin;
            }
        }
        self.bins.0.last_key_value().map_or(0, |(bin, _)| *bin)
    }

    /// The figures in fio's form, with these percentiles (none to leave them out), and with the
    /// bins for `json+`.
    pub fn report(&self, percentiles: &[f64], with_bins: bool) -> LatencyReport {
        let empty = self.n == 0;
        let listed = || Percentiles(percentiles.iter().map(|p| (*p, self.percentile_ns(*p))).collect());
        LatencyReport {
            min: self.min_ns,
            max: self.max_ns,
            mean: self.mean_ns,
            stddev: self.stddev_ns(),
            n: self.n,
            percentile: (!empty && !percentiles.is_empty()).then(listed),
            bins: (!empty && with_bins).then(|| self.bins.clone()),
        }
    }
}

/// The latency that stands for the bin of this one, in nanoseconds: the middle of the bin.
pub fn bin_ns(latency_ns: u64) -> u64 {
    if latency_ns < EXACT_NS {
        return latency_ns;
    }
    // From 128 on the highest bit is the seventh or above, so the width is at least 2 and its half
    // at least 1.
    let shift = latency_ns.ilog2() - SPLIT_BITS;
    (latency_ns >> shift << shift) + (1 << (shift - 1))
}
