//! How values are spread: exact count, mean, least and most, and percentiles.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Values above this, of 2^62, count as this: no time or distance of a trace that is one.
const VALUE_MAX: u64 = 1 << 62;

/// Values that are counted as they come.
#[derive(Clone, Debug, Default)]
pub(super) struct Spread {
    /// Made with the first value: most processes lack some phases.
    histogram: Option<Box<Histogram<u32>>>,
    digits: u8,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// What is told of values; their unit stands in the name of what has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// How many values.
    pub count: u64,
    /// Their mean, exactly.
    pub mean: f64,
    /// The least.
    pub min: u64,
    /// No more than this in half of them; percentiles are right within 0.1 %, those of single processes within 1 %.
    pub p50: u64,
    /// In 90 %.
    pub p90: u64,
    /// In 99 %.
    pub p99: u64,
    /// In 99.9 %.
    pub p999: u64,
    /// The most.
    pub max: u64,
}

impl Spread {
    /// With percentiles right to so many digits: 2 take some 10 kB, 3 some 100 kB.
    pub fn new(digits: u8) -> Spread {
        Spread { digits, ..Spread::default() }
    }

    pub fn record(&mut self, value: u64) {
        let value = value.min(VALUE_MAX);
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
        self.make_histogram();
        if let Some(histogram) = &mut self.histogram {
            // It grows as it has to, and every value is below what it can grow to.
            let _ = histogram.record(value);
        }
    }

    /// Adds all values of another.
    pub fn add(&mut self, other: &Spread) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        self.make_histogram();
        if let (Some(histogram), Some(other)) = (&mut self.histogram, &other.histogram) {
            // It grows as it has to.
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

/// How deep something was: counts, or ns, by depth.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    weight: Vec<u64>,
}

/// Depths above this count as this.
const DEPTH_MAX: usize = 1 << 16;

impl Levels {
    pub fn add(&mut self, depth: usize, weight: u64) {
        let depth = depth.min(DEPTH_MAX);
        if self.weight.len() <= depth {
            self.weight.resize(depth + 1, 0);
        }
        self.weight[depth] += weight;
    }

    /// The weight of a depth of 0.
    pub fn at_rest(&self) -> u64 {
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

/// How many requests, as it was found at several moments or over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Depths {
    /// The mean.
    pub mean: f64,
    /// No more than this in half of the moments.
    pub p50: u64,
    /// In 90 %.
    pub p90: u64,
    /// In 99 %.
    pub p99: u64,
    /// The most.
    pub max: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_ends_are_exact_and_percentiles_within_their_digits() {
        let mut spread = Spread::new(3);
        (1..=100_000u64).for_each(|value| spread.record(value * 1000));
        let told = spread.figures();
        assert_eq!((told.count, told.min, told.max, told.mean), (100_000, 1000, 100_000_000, 50_000_500.0));
        for (value, right) in [(told.p50, 5e7), (told.p90, 9e7), (told.p99, 9.9e7), (told.p999, 9.99e7)] {
            assert!((value as f64 / right - 1.0).abs() < 0.001, "{value} {right}");
        }
    }

    #[test]
    fn nothing_and_the_greatest_values_are_told_as_well() {
        assert_eq!(Spread::new(2).figures(), Figures::default());
        let mut spread = Spread::new(2);
        [0, u64::MAX].into_iter().for_each(|value| spread.record(value));
        assert_eq!((spread.figures().min, spread.figures().p50, spread.figures().max), (0, 0, VALUE_MAX));
    }

    #[test]
    fn depths_are_weighted() {
        // Nothing for 60 ns, 1 for 20 ns, 4 for 20 ns: mean (20 + 80) / 100.
        let mut levels = Levels::default();
        [(0, 60), (1, 20), (4, 20)].into_iter().for_each(|(depth, ns)| levels.add(depth, ns));
        assert_eq!(levels.depths(), Depths { mean: 1.0, p50: 0, p90: 4, p99: 4, max: 4 });
        assert_eq!((levels.at_rest(), levels.total()), (60, 100));
    }
}
