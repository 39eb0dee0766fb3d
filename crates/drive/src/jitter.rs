//! A latency with a floor and a lognormal part, bit-identical on every machine.
//!
//! Logarithms and exponentials of different mathematical libraries differ in the last digit. The
//! quantiles of the distribution are therefore computed once from additions, multiplications,
//! divisions and square roots, which IEEE 754 defines exactly. A draw is an index into their table.

use crate::random::SplitMix64;

/// Number of quantiles. The mean of the table is within 0.3 % of the distribution's up to a sigma
/// of 1.
const QUANTILES: usize = 4096;

/// A stream of random latencies.
#[derive(Debug, Clone)]
pub struct Jitter {
    floor_ns: u64,
    /// Quantiles above the floor in rising order; empty without jitter.
    above_ns: Vec<u64>,
    random: SplitMix64,
}

impl Jitter {
    /// Creates a stream of latencies: a floor plus a lognormal part, given by its median and by the
    /// standard deviation of its logarithm in thousandths. Without a deviation, all latencies are
    /// the floor plus the median.
    pub fn new(floor_ns: u64, median_ns: u64, sigma_milli: u32, seed: u64) -> Jitter {
        let random = SplitMix64::new(seed);
        if median_ns == 0 || sigma_milli == 0 {
            return Jitter { floor_ns: floor_ns.saturating_add(median_ns), above_ns: Vec::new(), random };
        }
        let sigma = f64::from(sigma_milli) / 1000.0;
        let above_ns = normal_quantiles().map(|z| (median_ns as f64 * exponential(sigma * z)).round() as u64);
        Jitter { floor_ns, above_ns: above_ns.collect(), random }
    }

    /// The next latency in ns.
    pub fn draw_ns(&mut self) -> u64 {
        if self.above_ns.is_empty() {
            return self.floor_ns;
        }
        let index = self.random.below(self.above_ns.len() as u64) as usize;
        self.floor_ns.saturating_add(self.above_ns[index])
    }
}

/// The quantiles of the normal distribution at the midpoints of equal parts, in rising order.
/// Newton's method finds each from the one before.
fn normal_quantiles() -> impl Iterator<Item = f64> {
    let mut upper = Vec::with_capacity(QUANTILES / 2);
    let mut z = 0.0;
    for part in 0..QUANTILES / 2 {
        let above_half = (part as f64 + 0.5) / QUANTILES as f64;
        // From below, where the density is higher, Newton's steps never overshoot.
        for _ in 0..8 {
            z += (above_half - half_to(z)) / density(z);
        }
        upper.push(z);
    }
    let lower: Vec<f64> = upper.iter().rev().map(|z| -z).collect();
    lower.into_iter().chain(upper)
}

fn density(z: f64) -> f64 {
    exponential(-z * z / 2.0) / (2.0 * std::f64::consts::PI).sqrt()
}

/// The normal distribution from 0 to `z`: the series of G. Marsaglia, "Evaluating the normal
/// distribution", J. Stat. Software 11(4), 2004.
fn half_to(z: f64) -> f64 {
    let (mut term, mut sum) = (z, z);
    let mut odd = 1.0;
    while term > sum * 1e-17 {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    sum * density(z)
}

/// e to the power of `x`: a series for a fraction of `x` that is exact after 18 terms, then
/// repeated squaring.
fn exponential(x: f64) -> f64 {
    let mut halvings = 0;
    let mut small = x;
    while !(-0.5..=0.5).contains(&small) {
        small /= 2.0;
        halvings += 1;
    }
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..=18 {
        term *= small / f64::from(n);
        sum += term;
    }
    (0..halvings).fold(sum, |power, _| power * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jitter(sigma_milli: u32) -> Jitter {
        Jitter::new(1000, 1_000_000, sigma_milli, 1)
    }

    #[test]
    fn exponential_agrees_with_the_library() {
        for x in [-8.0, -1.3, -0.1, 0.0, 0.4, 1.0, 7.5] {
            assert!((exponential(x) / f64::exp(x) - 1.0).abs() < 1e-13, "{x}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let quantiles: Vec<f64> = normal_quantiles().collect();
        assert_eq!(quantiles.len(), QUANTILES);
        assert!(quantiles.is_sorted());
        // 97.5 % of a normal distribution are below 1.95996, 99 % below 2.32635; a part of the
        // table is 0.000244 wide.
        for (part, expected) in [(0.5, 0.0), (0.84134, 1.0), (0.975, 1.95996), (0.99, 2.32635)] {
            let found = quantiles[(part * QUANTILES as f64) as usize];
            assert!((found - expected).abs() < 0.01, "{part}: {found}");
        }
    }

    #[test]
    fn mean_is_the_lognormal_one() {
        for sigma_milli in [1, 300, 1000] {
            let jitter = jitter(sigma_milli);
            let mean = jitter.above_ns.iter().sum::<u64>() as f64 / QUANTILES as f64;
            let sigma = f64::from(sigma_milli) / 1000.0;
            let expected = 1e6 * f64::exp(sigma * sigma / 2.0);
            assert!((mean / expected - 1.0).abs() < 0.003, "{sigma}: {mean}, expected {expected}");
        }
    }

    #[test]
    fn latencies_without_a_deviation_are_all_the_same() {
        let mut jitter = jitter(0);
        assert_eq!([jitter.draw_ns(), jitter.draw_ns()], [1_001_000; 2]);
    }

    #[test]
    fn draws_follow_the_seed_and_stay_above_the_floor() {
        let draws = |mut jitter: Jitter| (0..1000).map(|_| jitter.draw_ns()).collect::<Vec<_>>();
        let first = draws(jitter(500));
        assert_eq!(first, draws(jitter(500)));
        assert!(first.iter().all(|ns| *ns > 1000));
        let below = first.iter().filter(|ns| **ns < 1_001_000).count();
        assert!((450..550).contains(&below), "{below} of 1000 below the median");
    }
}
