//! Random sizes of files.

use rand_pcg::Pcg64;

use crate::workload::distribution::standard_normal;

/// A lognormal distribution, given by its median and its mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SizeLaw {
    pub median_bytes: u64,
    pub mean_bytes: u64,
}

impl SizeLaw {
    /// A size in bytes, at least 1. The logarithm's variance is 2 ln(mean / median); a mean that is
    /// no greater than the median is that size for all.
    pub fn draw(self, rng: &mut Pcg64) -> u64 {
        let ratio = self.mean_bytes as f64 / self.median_bytes.max(1) as f64;
        let deviation = (2.0 * ratio.max(1.0).ln()).sqrt();
        let size = self.median_bytes as f64 * (deviation * standard_normal(rng)).exp();
        (size.round() as u64).clamp(1, 1 << 40)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_given_median_and_mean() {
        let law = SizeLaw { median_bytes: 5000, mean_bytes: 14_500 };
        let mut rng = Pcg64::new(1, 1);
        let mut sizes: Vec<u64> = (0..100_000).map(|_| law.draw(&mut rng)).collect();
        sizes.sort_unstable();
        let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
        assert!((sizes[50_000] as f64 / 5000.0 - 1.0).abs() < 0.03, "{}", sizes[50_000]);
        assert!((mean / 14_500.0 - 1.0).abs() < 0.05, "{mean}");
    }
}
