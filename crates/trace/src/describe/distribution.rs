//! Distributions of values: exact count, mean, minimum and maximum, and percentiles.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Largest value, 2^62; greater values count as this one. No valid time or distance reaches it.
const VALUE_MAX: u64 = 1 << 62;

/// Accumulates values for [`Figures`].
#[derive(Clone, Debug, Default)]
pub(super) struct Distribution {
    /// Created with the first value, because most processes lack some phases.
    histogram: Option<Box<Histogram<u32>>>,
    digits: u8,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// Statistics of values. The unit is part of the name of the field that holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Number of values.
    pub count: u64,
    /// Exact mean.
    pub mean: f64,
    /// The smallest value.
    pub min: u64,
    /// Median. Percentiles are exact within 0.1 %, those of single processes within 1 %.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// The largest value.
    pub max: u64,
}

impl Distribution {
    /// Creates an empty distribution whose percentiles have `digits` significant digits: 2 take
    /// about 10 kB, 3 about 100 kB.
    pub fn new(digits: u8) -> Distribution {
        Distribution { digits, ..Distribution::default() }
    }

    pub fn record(&mut self, value: u64) {
        let value = value.min(VALUE_MAX);
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
        self.make_histogram();
        if let Some(histogram) = &mut self.histogram {
            // The histogram grows automatically, and no value exceeds its largest size.
            let _ = histogram.record(value);
        }
    }

    /// Adds all values of another distribution.
    pub fn add(&mut self, other: &Distribution) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        self.make_histogram();
        if let (Some(histogram), Some(other)) = (&mut self.histogram, &other.histogram) {
            // The histogram grows automatically.
            let _ = histogram.add(&**other);
        }
    }

    fn make_histogram(&mut self) {
        if self.histogram.is_none() {
            self.histogram = Histogram::new(self.digits).ok().map(|mut histogram| {
                histogram.auto(true);
                Box::new(histogram)
            });
        }
    }

    pub fn figures(&self) -> Figures {
        let at = |quantile: f64| {
            let value = self.histogram.as_ref().map_or(0, |histogram| histogram.value_at_quantile(quantile));
            value.clamp(self.min, self.max)
        };
        Figures {
            count: self.count,
            mean: if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 },
            min: self.min,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.max,
        }
    }
}

/// Weights (counts or ns) by queue depth.
#[derive(Clone, Debug, Default)]
pub(super) struct DepthHistogram {
    weight: Vec<u64>,
}

/// Largest depth; greater depths count as this one.
const DEPTH_MAX: usize = 1 << 16;

impl DepthHistogram {
    pub fn add(&mut self, depth: usize, weight: u64) {
        let depth = depth.min(DEPTH_MAX);
        if self.weight.len() <= depth {
            self.weight.resize(depth + 1, 0);
        }
        self.weight[depth] += weight;
    }

    /// Returns the weight of depth 0.
    pub fn idle_weight(&self) -> u64 {
        self.weight.first().copied().unwrap_or(0)
    }

    pub fn total(&self) -> u64 {
        self.weight.iter().sum()
    }

    pub fn depths(&self) -> Depths {
        let total = self.total();
        let at = |share: f64| {
            let wanted = (share * total as f64).ceil() as u64;
            let mut so_far = 0;
            let reached = self.weight.iter().position(|weight| {
                so_far += weight;
                so_far >= wanted.max(1)
            });
            reached.unwrap_or(0) as u64
        };
        let sum: f64 = self.weight.iter().enumerate().map(|(depth, weight)| depth as f64 * *weight as f64).sum();
        Depths {
            mean: if total == 0 { 0.0 } else { sum / total as f64 },
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: self.weight.iter().rposition(|weight| *weight > 0).unwrap_or(0) as u64,
        }
    }
}

/// Distribution of a number of requests over events or over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Depths {
    /// The arithmetic mean.
    pub mean: f64,
    /// The median (50th percentile).
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// The largest value.
    pub max: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_ends_are_exact_and_percentiles_within_their_digits() {
        let mut distribution = Distribution::new(3);
        (1..=100_000u64).for_each(|value| distribution.record(value * 1000));
        let figures = distribution.figures();
        assert_eq!((figures.count, figures.min, figures.max, figures.mean), (100_000, 1000, 100_000_000, 50_000_500.0));
        for (value, right) in [(figures.p50, 5e7), (figures.p90, 9e7), (figures.p99, 9.9e7), (figures.p999, 9.99e7)] {
            assert!((value as f64 / right - 1.0).abs() < 0.001, "{value} {right}");
        }
    }

    #[test]
    fn an_empty_distribution_and_the_largest_values_are_handled() {
        assert_eq!(Distribution::new(2).figures(), Figures::default());
        let mut distribution = Distribution::new(2);
        [0, u64::MAX].into_iter().for_each(|value| distribution.record(value));
        assert_eq!(
            (distribution.figures().min, distribution.figures().p50, distribution.figures().max),
            (0, 0, VALUE_MAX)
        );
    }

    #[test]
    fn depths_are_weighted() {
        // Depth 0 for 60 ns, 1 for 20 ns, 4 for 20 ns: mean (20 + 80) / 100.
        let mut levels = DepthHistogram::default();
        [(0, 60), (1, 20), (4, 20)].into_iter().for_each(|(depth, ns)| levels.add(depth, ns));
        assert_eq!(levels.depths(), Depths { mean: 1.0, p50: 0, p90: 4, p99: 4, max: 4 });
        assert_eq!((levels.idle_weight(), levels.total()), (60, 100));
    }
}
